//! What sites exchange between rounds, tensor by tensor.
//!
//! At home a tensor that is dealt lies in pieces, and all others whole at every site; in a round every site has the blocks of its own neurons.
//! Must not know steps.
//!
//! ```text
//! W1 [64, 512] dealt by dim 1: home, 128 columns a site -> round 0, the columns of a site's neurons -> round 1, … -> home
//! ```

use super::super::average::mean;
use super::super::blocks::{Dealt, Rest, moved, slab};
use super::super::deal::Deal;
use super::super::resident::{Resident, whole_kind};
use super::super::{CarriedKind, Runner, States};
use super::Team;
use crate::error::RunError;
use crate::meet::agree;
use ein_comm::{Communicator, Counting};
use ein_device::Buffer;
use ein_plan::relation::KeyDim;
use ein_plan::{Mesh, Placement, RelationType};

impl Team<'_, '_> {
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
    pub(super) fn is_state(&self, name: &str) -> bool {
        let carried = self.own.session.carried.get(name);
        carried.is_some_and(|carried| carried.kind == CarriedKind::State)
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
    pub(super) fn piece(&self, name: &str, all: &mut Runner<'_>) -> Result<Buffer, RunError> {
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
        let places = (all.comm, &*all.options.device);
        all.residents.place(name, &kind, &mesh, places)?;
        let resident = all.residents.get(name);
        let array = resident.and_then(|resident| resident.tuples.values().flatten().next());
        array
            .cloned()
            .ok_or_else(|| RunError::internal(format!("`{name}` has no piece here")))
    }

    /// Puts this site's piece of a tensor at home.
    pub(super) fn keep(
        &self,
        name: &str,
        array: Buffer,
        all: &mut Runner<'_>,
    ) -> Result<(), RunError> {
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
    fn block_of(&self, name: &str) -> Result<Buffer, RunError> {
        let missing = || RunError::internal(format!("`{name}` is not at its site"));
        let resident = self.own.residents.get(name).ok_or_else(missing)?;
        if resident.kind.keys.is_empty() {
            let array = resident.tuples.values().flatten().next();
            return array.cloned().ok_or_else(missing);
        }
        let places = (self.own.comm, &*self.own.options.device);
        let whole = self.own.residents.whole(name, places)?;
        whole.ok_or_else(missing)
    }

    /// Hands every site its neurons for a round.
    pub(super) fn deal(&mut self, all: &mut Runner<'_>, round: u64) -> Result<(), RunError> {
        let (rounds, device) = (self.rounds, &*all.options.device);
        let next = Deal::of(
            &rounds.neurons,
            rounds.parts,
            (&self.block.name, round),
            (all.options.seed, device),
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
                    let way = (from, Rest::Dealt(&next));
                    let block = moved(&dealt, way, &mine.to_host(), None, (&counting, device))?;
                    let block = device.adopt(block.into());
                    self.count(name, &block, &counting);
                    let made = block.bytes();
                    let on_its_way = 2 * slab(made.max(mine.bytes()));
                    let held = all.residents.bytes() + self.own.residents.bytes();
                    all.peak = all.peak.max(held + made + on_its_way);
                    if dealt.dims.len() == 1 {
                        all.residents.remove(name);
                    }
                    block
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

    fn count(&mut self, name: &str, block: &Buffer, counting: &Counting<&dyn Communicator>) {
        let entry = self.exchanged.entry(name.to_owned()).or_default();
        entry.handed += block.elements() as u64;
        entry.sent += counting
            .moved()
            .values()
            .map(|moved| moved.floats)
            .sum::<u64>();
    }

    /// Averages what several sites have, and takes weights between two layers of neurons home.
    pub(super) fn merge(&mut self, all: &mut Runner<'_>) -> Result<(), RunError> {
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
        let device = &*all.options.device;
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
            let mean = mean(&array.to_host(), &group, &counting)?;
            array = device.adopt(mean.into());
        }
        if let Some(dealt) = &dealt
            && dealt.dims.len() > 1
        {
            let onto = self.piece(name, all)?;
            all.residents.remove(name);
            let onto = onto.into_host();
            let way = (Rest::Dealt(deal), Rest::Home);
            let home = moved(
                dealt,
                way,
                &array.to_host(),
                Some(onto),
                (&counting, device),
            )?;
            let home = device.adopt(home.into());
            self.keep(name, home, all)?;
        }
        let sent: u64 = counting.moved().values().map(|moved| moved.floats).sum();
        let entry = self.exchanged.entry(name.to_owned()).or_default();
        match (gathering, &dealt) {
            (true, _) => entry.gathered += sent,
            (false, Some(_)) => entry.sent += sent,
            (false, None) => {
                entry.sent += sent;
                entry.handed += array.elements() as u64;
            }
        }
        self.own
            .residents
            .insert(name.to_owned(), whole_at_one(array));
        Ok(())
    }

    /// Takes the whole net home. `states`: also what the optimizer keeps.
    pub(super) fn home(&mut self, all: &mut Runner<'_>, states: bool) -> Result<(), RunError> {
        let Some(deal) = self.deal.clone() else {
            return Ok(());
        };
        let device = &*all.options.device;
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
                    let way = (Rest::Dealt(&deal), Rest::Home);
                    let home = moved(&dealt, way, &mine.to_host(), None, (&counting, device))?;
                    let gathered: u64 = counting.moved().values().map(|moved| moved.floats).sum();
                    self.exchanged.entry(name.clone()).or_default().gathered += gathered;
                    device.adopt(home.into())
                }
            };
            self.keep(name, array, all)?;
        }
        Ok(())
    }
}

/// An array at a site that is alone.
pub(super) fn whole_at_one(array: Buffer) -> Resident {
    let mesh = Mesh::row(1);
    let shape: Vec<u64> = array.shape().iter().map(|extent| *extent as u64).collect();
    Resident {
        kind: whole_kind(&shape, array.dtype(), &mesh),
        mesh,
        tuples: [(vec![], vec![array])].into(),
    }
}
