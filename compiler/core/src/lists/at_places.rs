//! Elements that a statement over a list reads at its places: values of lists at the same places, and tensors that are computed there alone.
//!
//! A tensor is computed at the places if that is few of its elements, so that a product of which few elements are read costs as much as they
//! do. Must not know how a statement comes to go over a list.
//!
//! ```text
//! p: f32[9, 8] = [i: 9, j: 8 | k: 2] sum U[i, k] * V[j, k]
//! loss: f32[] = [| e: 5] sum A.values[e] * p[A.at0[e], A.at1[e]]
//!
//! p.values: f32[5] = [e: 5 | k: 2] sum U[A.at0[e], k] * V[A.at1[e], k]
//! loss: f32[] = [| e: 5] sum A.values[e] * p.values[e]
//! ```

use super::statement::OverList;
use super::{List, Lists, PatternId, SPARSE, elements};
use crate::einsum::{Definition, TensorId};
use crate::rules::may_fault;
use ein_plan::{Graph, IndexId, Kernel, Node, NodeId};

/// Tensors that are read by tensors that are computed at places are so many levels deep at most: each level is a call.
const DEEPEST: u32 = 64;

/// Where a read of a statement over a list is found.
struct Found {
    tensor: TensorId,
    /// By dimension of the tensor that was read: whether the place stands for it.
    listed: Vec<bool>,
}

impl Lists {
    /// The statement that reads what has values at its places there.
    pub(super) fn read_at_places(
        &mut self,
        over: OverList,
        pattern: PatternId,
        depth: u32,
    ) -> OverList {
        let mut found: Vec<Option<Found>> = vec![];
        for (_, node, _) in over.kernel.graph.iter() {
            found.push(match node {
                Node::Read {
                    operand, positions, ..
                } => {
                    let tensor = over.operands[*operand as usize];
                    let dims: Vec<Option<usize>> = (positions.iter())
                        .map(|at| self.dim_of_place(&over, pattern, *at))
                        .collect();
                    self.values_of(tensor, pattern, &dims, depth)
                }
                _ => None,
            });
        }
        let OverList {
            kernel,
            operands,
            entry,
        } = &over;
        let mut result = OverList {
            kernel: Kernel {
                graph: Graph::default(),
                ..kernel.clone()
            },
            operands: operands.clone(),
            entry: *entry,
        };
        let mut moved: Vec<NodeId> = vec![];
        for ((_, node, dtype), found) in kernel.graph.iter().zip(&found) {
            let node = node.map(|argument| moved[argument.0 as usize]);
            moved.push(match (node, found) {
                (
                    Node::Read {
                        positions,
                        otherwise,
                        ..
                    },
                    Some(found),
                ) => {
                    let further: Vec<NodeId> = (positions.iter().zip(&found.listed))
                        .filter_map(|(at, listed)| (!listed).then_some(*at))
                        .collect();
                    // A place is in range.
                    let otherwise = otherwise.filter(|_| !further.is_empty());
                    let tensor = self.rewriting.result().tensor(found.tensor);
                    let (stored, shape) = (tensor.dtype, tensor.shape.clone());
                    result.read(found.tensor, stored, shape, further, otherwise)
                }
                (node, _) => result.kernel.graph.add(node, dtype),
            });
        }
        result.kernel.root = moved[kernel.root.0 as usize];
        result.kernel.guard = kernel.guard.map(|guard| moved[guard.0 as usize]);
        result
    }

    /// The dimension of a pattern whose position at the place a node reads.
    fn dim_of_place(&self, over: &OverList, pattern: PatternId, node: NodeId) -> Option<usize> {
        let graph = &over.kernel.graph;
        let Node::Read {
            operand, positions, ..
        } = graph.node(node)
        else {
            return None;
        };
        let is_place = graph.as_index(*positions.first()?) == Some(over.entry);
        let tensor = over.operands[*operand as usize];
        let columns = &self.pattern(pattern).positions;
        columns
            .iter()
            .position(|column| is_place && *column == tensor)
    }

    /// Where the elements of a tensor are found by place, if they are: for some of its dimensions, the positions are those of the pattern's.
    fn values_of(
        &mut self,
        tensor: TensorId,
        pattern: PatternId,
        dims: &[Option<usize>],
        depth: u32,
    ) -> Option<Found> {
        if dims.iter().all(Option::is_none) {
            return None;
        }
        if let Some(list) = self.lists.get(&tensor)
            && list.pattern == pattern
            && list
                .dims
                .iter()
                .zip(dims)
                .all(|(own, at)| own.is_none() || own == at)
        {
            return Some(Found {
                tensor: list.values,
                listed: list.dims.iter().map(Option::is_some).collect(),
            });
        }
        let key = (tensor, pattern, dims.to_vec());
        if let Some(known) = self.at_places.get(&key) {
            let (tensor, listed) = (*known, dims.iter().map(Option::is_some).collect());
            return Some(Found { tensor, listed });
        }
        let values = match self.lists.get(&tensor).cloned() {
            // Of a product, few elements are computed sooner than all are.
            Some(list) if self.pattern(list.pattern).is_product => self
                .computed_at(tensor, pattern, dims, depth)
                .or_else(|| self.found_of(tensor, &list, pattern, dims)),
            Some(list) => self.found_of(tensor, &list, pattern, dims),
            None => None,
        };
        let tensor = match values {
            Some(values) => values,
            None => self.computed_at(tensor, pattern, dims, depth)?,
        };
        self.at_places.insert(key, tensor);
        let listed = dims.iter().map(Option::is_some).collect();
        Some(Found { tensor, listed })
    }

    /// The tensor of the elements of a list's tensor that are found at the places of another pattern.
    fn found_of(
        &mut self,
        tensor: TensorId,
        list: &List,
        pattern: PatternId,
        dims: &[Option<usize>],
    ) -> Option<TensorId> {
        let tensor = self.rewriting.result().tensor(tensor);
        let (name, origin) = (tensor.name.clone(), tensor.origin);
        self.found_at((&name, origin), list, pattern, dims)
    }

    /// The tensor of the elements that a statement gives at the places of a pattern, if they are few.
    fn computed_at(
        &mut self,
        id: TensorId,
        pattern: PatternId,
        dims: &[Option<usize>],
        depth: u32,
    ) -> Option<TensorId> {
        let tensor = self.rewriting.result().tensor(id);
        let Definition::Statement { kernel, operands } = &tensor.definition else {
            return None;
        };
        let places = self.pattern(pattern);
        let (mut count, mut reaches) = (places.count, true);
        for (extent, dim) in tensor.shape.iter().zip(dims) {
            match dim {
                Some(dim) => reaches &= *extent >= places.shape[*dim],
                None => count = count.saturating_mul(*extent),
            }
        }
        let is_few = count.saturating_mul(SPARSE) <= elements(&tensor.shape);
        if !reaches || !is_few || depth >= DEEPEST {
            return None;
        }
        let (name, origin) = (tensor.name.clone(), tensor.origin);
        let own = (kernel.clone(), operands.clone());
        let is_listed = |index: IndexId| dims.get(index.0 as usize).is_some_and(Option::is_some);
        let takes = |kernel: &Kernel| {
            kernel.library().is_none() && !may_fault(kernel) && !is_guarded_by(kernel, is_listed)
        };
        let over = |kernel: &Kernel| {
            let mut all = dims.to_vec();
            all.resize(kernel.indices.len(), None);
            all
        };
        let (about, depth) = ((&*name, origin), depth + 1);
        // If it goes over a list itself: few elements of what it was before are computed where rows of two lists meet for each.
        let before = self.before.get(&id).cloned();
        let before = before.filter(|(kernel, _)| takes(kernel));
        let met = before.and_then(|(kernel, operands)| {
            let dims = over(&kernel);
            self.dotted_at(about, (&kernel, &operands), (pattern, &dims), depth)
        });
        let at = match met {
            Some(met) => met,
            None if takes(&own.0) => {
                let dims = over(&own.0);
                self.at_list(about, (&own.0, &own.1), (pattern, &dims), depth)
            }
            None => return None,
        };
        Some((self.rewriting).add_hidden(&format!("{name}.values"), at, origin))
    }
}

/// Returns whether the guard of a kernel depends on one of these indices: at a place it would then leave out nearly all points.
fn is_guarded_by(kernel: &Kernel, is_listed: impl Fn(IndexId) -> bool) -> bool {
    let Some(guard) = kernel.guard else {
        return false;
    };
    let depends = kernel.graph.dependencies()[guard.0 as usize];
    (0..kernel.indices.len() as u32)
        .map(IndexId)
        .any(|index| is_listed(index) && depends >> index.0.min(127) & 1 == 1)
}
