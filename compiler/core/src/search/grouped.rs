//! Reductions of groups that carry more than one number, as those that carry one.
//!
//! A scatter adds each point where data send it, and carries one number a group. Whether any or all of a group holds is the largest or the least of
//! ones and zeros; of a norm and a `logsumexp` the largest value comes first, and then the sum of what remains. As with any reordered sum, rounding may differ. Must not know placements.
//!
//! ```text
//! y: bool[9] = [i: 9 | e: 5000] any x[e] > 0.0 if to[e] == i
//! y.most: i32[9] = [i: 9 | e: 5000] max where(x[e] > 0.0, 1, 0) if to[e] == i;   y: bool[9] = [i: 9] y.most[i] > 0
//! ```

use crate::einsum::{Program, Rewriting, Rewritten, Statement, TensorId, canonical};
use crate::rules::{element, elementwise, values};
use ein_plan::schedule::guard::solved;
use ein_plan::{DType, Function, IndexId, Kernel, Node, NodeId, Operand, Reduction, Scalar};

/// Fewest points that are worth a statement more.
const FEWEST: u64 = 1 << 10;

/// Returns the program in which such reductions of groups are scatters.
pub fn by_one_number(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let kernel = statement.kernel;
        let dtype = kernel.graph.dtype(kernel.root);
        if !kernel.finish || kernel.output != [dtype] {
            return None;
        }
        let reduction = kernel.reduction?;
        if reduction == Reduction::Any || reduction == Reduction::All {
            return truth(&mut statement, reduction);
        }
        if !matches!(dtype, DType::F32 | DType::F64) {
            return None;
        }
        match reduction {
            Reduction::Norm | Reduction::LogSumExp => by_largest(&mut statement, reduction),
            _ => None,
        }
    })
}

/// Reduces the points otherwise, another value of each, if that is a scatter.
fn scattered(
    kernel: &Kernel,
    reduction: Reduction,
    value: impl FnOnce(&mut Kernel) -> NodeId,
) -> Option<Kernel> {
    let mut other = kernel.clone();
    other.reduction = Some(reduction);
    other.root = value(&mut other);
    other.output = vec![other.graph.dtype(other.root)];
    is_of_groups(&other).then_some(other)
}

/// True if a reduction that carries one number scatters so many points that a statement more is worth it.
pub(super) fn is_of_groups(kernel: &Kernel) -> bool {
    let reduced = kernel.output_rank as usize..kernel.indices.len();
    values(kernel, reduced) >= FEWEST && !kernel.scattered().is_empty()
}

/// A statement over the groups, in the making.
struct OverGroups<'k> {
    of: &'k Kernel,
    kernel: Kernel,
    operands: Vec<TensorId>,
}

impl<'k> OverGroups<'k> {
    fn of(of: &'k Kernel) -> OverGroups<'k> {
        let kernel = Kernel {
            operands: vec![],
            graph: ein_plan::Graph::default(),
            ..elementwise(of)
        };
        let operands = vec![];
        OverGroups {
            of,
            kernel,
            operands,
        }
    }

    /// The number of a group.
    fn read(&mut self, tensor: TensorId, stored: DType) -> NodeId {
        let all: Vec<usize> = (0..self.of.output_rank as usize).collect();
        self.operands.push(tensor);
        let to = (&mut self.kernel.graph, &mut self.kernel.operands);
        element(to, self.of, &all, stored)
    }

    fn apply(&mut self, function: Function, arguments: &[NodeId]) -> NodeId {
        let dtype = match function {
            Function::Gt | Function::Lt | Function::And => DType::Bool,
            _ => self.kernel.graph.dtype(arguments[arguments.len() - 1]),
        };
        let node = Node::Apply(function, arguments.to_vec());
        self.kernel.graph.add(node, dtype)
    }

    fn number(&mut self, number: Scalar, dtype: DType) -> NodeId {
        self.kernel.graph.add(Node::Constant(number), dtype)
    }

    fn made(mut self, root: NodeId) -> Statement {
        self.kernel.root = root;
        self.kernel.output = vec![self.kernel.graph.dtype(root)];
        canonical::statement(self.kernel, &self.operands)
    }
}

/// A truth about a group: the largest or the least of ones and zeros.
fn truth(statement: &mut Rewritten<'_>, reduction: Reduction) -> Option<Statement> {
    let (extreme, part) = match reduction {
        Reduction::Any => (Reduction::Max, "most"),
        _ => (Reduction::Min, "least"),
    };
    let kernel = statement.kernel;
    let ones = scattered(kernel, extreme, |other| {
        let [one, zero] = [1, 0].map(|number| {
            let number = Node::Constant(Scalar::Int(number));
            other.graph.add(number, DType::I32)
        });
        let chosen = Node::Apply(Function::Select, vec![other.root, one, zero]);
        other.graph.add(chosen, DType::I32)
    })?;
    let ones = statement.add(part, canonical::statement(ones, statement.operands));
    let mut groups = OverGroups::of(kernel);
    let most = groups.read(ones, DType::I32);
    let zero = groups.number(Scalar::Int(0), DType::I32);
    let holds = groups.apply(Function::Gt, &[most, zero]);
    Some(groups.made(holds))
}

/// A norm or a `logsumexp`, which would overflow without the largest value of each group.
fn by_largest(statement: &mut Rewritten<'_>, reduction: Reduction) -> Option<Statement> {
    let kernel = statement.kernel;
    let dtype = kernel.graph.dtype(kernel.root);
    let is_norm = reduction == Reduction::Norm;
    let most = scattered(kernel, Reduction::Max, |other| match is_norm {
        true => {
            let size = Node::Apply(Function::Abs, vec![other.root]);
            other.graph.add(size, dtype)
        }
        false => other.root,
    })?;
    let indices = most.scattered();
    let most = statement.add("most", canonical::statement(most, statement.operands));
    // The values are scaled by a finite number, for a norm by one that is not 0.
    let mut groups = OverGroups::of(kernel);
    let own = groups.read(most, dtype);
    let (least, other) = match is_norm {
        true => (0.0, 1.0),
        false => (f64::NEG_INFINITY, 0.0),
    };
    let [least, other, infinite] =
        [least, other, f64::INFINITY].map(|x| groups.number(Scalar::Float(x), dtype));
    let (above, below) = (
        groups.apply(Function::Gt, &[own, least]),
        groups.apply(Function::Lt, &[own, infinite]),
    );
    let both = groups.apply(Function::And, &[above, below]);
    let scale = groups.apply(Function::Select, &[both, own, other]);
    let scale = groups.made(scale);
    let scale = statement.add("scale", scale);
    let rest = scattered(kernel, Reduction::Sum, |to| {
        let scale = at_places(to, kernel, &indices);
        let graph = &mut to.graph;
        let mut apply =
            |function, arguments: Vec<NodeId>| graph.add(Node::Apply(function, arguments), dtype);
        if is_norm {
            let part = apply(Function::Div, vec![kernel.root, scale]);
            return apply(Function::Mul, vec![part, part]);
        }
        let part = apply(Function::Sub, vec![kernel.root, scale]);
        apply(Function::Exp, vec![part])
    })?;
    let operands = [statement.operands, &[scale]].concat();
    let rest = statement.add("rest", canonical::statement(rest, &operands));
    let mut groups = OverGroups::of(kernel);
    let [rest, scale] = [rest, scale].map(|tensor| groups.read(tensor, dtype));
    let whole = match is_norm {
        true => {
            let root = groups.apply(Function::Sqrt, &[rest]);
            groups.apply(Function::Mul, &[scale, root])
        }
        false => {
            let log = groups.apply(Function::Log, &[rest]);
            groups.apply(Function::Add, &[log, scale])
        }
    };
    Some(groups.made(whole))
}

/// Reads, at the place that a point goes to, a tensor over the groups, which is the last operand.
fn at_places(to: &mut Kernel, kernel: &Kernel, indices: &[IndexId]) -> NodeId {
    let dtype = kernel.graph.dtype(kernel.root);
    let places = solved(kernel, indices).places;
    let output = &kernel.indices[..kernel.output_rank as usize];
    let shape = output.iter().map(|index| index.extent).collect();
    let positions = (0..output.len()).map(|at| {
        let place = places.iter().find(|(index, _)| *index == at);
        place.map_or_else(
            || to.graph.add(Node::Index(IndexId(at as u32)), DType::I64),
            |(_, place)| *place,
        )
    });
    let positions = positions.collect();
    // Of a point that goes to no group nothing is needed.
    let nothing = to.graph.add(Node::Constant(Scalar::Float(1.0)), dtype);
    let read = Node::Read {
        operand: to.operands.len() as u32,
        column: 0,
        positions,
        otherwise: Some(nothing),
    };
    to.operands.push(Operand {
        columns: vec![dtype],
        shape,
    });
    to.graph.add(read, dtype)
}
