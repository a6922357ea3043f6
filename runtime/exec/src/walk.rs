//! The walk: one step after the other, the same at every site.
//!
//! A mistake at one site does not stop the others at once: that site goes on without computing until the
//! next step at which sites agree, and there all learn it. The lowest site's mistake wins, so that a run's
//! message does not depend on timing. Must not know what a step computes.
//!
//! ```text
//! step 0 source A   step 1 source B   step 2 agree, broadcast B, free r1   step 3 join   agree, output C
//! ```

use crate::error::RunError;
use crate::local::{self, Place};
use crate::made::{fits, not_a_number};
use crate::meet::{agree, device_bytes, meet, share_numbers};
use crate::movement::Begun;
use crate::output::{self, Held};
use crate::profile::Recorder;
use crate::resting::AtRest;
use crate::schedule::{Item, Schedule};
use crate::session::feed::Feed;
use crate::store::{Store, Tuples};
use crate::{Options, Report, Traffic};
use ein_comm::{Communicator, Counting, Moved};
use ein_data::Reader;
use ein_plan::{BlockId, Plan, RelationId, Step, Sweep};
use rayon::ThreadPool;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Walks the plan at this site. `current` is kept at the number of the step that is being taken.
pub(crate) fn walk(
    plan: &Plan,
    comm: &dyn Communicator,
    options: &Options,
    current: &AtomicUsize,
) -> Result<Report, RunError> {
    let token = meet((&[plan], &[]), &[], comm, options)?;
    let pool = options.pool(comm);
    let mut failure = pool.as_ref().err().cloned();
    if failure.is_none() && comm.site() == 0 {
        failure = output::check(plan, options, &token).err();
    }
    agree(comm, failure)?;
    let schedule = Schedule::of(plan, comm, &*options.device);
    let recorder = Recorder::new(options.note);
    let mut walker = Walker::new(plan, &schedule, comm, options, current);
    walker.recorder = Some((&recorder, 0));
    walker.steps(&pool?)?;
    let mut report = walker.report(&token)?;
    report.profile = recorder.gathered(comm)?;
    Ok(report)
}

/// How often what has begun is kept going beside steps.
const PROGRESS: Duration = Duration::from_micros(500);

/// One walk of a plan.
pub(crate) struct Walker<'a> {
    pub plan: &'a Plan,
    pub comm: Counting<&'a dyn Communicator>,
    pub options: &'a Options,
    pub current: &'a AtomicUsize,
    /// What a session gives; none outside of sessions.
    pub feed: Option<&'a Feed<'a>>,
    /// Notes what steps take, and the number of the plan in the run.
    pub recorder: Option<(&'a Recorder, u32)>,
    pub store: Store,
    pub failure: Option<RunError>,
    /// The loops that are being walked, outermost first, and the number of the round of each.
    pub rounds: Vec<(BlockId, u64)>,
    /// By loop: its rounds so far, over all rounds of the loops around it.
    pub made: Vec<u64>,
    /// By loop: the rounds that it made when it was walked last.
    pub counts: Vec<u64>,
    pub schedule: &'a Schedule,
    /// The list of elements that the next step makes a column of, as the one before it did.
    pub list: Option<Reader>,
    /// The relations that rest.
    pub at_rest: AtRest,
    /// How long all steps took.
    pub took: Duration,
    /// The exchanges that have begun and not ended.
    pub begun: Vec<Begun>,
    /// Whether the loss is known to be finite.
    pub settled: bool,
    /// Steps that were taken before their turn.
    pub ahead: BTreeSet<usize>,
    /// Whether values that are not finite are looked for.
    pub looking: bool,
    /// The first step with NaN or infinity, and with minus infinity alone, which masks hold.
    pub faulty: (Option<usize>, Option<usize>),
}

impl<'a> Walker<'a> {
    /// The walk of a plan; `current` is kept at the number of the step that is being taken.
    pub fn new(
        plan: &'a Plan,
        schedule: &'a Schedule,
        comm: &'a dyn Communicator,
        options: &'a Options,
        current: &'a AtomicUsize,
    ) -> Walker<'a> {
        Walker {
            plan,
            comm: Counting::new(comm),
            options,
            current,
            feed: None,
            recorder: None,
            store: Store::default(),
            failure: None,
            rounds: vec![],
            made: vec![0; plan.repeats.len()],
            counts: vec![0; plan.repeats.len()],
            schedule,
            list: None,
            at_rest: AtRest::new(plan, options),
            took: Duration::ZERO,
            begun: vec![],
            settled: false,
            ahead: BTreeSet::new(),
            looking: false,
            faulty: (None, None),
        }
    }

    /// Takes all steps.
    pub fn steps(&mut self, pool: &ThreadPool) -> Result<(), RunError> {
        let patience = self.options.patience;
        self.comm
            .doing("the beginning of a plan".to_owned(), patience);
        let began = Instant::now();
        self.items(&self.schedule.items, pool)?;
        self.options.device.synchronize();
        self.took = began.elapsed();
        self.comm.doing("the end of a plan".to_owned(), patience);
        agree(*self.comm.inner(), self.failure.take())?;
        self.current.store(usize::MAX, Ordering::Relaxed);
        self.comm.begin(self.plan.steps.len());
        Ok(())
    }

    /// Prints and writes the outputs.
    pub fn report(&self, token: &str) -> Result<Report, RunError> {
        let (printed, saved) =
            output::outputs(self.plan, &self.comm, self.options, self.held(), token)?;
        let (traffic, peak_bytes) = self.figures()?;
        let spilled = match self.plan.spills.is_empty() && self.plan.streams.is_empty() {
            true => vec![],
            false => self.spilled().at_all_sites(*self.comm.inner())?,
        };
        Ok(Report {
            printed,
            saved,
            traffic,
            peak_bytes,
            device_bytes: device_bytes(*self.comm.inner(), self.options)?,
            spilled,
            rounds: self.made.clone(),
            profile: None,
            stopped: None,
            unexported: None,
            begun: (0, 0),
            exchanged: vec![],
        })
    }

    /// Takes steps that sites may talk in; this thread is the site's own.
    pub fn items(&mut self, items: &[Item], pool: &ThreadPool) -> Result<(), RunError> {
        for item in items {
            match item {
                Item::Quiet(items) => {
                    if self.failure.is_none() {
                        self.beside(items, pool);
                    }
                }
                Item::Step(number) => self.movement(*number)?,
                Item::Rest(step) => self.rest(*step),
                Item::Begin(exchange) => self.begin_exchange(*exchange)?,
                Item::End(step) => self.end_exchanges(*step)?,
                Item::Settle => self.settle(pool)?,
                Item::Repeat(block, body) => {
                    self.repeat(*block, true, |walker| walker.items(body, pool))?;
                }
                Item::Alone(block, body) => self.repeat_alone(*block, body, pool)?,
            }
        }
        Ok(())
    }

    /// Takes steps at which no site talks, in the pool, while this thread keeps going what has begun.
    fn beside(&mut self, items: &[Item], pool: &ThreadPool) {
        let comm = *self.comm.inner();
        // In one process what is on its way goes on by itself, and this thread is one of the pool's.
        if self.begun.is_empty() || comm.sites() == 1 || comm.is_one_process() {
            return pool.install(|| self.quiet(items));
        }
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        pool.in_place_scope(|scope| {
            scope.spawn(|_| {
                // Dropped also in a panic, which the scope passes on.
                let _done = done;
                self.quiet(items);
            });
            while is_done.recv_timeout(PROGRESS) == Err(RecvTimeoutError::Timeout) {
                comm.progress();
            }
        });
    }

    /// Takes steps at which no site talks, in the pool, up to the first mistake.
    pub fn quiet(&mut self, items: &[Item]) {
        for item in items {
            if self.failure.is_some() {
                return;
            }
            match item {
                Item::Step(number) => self.one(*number),
                Item::Rest(step) => self.rest(*step),
                Item::Quiet(items) => self.quiet(items),
                // Within a loop of its kind, which agrees for it.
                Item::Repeat(block, body) | Item::Alone(block, body) => {
                    let walked = self.repeat(*block, false, |walker| {
                        walker.quiet(body);
                        Ok(())
                    });
                    if let Err(error) = walked {
                        self.failure = Some(error);
                    }
                }
                Item::Begin(_) | Item::End(_) | Item::Settle => {
                    let what = "sites talk where they do not";
                    self.failure = Some(RunError::internal(what));
                }
            }
        }
    }

    fn one(&mut self, number: usize) {
        let began = self.recorder.and_then(|(recorder, _)| recorder.begins());
        if self.taken(number) {
            self.note(number, began);
        }
    }

    /// Notes a step that has been taken.
    pub fn note(&self, number: usize, began: Option<Instant>) {
        if let Some((recorder, plan)) = self.recorder {
            if began.is_some() {
                self.options.device.synchronize();
            }
            recorder.ends((plan, number), began, self.store.held());
        }
    }

    /// Takes a local step, if it is to be taken where it stands.
    fn taken(&mut self, number: usize) -> bool {
        let plan = self.plan;
        let step = &plan.steps[number];
        if let Some(sweep) = self.schedule.sweeps[number] {
            let here = plan.sweeps[sweep].last() == step.result;
            if here {
                self.sweep(&plan.sweeps[sweep], step);
            }
            return here;
        }
        if self.ahead.contains(&number) {
            self.free(step);
            return true;
        }
        self.current.store(number, Ordering::Relaxed);
        self.expect_behind(number);
        ein_array::ask(usize::try_from(self.schedule.working_space[number]).unwrap_or(usize::MAX));
        match self.local(step) {
            Ok(Some(tuples)) => self.keep(number, step, tuples),
            Ok(None) => self.free(step),
            Err(error) => self.failure = Some(self.located(error, number)),
        }
        true
    }

    /// Takes the steps of a sweep together, where its last one stands.
    fn sweep(&mut self, sweep: &Sweep, last: &Step) {
        let plan = self.plan;
        let numbers: Vec<usize> = sweep.members.iter().map(|m| m.0 as usize).collect();
        self.current
            .store(last.result.0 as usize, Ordering::Relaxed);
        // Where values are looked for that are not finite, what passes is held while it is looked at.
        let kept = numbers
            .iter()
            .map(|n| self.looking || self.options.check_nan || !self.schedule.passing[*n]);
        let kept: Vec<bool> = kept.collect();
        let (old, mut taken) = self.succeeded(sweep);
        match local::sweep(&self.place(), sweep, &kept, old, &self.schedule.kernels) {
            Ok(made) => {
                for (number, tuples) in numbers.into_iter().zip(made) {
                    if let Some(tuples) = tuples
                        && self.failure.is_none()
                    {
                        let step = &plan.steps[number];
                        if let Some(addresses) = taken.remove(&step.result) {
                            self.store.forget(addresses, &tuples);
                        }
                        self.hold(number, step, tuples);
                        if self.schedule.passing[number] {
                            self.store.free(step.result.into());
                        }
                    }
                }
                self.free(last);
            }
            Err((member, error)) => self.failure = Some(self.located(error, numbers[member])),
        }
    }

    /// After how long a site that waits says for whom; nothing where there is nobody to wait for.
    pub fn patience(&self) -> Option<Duration> {
        self.options.patience.filter(|_| self.comm.sites() > 1)
    }

    /// Comes to so many steps, from this one on, at which sites talk, and agrees with them that none has failed.
    pub fn enter(&mut self, first: usize, count: usize) -> Result<(), RunError> {
        self.current.store(first, Ordering::Relaxed);
        self.waits_for(first, count);
        let comm = *self.comm.inner();
        // With `check_nan` any step may fail.
        let checks = &self.schedule.checks[first..first + count];
        if self.options.check_nan || checks.contains(&true) {
            agree(comm, self.failure.take())?;
        } else if let Some(error) = self.failure.take() {
            // Nothing was to fail here, so nobody asks.
            comm.abort(&error.message);
            return Err(error);
        }
        Ok(())
    }

    /// Says which steps are waited for.
    pub fn waits_for(&self, first: usize, count: usize) {
        let patience = self.patience();
        if patience.is_some() {
            let others = match count {
                1 => String::new(),
                more => format!(" and {} more", more - 1),
            };
            let what = format!("{}{others}", self.described(first));
            self.comm.doing(what, patience);
        }
    }

    /// `step 7, `W` (model.ein:5)`.
    fn described(&self, number: usize) -> String {
        let step = &self.plan.steps[number];
        let file = self.plan.files.get(step.origin.file as usize);
        let place = file.map_or(String::new(), |file| {
            format!(" ({file}:{})", step.origin.line)
        });
        format!("step {number}, `{}`{place}", step.tensor)
    }

    /// An error with the step and the rounds in which it happened.
    pub fn located(&self, error: RunError, number: usize) -> RunError {
        let names = self.rounds.iter().map(|(block, round)| {
            let name = self.plan.repeat(*block).block.name.as_str();
            (name, *round)
        });
        error.in_step(self.plan, number).in_rounds(names)
    }

    pub fn place(&self) -> Place<'_> {
        Place {
            plan: self.plan,
            site: self.comm.site(),
            store: &self.store,
            device: &*self.options.device,
        }
    }

    /// The relations of this site, in memory and at rest.
    pub fn held(&self) -> Held<'_> {
        Held {
            store: &self.store,
            at_rest: &self.at_rest,
        }
    }

    pub fn tuples(&self, relation: RelationId) -> Result<&Tuples, RunError> {
        self.store
            .get(relation)
            .ok_or_else(|| RunError::internal(format!("r{} is used after its end", relation.0)))
    }

    /// Checks what a step made, keeps it, and frees what is not needed any more.
    pub fn keep(&mut self, number: usize, step: &Step, tuples: Tuples) {
        self.hold(number, step, tuples);
        if self.failure.is_none() {
            self.free(step);
        }
    }

    pub fn hold(&mut self, number: usize, step: &Step, tuples: Tuples) {
        match self.examined(number, step, &tuples) {
            Ok(()) => self.store.insert(step.result.into(), tuples),
            Err(error) => self.failure = Some(self.located(error, number)),
        }
    }

    /// Checks what a step made, and looks at its values where that is asked for.
    pub fn examined(
        &mut self,
        number: usize,
        step: &Step,
        tuples: &Tuples,
    ) -> Result<(), RunError> {
        fits(step, tuples)?;
        if self.looking && self.schedule.of_loss[number] {
            self.look(number, tuples);
        }
        match self.options.check_nan {
            true => not_a_number(step, tuples).map_or(Ok(()), Err),
            false => Ok(()),
        }
    }

    /// Frees what a step frees, unless an exchange ends with it.
    pub fn free(&mut self, step: &Step) {
        if !self.schedule.ends[step.result.0 as usize] {
            self.free_all(&step.frees);
        }
    }

    pub fn free_all(&mut self, relations: &[RelationId]) {
        for relation in relations {
            self.store.free((*relation).into());
            self.at_rest.close(*relation);
        }
    }

    /// What all sites moved and held, known at every site.
    fn figures(&self) -> Result<(Traffic, Vec<u64>), RunError> {
        let steps = self.plan.steps.len();
        let mut mine = vec![0; 2 * (steps + 1) + 1];
        for (tag, moved) in self.comm.moved() {
            mine[2 * tag] = moved.floats as i64;
            mine[2 * tag + 1] = moved.bytes as i64;
        }
        mine[2 * (steps + 1)] = self.store.peak() as i64;
        let all = share_numbers(*self.comm.inner(), mine)?;
        let sum = |tag: usize| {
            let mut total = Moved::default();
            for site in &all {
                total += Moved {
                    floats: site[2 * tag] as u64,
                    bytes: site[2 * tag + 1] as u64,
                };
            }
            total
        };
        let traffic = Traffic {
            steps: (0..steps).map(sum).collect(),
            outputs: sum(steps),
        };
        let peak = all.iter().map(|site| site[2 * (steps + 1)] as u64);
        Ok((traffic, peak.collect()))
    }
}
