//! The implementation algebra: TRA's operators on physical relations, whose tuples are at sites, and the two
//! that move tuples, BCAST and SHUF.
//!
//! A physical relation is a set of triples (key, array, site); its placement says which sites hold which
//! tuples. The local operators combine only what is at one site. Must not know schedules, buffers or
//! transports.
//!
//! ```text
//! sites 2
//! A: {k: 6/2} f32[4, k] @ PART(k) = source A from load("a.npy")   // model.ein:1
//! C.partial of C: {k: 6/2} f32[4, 8] @ PART(k) = local join(A{k}, B{k}) over [_, _, k] …   // model.ein:5
//! C.partial.one of C: {k: 6/2} f32[4, 8] @ ONE = shuffle C.partial   // model.ein:5
//! C: {} f32[4, 8] @ ONE = local aggregate sum C.partial.one keep {}   // model.ein:5
//! ```

pub mod cuts;
pub mod from_layout;
pub mod from_tra;
pub mod interpret;
pub mod layout;
pub mod parse;
pub mod placement;
pub mod print;
pub mod random;
pub mod verify;

use ein_plan::{
    Block, BlockId, Fold, JoinInput, Kernel, LoopValue, Mesh, Origin, Range, Reduction, RelationId,
    RelationType, Source,
};

/// How a physical relation comes about. A site makes the tuples that the result's placement gives it.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Each site makes its own tuples of a tensor that no statement computes.
    Source {
        /// Full name of the tensor.
        name: String,
        /// The source of its values.
        source: Source,
    },
    /// BCAST: the result has copies along an axis where the input has none.
    Broadcast {
        /// The relation that is sent.
        input: RelationId,
    },
    /// SHUF: every tuple to the sites that the result's placement names.
    Shuffle {
        /// The relation that is sent.
        input: RelationId,
    },
    /// SHUF to windows: every tuple is the part of the whole tensor that the result's type says; a site gets what it lacks of its own.
    Window {
        /// The relation of which parts are sent.
        input: RelationId,
    },
    /// ⋈ᴸ.
    LocalJoin {
        /// Operands in the kernel's order.
        inputs: Vec<JoinInput>,
        /// The function of the arrays of a joined tuple.
        kernel: Kernel,
        /// The range of each of the kernel's indices.
        ranges: Vec<Range>,
        /// True if joined tuples are combined at once.
        fold: Option<Fold>,
    },
    /// Σᴸ: output key dimension d is the input's `keep[d]`.
    LocalAggregate {
        /// The relation that is aggregated.
        input: RelationId,
        /// Kept key dimensions.
        keep: Vec<u32>,
        /// How two carriers are combined.
        reduction: Reduction,
    },
    /// σᴸ: as [`crate::tra::Operation::Filter`].
    LocalFilter {
        /// The relation that is filtered.
        input: RelationId,
        /// Key dimension.
        key: u32,
        /// Kept coordinate.
        value: u32,
    },
    /// λᴸ(keyMap, arrayMap): output key dimension d is the input's `keys[d]`, a permutation; the array goes
    /// through the kernel if there is one.
    LocalMap {
        /// The relation that is mapped.
        input: RelationId,
        /// The key map.
        keys: Vec<u32>,
        /// The array map, with the range of each of its indices; `None` is the identity.
        map: Option<(Kernel, Vec<Range>)>,
    },
    /// λᴸ(keyTile, arrayTile): the whole array dimension is cut by a new, last key dimension.
    LocalTile {
        /// The relation that is cut.
        input: RelationId,
        /// Array dimension.
        array_dim: u32,
    },
    /// Σᴸ with arrayConcat.
    LocalConcat {
        /// The relation whose pieces are put together.
        input: RelationId,
        /// Array dimension.
        array_dim: u32,
    },
    /// A value that a loop has; nothing is computed.
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
            Operation::LocalJoin { inputs, .. } => {
                inputs.iter().map(|input| input.relation).collect()
            }
            Operation::Broadcast { input }
            | Operation::Shuffle { input }
            | Operation::Window { input }
            | Operation::LocalAggregate { input, .. }
            | Operation::LocalFilter { input, .. }
            | Operation::LocalMap { input, .. }
            | Operation::LocalTile { input, .. }
            | Operation::LocalConcat { input, .. } => vec![*input],
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
            Operation::LocalJoin { inputs, .. } => {
                for input in inputs {
                    input.relation = to(input.relation);
                }
            }
            Operation::Broadcast { input }
            | Operation::Shuffle { input }
            | Operation::Window { input }
            | Operation::LocalAggregate { input, .. }
            | Operation::LocalFilter { input, .. }
            | Operation::LocalMap { input, .. }
            | Operation::LocalTile { input, .. }
            | Operation::LocalConcat { input, .. } => *input = to(*input),
        }
    }
}

/// A physical relation of a [`Program`].
#[derive(Clone, Debug, PartialEq)]
pub struct Relation {
    /// Unique; a moved copy is named after what was moved (`B.all` at all sites, `B.by.i` by `i`, `B.one` at the first).
    pub name: String,
    /// The tensor that it is or belongs to.
    pub tensor: String,
    /// Type and placement.
    pub kind: RelationType,
    /// How it comes about.
    pub operation: Operation,
    /// The innermost loop whose rounds compute it.
    pub block: Option<BlockId>,
    /// Where it is written.
    pub origin: Origin,
}

/// A program: physical relations in an order in which every input stands before its users.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// Number of sites, from 1.
    pub sites: u32,
    /// The sites that take part, in a box; the others idle.
    pub mesh: Mesh,
    /// Relations; [`RelationId`] is a position in this list.
    pub relations: Vec<Relation>,
    /// Loops, each after the one around it; [`BlockId`] is a position in this list.
    pub blocks: Vec<Block>,
    /// The outputs; their relations are physical ones.
    pub outputs: Vec<crate::tra::Output>,
    /// The files of the text, for messages.
    pub files: Vec<String>,
}

impl Program {
    /// The relation of that number.
    pub fn relation(&self, id: RelationId) -> &Relation {
        &self.relations[id.0 as usize]
    }

    /// By relation: where it stands among the loops.
    pub(crate) fn places(
        &self,
    ) -> impl ExactSizeIterator<Item = crate::tra::blocks::BlockPosition> + Clone {
        let relations = self.relations.iter();
        relations.map(|relation| (relation.block, relation.operation.loop_value()))
    }

    /// Drops the relations and loops that no output needs, and puts the relations of every loop together.
    pub fn drop_unused(&mut self) {
        let mut used = vec![false; self.relations.len()];
        let mut looked = vec![false; self.blocks.len()];
        let mut open: Vec<RelationId> = self.outputs.iter().map(|o| o.relation).collect();
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut used[id.0 as usize], true) {
                continue;
            }
            let relation = &self.relations[id.0 as usize];
            open.extend(relation.operation.inputs());
            let behind = relation.operation.loop_value().map(|value| value.block());
            for block in [behind, relation.block].into_iter().flatten() {
                for block in crate::tra::blocks::path(&self.blocks, Some(block)) {
                    if !std::mem::replace(&mut looked[block.0 as usize], true) {
                        let block = &self.blocks[block.0 as usize];
                        open.extend(block.begins_with().chain(block.ends_with()));
                    }
                }
            }
        }
        let places: Vec<_> = self.places().collect();
        let mut order = crate::tra::blocks::arranged(&self.blocks, &places);
        order.retain(|old| used[*old]);
        let mut moved = vec![RelationId(0); used.len()];
        for (new, old) in (0u32..).zip(&order) {
            moved[*old] = RelationId(new);
        }
        let to = |id: RelationId| moved[id.0 as usize];
        let mut blocks = 0u32..;
        let numbers: Vec<BlockId> = looked
            .iter()
            .map(|looked| {
                BlockId(if *looked {
                    blocks.next().unwrap_or(0)
                } else {
                    0
                })
            })
            .collect();
        let block_to = |block: BlockId| numbers[block.0 as usize];
        self.relations = order
            .iter()
            .map(|old| self.relations[*old].clone())
            .collect();
        for relation in &mut self.relations {
            relation.operation.rename(to);
            relation.block = relation.block.map(block_to);
            if let Operation::Loop { value } = &mut relation.operation {
                *value = value.of(block_to(value.block()));
            }
        }
        let mut kept = looked.into_iter();
        self.blocks.retain(|_| kept.next().unwrap_or(false));
        for block in &mut self.blocks {
            block.rename(to);
            block.parent = block.parent.map(block_to);
        }
        for output in &mut self.outputs {
            output.relation = to(output.relation);
        }
    }
}

/// The type without the placement.
pub fn content(kind: &RelationType) -> crate::tra::Type {
    crate::tra::Type {
        keys: kind.keys.clone(),
        array: kind.array.clone(),
    }
}

/// Number of values in a relation, of all columns: each element of the array as often as there are keys that do
/// not cut it.
pub fn floats(keys: &[ein_plan::KeyDim], array: &ein_plan::ArrayType) -> u128 {
    let cuts = |number: u32| array.dims.iter().any(|dim| dim.key() == Some(number));
    let copies = (0u32..).zip(keys).filter(|(number, _)| !cuts(*number));
    let copies = copies.map(|(_, key)| u128::from(key.pieces));
    let extents = array.dims.iter().map(|dim| u128::from(dim.extent));
    copies
        .chain(extents)
        .fold(array.columns.len() as u128, u128::saturating_mul)
}
