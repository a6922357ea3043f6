//! Sweeps: steps that are taken together, block of rows by block of rows, so that what one leaves is in a cache when the
//! next one reads it.
//!
//! All members run over the same rows, their first `rows` output dimensions, and read each other at their own row only. They
//! are taken where the last one stands. A result that nothing else reads is never held whole. A reduction of all rows to one number is
//! gathered block by block. Must not know how a block is computed.
//!
//! ```text
//! sweep r1, r2, r3, r4 rows 1      r1 = row maxima, r2 = exp of the rest, r3 = row sums, r4 = the quotient; r1, r2, r3 pass
//! sweep r1, r2 rows 2              r1 = x - y, r2 = norm of r1
//! ```

use crate::function::Function;
use crate::ids::RelationId;
use crate::kernel::{IndexId, Kernel, Node, NodeId};
use crate::plan::{Operation, Plan, Step, Sweep, same_cut};
use crate::reduction::Reduction;
use crate::schedule::LoopKernel;
use crate::schedule::patched::patched;

/// Bytes of a block of rows, of all that is read and made at them: what stays in the second cache.
pub const BLOCK: u64 = 1 << 19;
/// Nodes of a product that are looked at: powers of powers, written out, have no end.
const MOST_VISITED: usize = 256;

impl Plan {
    /// By step: the sweep that it is in.
    pub fn sweeps_of_steps(&self) -> Vec<Option<usize>> {
        let mut of = vec![None; self.steps.len()];
        for (number, sweep) in self.sweeps.iter().enumerate() {
            for member in &sweep.members {
                if let Some(slot) = of.get_mut(member.0 as usize) {
                    *slot = Some(number);
                }
            }
        }
        of
    }

    /// By step: whether its result passes, being read in its sweep only, and is never held whole.
    pub fn passing(&self) -> Vec<bool> {
        let of = self.sweeps_of_steps();
        let mut passing: Vec<bool> = of.iter().map(Option::is_some).collect();
        let mut stays = |relation: RelationId| {
            if let Some(passes) = passing.get_mut(relation.0 as usize) {
                *passes = false;
            }
        };
        for (number, step) in self.steps.iter().enumerate() {
            for input in step.operation.inputs() {
                if of.get(input.0 as usize) != Some(&of[number]) {
                    stays(input);
                }
            }
        }
        self.outputs
            .iter()
            .for_each(|output| stays(output.relation));
        for repeat in &self.repeats {
            let block = &repeat.block;
            block
                .begins_with()
                .chain(block.ends_with())
                .for_each(&mut stays);
        }
        passing
    }

    /// Whether a step can be in a sweep at all: a kernel of whole tuples, other than one that may change its operand in place.
    /// Products and sums of looked-up rows, and rows that data find, have loops of their own, which no sweep has.
    /// What a product of matrices adds up depends on how many rows it has, so it is left out where the order is promised.
    pub fn may_sweep(&self, step: &Step) -> bool {
        let Operation::LocalJoin {
            kernel, fold: None, ..
        } = &step.operation
        else {
            return false;
        };
        self.kernels.get(kernel.0 as usize).is_some_and(|kernel| {
            kernel.guard.is_none()
                && kernel.library().is_none()
                && (kernel.reduction.is_none() || kernel.finish)
                && kernel.output_rank > 0
                && kernel.indices.iter().all(|index| index.extent > 0)
                && !(self.deterministic && kernel.is_product())
                && kernel.update().is_none()
                && patched(kernel).is_none()
                && !LoopKernel::finds_rows(kernel)
        })
    }

    /// Whether a step can be gathered in a sweep: it reduces whole tuples to one number. Its blocks are added up one after the other, which
    /// is another order of summation, so it is left out where the order is promised.
    pub fn may_gather(&self, step: &Step) -> bool {
        use Reduction as R;
        let Operation::LocalJoin {
            kernel, fold: None, ..
        } = &step.operation
        else {
            return false;
        };
        !self.deterministic
            && self.kernels.get(kernel.0 as usize).is_some_and(|kernel| {
                let reduction = kernel.reduction.is_some_and(|reduction| {
                    matches!(
                        reduction,
                        R::Sum | R::Mean | R::Max | R::Min | R::Norm | R::Norm1 | R::NormInf
                    )
                });
                reduction
                    && kernel.finish
                    && kernel.guard.is_none()
                    && kernel.library().is_none()
                    && kernel.output_rank == 0
                    && kernel.indices.iter().all(|index| index.extent > 0)
            })
    }

    /// How many of the first indices of a step that is gathered run over the rows of another step.
    fn rows_gathered(&self, gathered: &Step, other: &Step) -> usize {
        let indices = |step: &Step| {
            let Operation::LocalJoin { kernel, ranges, .. } = &step.operation else {
                return vec![];
            };
            let kernel = &self.kernels[kernel.0 as usize];
            let extents = kernel.indices.iter().map(|index| index.extent);
            ranges.iter().copied().zip(extents).collect()
        };
        let (own, rows) = (indices(gathered), indices(other));
        let most = other.kind.array.dims.len();
        let pairs = own.iter().zip(&rows).take(most);
        pairs.take_while(|(own, row)| own == row).count()
    }

    /// The rows of a sweep of these members after a step has joined it; none if it cannot. Where it stands is not
    /// looked at.
    pub fn rows_with(&self, sweep: &Sweep, step: &Step) -> Option<u32> {
        let Operation::LocalJoin { inputs, kernel, .. } = &step.operation else {
            return None;
        };
        let head = *sweep.members.first()?;
        let first = self.kind(head);
        let own = &step.kind;
        let alike = first.keys.len() == own.keys.len()
            && first
                .keys
                .iter()
                .zip(&own.keys)
                .all(|(a, b)| same_cut(a, b))
            && first.placement == own.placement;
        if !alike {
            return None;
        }
        let gathers = self.may_gather(step);
        if !gathers && !self.may_sweep(step) {
            return None;
        }
        let dims = first.array.dims.iter().zip(&own.array.dims);
        let mut rows = match gathers {
            true => self.rows_gathered(step, self.step(head)),
            false => dims.take_while(|(a, b)| a == b).count(),
        };
        rows = rows.min(sweep.rows as usize);
        let kernel = &self.kernels[kernel.0 as usize];
        for (operand, positions) in kernel.graph.reads() {
            let input = &inputs[operand as usize];
            if !sweep.members.contains(&input.relation) {
                continue;
            }
            if !(0u32..)
                .zip(&input.keys)
                .all(|(number, key)| number == *key)
            {
                return None;
            }
            let shape = &kernel.operands[operand as usize].shape;
            let inside = positions.iter().zip(shape).all(|(position, extent)| {
                let index = kernel.graph.as_index(*position);
                index.is_some_and(|i| kernel.indices[i.0 as usize].extent <= *extent)
            });
            if !inside {
                return None;
            }
            rows = rows.min(kernel.rows_read(positions));
        }
        (rows > 0).then_some(rows as u32)
    }
}

impl Kernel {
    /// How many of the first positions of a read are the output's indices in order (all indices, where there is one output): the operand is
    /// read at the kernel's own row.
    pub fn rows_read(&self, positions: &[NodeId]) -> usize {
        let rank = match self.output_rank {
            0 => self.indices.len() as u32,
            rank => rank,
        };
        let own = (0..rank).zip(positions);
        own.take_while(|(d, position)| self.graph.as_index(**position) == Some(IndexId(*d)))
            .count()
    }

    /// Whether it sums up a product of matrices, or of a matrix and a vector: two factors have output indices that the other
    /// lacks, or at most one factor has all that they have together. Divisors do not count. Other kernels are never computed as such.
    pub fn is_product(&self) -> bool {
        if self.reduction != Some(Reduction::Sum) {
            return false;
        }
        let depends = self.graph.dependencies();
        let output = 1u128
            .checked_shl(self.output_rank)
            .map_or(u128::MAX, |bit| bit - 1);
        let (mut factors, mut open, mut visited) = (vec![], vec![(self.root, false)], 0);
        while let Some((node, divides)) = open.pop() {
            visited += 1;
            if visited > MOST_VISITED {
                return true;
            }
            let mask = depends[node.0 as usize];
            match self.graph.node(node) {
                Node::Apply(Function::Mul | Function::Neg, arguments) => {
                    open.extend(arguments.iter().map(|a| (*a, divides)));
                }
                Node::Apply(Function::Div, arguments) => {
                    let turned = arguments.iter().enumerate();
                    open.extend(turned.map(|(at, a)| (*a, divides != (at == 1))));
                }
                _ if divides || mask == 0 => {}
                _ => factors.push(mask & output),
            }
        }
        let union = factors.iter().fold(0, |union, mask| union | mask);
        let whole = factors.iter().filter(|mask| **mask == union).count();
        let lacks = |a: &u128, b: &u128| a & !b != 0 && b & !a != 0;
        let matrices = factors.iter().any(|a| factors.iter().any(|b| lacks(a, b)));
        matrices || factors.len() > 1 && whole < 2
    }
}
