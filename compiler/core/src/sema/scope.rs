//! What is known where an expression stands: names, sizes, indices.
//!
//! Must not know syntax beyond names.
//!
//! ```text
//! in fn dense(x[.., d], …): locals x w b, letters d h, rest [8]; indices n: v3
//! ```

use super::{
    arena::{ExprId, TensorRef, VarId},
    names::InstanceId,
    size::Size,
};
use crate::einsum::BlockId;
use einc_diag::{FileId, Span};
use std::collections::BTreeMap;

/// A list of leading positions; 0: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SliceId(pub(super) u32);

/// A tensor, or a slice of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct View {
    pub(super) tensor: TensorRef,
    pub(super) slice: SliceId,
}

impl View {
    /// All of a tensor.
    pub(super) fn of(tensor: TensorRef) -> View {
        View {
            tensor,
            slice: SliceId(0),
        }
    }

    /// Whether it is all of a tensor.
    pub(super) fn is_whole(self) -> bool {
        self.slice == SliceId(0)
    }
}

/// What a name stands for once it has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Binding {
    Scalar(ExprId),
    Tensor(View),
    /// Instances of a module.
    Instance(InstanceId),
    /// Its definition has an error.
    Poison,
}

/// The names around a statement: those of a file, of one call of a function, or of a round.
#[derive(Clone)]
pub(super) struct Scope<'a> {
    pub(super) file: FileId,
    pub(super) locals: BTreeMap<&'a str, Binding>,
    /// Sizes of the signature, with the place where each got its value.
    pub(super) letters: BTreeMap<&'a str, (Size, Span)>,
    /// What `..` stands for.
    pub(super) rest: Option<Vec<Size>>,
    /// Indices of the statements around, for every value of which the body is computed; ascending.
    pub(super) captured: Vec<VarId>,
    /// The instance whose body it is.
    pub(super) applied: Option<(InstanceId, usize)>,
    /// The innermost block around.
    pub(super) block: Option<BlockId>,
    /// How many calls deep.
    pub(super) depth: usize,
}

impl Scope<'_> {
    pub(super) fn file(file: FileId) -> Self {
        Scope {
            file,
            locals: BTreeMap::new(),
            letters: BTreeMap::new(),
            rest: None,
            captured: vec![],
            applied: None,
            block: None,
            depth: 0,
        }
    }
}

/// Where an expression stands.
pub(super) struct Context<'s, 'a> {
    pub(super) scope: &'s Scope<'a>,
    /// Indices bound here; `..` stands for several variables.
    pub(super) indices: Vec<(&'a str, Vec<VarId>)>,
    /// Whether `/` of whole numbers is floor division: in positions, bounds and sizes.
    pub(super) floor: bool,
    /// Whether sizes of the signature are numbers: in sizes.
    pub(super) sizes: bool,
}

impl<'s, 'a> Context<'s, 'a> {
    pub(super) fn new(scope: &'s Scope<'a>) -> Self {
        Context {
            scope,
            indices: vec![],
            floor: false,
            sizes: false,
        }
    }

    /// For a size or bound.
    pub(super) fn of_sizes(scope: &'s Scope<'a>) -> Self {
        Context {
            scope,
            indices: vec![],
            floor: true,
            sizes: true,
        }
    }

    pub(super) fn index(&self, name: &str) -> Option<&[VarId]> {
        self.indices
            .iter()
            .rev()
            .find(|(bound, _)| *bound == name)
            .map(|(_, vars)| vars.as_slice())
    }
}
