//! What the rounds of a block exchange, neuron by neuron: known before they are made, since deals depend on the seed alone.
//!
//! Must not know arrays, nor how blocks are sent.
//!
//! ```text
//! W1 f32[64, 5], round 0: 0 2 3 | 1 4, round 1: 0 1 2 | 3 4   ->   neurons 1 and 3 change site: 128 floats
//! ```

use super::deal::Deal;
use super::rounds::Exchanged;
use super::{Block, CarriedKind, Rounds, Session, States};
use ein_device::Device;
use ein_plan::relation::piece;
use std::collections::BTreeMap;

/// By tensor what the rounds of a block exchange on so many sites, from step `from` on. What is gathered to evaluate is not among it.
pub fn stated(
    session: &Session,
    block: &Block,
    rounds: &Rounds,
    sites: u32,
    drawn: (u64, &dyn Device),
    from: u64,
) -> BTreeMap<String, Exchanged> {
    let mut found = BTreeMap::new();
    let mut before: Option<Vec<Vec<u32>>> = None;
    let length = rounds.local_steps.max(1);
    for round in from / length..block.steps.div_ceil(length) {
        let owners = owners(block, rounds, round, drawn);
        for name in &rounds.learnt {
            let Some(carried) = session.carried.get(name) else {
                continue;
            };
            let state = carried.kind == CarriedKind::State;
            if state && rounds.states != States::Travel {
                continue;
            }
            let entry: &mut Exchanged = found.entry(name.clone()).or_default();
            match rounds.dealt.get(name) {
                None => {
                    let all: u64 = carried.shape.iter().product();
                    entry.handed += all * u64::from(sites);
                    entry.sent += 2 * (u64::from(sites) - 1) * all;
                }
                Some(dims) => {
                    let tensor = (carried.shape.as_slice(), dims.as_slice());
                    let own = dealt(tensor, rounds.parts, sites, &owners, before.as_deref());
                    entry.handed += own.handed;
                    entry.sent += own.sent;
                }
            }
        }
        before = Some(owners);
    }
    found
}

/// By layer and neuron, the part that it is of.
fn owners(block: &Block, rounds: &Rounds, round: u64, drawn: (u64, &dyn Device)) -> Vec<Vec<u32>> {
    let deal = Deal::of(&rounds.neurons, rounds.parts, (&block.name, round), drawn);
    let layers = rounds.neurons.iter().enumerate();
    let of_layer = |(layer, (_, size)): (usize, &(String, u64))| {
        let mut owners = vec![0; *size as usize];
        for part in 0..rounds.parts {
            deal.neurons(layer, part)
                .iter()
                .for_each(|neuron| owners[*neuron as usize] = part);
        }
        owners
    };
    layers.map(of_layer).collect()
}

/// One round of a tensor with dimensions of neurons.
fn dealt(
    (shape, dims): (&[u64], &[(usize, usize)]),
    parts: u32,
    sites: u32,
    owners: &[Vec<u32>],
    before: Option<&[Vec<u32>]>,
) -> Exchanged {
    let (first, layer) = dims[0];
    let of_part =
        |layer: usize, part: u32| owners[layer].iter().filter(|own| **own == part).count() as u64;
    // Elements that a part has for one of its neurons of the first dimension.
    let width = |part: u32| -> u64 {
        let widths = shape.iter().enumerate().filter(|(dim, _)| *dim != first);
        let extent = |(dim, extent): (usize, &u64)| match dims.iter().find(|(own, _)| *own == dim) {
            Some((_, layer)) => of_part(*layer, part),
            None => *extent,
        };
        widths.map(extent).product()
    };
    let copies = |part: u32| u64::from((sites - part).div_ceil(parts));
    let home_of = |neuron: u64| {
        let mut all = 0..sites;
        all.find(|site| {
            let (start, length) = piece(shape[first], sites, *site);
            (start..start + length).contains(&neuron)
        })
    };
    let mut found = Exchanged::default();
    for part in 0..parts {
        let (block, copies) = (of_part(layer, part) * width(part), copies(part));
        found.handed += block * copies;
        found.sent += 2 * (copies - 1) * block;
    }
    for (neuron, owner) in (0..).zip(&owners[layer]) {
        let has = |site: u32| site % parts == *owner;
        let home = home_of(neuron).unwrap_or(0);
        let wanted = copies(*owner);
        found.sent += width(*owner)
            * match before {
                Some(before) if dims.len() == 1 => match before[layer][neuron as usize] == *owner {
                    true => 0,
                    false => wanted,
                },
                _ => wanted - u64::from(has(home)),
            };
        if dims.len() > 1 && !has(home) {
            found.sent += width(*owner);
        }
    }
    found
}
