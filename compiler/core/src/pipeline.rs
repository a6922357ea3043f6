//! The whole compiler behind sema, top to bottom: einsum → TRA → IA → plan.
//!
//! Every pass's output is verified, always; what does not verify is an internal error, reported like any other
//! diagnostic. Must not know files, terminals or the command line.
//!
//! ```text
//! select → share → layout → TRA → IA → plan → cost
//! ```

mod because;
mod choose;
mod closest;
mod compare;
mod criteria;
mod describe;
pub mod diff;
pub mod dot;
mod explain;
mod fitting;
mod forms;
pub mod html;
mod layouts;
mod order;
mod panels;
mod passes;
mod reads;
mod recompute;
pub mod report;
mod rounds;
mod stream;
mod text;

use crate::cost::{self, Cost, Machine};
use crate::{einsum, ia, lower, rules, search, tra};
use ein_plan::verify::MOST_SITES;
use ein_plan::{Operation, Plan, Step, memory};
use einc_diag::Diagnostic;

pub use crate::search::Objective;
pub use choose::Chosen;
pub use compare::compare;
pub use criteria::{Criteria, Formats, GpuMemory};
pub use describe::describe;
pub use explain::explain;
pub use forms::with_forms;
pub use rounds::rounds;
pub use text::{count, scaled, seconds};

/// The target and the criteria of a compilation.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Number of sites, from 1.
    pub sites: u32,
    /// True if results must not depend on the number of sites, bit for bit.
    pub deterministic: bool,
    /// The criteria by which the plan is chosen.
    pub criteria: Criteria,
}

impl Options {
    /// For that many sites, by the usual criteria.
    pub fn new(sites: u32) -> Options {
        Options {
            sites,
            deterministic: false,
            criteria: Criteria::default(),
        }
    }
}

/// A compiled program, with what the passes gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// The program that was planned: the one given, or one that says the same.
    pub program: einsum::Program,
    /// How it is laid out, and why so.
    pub chosen: Chosen,
    /// The program as tensor relations.
    pub tra: tra::Program,
    /// The program on sites.
    pub ia: ia::Program,
    /// The plan that every site walks.
    pub plan: Plan,
    /// The cost of the plan; `cost.steps[s]` is of `plan.steps[s]`.
    pub cost: Cost,
    /// The proof that the plan is the program, once it was asked for.
    pub proof: Option<rules::ia::Proof>,
}

impl Compiled {
    /// Proves the plan equal to the table 3.1 translation of its program; `explain` says whether its steps are written down.
    pub fn prove(&mut self, options: &Options, explain: bool, deadline: &dyn Fn() -> bool) {
        let initial = rules::ia::initial(&self.tra, options.sites, &self.plan.mesh);
        let bounds = rules::ia::Options {
            node_limit: PROOF_NODES,
            disabled: &options.criteria.disabled_rules,
            explain,
            deadline,
        };
        self.proof = Some(rules::ia::prove(&initial, &self.ia, &bounds));
    }
}

/// Most nodes of the e-graph of a tensor's proof.
const PROOF_NODES: usize = 20_000;

/// Compiles a program. An error is an internal one (E0999), or says that the program cannot be planned for so
/// many sites (E0998) or in so little memory (E0996). `deadline` says when to stop searching and take the best so far;
/// where several processes must come to one plan, it never does.
pub fn compile(
    program: &einsum::Program,
    options: &Options,
    deadline: &dyn Fn() -> bool,
) -> Result<Compiled, Vec<Diagnostic>> {
    compile_advised(program, options, (deadline, deadline))
}

/// Compiles like [`compile`]; the second deadline says when to stop looking for advice where no plan fits in memory.
pub fn compile_advised(
    program: &einsum::Program,
    options: &Options,
    deadlines: Deadlines<'_>,
) -> Result<Compiled, Vec<Diagnostic>> {
    if options.sites == 0 || options.sites > MOST_SITES {
        return Err(vec![Diagnostic::error(
            "E0998",
            format!(
                "a plan is for 1 to {MOST_SITES} sites, not for {}",
                options.sites
            ),
        )]);
    }
    best_fitting(program, options, deadlines).map_err(|stop| match stop {
        Stop::NoPlan(diagnostic, _)
        | Stop::NoLayout(diagnostic, ..)
        | Stop::TooLarge(diagnostic, ..) => vec![*diagnostic],
        Stop::Internal(what) => vec![
            Diagnostic::error("E0999", format!("internal error: {what}")).help(
                "this is a defect of einc, not of the program; please report it with the program",
            ),
        ],
    })
}

/// Why there is no plan.
enum Stop {
    /// There can be none; what to tell the user, and how many bytes are missing.
    NoPlan(Box<Diagnostic>, u64),
    /// No layout fits in memory; what to tell the user, how many bytes are missing, and the tensor of the program for which most of them are.
    NoLayout(
        Box<Diagnostic>,
        u64,
        Box<(einsum::Program, einsum::TensorId)>,
    ),
    /// A plan does not fit in memory, also with values computed again; what to tell the user, how many bytes are missing, and the plan.
    TooLarge(Box<Diagnostic>, u64, Box<Compiled>),
    /// A pass gave what does not verify.
    Internal(String),
}

impl From<String> for Stop {
    fn from(what: String) -> Stop {
        Stop::Internal(what)
    }
}

/// When to stop searching, and when to stop looking for advice.
pub type Deadlines<'a> = (&'a dyn Fn() -> bool, &'a dyn Fn() -> bool);

/// The best plan of a program, or what it lacks.
fn best_fitting(
    program: &einsum::Program,
    options: &Options,
    (deadline, soon): Deadlines<'_>,
) -> Result<Compiled, Stop> {
    let shared = passes::run(program)?;
    match fitting::fitting(&shared, options, (deadline, soon)) {
        Err(Stop::NoLayout(mut refusal, missing, what)) => {
            let help = match choose::remedy(&what, options, soon) {
                Err(help) => help,
                Ok(sites) => match enough(&shared, options, sites, soon) {
                    Some(sites) => format!("it fits on more sites: `--sites {sites}`"),
                    None => choose::perhaps(options),
                },
            };
            // In front of what is to be had for more time.
            refusal.help.insert(0, help);
            Err(Stop::NoPlan(refusal, missing))
        }
        other => other,
    }
}

/// Most numbers of sites that are tried for advice.
const TRIED: usize = 3;

/// A number of sites on which the program fits, if one is found soon: the one given, or half of it, and so on; where that has a layout, but no
/// plan, twice as many.
fn enough(
    shared: &search::share::Shared,
    options: &Options,
    first: u32,
    soon: &dyn Fn() -> bool,
) -> Option<u32> {
    let fits = |sites: &u32| {
        let wanted = Options {
            sites: *sites,
            ..options.clone()
        };
        !soon() && matches!(fitting::in_memory(shared, &wanted, soon), Ok(Ok(_)))
    };
    let by = |next: fn(u32) -> u32| {
        let tried = std::iter::successors(Some(first), move |sites| Some(next(*sites)));
        let tried = tried.take_while(|sites| (options.sites + 1..=MOST_SITES).contains(sites));
        tried.take(TRIED)
    };
    let fewest = by(|sites| sites / 2).take_while(fits).last();
    fewest.or_else(|| by(|sites| sites.saturating_mul(2)).skip(1).find(fits))
}

/// The program laid out for that much memory of a site, and its plan, which keeps to the limit that was asked for.
fn planned(
    shared: &search::share::Shared,
    options: &Options,
    memory: Option<u64>,
    deadline: &dyn Fn() -> bool,
) -> Result<Compiled, Stop> {
    let mut wanted = options.clone();
    wanted.criteria.memory = memory;
    let (program, chosen, (tra, ia)) = loop {
        let (program, mut chosen) = choose::choose(&shared.program, &wanted, deadline)?;
        let (tra, ia) = tensor_relations(&program, &chosen, shared, options, &[])?;
        if wanted.sites < options.sites {
            chosen.proved_optimal = false;
            chosen.not_explored.push(format!(
                "meshes of more than {}: tensors would have more pieces than can be counted",
                text::count(u64::from(wanted.sites), "site")
            ));
        }
        if wanted.sites == 1 || ia.relations.iter().all(can_be_counted) {
            break (program, chosen, (tra, ia));
        }
        // Fewer sites have shorter axes, and so fewer pieces of every dimension.
        wanted.sites = 1 << (wanted.sites - 1).ilog2();
    };
    tra::verify::verify(&tra).map_err(|what| format!("TRA: {what}"))?;
    ia::verify::verify(&ia).map_err(|what| format!("IA: {what}"))?;
    let (ia, plan) = recompute::fitted(ia, options)?;
    let next = lower::postponed(&ia)?;
    let (ia, plan) = reordered((ia, plan), next, options, |next, plan| {
        passing(next) > passing(plan)
    })?;
    let next = lower::gathered(&ia)?;
    let (ia, plan) = reordered((ia, plan), next, options, |next, plan| {
        next.expected_meetings() < plan.expected_meetings()
    })?;
    let next = lower::read_once(&ia)?;
    let (ia, plan) = reordered((ia, plan), next, options, |next, plan| {
        lists_read(next) < lists_read(plan)
    })?;
    ein_plan::verify::verify(&plan).map_err(|what| format!("plan: {what}"))?;

    let machine = Machine {
        sites: options.sites,
    };
    let cost = cost::of_plan(&ia, &plan, &machine);
    let compiled = Compiled {
        program,
        chosen,
        tra,
        ia,
        plan,
        cost,
        proof: None,
    };
    match choose::missing(&compiled.plan, options) {
        None => Ok(compiled),
        Some((refusal, bytes)) => Err(Stop::TooLarge(Box::new(refusal), bytes, Box::new(compiled))),
    }
}

/// Returns whether a relation has no more tuples than a plan may have.
fn can_be_counted(relation: &ia::Relation) -> bool {
    let tuples = relation.kind.tuples();
    tuples.is_some_and(|tuples| tuples <= ein_plan::verify::MOST_TUPLES)
}

/// A laid out program as relations and on sites; `finer`: how many parts every piece of a class of indices is cut into, if any.
fn tensor_relations(
    program: &einsum::Program,
    chosen: &Chosen,
    shared: &search::share::Shared,
    options: &Options,
    finer: &[u32],
) -> Result<(tra::Program, ia::Program), String> {
    let layout = &chosen.layout;
    relations(program, layout, options, (&shared.output_names, finer))
}

/// A laid out program as relations and on sites, with these names of its outputs.
fn relations(
    program: &einsum::Program,
    layout: &ia::layout::Layout,
    options: &Options,
    (names, finer): (&[String], &[u32]),
) -> Result<(tra::Program, ia::Program), String> {
    let deterministic = options.deterministic;
    let chunking = ia::from_layout::chunking_finer(program, layout, deterministic, finer)?;
    let mut lowered = tra::from_einsum::lower(program, &chunking)?;
    for (output, name) in lowered.program.outputs.iter_mut().zip(names) {
        output.name.clone_from(name);
    }
    let places = ia::from_layout::places(program, layout, &lowered);
    let ia = ia::from_tra::placed(&lowered.program, options.sites, &places)?;
    Ok((lowered.program, ia))
}

/// The cost of a layout of a program, counted as that of the chosen one is: on its plan.
fn counted(
    program: &einsum::Program,
    layout: &ia::layout::Layout,
    options: &Options,
) -> Result<Cost, String> {
    let (_, ia) = relations(program, layout, options, (&[], &[]))?;
    let plan = lower::lower(&ia, options.deterministic)?;
    let machine = Machine {
        sites: options.sites,
    };
    Ok(cost::of_plan(&ia, &plan, &machine))
}

/// How often lists are read: once for all columns that follow each other.
fn lists_read(plan: &Plan) -> usize {
    let list = |step: &Step| match &step.operation {
        Operation::Source { source, .. } => source.list().map(str::to_owned),
        _ => None,
    };
    let lists: Vec<Option<String>> = plan.steps.iter().map(list).collect();
    let runs = lists.chunk_by(|one, next| one == next);
    runs.filter(|run| run[0].is_some()).count()
}

/// How many relations of a plan are never held.
fn passing(plan: &Plan) -> usize {
    plan.passing().into_iter().filter(|passes| *passes).count()
}

/// The next order of a plan, if it is better and holds hardly more.
fn reordered(
    (ia, plan): (ia::Program, Plan),
    next: Option<ia::Program>,
    options: &Options,
    better: impl Fn(&Plan, &Plan) -> bool,
) -> Result<(ia::Program, Plan), Stop> {
    let Some(next) = next else {
        return Ok((ia, plan));
    };
    ia::verify::verify(&next).map_err(|what| format!("order: {what}"))?;
    let planned = lower::lower(&next, options.deterministic)?;
    let most = |plan: &Plan| {
        let peaks = memory::peaks(plan);
        peaks.iter().map(|peak| peak.bytes).max().unwrap_or(0)
    };
    let held = most(&plan);
    let allowed = options.criteria.memory.unwrap_or(lower::hardly_more(held));
    Ok(match better(&planned, &plan) && most(&planned) <= allowed {
        true => (next, planned),
        false => (ia, plan),
    })
}
