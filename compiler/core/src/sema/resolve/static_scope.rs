//! The meanings of names before anything is computed, and the findings of the walk over an item.
//!
//! Must not know expressions, sizes or types.
//!
//! ```text
//! in fn dense(x[.., d], w[d, h], s): x w tensors, s anything, d h letters, `..` stands for something
//! ```

use crate::sema::{
    resolve::forms::access_with_rest,
    resolve::names::{Declared, EntityId, Shape},
};
use einc_diag::{FileId, Span};
use einc_syntax::ast::Expr;
use std::{borrow::Cow, collections::BTreeMap};

/// The meaning of a local name of a function.
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
    /// The counter of blocks of the body, outside of them: the first block is the item with that number.
    Counter(usize),
}

/// Where the blocks of a body count with each name.
pub(crate) type Counters<'a> = BTreeMap<&'a str, Vec<Span>>;

/// The names of a function or of a round, or none.
#[derive(Clone)]
pub(crate) struct StaticScope<'a> {
    pub(crate) file: FileId,
    pub(crate) locals: BTreeMap<&'a str, Local>,
    /// Where the local names are defined.
    pub(crate) places: BTreeMap<&'a str, Span>,
    /// The counters among them, outside of their blocks.
    pub(crate) counters: Counters<'a>,
    /// The instances inside a module, with their modules.
    pub(crate) inner: BTreeMap<&'a str, EntityId>,
    /// How a module declares the instances inside it, for paths that begin with one.
    pub(crate) owned: BTreeMap<&'a str, Owned<'a>>,
    /// True if `..` stands for something.
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
    /// A scope without local names.
    pub(crate) fn of_file(file: FileId) -> StaticScope<'a> {
        StaticScope {
            file,
            locals: BTreeMap::new(),
            places: BTreeMap::new(),
            counters: BTreeMap::new(),
            inner: BTreeMap::new(),
            owned: BTreeMap::new(),
            rest: false,
        }
    }

    /// The scope of a statement with this right side. Where no signature has `..`, it stands for the further dimensions of the first
    /// tensor that is read with it.
    pub(crate) fn of_statement(&self, value: &Expr) -> Cow<'_, StaticScope<'a>> {
        if self.rest || access_with_rest(value).is_none() {
            return Cow::Borrowed(self);
        }
        Cow::Owned(StaticScope {
            rest: true,
            ..self.clone()
        })
    }

    /// The instance inside the module that a path begins with.
    pub(crate) fn owner_of(&self, path: &str) -> Option<Owned<'a>> {
        let (head, _) = path.split_once('.')?;
        self.owned.get(head).copied()
    }
}

/// The findings of the walk over one item.
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
