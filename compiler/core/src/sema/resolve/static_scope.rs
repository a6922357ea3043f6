//! What names stand for before anything is computed, and what the walk over an item finds of it.
//!
//! Must not know expressions, sizes or types.
//!
//! ```text
//! in fn dense(x[.., d], w[d, h], s): x w tensors, s anything, d h letters, `..` stands for something
//! ```

use crate::sema::resolve::names::{Declared, EntityId, Shape};
use einc_diag::{FileId, Span};
use std::collections::BTreeMap;

/// What a local name of a function stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Local {
    Scalar,
    Tensor,
    /// A parameter without brackets of a function that is an expression: whatever is passed.
    Any,
    /// A size of the signature: an index over it, in sizes its number.
    Letter,
    /// The item of the body with that number.
    Item(usize, Shape),
}

/// The names of a function or of a round, or none.
#[derive(Clone)]
pub(crate) struct StaticScope<'a> {
    pub(crate) file: FileId,
    pub(crate) locals: BTreeMap<&'a str, Local>,
    /// The instances inside a module, with their modules.
    pub(crate) inner: BTreeMap<&'a str, EntityId>,
    /// How a module declares the instances inside it, for paths that begin with one.
    pub(crate) owned: BTreeMap<&'a str, Owned<'a>>,
    /// Whether `..` stands for something.
    pub(crate) rest: bool,
}

/// An instance inside a module.
#[derive(Clone, Copy)]
pub(crate) struct Owned<'a> {
    pub(crate) module: EntityId,
    /// The item of the body that declares it.
    pub(crate) item: usize,
    pub(crate) declared: Declared<'a>,
}

impl<'a> StaticScope<'a> {
    /// The instance inside the module that a path begins with.
    pub(crate) fn owner_of(&self, path: &str) -> Option<Owned<'a>> {
        let (head, _) = path.split_once('.')?;
        self.owned.get(head).copied()
    }
}

/// What the walk over one item found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unit {
    pub(crate) uses: Vec<(EntityId, Span)>,
    /// Items of the same body.
    pub(crate) items: Vec<(usize, Span)>,
    pub(crate) failed: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum Meaning {
    Index,
    Scalar,
    Tensor,
    Function,
    Letter,
    Poison,
    Unknown,
}

impl Unit {
    /// Adds what the walk over a part of the item found outside of its body.
    pub(crate) fn merge(&mut self, other: Unit) {
        self.uses.extend(other.uses);
        self.failed |= other.failed;
    }
}
