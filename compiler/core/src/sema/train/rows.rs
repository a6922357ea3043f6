//! The reads of a step: of the data it reads the rows of the batch, and everything else as the session carries it.
//!
//! An index over a batched dim runs over the rows of the batch: it reads tensors over that dim, which hold those rows alone,
//! and as a value it is the row's number in the data. Must not know how rows are chosen.
//!
//! ```text
//! text[n * T + t], X[n, d], n over a batched dim   =>   text[train.rows[n] * T + t], X[n, d]
//! ```

use crate::einsum::{Role, TensorId};
use crate::sema::{
    Checker,
    definitions::tensors::{Definition, SourceForm},
    expressions::arena::{ExprId, Form, TensorRef, VarId},
    expressions::scope::{Binding, View},
    lower::parts::Builder,
    resolve::names::{EntityId, Found},
    sizes::size::Size,
    train::training::{BatchInput, CarriedKind, ROWS},
};
use ein_plan::{DType, IndexId, Node, NodeId, Scalar, Source};
use einc_diag::{Diagnostic, FileId, Span};
use std::collections::HashMap;

impl<'a> Checker<'a> {
    /// From here on sizes remember the batched dims; a step gets the numbers of its rows.
    pub(crate) fn begin_step(&mut self) {
        self.training.marking = true;
        let over = self.task.mode.over.iter().next();
        if let (Some(_), Some((name, rows))) = (self.task.mode.step, over) {
            let size = rows.map_or_else(|| Size::dim(name), |rows| Size::rows(name, rows));
            let (name, span) = (ROWS.to_owned(), Span::default());
            let tensor = self.fed(name, DType::I64, vec![size], Role::Input, span);
            self.training.step.rows = Some(tensor);
        }
    }

    /// Returns the tensor that is read in the place of an input, if the mode says so; the outer `None` after an error.
    pub(crate) fn replacement(
        &mut self,
        name: &str,
        dtype: DType,
        sizes: &[Size],
        span: Span,
    ) -> Option<Option<View>> {
        let Some(other) = self.task.mode.replaced.get(name) else {
            return Some(None);
        };
        let Found::Entity(id) = self.names.find(FileId(0), other) else {
            return None;
        };
        self.define_entity(id);
        let Some(Binding::Tensor(view)) = self.entities.values.get(&id).copied() else {
            return None;
        };
        let record = self.built.tensors[view.tensor.0 as usize].clone();
        let same = record.shape.len() == sizes.len()
            && record.shape.iter().zip(sizes).all(|(a, b)| !a.differs(b));
        if !same || record.dtype != dtype {
            let text = self.view_text(view);
            self.report.push(
                Diagnostic::error("E0621", format!("`{other}` cannot stand for `{name}`"))
                    .at(record.span, format!("this is {text}"))
                    .at(span, "declared otherwise here")
                    .help("data that replace others have their type, and all but the batched dims"),
            );
            return None;
        }
        Some(Some(view))
    }

    /// An input or param as a step sees it; `None` where the text is read as it stands.
    pub(crate) fn fed_input(
        &mut self,
        (name, span): (&str, Span),
        dtype: DType,
        sizes: &[Size],
        form: &SourceForm,
        param: bool,
    ) -> Option<Option<Binding>> {
        self.task.mode.step?;
        let over: Vec<usize> = (0..sizes.len())
            .filter(|at| sizes[*at].has_rows())
            .collect();
        let role = if param { Role::Param } else { Role::Input };
        match over.as_slice() {
            [] => {
                let kind = if param {
                    CarriedKind::Param
                } else {
                    CarriedKind::Input
                };
                let begin = match form {
                    SourceForm::Ready(source) => source.clone(),
                    _ => Source::Unbound,
                };
                self.training
                    .step
                    .carried
                    .push((name.to_owned(), kind, begin));
            }
            [axis] if !param && sizes[*axis].as_rows().is_some() => {
                self.training.step.batch.push(BatchInput {
                    name: name.to_owned(),
                    axis: *axis,
                    dtype,
                    shape: vec![],
                    source: Source::Unbound,
                    constant: false,
                });
            }
            _ => {
                let dims: Vec<&str> = self.task.mode.over.keys().map(String::as_str).collect();
                let over = dims.join(", ");
                let what = if param { "a param" } else { "an input" };
                let help = match param {
                    true => {
                        "a batch has some rows of the data; look rows of a param up by a number that is among the data"
                    }
                    false => "of what is batched, one dimension is the batched dim itself",
                };
                self.report.push(
                    Diagnostic::error("E0621", format!("{what} over `{over}`, which is batched"))
                        .at(span, format!("`{name}` has a dimension made of it"))
                        .help(help),
                );
                return Some(None);
            }
        }
        let tensor = self.fed(name.to_owned(), dtype, sizes.to_vec(), role, span);
        if over.is_empty() && !param {
            self.keep(tensor);
        }
        Some(Some(Binding::Tensor(View::of(tensor))))
    }

    /// A constant with its value of the whole data.
    pub(crate) fn fed_constant(&mut self, id: EntityId) -> Option<Binding> {
        let (name, dtype, sizes) = self.task.mode.constants.get(&id)?.clone();
        let span = self.names.entity(id).name.span;
        if dtype.is_complex() {
            self.report.push(
                Diagnostic::error(
                    "E0621",
                    "a constant of complex numbers cannot be kept in training",
                )
                .at(span, format!("this is {dtype}"))
                .help("make it a definition, or keep `re(…)` and `im(…)` as two constants"),
            );
            return None;
        }
        let mine = |size: &Size| {
            let (dim, _) = size.as_rows().filter(|_| self.task.mode.step.is_some())?;
            let rows = *self.task.mode.over.get(&*dim)?;
            Some(rows.map_or_else(|| size.clone(), |rows| Size::rows(&dim, rows)))
        };
        let shape: Vec<Size> = sizes
            .iter()
            .map(|size| mine(size).unwrap_or_else(|| size.plain()))
            .collect();
        let over: Vec<usize> = (0..sizes.len())
            .filter(|at| mine(&sizes[*at]).is_some())
            .collect();
        match over.as_slice() {
            [] => {
                let begin = Source::Unbound;
                self.training
                    .step
                    .carried
                    .push((name.clone(), CarriedKind::Constant, begin));
            }
            [axis] => self.training.step.batch.push(BatchInput {
                name: name.clone(),
                axis: *axis,
                dtype,
                shape: sizes
                    .iter()
                    .filter_map(|s| s.known())
                    .map(|n| n as u64)
                    .collect(),
                source: Source::Unbound,
                constant: true,
            }),
            _ => {
                self.report.push(
                    Diagnostic::error("E0621", "a constant has the batched dim twice")
                        .at(span, "a batch has some rows of it")
                        .help("make it a definition, which is computed over the batch"),
                );
                return None;
            }
        }
        let tensor = self.fed(name, dtype, shape, Role::Input, span);
        if over.is_empty() {
            self.keep(tensor);
        }
        Some(Binding::Tensor(View::of(tensor)))
    }

    /// Notes that no step changes what the session gives.
    fn keep(&mut self, tensor: TensorRef) {
        let kept = SourceForm::Ready(Source::Kept);
        self.built.tensors[tensor.0 as usize].definition = Definition::Source(kept);
    }

    /// A state of a module: in a step it is carried.
    pub(crate) fn carried_state(&mut self, binding: Binding, span: Span) -> Option<()> {
        let Binding::Tensor(view) = binding else {
            return Some(());
        };
        if self.task.mode.step.is_none() {
            if self.task.bindings.params_given {
                let given = Definition::Source(SourceForm::Ready(Source::Unbound));
                self.built.tensors[view.tensor.0 as usize].definition = given;
            }
            return Some(());
        }
        let record = &self.built.tensors[view.tensor.0 as usize];
        let number = |root: ExprId| match &*self.arena.form(root) {
            Form::Constant(scalar) => Some(*scalar),
            Form::Whole(size) => size.known().map(Scalar::Int),
            _ => None,
        };
        let begin = match &record.definition {
            Definition::Source(SourceForm::Ready(begin)) => Some(begin.clone()),
            Definition::Statement { root, .. } => number(*root).map(Source::Full),
            _ => None,
        };
        let Some(begin) = begin else {
            self.report.push(
                Diagnostic::error("E0512", "a state that is trained begins with a source")
                    .at(span, "this is computed")
                    .help("write a number, `zeros` or another source"),
            );
            return None;
        };
        let record = &mut self.built.tensors[view.tensor.0 as usize];
        record.definition = Definition::Source(SourceForm::Ready(Source::Fed));
        record.role = Role::Param;
        let name = record.name.clone();
        self.training
            .step
            .carried
            .push((name, CarriedKind::Running, begin));
        self.training.state_tensors.push(view.tensor);
        Some(())
    }

    /// Returns whether an index runs over the rows of a batch.
    pub(crate) fn is_row(&self, var: VarId) -> bool {
        self.training.step.rows.is_some()
            && self
                .extent(var)
                .is_some_and(|extent| extent.as_rows().is_some())
    }

    /// The number, in the data, of the row that an index stands for.
    pub(crate) fn lower_row(
        &mut self,
        numbers: &HashMap<TensorRef, TensorId>,
        builder: &mut Builder,
        var: VarId,
    ) -> Option<NodeId> {
        let at = builder.vars.iter().position(|v| *v == var)?;
        let index = Node::Index(IndexId(at as u32));
        let index = builder.graph.add(index, DType::I64);
        let operand = builder.operand(*numbers.get(&self.training.step.rows?)?);
        let read = Node::Read {
            operand,
            column: 0,
            positions: vec![index],
            otherwise: None,
        };
        Some(builder.graph.add(read, DType::I64))
    }

    /// The position of a read along a batched dimension: an index over the rows, and nothing else. The inner `None`: it is not along
    /// such a dimension.
    pub(crate) fn row_position(
        &mut self,
        builder: &mut Builder,
        tensor: TensorRef,
        dimension: usize,
        position: ExprId,
    ) -> Option<Option<NodeId>> {
        let record = &self.built.tensors[tensor.0 as usize];
        let batched = record.shape.get(dimension);
        let batched = batched.is_some_and(|size| size.as_rows().is_some());
        if self.training.step.rows.is_none() || !batched {
            return Some(None);
        }
        if let Form::Index(var) = &*self.arena.form(position)
            && self.is_row(*var)
        {
            let at = builder.vars.iter().position(|v| v == var)?;
            let index = Node::Index(IndexId(at as u32));
            return Some(Some(builder.graph.add(index, DType::I64)));
        }
        let (name, declared) = (record.name.clone(), record.span);
        self.report.push(
            Diagnostic::error("E0625", format!("a step reads `{name}` at other rows than its batch's"))
                .at(builder.span, "in this statement")
                .at(declared, "only the rows of the batch are there in a step")
                .help("along a batched dim a tensor is read by an index over that dim alone; make what has to see all of the data a `const`"),
        );
        None
    }
}
