//! The walk: one step after the other, the same at every site.
//!
//! A mistake at one site does not stop the others at once: that site goes on without computing until the
//! next step at which sites talk, and there all learn it. The lowest site's mistake wins, so that a run's
//! message does not depend on timing. Must not know what a step computes.
//!
//! ```text
//! step 0 source A   step 1 source B   step 2 agree, broadcast B, free r1   step 3 join   agree, output C
//! ```

use crate::error::{ErrorKind, RunError};
use crate::local::{self, Place};
use crate::output;
use crate::print::Printed;
use crate::session::{Feed, Resident};
use crate::store::{Store, Tuples};
use crate::{Options, Report, Traffic, movement, source};
use ein_array::{Array, Data};
use ein_comm::{ArrayKind, Communicator, Counting, Moved};
use ein_plan::source::fed::RATE;
use ein_plan::{DType, Operation, Plan, RelationId, Source, Step};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Walks the plan at this site. `current` is kept at the number of the step that is being taken.
pub(crate) fn walk(
    plan: &Plan,
    comm: &dyn Communicator,
    options: &Options,
    current: &AtomicUsize,
) -> Result<Report, RunError> {
    let token = meet(&[plan], comm, options)?;
    let pool = pool(options);
    let mut failure = pool.as_ref().err().cloned();
    if failure.is_none() && comm.site() == 0 {
        failure = output::check(plan, options, &token).err();
    }
    agree(comm, failure)?;
    let mut walker = Walker::new(plan, comm, options, None);
    walker.steps(&pool?, current)?;
    walker.report(&token)
}

/// The threads of a site.
pub(crate) fn pool(options: &Options) -> Result<rayon::ThreadPool, RunError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads.max(1))
        .build()
        .map_err(|error| {
            RunError::internal(format!(
                "the threads of the site cannot be started: {error}"
            ))
        })
}

/// One walk of a plan.
pub(crate) struct Walker<'a> {
    plan: &'a Plan,
    comm: Counting<&'a dyn Communicator>,
    options: &'a Options,
    feed: Option<&'a Feed<'a>>,
    store: Store,
    /// Relations that are given out; they stay to the end.
    kept: BTreeSet<RelationId>,
    failure: Option<RunError>,
    /// Whether values that are not finite are looked for.
    pub looking: bool,
    /// The first step with NaN or infinity, and with minus infinity alone, which masks hold.
    faulty: (Option<usize>, Option<usize>),
}

/// What a walk leaves for the next one.
pub(crate) struct Walked {
    /// Scalar outputs, at site 0.
    pub printed: Vec<Printed>,
    /// All other outputs, by name.
    pub kept: Vec<(String, Resident)>,
    /// The first step of this site with a value that is not finite, if such values were looked for.
    pub faulty: Option<usize>,
    /// The most bytes that this site held.
    pub peak: u64,
}

/// Ends the run at every site if one of them has failed.
pub(crate) fn agree(comm: &dyn Communicator, mine: Option<RunError>) -> Result<(), RunError> {
    match comm.agree(mine.map(|error| error.encode()))? {
        None => Ok(()),
        Some((site, text)) => Err(RunError::decode(site, &text)),
    }
}

impl<'a> Walker<'a> {
    /// The walk of a plan; `feed` is there in sessions only.
    pub fn new(
        plan: &'a Plan,
        comm: &'a dyn Communicator,
        options: &'a Options,
        feed: Option<&'a Feed<'a>>,
    ) -> Walker<'a> {
        Walker {
            plan,
            comm: Counting::new(comm),
            options,
            feed,
            store: Store::default(),
            kept: plan.outputs.iter().map(|o| o.relation).collect(),
            failure: None,
            looking: false,
            faulty: (None, None),
        }
    }

    /// Takes all steps. `current` is kept at the number of the step that is being taken.
    pub fn steps(
        &mut self,
        pool: &rayon::ThreadPool,
        current: &AtomicUsize,
    ) -> Result<(), RunError> {
        let (plan, comm) = (self.plan, *self.comm.inner());
        for (number, step) in plan.steps.iter().enumerate() {
            current.store(number, Ordering::Relaxed);
            self.comm.begin(number);
            if matches!(
                step.operation,
                Operation::Broadcast { .. } | Operation::Shuffle { .. }
            ) {
                agree(comm, self.failure.take())?;
                let tuples = self.moved(step).map_err(|error| {
                    if error.kind != ErrorKind::Lost {
                        // The others wait for what this site cannot send.
                        comm.abort(&error.message);
                    }
                    error.in_step(plan, number)
                })?;
                self.keep(number, step, tuples);
            } else if self.failure.is_none() {
                match pool.install(|| self.local(step)) {
                    Ok(tuples) => self.keep(number, step, tuples),
                    Err(error) => self.failure = Some(error.in_step(plan, number)),
                }
            }
        }
        agree(comm, self.failure.take())?;
        current.store(usize::MAX, Ordering::Relaxed);
        self.comm.begin(plan.steps.len());
        Ok(())
    }

    /// Prints and writes the outputs.
    pub fn report(&self, token: &str) -> Result<Report, RunError> {
        let (printed, saved) =
            output::outputs(self.plan, &self.comm, self.options, &self.store, token)?;
        let (traffic, peak_bytes) = self.figures()?;
        Ok(Report {
            printed,
            saved,
            traffic,
            peak_bytes,
            stopped: None,
        })
    }

    /// Keeps the outputs for the next walk.
    pub fn walked(self) -> Result<Walked, RunError> {
        let (mut printed, mut kept) = (vec![], vec![]);
        for output in &self.plan.outputs {
            if output.shape.is_empty() && output.name != RATE {
                printed.extend(output::print(self.plan, &self.comm, &self.store, output)?);
            }
            let resident = Resident {
                kind: self.plan.kind(output.relation).clone(),
                mesh: self.plan.mesh.clone(),
                tuples: self.tuples(output.relation)?.clone(),
            };
            kept.push((output.name.clone(), resident));
        }
        Ok(Walked {
            printed,
            kept,
            faulty: self.faulty.0.or(self.faulty.1),
            peak: self.store.peak(),
        })
    }

    /// Notes the first step that gives a value that is not finite.
    fn look(&mut self, number: usize, tuples: &Tuples) {
        if self.faulty.0.is_some() {
            return;
        }
        for array in tuples.values().flatten() {
            let data = array.data();
            if !data.dtype().is_float() {
                continue;
            }
            for at in 0..data.len() {
                let value = data.get(at).as_f64();
                if value == f64::NEG_INFINITY {
                    self.faulty.1.get_or_insert(number);
                } else if !value.is_finite() {
                    self.faulty.0 = Some(number);
                    return;
                }
            }
        }
    }

    fn place(&self) -> Place<'_> {
        Place {
            plan: self.plan,
            site: self.comm.site(),
            store: &self.store,
        }
    }

    fn tuples(&self, relation: RelationId) -> Result<&Tuples, RunError> {
        self.store
            .get(relation)
            .ok_or_else(|| RunError::internal(format!("r{} is used after its end", relation.0)))
    }

    fn moved(&self, step: &Step) -> Result<Tuples, RunError> {
        let (Operation::Broadcast { input } | Operation::Shuffle { input }) = &step.operation
        else {
            return Err(RunError::internal("a local step moves nothing"));
        };
        let (from, tuples) = (self.plan.kind(*input), self.tuples(*input)?);
        movement::movement(&self.comm, &self.plan.mesh, from, &step.kind, tuples)
    }

    fn local(&mut self, step: &Step) -> Result<Tuples, RunError> {
        match &step.operation {
            Operation::Source { name, source } => {
                let place = (self.comm.site(), &self.plan.mesh);
                match (self.feed, source) {
                    (Some(feed), Source::Fed) => feed.tuples(name, &step.kind, place, self.options),
                    _ => {
                        let stream = self.feed.and_then(|feed| feed.stream(name));
                        let names = (name.as_str(), stream.as_deref().unwrap_or(name));
                        source::source(names, source, &step.kind, place, self.options)
                    }
                }
            }
            Operation::LocalJoin {
                inputs,
                kernel,
                ranges,
                fold,
            } => {
                let join = local::Join {
                    inputs,
                    kernel: &self.plan.kernels[kernel.0 as usize],
                    ranges,
                };
                match fold {
                    None => local::join(&self.place(), &join, &step.kind),
                    Some(fold) => local::fold(&self.place(), &join, fold, &step.kind),
                }
            }
            Operation::LocalAggregate {
                input,
                keep,
                reduction,
            } => self.consumed(step, *input, |place, tuples| {
                let from = place.plan.kind(*input);
                local::aggregate(place, tuples, from, keep, *reduction, &step.kind)
            }),
            Operation::LocalConcat { input, array_dim } => {
                self.consumed(step, *input, |place, tuples| {
                    let from = place.plan.kind(*input);
                    local::concat(place, tuples, from, *array_dim, &step.kind)
                })
            }
            Operation::LocalTile { input, array_dim } => {
                local::tile(&self.place(), *input, *array_dim, &step.kind)
            }
            Operation::LocalFilter { input, key, value } => {
                local::filter(&self.place(), *input, *key, *value, &step.kind)
            }
            Operation::Broadcast { .. } | Operation::Shuffle { .. } => {
                Err(RunError::internal("this step is not a local one"))
            }
        }
    }

    /// Gives a step its input's tuples for good if this is their last use, else copies of the references.
    fn consumed(
        &mut self,
        step: &Step,
        input: RelationId,
        body: impl FnOnce(&Place<'_>, Tuples) -> Result<Tuples, RunError>,
    ) -> Result<Tuples, RunError> {
        let last = step.frees.contains(&input) && !self.kept.contains(&input);
        if !last {
            let tuples = self.tuples(input)?.clone();
            return body(&self.place(), tuples);
        }
        let taken = self.store.take(input);
        let (tuples, addresses) = taken
            .ok_or_else(|| RunError::internal(format!("r{} is used after its end", input.0)))?;
        let made = body(&self.place(), tuples)?;
        self.store.forget(addresses, &made);
        Ok(made)
    }

    /// Checks what a step made, keeps it, and frees what is not needed any more.
    fn keep(&mut self, number: usize, step: &Step, tuples: Tuples) {
        if let Err(error) = fits(step, &tuples) {
            self.failure = Some(error.in_step(self.plan, number));
            return;
        }
        if self.looking {
            self.look(number, &tuples);
        }
        self.store.free(step.result);
        self.store.insert(step.result, tuples);
        for relation in &step.frees {
            if !self.kept.contains(relation) {
                self.store.free(*relation);
            }
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

/// Whether the tuples are what the step's type says.
fn fits(step: &Step, tuples: &Tuples) -> Result<(), RunError> {
    for (key, tuple) in tuples {
        let shape: Vec<usize> = step
            .kind
            .ranges(key)
            .iter()
            .map(|(_, n)| *n as usize)
            .collect();
        let right = tuple.len() == step.kind.array.columns.len()
            && tuple
                .iter()
                .zip(&step.kind.array.columns)
                .all(|(array, dtype)| array.dtype() == *dtype && array.shape() == shape);
        if !right {
            let found: Vec<String> = tuple
                .iter()
                .map(|array| ArrayKind::of(array).to_string())
                .collect();
            return Err(RunError::internal(format!(
                "the tuple {key:?} of r{} is [{}], but its type says {:?}{shape:?}",
                step.result.0,
                found.join(", "),
                step.kind.array.columns,
            )));
        }
    }
    Ok(())
}

/// Sites compare what they were started with; returns a token that tells this run from others.
pub(crate) fn meet(
    plans: &[&Plan],
    comm: &dyn Communicator,
    options: &Options,
) -> Result<String, RunError> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos() as u64);
    let token = now ^ (u64::from(std::process::id()) << 32);
    let fingerprint = match postcard::to_stdvec(plans) {
        Ok(bytes) => hash(&bytes),
        Err(error) => {
            return Err(RunError::internal(format!(
                "the plan cannot be encoded: {error}"
            )));
        }
    };
    let Options {
        seed,
        threads: _,
        base: _,
        inputs,
        saves,
    } = options;
    let given = hash(format!("{seed} {inputs:?} {saves:?}").as_bytes());
    let mine = vec![fingerprint as i64, given as i64, token as i64];
    let all = share_numbers(comm, mine)?;
    let differs = |what: usize| all.iter().position(|site| site[what] != all[0][what]);
    let different = |site: usize, what: &str| {
        Err(RunError::new(
            "E0731",
            ErrorKind::Setup,
            format!("site {site} was started with {what} than site 0"),
        )
        .at(site as u32)
        .help("start the same program with the same arguments and the same data on every rank"))
    };
    if let Some(site) = differs(0) {
        return different(site, "another program");
    }
    if let Some(site) = differs(1) {
        return different(site, "other options");
    }
    if let Some(plan) = plans.iter().find(|plan| plan.sites != comm.sites()) {
        return Err(RunError::new(
            "E0731",
            ErrorKind::Setup,
            format!(
                "the plan is for {} sites, but there are {}",
                plan.sites,
                comm.sites()
            ),
        ));
    }
    Ok(format!("{:x}", all[0][2]))
}

/// Every site's numbers, by site; the lists are equally long.
pub(crate) fn share_numbers(
    comm: &dyn Communicator,
    mine: Vec<i64>,
) -> Result<Vec<Vec<i64>>, RunError> {
    let kind = ArrayKind {
        dtype: DType::I64,
        shape: vec![mine.len()],
    };
    let array = Array::new(kind.shape.clone(), Data::I64(mine))
        .ok_or_else(|| RunError::internal("a list has as many numbers as it has"))?;
    let shared = comm.share(
        vec![Arc::new(array)],
        &vec![vec![kind]; comm.sites() as usize],
    )?;
    Ok(shared
        .iter()
        .flatten()
        .map(|array| match array.data() {
            Data::I64(numbers) => numbers.clone(),
            _ => vec![],
        })
        .collect())
}

/// FNV-1a: the same on every machine and in every build.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
