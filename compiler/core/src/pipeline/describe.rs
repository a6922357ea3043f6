//! A compiled program as a report: every step with its operator, type, placement, cost, line and reason.
//!
//! Must not know how a report is printed.
//!
//! ```text
//! step 2: broadcast B, {} f32[4096, 4096] @ ALL, 67108864 floats, because `C` (matmul.ein:10) reads `B` whole …
//! ```

use super::because::{because, looked_up};
use super::report::{
    PlanCost, PlanLoop, PlanOutput, PlanReport, PlanState, PlanStep, Rewrite, SCHEMA, Searched,
    SourceLine,
};
use super::{Compiled, Objective, Options};
use crate::ia::{Operation, Program, Relation};
use ein_plan::amounts::Amounts;
use ein_plan::print::WithLoops;
use ein_plan::spill::Volume;
use ein_plan::{
    BlockId, Bound, LoopValue, Origin, Plan, RelationId, Source, Spill, memory,
    traffic::{self, Traffic},
};

/// The report of a compiled program; `texts` are the program's files, in their order, where they are at hand.
pub fn describe(compiled: &Compiled, options: &Options, texts: &[&str]) -> PlanReport {
    let (ia, plan) = (&compiled.ia, &compiled.plan);
    let marks = Marks {
        sweeps: plan.sweeps_of_steps(),
        passing: plan.passing(),
        exchanges: plan.exchanges_of_steps(),
        sent: traffic::by_step(plan),
    };
    let numbers = 0..ia.relations.len();
    let steps = numbers.map(|number| step(compiled, &marks, number, texts));
    PlanReport {
        schema: SCHEMA.into(),
        program: ia.files.first().cloned().unwrap_or_default(),
        sites: ia.sites,
        mesh: plan.mesh.axes.clone(),
        mesh_inside: match &options.criteria.objective {
            Objective::Time(model) => model.inside(&plan.mesh),
            Objective::Transfer | Objective::Bytes => None,
        },
        objective: options.criteria.objective.name().into(),
        deterministic: plan.deterministic,
        balance: options.criteria.balance.max(compiled.chosen.balance),
        memory_limit: options.criteria.memory,
        resting: (plan.spilled() != Volume::default()).then_some(plan.resting),
        cost: plan_cost(compiled, options),
        proved_optimal: compiled.chosen.proved_optimal,
        gap: compiled.chosen.gap,
        search: Searched {
            meshes: (compiled.chosen.meshes.iter())
                .map(|(mesh, price)| (mesh.to_string(), *price))
                .collect(),
            not_explored: compiled.chosen.not_explored.clone(),
            programs: compiled.chosen.programs,
            logic_nodes: compiled.chosen.logic_nodes,
            logic_classes: compiled.chosen.logic_classes,
            proved_equal: compiled.proof.as_ref().map(|proof| proof.proved),
        },
        forms: vec![],
        steps: steps.collect(),
        loops: loops(compiled),
        rounds: None,
        outputs: plan
            .outputs
            .iter()
            .map(|output| PlanOutput {
                name: output.name.clone(),
                step: output.relation.0 as usize,
                file: output.file.clone(),
                asserts: output.asserts.clone(),
            })
            .collect(),
        alternatives: vec![],
        rewrites: rewrites(compiled),
        kernels: WithLoops(plan).to_string(),
    }
}

/// By step: how the plan takes it together with others, and what it sends.
struct Marks {
    sweeps: Vec<Option<usize>>,
    passing: Vec<bool>,
    exchanges: Vec<Option<usize>>,
    sent: Vec<Traffic>,
}

/// Describes one step.
fn step(compiled: &Compiled, marks: &Marks, number: usize, texts: &[&str]) -> PlanStep {
    let (ia, plan) = (&compiled.ia, &compiled.plan);
    let relation = &ia.relations[number];
    let (sweep, passes) = (marks.sweeps[number], marks.passing[number]);
    let (exchange, sent) = (marks.exchanges[number], &marks.sent[number]);
    let kind = relation.kind.to_string();
    let (kind, placement) = kind.rsplit_once(" @ ").unwrap_or((&kind, ""));
    let cost = &compiled.cost.steps[number];
    let in_place = plan.in_place(&plan.steps[number]).is_some();
    let held = Amounts::bytes(&relation.kind, &plan.mesh).at_sites(&[&relation.kind.placement]);
    PlanStep {
        step: number,
        name: relation.name.clone(),
        tensor: relation.tensor.clone(),
        operator: match in_place {
            true => "local update".into(),
            false => operator(&relation.operation).into(),
        },
        text: match sweep {
            None if in_place => {
                text(ia, relation).replacen("local join", "local update in place", 1)
            }
            None if plan.is_streamed(RelationId(number as u32)) => {
                format!("{}, {}", text(ia, relation), plan.resting.located())
            }
            None => format!("{}{}", text(ia, relation), going(plan, exchange)),
            Some(sweep) => {
                let passes = if passes { ", passes" } else { "" };
                format!("{} in sweep {sweep}{passes}", text(ia, relation))
            }
        },
        sweep: sweep.map_or(vec![], |sweep| {
            let members = plan.sweeps[sweep].members.iter();
            members.map(|member| member.0 as usize).collect()
        }),
        passes,
        streamed: plan.is_streamed(RelationId(number as u32)),
        together: match exchange.map(|e| &plan.exchanges[e].members) {
            Some(members) if members.len() > 1 => {
                members.iter().map(|member| member.0 as usize).collect()
            }
            _ => vec![],
        },
        beside: exchange.and_then(|exchange| {
            let exchange = &plan.exchanges[exchange];
            (exchange.until > exchange.last()).then_some(exchange.until.0 as usize)
        }),
        spills: resting(plan, number, |spill| spill.before),
        restores: resting(plan, number, |spill| spill.until),
        inputs: inputs(relation),
        kind: kind.into(),
        frontier: relation.kind.keys.iter().map(|key| key.pieces).collect(),
        placement: placement.into(),
        rules: rules(compiled, relation),
        transfer: figure(cost.transfer),
        floats: sent.floats,
        bytes: sent.bytes,
        flops: figure(cost.flops),
        memory: match passes {
            true => 0,
            false if plan.is_streamed(RelationId(number as u32)) => relation.kind.largest_tuple(),
            false => figure(held.into_iter().max().unwrap_or(0)),
        },
        source: source(ia, relation.origin, texts),
        because: because(ia, RelationId(number as u32)),
        looked_up: looked_up(ia, RelationId(number as u32)).map_or(String::new(), |(by, dim)| {
            format!("{} looks up dimension {}", by.tensor, dim + 1)
        }),
        times: cost.times,
    }
}

/// Sums up the costs of a plan.
fn plan_cost(compiled: &Compiled, options: &Options) -> PlanCost {
    let (plan, cost) = (&compiled.plan, &compiled.cost);
    let peaks = memory::peaks(plan);
    let peak = peaks.iter().max_by_key(|peak| peak.bytes);
    let received = traffic::received(plan);
    PlanCost {
        transfer: figure(cost.transfer),
        bytes: cost.bytes,
        bytes_per_site_max: received.iter().map(|site| site.bytes).max().unwrap_or(0),
        flops_per_site_max: figure(cost.flops),
        peak_memory_per_site_max: peak.map_or(0, |peak| peak.bytes),
        peak_step: peak.map_or(0, |peak| peak.step),
        spill_written: plan.spilled().written,
        spill_read: plan.spilled().read,
        rests_per_site_max: plan.at_rest().into_iter().max().unwrap_or(0),
        meetings: plan.expected_meetings(),
        seconds: matches!(options.criteria.objective, Objective::Time(_))
            .then_some(compiled.chosen.price.seconds),
    }
}

/// Lists the relations that go to disk in front of a step, or are back.
fn resting(plan: &Plan, step: usize, at: impl Fn(&Spill) -> RelationId) -> Vec<usize> {
    let spills = plan.spills.iter();
    let here = spills.filter(|spill| at(spill).0 as usize == step);
    here.map(|spill| spill.relation.0 as usize).collect()
}

/// Describes a movement in an exchange.
fn going(plan: &Plan, exchange: Option<usize>) -> String {
    let Some(exchange) = exchange else {
        return String::new();
    };
    let members = &plan.exchanges[exchange].members;
    let beside = (
        members.last().map_or(0, |last| last.0) + 1,
        plan.exchanges[exchange].until.0,
    );
    let beside = match beside {
        (first, until) if first > until => String::new(),
        (first, until) if first == until => format!(" beside {first}"),
        (first, until) => format!(" beside {first} to {until}"),
    };
    match members.len() {
        1 => beside,
        _ => format!(" in exchange {exchange}{beside}"),
    }
}

/// The loops, with what a round of each costs.
fn loops(compiled: &Compiled) -> Vec<PlanLoop> {
    let plan = &compiled.plan;
    let times = plan.expected_times();
    let numbered = (0..).map(BlockId).zip(&plan.repeats);
    let loops = numbered.zip(times).map(|((id, repeat), times)| {
        let block = &repeat.block;
        let is_state = |operation: &ein_plan::Operation, number: u32| match operation {
            ein_plan::Operation::Loop { value } => {
                *value == LoopValue::State(id, number) || *value == LoopValue::Last(id, number)
            }
            _ => false,
        };
        let states = (0..).zip(&block.states).map(|(number, state)| {
            let numbered = plan.steps.iter().enumerate();
            let values = numbered.filter(|(_, step)| is_state(&step.operation, number));
            PlanState {
                initial: state.initial.0 as usize,
                next: state.next.0 as usize,
                values: values.map(|(step, _)| step).collect(),
            }
        });
        let of = |relation: RelationId| plan.step(relation).tensor.as_str();
        let bound = match block.bound {
            Bound::Rounds(rounds) => rounds.to_string(),
            Bound::Value(bound) => of(bound).to_string(),
            Bound::Unbounded => "inf".into(),
        };
        let until = block.until.map(|until| format!(" until {}", of(until)));
        let steps = repeat.first as usize..repeat.end as usize;
        let steps = compiled.cost.steps[steps].iter();
        let all = steps.map(|step| step.transfer.saturating_mul(step.times.into()));
        let transfer = all.fold(0, u128::saturating_add);
        PlanLoop {
            name: block.name.clone(),
            parent: block.parent.map(|parent| parent.0 as usize),
            first: repeat.first as usize,
            end: repeat.end as usize,
            text: format!("{} < {bound}{}", block.name, until.unwrap_or_default()),
            rounds: block.expected_rounds(),
            transfer_per_round: figure(transfer / u128::from(times.max(1))),
            transfer: figure(transfer),
            states: states.collect(),
        }
    });
    loops.collect()
}

/// The rewrites of the program, then those of its proof.
fn rewrites(compiled: &Compiled) -> Vec<Rewrite> {
    let proof = compiled.proof.iter().flat_map(|proof| &proof.steps);
    let proof = proof.map(|step| Rewrite {
        rule: step.rule.clone(),
        tensor: step.tensor.clone(),
        before: step.before.clone(),
        after: step.after.clone(),
    });
    compiled
        .chosen
        .rewrites
        .iter()
        .cloned()
        .chain(proof)
        .collect()
}

/// The rules that were applied to a relation's tensor, and the one that its operator comes from.
fn rules(compiled: &Compiled, relation: &Relation) -> Vec<String> {
    let mut rules: Vec<String> = vec![];
    let applied = compiled
        .chosen
        .rewrites
        .iter()
        .map(|r| (&r.tensor, &r.rule));
    let proved = compiled.proof.iter().flat_map(|proof| &proof.steps);
    let proved = proved.map(|step| (&step.tensor, &step.rule));
    for (tensor, rule) in applied.chain(proved) {
        if *tensor == relation.tensor && !rules.contains(rule) {
            rules.push(rule.clone());
        }
    }
    rules
}

/// Returns the name of an operator.
pub fn operator(operation: &Operation) -> &'static str {
    match operation {
        Operation::Source { .. } => "source",
        Operation::Broadcast { .. } => "broadcast",
        Operation::Shuffle { .. } => "shuffle",
        Operation::Window { .. } => "window",
        Operation::LocalJoin { .. } => "local join",
        Operation::LocalAggregate { .. } => "local aggregate",
        Operation::LocalFilter { .. } => "local filter",
        Operation::LocalMap { .. } => "local map",
        Operation::LocalTile { .. } => "local tile",
        Operation::LocalConcat { .. } => "local concat",
        Operation::Loop { .. } => "loop",
    }
}

/// An operation in one line, its inputs by name.
pub fn text(program: &Program, relation: &Relation) -> String {
    let name = |id: &RelationId| program.relation(*id).name.as_str();
    match &relation.operation {
        Operation::Source { source, .. } if *source == Source::Kept => "source, kept".into(),
        Operation::Source { .. } => "source".into(),
        Operation::Broadcast { input } => format!("broadcast {}", name(input)),
        Operation::Shuffle { input } => format!("shuffle {}", name(input)),
        Operation::Window { input } => format!("window {}", name(input)),
        Operation::LocalJoin { inputs, kernel, .. } => {
            let names: Vec<&str> = inputs.iter().map(|input| name(&input.relation)).collect();
            if let Some(library) = kernel.library() {
                return format!("local {} ({})", library.operation.name(), names.join(", "));
            }
            let reduction = match kernel.reduction {
                None => String::new(),
                Some(reduction) => format!("{} ", reduction.name()),
            };
            format!("local join {reduction}({})", names.join(", "))
        }
        Operation::LocalAggregate {
            input, reduction, ..
        } => format!("local aggregate {} {}", reduction.name(), name(input)),
        Operation::LocalFilter { input, key, value } => {
            let key = &program.relation(*input).kind.keys[*key as usize].name;
            format!("local filter {} where {key} = {value}", name(input))
        }
        Operation::LocalMap { input, .. } => format!("local map {}", name(input)),
        Operation::LocalTile { input, array_dim } => {
            format!("local tile {} dim {array_dim}", name(input))
        }
        Operation::LocalConcat { input, array_dim } => {
            format!("local concat {} dim {array_dim}", name(input))
        }
        Operation::Loop { value } => {
            let block = &program.blocks[value.block().0 as usize].name;
            match value {
                LoopValue::Counter(_) => format!("the round of {block}"),
                LoopValue::State(..) => format!("state of {block}"),
                LoopValue::Last(..) => format!("state behind {block}"),
                LoopValue::Rounds(_) => format!("rounds of {block}"),
                LoopValue::Collected(..) => format!("of every round of {block}"),
            }
        }
    }
}

fn inputs(relation: &Relation) -> Vec<usize> {
    let inputs = relation.operation.inputs();
    inputs.iter().map(|input| input.0 as usize).collect()
}

fn figure(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

fn source(program: &Program, origin: Origin, texts: &[&str]) -> SourceLine {
    let Some(file) = program.files.get(origin.file as usize) else {
        return SourceLine::default();
    };
    let lines = texts.get(origin.file as usize).map(|text| text.lines());
    let line = lines.and_then(|mut lines| lines.nth(origin.line.checked_sub(1)? as usize));
    SourceLine {
        file: file.clone(),
        line: origin.line,
        text: line.unwrap_or_default().trim().into(),
    }
}
