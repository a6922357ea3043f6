//! The choice of a program and a layout: equivalent programs are laid out, and the cheapest layout of any is taken.
//!
//! Must not know how a layout is carried out.
//!
//! ```text
//! 3 programs, 5 sites: mesh 2x2, 134217728 words, proved optimal
//! ```

use super::layouts::Layouts;
use super::report::Rewrite;
use super::text::count;
use super::{Criteria, Options, Stop};
use super::{order, reads};
use crate::einsum::{Program, TensorId};
use crate::ia::layout::Layout;
use crate::rules::{self, Alternative, LogicOptions};
use crate::search::{
    self, Found, LayoutCost, Nearest, NoLayout, Objective, Outcome, SearchOptions,
};
use ein_plan::{Mesh, Plan, memory};
use einc_diag::Diagnostic;
use std::cmp::Ordering;
use std::collections::HashSet;

/// Most nodes of the e-graph of rewrites of a program.
const NODES: usize = 50_000;

/// Loads that differ by less are the same.
const TOLERANCE: f64 = 1e-7;

/// Programs of nearly as many operations differ by this part of them at most.
const NEARLY: f64 = 0.02;

/// Most equivalent programs that are laid out.
const PROGRAMS: usize = 3;

/// Most products that are multiplied in another order once they are laid out.
const MOST_ORDERS: usize = 4;

/// A layout, and what is known of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chosen {
    /// The mesh as it was searched; the layout's has axes that do the same made one.
    pub mesh: Mesh,
    /// How everything runs and where it rests.
    pub layout: Layout,
    /// The price of the layout, as the search counts it.
    pub price: LayoutCost,
    /// True if no layout of the searched space is cheaper.
    pub proved_optimal: bool,
    /// How much cheaper one could be at most, in the objective's unit.
    pub gap: f64,
    /// Meshes whose best layout was found, with its price.
    pub meshes: Vec<(Mesh, f64)>,
    /// The parts of the space that were left out, with the reason.
    pub not_explored: Vec<String>,
    /// How many equivalent programs were laid out.
    pub programs: usize,
    /// Nodes of the e-graph of rewrites of the program.
    pub logic_nodes: usize,
    /// Its classes.
    pub logic_classes: usize,
    /// The balance factor that was kept to: the one asked for, or more where nothing can be balanced so well.
    pub balance: f64,
    /// The rewrites between the program as written and the one that was taken.
    pub rewrites: Vec<Rewrite>,
}

/// Returns the options of the search.
pub(super) fn search_options(options: &Options) -> SearchOptions {
    let Criteria {
        objective,
        memory,
        gpu_memory: _,
        spill: _,
        balance,
        disabled_rules,
        formats: _,
    } = &options.criteria;
    SearchOptions {
        balance: *balance,
        memory: *memory,
        disabled_moves: search::DisabledMoves::by_rules(disabled_rules),
        ..SearchOptions::new(options.sites, *objective)
    }
}

/// Takes the cheapest layout of the program, or of one that says the same.
pub(super) fn choose(
    program: &Program,
    options: &Options,
    deadline: &dyn Fn() -> bool,
) -> Result<(Program, Chosen), Stop> {
    if options.deterministic {
        return deterministic(program, options);
    }
    let logic = rules::rewrite(
        program,
        &LogicOptions {
            disabled: &options.criteria.disabled_rules,
            node_limit: NODES,
            candidates: PROGRAMS,
            deadline,
        },
    );
    let mut alternatives = logic.alternatives;
    // On one site there is nothing to cut.
    if options.sites > 1 {
        let first = alternatives.first().map_or(program, |first| &first.program);
        let blocks = rules::matrix_blocks::expand(first, &options.criteria.disabled_rules);
        alternatives.extend(blocks);
    }
    let layouts = Layouts::new(program, search_options(options), deadline);
    let orders = order::is_searched(&options.criteria.disabled_rules);
    let LaidOut {
        found: laid_out,
        none,
        mut left_out,
    } = lay_out(&alternatives, &layouts, orders);
    // What is necessary is the least that any of them needs: more work must not buy fewer transfers.
    let loads = laid_out.iter().map(|(_, found)| found.price.load);
    let most = loads.fold(f64::INFINITY, f64::min) * layouts.wanted.balance * (1.0 + TOLERANCE);
    let admissible = laid_out
        .into_iter()
        .filter(|(_, found)| found.price.load <= most);
    let best =
        admissible.reduce(
            |best, next| match compare(&next, &best, &options.criteria.objective) {
                Ordering::Less => next,
                _ => best,
            },
        );
    let Some((alternative, mut found)) = best else {
        return Err(match none {
            Some((program, refusal)) => refused(program, options, &refusal),
            None => Stop::Internal("there is no program to lay out".into()),
        });
    };
    let mut program = alternative.program.clone();
    let mut rewrites: Vec<Rewrite> = alternative.rules.iter().map(Rewrite::from).collect();
    let mut programs = alternatives.len();
    let disabled = &options.criteria.disabled_rules;
    for family in &reads::FAMILIES {
        let better = family.improve(
            (&program, &found),
            disabled,
            (&layouts, most),
            &mut programs,
        );
        if let Some(better) = better {
            (program, found) = (better.program, better.found);
            rewrites.extend(better.rewrites);
        }
    }
    if orders {
        let mut tried = HashSet::new();
        for _ in 0..MOST_ORDERS {
            let better = order::improve((&program, &found), &layouts, most, &mut tried);
            let Some(better) = better else {
                break;
            };
            (program, found) = (better.program, better.found);
            rewrites.push(better.rewrite);
            programs += 1;
        }
    }
    if orders && layouts.are_enough() {
        left_out.push("other orders of products: too many operations".into());
    }
    let mut chosen = chosen(layouts.last(&program, found));
    if layouts.were_quick() && programs > 1 {
        left_out.push(
            "equivalent programs: compared by quick layouts, since each would take long".into(),
        );
    }
    chosen.programs = programs;
    chosen.logic_nodes = logic.explored.nodes;
    chosen.logic_classes = logic.explored.classes;
    if logic.explored.stop != rules::Stop::Saturated {
        left_out.push(format!("further rewrites: {}", logic.explored.stop));
    }
    chosen.not_explored.extend(left_out);
    chosen.rewrites = rewrites;
    Ok((program, chosen))
}

/// Less is better: the objective, then the load; of nearly as many operations those that run fastest.
fn compare(
    (one, found): &(&Alternative, Found),
    (other, other_found): &(&Alternative, Found),
    objective: &Objective,
) -> Ordering {
    let (price, other_price) = (&found.price, &other_found.price);
    let near = |a: f64, b: f64, by: f64| (a - b).abs() <= by * a.abs().max(b.abs());
    let (own, others) = (price.under(objective), other_price.under(objective));
    let is_near = near(own, others, 1e-9) && near(price.load, other_price.load, NEARLY);
    match is_near && !near(one.work, other.work, NEARLY) {
        true => one.work.total_cmp(&other.work),
        false => price.compare(other_price, objective),
    }
}

/// Equivalent programs with their layouts.
#[derive(Default)]
struct LaidOut<'a> {
    found: Vec<(&'a Alternative, Found)>,
    /// The first that has no layout.
    none: Option<(&'a Program, NoLayout)>,
    left_out: Vec<String>,
}

/// Lays out those of equivalent programs that may be cheaper than the others. `orders`: the order of products is searched later.
fn lay_out<'a>(
    alternatives: &'a [Alternative],
    layouts: &Layouts<'_>,
    orders: bool,
) -> LaidOut<'a> {
    let mut laid_out = LaidOut::default();
    let mut forms: Vec<Vec<String>> = vec![];
    let wanted = &layouts.wanted;
    // No layout has less work for its busiest site than an even share.
    let works = alternatives
        .iter()
        .map(|alternative| work(&alternative.program));
    let share = works.fold(f64::INFINITY, f64::min) / f64::from(wanted.sites);
    let surely = share * wanted.balance;
    for (number, alternative) in alternatives.iter().enumerate() {
        // Another order of the same products is found below, with what it moves.
        let form = order::form(&alternative.program);
        if orders && forms.contains(&form) {
            continue;
        }
        forms.push(form);
        if number > 0 && (layouts.deadline)() {
            let count = alternatives.len() - number;
            laid_out
                .left_out
                .push(format!("{count} equivalent programs: time was up"));
            break;
        }
        let kept = laid_out
            .found
            .iter()
            .filter(|(_, found)| found.price.load <= surely);
        let best = kept.min_by(|a, b| a.1.price.compare(&b.1.price, &wanted.objective));
        match layouts.next(&alternative.program, best.map(|(_, found)| found)) {
            Ok(found) => laid_out.found.push((alternative, found)),
            Err(NoLayout::Dearer) => {}
            Err(refusal) => {
                laid_out.none.get_or_insert((&alternative.program, refusal));
            }
        }
    }
    laid_out
}

/// Operations of all statements of a program.
fn work(program: &Program) -> f64 {
    search::problem::Problem::new(program).total
}

/// The program with the least work, and a layout of it. No decision depends on the number of sites, on memory or on time.
fn deterministic(program: &Program, options: &Options) -> Result<(Program, Chosen), Stop> {
    let logic = rules::rewrite(
        program,
        &LogicOptions {
            disabled: &options.criteria.disabled_rules,
            node_limit: NODES,
            candidates: 1,
            deadline: &|| false,
        },
    );
    let mut alternatives = logic.alternatives.into_iter();
    let Some(best) = alternatives.next() else {
        return Err(Stop::Internal("there is no program to lay out".into()));
    };
    let layout = search::greedy::layout(&best.program, options.sites, true);
    let objective = options.criteria.objective;
    let chosen = Chosen {
        mesh: layout.mesh.clone(),
        price: search::price(&best.program, &layout, &objective),
        layout,
        programs: 1,
        logic_nodes: logic.explored.nodes,
        logic_classes: logic.explored.classes,
        rewrites: best.rules.iter().map(Rewrite::from).collect(),
        not_explored: vec![
            "other layouts: a deterministic one does not depend on the sites".into(),
        ],
        ..Chosen::default()
    };
    Ok((best.program, chosen))
}

fn chosen(found: Found) -> Chosen {
    let meshes = &found.report.meshes;
    let solved = meshes.iter().filter_map(|mesh| match mesh.outcome {
        Outcome::Proved { price } | Outcome::Improved { price, .. } => {
            Some((mesh.mesh.clone(), price))
        }
        Outcome::Near { .. }
        | Outcome::Dearer { .. }
        | Outcome::Inadmissible(_)
        | Outcome::Skipped(_) => None,
    });
    let mut not_explored: Vec<String> = found
        .report
        .unexplored()
        .map(|mesh| format!("mesh {}: {}", mesh.mesh, mesh.outcome))
        .collect();
    if found.report.interrupted {
        not_explored.push("the programs and meshes that the time limit cut off".into());
    }
    Chosen {
        meshes: solved.collect(),
        not_explored,
        balance: found.report.kappa,
        proved_optimal: found.proved_optimal,
        gap: found.report.gap,
        mesh: found.layout.mesh.clone(),
        layout: found.layout.coalesced(),
        price: found.price,
        ..Chosen::default()
    }
}

/// Why there is no layout, in the user's terms.
fn refused(program: &Program, options: &Options, none: &NoLayout) -> Stop {
    let (tensor, statement, shortfall) = match none {
        NoLayout::Pinned(what) => return Stop::Internal(what.clone()),
        NoLayout::Dearer => return Stop::Internal("no layout is below the cheapest".into()),
        NoLayout::Memory {
            tensor,
            statement,
            shortfall,
        } => (*tensor, program.tensor(*statement), *shortfall),
    };
    let missing = super::text::scaled(shortfall, "B");
    let limit = options.criteria.memory.unwrap_or(0);
    let limit = options.criteria.limit_in_words(limit);
    let diagnostic = Diagnostic::error(
        "E0996",
        format!(
            "no plan for {} fits in {limit}: at least {missing} are missing while `{}` is computed, most of all for `{}`",
            count(u64::from(options.sites), "site"),
            statement.name,
            program.tensor(tensor).name
        ),
    );
    let diagnostic = located(diagnostic, statement.origin);
    Stop::NoLayout(
        Box::new(diagnostic),
        shortfall,
        Box::new((program.clone(), tensor)),
    )
}

/// Returns advice for a program for which there is no layout, most of all for `tensor`: a number of sites that may do, or the message for the user.
pub(super) fn remedy(
    (program, tensor): &(Program, TensorId),
    options: &Options,
    deadline: &dyn Fn() -> bool,
) -> Result<u32, String> {
    let name = &program.tensor(*tensor).name;
    let help = match search::nearest(program, &search_options(options), *tensor, deadline) {
        Nearest::Sites(sites) => return Ok(sites),
        Nearest::Unknown => perhaps(options),
        Nearest::Dimensions(dims) if dims.is_empty() => {
            format!("more sites do not help; make `{name}` smaller")
        }
        Nearest::Dimensions(dims) => {
            let shape = &program.tensor(*tensor).shape;
            let dims: Vec<String> = dims
                .iter()
                .map(|dim| format!("{} (now {})", dim + 1, shape[*dim as usize]))
                .collect();
            let dims = dims.join(", ");
            format!("more sites do not help; make `{name}` smaller along dimension {dims}")
        }
    };
    Err(help)
}

/// Returns the advice for a program of which nothing is known that would make it fit.
pub(super) fn perhaps(options: &Options) -> String {
    let limit = options.criteria.limit_option();
    format!("more sites (`--sites`) or a higher `{limit}` may help")
}

fn located(diagnostic: Diagnostic, origin: ein_plan::Origin) -> Diagnostic {
    if origin.line == 0 {
        return diagnostic;
    }
    let span = einc_diag::Span {
        file: einc_diag::FileId(origin.file),
        start: origin.start,
        end: origin.end,
    };
    diagnostic.at(span, "here a site holds most")
}

/// Returns the message about a plan that does not keep to the limit that was asked for, and how many bytes are missing.
pub(super) fn missing(plan: &Plan, options: &Options) -> Option<(Diagnostic, u64)> {
    let limit = options.criteria.memory?;
    let peaks = memory::peaks(plan);
    let peak = peaks.iter().max_by_key(|peak| peak.bytes)?;
    if peak.bytes <= limit {
        return None;
    }
    let step = &plan.steps[peak.step];
    let scaled = super::text::scaled;
    let diagnostic = Diagnostic::error(
        "E0996",
        format!(
            "the plan for {} does not fit in {}: {} are missing at step {} (`{}`)",
            count(u64::from(options.sites), "site"),
            options.criteria.limit_in_words(limit),
            scaled(peak.bytes - limit, "B"),
            peak.step,
            step.tensor
        ),
    )
    .help(format!(
        "more sites (`--sites`) or a higher `{}` help",
        options.criteria.limit_option()
    ));
    let missing = peak.bytes - limit;
    Some((located(diagnostic, step.origin), missing))
}
