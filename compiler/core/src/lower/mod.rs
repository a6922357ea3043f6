//! Lowering: IA → the plan that every site walks.
//!
//! Steps stand in the order of the IA program; equal kernels are one; steps that can be one pass over memory are taken together
//! (`sweep.rs`), and movements that can be one message (`exchange.rs`, in an order that brings them together, `order.rs`); a relation is freed at its last use, loops are numbered as they begin. Must
//! not know costs, nor how steps are carried out.
//!
//! ```text
//! r3 = join k0 (r2, r1)   {i: 10/4} f32[10/i, 8] @ PART(i)   // model.ein:7
//! ```

mod exchange;
mod order;
mod spill;
mod stream;
mod sweep;

pub use order::{gathered, postponed, read_once};
pub use spill::{rested, spilled};
pub use stream::{excess, held_again, streamed, total, unswept};

use crate::ia::{self, Operation};
use crate::tra::blocks;
use ein_plan::lifetime::{Event, ends};
use ein_plan::memory::Peak;
use ein_plan::{
    ArrayDim, BlockId, Graph, Index, IndexId, JoinInput, Kernel, KernelId, Node, Operand, Output,
    Plan, Range, RelationId, RelationType, Repeat, Resting, Step, Sweep,
};
use std::collections::{BTreeMap, HashMap};

/// Lowers a verified program; `deterministic` is what the plan says of itself. A re-key of carriers, which no
/// pass makes, has no step in a plan and is an error.
pub fn lower(program: &ia::Program, deterministic: bool) -> Result<Plan, String> {
    let mut kernels = Kernels::default();
    let mut steps = vec![];
    for (at, relation) in program.relations.iter().enumerate() {
        steps.push(Step {
            result: RelationId(at as u32),
            tensor: relation.tensor.clone(),
            kind: relation.kind.clone(),
            operation: operation(program, &mut kernels, relation)?,
            frees: vec![],
            origin: relation.origin,
        });
    }
    let outputs = program
        .outputs
        .iter()
        .map(|output| {
            let array = &program.relation(output.relation).kind.array;
            Output {
                name: output.name.clone(),
                relation: output.relation,
                dtype: array.columns[0],
                shape: array.dims.iter().map(|dim| dim.extent).collect(),
                replaces: output.replaces.clone(),
                file: output.file.clone(),
                asserts: output.asserts.clone(),
                complex: output.complex,
                origin: output.origin,
            }
        })
        .collect();
    let mut plan = Plan {
        sites: program.sites,
        mesh: program.mesh.clone(),
        deterministic,
        files: program.files.clone(),
        kernels: kernels.list,
        steps,
        repeats: vec![],
        loops: BTreeMap::new(),
        sweeps: vec![],
        exchanges: vec![],
        resting: Resting::Disk,
        spills: vec![],
        streams: vec![],
        outputs,
    };
    loops(program, &mut plan)?;
    free(&mut plan);
    let whole = held(&plan);
    plan.sweeps = sweep::sweeps(&plan);
    free(&mut plan);
    // What is kept until a sweep is taken must not cost much more than what passes saves.
    within(&mut plan, hardly_more(whole));
    let whole = held(&plan);
    plan.exchanges = exchange::exchanges(&plan);
    free(&mut plan);
    one_by_one(&mut plan, hardly_more(whole));
    plan.schedule();
    Ok(plan)
}

/// The most bytes that a faster plan may hold beside one that holds so many.
pub fn hardly_more(bytes: u64) -> u64 {
    bytes + bytes / 6
}

/// Takes steps one by one where sweeps make a plan need more than so many bytes.
pub fn within(plan: &mut Plan, bytes: u64) {
    one_by_one(plan, bytes);
    while let Some(peak) = peak(plan)
        && peak.bytes > bytes
    {
        let spans = |sweep: &Sweep| {
            let first = sweep.members.first().map_or(0, |member| member.0 as usize);
            (first..=sweep.last().0 as usize).contains(&peak.step)
        };
        // Outside of sweeps as much is held without them.
        let Some(at) = plan.sweeps.iter().position(spans) else {
            return;
        };
        plan.sweeps.remove(at);
        free(plan);
        plan.schedule();
    }
}

/// Makes the movements of a plan one by one, each where it stands, if it needs more than so many bytes otherwise.
fn one_by_one(plan: &mut Plan, bytes: u64) {
    if !plan.exchanges.is_empty() && held(plan) > bytes {
        plan.exchanges.clear();
        free(plan);
    }
}

/// The most bytes that a site of a plan holds.
fn held(plan: &Plan) -> u64 {
    peak(plan).map_or(0, |peak| peak.bytes)
}

/// The most that a site of a plan holds, and when.
fn peak(plan: &Plan) -> Option<Peak> {
    let peaks = ein_plan::memory::peaks(plan);
    peaks.into_iter().max_by_key(|peak| peak.bytes)
}

/// Frees every relation where it is used last.
fn free(plan: &mut Plan) {
    let ends = ends(plan);
    for (step, frees) in plan.steps.iter_mut().zip(ends.steps) {
        step.frees = frees;
    }
    let ends = ends.enters.into_iter().zip(ends.exits);
    for (repeat, (enters, frees)) in plan.repeats.iter_mut().zip(ends) {
        (repeat.enters, repeat.frees) = (enters, frees);
    }
}

/// Gives a plan the loops of a program, in the order in which they begin.
fn loops(program: &ia::Program, plan: &mut Plan) -> Result<(), String> {
    let mut numbers = vec![BlockId(0); program.blocks.len()];
    let mut next = 0;
    for event in blocks::events(&program.blocks, program.places())? {
        match event {
            Event::Step(step) => next = step as u32 + 1,
            Event::Exit(block) => plan.repeats[numbers[block.0 as usize].0 as usize].end = next,
            Event::Enter(block) => {
                numbers[block.0 as usize] = BlockId(plan.repeats.len() as u32);
                let mut block = program.blocks[block.0 as usize].clone();
                block.parent = block.parent.map(|parent| numbers[parent.0 as usize]);
                plan.repeats.push(Repeat {
                    block,
                    first: next,
                    end: next,
                    enters: vec![],
                    frees: vec![],
                });
            }
        }
    }
    for step in &mut plan.steps {
        if let ein_plan::Operation::Loop { value } = &mut step.operation {
            *value = value.of(numbers[value.block().0 as usize]);
        }
    }
    Ok(())
}

/// The kernels of a plan, each once.
#[derive(Default)]
struct Kernels {
    list: Vec<Kernel>,
    numbers: HashMap<Kernel, KernelId>,
}

impl Kernels {
    fn number(&mut self, kernel: &Kernel) -> KernelId {
        if let Some(number) = self.numbers.get(kernel) {
            return *number;
        }
        let number = KernelId(self.list.len() as u32);
        self.list.push(kernel.clone());
        self.numbers.insert(kernel.clone(), number);
        number
    }
}

fn operation(
    program: &ia::Program,
    kernels: &mut Kernels,
    relation: &ia::Relation,
) -> Result<ein_plan::Operation, String> {
    Ok(match relation.operation.clone() {
        Operation::Source { name, source } => ein_plan::Operation::Source { name, source },
        Operation::Broadcast { input } => ein_plan::Operation::Broadcast { input },
        Operation::Shuffle { input } => ein_plan::Operation::Shuffle { input },
        Operation::Window { input } => ein_plan::Operation::Window { input },
        Operation::LocalJoin {
            inputs,
            kernel,
            ranges,
            fold,
        } => ein_plan::Operation::LocalJoin {
            inputs,
            kernel: kernels.number(&kernel),
            ranges,
            fold,
        },
        Operation::LocalMap { input, keys, map } => {
            let (kernel, ranges) = match map {
                Some(map) => map,
                None if relation.kind.array.columns.len() > 1 => {
                    return Err(format!("`{}` re-keys carriers", relation.name));
                }
                None => identity(&program.relation(input).kind, &relation.kind),
            };
            // A map's `keys` say where an output key comes from, a join's where an input key goes.
            let mut to = vec![0; keys.len()];
            for (output, input) in (0u32..).zip(&keys) {
                to[*input as usize] = output;
            }
            ein_plan::Operation::LocalJoin {
                inputs: vec![JoinInput {
                    relation: input,
                    keys: to,
                }],
                kernel: kernels.number(&kernel),
                ranges,
                fold: None,
            }
        }
        Operation::LocalAggregate {
            input,
            keep,
            reduction,
        } => ein_plan::Operation::LocalAggregate {
            input,
            keep,
            reduction,
        },
        Operation::LocalFilter { input, key, value } => {
            ein_plan::Operation::LocalFilter { input, key, value }
        }
        Operation::LocalTile { input, array_dim } => {
            ein_plan::Operation::LocalTile { input, array_dim }
        }
        Operation::LocalConcat { input, array_dim } => {
            ein_plan::Operation::LocalConcat { input, array_dim }
        }
        Operation::Loop { value } => ein_plan::Operation::Loop { value },
    })
}

/// The kernel that copies an array of one column: a re-key moves keys only.
fn identity(input: &RelationType, result: &RelationType) -> (Kernel, Vec<Range>) {
    let mut graph = Graph::default();
    let indices: Vec<Index> = input
        .array
        .dims
        .iter()
        .enumerate()
        .map(|(dim, ArrayDim { extent, .. })| Index {
            name: format!("d{dim}"),
            extent: *extent,
        })
        .collect();
    let positions = (0..indices.len() as u32)
        .map(|index| graph.add(Node::Index(IndexId(index)), ein_plan::DType::I64))
        .collect();
    let root = graph.add(
        Node::Read {
            operand: 0,
            column: 0,
            positions,
            otherwise: None,
        },
        input.array.columns[0].compute(),
    );
    let kernel = Kernel {
        output_rank: indices.len() as u32,
        operands: vec![Operand {
            columns: input.array.columns.clone(),
            shape: indices.iter().map(|index| index.extent).collect(),
        }],
        indices,
        graph,
        root,
        guard: None,
        reduction: None,
        finish: true,
        output: vec![input.array.columns[0]],
    };
    let ranges = result
        .array
        .dims
        .iter()
        .map(|dim| dim.cut.map_or(Range::Whole, Range::Key))
        .collect();
    (kernel, ranges)
}
