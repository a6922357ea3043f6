//! From a program to terms.
//!
//! Every statement becomes a whole kernel and, where its parts cannot fault, the term that it computes; equal tensors
//! meet in one class, also if one is the other's transpose. A product-sum reads through product-sums that nothing
//! else uses. Must not know what rules do with it; `parts` looks into kernels.
//!
//! ```text
//! C: f32[4, 8] = [i: 4, j: 8 | k: 6] sum A[i, k] * B[k, j]
//! gives   sum mul #0[0, 2] #1[2, 1]   and the whole kernel, in one class
//! ```

mod parts;

use super::contraction::absorb;
use super::graph::Graph;
use super::kernel::{permute_operands, permute_output};
use super::term::{Argument, Head, Operation, Read, Term};
use crate::einsum::{Definition, Program, TensorId, canonical};
use egg::Id;
use ein_plan::Kernel;
use std::collections::HashMap;

/// Most factors of a product.
const MOST_FACTORS: usize = 120;

/// A tensor as a view of a class: its dimension `d` is dimension `order[d]` of the class.
#[derive(Clone, Debug)]
pub struct TensorView {
    /// The class when it was added.
    pub class: Id,
    /// Class dimension by tensor dimension.
    pub order: Vec<u32>,
}

/// A program as terms.
#[derive(Debug, Default)]
pub struct Translated {
    /// The terms.
    pub graph: Graph,
    /// By tensor.
    pub places: Vec<TensorView>,
    /// By tensor: the term that stands for it as it is written, if it is a statement of its own.
    pub original: Vec<Option<Term>>,
    /// By tensor: the rule that made it another tensor's class.
    pub shared: Vec<Option<&'static str>>,
    /// The names of indices, by class and dimension.
    pub names: HashMap<(Id, u32), String>,
    /// The names of the indices of a kernel that computes a class.
    pub kernel_names: Vec<(u32, Id, Vec<String>)>,
}

/// Translates a program; `enabled` says whether a rule may be used.
pub fn translate(program: &Program, enabled: &dyn Fn(&str) -> bool) -> Translated {
    let mut translator = Translator {
        program,
        enabled,
        to: Translated::default(),
        uses: uses(program),
        wide: HashMap::new(),
    };
    translator.to.graph.egraph.analysis.sources = program.tensors.iter().map(|t| t.dtype).collect();
    for at in 0..program.tensors.len() {
        translator.tensor(at);
    }
    translator.finish()
}

struct Translator<'a> {
    program: &'a Program,
    enabled: &'a dyn Fn(&str) -> bool,
    to: Translated,
    /// How many statements and outputs use a tensor.
    uses: Vec<u32>,
    /// By class of a tensor: its own term, and the term that reads through what nothing else uses.
    wide: HashMap<Id, (Term, Term)>,
}

fn uses(program: &Program) -> Vec<u32> {
    let mut uses = vec![0; program.tensors.len()];
    for output in &program.outputs {
        uses[output.tensor.0 as usize] += 1;
    }
    for tensor in &program.tensors {
        if let Definition::Statement { operands, .. } = &tensor.definition {
            operands.iter().for_each(|o| uses[o.0 as usize] += 1);
        }
    }
    uses
}

impl Translator<'_> {
    fn tensor(&mut self, at: usize) {
        let tensor = &self.program.tensors[at];
        let rank = tensor.shape.len() as u32;
        match &tensor.definition {
            Definition::Source(_) | Definition::Loop(_) => {
                let class = self.to.graph.egraph.add(Term {
                    head: Head::Source(at as u32),
                    reduction: None,
                    rank,
                    extents: tensor.shape.clone(),
                    reads: vec![],
                    children: vec![],
                });
                self.place(class, (0..rank).collect(), None, None);
            }
            Definition::Statement { kernel, operands } => self.statement(at, kernel, operands),
        }
    }

    fn place(
        &mut self,
        class: Id,
        order: Vec<u32>,
        original: Option<Term>,
        shared: Option<&'static str>,
    ) {
        self.to.places.push(TensorView { class, order });
        self.to.original.push(original);
        self.to.shared.push(shared);
    }

    fn statement(&mut self, at: usize, kernel: &Kernel, operands: &[TensorId]) {
        let rank = kernel.output_rank;
        let parts = match (self.enabled)("") {
            true => self.parts(kernel, operands),
            false => None,
        };
        let stored = kernel.output[0];
        let parts = parts.map(|(value, extents)| {
            let dimensions: Vec<u32> = (0..rank).collect();
            let graph = &mut self.to.graph;
            let value = graph.fresh(value, &dimensions, &extents);
            if stored == stored.compute() || graph.data(value.class).dtype == stored {
                return value;
            }
            let store = Operation {
                head: Head::Store(stored),
                reduction: None,
                reduced: vec![],
                arguments: vec![value],
            };
            graph.fresh(store, &dimensions, &extents)
        });
        // A class that is a tensor already is that tensor, or a view of it.
        let shared = |value: &Argument| {
            let order = self.known_order(value.class)?;
            let at: Vec<u32> = order.iter().map(|d| value.indices[*d as usize]).collect();
            Some(match at.is_sorted() {
                true => "common-subexpression",
                false => "transpose-read",
            })
        };
        let parts = parts.filter(|value| shared(value).is_none_or(|rule| (self.enabled)(rule)));
        let shared = parts.as_ref().and_then(shared);
        let order: Vec<u32> = match &parts {
            Some(value) => (0..rank)
                .map(|d| {
                    let at = value.indices.iter().position(|i| *i == d);
                    at.map_or(d, |at| at as u32)
                })
                .collect(),
            None => (0..rank).collect(),
        };
        let salt = match (self.enabled)("common-subexpression") {
            true => 0,
            false => at as u32 + 1,
        };
        let (class, original) = match parts {
            Some(value) if shared.is_some() => (value.class, None),
            parts => {
                let own = parts.and_then(|value| {
                    let own = self.to.graph.egraph[value.class].nodes.first().cloned();
                    own.map(|own| (value.class, own))
                });
                let whole = self.whole(kernel, operands, &order, salt);
                let egraph = &mut self.to.graph.egraph;
                let mut class = egraph.add(whole.clone());
                if let Some((value, own)) = own {
                    egraph.union(value, class);
                    class = egraph.find(class);
                    self.read_through(class, own);
                }
                if let Head::Whole(number, _) = whole.head {
                    let mut names: Vec<String> =
                        kernel.indices.iter().map(|i| i.name.clone()).collect();
                    for (d, to) in order.iter().enumerate() {
                        names[*to as usize] = kernel.indices[d].name.clone();
                    }
                    self.to.kernel_names.push((number, class, names));
                }
                (class, Some(whole))
            }
        };
        for (d, index) in kernel.indices[..rank as usize].iter().enumerate() {
            let name = index.name.clone();
            self.to.names.entry((class, order[d])).or_insert(name);
        }
        self.place(class, order, original, shared);
    }

    /// The order of dimensions of the first tensor that is this class.
    fn known_order(&self, class: Id) -> Option<&[u32]> {
        let egraph = &self.to.graph.egraph;
        let class = egraph.find(class);
        let mut places = self.to.places.iter();
        let found = places.find(|place| egraph.find(place.class) == class);
        found.map(|place| &place.order[..])
    }

    /// Remembers the form of a product-sum in which it reads through operands that nothing else uses.
    fn read_through(&mut self, class: Id, own: Term) {
        if !own.is_open() || !(self.enabled)("merge-products") {
            return;
        }
        let mut wide = own.clone();
        loop {
            let next = (0..wide.children.len()).find_map(|at| {
                let child = wide.children[at];
                let (_, inner) = self.wide.get(&child)?;
                let fits = wide.children.len() + inner.children.len() <= MOST_FACTORS;
                let alone = wide.children.iter().filter(|c| **c == child).count() == 1;
                let single = self.single_use(child);
                (fits && alone && single)
                    .then(|| absorb(&self.to.graph, &wide, at, inner))?
                    .map(|term| (child, term))
            });
            match next {
                Some((child, term)) => {
                    self.to.graph.absorbed.insert(child);
                    wide = term;
                }
                None => break,
            }
        }
        if matches!(own.head, Head::Fold(_) | Head::Copy) {
            self.wide.insert(class, (own, wide));
        }
    }

    fn single_use(&self, class: Id) -> bool {
        let tensors = self.to.places.iter().enumerate();
        let mut of_class = tensors.filter(|(_, p)| self.to.graph.egraph.find(p.class) == class);
        of_class.next().is_some_and(|(at, _)| self.uses[at] == 1) && of_class.next().is_none()
    }

    fn finish(mut self) -> Translated {
        let mut wide: Vec<(Id, (Term, Term))> = self.wide.drain().collect();
        wide.sort_by_key(|(class, _)| *class);
        for (class, (own, wide)) in wide {
            if !self.to.graph.absorbed.contains(&class) && own != wide {
                let mut extents = vec![];
                let at: Vec<u32> = wide.dimensions();
                extents.extend(wide.extents[..wide.rank as usize].iter().copied());
                let (arguments, reduced) = wide.instance(&at, &mut extents);
                let operation = Operation {
                    head: wide.head,
                    reduction: wide.reduction,
                    reduced,
                    arguments,
                };
                self.to
                    .graph
                    .unite("merge-products", class, &own, operation, &extents);
            }
        }
        for (place, uses) in self.to.places.iter().zip(&self.uses) {
            if *uses > 1 {
                self.to.graph.shared.insert(place.class);
            }
        }
        self.to.graph.refresh();
        self.to
    }

    /// A statement as it is, over the classes of its operands.
    fn whole(&mut self, kernel: &Kernel, operands: &[TensorId], order: &[u32], salt: u32) -> Term {
        let (kernel, operands) = canonical::statement(kernel.clone(), operands);
        let mut kernel = permute_output(&kernel, order);
        let places: Vec<&TensorView> = operands
            .iter()
            .map(|o| &self.to.places[o.0 as usize])
            .collect();
        let orders: Vec<Vec<u32>> = places.iter().map(|p| p.order.clone()).collect();
        kernel = permute_operands(&kernel, &orders).canonical();
        for index in &mut kernel.indices {
            index.name.clear();
        }
        for (operand, place) in kernel.operands.iter_mut().zip(&places) {
            operand.columns = vec![self.to.graph.data(place.class).dtype];
        }
        let children: Vec<Id> = places.iter().map(|p| p.class).collect();
        let extents = kernel.indices[..kernel.output_rank as usize]
            .iter()
            .map(|i| i.extent);
        Term {
            reduction: None,
            rank: kernel.output_rank,
            extents: extents.collect(),
            head: Head::Whole(self.number(kernel), salt),
            reads: children.iter().map(|_| nowhere()).collect(),
            children,
        }
    }

    fn number(&mut self, kernel: Kernel) -> u32 {
        let kernels = &mut self.to.graph.egraph.analysis.kernels;
        let known = kernels.iter().position(|k| *k == kernel);
        known.unwrap_or_else(|| {
            kernels.push(kernel);
            kernels.len() - 1
        }) as u32
    }
}

fn nowhere() -> Read {
    Read {
        turned: false,
        indices: vec![],
    }
}
