//! Scalar kernels: one expression over indices, reads and numbers, reduced over some of the indices.
//!
//! The same form serves the Einstein IR (operands are tensors), TRA, IA and plans (operands are the arrays
//! of a tuple). Expressions are hash-consed graphs, so shared subexpressions are stored once. Positions and
//! index values are *global*: a kernel run on a chunk is told where the chunk begins. Must not know chunks,
//! keys or sites.
//!
//! ```text
//! (f32[10, 14], bool[10]) [n: 10, y: 7 | r: 3] f32 = sum where(a1[n], a0[n, 2 * y + r - 1] else 0.0, 0.0)
//! ```

use crate::dtype::{DType, Scalar};
use crate::function::Function;
use crate::reduction::Reduction;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};

/// An index of a kernel; the first `output_rank` ones are the output's dimensions in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct IndexId(pub u32);

/// A node of a kernel's [`Graph`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeId(pub u32);

/// An index: its name in the source and its range `0..extent`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Index {
    /// As the user wrote it (made unique where a program's text repeats it).
    pub name: String,
    /// Number of values, over the whole tensor.
    pub extent: u64,
}

/// What a kernel needs to know of an operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Operand {
    /// Stored types of its columns; one, except for carriers.
    pub columns: Vec<DType>,
    /// Extents of the whole operand (not of a chunk), one a dimension.
    pub shape: Vec<u64>,
}

/// One node; its compute type (`F32 F64 I32 I64 Bool`) is kept beside it in [`Graph`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Node {
    /// A number.
    Constant(Scalar),
    /// The global number of an index, `I64`.
    Index(IndexId),
    /// An element of an operand, converted to its compute type.
    Read {
        /// Which operand.
        operand: u32,
        /// Which column of it; 0 except for carriers.
        column: u32,
        /// One `I64` node a dimension: global positions.
        positions: Vec<NodeId>,
        /// Read where a position is outside the operand; without it such a read stops the run.
        otherwise: Option<NodeId>,
    },
    /// A function of the table.
    Apply(Function, Vec<NodeId>),
    /// The argument converted to this node's type (float → integer truncates; out of range saturates; NaN is 0).
    Convert(NodeId),
}

/// Up to so many nodes a graph is searched rather than hashed.
const SMALL: usize = 24;

/// A hash-consed expression graph in topological order: arguments stand before their users.
#[derive(Default, Serialize, Deserialize)]
pub struct Graph {
    nodes: Vec<(Node, DType)>,
    /// Where each node stands; built when a node is added to a copy of the graph that is not [`SMALL`].
    #[serde(skip)]
    places: HashMap<(Node, DType), NodeId>,
}

impl Graph {
    /// Adds a node of a compute type, or finds the equal one. The node's arguments are in the graph already.
    pub fn add(&mut self, node: Node, dtype: DType) -> NodeId {
        debug_assert!(
            node.arguments().all(|a| (a.0 as usize) < self.nodes.len()),
            "an argument of {node:?} is not in the graph"
        );
        let next = NodeId(self.nodes.len() as u32);
        if self.nodes.len() < SMALL {
            let entry = (node, dtype);
            if let Some(at) = self.nodes.iter().position(|known| *known == entry) {
                return NodeId(at as u32);
            }
            self.nodes.push(entry);
            return next;
        }
        if self.places.is_empty() {
            self.places = (0u32..)
                .zip(&self.nodes)
                .map(|(at, entry)| (entry.clone(), NodeId(at)))
                .collect();
        }
        *self.places.entry((node, dtype)).or_insert_with_key(|key| {
            self.nodes.push(key.clone());
            next
        })
    }

    /// The node itself.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize].0
    }

    /// The node's compute type.
    pub fn dtype(&self, id: NodeId) -> DType {
        self.nodes[id.0 as usize].1
    }

    /// All nodes with their compute types, arguments before users.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (NodeId, &Node, DType)> {
        self.nodes
            .iter()
            .enumerate()
            .map(|(i, (n, t))| (NodeId(i as u32), n, *t))
    }

    /// Every read: which operand, and at which positions, one a dimension.
    pub fn reads(&self) -> impl Iterator<Item = (u32, &[NodeId])> {
        self.nodes.iter().filter_map(|(node, _)| match node {
            Node::Read {
                operand, positions, ..
            } => Some((*operand, &positions[..])),
            _ => None,
        })
    }

    /// By node: the indices that it depends on, bit by bit. All indices from the 128th on share the last bit.
    pub fn dependencies(&self) -> Vec<u128> {
        let mut depends: Vec<u128> = Vec::with_capacity(self.len());
        for (node, _) in &self.nodes {
            let own = match node {
                Node::Index(index) => 1 << index.0.min(127),
                _ => 0,
            };
            let arguments = node.arguments();
            depends.push(arguments.fold(own, |set, argument| set | depends[argument.0 as usize]));
        }
        depends
    }

    /// Adds the nodes of another graph and returns, by node of that graph, where each is here. `place` gets every node's number there, the
    /// node with its arguments as they are here, and its type; it adds the node, or gives another one in its place.
    pub fn append(
        &mut self,
        other: &Graph,
        mut place: impl FnMut(&mut Graph, NodeId, Node, DType) -> NodeId,
    ) -> Vec<NodeId> {
        let mut moved: Vec<NodeId> = Vec::with_capacity(other.len());
        for (id, node, dtype) in other.iter() {
            let node = node.map(|argument| moved[argument.0 as usize]);
            moved.push(place(self, id, node, dtype));
        }
        moved
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

impl Clone for Graph {
    fn clone(&self) -> Self {
        Graph {
            nodes: self.nodes.clone(),
            places: HashMap::new(),
        }
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.nodes).finish()
    }
}

impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes
    }
}
impl Eq for Graph {}
impl Hash for Graph {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nodes.hash(state);
    }
}

impl Node {
    /// The nodes that this one is made of, in the order in which they are printed.
    pub fn arguments(&self) -> impl Iterator<Item = NodeId> + '_ {
        let (list, last) = match self {
            Node::Constant(_) | Node::Index(_) => (&[][..], None),
            Node::Read {
                positions,
                otherwise,
                ..
            } => (&positions[..], *otherwise),
            Node::Apply(_, arguments) => (&arguments[..], None),
            Node::Convert(argument) => (&[][..], Some(*argument)),
        };
        list.iter().copied().chain(last)
    }

    /// The same node with every argument replaced.
    #[must_use]
    pub fn map(&self, mut new: impl FnMut(NodeId) -> NodeId) -> Node {
        match self {
            Node::Constant(value) => Node::Constant(*value),
            Node::Index(index) => Node::Index(*index),
            Node::Read {
                operand,
                column,
                positions,
                otherwise,
            } => Node::Read {
                operand: *operand,
                column: *column,
                positions: positions.iter().map(|p| new(*p)).collect(),
                otherwise: otherwise.map(new),
            },
            Node::Apply(function, arguments) => {
                Node::Apply(*function, arguments.iter().map(|a| new(*a)).collect())
            }
            Node::Convert(argument) => Node::Convert(new(*argument)),
        }
    }
}

/// `output[o…] = reduce over the other indices, where guard holds, of root`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Kernel {
    /// Output indices in order, then the reduced ones.
    pub indices: Vec<Index>,
    /// How many of `indices` are the output's.
    pub output_rank: u32,
    /// What each operand is.
    pub operands: Vec<Operand>,
    /// The expressions.
    pub graph: Graph,
    /// The value at a point.
    pub root: NodeId,
    /// A `Bool` node: points where it is false are left out of the reduction.
    pub guard: Option<NodeId>,
    /// `None` if and only if there is no reduced index.
    pub reduction: Option<Reduction>,
    /// Whether the reduction's carrier is turned into its result; if not, the output is the carrier's columns.
    pub finish: bool,
    /// The stored types of the output's columns: one, or the carrier's if `finish` is false.
    pub output: Vec<DType>,
}

impl Kernel {
    /// The same kernel with its graph in canonical order: what the root needs, arguments in order and before
    /// their users, then what only the guard needs; nothing else. Kernels that print alike are then equal,
    /// and a printed kernel parses back to itself.
    #[must_use]
    pub fn canonical(mut self) -> Kernel {
        let mut graph = Graph::default();
        let mut moved: Vec<Option<NodeId>> = vec![None; self.graph.len()];
        self.root = self.graph.copy_into(self.root, &mut graph, &mut moved);
        self.guard = self
            .guard
            .map(|guard| self.graph.copy_into(guard, &mut graph, &mut moved));
        self.graph = graph;
        self
    }

    /// The kernel with its expressions made anew, node by node, as [`Graph::append`] says. What `place` needs more operands or indices for is
    /// the caller's to add.
    #[must_use]
    pub fn rewritten(
        mut self,
        place: impl FnMut(&mut Graph, NodeId, Node, DType) -> NodeId,
    ) -> Kernel {
        let mut graph = Graph::default();
        let moved = graph.append(&self.graph, place);
        self.root = moved[self.root.0 as usize];
        self.guard = self.guard.map(|guard| moved[guard.0 as usize]);
        self.graph = graph;
        self
    }

    /// Leaves out the points where a condition, a node of the kernel, is false.
    pub fn restrict(&mut self, condition: NodeId) {
        self.guard = Some(match self.guard {
            None => condition,
            Some(guard) => {
                let both = Node::Apply(Function::And, vec![guard, condition]);
                self.graph.add(both, DType::Bool)
            }
        });
    }
}

impl Graph {
    /// Copies what `id` needs to another graph, arguments first; `moved` says where each node already is.
    /// Works with a stack of its own, since a long sum is a deep graph.
    fn copy_into(&self, id: NodeId, to: &mut Graph, moved: &mut [Option<NodeId>]) -> NodeId {
        let mut stack = vec![id];
        while let Some(&top) = stack.last() {
            let node = self.node(top);
            let missing = node.arguments().find(|a| moved[a.0 as usize].is_none());
            match missing {
                Some(argument) => stack.push(argument),
                None => {
                    stack.pop();
                    let copy = node.map(|a| moved[a.0 as usize].unwrap_or(a));
                    moved[top.0 as usize] = Some(to.add(copy, self.dtype(top)));
                }
            }
        }
        moved[id.0 as usize].unwrap_or(id)
    }
}

/// A position as an affine form over indices: `constant + Σ coefficient · index`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Affine {
    /// The constant term.
    pub constant: i64,
    /// Terms with non-zero coefficients, by ascending index.
    pub terms: Vec<(IndexId, i64)>,
}

/// A position as an affine form over indices divided by a number, rounded down.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Quotient {
    /// The dividend.
    pub form: Affine,
    /// The divisor, at least 1.
    pub divisor: i64,
}

impl Graph {
    /// The index, if the node is nothing but one.
    pub fn as_index(&self, id: NodeId) -> Option<IndexId> {
        match self.node(id) {
            Node::Index(index) => Some(*index),
            _ => None,
        }
    }

    /// The affine form of an `I64` node, if it is one (and no coefficient overflows). A form of more than
    /// 256 parts is not looked through.
    pub fn as_affine(&self, id: NodeId) -> Option<Affine> {
        if self.dtype(id) != DType::I64 {
            return None;
        }
        self.affine(id, &mut 256)
    }

    /// Adds an affine form: rising terms first, then the constant, then the terms that are taken off.
    pub fn add_affine(&mut self, form: &Affine) -> NodeId {
        let terms = form.terms.iter().map(|(index, c)| (*c, Some(*index)));
        let mut terms: Vec<(i64, Option<IndexId>)> = terms.collect();
        if form.constant != 0 || terms.is_empty() {
            terms.push((form.constant, None));
        }
        terms.sort_by_key(|(factor, _)| *factor < 0);
        let mut sum: Option<NodeId> = None;
        for (factor, index) in terms {
            let falls = sum.is_some() && factor < 0 && factor != i64::MIN;
            let factor = if falls { -factor } else { factor };
            let index = index.map(|index| self.add(Node::Index(index), DType::I64));
            let term = match index {
                Some(index) if factor == 1 => index,
                Some(index) => {
                    let factor = self.add(Node::Constant(Scalar::Int(factor)), DType::I64);
                    self.add(Node::Apply(Function::Mul, vec![factor, index]), DType::I64)
                }
                None => self.add(Node::Constant(Scalar::Int(factor)), DType::I64),
            };
            let function = if falls { Function::Sub } else { Function::Add };
            sum = Some(match sum {
                None => term,
                Some(sum) => self.add(Node::Apply(function, vec![sum, term]), DType::I64),
            });
        }
        sum.expect("there is a constant where there are no terms")
    }

    /// The quotient that an `I64` node is, if it is one; an affine form is one by 1.
    pub fn as_quotient(&self, id: NodeId) -> Option<Quotient> {
        if let Node::Apply(Function::FloorDiv, sides) = self.node(id)
            && let Node::Constant(Scalar::Int(divisor @ 1..)) = *self.node(sides[1])
        {
            let form = self.as_affine(sides[0])?;
            return Some(Quotient { form, divisor });
        }
        let form = self.as_affine(id)?;
        Some(Quotient { form, divisor: 1 })
    }

    fn affine(&self, id: NodeId, budget: &mut u32) -> Option<Affine> {
        *budget = budget.checked_sub(1)?;
        match self.node(id) {
            Node::Constant(Scalar::Int(c)) => Some(Affine {
                constant: *c,
                terms: vec![],
            }),
            Node::Index(i) => Some(Affine {
                constant: 0,
                terms: vec![(*i, 1)],
            }),
            Node::Apply(function, a) => {
                let x = self.affine(*a.first()?, budget)?;
                if *function == Function::Neg {
                    return x.times(-1);
                }
                let y = self.affine(*a.get(1)?, budget)?;
                match function {
                    Function::Add => x.plus(&y, 1),
                    Function::Sub => x.plus(&y, -1),
                    Function::Mul if x.terms.is_empty() => y.times(x.constant),
                    Function::Mul if y.terms.is_empty() => x.times(y.constant),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

impl Affine {
    /// The least and the greatest value of what it adds to its term in the index `but`, over the whole range of every other index;
    /// `None` if that cannot be counted. An index without values counts as one with a single value.
    pub fn reach(
        &self,
        extent: impl Fn(IndexId) -> u64,
        but: Option<IndexId>,
    ) -> Option<(i64, i64)> {
        let mut reach = (self.constant, self.constant);
        for (index, coefficient) in &self.terms {
            if Some(*index) == but {
                continue;
            }
            let last = i64::try_from(extent(*index)).ok()?.saturating_sub(1);
            let far = coefficient.checked_mul(last.max(0))?;
            reach.0 = reach.0.checked_add(far.min(0))?;
            reach.1 = reach.1.checked_add(far.max(0))?;
        }
        Some(reach)
    }

    fn times(&self, factor: i64) -> Option<Affine> {
        Affine {
            constant: 0,
            terms: vec![],
        }
        .plus(self, factor)
    }

    /// `self + factor · other`; `None` if a coefficient overflows.
    pub fn plus(&self, other: &Affine, factor: i64) -> Option<Affine> {
        let mut terms: std::collections::BTreeMap<IndexId, i64> =
            self.terms.iter().copied().collect();
        for (index, coefficient) in &other.terms {
            let entry = terms.entry(*index).or_insert(0);
            *entry = entry.checked_add(coefficient.checked_mul(factor)?)?;
        }
        Some(Affine {
            constant: self
                .constant
                .checked_add(other.constant.checked_mul(factor)?)?,
            terms: terms.into_iter().filter(|(_, c)| *c != 0).collect(),
        })
    }
}
