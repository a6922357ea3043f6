//! The steps that sites make by themselves: of the whole net, or of the subnets that its neurons are dealt into.
//!
//! Must not know plans or how sites exchange what they have learnt.
//!
//! ```text
//! ist(local_steps: 10), 3 sites, 100 neurons   =>   subnets of 34 and of 33 neurons; parts 0, 1, 2 are 34, 33, 33
//! ```

use crate::einsum::{Definition, Output, Program, Tensor};
use crate::sema::{
    train::strategy,
    train::training::{Block, CarriedKind, Rounds, Subnet, Training},
};
use crate::subnets::{self, Failure, Found, Neurons};
use ein_plan::{Node, Origin, Scalar, relation::piece};
use einc_diag::{Diagnostic, FileId, Span};
use std::collections::{BTreeMap, BTreeSet};

fn span(origin: Origin) -> Span {
    Span {
        file: FileId(origin.file),
        start: origin.start,
        end: origin.end,
    }
}

/// The names of what a step gives on.
pub(crate) fn learnt(program: &Program) -> Vec<String> {
    let replaced = |output: &Output| output.replaces.clone();
    program.outputs.iter().filter_map(replaced).collect()
}

/// The rounds of a block whose steps are known, and what counts its neurons.
///
/// # Errors
/// Obstacles to subnets.
pub(crate) fn rounds(
    asked: &strategy::Rounds,
    block: &Block,
    training: &Training,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<(Rounds, Vec<Neurons>), Diagnostic> {
    let whole = block.step.values().next_back();
    let mut given: Vec<String> = vec![];
    for program in block.step.values().chain(&block.apply) {
        given.extend(learnt(program));
    }
    let kind = |name: &String| training.carried.get(name).map(|carried| carried.kind);
    let mut seen = BTreeSet::new();
    given.retain(|name| kind(name) != Some(CarriedKind::Gradient) && seen.insert(name.clone()));
    let mut rounds = Rounds {
        local_steps: asked.local_steps,
        sites: asked.sites as u32,
        parts: asked.parts.unwrap_or(1) as u32,
        states: asked.states,
        neurons: vec![],
        dealt: BTreeMap::new(),
        learnt: given,
        summed: vec![],
        subnets: vec![],
        of_part: vec![0],
    };
    let (Some(whole), Some(parts)) = (whole, asked.parts) else {
        rounds.subnets.push(Subnet {
            sizes: vec![],
            step: block.step.clone(),
            apply: block.apply.clone(),
        });
        return Ok((rounds, vec![]));
    };
    let params: BTreeSet<String> = rounds
        .learnt
        .iter()
        .filter(|name| kind(name) == Some(CarriedKind::Param))
        .cloned()
        .collect();
    let mut loss = whole.clone();
    loss.outputs.truncate(1);
    let Found {
        neurons,
        summed,
        unnormalised,
    } = subnets::recognise(&loss.needed(), &params, &asked.asked).map_err(|f| failure(f, asked))?;
    check_parts(asked, &neurons, parts)?;
    if parts > 1 {
        diagnostics.extend(warnings(asked, &neurons, parts, unnormalised));
    }
    for program in block.step.values().chain(&block.apply) {
        rounds.dealt.extend(subnets::blocks(program, &neurons));
    }
    let running = |name: &&String| {
        parts > 1 && kind(name) == Some(CarriedKind::Running) && rounds.dealt.contains_key(*name)
    };
    if let Some(state) = rounds.learnt.iter().find(running) {
        return Err(averaged(asked, block, state));
    }
    (rounds.subnets, rounds.of_part) = subnets_of(block, &neurons, parts as u32)?;
    let named = neurons.iter();
    rounds.neurons = named
        .map(|layer| (layer.name.clone(), layer.size))
        .collect();
    rounds.summed = summed;
    Ok((rounds, neurons))
}

/// Every part needs a neuron of each layer.
fn check_parts(
    asked: &strategy::Rounds,
    neurons: &[Neurons],
    parts: u64,
) -> Result<(), Diagnostic> {
    for layer in neurons {
        if parts > layer.size {
            let message = format!("{parts} parts of {} neurons", layer.size);
            return Err(Diagnostic::error("E0627", message)
                .at(
                    asked.span,
                    format!(
                        "the neurons that `{}` makes are fewer than the parts",
                        layer.name
                    ),
                )
                .help(
                    "use fewer sites or `parts:`, or name the layers that are cut: `neurons: [h]`",
                ));
        }
    }
    Ok(())
}

/// Returns warnings about a net that is trained in several parts.
fn warnings(
    asked: &strategy::Rounds,
    neurons: &[Neurons],
    parts: u64,
    unnormalised: Vec<(String, Origin)>,
) -> Vec<Diagnostic> {
    let mut diagnostics = vec![];
    for (weight, origin) in unnormalised {
        diagnostics.push(
            Diagnostic::warning("E0629", format!("`{weight}` joins two layers of neurons without a normalisation behind it"))
                .at(span(origin), format!("the full net sums {parts} times as many neurons here as a subnet"))
                .note("what a subnet learns to expect here is not what it meets in the full net; the error grows with the layers and the parts")
                .help("normalise each neuron behind this sum: `nn.ist_norm`"),
        );
    }
    let narrow = neurons.iter().min_by_key(|layer| layer.size);
    if let Some(layer) = narrow.filter(|layer| layer.size / parts < NARROW) {
        diagnostics.push(
            Diagnostic::warning("E0629", format!("subnets may be too narrow: {} neurons", layer.size / parts))
                .at(asked.span, format!("{parts} parts of the {} neurons of `{}`", layer.size, layer.name))
                .note(format!("below {NARROW} neurons a site and layer the final accuracy may suffer on hard problems"))
                .help("use fewer `parts:` or a wider layer, or let a block with fewer parts follow"),
        );
    }
    diagnostics
}

/// The error for a state that averages over steps what dealt neurons do.
fn averaged(asked: &strategy::Rounds, block: &Block, state: &str) -> Diagnostic {
    let mut programs = block.step.values().chain(&block.apply);
    let tensor = programs.find_map(|p| p.tensors.iter().find(|tensor| tensor.name == state));
    let message = format!("`{state}` is an average over steps of what dealt neurons do");
    let error = Diagnostic::error("E0628", message)
        .at(asked.span, "each step here is one of a part of the neurons");
    let error = match tensor {
        Some(tensor) => error.at(
            span(tensor.origin),
            "subnets give it other values than the whole net, which it is for",
        ),
        None => error,
    };
    error
        .help("let its `next` not depend on a state: such a statistic is estimated on the whole net before that is evaluated")
        .help("`nn.ist_norm` does so")
}

/// The steps of each different subnet, and by part which of them it is of.
fn subnets_of(
    block: &Block,
    neurons: &[Neurons],
    parts: u32,
) -> Result<(Vec<Subnet<Program>>, Vec<usize>), Diagnostic> {
    let (mut found, mut of_part): (Vec<Subnet<Program>>, Vec<usize>) = (vec![], vec![]);
    for part in 0..parts {
        let size = |layer: &Neurons| piece(layer.size, parts, part).1;
        let sizes: Vec<u64> = neurons.iter().map(size).collect();
        let known = found.iter().position(|subnet| subnet.sizes == sizes);
        of_part.push(known.unwrap_or(found.len()));
        if known.is_none() {
            let cut = |program: &Program| {
                subnets::cut(program, neurons, &sizes).map_err(|what| {
                    Diagnostic::error(
                        "E0999",
                        format!("internal error: a subnet does not verify: {what}"),
                    )
                })
            };
            let step = block.step.iter();
            found.push(Subnet {
                step: step
                    .map(|(rows, program)| Ok((*rows, cut(program)?)))
                    .collect::<Result<_, Diagnostic>>()?,
                apply: block.apply.as_ref().map(cut).transpose()?,
                sizes,
            });
        }
    }
    Ok((found, of_part))
}

/// Where a loss computes with the number of neurons of a layer: `other` is the same loss with another number of them.
pub(crate) fn uses_number(
    loss: &Program,
    other: &Program,
    neurons: &[Neurons],
) -> Option<Diagnostic> {
    let named = |program: &Program, name: &str| {
        let found = program.tensors.iter().find(|tensor| tensor.name == name);
        found.map(|tensor| tensor.shape.clone())
    };
    let grown = |layer: &&Neurons| {
        let (name, dim) = &layer.params[0];
        let size = named(other, name).and_then(|shape| shape.get(*dim).copied());
        size.is_some_and(|size| size != layer.size)
    };
    let layer = neurons.iter().find(grown)?;
    let constants = |tensor: &Tensor| -> Vec<Scalar> {
        let Definition::Statement { kernel, .. } = &tensor.definition else {
            return vec![];
        };
        let nodes = kernel.graph.iter();
        let of = nodes.filter_map(|(_, node, _)| match node {
            Node::Constant(value) => Some(*value),
            _ => None,
        });
        of.collect()
    };
    let mut pairs = loss.tensors.iter().zip(&other.tensors);
    let (found, _) = pairs.find(|(a, b)| a.name == b.name && constants(a) != constants(b))?;
    let message = format!(
        "the neurons that `{}` makes cannot be cut: a value depends on how many there are",
        layer.name
    );
    Some(
        Diagnostic::error("E0628", message)
            .at(
                span(found.origin),
                "this depends on how many neurons there are",
            )
            .note("a subnet has fewer, and would compute something else")
            .help("write the number as a `const` of its own, if it is to stay as it is"),
    )
}

/// Neurons of a site and layer below which a note is given.
const NARROW: u64 = 256;

fn failure(failure: Failure, asked: &strategy::Rounds) -> Diagnostic {
    match failure {
        Failure::None(cause) => cause.into_iter().fold(
            Diagnostic::error("E0628", "the loss has no neurons that could be dealt to sites")
                .at(asked.span, "needs hidden layers"),
            |error, (what, origin)| error.at(span(origin), what),
        )
            .note("neurons are counted by an index that one weight makes and another weight sums over")
            .help("`strategy: local_sgd(steps: 10)` needs none"),
        Failure::Unknown(name) => Diagnostic::error("E0628", format!("`{name}` has no neurons"))
            .at(asked.span, "listed here")
            .note("neurons are counted by an index that one weight makes and another weight sums over")
            .help("name a definition that has such an index, or the weight that makes it"),
        Failure::InTheWay {
            neurons,
            reason,
            origin,
        } => Diagnostic::error("E0628", format!("the neurons that `{neurons}` makes cannot be cut: {reason}"))
            .at(span(origin), "this needs all of them")
            .at(asked.span, "asked for here")
            .help(match asked.asked.names {
                None => "name the layers that are to be cut, `neurons: [h]`; the others are averaged",
                Some(_) => "name other layers; `strategy: local_sgd(steps: 10)` cuts none",
            }),
    }
}
