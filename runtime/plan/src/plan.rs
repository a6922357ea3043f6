//! Plans: the steps that every site walks, in order.
//!
//! A plan is the same on all sites; which tuples a site holds follows from each relation's placement. Must
//! not know how a step is carried out.
//!
//! ```text
//! r3 C: {i: 10/1, j: 8/2} f32[i, j] @ PART(j) = join k0(r2{i}, r1{j}) over [i, j, _]; free r2   // model.ein:7
//! ```

use crate::dtype::DType;
use crate::ids::{KernelId, Origin, RelationId};
use crate::kernel::Kernel;
use crate::loops::{LoopValue, Repeat};
use crate::mesh::Mesh;
use crate::reduction::Reduction;
use crate::relation::{KeyDim, RelationType};
use crate::schedule::LoopKernel;
use crate::source::Source;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The range of a kernel's index in one join tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Range {
    /// The whole extent.
    Whole,
    /// The piece named by this key dimension of the join.
    Key(u32),
}

/// Σᴸ after ⋈ᴸ in one step: the joined tuples of one group are combined as they are made, in key order, so that
/// they are never held together.
///
/// The join's own key dimensions are `keys`. The result's key dimension d is `keys[keep[d]]`, as it is or, if
/// nothing of the array is cut by it, with the pieces that some of its axes number (`i: 6/4@xy` kept along x: one
/// coordinate for each of x). Joined tuples with the same result key make one tuple; all of them are at the
/// result's site. The kernel is one that leaves its reduction unfinished.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fold {
    /// The join's key dimensions: what inputs and ranges speak of.
    pub keys: Vec<KeyDim>,
    /// Of each of the result's key dimensions: which of `keys` it is.
    pub keep: Vec<u32>,
}

impl Fold {
    /// The join keys that make up a tuple of the result, in key order.
    pub fn members(&self, result: &[KeyDim], key: &[u32], mesh: &Mesh) -> Vec<Vec<u32>> {
        let mut members = vec![vec![]];
        for (number, dim) in (0u32..).zip(&self.keys) {
            let kept = self.keep.iter().position(|kept| *kept == number);
            let belongs = |coordinate: &u32| match kept {
                None => true,
                Some(at) if same_cut(dim, &result[at]) => *coordinate == key[at],
                Some(at) => {
                    let block = dim.block(*coordinate, mesh);
                    dim.digits(block, &result[at].axes, mesh) == key[at]
                }
            };
            let coordinates: Vec<u32> = (0..dim.pieces).filter(belongs).collect();
            let longer = members.iter().flat_map(|member: &Vec<u32>| {
                coordinates.iter().map(move |coordinate| {
                    let mut member = member.clone();
                    member.push(*coordinate);
                    member
                })
            });
            members = longer.collect();
        }
        members
    }
}

/// Whether two key dimensions are cut alike: equal coordinates are equal pieces at equal sites.
pub fn same_cut(a: &KeyDim, b: &KeyDim) -> bool {
    (a.extent, a.pieces, &a.axes) == (b.extent, b.pieces, &b.axes)
}

/// An input of a join: its key dimension `d` is the join's key dimension `keys[d]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JoinInput {
    /// The relation.
    pub relation: RelationId,
    /// Where its key dimensions go.
    pub keys: Vec<u32>,
}

impl JoinInput {
    /// The key of the tuple that belongs to a joined tuple.
    pub fn key_of(&self, joined: &[u32]) -> Vec<u32> {
        self.keys.iter().map(|key| joined[*key as usize]).collect()
    }
}

/// What a step does. `R` is the step's result, whose type stands in [`Step`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Operation {
    /// Each site makes the tuples that the placement gives it. `name` is the tensor's full name (the
    /// stream of a random source, the name that `--input` knows).
    Source {
        /// Full name of the tensor.
        name: String,
        /// What it holds.
        source: Source,
    },
    /// BCAST: the result has copies along an axis where the input has none.
    Broadcast {
        /// What is sent.
        input: RelationId,
    },
    /// SHUF: every tuple to the sites that the result's placement names.
    Shuffle {
        /// What is sent.
        input: RelationId,
    },
    /// A shuffle to windows: every tuple of the result is the part of the whole tensor that its type says; each site gets
    /// what it lacks of its tuples.
    Window {
        /// What parts are taken of: its tuples are pieces of a tensor.
        input: RelationId,
    },
    /// ⋈ᴸ: for every output key whose input tuples are all at this site, the kernel of their arrays. One
    /// input: λᴸ with a re-key.
    LocalJoin {
        /// Operands in the kernel's order; may be empty (index values and numbers only).
        inputs: Vec<JoinInput>,
        /// The kernel.
        kernel: KernelId,
        /// The range of each of the kernel's indices.
        ranges: Vec<Range>,
        /// Whether joined tuples are combined at once; `None`: the join's key dimensions are the result's.
        fold: Option<Fold>,
    },
    /// Σᴸ: tuples that agree on the kept key dimensions are combined, in key order. `keep[d]` is the input's
    /// key dimension that becomes the output's key dimension d.
    LocalAggregate {
        /// What is aggregated.
        input: RelationId,
        /// Kept key dimensions.
        keep: Vec<u32>,
        /// Combines carriers (columns as [`Reduction::carrier`] says).
        reduction: Reduction,
    },
    /// Σᴸ with arrayConcat: the key dimension that cuts `array_dim` goes away and its pieces are put together.
    LocalConcat {
        /// What is put together.
        input: RelationId,
        /// The array dimension that becomes whole.
        array_dim: u32,
    },
    /// λᴸ with keyTile and arrayTile: `array_dim` (whole before) is cut by a new, last key dimension.
    LocalTile {
        /// What is cut.
        input: RelationId,
        /// The array dimension that is cut.
        array_dim: u32,
    },
    /// σᴸ: keeps the tuples whose coordinate on key dimension `key` is `value`.
    LocalFilter {
        /// What is filtered.
        input: RelationId,
        /// Key dimension.
        key: u32,
        /// Kept coordinate.
        value: u32,
    },
    /// A value that a loop has; nothing is computed.
    Loop {
        /// Which.
        value: LoopValue,
    },
}

/// One step: `result : kind = operation`, after which the relations in `frees` are not needed any more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Number of the relation that the step makes; steps make relations in ascending order, from 0.
    pub result: RelationId,
    /// The user's tensor that it is or belongs to.
    pub tensor: String,
    /// Type and placement of the result.
    pub kind: RelationType,
    /// How it is made.
    pub operation: Operation,
    /// Relations whose last use this is (the result itself, if nothing uses it).
    pub frees: Vec<RelationId>,
    /// The source line that asks for it.
    pub origin: Origin,
}

/// A tensor that the program gives out. Its relation has rank = key arity where cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// The user's name.
    pub name: String,
    /// Which relation.
    pub relation: RelationId,
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: Vec<u64>,
    /// The tensor that a session carries and whose place it takes after the plan, by name.
    pub replaces: Option<String>,
    /// The file of `output x -> "file"`, resolved; `--save` may replace or add it. `None`: printed.
    pub file: Option<String>,
    /// The message with which a run stops if this truth value is false. Then nothing is printed or written. `None`: given out.
    pub asserts: Option<String>,
    /// True if the last dimension holds the real and the imaginary part of a complex number. Only what is printed or written knows it.
    pub complex: bool,
    /// Where the output is declared.
    pub origin: Origin,
}

/// Movements that go together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exchange {
    /// What arrives, ascending and without gaps.
    pub members: Vec<RelationId>,
    /// The step at whose end it has arrived: the last member or a step behind it.
    pub until: RelationId,
}

impl Exchange {
    /// The member where it begins.
    pub fn last(&self) -> RelationId {
        self.members.last().copied().unwrap_or(self.until)
    }
}

/// Steps that are taken together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sweep {
    /// What they make, ascending: two or more.
    pub members: Vec<RelationId>,
    /// How many of the first output dimensions number rows; from 1.
    pub rows: u32,
}

impl Sweep {
    /// The member where all are taken.
    pub fn last(&self) -> RelationId {
        self.members.last().copied().unwrap_or(RelationId(0))
    }
}

/// Where relations rest that a site does not hold between two uses.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Resting {
    /// On disk.
    #[default]
    #[serde(rename = "disk")]
    Disk,
    /// In the memory of the host, where kernels compute on a device with memory of its own.
    #[serde(rename = "host memory")]
    HostMemory,
}

impl Resting {
    /// Returns the words for a relation there.
    pub fn located(self) -> &'static str {
        match self {
            Resting::Disk => "on disk",
            Resting::HostMemory => "in host memory",
        }
    }
}

impl fmt::Display for Resting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Resting::Disk => "disk",
            Resting::HostMemory => "host memory",
        })
    }
}

/// A relation that rests between two uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Spill {
    /// The relation.
    pub relation: RelationId,
    /// The step in front of which it goes out.
    pub before: RelationId,
    /// The step in front of which it is back.
    pub until: RelationId,
}

impl Spill {
    /// Says whether it rests while a step is taken.
    pub fn covers(&self, step: usize) -> bool {
        (self.before.0 as usize..self.until.0 as usize).contains(&step)
    }
}

/// A whole plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Number of sites.
    pub sites: u32,
    /// The sites that take part, in a box; the others idle.
    pub mesh: Mesh,
    /// Whether the order of every sum is independent of `sites`.
    pub deterministic: bool,
    /// The program's files, for messages; [`Origin::file`] is a number in this list.
    pub files: Vec<String>,
    /// The kernels.
    pub kernels: Vec<Kernel>,
    /// The steps; those of a loop's body stand together.
    pub steps: Vec<Step>,
    /// The loops, in the order in which they begin.
    pub repeats: Vec<Repeat>,
    /// The loops of every local join, by its step ([`Plan::schedule`]).
    pub loops: BTreeMap<RelationId, LoopKernel>,
    /// Steps that are taken together; no step is in two.
    pub sweeps: Vec<Sweep>,
    /// Movements that go together or meanwhile, in the order in which they begin; no step is in two.
    pub exchanges: Vec<Exchange>,
    /// Where relations rest.
    pub resting: Resting,
    /// The relations that rest between two uses, ascending.
    pub spills: Vec<Spill>,
    /// The relations that rest always, and are read tuple by tuple, ascending.
    pub streams: Vec<RelationId>,
    /// What is given out, in the order of the program.
    pub outputs: Vec<Output>,
}

impl Plan {
    /// The step that makes a relation.
    pub fn step(&self, relation: RelationId) -> &Step {
        &self.steps[relation.0 as usize]
    }

    /// The type of a relation.
    pub fn kind(&self, relation: RelationId) -> &RelationType {
        &self.step(relation).kind
    }
}
