//! The statements of a call of a library operation.
//!
//! Its one statement stands over the indices around, those of leading dimensions, and those of the result. Operations with
//! several results make one tensor that holds them one behind the other, and read them out of it; `sort` and `topk`
//! read their values at the positions that an operation gives. Must not know how anything is computed.
//!
//! ```text
//! q, r = qr(A)   =>   qr.1: [i1] qr(A[:1, :2], i1);   q: [i1, i2] qr.1[2 * i1 + i2];   r: [i1, i2] qr.1[2 * i1 + i2 + 6]
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker,
    calls::functions::Results,
    expressions::arena::{ExprId, Form, TensorRef, Ty, VarId},
    expressions::scope::{Binding, View},
    library::operands::Call,
    sizes::ranges::Open,
    sizes::size::Size,
};
use ein_plan::{DType, Function, Scalar};
use einc_diag::{FileId, Span};

impl Checker<'_> {
    /// The statements of a call.
    pub(crate) fn library_call(
        &mut self,
        mut call: Call,
        own: Vec<Size>,
        hints: &[(String, Span)],
    ) -> Option<Results> {
        let span = call.span;
        let bindings: Vec<Binding> = call.views.iter().map(|v| Binding::Tensor(*v)).collect();
        let outer = self.captured(&bindings);
        self.pin(&outer, span)?;
        for view in &mut call.views {
            *view = self.plain_slice(*view, span)?;
        }
        let shape = self.view_shape(call.views[0]);
        let leading = &shape[..shape.len() - call.operation.dimensions];
        self.indices.open.push(Open::default());
        let batch: Vec<VarId> = self.numbered_vars("p", leading, span);
        let vars = self.numbered_vars("i", &own, span);
        self.close();
        // The right sides of `solve` are vectors; a matrix has one for each of its columns.
        let columns = match call.operation.function {
            Function::Solve => vars[1..].to_vec(),
            _ => vec![],
        };
        let mut arguments = vec![];
        for (at, view) in call.views.iter().enumerate() {
            let mut positions = self.leading(*view).to_vec();
            positions.extend(batch.iter().map(|var| self.index(*var)));
            let whole = match at {
                0 => call.operation.dimensions,
                _ => 1,
            };
            for dimension in 1..=whole {
                let whole = Form::Constant(Scalar::Int(-(dimension as i64)));
                positions.push(self.arena.add(whole, Ty::Typed(DType::I64)));
            }
            if at > 0 {
                positions.extend(columns.iter().map(|var| self.index(*var)));
            }
            let dtype = self.built.tensors[view.tensor.0 as usize].dtype;
            arguments.push(self.library_read(view.tensor, positions, dtype));
        }
        let dtype = match call.operation.is_ordered() {
            true => DType::I64,
            false => {
                let mut views = call.views.iter();
                let typed = views.find(|view| !self.inference.untyped.contains_key(&view.tensor));
                self.built.tensors[typed.unwrap_or(&call.views[0]).tensor.0 as usize].dtype
            }
        };
        let own_vars = vars.iter().filter(|var| !columns.contains(var));
        arguments.extend(own_vars.map(|var| self.index(*var)));
        let form = Form::Apply(call.operation.function, arguments);
        let root = self.arena.add(form, Ty::Typed(dtype));
        let direct = call.operation.results.len() == 1 && call.operation.name != "sort";
        let tensor = self.library_tensor(
            &call,
            root,
            (&outer, &batch, &vars),
            hints.first().filter(|_| direct),
        )?;
        let results = match direct {
            true => [Binding::Tensor(tensor)].into(),
            false => self.library_results(&call, tensor, (&outer, &batch), hints)?,
        };
        // Of a state whose type is not known yet.
        let mut views = call.views.iter();
        if !call.operation.is_ordered()
            && views.all(|view| self.inference.untyped.contains_key(&view.tensor))
        {
            for result in results.iter() {
                if let Binding::Tensor(view) = result {
                    self.inference.untyped.insert(view.tensor, false);
                }
            }
        }
        Some(results)
    }

    /// A read whose positions need no proof.
    fn library_read(&mut self, tensor: TensorRef, positions: Vec<ExprId>, dtype: DType) -> ExprId {
        let form = Form::Read {
            tensor,
            positions,
            otherwise: None,
        };
        self.arena.add(form, Ty::Typed(dtype))
    }

    fn numbered_vars(&mut self, letter: &str, sizes: &[Size], span: Span) -> Vec<VarId> {
        let named = (1..).zip(sizes);
        named
            .map(|(number, size): (u32, _)| {
                self.fresh_var(format!("{letter}{number}"), size.clone(), span)
            })
            .collect()
    }

    /// A tensor over the indices around, those of leading dimensions, and its own.
    fn library_tensor(
        &mut self,
        call: &Call,
        root: ExprId,
        (outer, batch, own): (&[VarId], &[VarId], &[VarId]),
        hint: Option<&(String, Span)>,
    ) -> Option<View> {
        let vars: Vec<VarId> = [outer, batch, own].concat();
        let shape: Option<Vec<Size>> = vars.iter().map(|var| self.extent(*var)).collect();
        let shape = shape?;
        self.check_elements(&shape, call.span)?;
        let (name, span, role) = match hint {
            Some((name, span)) if outer.is_empty() => (name.clone(), *span, Role::Named),
            _ => (
                self.instance_name(FileId(0), call.operation.name),
                call.span,
                Role::Hidden,
            ),
        };
        let tensor = self.add_statement(name, root, vars, shape, span, role);
        let around: Option<Vec<(VarId, Size)>> = outer
            .iter()
            .map(|var| Some((*var, self.extent(*var)?)))
            .collect();
        Some(self.inner_view(tensor, &around?))
    }

    /// The results of an operation, read out of what it gives.
    fn library_results(
        &mut self,
        call: &Call,
        given: View,
        (outer, batch): (&[VarId], &[VarId]),
        hints: &[(String, Span)],
    ) -> Option<Results> {
        let shape = self.view_shape(call.views[0]);
        let at = |back: usize| shape[shape.len() - back].clone();
        let dtype = self.built.tensors[call.views[0].tensor.0 as usize].dtype;
        let mut results = vec![];
        if call.operation.is_ordered() {
            let count = call.count.clone().unwrap_or_else(|| at(1));
            self.indices.open.push(Open::default());
            let own = self.numbered_vars("i", &[count], call.span);
            self.close();
            let mut place = self.leading(given).to_vec();
            place.extend(batch.iter().chain(&own).map(|var| self.index(*var)));
            let place = self.library_read(given.tensor, place, DType::I64);
            let mut positions = self.leading(call.views[0]).to_vec();
            positions.extend(batch.iter().map(|var| self.index(*var)));
            positions.push(place);
            let value = self.library_read(call.views[0].tensor, positions, dtype);
            results.push(self.library_tensor(call, value, (outer, batch, &own), hints.first())?);
            if call.operation.results.len() > 1 {
                results.push(self.library_tensor(
                    call,
                    place,
                    (outer, batch, &own),
                    hints.get(1),
                )?);
            }
        } else {
            let parts = parts(call.operation.function, &shape)?;
            let mut start = Size::number(0);
            for (number, part) in parts.iter().enumerate() {
                self.indices.open.push(Open::default());
                let own = self.numbered_vars("i", part, call.span);
                self.close();
                let mut place = self.library_size(start.clone(), call.span)?;
                let mut stride = Size::number(1);
                for (var, size) in own.iter().zip(part).rev() {
                    let (index, step) = (
                        self.index(*var),
                        self.library_size(stride.clone(), call.span)?,
                    );
                    let term = self.apply(Function::Mul, vec![step, index], call.span)?;
                    place = self.apply(Function::Add, vec![place, term], call.span)?;
                    stride = stride.times(size).ok()?;
                }
                start = start.plus(&stride).ok()?;
                let mut positions = self.leading(given).to_vec();
                positions.extend(batch.iter().map(|var| self.index(*var)));
                positions.push(place);
                let value = self.library_read(given.tensor, positions, dtype);
                results.push(self.library_tensor(
                    call,
                    value,
                    (outer, batch, &own),
                    hints.get(number),
                )?);
            }
        }
        Some(results.into_iter().map(Binding::Tensor).collect())
    }

    fn library_size(&mut self, size: Size, span: Span) -> Option<ExprId> {
        let size = self.arena.whole(size);
        self.coerce(size, DType::I64, span)
    }

    /// A slice by plain indices, each once and over the whole dimension; any other slice as a tensor of its own.
    fn plain_slice(&mut self, view: View, span: Span) -> Option<View> {
        let leading = self.leading(view);
        let shape = self.built.tensors[view.tensor.0 as usize].shape.clone();
        let mut met: Vec<VarId> = vec![];
        let plain = leading.iter().zip(&shape).all(|(position, size)| {
            let Form::Index(var) = &*self.arena.form(*position) else {
                return false;
            };
            let new = !met.contains(var);
            met.push(*var);
            new && self.extent(*var).as_ref() == Some(size)
        });
        if plain {
            return Some(view);
        }
        let outer = self.captured(&[Binding::Tensor(view)]);
        let sizes = self.view_shape(view);
        self.indices.open.push(Open::default());
        let own = self.numbered_vars("i", &sizes, span);
        self.close();
        let mut positions = leading.to_vec();
        positions.extend(own.iter().map(|var| self.index(*var)));
        let dtype = self.built.tensors[view.tensor.0 as usize].dtype;
        let root = self.library_read(view.tensor, positions, dtype);
        let outer_sizes: Option<Vec<(VarId, Size)>> = outer
            .iter()
            .map(|var| Some((*var, self.extent(*var)?)))
            .collect();
        let outer_sizes = outer_sizes?;
        let vars = [outer, own].concat();
        let shape = outer_sizes.iter().map(|(_, size)| size.clone());
        let shape: Vec<Size> = shape.chain(sizes).collect();
        self.check_elements(&shape, span)?;
        // Messages of the run name what is sliced.
        let name = format!("{}.slice", self.built.tensors[view.tensor.0 as usize].name);
        let name = self.instance_name(FileId(0), &name);
        let tensor = self.add_statement(name, root, vars, shape, span, Role::Hidden);
        Some(self.inner_view(tensor, &outer_sizes))
    }
}

/// The sizes of the results of an operation on the last dimensions of a tensor.
fn parts(function: Function, shape: &[Size]) -> Option<Vec<Vec<Size>>> {
    let (columns, before) = shape.split_last()?;
    let columns = columns.clone();
    if function == Function::Fft {
        return Some(vec![vec![columns.clone()], vec![columns]]);
    }
    let rows = before.last()?.clone();
    let least = Size::apply(Function::Min, &rows, &columns).ok()?;
    Some(match function {
        Function::Qr => vec![vec![rows, least.clone()], vec![least, columns]],
        Function::Eigh => vec![vec![rows.clone()], vec![rows, columns]],
        Function::Eig => {
            let (values, vectors) = (vec![rows.clone()], vec![rows, columns]);
            vec![values.clone(), values, vectors.clone(), vectors]
        }
        _ => vec![
            vec![rows, least.clone()],
            vec![least.clone()],
            vec![least, columns],
        ],
    })
}
