//! IA programs as text: one relation a line, with its type, its placement and its place. [`super::parse`] reads
//! it back.
//!
//! Names, types, kernels and places are printed as in plans (`ein_plan::print`). Must not know what is printed
//! for.
//!
//! ```text
//! sites 2
//! C: {} f32[4, 8] @ ONE = local aggregate sum C.partial.at.0 keep {}   // model.ein:5
//! ```

use super::{Operation, Program};
use crate::tra::blocks::{begin_text, lines};
use crate::tra::print::{heading, key_set, output_line, over};
use ein_plan::print::{Name, files, join_word, key, list, mesh, origin};
use ein_plan::{KeyDim, RelationId};
use std::fmt;

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&files(&self.files))?;
        writeln!(f, "sites {}{}", self.sites, mesh(&self.mesh, self.sites))?;
        let line = |number: usize| {
            let relation = &self.relations[number];
            format!(
                "{}: {} = {}{}",
                heading(&relation.name, &relation.tensor),
                relation.kind,
                operation(self, &relation.operation, &relation.kind.keys),
                origin(relation.origin, &self.files),
            )
        };
        let name = |id: RelationId| self.relation(id).name.clone();
        let begin = |id| begin_text(&self.blocks, id, &name, &self.files);
        f.write_str(&lines(&self.blocks, self.places(), &line, &begin))?;
        for output in &self.outputs {
            let relation = &self.relation(output.relation).name;
            writeln!(f, "{}", output_line(&self.files, output, relation))?;
        }
        Ok(())
    }
}

fn operation(program: &Program, operation: &Operation, keys: &[KeyDim]) -> String {
    let name = |id: &RelationId| Name(&program.relation(*id).name);
    let keys_of = |id: &RelationId| &program.relation(*id).kind.keys;
    match operation {
        Operation::Source { name, source } => format!("source {} from {source}", Name(name)),
        Operation::Broadcast { input } => format!("broadcast {}", name(input)),
        Operation::Shuffle { input } => format!("shuffle {}", name(input)),
        Operation::Window { input } => format!("window {}", name(input)),
        Operation::LocalJoin {
            inputs,
            kernel,
            ranges,
            fold,
        } => {
            let keys = fold.as_ref().map_or(keys, |fold| &fold.keys);
            let inputs = inputs
                .iter()
                .map(|input| format!("{}{}", name(&input.relation), key_set(keys, &input.keys)));
            let (how, over) = (join_word(fold.as_ref()), over(keys, ranges));
            format!("local {how}({}) {over} {kernel}", list(inputs))
        }
        Operation::LocalAggregate {
            input,
            keep,
            reduction,
        } => {
            let keep = key_set(keys_of(input), keep);
            format!(
                "local aggregate {} {} keep {keep}",
                reduction.name(),
                name(input)
            )
        }
        Operation::LocalFilter {
            input,
            key: by,
            value,
        } => {
            let by = key(keys_of(input), *by);
            format!("local filter {} where {by} = {value}", name(input))
        }
        Operation::LocalMap {
            input,
            keys: by,
            map,
        } => {
            let by = key_set(keys_of(input), by);
            let array = match map {
                None => String::new(),
                Some((kernel, ranges)) => format!(" {} {kernel}", over(keys, ranges)),
            };
            format!("local map {} by {by}{array}", name(input))
        }
        Operation::LocalTile { input, array_dim } => {
            format!("local tile {} dim {array_dim}", name(input))
        }
        Operation::LocalConcat { input, array_dim } => {
            format!("local concat {} dim {array_dim}", name(input))
        }
        Operation::Loop { value } => format!("loop {value}"),
    }
}
