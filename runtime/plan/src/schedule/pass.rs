//! The pass that chooses the loops of every local join of a plan.
//!
//! Must not know how a choice is made.
//!
//! ```text
//! r2 C: {i: 10/4, j: 8/1} f32[i, 8] @ PART(i) = join k0(r0{i}, r1{j}) over [i, j, _]   ->   loops r2: matmul of 3 rows, 8 columns
//! ```

use super::access::Place;
use super::choose::choose;
use super::{Facts, LoopKernel, LoopKind, fit, fused_rows};
use crate::ids::RelationId;
use crate::kernel::Kernel;
use crate::plan::{Operation, Plan, Range, Step, Sweep};
use crate::relation::piece;
use std::collections::{BTreeMap, BTreeSet};

impl Plan {
    /// Chooses the loops of every local join. The plan is verified but for them.
    pub fn schedule(&mut self) {
        let of = self.sweeps_of_steps();
        let alone = self
            .steps
            .iter()
            .filter(|step| of[step.result.0 as usize].is_none());
        let chosen = alone.filter_map(|step| {
            let facts = self.facts(step)?;
            Some((step.result, choose(&facts)))
        });
        let mut loops: BTreeMap<RelationId, LoopKernel> = chosen.collect();
        if !self.sweeps.is_empty() {
            let passing = self.passing();
            let over = self.overwritten(&passing);
            for sweep in &self.sweeps {
                let (outlines, places) = self.outlines(sweep, &passing, &over);
                let chosen = fused_rows(&outlines, sweep.rows as usize, &|member| {
                    places[member].clone()
                });
                loops.extend(sweep.members.iter().copied().zip(chosen));
            }
        }
        self.loops = loops;
    }

    /// The results of members of sweeps that may take the memory of what is carried into the step, or ends there.
    fn overwritten(&self, passing: &[bool]) -> BTreeSet<RelationId> {
        let among = |sweep| self.overwrites_among(sweep, passing);
        let ending = self.sweeps.iter().flat_map(among);
        let carried = self.successions().list.into_iter();
        let carried = carried.map(|succession| succession.next);
        ending.map(|(member, _)| member).chain(carried).collect()
    }

    /// Returns whether the loops of a sweep's members compute them; else a member, and why not.
    pub(crate) fn fits_rows(
        &self,
        sweep: &Sweep,
        passing: &[bool],
    ) -> Result<(), (RelationId, String)> {
        let members = &sweep.members;
        let loops: Option<Vec<&LoopKernel>> = members.iter().map(|m| self.loops_of(*m)).collect();
        let Some(loops) = loops else {
            return Err((sweep.last(), "a member of its sweep has no loops".into()));
        };
        let (outlines, places) = self.outlines(sweep, passing, &BTreeSet::new());
        let rows = sweep.rows as usize;
        let fit = fit(&outlines, rows, &|member| places[member].clone(), &loops);
        fit.map_err(|(number, why)| (members[number], why))
    }

    /// The loops of a step; `None` if it is no local join.
    pub fn loops_of(&self, step: RelationId) -> Option<&LoopKernel> {
        self.loops.get(&step)
    }

    /// Returns the facts of the tuples of a step and the kernel that its loops compute; `None` if it has none.
    pub fn facts_as_run(&self, step: &Step) -> Option<Facts<'_>> {
        let (facts, loops) = (self.facts(step)?, self.loops_of(step.result)?);
        let Some(fused) = &loops.fused else {
            return (loops.kind != LoopKind::Inlined).then_some(facts);
        };
        let mut sweeps = self.sweeps.iter();
        let sweep = sweeps.find(|sweep| sweep.members.contains(&step.result))?;
        let place = |(member, at): &(u32, u32)| {
            let other = self.facts(self.step(*sweep.members.get(*member as usize)?))?;
            other.places.get(*at as usize).cloned()
        };
        let places = fused.operands.iter().map(place).collect::<Option<_>>()?;
        Some(Facts::new(&fused.kernel, facts.lengths, places))
    }

    /// Returns the facts of the tuples of a step, if it is a local join of a verified plan.
    pub fn facts(&self, step: &Step) -> Option<Facts<'_>> {
        let (kernel, lengths) = self.largest_join(step)?;
        let places = step.operation.inputs().into_iter().map(|input| {
            let kind = self.kind(input);
            Place::new(&kind.ranges(&vec![0; kind.keys.len()]))
        });
        Some(Facts::new(kernel, lengths, places.collect()))
    }

    /// Returns the kernel of a local join, and the values of each of its indices in the largest tuple.
    pub(crate) fn largest_join(&self, step: &Step) -> Option<(&Kernel, Vec<usize>)> {
        let Operation::LocalJoin {
            kernel,
            ranges,
            fold,
            ..
        } = &step.operation
        else {
            return None;
        };
        let kernel = &self.kernels[kernel.0 as usize];
        let keys = fold.as_ref().map_or(&step.kind.keys, |fold| &fold.keys);
        // The first piece of a dimension is the largest.
        let lengths = kernel.indices.iter().zip(ranges);
        let lengths = lengths.map(|(index, range)| match range {
            Range::Whole => index.extent as usize,
            Range::Key(key) => piece(index.extent, keys[*key as usize].pieces, 0).1 as usize,
        });
        Some((kernel, lengths.collect()))
    }
}
