//! Parts of kernels: positions in one canonical form, index lists, sources that the uses of a tensor decide, places.
//!
//! Must not know how a statement becomes kernels.
//!
//! ```text
//! r - 1 + 2*y   =>   sub(add(mul(2, y), r), 1)
//! ```

use crate::einsum::{Program, TensorId};
use crate::sema::{
    Checker,
    definitions::tensors::SourceForm,
    expressions::arena::{ExprId, Form, TensorRef, Ty, VarId},
    sizes::size::Size,
};
use ein_plan::{
    DType, Function, Graph, Index, IndexId, Node, NodeId, Origin, Reduction, Scalar, Source,
};
use einc_diag::{Diagnostic, Span};
use std::collections::HashMap;

/// The kernel of one tensor in the making.
pub(crate) struct Builder {
    pub(crate) vars: Vec<VarId>,
    pub(crate) graph: Graph,
    pub(crate) operands: Vec<TensorId>,
    pub(crate) memo: HashMap<(ExprId, Option<ExprId>), NodeId>,
    pub(crate) name: String,
    pub(crate) hidden: usize,
    pub(crate) span: Span,
}

impl Checker<'_> {
    /// Names made unique and extents of the indices.
    pub(crate) fn indices(&self, vars: &[VarId]) -> Option<Vec<Index>> {
        let mut indices: Vec<Index> = vec![];
        for var in vars {
            let base = &self.indices.vars[var.0 as usize].name;
            let mut name = base.clone();
            let mut number = 2;
            while indices.iter().any(|index| index.name == name) {
                name = format!("{base}_{number}");
                number += 1;
            }
            indices.push(Index {
                name,
                extent: number_of(&self.extent(*var)?)?,
            });
        }
        Some(indices)
    }

    /// A position: an affine form in one canonical order, so that equal positions are equal nodes.
    pub(crate) fn lower_position(
        &mut self,
        program: &mut Program,
        numbers: &HashMap<TensorRef, TensorId>,
        builder: &mut Builder,
        id: ExprId,
        condition: Option<ExprId>,
    ) -> Option<NodeId> {
        let form = self.linear(id);
        let free = self.arena.free(id);
        let rows = free.iter().any(|var| self.is_row(*var));
        let Some(form) = form.filter(|_| !rows) else {
            return self.lower_node(program, numbers, builder, id, condition);
        };
        // Rising terms first, then the constant if it stands first or is added, then what is taken off.
        let constant = form.constant.known()?;
        let mut terms = vec![];
        for (var, coefficient) in form.terms.iter() {
            let at = builder.vars.iter().position(|v| v == var)?;
            let index = builder
                .graph
                .add(Node::Index(IndexId(at as u32)), DType::I64);
            terms.push((coefficient.known()?, Some(index)));
        }
        if constant != 0 || terms.is_empty() {
            terms.push((constant, None));
        }
        terms.sort_by_key(|(factor, _)| *factor < 0);
        let mut sum: Option<NodeId> = None;
        for (factor, index) in terms {
            let falls = sum.is_some() && factor < 0 && factor != i64::MIN;
            let factor = if falls { -factor } else { factor };
            let term = match index {
                Some(index) if factor == 1 => index,
                Some(index) => {
                    let factor = builder
                        .graph
                        .add(Node::Constant(Scalar::Int(factor)), DType::I64);
                    apply(builder, Function::Mul, vec![factor, index], DType::I64)
                }
                None => builder
                    .graph
                    .add(Node::Constant(Scalar::Int(factor)), DType::I64),
            };
            sum = Some(match sum {
                None => term,
                Some(sum) => {
                    let function = if falls { Function::Sub } else { Function::Add };
                    apply(builder, function, vec![sum, term], DType::I64)
                }
            });
        }
        sum
    }

    /// Returns whether an expression holds a reduction that could stop the run at a point that is not wanted.
    pub(crate) fn has_faulty_reduction(&mut self, id: ExprId) -> bool {
        self.is_faulty(id, false)
    }

    /// Returns whether an expression could stop the run at a point that is not wanted; outside of reductions only if `inside` says so.
    pub(crate) fn is_faulty(&mut self, id: ExprId, inside: bool) -> bool {
        let mut open = vec![(id, inside)];
        let mut seen = std::collections::HashSet::new();
        while let Some((id, inside)) = open.pop() {
            if !seen.insert((id, inside)) {
                continue;
            }
            let form = self.arena.form(id);
            let (faulty, reduces) = match &*form {
                Form::Read {
                    tensor,
                    positions,
                    otherwise: None,
                } => {
                    let shape = &self.built.tensors[tensor.0 as usize].shape;
                    let safe = positions.iter().zip(shape).all(|(position, size)| {
                        let Form::Index(var) = &*self.arena.form(*position) else {
                            return false;
                        };
                        let extent = self.extent(*var);
                        let room = extent.and_then(|extent| size.subtract(&extent).ok());
                        room.is_some_and(|room| room.at_least_zero() == Some(true))
                    });
                    (!safe, false)
                }
                Form::Apply(Function::FloorDiv | Function::Rem | Function::Pow, sides) => {
                    // No number is divided by zero or raised to a negative power.
                    let safe = matches!(&*self.arena.form(sides[1]), Form::Constant(Scalar::Int(x)) if *x > 0);
                    let is_float =
                        matches!(self.arena.ty(id), Ty::Typed(dtype) if dtype.is_float());
                    (!safe && !is_float, false)
                }
                Form::Reduce {
                    reduction,
                    vars,
                    guard,
                    ..
                } => {
                    // There is no position of a value among none.
                    let has_values = |var: &VarId| {
                        let extent = self.extent(*var).and_then(|extent| extent.known());
                        extent.is_some_and(|extent| extent > 0)
                    };
                    let is_empty = guard.is_some() || !vars.iter().all(has_values);
                    (reduction.is_arg() && is_empty, true)
                }
                // A tensor of its own as well; see `lower_node`.
                Form::Convert(_) => {
                    let ty = self.arena.ty(id);
                    (false, matches!(ty, Ty::Typed(dtype) if dtype.is_narrow()))
                }
                _ => (false, false),
            };
            if faulty && (inside || reduces) {
                return true;
            }
            open.extend(form.arguments().into_iter().map(|a| (a, inside || reduces)));
        }
        false
    }

    /// A source with what the uses of its tensor say.
    pub(crate) fn settle_source(&mut self, tensor: TensorRef, form: SourceForm) -> Option<Source> {
        if let Some(stack) = self.modules.stacks.get(&tensor).cloned() {
            let each = match form {
                SourceForm::Ready(given) if given.is_given() => return Some(given),
                form => self.settle_one(tensor, form)?,
            };
            return Some(stack.source(&each, str::to_owned));
        }
        self.settle_one(tensor, form)
    }

    fn settle_one(&mut self, tensor: TensorRef, form: SourceForm) -> Option<Source> {
        let (fan, he) = match form {
            SourceForm::Ready(source) => return Some(source),
            SourceForm::HeNormal { fan } => (fan, true),
            SourceForm::GlorotUniform { fan } => (fan, false),
        };
        let (inner, outer) = match fan {
            Some(fan) => (fan, fan),
            None => self.fans(tensor)?,
        };
        Some(if he {
            Source::Normal {
                mean: 0.0,
                std: (2.0 / inner).sqrt(),
            }
        } else {
            let limit = (6.0 / (inner + outer)).sqrt();
            Source::Uniform {
                lo: -limit,
                hi: limit,
            }
        })
    }

    /// Fan-in and fan-out: the sizes of the dimensions that are summed where the tensor is used, and the others. A
    /// use that sums none of them (an update of the weights) says nothing, unless there is no other.
    pub(crate) fn fans(&mut self, tensor: TensorRef) -> Option<(f64, f64)> {
        let record = self.built.tensors[tensor.0 as usize].clone();
        let own = self
            .modules
            .stacks
            .get(&tensor)
            .map_or(0, |stack| stack.leading);
        let read_as = self.used_as(tensor);
        let mut found: Option<(f64, f64)> = None;
        let mut unsummed = None;
        for (_, positions) in self
            .indices
            .reads
            .clone()
            .iter()
            .filter(|(read, _)| read_as.contains(read))
        {
            let (mut inner, mut outer) = (1.0, 1.0);
            let mut sums = false;
            for (position, size) in positions.iter().zip(&record.shape[own..]) {
                let summed = self.arena.free(*position).iter().any(|var| {
                    matches!(
                        self.indices.vars[var.0 as usize].reduction,
                        Some(Reduction::Sum | Reduction::Mean)
                    )
                });
                sums |= summed;
                *(if summed { &mut inner } else { &mut outer }) *= size.known()? as f64;
            }
            if !sums {
                unsummed = Some((inner, outer));
                continue;
            }
            match found {
                Some(first) if first != (inner, outer) => {
                    let name = record.name.clone();
                    // A sum over all of it, such as a penalty, is not what makes the next layer.
                    let (least, most) = (first.0.min(inner), first.0.max(inner));
                    self.report.push(
                        Diagnostic::error(
                            "E0207",
                            format!(
                                "the uses of `{name}` disagree on its fan-in: {least} and {most}"
                            ),
                        )
                        .at(record.span, "its scale depends on how it is used")
                        .help(format!("write the fan-in: `he_normal(fan: {least})`")),
                    );
                    return None;
                }
                _ => found = Some((inner, outer)),
            }
        }
        Some(found.or(unsummed).unwrap_or((1.0, 1.0)))
    }

    /// A place for the run's messages.
    pub(crate) fn origin(&self, span: Span) -> Origin {
        Origin {
            file: span.file.0,
            start: span.start,
            end: span.end,
            line: self.line(span),
        }
    }

    pub(crate) fn line(&self, span: Span) -> u32 {
        let Some(starts) = self.names.lines.get(span.file.0 as usize) else {
            return 1;
        };
        starts.partition_point(|start| *start <= span.start).max(1) as u32
    }

    /// Returns whether an expression reads data.
    pub(crate) fn depends_on_data(&self, id: ExprId) -> bool {
        let (mut open, mut seen) = (vec![id], std::collections::HashSet::new());
        while let Some(id) = open.pop() {
            let form = self.arena.form(id);
            if matches!(&*form, Form::Read { .. } | Form::Index(_)) {
                return true;
            }
            open.extend(form.arguments().into_iter().filter(|a| seen.insert(*a)));
        }
        false
    }
}

impl Builder {
    pub(crate) fn operand(&mut self, tensor: TensorId) -> u32 {
        let at = self
            .operands
            .iter()
            .position(|o| *o == tensor)
            .unwrap_or_else(|| {
                self.operands.push(tensor);
                self.operands.len() - 1
            });
        at as u32
    }
}

pub(crate) fn apply(
    builder: &mut Builder,
    function: Function,
    arguments: Vec<NodeId>,
    dtype: DType,
) -> NodeId {
    builder.graph.add(Node::Apply(function, arguments), dtype)
}

pub(crate) fn number_of(size: &Size) -> Option<u64> {
    size.known().and_then(|n| u64::try_from(n).ok())
}
