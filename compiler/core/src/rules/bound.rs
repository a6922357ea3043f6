//! Which tensors of the program classes are once all rules are through, and what their indices are called.
//!
//! Must not know which terms are chosen.
//!
//! ```text
//! #4 is C, dimensions in the order 1 0, called i and j
//! ```

use super::graph::Graph;
use super::term::{Head, Term};
use super::translate::Translated;
use crate::einsum::{Definition, Program};
use egg::Id;
use std::collections::{HashMap, HashSet};

/// Which tensors classes are, after all rules.
#[derive(Debug)]
pub(super) struct Bound<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its terms.
    pub graph: &'a Graph,
    /// By class: the tensor that it is written as, and its dimensions' order.
    tensors: HashMap<Id, (usize, Vec<u32>)>,
    /// The names of indices, by class and dimension.
    pub names: HashMap<(Id, u32), String>,
    /// Names of a kernel's indices, by kernel and class.
    pub kernel_names: HashMap<(u32, Id), Vec<String>>,
}

impl<'a> Bound<'a> {
    pub fn new(program: &'a Program, translated: &'a Translated) -> Bound<'a> {
        let graph = &translated.graph;
        let find = |id: Id| graph.egraph.find(id);
        let outputs: HashSet<usize> = program
            .outputs
            .iter()
            .map(|o| o.tensor.0 as usize)
            .collect();
        let mut tensors: HashMap<Id, (usize, Vec<u32>)> = HashMap::new();
        // A source first, then an output, then the earliest.
        let rank = |at: usize| match program.tensors[at].definition {
            Definition::Source(_) | Definition::Loop(_) => 0,
            _ if outputs.contains(&at) => 1,
            _ => 2,
        };
        for (at, place) in translated.places.iter().enumerate() {
            let class = find(place.class);
            // What is stored rounded may be another tensor's value, in a wider type: that one is a copy.
            if program.tensors[at].dtype != graph.data(class).dtype {
                continue;
            }
            let better = tensors
                .get(&class)
                .is_none_or(|(known, _)| rank(at) < rank(*known));
            if better {
                tensors.insert(class, (at, place.order.clone()));
            }
        }
        let mut names = HashMap::new();
        let mut ordered: Vec<(&(Id, u32), &String)> = translated.names.iter().collect();
        ordered.sort();
        for ((class, dimension), name) in ordered {
            let entry = names.entry((find(*class), *dimension));
            entry.or_insert_with(|| name.clone());
        }
        let mut kernel_names = HashMap::new();
        for (kernel, class, name) in &translated.kernel_names {
            kernel_names
                .entry((*kernel, find(*class)))
                .or_insert_with(|| name.clone());
        }
        Bound {
            program,
            graph,
            tensors,
            names,
            kernel_names,
        }
    }

    /// The tensor that a class is, and which class dimension each of its dimensions is.
    pub fn tensor(&self, class: Id) -> Option<(usize, &[u32])> {
        let found = self.tensors.get(&self.graph.egraph.find(class));
        found.map(|(tensor, order)| (*tensor, &order[..]))
    }

    /// Returns whether a tensor is the one that its class is written as.
    pub fn is_written(&self, tensor: usize, class: Id) -> bool {
        self.tensor(class).is_some_and(|(own, _)| own == tensor)
    }

    /// The order of a class's dimensions where it is written.
    pub fn order(&self, class: Id) -> Vec<u32> {
        match self.tensor(class) {
            Some((_, order)) => order.to_vec(),
            None => (0..self.graph.data(class).shape.len() as u32).collect(),
        }
    }

    /// Extents of a class as it is written.
    pub fn shape(&self, class: Id) -> Vec<u64> {
        let shape = &self.graph.data(class).shape;
        self.order(class)
            .iter()
            .map(|d| shape[*d as usize])
            .collect()
    }

    /// Returns whether a class with this term is a statement that is read rather than written out where it is read.
    pub fn is_read(&self, class: Id, term: &Term) -> bool {
        match term.head {
            Head::Source(_) | Head::Store(_) => true,
            Head::Constant(..) => false,
            _ if term.reduction.is_some() => true,
            Head::Copy => false,
            Head::Whole(kernel, _) => {
                let kernel = &self.graph.egraph.analysis.kernels[kernel as usize];
                let library = kernel.library().is_some();
                library || self.tensor(class).is_some() || kernel.reduction.is_some()
            }
            _ => self.tensor(class).is_some(),
        }
    }
}
