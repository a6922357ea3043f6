//! Terms: one n-ary operation on closed tensors.
//!
//! A class is a tensor: a function of its dimensions. A term reads classes at indices of its own, the first `rank` of
//! which are its dimensions; operands stand in canonical order and summed indices are numbered by first use. So a
//! renamed, commuted or transposed form is the same term. Must not know rules, nor which terms are equal.
//!
//! ```text
//! sum mul #1[0, 2] #2[2, 1]   (rank 2, extents 4 8 6): a matrix product
//! ```

use egg::{Id, Language};
use ein_plan::{DType, Function, Reduction, Scalar};
use std::mem::{Discriminant, discriminant};

/// The operation of a term.
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
    /// The operation.
    pub head: Head,
    /// How the indices after the first `rank` are reduced.
    pub reduction: Option<Reduction>,
    /// How many indices are dimensions of the result.
    pub rank: u32,
    /// Of every index.
    pub extents: Vec<u64>,
    /// How each child is read.
    pub reads: Vec<Read>,
    /// The classes that are read.
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
    /// Returns the arguments, in the term's own indices.
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

    /// Returns whether rules may look at it: it is an operation on reads, and no index is empty.
    pub fn is_open(&self) -> bool {
        let operation = !matches!(
            self.head,
            Head::Source(_) | Head::Constant(..) | Head::Whole(..)
        );
        operation && !self.extents.contains(&0)
    }

    /// Returns whether every reduced index is read.
    pub fn is_tight(&self) -> bool {
        let read = |index: &u32| self.reads.iter().any(|r| r.indices.contains(index));
        self.reduced().iter().all(read)
    }

    /// Rewrites the term over other indices: `at` gives those of its dimensions, `extents` grows by its reduced ones.
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
    /// The class that is read.
    pub class: Id,
    /// Where, one index a dimension.
    pub indices: Vec<u32>,
}

/// An operation that is about to become a term.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The operation.
    pub head: Head,
    /// How `reduced` is reduced.
    pub reduction: Option<Reduction>,
    /// Indices to reduce, read or not.
    pub reduced: Vec<u32>,
    /// The arguments that it reads.
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

    /// Reduces the operation over indices, if there are any.
    #[must_use]
    pub fn reduce(mut self, reduction: Option<Reduction>, reduced: Vec<u32>) -> Operation {
        self.reduction = reduction.filter(|_| !reduced.is_empty());
        self.reduced = reduced;
        self
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
