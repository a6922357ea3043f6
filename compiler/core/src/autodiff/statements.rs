//! The hidden statements of gradients: their names, sums of the pieces of an adjoint, numbers everywhere.
//!
//! Must not know derivatives.
//!
//! ```text
//! grad.x: f32[8] = [i: 8] grad.x.1[i] + grad.y[i] * 2.0
//! ```

use super::sketch::{Copy, Sketch};
use super::transpose::Piece;
use super::{Adjoint, Statement, Statements};
use crate::einsum::{Definition, Program, Role, Tensor, TensorId, canonical};
use ein_plan::{DType, Index, Kernel, Node, NodeId, Operand, Origin, Reduction};

impl Statements {
    /// Appends a hidden statement whose elements have the type of its root.
    pub(super) fn push(
        &mut self,
        program: &mut Program,
        statement: Statement<'_>,
        name: &str,
        origin: Origin,
    ) -> TensorId {
        let dtype = statement.sketch.graph.dtype(statement.root);
        let operands = statement.sketch.operands.iter().map(|id| Operand {
            columns: vec![program.tensor(*id).dtype],
            shape: program.tensor(*id).shape.clone(),
        });
        let shape = statement.indices[..statement.rank].iter();
        let shape = shape.map(|index| index.extent).collect();
        let kernel = Kernel {
            operands: operands.collect(),
            output_rank: statement.rank as u32,
            graph: statement.sketch.graph.clone(),
            root: statement.root,
            guard: statement.guard,
            reduction: statement.reduction,
            finish: true,
            output: vec![dtype],
            indices: statement.indices,
        };
        let (kernel, operands) = canonical::statement(kernel, &statement.sketch.operands);
        let name = self.name(program, name);
        program.tensors.push(Tensor {
            name,
            dtype,
            shape,
            role: Role::Hidden,
            block: program.innermost(&operands),
            definition: Definition::Statement { kernel, operands },
            origin,
        });
        TensorId(program.tensors.len() as u32 - 1)
    }

    /// The name, or the name with a number where it is taken.
    pub(super) fn name(&mut self, program: &Program, base: &str) -> String {
        let new = program.tensors[self.seen..].iter();
        self.names.extend(new.map(|tensor| tensor.name.clone()));
        self.seen = program.tensors.len();
        let mut name = base.to_owned();
        let mut number = 1;
        while self.names.contains(&name) {
            number += 1;
            name = format!("{base}.{number}");
        }
        name
    }

    /// A tensor in its compute type: itself, or the same statement again.
    pub(super) fn exact(
        &mut self,
        program: &mut Program,
        tensor: TensorId,
        dtype: DType,
    ) -> TensorId {
        let of = program.tensor(tensor);
        if of.dtype == dtype {
            return tensor;
        }
        if let Some(known) = self.exact.get(&tensor) {
            return *known;
        }
        let Definition::Statement { kernel, operands } = of.definition.clone() else {
            return tensor;
        };
        let (name, origin) = (format!("grad.{}.exact", of.name), of.origin);
        let sketch = Sketch::of_statement(&kernel, &operands);
        let statement = Statement {
            rank: kernel.output_rank as usize,
            indices: kernel.indices,
            sketch: &sketch,
            root: kernel.root,
            guard: kernel.guard,
            reduction: kernel.reduction,
        };
        let exact = self.push(program, statement, &name, origin);
        self.exact.insert(tensor, exact);
        exact
    }

    /// A tensor of the shape of another, one number everywhere.
    pub(super) fn filled(&mut self, program: &mut Program, like: TensorId, value: f64) -> TensorId {
        let of = program.tensor(like);
        let (name, origin) = (format!("grad.{}", of.name), of.origin);
        let (shape, dtype) = (of.shape.clone(), of.dtype.compute());
        let mut sketch = Sketch::default();
        let root = sketch.number(value, dtype);
        let statement = Statement {
            rank: shape.len(),
            indices: numbered(&shape),
            sketch: &sketch,
            root,
            guard: None,
            reduction: None,
        };
        self.push(program, statement, &name, origin)
    }

    /// The sum of the pieces of a tensor's adjoint; `None` if there are none. Pieces that sum over indices are tensors of
    /// their own where there are others beside them.
    pub(super) fn sum(
        &mut self,
        program: &mut Program,
        tensor: TensorId,
        mut pieces: Vec<(Piece, Origin)>,
    ) -> Option<Adjoint> {
        let of = program.tensor(tensor);
        let (name, shape) = (format!("grad.{}", of.name), of.shape.clone());
        let dtype = of.dtype.compute();
        let origin = match pieces.as_slice() {
            [] => return None,
            [(_, origin)] => *origin,
            _ => of.origin,
        };
        if let [(piece, _)] = pieces.as_slice()
            && piece.indices.len() > piece.rank
        {
            let (piece, origin) = pieces.pop()?;
            let tensor = self.push(program, piece.statement(), &name, origin);
            return Some(Adjoint::Tensor(tensor));
        }
        let mut sketch = Sketch::default();
        let mut indices = None;
        let places: Vec<NodeId> = (0..shape.len()).map(|at| sketch.index(at)).collect();
        let mut total: Option<NodeId> = None;
        for (number, (piece, origin)) in (1..).zip(pieces) {
            let part = if piece.indices.len() > piece.rank {
                let name = format!("{name}.{number}");
                let part = self.push(program, piece.statement(), &name, origin);
                sketch.read(part, places.clone(), None, dtype)
            } else {
                let mut copy = Copy::new(&piece.sketch, places.clone(), None);
                copy.node(&mut sketch, piece.root)
            };
            indices.get_or_insert(piece.indices);
            total = Some(total.map_or(part, |total| sketch.add(total, part)));
        }
        let root = total?;
        if let Some(value) = sketch.value(root) {
            return Some(Adjoint::Constant(value));
        }
        if let Node::Read {
            operand,
            positions,
            otherwise: None,
            ..
        } = sketch.graph.node(root)
        {
            let whole = sketch.operands[*operand as usize];
            if *positions == places
                && program.tensor(whole).dtype == dtype
                && program.tensor(whole).shape == shape
            {
                return Some(Adjoint::Tensor(whole));
            }
        }
        let mut indices = indices.unwrap_or_default();
        indices.truncate(shape.len());
        let statement = Statement {
            rank: shape.len(),
            indices,
            sketch: &sketch,
            root,
            guard: None,
            reduction: None,
        };
        Some(Adjoint::Tensor(
            self.push(program, statement, &name, origin),
        ))
    }
}

impl Piece {
    /// All of a tensor.
    pub(super) fn whole(program: &Program, tensor: TensorId) -> Piece {
        let of = program.tensor(tensor);
        let mut sketch = Sketch::default();
        let places = (0..of.shape.len()).map(|at| sketch.index(at)).collect();
        let root = sketch.read(tensor, places, None, of.dtype.compute());
        Piece {
            indices: numbered(&of.shape),
            rank: of.shape.len(),
            sketch,
            root,
            guard: None,
        }
    }

    fn statement(&self) -> Statement<'_> {
        let reduces = self.indices.len() > self.rank;
        Statement {
            indices: self.indices.clone(),
            rank: self.rank,
            sketch: &self.sketch,
            root: self.root,
            guard: self.guard,
            reduction: reduces.then_some(Reduction::Sum),
        }
    }
}

/// Indices for dimensions that have no names.
pub(super) fn numbered(shape: &[u64]) -> Vec<Index> {
    (1..)
        .zip(shape)
        .map(|(number, extent): (u32, _)| Index {
            name: format!("i{number}"),
            extent: *extent,
        })
        .collect()
}
