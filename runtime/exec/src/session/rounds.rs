//! Rounds: every site makes some steps by itself, on its own rows and its own neurons, then the sites exchange what they have learnt.
//!
//! Between rounds the whole net is nowhere: what counts the neurons of one layer goes from the sites that had them to those that get them,
//! weights between two layers rest at home in pieces, everything else is averaged. To evaluate, and for a checkpoint, everything is taken home.
//! Must not know what a step computes, nor how blocks are sent.
//!
//! ```text
//! round 3 of train.1: deal, 10 steps at every site, average b2, put Wl back; validate; round 4: …
//! ```

use super::average::{mean, times};
use super::blocks::{Dealt, Rest, moved};
use super::deal::Deal;
use super::feed::{Batch, Data as Bound};
use super::resident::{Resident, Residents};
use super::{Block, Event, Rounds, Runner, States, order};
use crate::error::RunError;
use crate::meet::share_numbers;
use crate::profile::{Note, Recorder};
use crate::walk::agree;
use ein_array::Array;
use ein_comm::{Communicator, Counting, in_process};
use ein_plan::relation::{KeyDim, piece};
use ein_plan::{ArrayDim, ArrayType, DType, Mesh, Placement, RelationType};
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
            own: Runner {
                session: self.session,
                comm: alone,
                options: self.options,
                pool: Arc::clone(&self.pool),
                residents: Residents::default(),
                data: Bound::default(),
                updates: BTreeMap::new(),
                exchanged: BTreeMap::new(),
                steps: self.steps,
                peak: 0,
                beside: 0,
                // Steps of a site's own are no steps of the session's plans.
                recorder: Recorder::new(Note::default()),
                rate: None,
                restored: BTreeMap::new(),
                token: self.token.clone(),
                began: self.began,
                watch: self.watch,
                current: self.current,
            },
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
            team.deal(self, round)?;
            let made = team.steps(self, step..end);
            agree(self.comm, made.as_ref().err().cloned())?;
            let losses = team.losses(self, &made?, step)?;
            self.peak = self.peak.max(team.own.peak + self.residents.bytes());
            team.merge(self)?;
            let due = |every: super::Every| (step..end).any(|step| every.due(step, per_epoch));
            let validates = block
                .validate
                .as_ref()
                .is_some_and(|(_, _, every)| due(*every));
            let mut validated = None;
            if validates {
                validated = team.evaluated(self)?;
            }
            for (step, (loss, rate)) in (step..end).zip(losses) {
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
        for (name, own) in team.exchanged {
            let key = (number, name);
            self.exchanged.insert(key, own);
        }
        if signal.is_none() {
            self.estimate(block)?;
        }
        Ok(signal)
    }
}

impl Team<'_, '_> {
    /// Multiplies the weights of sums over neurons, at home.
    fn scale(&self, all: &mut Runner<'_>, factor: f64) -> Result<(), RunError> {
        if factor != 1.0 {
            for name in &self.rounds.summed {
                let array = times(&*self.piece(name, all)?, factor);
                self.keep(name, Arc::new(array), all)?;
            }
        }
        Ok(())
    }

    /// A tensor that is dealt.
    fn dealt(&self, name: &str) -> Option<Dealt> {
        let carried = self.own.session.carried.get(name)?;
        let dims = self.rounds.dealt.get(name)?.clone();
        Some(Dealt {
            dtype: carried.dtype,
            shape: carried.shape.clone(),
            dims,
        })
    }

    /// Whether it is a state of the optimizer.
    fn is_state(&self, name: &str) -> bool {
        let carried = self.own.session.carried.get(name);
        carried.is_some_and(|carried| carried.saved && !carried.model)
    }

    /// Brings what steps read and do not change to this site.
    fn given(&mut self, all: &mut Runner<'_>) -> Result<(), RunError> {
        for (name, carried) in &all.session.carried {
            if self.rounds.learnt.contains(name) || carried.anew || !all.residents.contains(name) {
                continue;
            }
            if let Some(whole) = all.residents.whole(name, all.comm)? {
                self.own
                    .residents
                    .insert(name.clone(), whole_at_one(Arc::new(whole)));
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
        self.own.data.gather(&batch, &all.residents, all.comm)
    }

    /// What a tensor rests like at home, whole at every site or in pieces.
    fn at_home(&self, name: &str, all: &Runner<'_>) -> Result<(RelationType, Mesh), RunError> {
        let carried = self.own.session.carried.get(name);
        let carried =
            carried.ok_or_else(|| RunError::internal(format!("`{name}` is not carried")))?;
        let mesh = Mesh::row(all.comm.sites());
        let mut kind = whole_kind(&carried.shape, carried.dtype, &mesh);
        if let Some(dealt) = self.dealt(name) {
            let (dim, _) = dealt.dims[0];
            kind.keys.push(KeyDim {
                name: format!("i{}", dim + 1),
                extent: dealt.shape[dim],
                pieces: all.comm.sites(),
                axes: vec![0],
            });
            kind.array.dims[dim].cut = Some(0);
            kind.placement = Placement::part(0);
        }
        Ok((kind, mesh))
    }

    /// This site's piece of a tensor at home; what nobody has yet begins.
    fn piece(&self, name: &str, all: &mut Runner<'_>) -> Result<Arc<Array>, RunError> {
        let (kind, mesh) = self.at_home(name, all)?;
        if !all.residents.contains(name) {
            let made = all.made(name, &kind, &mesh);
            agree(all.comm, made.as_ref().err().cloned())?;
            let resident = Resident {
                kind: kind.clone(),
                mesh: mesh.clone(),
                tuples: made?,
            };
            all.residents.insert(name.to_owned(), resident);
        }
        all.residents.place(name, &kind, &mesh, all.comm)?;
        let resident = all.residents.get(name);
        let array = resident.and_then(|resident| resident.tuples.values().flatten().next());
        array
            .cloned()
            .ok_or_else(|| RunError::internal(format!("`{name}` has no piece here")))
    }

    /// Puts this site's piece of a tensor at home.
    fn keep(&self, name: &str, array: Arc<Array>, all: &mut Runner<'_>) -> Result<(), RunError> {
        let (kind, mesh) = self.at_home(name, all)?;
        let key = vec![all.comm.site(); kind.keys.len()];
        let resident = Resident {
            kind,
            mesh,
            tuples: [(key, vec![array])].into(),
        };
        all.residents.insert(name.to_owned(), resident);
        all.peak = all
            .peak
            .max(all.residents.bytes() + self.own.residents.bytes());
        Ok(())
    }

    /// This site's block, or all, of what steps have changed.
    fn block_of(&self, name: &str) -> Result<Arc<Array>, RunError> {
        let missing = || RunError::internal(format!("`{name}` is not at its site"));
        let resident = self.own.residents.get(name).ok_or_else(missing)?;
        if resident.kind.keys.is_empty() {
            let array = resident.tuples.values().flatten().next();
            return array.cloned().ok_or_else(missing);
        }
        let whole = self.own.residents.whole(name, self.own.comm)?;
        whole.map(Arc::new).ok_or_else(missing)
    }

    /// Hands every site its neurons for a round.
    fn deal(&mut self, all: &mut Runner<'_>, round: u64) -> Result<(), RunError> {
        let rounds = self.rounds;
        let next = Deal::of(
            &rounds.neurons,
            rounds.parts,
            &self.block.name,
            round,
            all.options.seed,
        );
        if self.deal.is_some() {
            // What was taken home to be evaluated is a copy.
            for name in &rounds.learnt {
                if rounds.dealt.get(name).is_none_or(|dims| dims.len() == 1) {
                    all.residents.remove(name);
                }
            }
        }
        for name in &rounds.learnt {
            if self.is_state(name) && rounds.states == States::Reset {
                self.own.residents.remove(name);
                all.residents.remove(name);
                continue;
            }
            let array = match (self.dealt(name), &self.deal) {
                (Some(dealt), deal) => {
                    // Between two layers of neurons a block has a part of every row: the rows are at home.
                    let from = match deal {
                        Some(deal) if dealt.dims.len() == 1 => Rest::Dealt(deal),
                        _ => Rest::Home,
                    };
                    let mine = match from {
                        Rest::Home => self.piece(name, all)?,
                        Rest::Dealt(_) => self.block_of(name)?,
                    };
                    let counting = Counting::new(all.comm);
                    let block = moved(&dealt, (from, Rest::Dealt(&next)), &mine, None, &counting)?;
                    self.count(name, &block, &counting);
                    // What is sent and what arrives is no more than a block each.
                    let transient = 2 * block.data().bytes().len() + mine.data().bytes().len();
                    let held = all.residents.bytes() + self.own.residents.bytes();
                    all.peak = all.peak.max(held + transient as u64);
                    if dealt.dims.len() == 1 {
                        all.residents.remove(name);
                    }
                    Arc::new(block)
                }
                (None, None) => {
                    let whole = self.piece(name, all)?;
                    all.residents.remove(name);
                    whole
                }
                (None, Some(_)) => continue,
            };
            self.own.residents.insert(name.clone(), whole_at_one(array));
        }
        self.deal = Some(next);
        Ok(())
    }

    fn count(&mut self, name: &str, block: &Array, counting: &Counting<&dyn Communicator>) {
        let entry = self.exchanged.entry(name.to_owned()).or_default();
        entry.handed += block.data().len() as u64;
        entry.sent += counting
            .moved()
            .values()
            .map(|moved| moved.floats)
            .sum::<u64>();
    }

    /// The rows of a step, of all sites.
    fn rows(&mut self, step: u64, sites: u32) -> Vec<u64> {
        let per_epoch = self.block.steps_per_epoch.max(1);
        let epoch = step / per_epoch;
        if self.order.0 != epoch {
            self.order = (
                epoch,
                order::of_epoch(self.block, epoch, self.own.options.seed),
            );
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
                inputs: &subnet.inputs,
            };
            let loss = match &subnet.apply {
                None => self.own.whole(subnet, &batch)?,
                Some(apply) => self.own.parts(subnet, apply, &batch)?,
            };
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

    /// Averages what several sites have, and takes weights between two layers of neurons home.
    fn merge(&mut self, all: &mut Runner<'_>) -> Result<(), RunError> {
        for name in &self.rounds.learnt {
            let stays = self.rounds.states != States::Travel && self.is_state(name);
            if !stays {
                self.agree_on(name, all, false)?;
            }
        }
        Ok(())
    }

    /// Averages one tensor over the sites that have it, and takes it home if it is between two layers.
    /// `gathering`: it is done to evaluate or save, not for a round.
    fn agree_on(
        &mut self,
        name: &str,
        all: &mut Runner<'_>,
        gathering: bool,
    ) -> Result<(), RunError> {
        let Some(deal) = &self.deal else {
            return Ok(());
        };
        let (me, sites) = (all.comm.site(), all.comm.sites());
        let dealt = self.dealt(name);
        let group = match dealt {
            Some(_) => deal.sites_of(deal.part_of(me), sites),
            None => (0..sites).collect(),
        };
        let counting = Counting::new(all.comm);
        let mut array = self.block_of(name)?;
        // Every site takes part if any has a companion.
        let shared = dealt.is_none() || deal.parts() < sites;
        if sites > 1 && shared {
            array = mean(&array, &group, &counting)?;
        }
        if let Some(dealt) = &dealt
            && dealt.dims.len() > 1
        {
            let onto = self.piece(name, all)?;
            let (from, to) = (Rest::Dealt(deal), Rest::Home);
            let home = moved(dealt, (from, to), &array, Some((*onto).clone()), &counting)?;
            self.keep(name, Arc::new(home), all)?;
        }
        let sent: u64 = counting.moved().values().map(|moved| moved.floats).sum();
        let entry = self.exchanged.entry(name.to_owned()).or_default();
        match (gathering, &dealt) {
            (true, _) => entry.gathered += sent,
            (false, Some(_)) => entry.sent += sent,
            (false, None) => {
                entry.sent += sent;
                entry.handed += array.data().len() as u64;
            }
        }
        self.own
            .residents
            .insert(name.to_owned(), whole_at_one(array));
        Ok(())
    }

    /// Takes the whole net home. `states`: also what the optimizer keeps.
    fn home(&mut self, all: &mut Runner<'_>, states: bool) -> Result<(), RunError> {
        let Some(deal) = self.deal.clone() else {
            return Ok(());
        };
        for name in &self.rounds.learnt {
            let state = self.is_state(name);
            if state && !states {
                continue;
            }
            if state && self.rounds.states == States::Reset {
                // The next round begins with new ones, and so does a run that continues.
                all.residents.remove(name);
                self.piece(name, all)?;
                continue;
            }
            if state && self.rounds.states == States::Stay {
                self.agree_on(name, all, true)?;
            }
            let array = match self.dealt(name) {
                None => self.block_of(name)?,
                Some(dealt) if dealt.dims.len() > 1 => continue,
                Some(dealt) => {
                    let mine = self.block_of(name)?;
                    let counting = Counting::new(all.comm);
                    let home = moved(
                        &dealt,
                        (Rest::Dealt(&deal), Rest::Home),
                        &mine,
                        None,
                        &counting,
                    )?;
                    let gathered: u64 = counting.moved().values().map(|moved| moved.floats).sum();
                    self.exchanged.entry(name.clone()).or_default().gathered += gathered;
                    Arc::new(home)
                }
            };
            self.keep(name, array, all)?;
        }
        Ok(())
    }

    /// Validates the whole net, whose sums are a part's.
    fn evaluated(&mut self, all: &mut Runner<'_>) -> Result<Option<(String, f64)>, RunError> {
        self.home(all, false)?;
        let kept: Vec<(String, Resident)> = self
            .rounds
            .summed
            .iter()
            .filter_map(|name| Some((name.clone(), all.residents.get(name)?.clone())))
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

/// A relation that every site of a mesh has whole.
fn whole_kind(shape: &[u64], dtype: DType, mesh: &Mesh) -> RelationType {
    let dims = shape.iter().map(|extent| ArrayDim {
        extent: *extent,
        cut: None,
    });
    RelationType {
        keys: vec![],
        array: ArrayType {
            dims: dims.collect(),
            columns: vec![dtype],
        },
        placement: Placement::all(mesh),
    }
}

/// An array at a site that is alone.
fn whole_at_one(array: Arc<Array>) -> Resident {
    let mesh = Mesh::row(1);
    let shape: Vec<u64> = array.shape().iter().map(|extent| *extent as u64).collect();
    Resident {
        kind: whole_kind(&shape, array.dtype(), &mesh),
        mesh,
        tuples: [(vec![], vec![array])].into(),
    }
}
