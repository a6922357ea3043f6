//! Sums over a tensor of which a file lists few elements, as sums over the list.
//!
//! A term of a sum with a factor 0 is 0, so a sum of products over such a tensor needs its listed elements alone. They become tensors: the
//! values, and the positions along each dimension. An index that is summed is read from the list; one of the result is a guard that the
//! position fulfils, so that the statement adds each term where it belongs. Terms that are not listed are left out also where another factor
//! is infinite or NaN. Must not know files, nor how a sum is computed.
//!
//! ```text
//! C: f32[9, 4] = [i: 9, j: 4 | k: 8] sum A[i, k] * X[k, j]                              with 5 elements of A listed
//! C: f32[9, 4] = [i: 9, j: 4 | e: 5] sum A.values[e] * X[A.at1[e], j] if i == A.at0[e]
//! ```

use super::canonical::statement;
use super::{Definition, Program, Rewriting, Role, Tensor, TensorId};
use ein_plan::{
    DType, Function, Graph, Index, IndexId, Kernel, ListColumn, Node, NodeId, Operand, Reduction,
    Scalar, Source,
};
use std::collections::BTreeMap;

/// A tensor is taken as a list if it has at least so many elements for each that is listed. A dense product computes so many more
/// operations in the time in which a sum over a list gathers, adds and scatters one.
pub const SPARSE: u64 = 32;

/// Returns whether a list is a shorter way than all elements.
pub fn is_sparse(shape: &[u64], listed: u64) -> bool {
    let elements = (shape.iter()).fold(1u64, |n, extent| n.saturating_mul(*extent));
    !shape.is_empty() && listed.saturating_mul(SPARSE) <= elements
}

/// Returns the program in which sums over these inputs (name and number of listed elements) read lists, where they can.
#[must_use]
pub fn with_lists(program: &Program, listed: &BTreeMap<String, u64>) -> Program {
    let mut rewriting = Rewriting::of(program);
    let mut lists: BTreeMap<TensorId, List> = BTreeMap::new();
    for (old, tensor) in (0..).map(TensorId).zip(&program.tensors) {
        let mut tensor = rewriting.copy(tensor);
        if let Definition::Statement { kernel, operands } = &mut tensor.definition {
            while let Some((operand, list)) = sum_over_list(kernel, operands, &lists) {
                (*kernel, *operands) = over_list(kernel, operands, operand, list);
            }
        }
        let count = listed
            .get(&tensor.name)
            .filter(|_| tensor.role == Role::Input);
        let of = count
            .filter(|count| is_sparse(&tensor.shape, **count))
            .copied();
        let columns = of.and_then(|count| Some((count, columns(&tensor, count)?)));
        let dtype = tensor.dtype;
        let id = rewriting.place(old, tensor);
        if let Some((count, columns)) = columns {
            let mut columns = columns.into_iter().map(|column| rewriting.add(column));
            let list = columns.next().map(|values| List {
                count,
                dtype,
                values,
                positions: columns.collect(),
            });
            lists.extend(list.map(|list| (id, list)));
        }
    }
    if lists.is_empty() {
        return program.clone();
    }
    rewriting.finish().needed()
}

/// The list of a tensor.
struct List {
    count: u64,
    dtype: DType,
    values: TensorId,
    /// By dimension.
    positions: Vec<TensorId>,
}

/// The tensors that the list of an input consists of: the values, and the positions along each dimension.
fn columns(tensor: &Tensor, count: u64) -> Option<Vec<Tensor>> {
    let file = match &tensor.definition {
        Definition::Source(Source::Load(file)) => Some(file.clone()),
        Definition::Source(Source::Unbound) => None,
        _ => return None,
    };
    let column = |name: String, dtype, column| Tensor {
        name: format!("{}.{name}", tensor.name),
        dtype,
        shape: vec![count],
        role: Role::Hidden,
        definition: Definition::Source(Source::Listed {
            tensor: tensor.name.clone(),
            file: file.clone(),
            dtype: tensor.dtype,
            column,
        }),
        block: None,
        origin: tensor.origin,
    };
    let mut columns = vec![column("values".into(), tensor.dtype, ListColumn::Values)];
    let rank = tensor.shape.len() as u32;
    for dim in 0..rank {
        let name = format!("at{dim}");
        columns.push(column(name, DType::I64, ListColumn::Positions(dim)));
    }
    Some(columns)
}

/// The operand of a kernel over whose list it can sum: it is read once, as a factor of the sum, at indices that all differ, and is 0
/// outside.
fn sum_over_list<'l>(
    kernel: &Kernel,
    operands: &[TensorId],
    lists: &'l BTreeMap<TensorId, List>,
) -> Option<(u32, &'l List)> {
    if kernel.reduction != Some(Reduction::Sum) || kernel.library().is_some() {
        return None;
    }
    (0u32..).zip(operands).find_map(|(operand, tensor)| {
        let list = lists.get(tensor)?;
        let indices = read_at_indices(kernel, operand)?;
        let is_summed = indices.iter().any(|index| index.0 >= kernel.output_rank);
        (is_summed && is_factor(&kernel.graph, kernel.root, operand)).then_some((operand, list))
    })
}

/// The indices at which a kernel reads an operand, if it reads it once, at different bare indices, and 0 where it has no element.
fn read_at_indices(kernel: &Kernel, operand: u32) -> Option<Vec<IndexId>> {
    let graph = &kernel.graph;
    let mut reads = graph.iter().filter_map(|(_, node, _)| match node {
        Node::Read {
            operand: read,
            positions,
            otherwise,
            ..
        } if *read == operand => Some((positions, *otherwise)),
        _ => None,
    });
    let (positions, otherwise) = reads.next()?;
    let is_zero = |id| matches!(graph.node(id), Node::Constant(value) if value.as_f64() == 0.0);
    if !otherwise.is_none_or(is_zero) {
        return None;
    }
    let indices: Vec<IndexId> =
        (positions.iter().map(|at| graph.as_index(*at))).collect::<Option<_>>()?;
    let differ = (1..indices.len()).all(|at| !indices[..at].contains(&indices[at]));
    // Reads that differ only in what stands for a place outside are two nodes.
    (reads.next().is_none() && differ).then_some(indices)
}

/// Returns whether a value is a product in which an operand's element is a factor, and which reads it nowhere else.
fn is_factor(graph: &Graph, value: NodeId, operand: u32) -> bool {
    match graph.node(value) {
        Node::Read { operand: read, .. } => *read == operand,
        Node::Convert(inner) => is_factor(graph, *inner, operand),
        Node::Apply(Function::Neg, sides) => is_factor(graph, sides[0], operand),
        Node::Apply(Function::Mul, sides) => {
            let [a, b] = [sides[0], sides[1]].map(|side| reads(graph, side, operand));
            match (a, b) {
                (true, false) => is_factor(graph, sides[0], operand),
                (false, true) => is_factor(graph, sides[1], operand),
                _ => false,
            }
        }
        Node::Apply(Function::Div, sides) => {
            !reads(graph, sides[1], operand) && is_factor(graph, sides[0], operand)
        }
        Node::Constant(_) | Node::Index(_) | Node::Apply(..) => false,
    }
}

/// Returns whether a value reads an operand.
fn reads(graph: &Graph, value: NodeId, operand: u32) -> bool {
    let reads = |node: &Node| matches!(node, Node::Read { operand: read, .. } if *read == operand);
    holds_below(graph, value, reads)
}

/// Returns whether a node that a value is made of passes a test.
fn holds_below(graph: &Graph, value: NodeId, test: impl Fn(&Node) -> bool) -> bool {
    let mut seen = vec![false; graph.len()];
    let mut open = vec![value];
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut seen[id.0 as usize], true) {
            continue;
        }
        let node = graph.node(id);
        if test(node) {
            return true;
        }
        open.extend(node.arguments());
    }
    false
}

/// The value of an element of the list, with the guard of the statement: one that may stop the run is looked at only for elements in
/// range. Operands from the number `columns` on are those of the list.
fn restricted(
    graph: &mut Graph,
    root: NodeId,
    in_range: Option<NodeId>,
    guard: Option<NodeId>,
    columns: usize,
) -> (NodeId, Option<NodeId>) {
    let (Some(range), Some(own)) = (in_range, guard) else {
        return (root, in_range.or(guard));
    };
    let may_fault = |node: &Node| match node {
        Node::Read { operand, .. } => (*operand as usize) < columns,
        Node::Apply(function, _) => matches!(
            function,
            Function::FloorDiv | Function::Rem | Function::Pow | Function::Within
        ),
        _ => false,
    };
    if !holds_below(graph, own, may_fault) {
        let both = Node::Apply(Function::And, vec![range, own]);
        return (root, Some(graph.add(both, DType::Bool)));
    }
    let dtype = graph.dtype(root);
    let zero = match dtype.is_float() {
        true => Scalar::Float(0.0),
        false => Scalar::Int(0),
    };
    let zero = graph.add(Node::Constant(zero), dtype);
    let chosen = Node::Apply(Function::Select, vec![own, root, zero]);
    (graph.add(chosen, dtype), Some(range))
}

/// The statement that sums over the list of an operand.
fn over_list(
    kernel: &Kernel,
    operands: &[TensorId],
    operand: u32,
    list: &List,
) -> (Kernel, Vec<TensorId>) {
    let own = read_at_indices(kernel, operand).unwrap_or_default();
    let (outer, summed) = kernel.indices.split_at(kernel.output_rank as usize);
    // Summed indices that stay keep their order; the number in the list comes first among them.
    let entry = IndexId(kernel.output_rank);
    let mut indices = outer.to_vec();
    indices.push(Index {
        name: free_index(&kernel.indices),
        extent: list.count,
    });
    let mut numbers: Vec<IndexId> = (0..kernel.output_rank).map(IndexId).collect();
    for (number, index) in (kernel.output_rank..).zip(summed) {
        numbers.push(IndexId(indices.len() as u32));
        if !own.contains(&IndexId(number)) {
            indices.push(index.clone());
        }
    }
    let mut operands = operands.to_vec();
    let mut described = kernel.operands.clone();
    let mut graph = Graph::default();
    let number = graph.add(Node::Index(entry), DType::I64);
    let mut column = |graph: &mut Graph, tensor: TensorId, dtype: DType| {
        operands.push(tensor);
        described.push(Operand {
            columns: vec![dtype],
            shape: vec![list.count],
        });
        let read = Node::Read {
            operand: operands.len() as u32 - 1,
            column: 0,
            positions: vec![number],
            otherwise: None,
        };
        graph.add(read, dtype.compute())
    };
    let values = column(&mut graph, list.values, list.dtype);
    let positions: Vec<NodeId> = (list.positions.iter())
        .map(|tensor| column(&mut graph, *tensor, DType::I64))
        .collect();
    let listed = |index: IndexId| own.iter().position(|own| *own == index);
    let moved = graph.append(&kernel.graph, |graph, _, node, dtype| match node {
        Node::Read { operand: read, .. } if read == operand => values,
        Node::Index(index) => match listed(index) {
            Some(dim) => positions[dim],
            None => graph.add(Node::Index(numbers[index.0 as usize]), dtype),
        },
        node => graph.add(node, dtype),
    });
    let mut in_range = None;
    // Elements beyond the range of a summed index are no terms.
    let shape = &kernel.operands[operand as usize].shape;
    for ((index, position), size) in own.iter().zip(&positions).zip(shape) {
        let extent = kernel.indices[index.0 as usize].extent;
        let (test, with) = match index.0 < kernel.output_rank {
            true => (Function::Eq, Node::Index(*index)),
            false if extent < *size => (Function::Gt, Node::Constant(Scalar::Int(extent as i64))),
            false => continue,
        };
        let with = graph.add(with, DType::I64);
        let here = graph.add(Node::Apply(test, vec![with, *position]), DType::Bool);
        in_range = Some(match in_range {
            None => here,
            Some(range) => graph.add(Node::Apply(Function::And, vec![range, here]), DType::Bool),
        });
    }
    let (root, guard) = restricted(
        &mut graph,
        moved[kernel.root.0 as usize],
        in_range,
        kernel.guard.map(|guard| moved[guard.0 as usize]),
        kernel.operands.len(),
    );
    let kernel = Kernel {
        indices,
        output_rank: kernel.output_rank,
        operands: described,
        root,
        guard,
        graph,
        reduction: kernel.reduction,
        finish: kernel.finish,
        output: kernel.output.clone(),
    };
    statement(kernel, &operands)
}

/// A name that no index has.
fn free_index(indices: &[Index]) -> String {
    let taken = |name: &str| indices.iter().any(|index| index.name == name);
    let numbered = (1..).map(|number| format!("e{number}"));
    let mut names = std::iter::once("e".to_owned()).chain(numbered);
    names.find(|name| !taken(name)).unwrap_or_default()
}
