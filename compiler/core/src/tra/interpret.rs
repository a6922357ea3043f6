//! The interpreter of TRA programs: naive, an oracle for what follows.
//!
//! Every relation is computed whole, key by key, with [`super::chunks`]; loops loop. Random sources are inputs and the
//! same in all rounds. Must not know sites.
//!
//! ```text
//! C = {(0): [[…]], (1): [[…]]}   gives   the tensor C
//! ```

use super::chunk::{self, Chunk, Content, Stop};
use super::chunks;
use super::{Operation, Program, Relation, Type, rounds};
use ein_plan::{JoinInput, RelationId};

/// The outputs of a verified program, whole, in order. `inputs` gives the values of a source by its tensor's
/// name.
pub fn interpret(program: &Program, inputs: &dyn Fn(&str) -> Chunk) -> Result<Vec<Chunk>, Stop> {
    let places: Vec<_> = program.places().collect();
    let whole = Whole { program, inputs };
    let contents = rounds::run(&whole, &program.blocks, &places)?;
    let outputs = program.outputs.iter().map(|output| {
        let kind = &program.relation(output.relation).kind;
        let content = contents[output.relation.0 as usize].as_ref();
        let content = content.ok_or_else(|| Stop::Absent(output.name.clone()))?;
        Ok(chunk::whole(content, kind))
    });
    outputs.collect()
}

/// Relations as one content each.
struct Whole<'a> {
    program: &'a Program,
    inputs: &'a dyn Fn(&str) -> Chunk,
}

impl rounds::Values for Whole<'_> {
    type Value = Content;

    fn operator(&self, at: usize, values: &[Option<Content>]) -> Result<Content, Stop> {
        operator(
            self.program,
            values,
            &self.program.relations[at],
            self.inputs,
        )
    }

    fn number(&self, _: usize, number: u64) -> Content {
        rounds::scalar(number, std::iter::once(vec![]))
    }

    fn read(&self, value: &Content) -> Option<i64> {
        rounds::read(value)
    }

    fn collected(&self, at: usize, dim: u32, parts: &[Content]) -> Content {
        let kind = self.program.relations[at].kind.anywhere();
        let shape = |key: &[u32]| kind.ranges(key).iter().map(|(_, n)| *n).collect();
        let parts: Vec<&Content> = parts.iter().collect();
        let zero = rounds::zero(kind.array.columns[0]);
        rounds::collected(&parts, &shape, kind.all_keys(), dim, zero)
    }
}

fn operator(
    program: &Program,
    contents: &[Option<Content>],
    relation: &Relation,
    inputs: &dyn Fn(&str) -> Chunk,
) -> Result<Content, Stop> {
    let kind = &relation.kind;
    let keys: Vec<Vec<u32>> = kind.anywhere().all_keys().collect();
    // Inputs stand before their users.
    let none = Content::new();
    let content = |id: &RelationId| contents[id.0 as usize].as_ref().unwrap_or(&none);
    let kind_of = |id: &RelationId| -> &Type { &program.relation(*id).kind };
    match &relation.operation {
        Operation::Source { name, source } => {
            let whole = chunks::source(source, name, kind, inputs);
            Ok(chunk::cut(&whole, kind, &keys))
        }
        Operation::Join {
            inputs,
            kernel,
            ranges,
            fold,
        } => {
            let inputs: Vec<_> = inputs
                .iter()
                .map(|input| (content(&input.relation), kind_of(&input.relation), input))
                .collect();
            match fold {
                None => chunks::join(&inputs, kernel, ranges, &kind.keys, &keys),
                Some(fold) => {
                    chunks::fold(&inputs, kernel, ranges, fold, kind, &keys, &program.mesh)
                }
            }
        }
        Operation::Transform {
            input,
            kernel,
            ranges,
        } => {
            let join = JoinInput {
                relation: *input,
                keys: (0..kind.keys.len() as u32).collect(),
            };
            let inputs = [(content(input), kind_of(input), &join)];
            chunks::join(&inputs, kernel, ranges, &kind.keys, &keys)
        }
        Operation::Aggregate {
            input,
            group_by,
            reduction,
        } => chunks::aggregate(content(input), kind_of(input), group_by, *reduction, &keys),
        Operation::Rekey { input, keys: map } => {
            chunks::rekey(content(input), map.len(), map, &[], &keys)
        }
        Operation::Filter { input, key, value } => {
            let arity = kind_of(input).keys.len();
            let kept: Vec<u32> = (0..arity as u32).filter(|k| k != key).collect();
            chunks::rekey(content(input), arity, &kept, &[(*key, *value)], &keys)
        }
        Operation::Tile { input, array_dim } => {
            chunks::tile(content(input), *array_dim, kind, &keys)
        }
        Operation::Concat { input, array_dim } => {
            chunks::concat(content(input), kind_of(input), *array_dim, kind, &keys)
        }
        Operation::Window { input } => chunks::window(content(input), kind_of(input), kind, &keys),
        Operation::Loop { value } => Err(Stop::Absent(format!("`{value}` is no operator"))),
    }
}
