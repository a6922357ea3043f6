//! Library operations as kernels: solving, factoring, sorting, Fourier transforms along whole dimensions.
//!
//! A kernel whose root is a library function computes, for every point of its *batch* indices, one call, and gives the
//! element of the result that its *own* indices say. Operands are read at batch indices by their bare names and at
//! [`whole`] dimensions: `:1` are the rows of the matrix (or the vector), `:2` its columns, wherever they stand, so that a
//! transposed operand is only read otherwise. The columns of several right sides are a batch index. Several results lie one behind the other in the one own dimension. Such
//! a kernel is a function of its indices like any other: it may be run on a part of any of them. A number of a call is an operand that is
//! read at batch indices alone. Must not know how an operation is computed.
//!
//! ```text
//! (f64[3, 5, 5], f64[3, 5]) [p: 3, i: 5] f64 = solve(a0[p, :1, :2], a1[p, :1], i)
//! (i64[900], i64[70]) [e: 70] i64 = find(a0[:1], a1[e])
//! ```

mod lists;

use crate::dtype::{DType, Scalar};
use crate::function::Function;
use crate::kernel::{Graph, IndexId, Kernel, Node, NodeId};
pub use lists::is_summed;

/// What a kernel calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// The operation.
    pub operation: Function,
    /// What it is called with, in order.
    pub arguments: Vec<Argument>,
    /// The indices of the result, in its order of dimensions.
    pub own: Vec<IndexId>,
    /// The indices for each value of which there is a call, ascending.
    pub batch: Vec<IndexId>,
    /// Of operations on lists of rows, but for `listed_product`: how many positions a row may have.
    pub positions: Option<u64>,
}

/// An operand of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Which operand of the kernel.
    pub operand: u32,
    /// By dimension of the operand: the batch index at which it is read; `None`: whole.
    pub at: Vec<Option<IndexId>>,
    /// The whole dimensions: rows (or the vector's), then columns.
    pub whole: Vec<usize>,
}

/// The position of a dimension that is read whole; `dimension` is 1 or 2.
pub fn whole(graph: &mut Graph, dimension: u32) -> NodeId {
    graph.add(
        Node::Constant(Scalar::Int(-i64::from(dimension))),
        DType::I64,
    )
}

/// The number of a whole dimension, if a position of a library operand is one.
pub fn whole_dimension(graph: &Graph, position: NodeId) -> Option<u32> {
    match graph.node(position) {
        Node::Constant(Scalar::Int(number @ (-2 | -1))) => Some(number.unsigned_abs() as u32),
        _ => None,
    }
}

impl Kernel {
    /// What the kernel calls, if its root is a library operation in the form of this module.
    pub fn library(&self) -> Option<Library> {
        match self.graph.node(self.root) {
            Node::Apply(operation, _) if operation.is_library() => read(self).ok(),
            _ => None,
        }
    }
}

impl Library {
    /// Rows and columns of an argument; a vector has one column.
    pub fn matrix(&self, kernel: &Kernel, argument: usize) -> (u64, u64) {
        let argument = &self.arguments[argument];
        let shape = &kernel.operands[argument.operand as usize].shape;
        let extent = |at: usize| argument.whole.get(at).map_or(1, |dim| shape[*dim]);
        (extent(0), extent(1))
    }

    /// Extents that the result has, if the operands say them.
    pub fn result(&self, kernel: &Kernel) -> Option<Vec<u64>> {
        let (m, n) = self.matrix(kernel, 0);
        let k = m.min(n);
        Some(match self.operation {
            Function::Solve => vec![n],
            Function::Cholesky | Function::Inv => vec![n, n],
            Function::Qr => vec![m * k + k * n],
            Function::Lu => vec![m + m * n],
            Function::Eigh => vec![n + n * n],
            Function::Eig => vec![2 * (n + n * n)],
            Function::Svd => vec![m * k + k + k * n],
            Function::Logdet | Function::Find | Function::ListedDot => vec![],
            Function::Argsort | Function::Sort => vec![m],
            Function::Fft => vec![2 * m],
            Function::ListedSums => vec![self.matrix(kernel, 6).0],
            _ => return None,
        })
    }

    /// Floating-point operations of all calls (a rounded measure). A matrix that is the same for several calls is
    /// factored once.
    pub fn flops(&self, kernel: &Kernel) -> f64 {
        let extent = |index: &IndexId| kernel.indices[index.0 as usize].extent as f64;
        let calls: f64 = self.batch.iter().map(extent).product();
        let matrices: f64 = self.factored().iter().map(extent).product();
        let (matrix, call) = self.flops_each(kernel);
        matrices * matrix + calls * call
    }

    /// The batch indices that say which matrix is factored; calls that differ in the others share one.
    pub fn factored(&self) -> Vec<IndexId> {
        let at = &self.arguments[0].at;
        let batch = self.batch.iter().copied();
        batch.filter(|index| at.contains(&Some(*index))).collect()
    }

    /// Floating-point operations for each matrix, and for each call beside those.
    pub fn flops_each(&self, kernel: &Kernel) -> (f64, f64) {
        let (m, n) = self.matrix(kernel, 0);
        let (m, n) = (m as f64, n as f64);
        let k = m.min(n);
        let cubes = match self.operation {
            Function::Solve | Function::Logdet => 2.0 / 3.0 * n * n * n,
            Function::Cholesky => n * n * n / 3.0,
            Function::Inv => 2.0 * n * n * n,
            Function::Qr => 4.0 * m * n * k,
            Function::Lu => (m - n / 3.0) * n * n,
            Function::Eigh => 9.0 * n * n * n,
            Function::Eig => 25.0 * n * n * n,
            Function::Svd => 20.0 * m * n * k,
            Function::Fft | Function::Find => 0.0,
            operation if lists::is_of_lists(operation) => 0.0,
            _ => 4.0 * m * m.max(2.0).log2(),
        };
        let rest = match self.operation {
            Function::Solve => 2.0 * n * n,
            Function::Fft => 5.0 * m * m.max(2.0).log2(),
            Function::Find => m.max(2.0).log2(),
            operation if lists::is_of_lists(operation) => lists::flops(kernel, self),
            _ => 0.0,
        };
        (cubes, rest)
    }
}

/// The first way in which a kernel breaks the form of library operations, if it holds one.
pub(crate) fn verify(kernel: &Kernel) -> Result<(), String> {
    let mut calls = kernel
        .graph
        .iter()
        .filter(|(_, node, _)| matches!(node, Node::Apply(function, _) if function.is_library()));
    let Some((at, _, _)) = calls.next() else {
        return Ok(());
    };
    if at != kernel.root || kernel.reduction.is_some() || calls.next().is_some() {
        return Err("a library operation is not the whole kernel".into());
    }
    let library = read(kernel)?;
    for (number, argument) in library.arguments.iter().enumerate() {
        let stored = kernel.operands[argument.operand as usize].columns[0];
        let is_result = kernel.output == [stored];
        let suits = match library.operation {
            Function::Argsort | Function::Topk => true,
            Function::Sort => is_result,
            Function::Find => stored.compute() == DType::I64,
            operation if lists::is_of_lists(operation) => {
                lists::suits(operation, number, stored, &kernel.output)
            }
            _ => matches!(stored, DType::F32 | DType::F64) && is_result,
        };
        if !suits {
            return Err(format!("`{}` of {stored}", library.operation.name()));
        }
    }
    if lists::is_of_lists(library.operation) {
        lists::verify(kernel, &library)?;
    }
    let (rows, columns) = library.matrix(kernel, 0);
    let square = matches!(
        library.operation,
        Function::Solve
            | Function::Cholesky
            | Function::Inv
            | Function::Eigh
            | Function::Eig
            | Function::Logdet
    );
    if square && rows != columns {
        return Err(format!(
            "`{}` of {rows} x {columns}",
            library.operation.name()
        ));
    }
    if library.operation == Function::Lu && rows < columns {
        return Err(format!("`lu` of {rows} x {columns}"));
    }
    if library.operation == Function::Solve && library.matrix(kernel, 1).0 != rows {
        return Err("the right side of `solve` has another number of rows".into());
    }
    let extents = library.own.iter();
    let extents: Vec<u64> = extents
        .map(|index| kernel.indices[index.0 as usize].extent)
        .collect();
    if library.operation == Function::Fft && library.matrix(kernel, 1).0 != rows {
        return Err("the imaginary part of `fft` has another length".into());
    }
    match library.result(kernel) {
        Some(result) if result != extents => Err(format!(
            "`{}` gives {result:?} but its indices run over {extents:?}",
            library.operation.name()
        )),
        None if extents.len() != 1 => Err(format!("`{}` gives a vector", library.operation.name())),
        None if library.operation == Function::Topk && extents[0] > rows => {
            Err("`topk` chooses from too few values".into())
        }
        _ => Ok(()),
    }
}

fn read(kernel: &Kernel) -> Result<Library, String> {
    let Node::Apply(operation, nodes) = kernel.graph.node(kernel.root) else {
        return Err("the root is no operation".into());
    };
    let (values, own) = nodes
        .split_at_checked(operation.arity())
        .ok_or("a library operation has too few arguments")?;
    let (positions, own) = match own {
        [positions, own @ ..] if lists::counts_positions(*operation) => {
            (number(&kernel.graph, *positions), own)
        }
        own => (None, own),
    };
    let own: Option<Vec<IndexId>> = own.iter().map(|id| kernel.graph.as_index(*id)).collect();
    let own = own.ok_or("an index of a library operation's result is none")?;
    let mut arguments = vec![];
    for value in values {
        arguments.push(argument(kernel, *value, &own)?);
    }
    for (number, argument) in arguments.iter().enumerate() {
        let dimensions = argument.whole.len();
        let suits = match operation {
            Function::Argsort | Function::Sort | Function::Topk | Function::Fft => dimensions == 1,
            Function::Solve if number == 1 => dimensions == 1,
            Function::Find => dimensions == usize::from(number == 0),
            Function::ListedDot => dimensions == usize::from(number < 6),
            operation if lists::is_of_lists(*operation) => dimensions == 1,
            _ => dimensions == 2,
        };
        if !suits {
            return Err(format!("`{}` of {dimensions} dimensions", operation.name()));
        }
    }
    let rank = kernel.output_rank;
    let repeated = own.iter().enumerate().any(|(at, i)| own[..at].contains(i));
    if repeated || own.iter().any(|index| index.0 >= rank) {
        return Err("the indices of a library operation's result are not the output's".into());
    }
    let batch = (0..rank).map(IndexId).filter(|index| !own.contains(index));
    Ok(Library {
        operation: *operation,
        arguments,
        batch: batch.collect(),
        own,
        positions,
    })
}

/// A constant that counts.
fn number(graph: &Graph, id: NodeId) -> Option<u64> {
    match graph.node(id) {
        Node::Constant(Scalar::Int(number)) => u64::try_from(*number).ok(),
        _ => None,
    }
}

fn argument(kernel: &Kernel, value: NodeId, own: &[IndexId]) -> Result<Argument, String> {
    let Node::Read {
        operand,
        column: 0,
        positions,
        otherwise: None,
    } = kernel.graph.node(value)
    else {
        return Err("an argument of a library operation is no tensor".into());
    };
    let mut at = vec![];
    let mut whole = [None; 2];
    for (dimension, position) in positions.iter().enumerate() {
        let number = whole_dimension(&kernel.graph, *position);
        if let Some(number) = number {
            let slot = &mut whole[number as usize - 1];
            if slot.replace(dimension).is_some() {
                return Err("a whole dimension stands twice".into());
            }
            at.push(None);
            continue;
        }
        let index = kernel.graph.as_index(*position);
        let index = index.filter(|index| !own.contains(index) && !at.contains(&Some(*index)));
        at.push(Some(
            index.ok_or("a batch position is no index of its own")?,
        ));
    }
    if whole[0].is_none() && whole[1].is_some() {
        return Err("the first dimension of a library operation is missing".into());
    }
    Ok(Argument {
        operand: *operand,
        at,
        whole: whole.into_iter().flatten().collect(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::kernel::{Index, Operand};

    fn solve(extents: [u64; 2], right: Vec<u64>) -> Kernel {
        let mut graph = Graph::default();
        let (p, i) = (Node::Index(IndexId(0)), Node::Index(IndexId(1)));
        let (p, i) = (graph.add(p, DType::I64), graph.add(i, DType::I64));
        let (rows, columns) = (whole(&mut graph, 1), whole(&mut graph, 2));
        let mut read = |operand, positions| {
            let read = Node::Read {
                operand,
                column: 0,
                positions,
                otherwise: None,
            };
            graph.add(read, DType::F64)
        };
        let a = read(0, vec![p, columns, rows]);
        let b = read(1, vec![p, rows]);
        let root = graph.add(Node::Apply(Function::Solve, vec![a, b, i]), DType::F64);
        let index = |name: &str, extent| Index {
            name: name.into(),
            extent,
        };
        let operand = |shape| Operand {
            columns: vec![DType::F64],
            shape,
        };
        Kernel {
            indices: vec![index("p", extents[0]), index("i", extents[1])],
            output_rank: 2,
            operands: vec![operand(vec![3, 5, 5]), operand(right)],
            graph,
            root,
            guard: None,
            reduction: None,
            finish: true,
            output: vec![DType::F64],
        }
        .canonical()
    }

    #[test]
    fn a_transposed_operand_is_read_otherwise() {
        let kernel = solve([3, 5], vec![3, 5]);
        verify(&kernel).unwrap();
        let library = kernel.library().unwrap();
        assert_eq!(library.arguments[0].whole, [2, 1]);
        assert_eq!(library.batch, [IndexId(0)]);
        assert_eq!(library.own, [IndexId(1)]);
        let text = crate::print::expression::body(&kernel, &|o| format!("a{o}"));
        assert_eq!(text, "solve(a0[p, :2, :1], a1[p, :1], i)");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(verify(&solve([3, 4], vec![3, 5])).is_err());
        assert!(verify(&solve([3, 5], vec![3, 4])).is_err());
    }
}
