//! The choice of a chunking: into how many pieces each statement's indices and each tensor's dimensions are cut.
//!
//! One function stands for the whole search: [`chunking`], program and sites in, [`Chunking`] out; what follows
//! (lowering, placement, plan) takes any chunking. This one cuts one index a statement, the one for which the
//! fewest values have to move, statements with the most arithmetic first. Must not know plans.
//!
//! ```text
//! C[i,j] = sum A[i,k] * B[k,j] on 4 sites, A and B loaded: cut i (B is broadcast, 4 · K · J values)
//! ```

pub mod assemble;
pub mod balance;
pub mod bounds;
pub mod choice;
pub mod convert;
pub mod descent;
mod explore;
pub mod mesh;
pub mod model;
pub mod named;
pub mod narrow;
pub mod network;
pub mod options;
pub mod price;
pub mod problem;
pub mod report;
pub mod residency;
pub mod settle;
pub mod share;
pub mod solve;
pub mod tariff;

pub use named::{Named, named};
pub use options::{Found, Nearest, NoLayout, Pinned, SearchOptions};
pub use price::{Conversion, Price, price};
pub use report::{MeshReport, Outcome, SearchReport};
pub use residency::{Residency, residency};
pub use solve::layout;
pub use tariff::{Objective, TimeModel};

use crate::cost::flops_per_point;
use crate::einsum::{Definition, Program, TensorId};
use crate::tra::Chunking;
use crate::tra::operands::split_operands;
use ein_plan::Kernel;

/// Pieces of a cut index in deterministic mode, whatever the number of sites.
const DETERMINISTIC_PIECES: u32 = 16;

/// An index is considered only if its busiest piece has at most this many times the work of the best index's.
const IMBALANCE: u128 = 2;

/// Partial results are scattered only if they are at most this many tuples.
const MOST_PARTIAL_TUPLES: u64 = 1 << 20;

/// A tensor of at most this many elements is computed at every site, if its operands are there, nothing wants it
/// cut, and all sites together spend at most one [`REDUNDANT_PART`]-th of the program's arithmetic on it.
const TINY: u128 = 4096;

/// See [`TINY`].
const REDUNDANT_PART: u128 = 64;

/// A sensible chunking of a program for that many sites. In deterministic mode it does not depend on the sites.
pub fn chunking(program: &Program, sites: u32, deterministic: bool) -> Chunking {
    let pieces = if deterministic {
        DETERMINISTIC_PIECES
    } else {
        sites.max(1)
    };
    let mut chooser = Chooser::new(program, pieces);
    let mut order: Vec<usize> = (0..program.tensors.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(chooser.work[*at]), *at));
    for at in order {
        if let Definition::Statement { kernel, operands } = &program.tensors[at].definition {
            chooser.statement(at, kernel, operands);
        }
    }
    chooser.finish()
}

/// How a tensor rests, as far as it is decided.
#[derive(Clone, Debug, Default)]
struct Rest {
    /// Pieces of each dimension, once a reader wants it cut or its statement has been looked at.
    pieces: Option<Vec<u32>>,
    /// Whether it is whole at every site anyway.
    everywhere: bool,
    /// Whether it can be made anywhere.
    free: bool,
}

struct Chooser<'a> {
    program: &'a Program,
    pieces: u32,
    /// By tensor: arithmetic of its statement.
    work: Vec<u128>,
    total: u128,
    rests: Vec<Rest>,
    indices: Vec<Vec<u32>>,
}

impl<'a> Chooser<'a> {
    fn new(program: &'a Program, pieces: u32) -> Chooser<'a> {
        let work: Vec<u128> = program
            .tensors
            .iter()
            .map(|tensor| match &tensor.definition {
                Definition::Source(_) => 0,
                Definition::Statement { kernel, .. } => {
                    let each = u128::from(flops_per_point(kernel).max(1));
                    let extents = kernel.indices.iter().map(|i| u128::from(i.extent));
                    extents.fold(each, u128::saturating_mul)
                }
            })
            .collect();
        let rests = program.tensors.iter().map(|tensor| Rest {
            free: matches!(&tensor.definition, Definition::Source(source) if source.is_free()),
            ..Rest::default()
        });
        Chooser {
            program,
            pieces,
            total: work.iter().fold(0, |sum: u128, w| sum.saturating_add(*w)),
            work,
            rests: rests.collect(),
            indices: vec![vec![]; program.tensors.len()],
        }
    }

    /// Decides which index of a statement is cut, and what follows from it for the tensors around.
    fn statement(&mut self, at: usize, kernel: &Kernel, operands: &[TensorId]) {
        let uncut = vec![1; kernel.indices.len()];
        let everywhere = self.reads(kernel, operands, &uncut).all(|(tensor, _)| {
            let rest = &self.rests[tensor];
            rest.free || rest.everywhere
        });
        let light = self.work[at]
            .saturating_mul(u128::from(self.pieces))
            .saturating_mul(REDUNDANT_PART)
            <= self.total;
        let tiny = self.rests[at].pieces.is_none() && self.size(at) <= TINY;
        let choice = if everywhere && light && tiny {
            uncut
        } else {
            self.best_cut(at, kernel, operands).unwrap_or(uncut)
        };
        let reads: Vec<(usize, Vec<u32>)> = self.reads(kernel, operands, &choice).collect();
        for (tensor, form) in reads {
            let rest = &mut self.rests[tensor];
            if form.iter().all(|pieces| *pieces == 1) {
                rest.everywhere |= choice.iter().any(|pieces| *pieces > 1);
            } else if rest.pieces.is_none() {
                rest.pieces = Some(form);
            }
        }
        let rank = kernel.output_rank as usize;
        let given = choice[..rank].to_vec();
        let cut = choice.iter().any(|pieces| *pieces > 1);
        let reduced = choice[rank..].iter().any(|pieces| *pieces > 1);
        let rest = &mut self.rests[at];
        if !cut {
            rest.everywhere = everywhere;
        }
        if !reduced {
            rest.pieces = Some(given);
        } else if rest.pieces.is_none() {
            // Partial results are added up where the result's pieces will rest.
            let shape = &self.program.tensors[at].shape;
            let longest = (0..rank)
                .filter(|dim| shape[*dim] >= u64::from(self.pieces))
                .max_by_key(|dim| (shape[*dim], std::cmp::Reverse(*dim)));
            let mut scattered = vec![1; rank];
            if let Some(dim) =
                longest.filter(|_| u64::from(self.pieces).pow(2) <= MOST_PARTIAL_TUPLES)
            {
                scattered[dim] = self.pieces;
            }
            rest.pieces = Some(scattered);
        }
        self.indices[at] = choice;
    }

    /// The pieces of each index where the best one is cut; `None` if there is none to cut.
    fn best_cut(&self, at: usize, kernel: &Kernel, operands: &[TensorId]) -> Option<Vec<u32>> {
        let candidates: Vec<(usize, u32, u128)> = kernel
            .indices
            .iter()
            .enumerate()
            .filter_map(|(number, index)| {
                let pieces = u64::from(self.pieces).min(index.extent) as u32;
                // The busiest piece's share of the work, in parts of 2^64.
                let longest = u128::from(index.extent.div_ceil(u64::from(pieces.max(1))));
                let share = (longest << 64) / u128::from(index.extent.max(1));
                (pieces > 1).then_some((number, pieces, share))
            })
            .collect();
        let least = candidates.iter().map(|(_, _, share)| *share).min()?;
        candidates
            .into_iter()
            .filter(|(_, _, share)| *share <= least * IMBALANCE)
            .map(|(number, pieces, share)| {
                let mut choice = vec![1; kernel.indices.len()];
                choice[number] = pieces;
                let transfer = self.transfer(at, kernel, operands, &choice);
                (transfer, share, number, choice)
            })
            .min_by_key(|(transfer, share, number, _)| (*transfer, *share, *number))
            .map(|(_, _, _, choice)| choice)
    }

    /// Values that a choice would move, as far as the neighbours are decided.
    fn transfer(&self, at: usize, kernel: &Kernel, operands: &[TensorId], choice: &[u32]) -> u128 {
        let mut sum = 0u128;
        let mut broadcast = vec![];
        for (tensor, form) in self.reads(kernel, operands, choice) {
            let rest = &self.rests[tensor];
            let size = self.size(tensor);
            if rest.free || rest.everywhere {
                continue;
            }
            if form.iter().all(|pieces| *pieces == 1) {
                if !broadcast.contains(&tensor) {
                    broadcast.push(tensor);
                    sum = sum.saturating_add(size.saturating_mul(u128::from(self.pieces)));
                }
            } else if rest.pieces.as_ref().is_some_and(|rests| *rests != form) {
                sum = sum.saturating_add(size);
            }
        }
        let rank = kernel.output_rank as usize;
        let reduced = choice[rank..].iter().copied().max().unwrap_or(1);
        let out = self.size(at);
        if reduced > 1 {
            let columns = kernel.reduction.map_or(1, |reduction| {
                reduction.carrier(kernel.graph.dtype(kernel.root)).len()
            });
            let partial = out.saturating_mul(u128::from(reduced));
            sum = sum.saturating_add(partial.saturating_mul(columns as u128));
        } else if let Some(wanted) = &self.rests[at].pieces
            && *wanted != choice[..rank]
        {
            sum = sum.saturating_add(out);
        }
        sum
    }

    /// What a statement reads under a choice: tensors, and the pieces of each dimension.
    fn reads(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
        choice: &[u32],
    ) -> impl Iterator<Item = (usize, Vec<u32>)> {
        let (_, reads) = split_operands(kernel, choice);
        reads.into_iter().map(move |(operand, cuts)| {
            let form = cuts
                .iter()
                .map(|cut| cut.map_or(1, |index| choice[index.0 as usize]))
                .collect();
            (operands[operand as usize].0 as usize, form)
        })
    }

    fn size(&self, tensor: usize) -> u128 {
        let shape = self.program.tensors[tensor].shape.iter();
        shape.fold(1, |size: u128, n| size.saturating_mul(u128::from(*n)))
    }

    fn finish(self) -> Chunking {
        let dims = self
            .rests
            .into_iter()
            .zip(&self.program.tensors)
            .map(|(rest, tensor)| rest.pieces.unwrap_or_else(|| vec![1; tensor.shape.len()]))
            .collect();
        Chunking {
            indices: self.indices,
            dims,
        }
    }
}
