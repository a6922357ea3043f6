//! Broadcasts and shuffles of relations that rest tuple by tuple ([`ein_plan::stream`]).
//!
//! They go in rounds. In round n every site sends the n-th tuple that it has of the input to all sites that lack it, and puts what arrives
//! where the result is, at rest or in memory. All sites know from types and placements what comes from whom. Must not know where relations rest, nor transports.
//!
//! ```text
//! r1 = broadcast r0 {i: 9/4} @ PART(i), both streamed, on 2 sites:   0 -> 1: (0,)   1 -> 0: (2,);   0 -> 1: (1,)   1 -> 0: (3,)
//! ```

use crate::error::RunError;
use crate::movement::{kinds, receivers, together};
use crate::store::{Tuple, Tuples};
use crate::stream::bytes_of;
use crate::walk::Walker;
use ein_comm::Communicator;
use ein_plan::relation::{sender, sends};
use ein_plan::{RelationId, RelationType, Step};

impl Walker<'_> {
    /// Takes a movement of this input, if it makes or reads a streamed relation; the tuples of its result, if they are to be held.
    pub fn stream_movement(
        &mut self,
        step: &Step,
        input: RelationId,
    ) -> Result<Option<Tuples>, RunError> {
        let (plan, sites) = (self.plan, self.comm.sites());
        let (from, to) = (plan.kind(input), &step.kind);
        let streamed = plan.is_streamed(step.result);
        if streamed {
            self.at_rest.open(step.result)?;
        }
        let sent: Vec<Vec<Vec<u32>>> = (0..sites)
            .map(|site| from.keys_at(site, &plan.mesh).collect())
            .collect();
        let rounds = sent.iter().map(Vec::len).max().unwrap_or(0);
        let mut made = Tuples::new();
        for round in 0..rounds {
            let one_of = |site: u32| sent[site as usize].get(round);
            let mut arrived = self.round(input, (from, to), &one_of)?;
            self.examined(step.result.0 as usize, step, &arrived)?;
            if streamed {
                for (key, tuple) in std::mem::take(&mut arrived) {
                    self.at_rest.put(step.result, key, &tuple)?;
                }
            }
            made.extend(arrived);
        }
        Ok((!streamed).then_some(made))
    }

    /// Sends a tuple of each site, as `one_of` names it, to those that lack it; what this site has of the result then.
    fn round<'k>(
        &mut self,
        input: RelationId,
        (from, to): (&RelationType, &RelationType),
        one_of: &dyn Fn(u32) -> Option<&'k Vec<u32>>,
    ) -> Result<Tuples, RunError> {
        let (mesh, me) = (&self.plan.mesh, self.comm.site());
        let sites = self.comm.sites();
        let mut here = Tuples::new();
        let mut outgoing: Vec<Tuple> = vec![vec![]; sites as usize];
        let mut in_hand = 0;
        let sent = |key: &&Vec<u32>| sends(from, to, key, (me, mesh));
        if let Some(key) = one_of(me).filter(sent) {
            let tuple = self.tuple_of(input, key)?;
            if self.plan.is_streamed(input) {
                in_hand = bytes_of(&tuple);
            }
            for receiver in receivers(mesh, from, to, key, me) {
                outgoing[receiver as usize] = tuple.clone();
            }
            if to.holds(key, me, mesh) {
                here.insert(key.clone(), tuple);
            }
        }
        let arrives = |site: u32| {
            let key = one_of(site).filter(|_| site != me)?;
            let lacks = to.holds(key, me, mesh) && !from.holds(key, me, mesh);
            let sends = || sender(&from.coordinates(key, mesh), me, mesh) == site;
            (lacks && sends()).then(|| key.clone())
        };
        let keys: Vec<Vec<Vec<u32>>> = (0..sites)
            .map(|site| arrives(site).into_iter().collect())
            .collect();
        let incoming: Vec<_> = keys.iter().map(|keys| kinds(from, keys)).collect();
        let arrived = self.comm.exchange(outgoing, &incoming)?;
        let bytes: u64 = arrived.iter().map(|tuple| bytes_of(tuple)).sum();
        self.store.beside(in_hand + bytes);
        here.extend(together(to, keys, arrived, &*self.options.device));
        Ok(here)
    }
}
