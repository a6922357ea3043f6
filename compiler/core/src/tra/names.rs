//! Names of relations and key dimensions.
//!
//! Must not know what they are.
//!
//! ```text
//! C.partial   C.partial2   key dimensions of C: i, j
//! ```

use crate::einsum::{self, Definition};
use std::collections::BTreeMap;

/// Names that are taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(std::collections::HashSet<String>);

impl Names {
    pub(crate) fn taken<'a>(names: impl Iterator<Item = &'a str>) -> Names {
        Names(names.map(str::to_string).collect())
    }

    /// The name itself, or the first of `name2`, `name3`, … that is free; it is taken from now on.
    pub(crate) fn fresh(&mut self, name: &str) -> String {
        let mut result = name.to_string();
        let mut number = 2;
        while !self.0.insert(result.clone()) {
            result = format!("{name}{number}");
            number += 1;
        }
        result
    }
}

/// Returns the names of the dimensions of each tensor: those of the indices of its own statement, or of the first that
/// reads it by bare names; else `d0`, `d1`, …
pub(crate) fn dim_names(program: &einsum::Program) -> Vec<Vec<String>> {
    let mut found: BTreeMap<(u32, usize), String> = BTreeMap::new();
    for (number, tensor) in program.tensors.iter().enumerate() {
        let Definition::Statement { kernel, operands } = &tensor.definition else {
            continue;
        };
        for (dim, index) in kernel.indices[..kernel.output_rank as usize]
            .iter()
            .enumerate()
        {
            found.insert((number as u32, dim), index.name.clone());
        }
        for (operand, positions) in kernel.graph.reads() {
            for (dim, position) in positions.iter().enumerate() {
                if let Some(index) = kernel.graph.as_index(*position) {
                    found
                        .entry((operands[operand as usize].0, dim))
                        .or_insert_with(|| kernel.indices[index.0 as usize].name.clone());
                }
            }
        }
    }
    program
        .tensors
        .iter()
        .enumerate()
        .map(|(number, tensor)| {
            (0..tensor.shape.len())
                .map(|dim| {
                    found
                        .get(&(number as u32, dim))
                        .cloned()
                        .unwrap_or_else(|| format!("d{dim}"))
                })
                .collect()
        })
        .collect()
}
