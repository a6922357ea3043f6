//! Rounds: every site makes some steps by itself, on its own rows and its own neurons, then the sites exchange what they have learnt.
//!
//! Between rounds the whole net is nowhere: what counts the neurons of one layer goes from the sites that had them to those that get them,
//! weights between two layers rest at home in pieces, everything else is averaged. To evaluate, and for a checkpoint, everything is taken home.
//! Must not know what a step computes, nor how blocks are sent.
//!
//! ```text
//! round 3 of train.1: deal, 10 steps at every site, average b2, put Wl back; validate; round 4: …
//! ```

mod exchange;

use super::average::times;
use super::deal::Deal;
use super::feed::{Batch, Data as Bound};
use super::resident::{Resident, Residents};
use super::{Block, CarriedKind, Event, Rounds, Runner, States, Steps, order};
use crate::error::RunError;
use crate::meet::{agree, share_numbers};
use crate::resting::Spilled;
use crate::schedule::Schedules;
use ein_comm::{Communicator, in_process};
use ein_plan::relation::piece;
use exchange::whole_at_one;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was exchanged of a tensor in the rounds of a block, over all sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchanged {
    /// Elements of the blocks that sites began rounds with.
    pub handed: u64,
    /// Elements that went from site to site for it.
    pub sent: u64,
    /// Elements that went from site to site to evaluate or save the whole net.
    pub gathered: u64,
}

/// A step that this site has made by itself.
struct Made {
    loss: f64,
    rate: Option<f64>,
}

/// A site in the rounds of a block.
struct Team<'a, 'b> {
    rounds: &'a Rounds,
    block: &'a Block,
    /// This site alone, with its share of what is carried.
    own: Runner<'b>,
    /// Who has which neurons; `None`: the whole net is at home.
    deal: Option<Deal>,
    /// What was exchanged, at this site.
    exchanged: BTreeMap<String, Exchanged>,
    /// An epoch, and the order of its rows.
    order: (u64, Vec<u64>),
}

impl Runner<'_> {
    /// Makes the steps of a block from step `from` on, in rounds; returns the signal that ended it early.
    pub(super) fn rounds(
        &mut self,
        (number, block): (usize, &Block),
        rounds: &Rounds,
        from: u64,
    ) -> Result<Option<usize>, RunError> {
        let ends = in_process(1);
        let alone = ends
            .first()
            .ok_or_else(|| RunError::internal("a site is alone with itself"))?;
        let mut team = Team {
            rounds,
            block,
            own: self.alone(alone),
            deal: None,
            exchanged: BTreeMap::new(),
            order: (u64::MAX, vec![]),
        };
        if from == 0 && number > 0 {
            team.scale(self, f64::from(rounds.parts))?;
        }
        team.given(self)?;
        let per_epoch = block.steps_per_epoch.max(1);
        let mut step = from;
        let mut signal = None;
        while step < block.steps && signal.is_none() {
            let round = step / rounds.local_steps.max(1);
            let end = ((round + 1) * rounds.local_steps).min(block.steps);
            // As people count.
            let what = format!(
                "round {} of {} (steps {} to {end})",
                round + 1,
                block.name,
                step + 1
            );
            self.comm.doing(what.clone(), self.options.patience);
            let losses = team
                .round(self, round, step..end)
                .map_err(|error| error.in_round(&what, block.checkpoints.is_some()))?;
            let due = |every: super::Every| (step..end).any(|step| every.due(step, per_epoch));
            let validates = block
                .validate
                .as_ref()
                .is_some_and(|validate| due(validate.every));
            let mut validated = None;
            if validates {
                validated = team.evaluated(self)?;
            }
            self.told((number, &team), step..end, losses, validated);
            if let Some(checkpoints) = &block.checkpoints {
                signal = self.asked()?;
                if signal.is_some() || end == block.steps || due(checkpoints.every) {
                    team.home(self, true)?;
                    self.save(number, checkpoints, end - 1)?;
                }
            }
            step = end;
        }
        if signal.is_none() {
            team.home(self, true)?;
            team.scale(self, 1.0 / f64::from(rounds.parts))?;
            if rounds.states == States::Reset {
                self.updates.remove(&block.optimizer);
                for name in rounds.learnt.iter().filter(|name| team.is_state(name)) {
                    self.residents.remove(name);
                }
            }
        }
        self.spilled += team.own.spilled;
        for (name, own) in team.exchanged {
            let key = (number, name);
            self.exchanged.insert(key, own);
        }
        if signal.is_none() {
            self.estimate(block)?;
        }
        Ok(signal)
    }

    /// This site alone, without anything that is carried.
    fn alone<'s>(&self, comm: &'s dyn Communicator) -> Runner<'s>
    where
        Self: 's,
    {
        Runner {
            session: self.session,
            comm,
            options: self.options,
            pool: Arc::clone(&self.pool),
            residents: Residents::default(),
            data: Bound::default(),
            updates: BTreeMap::new(),
            exchanged: BTreeMap::new(),
            steps: self.steps,
            peak: 0,
            spilled: Spilled::default(),
            beside: 0,
            recorder: Arc::clone(&self.recorder),
            schedules: Schedules::default(),
            rate: None,
            restored: BTreeMap::new(),
            held: vec![],
            token: self.token.clone(),
            began: self.began,
            watch: self.watch,
            current: self.current,
        }
    }

    /// Counts the steps of a round, and tells of them at site 0; what was validated is told with the last one.
    fn told(
        &mut self,
        (number, team): (usize, &Team<'_, '_>),
        steps: std::ops::Range<u64>,
        losses: Vec<(f64, Option<f64>)>,
        mut validated: Option<(String, f64)>,
    ) {
        let (block, end) = (team.block, steps.end);
        let per_epoch = block.steps_per_epoch.max(1);
        for (step, (loss, rate)) in steps.zip(losses) {
            *self.updates.entry(block.optimizer.clone()).or_default() += 1;
            self.steps += 1;
            self.rate = rate;
            let last = step + 1 == end;
            let _ = self.tell(&Event::Step {
                block: number,
                step,
                epoch: step / per_epoch,
                made: self.steps,
                rows: team.count_of(step, self.comm.sites()),
                loss,
                rate,
                validated: validated.take_if(|_| last),
                seconds: self.began.elapsed().as_secs_f64(),
            });
        }
    }
}

impl Team<'_, '_> {
    /// Multiplies the weights of sums over neurons, at home: by `factor` for each dealt index of the sum.
    fn scale(&self, all: &mut Runner<'_>, factor: f64) -> Result<(), RunError> {
        if factor != 1.0 {
            for (name, indices) in &self.rounds.summed {
                let factor = factor.powi(*indices as i32);
                let array = times(&self.piece(name, all)?.to_host(), factor);
                let array = all.options.device.adopt(array.into());
                self.keep(name, array, all)?;
            }
        }
        Ok(())
    }

    /// Brings what steps read and do not change to this site.
    fn given(&mut self, all: &mut Runner<'_>) -> Result<(), RunError> {
        for (name, carried) in &all.session.carried {
            if self.rounds.learnt.contains(name)
                || carried.kind == CarriedKind::Gradient
                || !all.residents.contains(name)
            {
                continue;
            }
            let places = (all.comm, &*all.options.device);
            if let Some(whole) = all.residents.whole(name, places)? {
                self.own.residents.insert(name.clone(), whole_at_one(whole));
            }
        }
        let batch = Batch {
            step: 0,
            epoch: 0,
            update: 0,
            share: 1.0,
            rows: vec![],
            round: String::new(),
            inputs: &self.block.inputs,
        };
        let places = (all.comm, &*all.options.device);
        self.own.data.gather(&batch, &all.residents, places)
    }

    /// The rows of a step, of all sites.
    fn rows(&mut self, step: u64, sites: u32) -> Vec<u64> {
        let per_epoch = self.block.steps_per_epoch.max(1);
        let epoch = step / per_epoch;
        if self.order.0 != epoch {
            self.order = (epoch, order::of_epoch(self.block, epoch, self.own.options));
        }
        let all = self.block.batch * u64::from(sites);
        order::of_batch(&self.order.1, all, step % per_epoch).to_vec()
    }

    /// How many rows those are.
    fn count_of(&self, step: u64, sites: u32) -> u64 {
        let all = self.block.batch * u64::from(sites);
        let before = step % self.block.steps_per_epoch.max(1) * all;
        all.min(self.block.rows.saturating_sub(before))
    }

    /// Makes a round; returns the losses of its steps over all rows, and the rates.
    fn round(
        &mut self,
        all: &mut Runner<'_>,
        round: u64,
        steps: std::ops::Range<u64>,
    ) -> Result<Vec<(f64, Option<f64>)>, RunError> {
        let first = steps.start;
        self.deal(all, round)?;
        let made = self.steps(all, steps);
        agree(all.comm, made.as_ref().err().cloned())?;
        let losses = self.losses(all, &made?, first)?;
        all.peak = all.peak.max(self.own.peak + all.residents.bytes());
        self.merge(all)?;
        Ok(losses)
    }

    /// Makes steps at this site alone.
    fn steps(
        &mut self,
        all: &Runner<'_>,
        steps: std::ops::Range<u64>,
    ) -> Result<Vec<Made>, RunError> {
        let (me, sites) = (all.comm.site(), all.comm.sites());
        let first = steps.start;
        let part = me % self.rounds.parts;
        let subnet = &self.rounds.subnets[self.rounds.of_part[part as usize]];
        let mut made = vec![];
        for step in steps {
            let rows = self.rows(step, sites);
            let (start, count) = piece(rows.len() as u64, sites, me);
            let so_far = all.updates.get(&self.block.optimizer).copied().unwrap_or(0);
            let update = match self.rounds.states {
                States::Reset => step - first,
                States::Travel | States::Stay => so_far + (step - first),
            };
            let number = all.steps + (step - first);
            let batch = Batch {
                step,
                epoch: step / self.block.steps_per_epoch.max(1),
                update,
                share: 1.0,
                rows: rows[start as usize..(start + count) as usize].to_vec(),
                // Alone, a site draws what it would draw together with others.
                round: match sites {
                    1 => format!("{number}"),
                    _ => format!("{number} of {me}"),
                },
                inputs: &self.block.inputs,
            };
            let own = Steps {
                step: &subnet.step,
                apply: subnet.apply.as_ref(),
                parts: self.block.parts,
            };
            let loss = self.own.step(own, &batch)?;
            made.push(Made {
                loss,
                rate: self.own.rate,
            });
        }
        Ok(made)
    }

    /// The losses of the steps over all rows, and the rates.
    fn losses(
        &self,
        all: &Runner<'_>,
        made: &[Made],
        first: u64,
    ) -> Result<Vec<(f64, Option<f64>)>, RunError> {
        let mine: Vec<i64> = made.iter().map(|made| made.loss.to_bits() as i64).collect();
        let shared = share_numbers(all.comm, mine)?;
        let sites = all.comm.sites();
        let total = |(step, made): (u64, &Made)| {
            let rows = self.count_of(step, sites);
            let weigh = |(site, losses): (u32, &Vec<i64>)| {
                let loss = f64::from_bits(losses[(step - first) as usize] as u64);
                match sites {
                    1 => loss,
                    _ => loss * piece(rows, sites, site).1 as f64 / rows as f64,
                }
            };
            let loss = (0..sites).zip(&shared).map(weigh).sum();
            (loss, made.rate)
        };
        Ok((first..).zip(made).map(total).collect())
    }

    /// Validates the whole net, whose sums are a part's.
    fn evaluated(&mut self, all: &mut Runner<'_>) -> Result<Option<(String, f64)>, RunError> {
        self.home(all, false)?;
        let kept: Vec<(String, Resident)> = self
            .rounds
            .summed
            .iter()
            .filter_map(|(name, _)| Some((name.clone(), all.residents.get(name)?.clone())))
            .collect();
        self.scale(all, 1.0 / f64::from(self.rounds.parts))?;
        all.beside = self.own.residents.bytes();
        let validated = all.validated(self.block)?;
        all.beside = 0;
        for (name, resident) in kept {
            all.residents.insert(name, resident);
        }
        Ok(validated)
    }
}
