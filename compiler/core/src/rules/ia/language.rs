//! The language of the e-graph: contents, and placed relations.
//!
//! A *content* is a term of TRA: what a relation holds, wherever it is. A *placed* term is a physical relation: `At(p, c)` is the one
//! with content c at placement p, the local operators take placed relations to placed ones, and `Move(p)` is BCAST, SHUF or the two
//! together on a mesh. Two terms of one class are interchangeable in every way. Must not know rules.
//!
//! ```text
//! Σᴸ(⟨0⟩, sum)(SHUF(⟨0⟩)(⋈ᴸ(A⟨0,1⟩, B⟨1⟩, a0[i, k] * a1[k])(BCAST(At(⟨0⟩, A)), At(⟨0⟩, B))))
//! ```

use super::function::{ArrayFunction, Kernels};
use super::keys::KeyRange;
use super::placement::Placement;
use super::predicate::Predicate;
use egg::{Id, Language};
use ein_plan::{ArrayDim, Reduction};

/// An operator of TRA; with sites, the local operator of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algebra {
    /// ⋈ of any number of relations.
    Join {
        /// Key dimensions of the joined key.
        keys: Vec<KeyRange>,
        /// By operand: the joined key dimension that each of its key dimensions is.
        inputs: Vec<Vec<u32>>,
        /// The key map: key dimension d of the result is the joined key's `keep[d]`.
        keep: Vec<u32>,
        /// The function that is applied to the arrays.
        function: ArrayFunction,
    },
    /// Σ: key dimension d of the result is the input's `keep[d]`.
    Aggregate {
        /// Kept key dimensions.
        keep: Vec<u32>,
        /// By kept key dimension, where it is kept in coarser pieces: the key dimension that it becomes, whose pieces are what the
        /// digits of its block along some of its axes number. Empty: all are kept as they are.
        coarse: Vec<Option<KeyRange>>,
        /// How carriers are combined, in key order.
        reduction: Reduction,
        /// The function of each array before; over the input's key dimensions.
        before: ArrayFunction,
        /// The function of each combined array; over the result's key dimensions.
        after: ArrayFunction,
    },
    /// σ: the tuples whose keys satisfy it.
    Filter(Predicate),
    /// λ, REKEY or both: key dimension d of the result is the input's `keys[d]`; what is left out follows from the others.
    Map {
        /// The key map.
        keys: Vec<u32>,
        /// The array map.
        function: ArrayFunction,
    },
    /// The multi-map λ(insertDim, duplicate): as many copies of each tuple as a new key dimension has pieces.
    Replicate {
        /// Its position.
        at: u32,
        /// The new key dimension.
        key: KeyRange,
    },
    /// TILE: a whole array dimension is cut by a new, last key dimension.
    Tile {
        /// Which.
        array_dim: u32,
        /// The new key dimension.
        key: KeyRange,
    },
    /// CONCAT: the key dimension that cuts an array dimension goes away.
    Concat {
        /// Which.
        array_dim: u32,
    },
    /// WINDOW: every tuple is a part of the whole tensor, which may overlap others.
    Window {
        /// The key dimensions of the result.
        keys: Vec<KeyRange>,
        /// The array dimensions of the result, each with the part of it that a tuple holds.
        dims: Vec<ArrayDim>,
    },
}

/// The operator of a term.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operator {
    /// A content that is not computed here, by number.
    Tensor(u32),
    /// An operator of TRA on contents.
    Tra(Algebra),
    /// The physical relation with its child's content at a placement.
    At(Placement),
    /// A local operator on physical relations.
    Local(Algebra),
    /// Every tuple to where the placement wants it; addends are combined where they stop being addends.
    Move(Placement),
}

/// A node of the e-graph.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term {
    /// The operator that made it.
    pub operator: Operator,
    /// Of what.
    pub children: Vec<Id>,
}

impl Language for Term {
    type Discriminant = std::mem::Discriminant<Operator>;

    fn discriminant(&self) -> Self::Discriminant {
        std::mem::discriminant(&self.operator)
    }

    fn matches(&self, other: &Term) -> bool {
        self.operator == other.operator && self.children.len() == other.children.len()
    }

    fn children(&self) -> &[Id] {
        &self.children
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.children
    }
}

impl Algebra {
    /// λ(id, f).
    pub fn transform(keys: usize, function: ArrayFunction) -> Algebra {
        Algebra::Map {
            keys: (0..keys as u32).collect(),
            function,
        }
    }

    /// REKEY(f).
    pub fn rekey(keys: Vec<u32>) -> Algebra {
        Algebra::Map {
            keys,
            function: ArrayFunction::IDENTITY,
        }
    }

    /// Σ of arrays as they are.
    pub fn aggregate(keep: Vec<u32>, reduction: Reduction) -> Algebra {
        Algebra::Aggregate {
            keep,
            coarse: vec![],
            reduction,
            before: ArrayFunction::IDENTITY,
            after: ArrayFunction::IDENTITY,
        }
    }

    /// Returns whether a key map of so many key dimensions is the identity.
    pub fn keeps_keys(keys: &[u32], of: usize) -> bool {
        keys.len() == of && keys.iter().copied().eq(0..of as u32)
    }

    /// The operator in the thesis's notation; `mark` is `ᴸ` for the local one.
    fn print(&self, mark: &str, kernels: &Kernels) -> String {
        let list = |keys: &[u32]| {
            let keys: Vec<String> = keys.iter().map(u32::to_string).collect();
            format!("⟨{}⟩", keys.join(","))
        };
        match self {
            Algebra::Join {
                inputs,
                keep,
                function,
                keys,
            } => {
                let maps: Vec<String> = inputs.iter().map(|map| list(map)).collect();
                let map = match Algebra::keeps_keys(keep, keys.len()) {
                    true => String::new(),
                    false => format!(" → {}", list(keep)),
                };
                let function = function.print(kernels);
                format!("⋈{mark}({}{map}, {function})", maps.join(", "))
            }
            Algebra::Aggregate {
                keep,
                coarse,
                reduction,
                before,
                after,
            } => {
                let mut of = reduction.name().to_string();
                if !after.is_identity() {
                    of = format!("{}∘{of}", after.print(kernels));
                }
                if !before.is_identity() {
                    of = format!("{of}∘{}", before.print(kernels));
                }
                let blocks = coarse.iter().flatten().map(|range| {
                    let axes: Vec<String> = range.axes.iter().map(u8::to_string).collect();
                    format!(" in {} blocks of axes {}", range.pieces, axes.join(" "))
                });
                let blocks: String = blocks.collect();
                format!("Σ{mark}({}{blocks}, {of})", list(keep))
            }
            Algebra::Filter(by) => format!("σ{mark}({by})"),
            Algebra::Map { keys, function } => {
                format!("λ{mark}({}, {})", list(keys), function.print(kernels))
            }
            Algebra::Replicate { at, key } => {
                let count = key.pieces;
                format!("λ{mark}(insertDim({at}, {count}), duplicate({count}))")
            }
            Algebra::Tile { array_dim, key } => {
                format!("TILE{mark}({array_dim}, {} pieces)", key.pieces)
            }
            Algebra::Concat { array_dim } => format!("CONCAT{mark}({array_dim})"),
            Algebra::Window { dims, .. } => {
                let dims: Vec<String> = dims.iter().map(dim_text).collect();
                format!("WINDOW{mark}({})", dims.join(", "))
            }
        }
    }
}

impl Operator {
    /// The operator in the thesis's notation, without what it is applied to. `names` are those of the contents that are not computed.
    pub fn print(&self, kernels: &Kernels, names: &dyn Fn(u32) -> String) -> String {
        match self {
            Operator::Tensor(number) => names(*number),
            Operator::Tra(algebra) => algebra.print("", kernels),
            Operator::At(placement) => format!("At({placement})"),
            Operator::Local(algebra) => algebra.print("ᴸ", kernels),
            Operator::Move(placement) if placement.is_every() => "BCAST".into(),
            Operator::Move(placement) => format!("SHUF({placement})"),
        }
    }
}

/// An array dimension with the part of it that a tuple holds: `8`, `8/k0`, `k0-1..k0+1 of 8`.
pub fn dim_text(dim: &ArrayDim) -> String {
    match (dim.cut, dim.window) {
        (Some(key), _) => format!("{}/k{key}", dim.extent),
        (None, None) => dim.extent.to_string(),
        (None, Some(window)) => {
            let moved = |offset: i64| match (window.key, window.scale) {
                (None, _) => offset.to_string(),
                (Some(key), 1) => format!("k{key}{offset:+}"),
                (Some(key), scale) => format!("{scale}*k{key}{offset:+}"),
            };
            let end = |offset: i64| match window.divisor {
                1 => moved(offset),
                divisor => format!("({})/{divisor}", moved(offset)),
            };
            let (low, high) = (end(window.low), end(window.high));
            format!("{low}..{high} of {}", dim.extent)
        }
    }
}
