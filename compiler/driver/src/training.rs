//! Training: the programs of a checked `train` block as plans, in one session that the run time walks.
//!
//! Must not know how steps are run.
//!
//! ```text
//! steps with 64 and 29 rows, validation, what is evaluated at the end   ->   4 plans for 2 sites
//! ```

use crate::failure::Failure;
use ein_exec::session::{self as run, Carried, Session};
use ein_plan::{Format, Plan, memory, relation::piece};
use einc_core::{
    einsum,
    pipeline::{Criteria, Options},
    sema::training::Training,
};
use einc_diag::Diagnostic;
use std::{collections::BTreeMap, ops::Range, sync::Arc};

/// How often a session is planned for less memory, since its plans do not fit beside what the session carries.
const ATTEMPTS: usize = 4;

/// Plans everything that a session walks. A plan counts what it reads itself; where the session needs more than the limit because of what
/// else it carries, the plans are made for as much less.
///
/// # Errors
/// The errors of `compile`, and a session that does not fit.
pub fn plan(
    training: Training,
    options: &Options,
    compile: &dyn Fn(&einsum::Program, &Options) -> Result<Plan, Failure>,
) -> Result<Session, Failure> {
    let Some(limit) = options.criteria.memory else {
        return planned(training, options, compile);
    };
    let beyond = |session: &Session| {
        let most = peaks(session).into_iter().max().unwrap_or(0);
        most.saturating_sub(limit)
    };
    let mut session = planned(training.clone(), options, compile)?;
    let refusal = too_large(limit + beyond(&session), limit, &options.criteria);
    let mut within = options.clone();
    let mut room = limit;
    for _ in 0..ATTEMPTS {
        let lacking = beyond(&session);
        if lacking == 0 {
            break;
        }
        room = room.min(own_peak(&session)).saturating_sub(lacking);
        within.criteria.memory = Some(room);
        // That the plans do not fit in less says less than how much the session lacks.
        session = match planned(training.clone(), &within, compile) {
            Ok(session) => session,
            Err(_) => break,
        };
    }
    match beyond(&session) {
        0 => Ok(session),
        _ => Err(refusal),
    }
}

/// The most that one of the session's plans needs of what it reads and makes itself.
fn own_peak(session: &Session) -> u64 {
    let peaks = session.all_programs().flat_map(|plan| memory::peaks(plan));
    peaks.map(|peak| peak.bytes).max().unwrap_or(0)
}

/// A session of plans that are each made for the options' memory.
fn planned(
    training: Training,
    options: &Options,
    compile: &dyn Fn(&einsum::Program, &Options) -> Result<Plan, Failure>,
) -> Result<Session, Failure> {
    let one = alone(options);
    training.planned(
        &|program| compile(program, options).map(Arc::new),
        &|program| compile(program, &one).map(Arc::new),
    )
}

/// How the steps that a site makes by itself are planned. Beside other sites' steps there is nothing whose number could change a sum, so they
/// are not cut to be deterministic; a site that is the only one makes them as it makes all others.
pub(crate) fn alone(options: &Options) -> Options {
    Options {
        sites: 1,
        deterministic: options.deterministic && options.sites == 1,
        ..options.clone()
    }
}

/// The step at which a plan takes what is carried under a name.
fn takes(plan: &Plan, name: &str) -> Option<usize> {
    let takes = |step: &ein_plan::Step| {
        matches!(&step.operation,
            ein_plan::Operation::Source { name: own, source } if source.is_given() && own == name)
    };
    plan.steps.iter().position(takes)
}

/// The steps at which a plan counts what is carried under a name: from where it takes it to where it would free it.
fn counted(plan: &Plan, name: &str) -> Range<usize> {
    let Some(first) = takes(plan, name) else {
        return 0..0;
    };
    let id = plan.steps[first].result;
    let step = plan.steps.iter().position(|step| step.frees.contains(&id));
    let of_loop = plan.repeats.iter().find_map(|repeat| {
        let entered = repeat.enters.contains(&id).then_some(repeat.first);
        let left = repeat.frees.contains(&id).then_some(repeat.end);
        entered.or(left).map(|end| end as usize)
    });
    let end = step.map(|step| step + 1).or(of_loop);
    first..end.unwrap_or(plan.steps.len())
}

/// The most bytes that each site holds while a session runs: its plans, each beside what is carried and not held by it.
pub fn peaks(session: &Session) -> Vec<u64> {
    let plans: Vec<&Plan> = session.programs().map(AsRef::as_ref).collect();
    let sites = plans.first().map_or(1, |plan| plan.sites as usize);
    let mut most = vec![0u64; sites];
    // What is carried rests where the plan that gives it, or first reads it, says.
    let mut carried: BTreeMap<&str, Vec<u64>> = Default::default();
    for plan in &plans {
        for step in &plan.steps {
            if let ein_plan::Operation::Source { name, source } = &step.operation
                && source.is_given()
                && session.carried.contains_key(name)
            {
                let bytes = (0..plan.sites).map(|site| {
                    let keys = step.kind.keys_at(site, &plan.mesh);
                    keys.map(|key| step.kind.tuple_bytes(&key)).sum()
                });
                carried.entry(name).or_insert_with(|| bytes.collect());
            }
        }
    }
    for plan in &plans {
        let own = memory::peaks(plan);
        let by_step = memory::by_step(plan);
        for (site, most) in most.iter_mut().enumerate() {
            // At each step, what is carried is held beside what the plan holds by itself.
            let mut beside = vec![0u64; plan.steps.len()];
            for (name, bytes) in &carried {
                let bytes = bytes.get(site).copied().unwrap_or(0);
                let counted = counted(plan, name);
                let steps = beside.iter_mut().enumerate();
                for (_, beside) in steps.filter(|(at, _)| !counted.contains(at)) {
                    *beside += bytes;
                }
            }
            let peak = own.get(site).copied().unwrap_or_default();
            *most = (*most).max(peak.bytes + beside.get(peak.step).copied().unwrap_or(0));
            for (held, beside) in by_step.iter().zip(&beside) {
                *most = (*most).max(held.get(site).copied().unwrap_or(0) + beside);
            }
        }
    }
    for block in &session.blocks {
        if let Some(rounds) = &block.rounds {
            let evaluated = [
                block.validate.as_ref().map(|validate| &validate.program),
                block.statistics.as_ref().map(|(_, plan)| plan),
            ];
            let evaluated = evaluated.into_iter().flatten();
            let evaluated: Vec<&Plan> = evaluated.map(AsRef::as_ref).collect();
            for (site, most) in (0..).zip(&mut most) {
                let at = (site, sites as u32);
                let own = of_rounds_at(session, block, rounds, at, &evaluated);
                *most = (*most).max(own);
            }
        }
    }
    most
}

/// The most bytes that a site holds in the rounds of a block: its steps beside what rests at home, a tensor on its way beside all others, or an
/// evaluation (one of the plans `evaluated`) beside its blocks.
fn of_rounds_at(
    session: &Session,
    block: &run::Block,
    rounds: &run::Rounds,
    (site, sites): (u32, u32),
    evaluated: &[&Plan],
) -> u64 {
    let part = site % rounds.parts.max(1);
    let subnet = rounds
        .of_part
        .get(part as usize)
        .and_then(|number| rounds.subnets.get(*number));
    let plans = subnet
        .into_iter()
        .flat_map(|subnet| subnet.step.values().chain(&subnet.apply));
    let steps = plans
        .flat_map(|plan| memory::peaks(plan))
        .map(|peak| peak.bytes)
        .max()
        .unwrap_or(0);
    // What no round changes, such as statistics, at this site and for its steps.
    let kept = session.carried.iter();
    let kept =
        kept.filter(|(name, carried)| carried.kind.is_model() && !rounds.learnt.contains(name));
    let kept: u64 = kept.map(|(_, carried)| 2 * bytes_of(carried)).sum();
    // Blocks of this site, what rests at home, what goes home to be evaluated or saved, and what is beside it all while a tensor moves.
    let (mut blocks, mut home, mut gathered, mut both) = (0, 0, 0, 0);
    let (mut dealing, mut gathering) = (0, 0);
    for name in &rounds.learnt {
        let Some(carried) = session.carried.get(name) else {
            continue;
        };
        let all = bytes_of(carried);
        let (block, piece) = match rounds.dealt.get(name) {
            None => (all, all),
            Some(dims) => {
                let of = |count, number| {
                    let lengths = carried.shape.iter().enumerate();
                    let length = |(dim, extent): (usize, &u64)| match dims
                        .iter()
                        .any(|(own, _)| *own == dim)
                    {
                        true => piece(*extent, count, number).1,
                        false => *extent,
                    };
                    let lengths: Vec<u64> = lengths.map(length).collect();
                    Format::default().bytes_of(carried.dtype, &lengths)
                };
                let (first, _) = dims[0];
                let extent = carried.shape[first].max(1);
                (
                    of(rounds.parts, part),
                    all / extent * piece(extent, sites, site).1,
                )
            }
        };
        let larger = block.max(piece);
        let on_its_way = 2 * run::slab(larger);
        blocks += block;
        gathering = gathering.max(on_its_way);
        dealing = dealing.max(larger + on_its_way);
        let dims = rounds.dealt.get(name).map_or(0, Vec::len);
        if dims == 0 || rounds.parts < sites {
            // A mean: what is sent, what arrives, and what becomes of it.
            dealing = dealing.max(3 * block);
        }
        if dims > 1 {
            home += piece;
            both += block;
        } else {
            gathered += piece;
            both += larger;
        }
    }
    // What an evaluation needs itself, and what of the model it does not take.
    let evaluation = |plan: &&Plan| {
        let peak = memory::peaks(plan).get(site as usize).copied();
        let others = session.carried.iter();
        let others =
            others.filter(|(name, carried)| carried.kind.is_model() && takes(plan, name).is_none());
        peak.unwrap_or_default().bytes + others.map(|(_, carried)| bytes_of(carried)).sum::<u64>()
    };
    let evaluated = evaluated.iter().map(evaluation).max().unwrap_or(0);
    let saves = block.checkpoints.is_some() || block.validate.is_some();
    let at_home = if saves || session.last.is_some() {
        blocks + gathered + gathering
    } else {
        0
    };
    let most = steps
        .max(both + dealing)
        .max(at_home)
        .max(evaluated + blocks);
    most + home + kept
}

/// Bytes of all of a tensor.
fn bytes_of(carried: &Carried) -> u64 {
    Format::default().bytes_of(carried.dtype, &carried.shape)
}

fn too_large(most: u64, limit: u64, criteria: &Criteria) -> Failure {
    let option = criteria.limit_option();
    let refusal = Diagnostic::error(
        "E0996",
        format!("training needs {most} bytes at a site, of which `{option}` allows {limit}"),
    )
    .help("the states of the optimizer and the params stay in memory beside the tensors of a step")
    .help("use more sites, a smaller batch, or `accumulate:`");
    Failure::wrong(vec![match criteria.may_rest() {
        true => refusal,
        false => refusal.help("or let tensors of a step rest on disk between two uses, `--spill`"),
    }])
}
