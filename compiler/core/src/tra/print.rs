//! TRA programs as text: one relation a line, with its type and its place. [`super::parse`] reads it back.
//!
//! Names, types, kernels and places are printed as in plans (`ein_plan::print`). Must not know what is printed
//! for.
//!
//! ```text
//! C: {} f32[4, 8] = aggregate sum C.partial keep {}   // model.ein:5
//! ```

use super::blocks::{begin_text, lines};
use super::{Operation, Output, Program};
use ein_plan::print::{Name, assertion, complex, destination, files, join_word, key, list, origin};
use ein_plan::{KeyDim, Range, RelationId};
use std::fmt;

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&files(&self.files))?;
        if !self.mesh.axes.is_empty() {
            writeln!(f, "mesh {}", self.mesh)?;
        }
        let line = |number: usize| {
            let relation = &self.relations[number];
            let kind = relation.kind.anywhere().to_string();
            format!(
                "{}: {} = {}{}",
                heading(&relation.name, &relation.tensor),
                kind.strip_suffix(" @ GRID()").unwrap_or(&kind),
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

/// `C.partial of C`, or `C` for a tensor's own relation.
pub(crate) fn heading(name: &str, tensor: &str) -> String {
    if name == tensor {
        Name(name).to_string()
    } else {
        format!("{} of {}", Name(name), Name(tensor))
    }
}

/// `output C = C.cut -> "c.npy"   // model.ein:7`.
pub(crate) fn output_line(files: &[String], output: &Output, relation: &str) -> String {
    let to = destination(output.replaces.as_deref(), output.file.as_deref());
    let asserts = assertion(output.asserts.as_deref()) + complex(output.complex);
    let (name, relation) = (Name(&output.name), Name(relation));
    format!(
        "output {name} = {relation}{to}{asserts}{}",
        origin(output.origin, files)
    )
}

/// `{i, k}`: key dimensions by name.
pub(crate) fn key_set(keys: &[KeyDim], numbers: &[u32]) -> String {
    format!(
        "{{{}}}",
        list(numbers.iter().map(|number| key(keys, *number)))
    )
}

/// `over [i, _]`: by index, the key dimension whose piece it runs over, or `_` for the whole range.
pub(crate) fn over(keys: &[KeyDim], ranges: &[Range]) -> String {
    let ranges = ranges.iter().map(|range| match range {
        Range::Whole => "_".to_string(),
        Range::Key(number) => key(keys, *number),
    });
    format!("over [{}]", list(ranges))
}

fn operation(program: &Program, operation: &Operation, keys: &[KeyDim]) -> String {
    let name = |id: &RelationId| Name(&program.relation(*id).name);
    let keys_of = |id: &RelationId| &program.relation(*id).kind.keys;
    match operation {
        Operation::Source { name, source } => format!("source {} from {source}", Name(name)),
        Operation::Join {
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
            format!("{how}({}) {over} {kernel}", list(inputs))
        }
        Operation::Aggregate {
            input,
            group_by,
            reduction,
        } => {
            let keep = key_set(keys_of(input), group_by);
            format!("aggregate {} {} keep {keep}", reduction.name(), name(input))
        }
        Operation::Rekey { input, keys } => {
            format!("rekey {} by {}", name(input), key_set(keys_of(input), keys))
        }
        Operation::Filter {
            input,
            key: by,
            value,
        } => {
            format!(
                "filter {} where {} = {value}",
                name(input),
                key(keys_of(input), *by)
            )
        }
        Operation::Transform {
            input,
            kernel,
            ranges,
        } => format!("transform {} {} {kernel}", name(input), over(keys, ranges)),
        Operation::Tile { input, array_dim } => format!("tile {} dim {array_dim}", name(input)),
        Operation::Concat { input, array_dim } => {
            format!("concat {} dim {array_dim}", name(input))
        }
        Operation::Window { input } => format!("window {}", name(input)),
        Operation::Loop { value } => format!("loop {value}"),
    }
}
