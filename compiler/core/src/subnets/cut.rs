//! The program of a net with some of the neurons: the same statements over shorter ranges.
//!
//! Must not know which neurons those are.
//!
//! ```text
//! a: f32[8, 512] = [n: 8, k: 512 | d: 64] …, 128 neurons of W1   =>   a: f32[8, 128] = [n: 8, k: 128 | d: 64] …
//! ```

use super::Neurons;
use super::classes::{Class, Classes};
use crate::einsum::{Definition, Program, TensorId, verify};
use ein_plan::IndexId;
use std::collections::BTreeMap;

/// Which layer's neurons each class of a program counts.
fn layers(program: &Program, classes: &Classes, neurons: &[Neurons]) -> BTreeMap<Class, usize> {
    let mut layers = BTreeMap::new();
    for (at, tensor) in (0..).zip(&program.tensors) {
        for (layer, neurons) in neurons.iter().enumerate() {
            for (name, dim) in &neurons.params {
                if *name == tensor.name {
                    layers.insert(classes.of_dim(TensorId(at), *dim), layer);
                }
            }
        }
    }
    layers
}

/// By name of every source of a program that has neurons: its dimensions that count them, with the number of the layer.
pub fn blocks(program: &Program, neurons: &[Neurons]) -> BTreeMap<String, Vec<(usize, usize)>> {
    let classes = Classes::of_program(program);
    let layers = layers(program, &classes, neurons);
    let mut found = BTreeMap::new();
    for (at, tensor) in (0..).zip(&program.tensors) {
        if matches!(tensor.definition, Definition::Source(_)) {
            let layer = |dim| layers.get(&classes.of_dim(TensorId(at), dim)).copied();
            let dims = (0..tensor.shape.len()).filter_map(|dim| Some((dim, layer(dim)?)));
            let dims: Vec<(usize, usize)> = dims.collect();
            if !dims.is_empty() {
                found.insert(tensor.name.clone(), dims);
            }
        }
    }
    found
}

/// The program with so many neurons of each layer.
///
/// # Errors
/// A defect: what the program has become does not verify.
pub fn cut(program: &Program, neurons: &[Neurons], sizes: &[u64]) -> Result<Program, String> {
    let classes = Classes::of_program(program);
    let layers = layers(program, &classes, neurons);
    let mut cut = program.clone();
    let size = |class: Class, extent: u64| layers.get(&class).map_or(extent, |layer| sizes[*layer]);
    for at in 0..cut.tensors.len() {
        let id = TensorId(at as u32);
        for dim in 0..cut.tensors[at].shape.len() {
            let extent = &mut cut.tensors[at].shape[dim];
            *extent = size(classes.of_dim(id, dim), *extent);
        }
        let (before, rest) = cut.tensors.split_at_mut(at);
        let Definition::Statement { kernel, operands } = &mut rest[0].definition else {
            continue;
        };
        for (number, index) in (0..).zip(&mut kernel.indices) {
            index.extent = size(classes.of_index(id, IndexId(number)), index.extent);
        }
        for (operand, read) in kernel.operands.iter_mut().zip(operands) {
            operand.shape.clone_from(&before[read.0 as usize].shape);
        }
    }
    verify::verify(&cut)?;
    Ok(cut)
}
