//! Names, sizes and indices that are known where an expression stands.
//!
//! Must not know syntax beyond names.
//!
//! ```text
//! in fn dense(x[.., d], …): locals x w b, letters d h, rest [8]; indices n: v3
//! ```

use crate::einsum::BlockId;
use crate::sema::{
    expressions::arena::{ExprId, TensorRef, VarId},
    resolve::names::InstanceId,
    sizes::size::Size,
};
use ein_plan::DType;
use einc_diag::{FileId, Span};
use std::collections::BTreeMap;

/// A list of leading positions; 0: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SliceId(pub(crate) u32);

/// A tensor, or a slice of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View {
    pub(crate) tensor: TensorRef,
    pub(crate) slice: SliceId,
}

impl View {
    /// All of a tensor.
    pub(crate) fn of(tensor: TensorRef) -> View {
        View {
            tensor,
            slice: SliceId(0),
        }
    }

    /// Returns whether it is all of a tensor.
    pub(crate) fn is_whole(self) -> bool {
        self.slice == SliceId(0)
    }
}

/// The meaning of a name that has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Binding {
    Scalar(ExprId),
    Tensor(View),
    /// Instances of a module.
    Instance(InstanceId),
    /// Its definition has an error.
    Poison,
}

/// The names around a statement: those of a file, of one call of a function, or of a round.
#[derive(Clone)]
pub(crate) struct Scope<'a> {
    pub(crate) file: FileId,
    pub(crate) locals: BTreeMap<&'a str, Binding>,
    /// Sizes of the signature, with the place where each got its value.
    pub(crate) letters: BTreeMap<&'a str, (Size, Span)>,
    /// The sizes that `..` stands for.
    pub(crate) rest: Option<Vec<Size>>,
    /// Indices of the statements around, for every value of which the body is computed; ascending.
    pub(crate) captured: Vec<VarId>,
    /// The instance whose body it is.
    pub(crate) applied: Option<(InstanceId, usize)>,
    /// The innermost block around.
    pub(crate) block: Option<BlockId>,
    /// How many calls deep.
    pub(crate) depth: usize,
    /// The type of the first floating-point tensor that is passed: that of a source whose own is not written.
    pub(crate) floating: Option<DType>,
}

impl<'a> Scope<'a> {
    /// Gives a name its meaning; one without a meaning is known to be in error. Returns whether it has one.
    pub(crate) fn bind(&mut self, name: &'a str, binding: Option<Binding>) -> bool {
        self.locals.insert(name, binding.unwrap_or(Binding::Poison));
        binding.is_some()
    }

    pub(crate) fn file(file: FileId) -> Self {
        Scope {
            file,
            locals: BTreeMap::new(),
            letters: BTreeMap::new(),
            rest: None,
            captured: vec![],
            applied: None,
            block: None,
            depth: 0,
            floating: None,
        }
    }
}

/// Where an expression stands.
pub(crate) struct Context<'s, 'a> {
    pub(crate) scope: &'s Scope<'a>,
    /// Indices bound here; `..` stands for several variables.
    pub(crate) indices: Vec<(&'a str, Vec<VarId>)>,
    /// True if `/` of whole numbers is floor division: in positions, bounds and sizes.
    pub(crate) floor: bool,
    /// True if sizes of the signature are numbers: in sizes.
    pub(crate) sizes: bool,
    /// True on the left side of a scatter, where positions bind indices: `big[letter[z < 4]]`.
    pub(crate) left: bool,
}

impl<'s, 'a> Context<'s, 'a> {
    pub(crate) fn new(scope: &'s Scope<'a>) -> Self {
        Context {
            scope,
            indices: vec![],
            floor: false,
            sizes: false,
            left: false,
        }
    }

    /// For a size or bound.
    pub(crate) fn of_sizes(scope: &'s Scope<'a>) -> Self {
        Context {
            scope,
            indices: vec![],
            floor: true,
            sizes: true,
            left: false,
        }
    }

    pub(crate) fn index(&self, name: &str) -> Option<&[VarId]> {
        self.indices
            .iter()
            .rev()
            .find(|(bound, _)| *bound == name)
            .map(|(_, vars)| vars.as_slice())
    }
}
