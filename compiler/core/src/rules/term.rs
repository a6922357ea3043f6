//! Terms: one n-ary operation on closed tensors, and the e-graph of them.
//!
//! A class is a tensor: a function of its dimensions. A term reads classes at indices of its own, the first `rank` of
//! which are its dimensions; operands stand in canonical order and summed indices are numbered by first use. So a
//! renamed, commuted or transposed form is the same term. Must not know rules.
//!
//! ```text
//! sum mul #1[0, 2] #2[2, 1]   (rank 2, extents 4 8 6): a matrix product
//! ```

use super::laws;
use egg::{Analysis, DidMerge, EGraph, Id, Language};
use ein_plan::{DType, Function, Kernel, Reduction, Scalar};
use std::collections::{HashMap, HashSet};
use std::mem::{Discriminant, discriminant};

/// What a term does with what it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Head {
    /// A source of the program, by tensor number.
    Source(u32),
    /// A number: [`Scalar::bits`], and its compute type.
    Constant((u8, u64), DType),
    /// An associative, commutative function of any number of reads: `add mul max min and or`.
    Fold(Function),
    /// A scalar function.
    Apply(Function),
    /// The value in another compute type.
    Convert(DType),
    /// The value as a type that is not computed in stores it.
    Store(DType),
    /// The value itself.
    Copy,
    /// A kernel that is not looked into, by its number; its output's dimensions are the term's, its operands' those of
    /// the classes. The second number tells statements apart that must not be shared.
    Whole(u32, u32),
}

/// How a class is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Read {
    /// Its inverse is meant: subtracted in `add`, divided by in `mul`.
    pub turned: bool,
    /// The term's index for each dimension of the class.
    pub indices: Vec<u32>,
}

/// A term; `reads` and `children` go together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term {
    /// What it does.
    pub head: Head,
    /// How the indices after the first `rank` are reduced.
    pub reduction: Option<Reduction>,
    /// How many indices are dimensions of the result.
    pub rank: u32,
    /// Of every index.
    pub extents: Vec<u64>,
    /// How each child is read.
    pub reads: Vec<Read>,
    /// What is read.
    pub children: Vec<Id>,
}

impl Language for Term {
    type Discriminant = Discriminant<Head>;

    fn discriminant(&self) -> Self::Discriminant {
        discriminant(&self.head)
    }

    fn matches(&self, other: &Self) -> bool {
        self.head == other.head
            && self.reduction == other.reduction
            && self.rank == other.rank
            && self.extents == other.extents
            && self.reads == other.reads
    }

    fn children(&self) -> &[Id] {
        &self.children
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.children
    }
}

impl Term {
    /// What it reads, in the term's own indices.
    pub fn arguments(&self) -> Vec<Argument> {
        let pairs = self.reads.iter().zip(&self.children);
        pairs
            .map(|(read, class)| Argument {
                turned: read.turned,
                class: *class,
                indices: read.indices.clone(),
            })
            .collect()
    }

    /// The indices that are reduced.
    pub fn reduced(&self) -> Vec<u32> {
        (self.rank..self.extents.len() as u32).collect()
    }

    /// Its dimensions' indices.
    pub fn dimensions(&self) -> Vec<u32> {
        (0..self.rank).collect()
    }

    /// Whether rules may look at it: it is an operation on reads, and no index is empty.
    pub fn is_open(&self) -> bool {
        let operation = !matches!(
            self.head,
            Head::Source(_) | Head::Constant(..) | Head::Whole(..)
        );
        operation && !self.extents.contains(&0)
    }

    /// Whether every reduced index is read.
    pub fn is_tight(&self) -> bool {
        let read = |index: &u32| self.reads.iter().any(|r| r.indices.contains(index));
        self.reduced().iter().all(read)
    }

    /// The same term over other indices: `at` gives those of its dimensions, `extents` grows by its reduced ones.
    /// Returns the arguments and the new reduced indices.
    pub fn instance(&self, at: &[u32], extents: &mut Vec<u64>) -> (Vec<Argument>, Vec<u32>) {
        let mut map = at.to_vec();
        let mut reduced = vec![];
        for extent in &self.extents[self.rank as usize..] {
            reduced.push(extents.len() as u32);
            map.push(extents.len() as u32);
            extents.push(*extent);
        }
        let arguments = self.arguments().into_iter().map(|mut argument| {
            for index in &mut argument.indices {
                *index = map[*index as usize];
            }
            argument
        });
        (arguments.collect(), reduced)
    }
}

/// A class read at some indices.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Argument {
    /// See [`Read::turned`].
    pub turned: bool,
    /// What is read.
    pub class: Id,
    /// Where, one index a dimension.
    pub indices: Vec<u32>,
}

/// An operation that is about to become a term.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What it does.
    pub head: Head,
    /// How `reduced` is reduced.
    pub reduction: Option<Reduction>,
    /// Indices to reduce, read or not.
    pub reduced: Vec<u32>,
    /// What it reads.
    pub arguments: Vec<Argument>,
}

impl Operation {
    /// A fold, without reduction.
    pub fn fold(function: Function, arguments: Vec<Argument>) -> Operation {
        Operation {
            head: Head::Fold(function),
            reduction: None,
            reduced: vec![],
            arguments,
        }
    }

    /// The same, reduced over indices, if there are any.
    #[must_use]
    pub fn reduce(mut self, reduction: Option<Reduction>, reduced: Vec<u32>) -> Operation {
        self.reduction = reduction.filter(|_| !reduced.is_empty());
        self.reduced = reduced;
        self
    }
}

/// What is known of a class.
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

/// The scalar of its [`Scalar::bits`].
pub fn scalar((kind, bits): (u8, u64)) -> Scalar {
    match kind {
        0 => Scalar::Float(f64::from_bits(bits)),
        1 => Scalar::Int(bits as i64),
        _ => Scalar::Bool(bits != 0),
    }
}

/// A step of a rule: two terms of a class.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// The rule.
    pub rule: &'static str,
    /// What it looked at.
    pub before: Term,
    /// Their class.
    pub class: Id,
    /// What it derived.
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
    pub absorbed: HashSet<Id>,
    /// Tensors that several statements or outputs use.
    pub shared: HashSet<Id>,
    /// How many rules in a row led to a term; none to those of the program.
    pub steps: HashMap<Term, u32>,
    /// What the terms that are made now get.
    pub step: u32,
    /// Terms whose orders are known.
    pub ordered: HashSet<Term>,
    /// How many times something changed.
    pub changes: usize,
}

impl Graph {
    /// What is known of a class.
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
        let class = self.egraph.find(class);
        let itself = |term: &Term| term.children.iter().any(|c| self.egraph.find(*c) == class);
        let terms = self.egraph[class].nodes.iter();
        terms
            .filter(|term| term.is_open() && term.is_tight() && !itself(term))
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

    /// Brings what is known of terms and classes up to date after classes were united.
    pub fn refresh(&mut self) {
        self.egraph.rebuild();
        let egraph = &self.egraph;
        self.absorbed = self.absorbed.iter().map(|id| egraph.find(*id)).collect();
        self.shared = self.shared.iter().map(|id| egraph.find(*id)).collect();
        let mut steps: HashMap<Term, u32> = HashMap::new();
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
        let number: HashMap<u32, u32> = order.iter().copied().zip(0..).collect();
        let mut arguments = operation.arguments;
        for argument in &mut arguments {
            for index in &mut argument.indices {
                *index = number[index];
            }
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
