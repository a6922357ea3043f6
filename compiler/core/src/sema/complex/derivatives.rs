//! The parts of derivatives of complex tensors, and by them.
//!
//! Gradients have JAX's convention: by z = x + iy it is ∂/∂x − i ∂/∂y. Of a complex tensor by a real one, the parts are the derivatives of the
//! parts. Along a direction, the parts of what moves are two real tensors that move by the parts of the direction. Must not know how
//! derivatives are taken.
//!
//! ```text
//! grad(loss, z)      =>   complex(grad(loss, z.re), -grad(loss, z.im))
//! jacobian(w, x)     =>   complex(jacobian(w.re, x), jacobian(w.im, x))
//! jvp(w, z, v).re    =>   jvp(w.re, z.re, v.re) + jvp(w.re, z.im, v.im)
//! ```

use crate::einsum::Role;
use crate::sema::{
    complex::tensors::{ENDS, Parts},
    complex::value::TensorParts,
    definitions::tensors::{Along, Definition, Tensor},
    expressions::arena::TensorRef,
};
use ein_plan::{DType, Function};

impl Parts<'_, '_> {
    /// The parts of a derivative with complex elements.
    pub(super) fn gradient(
        &mut self,
        record: &Tensor,
        (loss, wrt): (TensorRef, TensorRef),
    ) -> Option<TensorParts> {
        let part = record.dtype.part()?;
        if self.is_complex(loss) {
            let [Some(re), Some(im)] = *self.splitter.tensors.get(&loss)? else {
                return None;
            };
            self.one_derivative((loss, wrt), [Some(wrt); 2]);
            let definitions = [re, im].map(|loss| Definition::Gradient { loss, wrt });
            return Some(self.both(record, part, definitions));
        }
        let [Some(re), Some(im)] = *self.splitter.tensors.get(&wrt)? else {
            return None;
        };
        self.one_derivative((loss, wrt), [Some(wrt); 2]);
        let definitions = [re, im].map(|wrt| Definition::Gradient { loss, wrt });
        let [re, im] = self.both(record, part, definitions);
        let (by_imaginary, like) = (im?, self.record(im?).clone());
        let checker = &mut *self.splitter.checker;
        let name = checker.numbered(format!("{}.negated", like.name));
        let negated = checker.pointwise(name, &like, like.span, |c, at| {
            let value = c.element(by_imaginary, at.to_vec(), part);
            c.apply(Function::Neg, vec![value], like.span)
        })?;
        self.order.push(negated);
        Some([re, Some(negated)])
    }

    /// The parts of a derivative along a direction that is complex.
    pub(super) fn along(&mut self, record: &Tensor, along: Along) -> Option<TensorParts> {
        let part = record.dtype.part()?;
        let of = *self.splitter.tensors.get(&along.of)?;
        let mut parts = [None, None];
        for (at, of) in of.into_iter().enumerate() {
            let like = Tensor {
                name: format!("{}.{}", record.name, ENDS[at]),
                dtype: part,
                ..record.clone()
            };
            let moved = self.along_parts(&like, Along { of: of?, ..along })?;
            self.order.push(moved);
            parts[at] = Some(moved);
        }
        self.one_derivative((along.of, along.wrt), self.parts_or_whole(along.direction));
        Some(parts)
    }

    /// Of a real derivative along a complex direction: puts a sum of real ones in its place.
    pub(super) fn real_along(
        &mut self,
        tensor: TensorRef,
        record: &Tensor,
        along: Along,
    ) -> Option<()> {
        if !self.is_complex(along.wrt) {
            return Some(());
        }
        let sum = self.along_parts(record, along)?;
        let Tensor {
            name, definition, ..
        } = self.record(sum).clone();
        let own = &mut self.splitter.checker.built.tensors[tensor.0 as usize];
        (own.name, own.definition) = (name, definition);
        self.one_derivative((along.of, along.wrt), self.parts_or_whole(along.direction));
        Some(())
    }

    /// The derivative of a real tensor, as a tensor that is in no order yet.
    fn along_parts(&mut self, like: &Tensor, along: Along) -> Option<TensorRef> {
        let (wrt, direction) = (
            self.parts_or_whole(along.wrt),
            self.parts_or_whole(along.direction),
        );
        let mut terms = vec![];
        for (at, (wrt, direction)) in wrt.into_iter().zip(direction).enumerate() {
            // A real direction leaves the imaginary part where it is.
            let (Some(wrt), Some(direction)) = (wrt, direction) else {
                continue;
            };
            terms.push((
                at,
                Along {
                    wrt,
                    direction,
                    ..along
                },
            ));
        }
        if let [(_, one)] = terms[..] {
            let definition = Definition::Along(one);
            let like = like.clone();
            return Some((self.splitter.checker).add_tensor(Tensor { definition, ..like }));
        }
        let mut moved = vec![];
        for (at, along) in terms {
            moved.push(self.add(Tensor {
                name: format!("{}.by.{}", like.name, ENDS[at]),
                definition: Definition::Along(along),
                ..like.clone()
            }));
        }
        let (checker, dtype): (_, DType) = (&mut *self.splitter.checker, like.dtype);
        let name = checker.numbered(like.name.clone());
        checker.pointwise(name, like, like.span, |c, at| {
            let mut values = moved.iter().map(|term| (*term, at.to_vec()));
            let (first, second) = (values.next()?, values.next()?);
            let first = c.element(first.0, first.1, dtype);
            let second = c.element(second.0, second.1, dtype);
            c.apply(Function::Add, vec![first, second], like.span)
        })
    }

    /// The parts of a complex tensor, or a real one as its own real part.
    fn parts_or_whole(&self, tensor: TensorRef) -> TensorParts {
        match self.splitter.tensors.get(&tensor) {
            Some(parts) => *parts,
            None => [Some(tensor), None],
        }
    }

    /// Notes that the derivatives of and by all parts are one for the user: each of them may be 0 alone. `moves`: by which parts there is one.
    fn one_derivative(&mut self, (of, wrt): (TensorRef, TensorRef), moves: TensorParts) {
        let parts = [of, wrt].map(|tensor| self.parts_or_whole(tensor));
        for (tensor, parts) in [of, wrt].into_iter().zip(parts) {
            let whole = self.record(tensor);
            // What moves has a name; what is differentiated, if it is no value, and what is read from pairs has that of an input.
            let is_read = (self.splitter.checker.complex.pairs).contains_key(&tensor);
            if whole.role == Role::Hidden && tensor != wrt && !is_read {
                continue;
            }
            let whole = whole.name.clone();
            for part in parts.into_iter().flatten() {
                let part = self.record(part).name.clone();
                (self.splitter.checker.complex).part_named(part, whole.clone());
            }
        }
        let [of, wrt] = parts;
        let moved = wrt.into_iter().zip(moves);
        let wrt: Vec<TensorRef> = moved.filter_map(|(wrt, by)| by.and(wrt)).collect();
        let of = of.into_iter().flatten();
        let pairs = of.flat_map(|of| wrt.iter().map(move |wrt| (of, *wrt)));
        self.splitter.checker.complex.together(pairs.collect());
    }
}
