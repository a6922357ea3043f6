//! Sessions: several plans walked one after the other, between which relations stay at the sites. This is how training runs.
//!
//! A step's plan reads what the session carries (params, states of optimizers) and rows of the data, and gives outputs that
//! replace what it carries, once the loss is known to be finite. Every site walks the same plans in the same
//! order. Must not know compilers, gradients or rules.
//!
//! ```text
//! step 0: rows 17 3 60 … of X, y; W -> loss 2.31, W_next      step 1: W is what W_next was
//! ```

mod average;
mod blocks;
mod boxes;
mod deal;
pub(crate) mod feed;
mod files;
mod finite;
mod keep;
mod order;
mod resident;
mod restore;
mod rounds;
mod steps;
mod types;
mod volume;
mod walked;

use crate::error::{ErrorKind, RunError};
use crate::meet::{agree, device_bytes, meet, raise, share_numbers};
use crate::profile::Recorder;
use crate::resting::Spilled;
use crate::schedule::{Schedule, Schedules};
use crate::store::Tuples;
use crate::walk::Walker;
use crate::{Options, Report};
use ein_array::Data;
use ein_comm::Communicator;
use ein_data::Reader;
use ein_data::checkpoint;
use ein_plan::source::fed::RATE;
use ein_plan::{Operation, Plan, Source};
use feed::{Batch, Data as Bound, Feed};
use resident::Residents;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use steps::Steps;

pub use blocks::slab;
pub use ein_plan::training::{Carried, CarriedKind, Checkpoints, Every, States};
pub use keep::{Begin, Keeping};
pub use rounds::Exchanged;
pub use types::{Block, Event, Rounds, Session, Watch};
pub use volume::stated;

pub(crate) use resident::Resident;
use walked::Walked;

/// Runs a session as one site of a communicator.
pub(crate) fn session(
    session: &Session,
    comm: &dyn Communicator,
    options: &Options,
    watch: &Watch<'_>,
    current: &AtomicUsize,
) -> Result<Report, RunError> {
    let plans: Vec<&Plan> = session.programs().map(AsRef::as_ref).collect();
    let own: Vec<&Plan> = session.own_programs().map(AsRef::as_ref).collect();
    let inputs = session.blocks.iter().flat_map(|block| &block.inputs);
    let fed: Vec<&Source> = inputs.map(|input| &input.source).collect();
    let token = meet((&plans, &own), &fed, comm, options)?;
    let pool = options.pool(comm);
    agree(comm, pool.as_ref().err().cloned())?;
    let mut runner = Runner {
        session,
        comm,
        options,
        pool: Arc::new(pool?),
        residents: Residents::default(),
        data: Bound::default(),
        updates: BTreeMap::new(),
        exchanged: BTreeMap::new(),
        steps: 0,
        peak: 0,
        spilled: Spilled::default(),
        beside: 0,
        rate: None,
        restored: BTreeMap::new(),
        held: vec![],
        token,
        began: Instant::now(),
        watch,
        current,
        recorder: Arc::new(Recorder::new(options.note)),
        schedules: Schedules::default(),
    };
    if let Some(last) = &session.last {
        let failure = match comm.site() {
            0 => crate::output::check(last, options, &runner.token).err(),
            _ => None,
        };
        agree(comm, failure)?;
    }
    let position = runner.begin()?;
    if let Some(plan) = &session.constants {
        let walked = runner.walk(plan, None, false)?;
        for constant in walked.kept {
            runner.residents.insert(constant.name, constant.resident);
        }
    }
    runner.began = Instant::now();
    for (number, block) in session.blocks.iter().enumerate() {
        let from = match (number as u64).cmp(&position.block) {
            std::cmp::Ordering::Less => continue,
            std::cmp::Ordering::Equal => position.step,
            std::cmp::Ordering::Greater => 0,
        };
        let signal = match &block.rounds {
            None => runner.block(number, block, from)?,
            Some(rounds) => runner.rounds((number, block), rounds, from)?,
        };
        if let Some(signal) = signal {
            return Ok(Report {
                stopped: Some((signal, runner.steps)),
                profile: runner.recorder.gathered(comm)?,
                ..Report::default()
            });
        }
    }
    // What cannot be exported is no reason to lose the outputs as well.
    let unexported = match runner.export() {
        Err(error) if error.kind != ErrorKind::Output => return Err(error),
        done => done.err(),
    };
    let mut report = Report::default();
    if let Some(plan) = &session.last {
        runner.prepare(plan, None)?;
        let feed = runner.feed(None);
        let schedule = Schedule::of(plan, comm, &*options.device);
        let mut walker = Walker::new(plan, &schedule, comm, options, current);
        walker.feed = Some(&feed);
        walker.recorder = Some((&runner.recorder, runner.number(plan)));
        walker.steps(&runner.pool)?;
        let spilled = walker.spilled();
        report = walker.report(&runner.token)?;
        runner.spilled += spilled;
    }
    report.spilled = runner.spilled.at_all_sites(comm)?;
    report.device_bytes = device_bytes(comm, options)?;
    report.unexported = unexported;
    report.exchanged = runner.exchanged()?;
    report.begun = (position.block, position.step);
    report.profile = runner.recorder.gathered(comm)?;
    raise(&mut report.peak_bytes, runner.peak, comm)?;
    Ok(report)
}

struct Runner<'a> {
    session: &'a Session,
    comm: &'a dyn Communicator,
    options: &'a Options,
    pool: Arc<rayon::ThreadPool>,
    residents: Residents,
    data: Bound,
    /// By optimizer: how many updates its states have seen.
    updates: BTreeMap<String, u64>,
    /// By block and tensor: what this site has exchanged between rounds.
    exchanged: BTreeMap<(usize, String), Exchanged>,
    /// Steps of all blocks so far.
    steps: u64,
    peak: u64,
    /// Bytes that went to disk and came back at this site in all plans so far, and the time that took.
    spilled: Spilled,
    /// Bytes of what this site has for steps of its own, while all walk a plan together.
    beside: u64,
    /// The rate of the last step.
    rate: Option<f64>,
    /// What is read of the checkpoint that is continued.
    restored: BTreeMap<String, Reader>,
    /// The folders of checkpoints that other runs are kept out of (site 0).
    held: Vec<checkpoint::Held>,
    /// Tells this run's files from those of others.
    token: String,
    began: Instant,
    watch: &'a Watch<'a>,
    current: &'a AtomicUsize,
    recorder: Arc<Recorder>,
    schedules: Schedules,
}

impl Runner<'_> {
    /// What all sites have exchanged between rounds.
    fn exchanged(&self) -> Result<Vec<(usize, String, Exchanged)>, RunError> {
        let own = self.exchanged.values();
        let mine = own.flat_map(|own| [own.handed, own.sent, own.gathered].map(|n| n as i64));
        let all = share_numbers(self.comm, mine.collect())?;
        let names = self.exchanged.keys().enumerate();
        let total = |number: usize| all.iter().map(|site| site[number] as u64).sum();
        let found = names.map(|(at, (block, name))| {
            let exchanged = Exchanged {
                handed: total(3 * at),
                sent: total(3 * at + 1),
                gathered: total(3 * at + 2),
            };
            (*block, name.clone(), exchanged)
        });
        Ok(found.collect())
    }

    /// Makes the steps of a block from step `from` on; returns the signal that ended it early.
    fn block(
        &mut self,
        number: usize,
        block: &Block,
        from: u64,
    ) -> Result<Option<usize>, RunError> {
        let per_epoch = block.steps_per_epoch.max(1);
        let mut order = vec![];
        for step in from..block.steps {
            let (epoch, within) = (step / per_epoch, step % per_epoch);
            if within == 0 || order.is_empty() {
                order = order::of_epoch(block, epoch, self.options);
            }
            let rows = order::of_batch(&order, block.batch, within);
            let update = self.updates.get(&block.optimizer).copied().unwrap_or(0);
            let batch = Batch {
                step,
                epoch,
                update,
                share: 1.0,
                rows: rows.to_vec(),
                round: format!("{}", self.steps),
                inputs: &block.inputs,
            };
            let loss = self.step(Steps::of(block), &batch)?;
            *self.updates.entry(block.optimizer.clone()).or_default() += 1;
            self.steps += 1;
            let mut validated = None;
            if let Some(validate) = &block.validate
                && validate.every.due(step, per_epoch)
            {
                validated = self.validated(block)?;
            }
            // The run does not end because nobody could note that it goes on.
            let _ = self.tell(&Event::Step {
                block: number,
                step,
                epoch,
                made: self.steps,
                rows: batch.rows.len() as u64,
                loss,
                rate: self.rate,
                validated,
                seconds: self.began.elapsed().as_secs_f64(),
            });
            let signal = self.checkpoint(number, block, step)?;
            if signal.is_some() {
                return Ok(signal);
            }
        }
        self.estimate(block)?;
        Ok(None)
    }

    /// Validates, if the block says what.
    fn validated(&mut self, block: &Block) -> Result<Option<(String, f64)>, RunError> {
        let Some(validate) = &block.validate else {
            return Ok(None);
        };
        self.estimate(block)?;
        let walked = self.walk(&validate.program, None, false)?;
        Ok(Some((validate.name.clone(), first_number(&walked))))
    }

    /// Estimates the statistics that modules keep, over some rows of the data that depend on the seed and the block alone.
    fn estimate(&mut self, block: &Block) -> Result<(), RunError> {
        let Some((count, plan)) = &block.statistics else {
            return Ok(());
        };
        let order = order::of_statistics(block, self.options);
        let batch = Batch {
            step: 0,
            epoch: 0,
            update: 0,
            share: 1.0,
            rows: order[..(*count as usize).min(order.len())].to_vec(),
            round: "statistics".into(),
            inputs: &block.inputs,
        };
        let walked = self.walk(plan, Some(&batch), false)?;
        self.take(walked);
        Ok(())
    }

    /// Tells of an event, at site 0.
    fn tell(&self, event: &Event) -> Result<(), RunError> {
        match self.comm.site() {
            0 => (self.watch)(event),
            _ => Ok(()),
        }
    }

    /// Makes a step; the loss is known at site 0.
    fn step(&mut self, steps: Steps<'_>, batch: &Batch<'_>) -> Result<f64, RunError> {
        match steps.apply {
            None => self.whole(steps, batch),
            Some(apply) => self.parts(steps, apply, batch),
        }
    }

    /// A step in one go.
    fn whole(&mut self, steps: Steps<'_>, batch: &Batch<'_>) -> Result<f64, RunError> {
        let plan = steps.planned(batch.rows.len())?;
        let walked = self.walk(plan, Some(batch), false)?;
        let loss = first_number(&walked);
        self.finite(plan, batch, (loss, walked.settled))?;
        self.take(walked);
        Ok(loss)
    }

    /// A step in parts, whose gradients are averaged by rows.
    fn parts(
        &mut self,
        steps: Steps<'_>,
        apply: &Arc<Plan>,
        batch: &Batch<'_>,
    ) -> Result<f64, RunError> {
        for (name, carried) in &self.session.carried {
            if carried.kind == CarriedKind::Gradient {
                self.residents.remove(name);
            }
        }
        let all = batch.rows.len() as u64;
        let mut loss = 0.0;
        for part in 0..steps.parts {
            let (start, count) = ein_plan::relation::piece(all, steps.parts as u32, part as u32);
            if count == 0 {
                continue;
            }
            let share = count as f64 / all as f64;
            let batch = Batch {
                share,
                rows: batch.rows[start as usize..(start + count) as usize].to_vec(),
                round: format!("{}.{part}", batch.round),
                ..batch.clone()
            };
            let plan = steps.planned(batch.rows.len())?;
            let walked = self.walk(plan, Some(&batch), false)?;
            let mine = first_number(&walked);
            self.finite(plan, &batch, (mine, walked.settled))?;
            loss += share * mine;
            self.take(walked);
        }
        let walked = self.walk(apply, Some(batch), false)?;
        self.take(walked);
        Ok(loss)
    }

    /// What a plan gives takes the place of what was carried.
    fn take(&mut self, walked: Walked) {
        for kept in walked.kept {
            if kept.name == RATE {
                // Known at site 0 alone, if at all.
                let first = kept.resident.tuples.values().flatten().next();
                self.rate = first.map(|rate| rate.to_host().data().get(0).as_f64());
            }
            if let Some(name) = kept.replaces {
                self.residents.insert(name, kept.resident);
            }
        }
    }

    fn walk(
        &mut self,
        plan: &Arc<Plan>,
        batch: Option<&Batch<'_>>,
        looking: bool,
    ) -> Result<Walked, RunError> {
        self.prepare(plan, batch)?;
        if let Some(batch) = batch {
            let opened = self.data.open(batch, self.options);
            agree(self.comm, opened.err())?;
            let places = (self.comm, &*self.options.device);
            self.data.gather(batch, &self.residents, places)?;
        }
        let device = &*self.options.device;
        let schedule = self.schedules.of(plan, self.comm, device);
        let mut handed = match looking {
            true => BTreeMap::new(),
            false => self.handed(plan, &schedule),
        };
        let mut feed = self.feed(batch);
        let tuples = |(name, (_, tuples)): (&String, &mut (_, Tuples))| {
            (name.clone(), std::mem::take(tuples))
        };
        feed.handed = Mutex::new(handed.iter_mut().map(tuples).collect());
        let mut walker = Walker::new(plan, &schedule, self.comm, self.options, self.current);
        walker.feed = Some(&feed);
        walker.recorder = Some((&self.recorder, self.number(plan)));
        walker.looking = looking;
        walker.steps(&self.pool)?;
        let mut walked = walker.walked()?;
        for (name, (mut resident, _)) in handed {
            match walked.left.remove(&name) {
                Some(tuples) => resident.tuples = tuples,
                // It is lost: what lies there is the next one.
                None => resident = walked.replacing(&name)?.clone(),
            }
            self.residents.insert(name, resident);
        }
        let others = self.residents.bytes_beside(plan);
        self.peak = self.peak.max(walked.peak + others + self.beside);
        self.spilled += walked.spilled;
        Ok(walked)
    }

    /// What a plan may write over of what is carried, by name, taken from what is there.
    fn handed(&mut self, plan: &Plan, schedule: &Schedule) -> BTreeMap<String, (Resident, Tuples)> {
        let old = schedule.successions.values().map(|s| plan.step(s.old));
        let old = old.filter_map(|step| match &step.operation {
            Operation::Source { name, .. } => {
                let device = &*self.options.device;
                Some((name.clone(), self.residents.hand_over(name, device)?))
            }
            _ => None,
        });
        old.collect()
    }

    /// The number of a plan among the session's.
    fn number(&self, plan: &Arc<Plan>) -> u32 {
        let mut plans = self.session.all_programs();
        let number = plans.position(|known| Arc::ptr_eq(known, plan));
        number.unwrap_or(0) as u32
    }

    fn feed<'b>(&'b self, batch: Option<&'b Batch<'b>>) -> Feed<'b> {
        Feed {
            residents: &self.residents,
            handed: Mutex::default(),
            data: &self.data,
            batch,
        }
    }

    /// Makes sure that what a plan reads of what is carried is there, and where the plan reads it.
    fn prepare(&mut self, plan: &Plan, batch: Option<&Batch<'_>>) -> Result<(), RunError> {
        for (number, step) in plan.steps.iter().enumerate() {
            let Operation::Source { name, source } = &step.operation else {
                continue;
            };
            if !source.is_given() {
                continue;
            }
            // Rows are read of all of a constant, and of the data also where another block carries all of the same input.
            if batch.is_some_and(|batch| batch.reads_rows_of(name)) {
                continue;
            }
            if self.residents.contains(name) {
                let places = (self.comm, &*self.options.device);
                self.residents.place(name, &step.kind, &plan.mesh, places)?;
                continue;
            }
            if !self.session.carried.contains_key(name) {
                continue;
            }
            let made = self.made(name, &step.kind, &plan.mesh);
            let failure = made.as_ref().err().cloned();
            agree(self.comm, failure.map(|error| error.in_step(plan, number)))?;
            self.residents.insert(
                name.clone(),
                Resident {
                    kind: step.kind.clone(),
                    mesh: plan.mesh.clone(),
                    tuples: made?,
                },
            );
        }
        Ok(())
    }
}

/// The first output, a scalar, at site 0; elsewhere NaN, which nobody looks at.
fn first_number(walked: &Walked) -> f64 {
    walked.printed.first().map_or(f64::NAN, |printed| {
        let data: &Data = printed.values.data();
        match data.is_empty() {
            true => f64::NAN,
            false => data.get(0).as_f64(),
        }
    })
}
