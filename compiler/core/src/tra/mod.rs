//! The tensor relational algebra: a program as a list of named relations.
//!
//! A relation is a set of pairs (key, array). Its type gives the key dimensions, each with its frontier (the
//! number of pieces), and the arrays with their bounds. Every operator is closed: keys are unique and every key
//! below the frontier is there. Sites and placements are unknown here.
//!
//! ```text
//! A: {k: 6/3} f32[4, k] = source A from load("a.npy")   // model.ein:1
//! B: {k: 6/3} f32[k, 8] = source B from load("b.npy")   // model.ein:2
//! C.partial of C: {k: 6/3} f32[4, 8] = join(A{k}, B{k}) over [_, _, k] (f32[4, 6], f32[6, 8]) [i: 4, j: 8 | k: 6] f32 = partial sum a0[i, k] * a1[k, j]   // model.ein:5
//! C: {} f32[4, 8] = aggregate sum C.partial keep {}   // model.ein:5
//! ```

pub(crate) mod blocks;
mod carrier;
pub mod chunk;
pub mod chunks;
pub mod classes;
pub mod evaluate;
mod finish;
pub mod from_einsum;
pub mod interpret;
mod names;
pub mod operands;
pub mod parse;
pub mod print;
pub mod reads;
pub(crate) mod rounds;
pub mod typing;
pub mod verify;

pub(crate) use names::Names;

use ein_plan::{
    ArrayType, Block, BlockId, Fold, JoinInput, Kernel, KeyDim, LoopValue, Mesh, Origin, Placement,
    Range, Reduction, RelationId, RelationType, Source,
};

/// The type of a relation: what [`RelationType`] says, without a placement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// Key dimensions; names are unique within a relation.
    pub keys: Vec<KeyDim>,
    /// The array of each tuple.
    pub array: ArrayType,
}

impl Type {
    /// The physical type of a relation of this type at a placement.
    pub fn placed(&self, placement: Placement) -> RelationType {
        RelationType {
            keys: self.keys.clone(),
            array: self.array.clone(),
            placement,
        }
    }

    /// The type with no placement, for what does not ask for one: ranges, keys, tuples.
    pub fn anywhere(&self) -> RelationType {
        self.placed(Placement { roles: vec![] })
    }

    /// How each array dimension is cut.
    pub fn cuts(&self) -> Vec<Cut> {
        let cut = |key: u32| {
            let KeyDim { pieces, axes, .. } = &self.keys[key as usize];
            Cut::new(*pieces, axes)
        };
        let dims = self.array.dims.iter();
        dims.map(|dim| dim.cut.map_or(Cut::whole(), cut)).collect()
    }
}

/// How a relation comes about.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// The relation of a tensor that no statement computes, chunked as the type says.
    Source {
        /// Full name of the tensor: the stream of a random source, the name that a binding knows.
        name: String,
        /// The source of its values.
        source: Source,
    },
    /// ⋈: the natural join of any number of relations on the key dimensions that `inputs` maps to the same
    /// output key dimension; the kernel is the projection. With no input, the keys are all below the frontier.
    Join {
        /// Operands in the kernel's order.
        inputs: Vec<JoinInput>,
        /// The function of the arrays of a joined tuple.
        kernel: Kernel,
        /// The range of each of the kernel's indices.
        ranges: Vec<Range>,
        /// True if joined tuples are combined at once: Σ after ⋈, its groups being blocks of keys.
        fold: Option<Fold>,
    },
    /// Σ: tuples that agree on the key dimensions `group_by` are combined in key order. Output key dimension d
    /// is the input's `group_by[d]`.
    Aggregate {
        /// The relation that is aggregated: carriers of `reduction`.
        input: RelationId,
        /// Kept key dimensions.
        group_by: Vec<u32>,
        /// How two carriers are combined.
        reduction: Reduction,
    },
    /// REKEY with a permutation: output key dimension d is the input's `keys[d]`.
    Rekey {
        /// The relation that gets new keys.
        input: RelationId,
        /// The permutation.
        keys: Vec<u32>,
    },
    /// σ: the tuples whose coordinate on `key` is `value`, and the re-key without that dimension that keeps
    /// the algebra closed. What it cut becomes a dimension of the piece's own extent.
    Filter {
        /// The relation that is filtered.
        input: RelationId,
        /// Key dimension.
        key: u32,
        /// Kept coordinate, below the frontier.
        value: u32,
    },
    /// λ: the kernel of each tuple's array; keys stay.
    Transform {
        /// The relation that is transformed.
        input: RelationId,
        /// A kernel of one operand.
        kernel: Kernel,
        /// The range of each of the kernel's indices.
        ranges: Vec<Range>,
    },
    /// TILE: the whole array dimension `array_dim` is cut by a new, last key dimension.
    Tile {
        /// The relation that is cut.
        input: RelationId,
        /// Array dimension.
        array_dim: u32,
    },
    /// CONCAT: the key dimension that cuts `array_dim` goes away and its pieces are put together.
    Concat {
        /// The relation whose pieces are put together.
        input: RelationId,
        /// Array dimension.
        array_dim: u32,
    },
    /// WINDOW: every tuple is the part of the whole tensor that the result's type says; the input's are its pieces.
    Window {
        /// The relation of which parts are taken.
        input: RelationId,
    },
    /// A value that a loop has.
    Loop {
        /// Which.
        value: LoopValue,
    },
}

impl Operation {
    /// The relations that it reads, in order; one may occur twice.
    pub fn inputs(&self) -> Vec<RelationId> {
        match self {
            Operation::Source { .. } | Operation::Loop { .. } => vec![],
            Operation::Join { inputs, .. } => inputs.iter().map(|input| input.relation).collect(),
            Operation::Aggregate { input, .. }
            | Operation::Rekey { input, .. }
            | Operation::Filter { input, .. }
            | Operation::Transform { input, .. }
            | Operation::Tile { input, .. }
            | Operation::Window { input }
            | Operation::Concat { input, .. } => vec![*input],
        }
    }
}

impl Operation {
    /// The value of a loop that it is.
    pub fn loop_value(&self) -> Option<LoopValue> {
        match self {
            Operation::Loop { value } => Some(*value),
            _ => None,
        }
    }

    /// Gives the relations that it reads other numbers.
    pub fn rename(&mut self, to: impl Fn(RelationId) -> RelationId) {
        match self {
            Operation::Source { .. } | Operation::Loop { .. } => {}
            Operation::Join { inputs, .. } => {
                for input in inputs {
                    input.relation = to(input.relation);
                }
            }
            Operation::Aggregate { input, .. }
            | Operation::Rekey { input, .. }
            | Operation::Filter { input, .. }
            | Operation::Transform { input, .. }
            | Operation::Tile { input, .. }
            | Operation::Window { input }
            | Operation::Concat { input, .. } => *input = to(*input),
        }
    }
}

/// A relation of a [`Program`].
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    /// Unique. A tensor's own relation has its name; what leads to it is `name.what`.
    pub name: String,
    /// The tensor that it is or belongs to.
    pub tensor: String,
    /// Its type.
    pub kind: Type,
    /// How it comes about.
    pub operation: Operation,
    /// The innermost loop whose rounds compute it.
    pub block: Option<BlockId>,
    /// Where it is written.
    pub origin: Origin,
}

/// A tensor that is given out.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The user's name.
    pub name: String,
    /// Its relation, of one column.
    pub relation: RelationId,
    /// The carried tensor whose place it takes after a step, by name.
    pub replaces: Option<String>,
    /// `-> "file"`, as written.
    pub file: Option<String>,
    /// The message with which a run stops if this truth value is false. Then nothing is printed or written. `None`: given out.
    pub asserts: Option<String>,
    /// True if the last dimension holds the real and the imaginary part of a complex number.
    pub complex: bool,
    /// Where it is declared.
    pub origin: Origin,
}

/// A program: relations in an order in which every input stands before its users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Relations; [`RelationId`] is a position in this list.
    pub relations: Vec<Relation>,
    /// Loops, each after the one around it; [`BlockId`] is a position in this list.
    pub blocks: Vec<Block>,
    /// The outputs, in the order of the text.
    pub outputs: Vec<Output>,
    /// The files of the text, for messages.
    pub files: Vec<String>,
    /// The axes by which key dimensions number their blocks; without axes: one, for any number of sites.
    pub mesh: Mesh,
}

impl Program {
    /// The relation of that number.
    pub fn relation(&self, id: RelationId) -> &Relation {
        &self.relations[id.0 as usize]
    }

    /// By relation: where it stands among the loops.
    pub(crate) fn places(&self) -> impl ExactSizeIterator<Item = blocks::BlockPosition> + Clone {
        let relations = self.relations.iter();
        relations.map(|relation| (relation.block, relation.operation.loop_value()))
    }
}

/// How a range is cut.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cut {
    /// Number of pieces; 1 is whole.
    pub pieces: u32,
    /// The axes that number its blocks ([`KeyDim::axes`]); none where it is whole.
    pub axes: Vec<u8>,
}

impl Cut {
    /// Not cut.
    pub fn whole() -> Cut {
        Cut {
            pieces: 1,
            axes: vec![],
        }
    }

    /// Cut into pieces whose blocks these axes number.
    pub fn new(pieces: u32, axes: &[u8]) -> Cut {
        if pieces == 1 {
            return Cut::whole();
        }
        Cut {
            pieces,
            axes: axes.to_vec(),
        }
    }

    /// Cut into pieces that sites in a row share.
    pub fn row(pieces: u32) -> Cut {
        Cut::new(pieces, &[0])
    }

    /// Returns whether it is not cut.
    pub fn is_whole(&self) -> bool {
        self.pieces == 1
    }
}

/// How the indices of statements and the dimensions of tensors are cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunking {
    /// The axes that the cuts speak of; without axes: one.
    pub mesh: Mesh,
    /// By tensor: the cut of each index of its kernel (empty for sources).
    pub indices: Vec<Vec<Cut>>,
    /// By tensor: the cut of each dimension as it rests between statements.
    pub dims: Vec<Vec<Cut>>,
    /// By tensor: of each index of its kernel, what of the cut is left in the carriers of a reduction when those
    /// that meet are combined as they are made; `None`: all of it. No entry: nothing is combined so.
    pub addends: Vec<Vec<Option<Cut>>>,
    /// By tensor and operand of its kernel: whether it is read in windows, where it is read otherwise than by bare indices. No entry: whole.
    pub windowed: Vec<Vec<bool>>,
    /// By tensor and index of its kernel: whether windows move with it. No entry: with none.
    pub moving: Vec<Vec<bool>>,
    /// By tensor: how its carriers are cut while they are combined, beyond what its statement gives and the tensor
    /// rests as. No entry: not at all.
    pub scattered: Vec<Vec<Cut>>,
}
