//! Statements over a list: a reduction, values at the places of a list, and a tensor made of such values.
//!
//! Some indices become positions of the list. Must not know why a statement may go over a list.
//!
//! ```text
//! y: f32[9] = [i: 9 | k: 8] sum A[i, k] * x[k]     over the list of A
//! y: f32[9] = [i: 9 | e: 5] sum A.values[e] * x[A.at1[e]] if i == A.at0[e]
//!
//! S: f32[9, 8] = [i: 9, k: 8] A[i, k] * d[k]       at its places, and made of them
//! S.values: f32[5] = [e: 5] A.values[e] * d[A.at1[e]]
//! S: f32[9, 8] = [i: 9, k: 8 | e: 5] sum S.values[e] if i == A.at0[e] and k == A.at1[e]
//! ```

use super::access::Access;
use super::{List, Lists, Pattern, PatternId, fill};
use crate::einsum::TensorId;
use crate::einsum::canonical::statement;
use crate::rules::{free_index, may_fault, may_fault_in, neutral};
use ein_plan::{
    DType, Function, Graph, Index, IndexId, Kernel, Node, NodeId, Operand, Origin, Reduction,
    Scalar,
};

/// Where the index stands that counts the places.
#[derive(Clone, Copy)]
enum Places {
    /// First in the output, in the stead of its indices that are positions.
    AreOutput,
    /// First among the reduced indices. Those of the output that are positions stay there.
    AreReduced,
}

/// A statement some of whose indices are positions of a list.
pub(super) struct OverList {
    pub kernel: Kernel,
    pub operands: Vec<TensorId>,
    /// The index that counts the places.
    pub entry: IndexId,
}

impl Lists {
    /// The reduction over the list of an access. Points are left out where a position is not the index of the output, or beyond the range of a
    /// reduced index.
    pub(super) fn sum_over(
        &mut self,
        (name, origin): (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
        access: &Access,
    ) -> (Kernel, Vec<TensorId>) {
        let outputs = kernel.output_rank;
        let dims = dims_of(kernel, access);
        let places = Places::AreReduced;
        let over = self.over_list(kernel, operands, access.pattern, &dims, places);
        let mut over = self.read_at_places(over, access.pattern, 0);
        let mut in_range = None;
        let pattern = self.pattern(access.pattern);
        for (dim, (index, size)) in access.indices.iter().zip(&pattern.shape).enumerate() {
            let extent = kernel.indices[index.0 as usize].extent;
            let (test, with) = match index.0 < outputs {
                true => (Function::Eq, Node::Index(*index)),
                false if extent < *size => {
                    let extent = Scalar::Int(i64::try_from(extent).unwrap_or(i64::MAX));
                    (Function::Gt, Node::Constant(extent))
                }
                false => continue,
            };
            let position = over.position(pattern, dim);
            let graph = &mut over.kernel.graph;
            let with = graph.add(with, DType::I64);
            let here = graph.add(Node::Apply(test, vec![with, position]), DType::Bool);
            in_range = Some(both(graph, in_range, here));
        }
        if let Some(listed) = self.is_listed(&mut over, access.pattern) {
            in_range = Some(both(&mut over.kernel.graph, in_range, listed));
        }
        if let Some(in_range) = in_range {
            restrict(&mut over.kernel, in_range);
        }
        let reaches =
            |(index, size): (&IndexId, &u64)| kernel.indices[index.0 as usize].extent >= *size;
        // No other statement may read elements that are out of range.
        if access
            .indices
            .iter()
            .zip(&self.pattern(access.pattern).shape)
            .all(reaches)
            && !may_fault(kernel)
        {
            over = self.split(name, over, origin);
        }
        statement(over.kernel, &over.operands)
    }

    /// The output's values at the places of an access, whose indices are all of the output.
    pub(super) fn values_at(
        &mut self,
        about: (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
        access: &Access,
    ) -> (Kernel, Vec<TensorId>) {
        let dims = dims_of(kernel, access);
        self.at_list(about, (kernel, operands), (access.pattern, &dims), 0)
    }

    /// The output's values where some of its indices are positions of a pattern, by place.
    pub(super) fn at_list(
        &mut self,
        (name, origin): (&str, Origin),
        (kernel, operands): (&Kernel, &[TensorId]),
        (pattern, dims): (PatternId, &[Option<usize>]),
        depth: u32,
    ) -> (Kernel, Vec<TensorId>) {
        let over = self.over_list(kernel, operands, pattern, dims, Places::AreOutput);
        let mut over = self.read_at_places(over, pattern, depth);
        let may_fault = may_fault(kernel);
        if !may_fault {
            over = self.split(name, over, origin);
        }
        let over = statement(over.kernel, &over.operands);
        let dotted = (!may_fault).then(|| self.dotted((name, origin), &over.0, &over.1));
        dotted.flatten().unwrap_or(over)
    }

    /// The output's values where some of its indices are positions of a pattern, if these are sums of products of two lists.
    pub(super) fn dotted_at(
        &mut self,
        about: (&str, Origin),
        (kernel, operands): (&Kernel, &[TensorId]),
        (pattern, dims): (PatternId, &[Option<usize>]),
        depth: u32,
    ) -> Option<(Kernel, Vec<TensorId>)> {
        let over = self.over_list(kernel, operands, pattern, dims, Places::AreOutput);
        let over = self.read_at_places(over, pattern, depth);
        let over = statement(over.kernel, &over.operands);
        self.dotted(about, &over.0, &over.1)
    }

    /// A tensor as the sum of the values at its places, if it is 0 everywhere else.
    pub(super) fn scattered(
        &self,
        kernel: &Kernel,
        list: &List,
    ) -> Option<(Kernel, Vec<TensorId>)> {
        let dtype = kernel.output[0];
        // All elements of a product are computed by row.
        if self.pattern(list.pattern).is_product {
            return None;
        }
        if dtype == DType::Bool || !fill::is_same(list.fill, fill::zero(dtype)) {
            return None;
        }
        let rank = kernel.output_rank as usize;
        let pattern = self.pattern(list.pattern);
        let mut indices = kernel.indices[..rank].to_vec();
        indices.push(Index {
            name: free_index(&kernel.indices),
            extent: pattern.count,
        });
        let entry = IndexId(kernel.output_rank);
        let mut over = OverList::new(indices, kernel.output_rank, dtype, entry);
        over.kernel.reduction = Some(Reduction::Sum);
        let whole = |dim: &usize| list.dims[*dim].is_none();
        let shape = (0..rank)
            .filter(whole)
            .map(|dim| kernel.indices[dim].extent);
        let shape: Vec<u64> = std::iter::once(pattern.count).chain(shape).collect();
        let rest: Vec<NodeId> = (0..rank)
            .filter(whole)
            .map(|dim| over.index(IndexId(dim as u32)))
            .collect();
        over.kernel.root = over.read(list.values, dtype, shape, rest, None);
        let mut here = None;
        for dim in 0..rank {
            if let Some(listed) = list.dims[dim] {
                let index = over.index(IndexId(dim as u32));
                let at = over.position(pattern, listed);
                let graph = &mut over.kernel.graph;
                let equal = graph.add(Node::Apply(Function::Eq, vec![index, at]), DType::Bool);
                here = Some(both(graph, here, equal));
            }
        }
        if let Some(listed) = self.is_listed(&mut over, list.pattern) {
            here = Some(both(&mut over.kernel.graph, here, listed));
        }
        over.kernel.guard = here;
        Some(statement(over.kernel, &over.operands))
    }

    /// The condition that a place is one of the list, where some places are none: what would be read there may be infinite or NaN.
    fn is_listed(&self, over: &mut OverList, pattern: PatternId) -> Option<NodeId> {
        let places = self.pattern(pattern);
        let list = self.lists.get(&places.tensor).filter(|_| places.has_gaps)?;
        let dtype = self.rewriting.result().tensor(list.values).dtype;
        let value = over.read(list.values, dtype, vec![places.count], vec![], None);
        let zero = over.constant(fill::zero(dtype), dtype.compute());
        let listed = Node::Apply(Function::Ne, vec![value, zero]);
        Some(over.kernel.graph.add(listed, DType::Bool))
    }

    /// The statement in which indices (for each the dimension of the pattern, if it is one) are positions of a pattern.
    fn over_list(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
        pattern: PatternId,
        dims: &[Option<usize>],
        places: Places,
    ) -> OverList {
        let pattern = self.pattern(pattern);
        let (outer, reduced) = kernel.indices.split_at(kernel.output_rank as usize);
        let mut indices = vec![];
        let mut numbers: Vec<IndexId> = vec![];
        let mut keep = |indices: &mut Vec<Index>, kept: &[Index], listed_too: bool| {
            for index in kept {
                let is_listed = dims[numbers.len()].is_some();
                numbers.push(IndexId(indices.len() as u32));
                if !is_listed || listed_too {
                    indices.push(index.clone());
                }
            }
        };
        let counter = Index {
            name: free_index(&kernel.indices),
            extent: pattern.count,
        };
        let entry = match places {
            Places::AreOutput => {
                indices.push(counter);
                keep(&mut indices, outer, false);
                0
            }
            Places::AreReduced => {
                keep(&mut indices, outer, true);
                indices.push(counter);
                indices.len() - 1
            }
        };
        let output_rank = match places {
            Places::AreOutput => indices.len(),
            Places::AreReduced => entry,
        };
        keep(&mut indices, reduced, false);
        let (entry, output_rank) = (entry as u32, output_rank as u32);
        let mut over = OverList {
            kernel: Kernel {
                indices,
                output_rank,
                graph: Graph::default(),
                ..kernel.clone()
            },
            operands: operands.to_vec(),
            entry: IndexId(entry),
        };
        let positions: Vec<NodeId> = (0..pattern.positions.len())
            .map(|dim| over.position(pattern, dim))
            .collect();
        let graph = &mut over.kernel.graph;
        let moved = graph.append(&kernel.graph, |graph, _, node, dtype| match node {
            Node::Index(index) => match dims[index.0 as usize] {
                Some(dim) => positions[dim],
                None => graph.add(Node::Index(numbers[index.0 as usize]), dtype),
            },
            node => graph.add(node, dtype),
        });
        over.kernel.root = moved[kernel.root.0 as usize];
        over.kernel.guard = kernel.guard.map(|guard| moved[guard.0 as usize]);
        over
    }
}

impl OverList {
    /// A statement that is still to be written, with an index that counts places.
    pub fn new(indices: Vec<Index>, output_rank: u32, dtype: DType, entry: IndexId) -> OverList {
        OverList {
            kernel: Kernel {
                indices,
                output_rank,
                operands: vec![],
                graph: Graph::default(),
                root: NodeId(0),
                guard: None,
                reduction: None,
                finish: true,
                output: vec![dtype],
            },
            operands: vec![],
            entry,
        }
    }

    /// A statement that is still to be written, along one index.
    pub fn vector(name: &str, extent: u64, dtype: DType) -> OverList {
        let index = Index {
            name: name.to_owned(),
            extent,
        };
        OverList::new(vec![index], 1, dtype, IndexId(0))
    }

    /// Copies a part of a statement whose operands are this one's, with nodes in the stead of the indices on which it depends.
    pub fn part(
        &mut self,
        kernel: &Kernel,
        part: NodeId,
        place: impl Fn(IndexId) -> Option<NodeId>,
    ) -> NodeId {
        let graph = &mut self.kernel.graph;
        let moved = graph.append(&kernel.graph, |graph, _, node, dtype| match node {
            // What depends on other indices is no part of it.
            Node::Index(index) => {
                place(index).unwrap_or_else(|| graph.add(Node::Constant(Scalar::Int(0)), dtype))
            }
            node => graph.add(node, dtype),
        });
        moved[part.0 as usize]
    }

    /// A constant.
    pub fn constant(&mut self, value: Scalar, dtype: DType) -> NodeId {
        self.kernel.graph.add(Node::Constant(value), dtype)
    }

    /// A function of a whole number and a constant.
    pub fn apply(&mut self, function: Function, number: NodeId, by: i64) -> NodeId {
        let by = self.constant(Scalar::Int(by), DType::I64);
        let node = Node::Apply(function, vec![number, by]);
        self.kernel.graph.add(node, DType::I64)
    }

    /// An index as a position.
    pub fn index(&mut self, index: IndexId) -> NodeId {
        self.kernel.graph.add(Node::Index(index), DType::I64)
    }

    /// The position along a dimension of a pattern at the place that is counted.
    pub fn position(&mut self, pattern: &Pattern, dim: usize) -> NodeId {
        let (shape, dtype) = (vec![pattern.count], pattern.position_type(dim));
        self.read(pattern.positions[dim], dtype, shape, vec![], None)
    }

    /// Reads a tensor at the place that is counted, and at further positions.
    pub fn read(
        &mut self,
        tensor: TensorId,
        dtype: DType,
        shape: Vec<u64>,
        further: Vec<NodeId>,
        otherwise: Option<NodeId>,
    ) -> NodeId {
        let place = self.index(self.entry);
        let positions = std::iter::once(place).chain(further).collect();
        self.read_at((tensor, dtype, shape), positions, otherwise)
    }

    /// Reads a tensor of a type and shape at some positions.
    pub fn read_at(
        &mut self,
        (tensor, dtype, shape): (TensorId, DType, Vec<u64>),
        positions: Vec<NodeId>,
        otherwise: Option<NodeId>,
    ) -> NodeId {
        let node = Node::Read {
            operand: self.operand(tensor, dtype, shape),
            column: 0,
            positions,
            otherwise,
        };
        self.kernel.graph.add(node, dtype.compute())
    }

    /// The number of an operand, which is added if it is none yet.
    pub fn operand(&mut self, tensor: TensorId, dtype: DType, shape: Vec<u64>) -> u32 {
        let known = self.operands.iter().position(|operand| *operand == tensor);
        let number = known.unwrap_or_else(|| {
            self.operands.push(tensor);
            self.kernel.operands.push(Operand {
                columns: vec![dtype],
                shape,
            });
            self.operands.len() - 1
        });
        number as u32
    }
}

/// By index of a kernel: the dimension of the access's pattern that it stands for.
fn dims_of(kernel: &Kernel, access: &Access) -> Vec<Option<usize>> {
    let numbers = (0..kernel.indices.len() as u32).map(IndexId);
    let dim = |index: IndexId| access.indices.iter().position(|own| *own == index);
    numbers.map(dim).collect()
}

/// Returns the condition that holds where both do.
pub(super) fn both(graph: &mut Graph, one: Option<NodeId>, other: NodeId) -> NodeId {
    match one {
        None => other,
        Some(one) => graph.add(Node::Apply(Function::And, vec![one, other]), DType::Bool),
    }
}

/// Leaves out the points that are not in range. A guard of the statement that may stop the run is looked at only for points in range.
fn restrict(kernel: &mut Kernel, in_range: NodeId) {
    let Some(own) = kernel.guard.filter(|own| may_fault_in(kernel, *own)) else {
        kernel.guard = Some(match kernel.guard {
            None => in_range,
            Some(own) => both(&mut kernel.graph, Some(in_range), own),
        });
        return;
    };
    let dtype = kernel.graph.dtype(kernel.root);
    let neutral = kernel
        .reduction
        .and_then(|reduction| neutral(reduction, dtype));
    let (value, instead, dtype) = match neutral {
        Some(neutral) => (kernel.root, neutral, dtype),
        None => (in_range, Scalar::Bool(false), DType::Bool),
    };
    let instead = kernel.graph.add(Node::Constant(instead), dtype);
    let arguments = match neutral {
        Some(_) => vec![own, value, instead],
        None => vec![in_range, own, instead],
    };
    let chosen = kernel
        .graph
        .add(Node::Apply(Function::Select, arguments), dtype);
    match neutral {
        Some(_) => (kernel.root, kernel.guard) = (chosen, Some(in_range)),
        None => kernel.guard = Some(chosen),
    }
}
