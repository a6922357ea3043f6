//! Plans for less memory than one statement works on: relations rest in tuples that are made and read one by one.
//!
//! The indices of the statement that holds most are cut into twice as many pieces, one class after the other, until the plan keeps to the limit:
//! that one with which least is written and read, or, while none is enough, the one that comes nearest. Then pieces become fewer, and relations are
//! held again, as far as there is room. What several sites have of a piece is cut, too. In deterministic mode pieces
//! are what they are. Must not know files.
//!
//! ```text
//! C[i,j] = A[i,k] * B[k,j], 80 MB each, limit 100 MB: i in 4 pieces, j in 2; A and C rest, and B does
//! ```

use super::choose::Chosen;
use super::{Compiled, Options, tensor_relations};
use crate::cost::{self, Machine};
use crate::einsum::{Definition, Program};
use crate::ia::cuts;
use crate::search::share::Shared;
use crate::tra::classes::Classes;
use crate::{ia, lower, tra};
use ein_plan::{Plan, memory};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Ways to cut a program that are looked at, and relations that are planned for them.
const MOST_TRIES: usize = 300;
const MOST_RELATIONS: usize = 30_000;

/// Most tuples that are joined in a step.
const MOST_TUPLES: u64 = 1 << 12;

/// A way to cut a program, and what comes of it.
struct Cut {
    finer: Vec<u32>,
    tra: tra::Program,
    ia: ia::Program,
    plan: Plan,
    excess: u64,
    volume: u64,
}

/// The plan of a layout with relations at rest tuple by tuple, if it keeps to the limit on memory so.
pub(super) fn streamed(
    compiled: &Compiled,
    shared: &Shared,
    options: &Options,
    deadline: &dyn Fn() -> bool,
) -> Result<Option<Compiled>, String> {
    let Some(limit) = options.criteria.memory else {
        return Ok(None);
    };
    let (program, chosen) = (&compiled.program, &compiled.chosen);
    let cutter = Cutter {
        program,
        chosen,
        shared,
        options,
        limit,
        classes: cuts::alike(program, &chosen.layout),
    };
    let Some(mut cut) = cutter.fitting(deadline)? else {
        return Ok(None);
    };
    cut.plan = lower::held_again(cut.plan, limit);
    ia::verify::verify(&cut.ia).map_err(|what| format!("IA: {what}"))?;
    ein_plan::verify::verify(&cut.plan).map_err(|what| format!("plan: {what}"))?;
    let machine = Machine {
        sites: options.sites,
    };
    Ok(Some(Compiled {
        program: program.clone(),
        chosen: chosen.clone(),
        cost: cost::of_plan(&cut.ia, &cut.plan, &machine),
        tra: cut.tra,
        ia: cut.ia,
        plan: cut.plan,
        proof: None,
    }))
}

struct Cutter<'a> {
    program: &'a Program,
    chosen: &'a Chosen,
    shared: &'a Shared,
    options: &'a Options,
    limit: u64,
    classes: Classes,
}

impl Cutter<'_> {
    /// A way that keeps to the limit.
    fn fitting(&self, deadline: &dyn Fn() -> bool) -> Result<Option<Cut>, String> {
        let mut cut = self.cut(vec![1; self.classes.count as usize])?;
        let mut tries = 1;
        let most = MOST_TRIES.min(MOST_RELATIONS / cut.ia.relations.len().max(1));
        if cut.plan.streams.is_empty() {
            return Ok(None);
        }
        while cut.excess > 0 {
            let mut best: Option<Cut> = None;
            for class in self.candidates(&cut) {
                let mut finer = cut.finer.clone();
                finer[class as usize] = finer[class as usize].saturating_mul(2);
                if tries >= most || deadline() || !self.may(&finer) {
                    continue;
                }
                tries += 1;
                let next = self.cut(finer)?;
                let worth = |cut: &Cut| (cut.excess, cut.volume);
                if best.as_ref().is_none_or(|best| worth(&next) < worth(best)) {
                    best = Some(next);
                }
            }
            match best {
                Some(next) if next.excess < cut.excess => cut = next,
                _ => return Ok(None),
            }
        }
        for class in 0..cut.finer.len() {
            while cut.finer[class] > 1 && tries < most && !deadline() {
                let mut finer = cut.finer.clone();
                finer[class] -= 1;
                tries += 1;
                let next = self.cut(finer)?;
                if next.excess > 0 || next.volume > cut.volume {
                    break;
                }
                cut = next;
            }
        }
        Ok(Some(cut))
    }

    /// The classes of the statement that holds most; none that would change what is computed where that is promised.
    fn candidates(&self, cut: &Cut) -> Vec<u32> {
        if self.options.deterministic {
            return vec![];
        }
        let held = memory::by_step(&cut.plan).into_iter().enumerate();
        let most = held.max_by_key(|(step, sites)| (sites.iter().max().copied(), Reverse(*step)));
        let step = most.and_then(|(step, _)| cut.ia.relations.get(step));
        let Some(step) = step else { return vec![] };
        let mut tensors = self.program.tensors.iter();
        let at = tensors.position(|tensor| tensor.name == step.tensor);
        let Some(at) = at else { return vec![] };
        let mut classes = match &self.program.tensors[at].definition {
            Definition::Statement { .. } => self.classes.indices[at].clone(),
            Definition::Source(_) | Definition::Loop(_) => self.classes.dims[at].clone(),
        };
        let mut seen = BTreeSet::new();
        classes.retain(|class| seen.insert(*class));
        // The first of equals is taken: one along which little is added up, so that sums stay as they are.
        classes.sort_by_key(|class| self.reductions(*class));
        classes
    }

    /// How many statements reduce an index of a class.
    fn reductions(&self, class: u32) -> usize {
        let tensors = self.program.tensors.iter().zip(&self.classes.indices);
        let reduces = tensors.filter(|(tensor, indices)| match &tensor.definition {
            Definition::Statement { kernel, .. } => {
                indices[kernel.output_rank as usize..].contains(&class)
            }
            Definition::Source(_) | Definition::Loop(_) => false,
        });
        reduces.count()
    }

    /// Returns whether no index has more pieces than values, and no statement too many tuples.
    fn may(&self, finer: &[u32]) -> bool {
        let of = |class: &u32| u64::from(finer[*class as usize]);
        self.program.tensors.iter().enumerate().all(|(at, tensor)| {
            let (dims, indices) = (&self.classes.dims[at], &self.classes.indices[at]);
            let extents: Vec<u64> = match &tensor.definition {
                Definition::Statement { kernel, .. } => {
                    kernel.indices.iter().map(|index| index.extent).collect()
                }
                Definition::Source(_) | Definition::Loop(_) => vec![],
            };
            let fits = |(class, extent): (&u32, &u64)| of(class) == 1 || of(class) <= *extent;
            let tuples = |classes: &[u32]| classes.iter().map(of).fold(1, u64::saturating_mul);
            dims.iter().zip(&tensor.shape).all(fits)
                && indices.iter().zip(&extents).all(fits)
                && tuples(indices).max(tuples(dims)) <= MOST_TUPLES
        })
    }

    fn cut(&self, finer: Vec<u32>) -> Result<Cut, String> {
        let (tra, ia) =
            tensor_relations(self.program, self.chosen, self.shared, self.options, &finer)?;
        let plan = lower::lower(&ia, self.options.deterministic)?;
        let plan = lower::streamed(&lower::unswept(&plan), self.limit);
        Ok(Cut {
            finer,
            tra,
            ia,
            excess: lower::excess(&plan, self.limit),
            volume: lower::total(plan.spilled()),
            plan,
        })
    }
}
