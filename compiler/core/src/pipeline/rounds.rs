//! Exchanges of sites between rounds of steps of their own, and the cost of such a step, tensor by tensor.
//!
//! Must not know plans. The formulas are those of Yuan et al. 2019, section 3.4, with the inner layers alone in the sum, and with everything
//! that is exchanged besides weights.
//!
//! ```text
//! W1: f32[64, 512], dim 1 in 4 parts, 10 steps   =>   4 blocks of 64 x 128, 3276.8 floats fetched a step
//! ```

use super::report::{PlanExchanged, PlanRounds};
use crate::sema::training::{Block, CarriedKind, Rounds, States, Training};
use crate::subnets::volume;
use std::fmt::Write;

/// The rounds of a block, if it has any.
pub fn rounds(training: &Training, block: &Block) -> Option<PlanRounds> {
    let rounds = block.rounds.as_ref()?;
    let mut tensors: Vec<(bool, PlanExchanged)> = vec![];
    let params: Vec<String> = of_kind(training, rounds, CarriedKind::Param);
    let steps = rounds
        .subnets
        .first()
        .and_then(|subnet| subnet.step.values().next_back());
    let flops = steps
        .map(|step| volume::flops(step, &params))
        .unwrap_or_default();
    for name in &rounds.learnt {
        let carried = training.carried.get(name)?;
        let state = carried.kind == CarriedKind::State;
        if state && rounds.states != States::Travel {
            continue;
        }
        let neurons: Vec<usize> = rounds
            .dealt
            .get(name)
            .into_iter()
            .flatten()
            .map(|(dim, _)| *dim)
            .collect();
        let mut exchanged = of_tensor(&carried.shape, &neurons, rounds, rounds.sites);
        exchanged.name.clone_from(name);
        exchanged.flops = flops.get(name).copied().unwrap_or(0);
        tensors.push((state, exchanged));
    }
    tensors.sort_by_key(|(state, _)| *state);
    Some(PlanRounds {
        sites: rounds.sites,
        parts: rounds.parts,
        local_steps: rounds.local_steps,
        tensors: tensors.into_iter().map(|(_, tensor)| tensor).collect(),
    })
}

fn of_kind(training: &Training, rounds: &Rounds, kind: CarriedKind) -> Vec<String> {
    let of = |name: &&String| {
        let carried = training.carried.get(*name);
        carried.is_some_and(|carried| carried.kind == kind)
    };
    rounds.learnt.iter().filter(of).cloned().collect()
}

/// Describes the exchange of a tensor.
fn of_tensor(shape: &[u64], neurons: &[usize], rounds: &Rounds, sites: u32) -> PlanExchanged {
    let all: u64 = shape.iter().product();
    let (n, parts) = (f64::from(sites), rounds.parts);
    let steps = rounds.local_steps as f64;
    let of_part = |part: u32| match neurons {
        [] => all,
        _ => volume::block(shape, neurons, parts, part),
    };
    let fetched: u64 = (0..sites).map(|site| of_part(site % parts)).sum();
    // Every mean of m copies sends each element 2 (m - 1) times.
    let mean = |part: u32| {
        let copies = match neurons {
            [] => n,
            _ => f64::from((sites - part).div_ceil(parts)),
        };
        2.0 * (copies - 1.0) * of_part(part) as f64
    };
    let sent = match neurons {
        [] => mean(0),
        _ => {
            let means: f64 = (0..parts).map(mean).sum();
            let once: u64 = (0..parts).map(of_part).sum();
            let (of_sites, of_parts) = (1.0 - 1.0 / n, 1.0 - 1.0 / f64::from(parts));
            means
                + match neurons.len() {
                    // A site has a part of its next block already.
                    1 => fetched as f64 * of_parts,
                    // From their home and back.
                    _ => fetched as f64 * of_sites + once as f64 * of_parts,
                }
        }
    };
    PlanExchanged {
        name: String::new(),
        shape: shape.to_vec(),
        neurons: neurons.to_vec(),
        data_parallel: all as f64 * n,
        local_sgd: all as f64 * n / steps,
        fetched: fetched as f64 / steps,
        sent: sent / steps,
        flops: 0,
    }
}

/// The rounds as a table.
pub(super) fn table(rounds: &PlanRounds) -> String {
    let PlanRounds {
        sites,
        parts,
        local_steps,
        tensors,
    } = rounds;
    let what = match parts {
        1 => "of the whole net".to_owned(),
        _ => format!("of {parts} parts of the neurons"),
    };
    let mut text = format!(
        "rounds of {local_steps} steps at each of {sites} sites, {what}; floats a gradient step, of all sites\n\n"
    );
    let head = [
        "",
        "fetched",
        "sent (expected)",
        "local SGD",
        "data parallel",
        "flops of a site",
    ];
    let mut rows: Vec<Vec<String>> = vec![head.map(str::to_owned).to_vec()];
    let mut total = ([0.0; 4], 0u64);
    let number = |value: f64| match value.fract() == 0.0 {
        true => format!("{value}"),
        false => format!("{value:.1}"),
    };
    for tensor in tensors {
        let mut name = format!("{} [", tensor.name);
        for (dim, extent) in tensor.shape.iter().enumerate() {
            let separator = if dim > 0 { ", " } else { "" };
            let cut = if tensor.neurons.contains(&dim) && *parts > 1 {
                format!("/{parts}")
            } else {
                String::new()
            };
            let _ = write!(name, "{separator}{extent}{cut}");
        }
        name.push(']');
        let floats = [
            tensor.fetched,
            tensor.sent,
            tensor.local_sgd,
            tensor.data_parallel,
        ];
        for (sum, own) in total.0.iter_mut().zip(floats) {
            *sum += own;
        }
        total.1 += tensor.flops;
        let mut row = vec![name];
        row.extend(floats.map(number));
        row.push(tensor.flops.to_string());
        rows.push(row);
    }
    let mut last = vec!["all".to_owned()];
    last.extend(total.0.map(number));
    last.push(total.1.to_string());
    rows.push(last);
    text.push_str(&super::text::table(
        &rows,
        &[false, true, true, true, true, true],
    ));
    text.push_str("\nthe plan of a step of one site:\n\n");
    text
}
