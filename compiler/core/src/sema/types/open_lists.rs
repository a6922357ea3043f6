//! Constant lists without a type, and whole numbers that are made of them, as tensors of the types that they meet.
//!
//! Each element takes a type as a number of the text does: the list is there once for each type in which it is read. Must not know where
//! lists are written.
//!
//! ```text
//! const q = [0.1, 2]; y[a] = q[a] * x[a], x: f32[2]   =>   q.f32: f32[2] = 0.1, 2;  y[a] = q.f32[a] * x[a]
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker,
    definitions::tensors::{Definition, SourceForm, Tensor},
    expressions::arena::{ExprId, Form, TensorRef, Ty},
    expressions::scope::View,
};
use ein_plan::{DType, Scalar, Source};
use einc_diag::{Diagnostic, Span};

impl Checker<'_> {
    /// Returns whether a tensor has no type but those that it meets: a constant list, or whole numbers made of one.
    pub(crate) fn is_open_list(&self, tensor: TensorRef) -> bool {
        self.inference.lists.contains_key(&tensor)
    }

    /// Returns whether an expression reads tensors without a type, and all of them are constant lists.
    pub(crate) fn reads_lists_alone(&self, id: ExprId) -> bool {
        let mut found = self.untyped_reads(id).into_iter().peekable();
        found.peek().is_some() && found.all(|tensor| self.is_open_list(tensor))
    }

    /// A view of a list, of the tensor that has a type; other views as they are. An error if a number does not fit.
    pub(crate) fn view_in(&mut self, view: View, dtype: DType, span: Span) -> Option<View> {
        if !self.is_open_list(view.tensor) {
            return Some(view);
        }
        let tensor = self.list_in(view.tensor, dtype);
        self.check_list(tensor, span)?;
        Some(View { tensor, ..view })
    }

    /// A read of a list as one of numbers that are stored in a type; other reads as they are.
    pub(crate) fn list_beside(&mut self, read: ExprId, dtype: DType, span: Span) -> Option<ExprId> {
        match &*self.arena.form(read) {
            Form::Read {
                tensor, positions, ..
            } if self.is_open_list(*tensor) && !dtype.is_complex() => {
                let view = self.view_in(View::of(*tensor), dtype, span)?;
                let form = Form::Read {
                    tensor: view.tensor,
                    positions: positions.clone(),
                    otherwise: None,
                };
                Some(self.arena.add(form, Ty::Typed(dtype)))
            }
            _ => Some(read),
        }
    }

    /// A read of a list as an expression of a type.
    pub(super) fn read_of_list(&mut self, read: &Form, dtype: DType) -> Option<ExprId> {
        let Form::Read {
            tensor,
            positions,
            otherwise,
        } = read
        else {
            return None;
        };
        if !self.is_open_list(*tensor) {
            return None;
        }
        // Numbers of 8 and 16 bits are computed in a wider type.
        let computed = dtype.compute();
        let form = Form::Read {
            tensor: self.list_in(*tensor, computed),
            positions: positions.clone(),
            otherwise: otherwise.map(|other| self.convert_number(other, computed)),
        };
        let read = self.arena.add(form, Ty::Typed(computed));
        Some(match computed == dtype {
            true => read,
            false => self.arena.add(Form::Computed(read), Ty::Typed(dtype)),
        })
    }

    /// The tensor of the numbers of a list that has a type, one for each type.
    fn list_in(&mut self, tensor: TensorRef, dtype: DType) -> TensorRef {
        let list = &self.built.tensors[tensor.0 as usize];
        if list.dtype == dtype {
            return tensor;
        }
        let known = self.inference.lists.get(&tensor);
        if let Some(known) = known.and_then(|known| known.get(&dtype)) {
            return *known;
        }
        let name = format!("{}.{dtype}", list.name);
        let mut own = Tensor {
            name,
            dtype,
            role: Role::Hidden,
            ..list.clone()
        };
        match &mut own.definition {
            Definition::Source(SourceForm::Ready(Source::Numbers(numbers))) if dtype.is_float() => {
                let numbers = numbers.iter_mut();
                numbers.for_each(|number| *number = Scalar::Float(number.as_f64()));
            }
            Definition::Statement { root, .. } => {
                *root = self.arena.add(Form::Convert(*root), Ty::Typed(dtype));
            }
            _ => {}
        }
        let own = self.add_tensor(own);
        let known = self.inference.lists.entry(tensor).or_default();
        known.insert(dtype, own);
        own
    }

    /// Reports a number of a list that its type cannot hold.
    fn check_list(&mut self, tensor: TensorRef, span: Span) -> Option<()> {
        let list = &self.built.tensors[tensor.0 as usize];
        let Definition::Source(SourceForm::Ready(Source::Numbers(numbers))) = &list.definition
        else {
            return Some(());
        };
        let Some((least, most)) = list.dtype.whole_range() else {
            return Some(());
        };
        let outside = numbers.iter().find(|number| match number {
            Scalar::Int(number) => !(least..=most).contains(number),
            _ => true,
        });
        let Some(outside) = outside else {
            return Some(());
        };
        let outside = match outside {
            Scalar::Int(number) => number.to_string(),
            other => other.as_f64().to_string(),
        };
        let error = format!("{outside} does not fit into {}", list.dtype);
        let error = Diagnostic::error("E0406", error);
        self.report.push(error.at(span, "a list with this number"));
        None
    }
}
