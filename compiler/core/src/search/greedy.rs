//! A layout without a search: one index a statement is cut, over all sites in a row.
//!
//! The index for which the fewest values have to move, statements with the most arithmetic first. In deterministic
//! mode its decisions do not depend on the number of sites. Must not know plans.
//!
//! ```text
//! C[i,j] = sum A[i,k] * B[k,j] on 4 sites, A and B loaded: cut i (B is broadcast, 4 · K · J values)
//! ```

use crate::cost::flops_per_point;
use crate::einsum::{Definition, Program, TensorId};
use crate::ia::from_layout::DETERMINISTIC_PIECES;
use crate::ia::layout::{Layout, StatementRole, TensorRole};
use crate::tra::operands::split_operands;
use crate::tra::reads::Windows;
use ein_plan::{IndexId, Kernel, Mesh};

/// An index is considered only if its busiest piece has at most this many times the work of the best index's.
const IMBALANCE: u128 = 2;

/// A tensor of at most this many elements is computed at every site, if its operands are there, nothing wants it
/// cut, and all sites together spend at most one [`REDUNDANT_PART`]-th of the program's arithmetic on it.
const TINY: u128 = 4096;

/// See [`TINY`].
const REDUNDANT_PART: u128 = 64;

/// A sensible layout of a program on that many sites in a row.
pub fn layout(program: &Program, sites: u32, deterministic: bool) -> Layout {
    let pieces = if deterministic {
        DETERMINISTIC_PIECES
    } else {
        sites.max(1)
    };
    let mut chooser = Chooser::new(program, pieces);
    let mut order: Vec<usize> = (0..program.tensors.len()).collect();
    order.sort_by_key(|at| (std::cmp::Reverse(chooser.work[*at]), *at));
    for at in &order {
        let at = *at;
        if let Definition::Statement { kernel, operands } = &program.tensors[at].definition {
            chooser.statement(at, kernel, operands);
        }
    }
    chooser.loop_values();
    Layout {
        mesh: Mesh::row(sites.max(1)),
        statements: chooser.statements,
        rests: (chooser.rests.into_iter())
            .map(|rest| match rest.fixed {
                true => vec![TensorRole::Every],
                false => vec![rest.role.unwrap_or(TensorRole::First)],
            })
            .collect(),
    }
}

/// How a tensor rests, as far as it is decided.
#[derive(Clone, Debug, Default)]
struct Rest {
    /// Once a reader wants it cut or its statement has been looked at.
    role: Option<TensorRole>,
    /// True if it is whole at every site anyway.
    everywhere: bool,
    /// True if it can be made anywhere.
    free: bool,
    /// True if it has to rest everywhere: a loop's bound or condition.
    fixed: bool,
}

struct Chooser<'a> {
    program: &'a Program,
    pieces: u32,
    /// By tensor: arithmetic of its statement.
    work: Vec<u128>,
    total: u128,
    rests: Vec<Rest>,
    statements: Vec<Vec<StatementRole>>,
}

impl<'a> Chooser<'a> {
    fn new(program: &'a Program, pieces: u32) -> Chooser<'a> {
        let mut work: Vec<u128> = program
            .tensors
            .iter()
            .map(|tensor| match &tensor.definition {
                Definition::Source(_) | Definition::Loop(_) => 0,
                Definition::Statement { kernel, .. } => {
                    let each = u128::from(flops_per_point(kernel).max(1));
                    let extents = kernel.indices.iter().map(|i| u128::from(i.extent));
                    let all = extents.fold(each, u128::saturating_mul);
                    let passed = kernel.passed_over().into_iter();
                    let passed = passed.map(|i| kernel.indices[i.0 as usize].extent.max(1));
                    passed.fold(all, |work, extent| work / u128::from(extent))
                }
            })
            .collect();
        let times = program.expected_times();
        for (work, times) in work.iter_mut().zip(&times) {
            *work = work.saturating_mul(*times as u128);
        }
        let known = program.known_everywhere();
        let rests = (0u32..).zip(&program.tensors).map(|(number, tensor)| {
            // Numbers that go from round to round are known everywhere.
            let carried = matches!(&tensor.definition, Definition::Loop(_));
            let everywhere = carried && tensor.shape.is_empty();
            Rest {
                free: match &tensor.definition {
                    Definition::Source(source) => source.is_free(),
                    Definition::Loop(value) => !value.is_carried(),
                    Definition::Statement { .. } => false,
                },
                everywhere,
                fixed: known.contains(&TensorId(number)),
                ..Rest::default()
            }
        });
        Chooser {
            program,
            pieces,
            total: work.iter().fold(0, |sum: u128, w| sum.saturating_add(*w)),
            work,
            rests: rests.collect(),
            statements: vec![vec![]; program.tensors.len()],
        }
    }

    /// Decides which index of a statement is cut, and what follows from it for the tensors around.
    fn statement(&mut self, at: usize, kernel: &Kernel, operands: &[TensorId]) {
        let everywhere = reads(kernel, operands, None).iter().all(|(tensor, _)| {
            let rest = &self.rests[*tensor];
            rest.free || rest.everywhere
        });
        let light = self.work[at]
            .saturating_mul(u128::from(self.pieces))
            .saturating_mul(REDUNDANT_PART)
            <= self.total;
        let tiny = self.rests[at].role.is_none() && self.size(at) <= TINY;
        let choice = match everywhere && light && tiny {
            true => None,
            false => self.best_cut(at, kernel, operands),
        };
        for (tensor, cut) in reads(kernel, operands, choice) {
            let rest = &mut self.rests[tensor];
            match cut {
                None => rest.everywhere |= choice.is_some(),
                Some(dim) => {
                    rest.role.get_or_insert(TensorRole::Cut(dim));
                }
            }
        }
        let rank = kernel.output_rank as usize;
        let shape = &self.program.tensors[at].shape;
        let rest = &mut self.rests[at];
        let role = match choice {
            None if everywhere => StatementRole::Every,
            None => StatementRole::First,
            Some(index) => StatementRole::Index(IndexId(index as u32)),
        };
        match choice {
            None => {
                rest.everywhere = everywhere;
                rest.role = Some(match everywhere {
                    true => TensorRole::Every,
                    false => TensorRole::First,
                });
            }
            Some(index) if index < rank => rest.role = Some(TensorRole::Cut(index as u32)),
            Some(_) => {
                // Partial results are added up where the result's pieces will rest.
                let longest = (0..rank)
                    .filter(|dim| shape[*dim] >= u64::from(self.pieces))
                    .max_by_key(|dim| (shape[*dim], std::cmp::Reverse(*dim)));
                let scattered = longest.map(|dim| TensorRole::Cut(dim as u32));
                rest.role
                    .get_or_insert(scattered.unwrap_or(TensorRole::First));
            }
        }
        self.statements[at] = vec![role];
    }

    /// Decides where the values of loops rest: as their readers in the loop want a state, else as what they are copies of
    /// rests, else everywhere.
    fn loop_values(&mut self) {
        let program = self.program;
        for (at, tensor) in program.tensors.iter().enumerate() {
            let Definition::Loop(value) = &tensor.definition else {
                continue;
            };
            if !value.is_carried() {
                self.rests[at].role = Some(TensorRole::Every);
                continue;
            }
            let from = program.carries(*value);
            let of = |cut: u32, dims: &[Option<u32>]| dims.iter().position(|dim| *dim == Some(cut));
            let found = from.iter().rev().find_map(|(other, dims)| {
                match self.rests[other.0 as usize].role? {
                    TensorRole::Cut(cut) => Some(TensorRole::Cut(of(cut, dims)? as u32)),
                    role => Some(role),
                }
            });
            let collects = from
                .first()
                .and_then(|(_, dims)| dims.iter().position(Option::is_none));
            let rest = &self.rests[at];
            let role = match rest.everywhere && tensor.shape.is_empty() {
                true => TensorRole::Every,
                false => rest.role.or(found).unwrap_or(TensorRole::Every),
            };
            self.rests[at].role = Some(role);
            self.statements[at] = vec![match role {
                TensorRole::Cut(dim) if Some(dim as usize) != collects => {
                    StatementRole::Index(IndexId(dim))
                }
                TensorRole::First => StatementRole::First,
                _ => StatementRole::Every,
            }];
        }
    }

    /// The best index to cut; `None` if there is none to cut.
    fn best_cut(&self, at: usize, kernel: &Kernel, operands: &[TensorId]) -> Option<usize> {
        let whole = kernel
            .library()
            .map(|library| library.own)
            .unwrap_or_default();
        let candidates: Vec<(usize, u128)> = kernel
            .indices
            .iter()
            .enumerate()
            .filter(|(number, _)| !whole.contains(&IndexId(*number as u32)))
            .filter_map(|(number, index)| {
                let pieces = u64::from(self.pieces).min(index.extent);
                // The busiest piece's share of the work, in parts of 2^64.
                let longest = u128::from(index.extent.div_ceil(u64::from(self.pieces)));
                let share = (longest << 64) / u128::from(index.extent.max(1));
                (pieces > 1).then_some((number, share))
            })
            .collect();
        let least = candidates.iter().map(|(_, share)| *share).min()?;
        candidates
            .into_iter()
            .filter(|(_, share)| *share <= least * IMBALANCE)
            .min_by_key(|(number, share)| {
                (
                    self.transfer(at, kernel, operands, *number),
                    *share,
                    *number,
                )
            })
            .map(|(number, _)| number)
    }

    /// Values that a choice would move, as far as the neighbours are decided.
    fn transfer(&self, at: usize, kernel: &Kernel, operands: &[TensorId], choice: usize) -> u128 {
        let mut sum = 0u128;
        let mut broadcast = vec![];
        for (tensor, cut) in reads(kernel, operands, Some(choice)) {
            let rest = &self.rests[tensor];
            let size = self.size(tensor);
            if rest.free || rest.everywhere {
                continue;
            }
            let Some(dim) = cut else {
                if !broadcast.contains(&tensor) {
                    broadcast.push(tensor);
                    sum = sum.saturating_add(size.saturating_mul(u128::from(self.pieces)));
                }
                continue;
            };
            if rest.role.is_some_and(|role| role != TensorRole::Cut(dim)) {
                sum = sum.saturating_add(size);
            }
        }
        let out = self.size(at);
        if choice >= kernel.output_rank as usize {
            let columns = kernel.reduction.map_or(1, |reduction| {
                reduction.carrier(kernel.graph.dtype(kernel.root)).len()
            });
            let partial = out.saturating_mul(u128::from(self.pieces));
            sum = sum.saturating_add(partial.saturating_mul(columns as u128));
        } else if let Some(wanted) = self.rests[at].role
            && wanted != TensorRole::Cut(choice as u32)
        {
            sum = sum.saturating_add(out);
        }
        sum
    }

    fn size(&self, tensor: usize) -> u128 {
        let shape = self.program.tensors[tensor].shape.iter();
        shape.fold(1, |size: u128, n| size.saturating_mul(u128::from(*n)))
    }
}

/// Lists the reads of a statement whose index is cut: tensors, and the dimension that is cut.
fn reads(
    kernel: &Kernel,
    operands: &[TensorId],
    choice: Option<usize>,
) -> Vec<(usize, Option<u32>)> {
    let pieces: Vec<u32> = (0..kernel.indices.len())
        .map(|index| if choice == Some(index) { 2 } else { 1 })
        .collect();
    let (_, reads) = split_operands(kernel, &pieces, &Windows::None);
    let reads = reads.into_iter().map(|(operand, parts)| {
        let mut parts = (0u32..).zip(parts);
        let cut = parts.find(|(_, part)| part.piece().is_some());
        let tensor = operands[operand as usize].0 as usize;
        (tensor, cut.map(|(dim, _)| dim))
    });
    reads.collect()
}
