//! Derivatives along a direction, and the choice between reverse and forward mode for the derivative of every element.
//!
//! The gradient of `sum[o] seed[o] * y[o]` by `x` is `Jᵀ seed`, linear in `seed`. So the derivative of `sum[i] v[i] * (Jᵀ seed)[i]` by
//! the seed is `J v`, whatever numbers the seed holds: reverse mode of reverse mode is forward mode. Each statement between `x` and `y` gives one
//! that carries the direction on, and nothing that is needed reads the seed. Must not know surface syntax, or how derivatives
//! are taken.
//!
//! ```text
//! y: f32[3] = [i: 3 | j: 4] sum W[i, j] * x[j], along v by x
//!   => Jᵀ seed = [j: 4 | i: 3] sum seed[i] * W[i, j];   J v = [i: 3 | j: 4] sum v[j] * W[i, j]
//! ```

use super::sketch::Sketch;
use super::statements::numbered;
use super::{Gradient, Gradients, Statement};
use crate::einsum::{Definition, Program, Role, Tensor, TensorId};
use ein_plan::{Function, Reduction, Scalar, Source};
use einc_diag::Diagnostic;

/// A derivative along a direction, with the two pairs of a scalar and a tensor of which it is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Directional {
    gradient: Gradient,
    pairs: [(TensorId, TensorId); 2],
}

impl Gradients {
    /// The derivative of each element of a tensor by another tensor: it has the dimensions of both, in this order. Of reverse
    /// and forward mode it takes the one whose statements have fewer points.
    ///
    /// # Errors
    /// `E0606` as [`Gradients::derivative`] says, and where the way goes through rounds.
    pub fn at_points(
        &mut self,
        program: &mut Program,
        of: TensorId,
        by: TensorId,
    ) -> Result<Gradient, Diagnostic> {
        if let Some(known) = self.finished.get(&(of, by)) {
            return Ok(*known);
        }
        let found = match elements(program, by) < elements(program, of) {
            true => self.in_cheaper_mode(program, of, by)?,
            false => self.in_reverse(program, of, by)?,
        };
        self.finished.insert((of, by), found);
        Ok(found)
    }

    /// The derivative of a tensor along a direction: what changes of it where another tensor moves by the direction. The direction has
    /// the dimensions of the tensor that moves, and may have others before them, which the result then has, too.
    ///
    /// # Errors
    /// `E0606` as [`Gradients::derivative`] says; with dimensions of its own, as [`Gradients::at_points`] says.
    pub fn along(
        &mut self,
        program: &mut Program,
        (of, by): (TensorId, TensorId),
        direction: TensorId,
    ) -> Result<Gradient, Diagnostic> {
        if let Some(known) = self.directions.get(&(of, by, direction)) {
            return Ok(known.gradient);
        }
        // In terms of what the text names.
        self.check_rounds(program, of, by)?;
        let (seed, sum) = self.seeded_sum(program, of)?;
        let back = self.derivative(program, sum, by)?;
        let (shape, own) = (program.tensor(direction).shape.clone(), rank(program, by));
        let points = shape[..shape.len() - own].to_vec();
        let dotted = self.dotted(program, back.tensor, direction);
        let mut gradient = match points.is_empty() {
            true => self.derivative(program, dotted, seed)?,
            false => self.in_reverse(program, dotted, seed)?,
        };
        gradient.depends &= back.depends;
        let pairs = [(sum, by), (dotted, seed)];
        let found = Directional { gradient, pairs };
        self.directions.insert((of, by, direction), found);
        Ok(gradient)
    }

    /// Checks a derivative along a direction that was taken in a round, as [`Gradients::check_rounds`] does.
    ///
    /// # Errors
    /// `E0606` where the tensor depends on the one that moves through earlier rounds.
    pub fn check_direction(
        &mut self,
        program: &Program,
        (of, by): (TensorId, TensorId),
        direction: TensorId,
    ) -> Result<(), Diagnostic> {
        let Some(found) = self.directions.get(&(of, by, direction)).copied() else {
            return Ok(());
        };
        self.check_rounds(program, of, by)?;
        for (loss, wrt) in found.pairs {
            self.check_rounds(program, loss, wrt)?;
        }
        Ok(())
    }

    /// Takes the derivative of every element in both modes, and keeps the one that has fewer points.
    fn in_cheaper_mode(
        &mut self,
        program: &mut Program,
        of: TensorId,
        by: TensorId,
    ) -> Result<Gradient, Diagnostic> {
        let first = program.tensors.len();
        let (mut other, mut gradients) = (program.clone(), self.clone());
        let reverse = self.in_reverse(program, of, by);
        let forward = gradients.in_forward(&mut other, of, by);
        let is_cheaper = match (&reverse, &forward) {
            (Ok(reverse), _) if !reverse.depends => false,
            (Ok(reverse), Ok(forward)) => {
                work(&other, first, forward.tensor) < work(program, first, reverse.tensor)
            }
            (Err(_), Ok(_)) => true,
            (_, Err(_)) => false,
        };
        if is_cheaper {
            (*program, *self) = (other, gradients);
            return forward;
        }
        reverse
    }

    /// The derivative of every element by a tensor with fewer elements: that of every element of `Jᵀ seed` by the seed, transposed.
    fn in_forward(
        &mut self,
        program: &mut Program,
        of: TensorId,
        by: TensorId,
    ) -> Result<Gradient, Diagnostic> {
        let (seed, sum) = self.seeded_sum(program, of)?;
        let back = self.derivative(program, sum, by)?;
        if rank(program, by) == 0 {
            return self.derivative(program, back.tensor, seed);
        }
        let turned = self.in_reverse(program, back.tensor, seed)?;
        let (of_shape, by_tensor) = (&program.tensor(of).shape, program.tensor(by));
        let shape: Vec<u64> = of_shape.iter().chain(&by_tensor.shape).copied().collect();
        let (name, origin) = (
            format!("grad.{}", by_tensor.name),
            program.tensor(of).origin,
        );
        let (outer, dtype) = (of_shape.len(), program.tensor(turned.tensor).dtype);
        let mut sketch = Sketch::default();
        let order = (outer..shape.len()).chain(0..outer);
        let at = order.map(|index| sketch.index(index)).collect();
        let root = sketch.read(turned.tensor, at, None, dtype);
        let statement = Statement {
            rank: shape.len(),
            indices: numbered(&shape),
            sketch: &sketch,
            root,
            guard: None,
            reduction: None,
        };
        Ok(Gradient {
            tensor: self.statements.push(program, statement, &name, origin),
            depends: back.depends && turned.depends,
        })
    }

    /// A seed of ones with the shape of a tensor, and the sum of the tensor weighted by it.
    pub(super) fn seeded_sum(
        &mut self,
        program: &mut Program,
        of: TensorId,
    ) -> Result<(TensorId, TensorId), Diagnostic> {
        let Tensor {
            name,
            dtype,
            shape,
            origin,
            ..
        } = program.tensor(of).clone();
        if !dtype.is_float() {
            let what = format!("`{name}` is not floating-point");
            return Err(Diagnostic::error("E0606", what));
        }
        program.tensors.push(Tensor {
            name: self.statements.name(program, &format!("grad.{name}.seed")),
            dtype: dtype.compute(),
            shape,
            role: Role::Hidden,
            block: None,
            definition: Definition::Source(Source::Full(Scalar::Float(1.0))),
            origin,
        });
        let seed = TensorId(program.tensors.len() as u32 - 1);
        let sum = self.product_sum(program, (of, seed), &format!("grad.{name}.sum"));
        Ok((seed, sum))
    }

    /// The sum of a tensor weighted by a direction, for every value of the direction's leading dimensions.
    fn dotted(&mut self, program: &mut Program, of: TensorId, direction: TensorId) -> TensorId {
        let name = format!("{}.along", program.tensor(of).name);
        self.product_sum(program, (direction, of), &name)
    }

    /// The sum over the product of two tensors, the first of which may have dimensions before those of the second; they stay.
    fn product_sum(
        &mut self,
        program: &mut Program,
        (first, second): (TensorId, TensorId),
        name: &str,
    ) -> TensorId {
        let shape = program.tensor(first).shape.clone();
        let kept = shape.len() - rank(program, second);
        let (dtype, origin) = (
            program.tensor(second).dtype.compute(),
            program.tensor(first).origin,
        );
        let mut sketch = Sketch::default();
        let at: Vec<_> = (0..shape.len()).map(|index| sketch.index(index)).collect();
        let x = sketch.read(first, at.clone(), None, dtype);
        let y = sketch.read(second, at[kept..].to_vec(), None, dtype);
        let root = sketch.apply(Function::Mul, &[x, y]);
        let statement = Statement {
            rank: kept,
            indices: numbered(&shape),
            sketch: &sketch,
            root,
            guard: None,
            reduction: (kept < shape.len()).then_some(Reduction::Sum),
        };
        self.statements.push(program, statement, name, origin)
    }
}

fn rank(program: &Program, id: TensorId) -> usize {
    program.tensor(id).shape.len()
}

/// How many elements a tensor has; more than can be counted are as many as can be.
fn elements(program: &Program, id: TensorId) -> u64 {
    let shape = program.tensor(id).shape.iter();
    shape.fold(1, |count, extent| u64::saturating_mul(count, *extent))
}

/// How many points the statements have that a result needs, without those that were there before `first`.
fn work(program: &Program, first: usize, result: TensorId) -> f64 {
    let mut seen = vec![false; program.tensors.len()];
    let (mut open, mut points) = (vec![result], 0.0);
    while let Some(id) = open.pop() {
        let at = id.0 as usize;
        if at < first || std::mem::replace(&mut seen[at], true) {
            continue;
        }
        if let Definition::Statement { kernel, operands } = &program.tensor(id).definition {
            let extents = kernel.indices.iter().map(|index| index.extent as f64);
            points += extents.product::<f64>();
            open.extend(operands);
        }
    }
    points
}
