//! Windows of tensors: what a statement reads at affine positions, in place of the whole.
//!
//! A WINDOW is taken of the tensor as it rests. Statements that read the same windows share one. Must not know which reads are
//! wanted in windows ([`crate::tra::reads`]), nor sites.
//!
//! ```text
//! y[i] = x[i - 1] + x[i]   x.window: {i: 100/4} f32[i-1..i of 100] = window x;   y = join(x.window{i}) over [i] …
//! ```

use super::{Lowering, key_dim};
use crate::einsum::TensorId;
use crate::tra::reads::Part;
use crate::tra::{Cut, Operation, Type};
use ein_plan::{
    ArrayDim, ArrayType, Index, IndexId, JoinInput, Range, RelationId, Window, same_cut,
};

impl Lowering<'_> {
    /// The input of a join that reads these parts of a tensor, windows among them.
    pub(super) fn windows(
        &mut self,
        tensor: TensorId,
        parts: &[Part],
        indices: &[Index],
        (index_cuts, ranges): (&[Cut], &[Range]),
    ) -> Result<JoinInput, String> {
        let described = self.program.tensor(tensor);
        let mut kind = Type {
            keys: vec![],
            array: ArrayType {
                dims: vec![],
                columns: vec![described.dtype],
            },
        };
        let mut moved_by: Vec<IndexId> = vec![];
        let mut targets = vec![];
        for (extent, part) in described.shape.iter().zip(parts) {
            let mut key = None;
            if let Some(index) = part.index()
                && let Range::Key(target) = ranges[index.0 as usize]
            {
                let known = moved_by.iter().position(|other| *other == index);
                key = Some(known.unwrap_or(moved_by.len()) as u32);
                if known.is_none() {
                    let cut = &index_cuts[index.0 as usize];
                    moved_by.push(index);
                    targets.push(target);
                    kind.keys.push(key_dim(&indices[index.0 as usize], cut));
                }
            }
            kind.array.dims.push(match *part {
                Part::Whole => ArrayDim::whole(*extent),
                Part::Piece(_) => ArrayDim::new(*extent, key),
                Part::Window {
                    scale,
                    low,
                    high,
                    divisor,
                    ..
                } => ArrayDim::windowed(
                    *extent,
                    Window {
                        key,
                        scale,
                        low,
                        high,
                        divisor,
                    },
                ),
            });
        }
        Ok(JoinInput {
            relation: self.window(tensor, kind)?,
            keys: targets,
        })
    }

    /// The relation of these windows of a tensor; made if it is not there yet.
    fn window(&mut self, tensor: TensorId, kind: Type) -> Result<RelationId, String> {
        let same = |relation: &&RelationId| {
            let other = &self.relations[relation.0 as usize].kind;
            let keys = other.keys.iter().zip(&kind.keys);
            other.array == kind.array
                && other.keys.len() == kind.keys.len()
                && keys.into_iter().all(|(a, b)| same_cut(a, b))
        };
        if let Some(relation) = self.windows[tensor.0 as usize].iter().find(same) {
            return Ok(*relation);
        }
        let rests = self.chunking.dims[tensor.0 as usize].clone();
        let input = self.form(tensor, &rests)?;
        let relation = self.push(tensor, "window", kind, Operation::Window { input });
        self.windows[tensor.0 as usize].push(relation);
        Ok(relation)
    }
}
