//! Rewriting programs with blocks: what stands in one block, or outside of all, is a program of its own.
//!
//! The tensors that such a part reads of elsewhere are its inputs, those that others need of it its outputs, so that no statement goes
//! into a block. Put together again, a statement is in the innermost block that it still reads of: one that has lost all
//! that changes from round to round has moved out. Must not know what the rules do.
//!
//! ```text
//! repeat t { y = A B x }   the part of t:   input A, input B, input x;  y.1 = B x;  y = A y.1;  output y
//! ```

use super::price::{self, ComputeCost};
use super::{Alternative, Explored, Logic, LogicOptions, Stop};
use crate::einsum::{
    self, BlockId, Bound, Definition, Output, Program, Tensor, TensorId, canonical,
};
use ein_plan::{Origin, Source};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The statements of one place as a program.
struct Part {
    place: Option<BlockId>,
    program: Program,
    /// Which tensors its outputs are.
    outputs: Vec<TensorId>,
}

/// Alternatives of a program with blocks: each part's best together, its second best, and so on; the original among them.
pub(super) fn rewrite(program: &Program, options: &LogicOptions<'_>) -> Logic {
    let mut explored = Explored {
        nodes: 0,
        classes: 0,
        iterations: 0,
        stop: Stop::Saturated,
        fired: BTreeMap::new(),
    };
    let mut parts = vec![];
    for part in parts_of(program) {
        let logic = super::rewrite(&part.program, options);
        explored.nodes += logic.explored.nodes;
        explored.classes += logic.explored.classes;
        explored.iterations = explored.iterations.max(logic.explored.iterations);
        if logic.explored.stop != Stop::Saturated {
            explored.stop = logic.explored.stop;
        }
        for (rule, count) in logic.explored.fired {
            *explored.fired.entry(rule).or_default() += count;
        }
        parts.push((part, logic.alternatives));
    }
    let most = parts.iter().map(|(_, all)| all.len()).max().unwrap_or(0);
    let mut alternatives = Logic::original(program).alternatives;
    let before = price(program);
    for original in &mut alternatives {
        (original.work, original.flops) = (before.score(), before.flops);
    }
    for number in 0..most.min(options.candidates.max(1)) {
        let chosen: Vec<(&Part, &Alternative)> = (parts.iter())
            .filter_map(|(part, all)| Some((part, all.get(number).or(all.last())?)))
            .collect();
        let rules = chosen.iter().flat_map(|(_, chosen)| chosen.rules.clone());
        let rules: Vec<_> = rules.collect();
        if rules.is_empty() {
            continue;
        }
        // What a part is equal to may read what comes later elsewhere: then it is no program.
        let Some(together) = together(program, &chosen) else {
            continue;
        };
        let is_new = |known: &Alternative| known.program != together;
        if einsum::verify::verify(&together).is_ok() && alternatives.iter().all(is_new) {
            let price = price(&together);
            alternatives.push(Alternative {
                program: together,
                rules,
                work: price.score(),
                flops: price.flops,
            });
        }
    }
    alternatives.sort_by(|a, b| a.work.total_cmp(&b.work));
    Logic {
        alternatives,
        explored,
    }
}

/// The price of a program, every round counted.
fn price(program: &Program) -> ComputeCost {
    let times = program.expected_times();
    let mut sum = ComputeCost::default();
    for (tensor, rounds) in program.tensors.iter().zip(times) {
        if let Definition::Statement { kernel, .. } = &tensor.definition {
            let once = price::statement(kernel);
            sum = sum.plus(ComputeCost {
                flops: once.flops * rounds,
                weighted: once.weighted * rounds,
                bytes: once.bytes * rounds,
            });
        }
    }
    sum
}

/// Lists the tensors that blocks name.
fn named(program: &Program) -> impl Iterator<Item = TensorId> {
    program.blocks.iter().flat_map(|block| {
        let bound = match block.bound {
            Bound::Value(bound) => Some(bound),
            Bound::Rounds(_) | Bound::Unbounded => None,
        };
        let states = block.states.iter().flat_map(|s| [s.initial, s.next]);
        let collected = block.collected.iter().map(|c| c.value);
        states.chain(collected).chain(block.until).chain(bound)
    })
}

fn parts_of(program: &Program) -> Vec<Part> {
    let mut wanted: HashSet<TensorId> = named(program).collect();
    wanted.extend(program.outputs.iter().map(|output| output.tensor));
    for tensor in &program.tensors {
        if let Definition::Statement { operands, .. } = &tensor.definition {
            let elsewhere = operands
                .iter()
                .filter(|o| program.tensor(**o).block != tensor.block);
            wanted.extend(elsewhere);
        }
    }
    let blocks = (0..program.blocks.len() as u32).map(|number| Some(BlockId(number)));
    let places = [None].into_iter().chain(blocks);
    places
        .filter_map(|place| part_of(program, place, &wanted))
        .collect()
}

fn part_of(program: &Program, place: Option<BlockId>, wanted: &HashSet<TensorId>) -> Option<Part> {
    let mut part = Part {
        place,
        program: Program {
            files: program.files.clone(),
            ..Program::default()
        },
        outputs: vec![],
    };
    let mut numbers: HashMap<TensorId, TensorId> = HashMap::new();
    for (number, tensor) in (0..).zip(&program.tensors) {
        let Definition::Statement { kernel, operands } = &tensor.definition else {
            continue;
        };
        if tensor.block != place {
            continue;
        }
        for operand in operands {
            if numbers.contains_key(operand) {
                continue;
            }
            let of = program.tensor(*operand);
            let definition = match &of.definition {
                Definition::Source(source) => Definition::Source(source.clone()),
                Definition::Statement { .. } | Definition::Loop(_) => {
                    Definition::Source(Source::Unbound)
                }
            };
            numbers.insert(*operand, TensorId(part.program.tensors.len() as u32));
            part.program.tensors.push(Tensor {
                definition,
                block: None,
                ..of.clone()
            });
        }
        let operands: Vec<TensorId> = operands.iter().map(|o| numbers[o]).collect();
        let id = TensorId(part.program.tensors.len() as u32);
        numbers.insert(TensorId(number), id);
        let (kernel, operands) = canonical::statement(kernel.clone(), &operands);
        part.program.tensors.push(Tensor {
            definition: Definition::Statement { kernel, operands },
            block: None,
            ..tensor.clone()
        });
        if wanted.contains(&TensorId(number)) {
            part.outputs.push(TensorId(number));
            part.program.outputs.push(Output {
                tensor: id,
                replaces: None,
                file: None,
                asserts: None,
                complex: false,
                origin: Origin::default(),
            });
        }
    }
    (!part.outputs.is_empty()).then_some(part)
}

/// The program with other statements in its parts; none if they fit into no order.
fn together(program: &Program, chosen: &[(&Part, &Alternative)]) -> Option<Program> {
    let mut result = Program {
        tensors: vec![],
        ..program.clone()
    };
    let mut names: HashSet<String> = program.tensors.iter().map(|t| t.name.clone()).collect();
    let by_name: HashMap<&str, TensorId> = (0..)
        .zip(&program.tensors)
        .map(|(number, tensor)| (tensor.name.as_str(), TensorId(number)))
        .collect();
    // Where each tensor of the program went; what comes of a part says so itself.
    let mut moved: HashMap<TensorId, TensorId> = HashMap::new();
    for (number, tensor) in (0..).zip(&program.tensors) {
        if !matches!(tensor.definition, Definition::Statement { .. }) {
            moved.insert(TensorId(number), TensorId(result.tensors.len() as u32));
            result.tensors.push(tensor.clone());
        }
    }
    let fixed = result.tensors.len();
    // By new statement: its part.
    let mut origins: Vec<usize> = vec![];
    let mut placed: Vec<HashMap<TensorId, TensorId>> = vec![HashMap::new(); chosen.len()];
    for (at, (part, chosen)) in chosen.iter().enumerate() {
        for (number, tensor) in (0..).zip(&chosen.program.tensors) {
            if !matches!(tensor.definition, Definition::Statement { .. }) {
                continue;
            }
            let mut tensor = tensor.clone();
            let own = by_name.get(tensor.name.as_str()).is_some_and(|id| {
                let of = program.tensor(*id);
                of.block == part.place && matches!(of.definition, Definition::Statement { .. })
            });
            if !own && !names.insert(tensor.name.clone()) {
                tensor.name = super::emit::hidden_name(&tensor.name, &mut names);
            }
            placed[at].insert(TensorId(number), TensorId(result.tensors.len() as u32));
            origins.push(at);
            result.tensors.push(tensor);
        }
    }
    // Inputs of parts that are statements elsewhere are their outputs there.
    let mut open: Vec<(TensorId, usize, TensorId)> = vec![];
    for (at, (part, chosen)) in chosen.iter().enumerate() {
        for (id, output) in part.outputs.iter().zip(&chosen.program.outputs) {
            match placed[at].get(&output.tensor) {
                Some(new) => drop(moved.insert(*id, *new)),
                None => open.push((*id, at, output.tensor)),
            }
        }
    }
    let input = |moved: &HashMap<TensorId, TensorId>, at: usize, id: TensorId| {
        let name = chosen[at].1.program.tensor(id).name.as_str();
        moved.get(by_name.get(name)?).copied()
    };
    for _ in 0..=open.len() {
        for (id, at, source) in &open {
            if let Some(new) = input(&moved, *at, *source) {
                moved.insert(*id, new);
            }
        }
    }
    // Operands are inputs of the part or statements of it.
    for (new, at) in (fixed..).zip(&origins) {
        let definition = &mut result.tensors[new].definition;
        let Definition::Statement { operands, .. } = definition else {
            continue;
        };
        for operand in operands {
            *operand = match placed[*at].get(operand) {
                Some(new) => *new,
                None => input(&moved, *at, *operand)?,
            };
        }
    }
    let place = |id: TensorId| moved.get(&id).copied();
    for block in &mut result.blocks {
        if let Bound::Value(bound) = &mut block.bound {
            *bound = place(*bound)?;
        }
        if let Some(until) = &mut block.until {
            *until = place(*until)?;
        }
        for state in &mut block.states {
            (state.initial, state.next) = (place(state.initial)?, place(state.next)?);
        }
        for collected in &mut block.collected {
            collected.value = place(collected.value)?;
        }
    }
    for output in &mut result.outputs {
        output.tensor = place(output.tensor)?;
    }
    settle_blocks(&mut result, fixed)?;
    result.needed().arranged().map(Program::canonical)
}

/// Puts every statement into the innermost block that it reads of. Those before `fixed` stay; none if statements read
/// each other in a circle.
fn settle_blocks(program: &mut Program, fixed: usize) -> Option<()> {
    let mut known = vec![false; program.tensors.len()];
    known[..fixed].fill(true);
    let mut open: Vec<usize> = (fixed..program.tensors.len()).rev().collect();
    let mut steps = 0;
    let most = program.tensors.len() * program.tensors.len() + 1;
    while let Some(at) = open.last().copied() {
        steps += 1;
        if steps > most {
            return None;
        }
        let Definition::Statement { operands, .. } = &program.tensors[at].definition else {
            return None;
        };
        let waits = operands.iter().find(|o| !known[o.0 as usize]);
        match waits {
            Some(operand) => open.push(operand.0 as usize),
            None => {
                let block = program.innermost(&operands.clone());
                program.tensors[at].block = block;
                known[at] = true;
                open.pop();
            }
        }
    }
    Some(())
}
