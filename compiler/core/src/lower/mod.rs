//! Lowering: IA → the plan that every site walks.
//!
//! Steps stand in the order of the IA program; equal kernels are one; a relation is freed at its last use. Must
//! not know costs, nor how steps are carried out.
//!
//! ```text
//! r3 = join k0 (r2, r1)   {i: 10/4} f32[10/i, 8] @ PART(i)   // model.ein:7
//! ```

use crate::ia::{self, Operation};
use ein_plan::{
    ArrayDim, Graph, Index, IndexId, JoinInput, Kernel, KernelId, Node, Operand, Output, Plan,
    Range, RelationId, RelationType, Step,
};
use std::collections::HashMap;

/// Lowers a verified program; `deterministic` is what the plan says of itself. A re-key of carriers, which no
/// pass makes, has no step in a plan and is an error.
pub fn lower(program: &ia::Program, deterministic: bool) -> Result<Plan, String> {
    let mut kernels = Kernels::default();
    let mut steps = vec![];
    let mut frees = program.frees();
    for (at, relation) in program.relations.iter().enumerate() {
        steps.push(Step {
            result: RelationId(at as u32),
            tensor: relation.tensor.clone(),
            kind: relation.kind.clone(),
            operation: operation(program, &mut kernels, relation)?,
            frees: std::mem::take(&mut frees[at]),
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
                file: output.file.clone(),
                origin: output.origin,
            }
        })
        .collect();
    Ok(Plan {
        sites: program.sites,
        mesh: program.mesh.clone(),
        deterministic,
        files: program.files.clone(),
        kernels: kernels.list,
        steps,
        outputs,
    })
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
