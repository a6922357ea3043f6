//! The e-graph of terms: what is known of a class, and how new terms get into it, with their history.
//!
//! Operands are put in canonical order and simplified here, so that equal terms are one. Must not know rules, which say what is
//! equal.
//!
//! ```text
//! unite "R1-3": sum mul #1[0, 2] #2[2, 1]  ==  copy #3[1, 0]   ->   one class, one step of history
//! ```

use super::laws;
use super::term::{Argument, Head, Operation, Read, Term, scalar};
use egg::{Analysis, DidMerge, EGraph, Id};
use ein_plan::{DType, Function, Kernel, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};

/// The facts that are known of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// Extents.
    pub shape: Vec<u64>,
    /// As it would be stored.
    pub dtype: DType,
    /// Its value, if it is a number.
    pub constant: Option<Scalar>,
}

/// Finds [`Data`], from the types of sources and kernels.
#[derive(Clone, Debug, Default)]
pub struct Types {
    /// Element type by tensor number.
    pub sources: Vec<DType>,
    /// The kernels of [`Head::Whole`], without index names.
    pub kernels: Vec<Kernel>,
}

impl Analysis<Term> for Types {
    type Data = Data;

    fn make(egraph: &mut EGraph<Term, Self>, term: &Term, _: Id) -> Data {
        let compute = |at: usize| egraph[term.children[at]].data.dtype.compute();
        let value = match term.head {
            Head::Source(tensor) => egraph.analysis.sources[tensor as usize],
            Head::Constant(_, dtype) | Head::Convert(dtype) | Head::Store(dtype) => dtype,
            Head::Fold(_) | Head::Copy => compute(0),
            Head::Apply(function) => {
                let types: Vec<DType> = (0..term.children.len()).map(compute).collect();
                function.result(&types).unwrap_or(compute(0))
            }
            Head::Whole(kernel, _) => egraph.analysis.kernels[kernel as usize].output[0],
        };
        Data {
            shape: term.extents[..term.rank as usize].to_vec(),
            dtype: term.reduction.map_or(value, |r| r.result(value)),
            constant: match term.head {
                Head::Constant(bits, _) => Some(scalar(bits)),
                _ => None,
            },
        }
    }

    fn merge(&mut self, to: &mut Data, from: Data) -> DidMerge {
        debug_assert_eq!((&to.shape, to.dtype), (&from.shape, from.dtype));
        let known = to.constant.is_none() && from.constant.is_some();
        if known {
            to.constant = from.constant;
        }
        DidMerge(known, to.constant.is_some() && from.constant.is_none())
    }
}

/// A step of a rule: two terms of a class.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// The rule.
    pub rule: &'static str,
    /// The term that the rule looked at.
    pub before: Term,
    /// Their class.
    pub class: Id,
    /// The term that it derived.
    pub term: Term,
}

/// The e-graph, with the history of its terms.
#[derive(Debug, Default)]
pub struct Graph {
    /// The terms.
    pub egraph: EGraph<Term, Types>,
    /// Every step of a rule.
    pub history: Vec<Provenance>,
    /// Terms as their classes were first made of them, in order.
    pub first: Vec<(Id, Term)>,
    /// Classes that a product reads and absorbs as a whole: no rule need do it piece by piece.
    pub absorbed: FxHashSet<Id>,
    /// Tensors that several statements or outputs use.
    pub shared: FxHashSet<Id>,
    /// How many rules in a row led to a term; none to those of the program.
    pub steps: FxHashMap<Term, u32>,
    /// The number of rules behind the terms that are made now.
    pub step: u32,
    /// Terms whose orders are known.
    pub ordered: FxHashSet<Term>,
    /// How many times something changed.
    pub changes: usize,
}

impl Graph {
    /// A term as it is now, classes having been united.
    pub fn current(&self, term: &Term) -> Term {
        let mut term = term.clone();
        for child in &mut term.children {
            *child = self.egraph.find(*child);
        }
        term
    }

    /// Returns the facts that are known of a class.
    pub fn data(&self, class: Id) -> &Data {
        &self.egraph[class].data
    }

    /// The compute type of a class.
    pub fn compute(&self, class: Id) -> DType {
        self.data(class).dtype.compute()
    }

    /// The terms of a class that rules may look into: not those that read their own class, and not those that repeat
    /// something over an index that is not read.
    pub fn terms(&self, class: Id) -> Vec<Term> {
        self.terms_where(class, |_| true)
    }

    /// Those [`Graph::terms`] that are wanted.
    pub fn terms_where(&self, class: Id, wanted: impl Fn(&Term) -> bool) -> Vec<Term> {
        let class = self.egraph.find(class);
        let itself = |term: &Term| term.children.iter().any(|c| self.egraph.find(*c) == class);
        let terms = self.egraph[class].nodes.iter();
        let open = |term: &Term| term.is_open() && term.is_tight() && !itself(term);
        terms
            .filter(|term| wanted(term) && open(term))
            .cloned()
            .collect()
    }

    /// The terms of a class that repeat something over an index that is not read.
    pub fn loose(&self, class: Id) -> Vec<Term> {
        let terms = self.egraph[class].nodes.iter();
        terms
            .filter(|term| term.is_open() && !term.is_tight())
            .cloned()
            .collect()
    }

    /// Returns whether elements of a class are compared for equality as they are, by themselves or as the extremes of a reduction. Such an
    /// element must not be computed a second time, which may round it otherwise.
    pub fn is_compared(&self, class: Id) -> bool {
        let mut open = vec![self.egraph.find(class)];
        let mut seen = FxHashSet::default();
        while let Some(class) = open.pop() {
            if !self.compute(class).is_float() || !seen.insert(class) {
                continue;
            }
            for parent in self.egraph[class].parents() {
                let parent = self.egraph.find(parent);
                let reads =
                    |term: &&Term| (term.children.iter()).any(|c| self.egraph.find(*c) == class);
                for term in self.egraph[parent].nodes.iter().filter(reads) {
                    match term.head {
                        Head::Apply(Function::Eq | Function::Ne) => return true,
                        Head::Copy
                        | Head::Fold(Function::Max | Function::Min)
                        | Head::Apply(Function::Select) => open.push(parent),
                        _ => {}
                    }
                }
            }
        }
        false
    }

    /// Brings what is known of terms and classes up to date after classes were united.
    pub fn refresh(&mut self) {
        self.egraph.rebuild();
        let egraph = &self.egraph;
        self.absorbed = self.absorbed.iter().map(|id| egraph.find(*id)).collect();
        self.shared = self.shared.iter().map(|id| egraph.find(*id)).collect();
        let mut steps: FxHashMap<Term, u32> = FxHashMap::default();
        for (mut term, step) in std::mem::take(&mut self.steps) {
            for child in &mut term.children {
                *child = egraph.find(*child);
            }
            let known = steps.entry(term).or_insert(step);
            *known = step.min(*known);
        }
        self.steps = steps;
    }

    /// A number as an argument without indices.
    pub fn constant(&mut self, value: Scalar, dtype: DType) -> Argument {
        let class = self.egraph.add(Term {
            head: Head::Constant(value.bits(), dtype),
            reduction: None,
            rank: 0,
            extents: vec![],
            reads: vec![],
            children: vec![],
        });
        Argument {
            turned: false,
            class,
            indices: vec![],
        }
    }

    /// The tensor of an operation, with dimensions in canonical order, as an argument: dimensions are the indices that
    /// are read and not reduced, and those of `others` that are not read. A plain view is what it views.
    pub fn fresh(&mut self, mut operation: Operation, others: &[u32], extents: &[u64]) -> Argument {
        simplify(&mut operation);
        for argument in &mut operation.arguments {
            argument.class = self.egraph.find(argument.class);
        }
        if matches!(operation.head, Head::Fold(_)) {
            operation.arguments.sort_by_key(|a| {
                let shape: Vec<u64> = a.indices.iter().map(|i| extents[*i as usize]).collect();
                let kept: Vec<bool> = a
                    .indices
                    .iter()
                    .map(|i| operation.reduced.contains(i))
                    .collect();
                (a.turned, a.class, shape, kept)
            });
        }
        let mut dimensions: Vec<u32> = vec![];
        let read = operation.arguments.iter().flat_map(|a| &a.indices);
        for index in read.chain(others) {
            if !operation.reduced.contains(index) && !dimensions.contains(index) {
                dimensions.push(*index);
            }
        }
        if let (Head::Copy, None, [only]) = (
            operation.head,
            operation.reduction,
            &operation.arguments[..],
        ) && only.indices == dimensions
        {
            return only.clone();
        }
        let term = self.term(operation, &dimensions, extents);
        let count = self.egraph.number_of_classes();
        let class = self.egraph.add(term.clone());
        if self.egraph.number_of_classes() > count {
            self.steps.insert(term.clone(), self.step);
            self.first.push((class, term));
        }
        Argument {
            turned: false,
            class,
            indices: dimensions,
        }
    }

    /// The term of an operation with these dimensions, in normal form.
    pub fn term(&self, mut operation: Operation, dimensions: &[u32], extents: &[u64]) -> Term {
        simplify(&mut operation);
        for argument in &mut operation.arguments {
            argument.class = self.egraph.find(argument.class);
        }
        let fold = matches!(operation.head, Head::Fold(_));
        let place = |index: &u32| dimensions.iter().position(|d| d == index);
        if fold {
            operation.arguments.sort_by_key(|a| {
                let known: Vec<usize> = a
                    .indices
                    .iter()
                    .map(|i| place(i).unwrap_or(usize::MAX))
                    .collect();
                let shape: Vec<u64> = a.indices.iter().map(|i| extents[*i as usize]).collect();
                (a.turned, a.class, known, shape)
            });
        }
        let mut order = dimensions.to_vec();
        let read = operation.arguments.iter().flat_map(|a| &a.indices);
        for index in read.chain(&operation.reduced) {
            if !order.contains(index) {
                order.push(*index);
            }
        }
        let number = |index: u32| order.iter().position(|other| *other == index);
        let mut arguments = operation.arguments;
        for index in arguments.iter_mut().flat_map(|a| &mut a.indices) {
            *index = number(*index).map_or(*index, |at| at as u32);
        }
        if fold {
            arguments.sort_by(|a, b| {
                (a.turned, a.class, &a.indices).cmp(&(b.turned, b.class, &b.indices))
            });
        }
        Term {
            head: operation.head,
            reduction: operation.reduction,
            rank: dimensions.len() as u32,
            extents: order.iter().map(|i| extents[*i as usize]).collect(),
            children: arguments.iter().map(|a| a.class).collect(),
            reads: arguments
                .into_iter()
                .map(|a| Read {
                    turned: a.turned,
                    indices: a.indices,
                })
                .collect(),
        }
    }

    /// Says that a term of a class equals an operation with the same dimensions.
    pub fn unite(
        &mut self,
        rule: &'static str,
        class: Id,
        before: &Term,
        operation: Operation,
        extents: &[u64],
    ) {
        let dimensions = before.dimensions();
        let term = self.term(operation, &dimensions, extents);
        if term == *before {
            return;
        }
        let view = term.head == Head::Copy
            && term.reduction.is_none()
            && term.reads[0].indices == dimensions
            && self.data(term.children[0]).dtype == self.data(class).dtype;
        // A view of another class is that class: any term of it tells what was derived.
        let (other, term) = match view {
            true => {
                let viewed = term.children[0];
                (viewed, self.egraph[viewed].nodes[0].clone())
            }
            false => {
                if self.egraph.lookup(term.clone()).is_none() {
                    self.steps.insert(term.clone(), self.step);
                }
                (self.egraph.add(term.clone()), term)
            }
        };
        let merged = self.egraph.find(other) != self.egraph.find(class);
        if !merged {
            return;
        }
        self.egraph.union(class, other);
        self.changes += 1;
        self.history.push(Provenance {
            rule,
            before: before.clone(),
            class,
            term,
        });
    }
}

/// A fold of one argument that is not turned is that argument.
fn simplify(operation: &mut Operation) {
    if let (Head::Fold(_), [only]) = (operation.head, &operation.arguments[..])
        && !only.turned
    {
        operation.head = Head::Copy;
    }
}

/// The product that a reduction is read as when one argument alone stands under it, and the law that holds.
pub fn law_of(graph: &Graph, term: &Term) -> Option<&'static laws::Law> {
    let dtype = graph.compute(*term.children.first()?);
    let Head::Fold(function) = term.head else {
        return None;
    };
    laws::of_reduction(term.reduction?, function, dtype)
}
