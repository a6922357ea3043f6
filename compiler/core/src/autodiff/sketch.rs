//! A kernel's expressions in the making: a graph, the tensors it reads, and arithmetic that simplifies as it builds.
//!
//! Known values are computed at once: `x + 0`, `x * 1`, `-(-x)`, numbers with numbers, `where` with a known condition.
//! A product with 0 is 0, whatever the other factor: these expressions are adjoints, and no adjoint flows there. Must
//! not know derivatives.
//!
//! ```text
//! mul(1.0, neg(neg(A[i])))   =>   A[i]
//! ```

use crate::einsum::TensorId;
use ein_plan::kernel::Affine;
use ein_plan::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Scalar};

/// Expressions over some indices.
#[derive(Clone, Default)]
pub(super) struct Sketch {
    /// The expressions.
    pub(super) graph: Graph,
    /// The operands in the order of their numbers.
    pub(super) operands: Vec<TensorId>,
    /// Extents of the operands that it began with.
    shapes: Vec<Vec<u64>>,
}

impl Sketch {
    /// Begins with the expressions of a statement; its nodes keep their numbers.
    pub(super) fn of_statement(kernel: &Kernel, operands: &[TensorId]) -> Sketch {
        Sketch {
            graph: kernel.graph.clone(),
            operands: operands.to_vec(),
            shapes: kernel.operands.iter().map(|o| o.shape.clone()).collect(),
        }
    }

    /// Returns whether positions are inside an operand of the statement that it began with.
    pub(super) fn inside(&mut self, operand: u32, positions: &[NodeId]) -> NodeId {
        let shape = self.shapes[operand as usize].clone();
        let mut inside = self.truth(true);
        for (position, extent) in positions.iter().zip(shape) {
            let (zero, extent) = (self.whole(0), self.whole(extent as i64));
            let low = self.compare(Function::Ge, *position, zero);
            let high = self.compare(Function::Lt, *position, extent);
            inside = self.and(inside, low);
            inside = self.and(inside, high);
        }
        inside
    }

    /// A number of a type that numbers have.
    pub(super) fn number(&mut self, value: f64, dtype: DType) -> NodeId {
        let scalar = match dtype.is_float() {
            true => Scalar::Float(value),
            false => Scalar::Int(value as i64),
        };
        self.graph.add(Node::Constant(scalar), dtype)
    }

    /// A whole number, `i64`.
    pub(super) fn whole(&mut self, value: i64) -> NodeId {
        self.graph
            .add(Node::Constant(Scalar::Int(value)), DType::I64)
    }

    /// A truth value.
    pub(super) fn truth(&mut self, value: bool) -> NodeId {
        self.graph
            .add(Node::Constant(Scalar::Bool(value)), DType::Bool)
    }

    /// The number of an index.
    pub(super) fn index(&mut self, at: usize) -> NodeId {
        self.graph.add(Node::Index(IndexId(at as u32)), DType::I64)
    }

    /// The floating-point number, if the node is one.
    pub(super) fn value(&self, id: NodeId) -> Option<f64> {
        match self.graph.node(id) {
            Node::Constant(Scalar::Float(value)) => Some(*value),
            _ => None,
        }
    }

    /// The number of an operand, new or not.
    pub(super) fn operand(&mut self, tensor: TensorId) -> u32 {
        let known = self.operands.iter().position(|o| *o == tensor);
        known.unwrap_or_else(|| {
            self.operands.push(tensor);
            self.operands.len() - 1
        }) as u32
    }

    /// An element of a tensor whose compute type is given.
    pub(super) fn read(
        &mut self,
        tensor: TensorId,
        positions: Vec<NodeId>,
        otherwise: Option<NodeId>,
        dtype: DType,
    ) -> NodeId {
        let operand = self.operand(tensor);
        let node = Node::Read {
            operand,
            column: 0,
            positions,
            otherwise,
        };
        self.graph.add(node, dtype)
    }

    /// A function of arguments of one type that gives that type.
    pub(super) fn apply(&mut self, function: Function, arguments: &[NodeId]) -> NodeId {
        let dtype = self.graph.dtype(arguments[0]);
        self.graph
            .add(Node::Apply(function, arguments.to_vec()), dtype)
    }

    pub(super) fn add(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => self.number(x + y, self.graph.dtype(a)),
            (Some(0.0), _) => b,
            (_, Some(0.0)) => a,
            _ if a == b => {
                let two = self.number(2.0, self.graph.dtype(a));
                self.mul(two, a)
            }
            _ => match (self.negated(a), self.negated(b)) {
                (_, Some(b)) => self.sub(a, b),
                (Some(a), _) => self.sub(b, a),
                _ => self.apply(Function::Add, &[a, b]),
            },
        }
    }

    pub(super) fn sub(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => self.number(x - y, self.graph.dtype(a)),
            (_, Some(0.0)) => a,
            (Some(0.0), _) => self.neg(b),
            _ => match self.negated(b) {
                Some(b) => self.add(a, b),
                None => self.apply(Function::Sub, &[a, b]),
            },
        }
    }

    pub(super) fn mul(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) => self.number(x * y, self.graph.dtype(a)),
            (Some(0.0), _) => a,
            (_, Some(0.0)) => b,
            (Some(1.0), _) => b,
            (_, Some(1.0)) => a,
            (Some(-1.0), _) => self.neg(b),
            (_, Some(-1.0)) => self.neg(a),
            (Some(x), _) if self.scaled(b).is_some() => {
                let (y, b) = self.scaled(b).unwrap_or((1.0, b));
                let factor = self.number(x * y, self.graph.dtype(a));
                self.mul(factor, b)
            }
            _ => match (self.negated(a), self.negated(b)) {
                (Some(a), _) => {
                    let product = self.mul(a, b);
                    self.neg(product)
                }
                (_, Some(b)) => {
                    let product = self.mul(a, b);
                    self.neg(product)
                }
                _ => self.apply(Function::Mul, &[a, b]),
            },
        }
    }

    pub(super) fn div(&mut self, a: NodeId, b: NodeId) -> NodeId {
        match (self.value(a), self.value(b)) {
            (Some(x), Some(y)) if y != 0.0 => self.number(x / y, self.graph.dtype(a)),
            (Some(0.0), _) => a,
            (_, Some(1.0)) => a,
            _ => match self.negated(a) {
                Some(a) => {
                    let quotient = self.div(a, b);
                    self.neg(quotient)
                }
                None => self.apply(Function::Div, &[a, b]),
            },
        }
    }

    pub(super) fn neg(&mut self, a: NodeId) -> NodeId {
        match (self.value(a), self.negated(a)) {
            (Some(x), _) => self.number(-x, self.graph.dtype(a)),
            (_, Some(inner)) => inner,
            _ => self.apply(Function::Neg, &[a]),
        }
    }

    /// The number and `x` of a number times `x`.
    fn scaled(&self, id: NodeId) -> Option<(f64, NodeId)> {
        match self.graph.node(id) {
            Node::Apply(Function::Mul, arguments) => {
                let factor = self.value(arguments[0])?;
                Some((factor, arguments[1]))
            }
            _ => None,
        }
    }

    /// `x` of `-x`.
    fn negated(&self, id: NodeId) -> Option<NodeId> {
        match self.graph.node(id) {
            Node::Apply(Function::Neg, arguments) => Some(arguments[0]),
            _ => None,
        }
    }

    /// A comparison.
    pub(super) fn compare(&mut self, function: Function, a: NodeId, b: NodeId) -> NodeId {
        self.graph
            .add(Node::Apply(function, vec![a, b]), DType::Bool)
    }

    /// `first and second`; `second` is only looked at where `first` holds, so it may read what is out of range elsewhere.
    pub(super) fn and(&mut self, first: NodeId, second: NodeId) -> NodeId {
        let known = |s: &Sketch, id| match s.graph.node(id) {
            Node::Constant(Scalar::Bool(value)) => Some(*value),
            _ => None,
        };
        match (known(self, first), known(self, second)) {
            (Some(true), _) => second,
            (_, Some(true)) => first,
            _ if self.is_total(second) => self.apply(Function::And, &[first, second]),
            _ => {
                let never = self.truth(false);
                self.select(first, second, never)
            }
        }
    }

    pub(super) fn select(&mut self, condition: NodeId, a: NodeId, b: NodeId) -> NodeId {
        match self.graph.node(condition) {
            Node::Constant(Scalar::Bool(true)) => a,
            Node::Constant(Scalar::Bool(false)) => b,
            _ if a == b => a,
            _ => {
                let dtype = self.graph.dtype(a);
                self.graph
                    .add(Node::Apply(Function::Select, vec![condition, a, b]), dtype)
            }
        }
    }

    pub(super) fn convert(&mut self, a: NodeId, dtype: DType) -> NodeId {
        match self.value(a) {
            _ if self.graph.dtype(a) == dtype => a,
            Some(value) if dtype.is_float() => self.number(value, dtype),
            _ => self.graph.add(Node::Convert(a), dtype),
        }
    }

    pub(super) fn affine(&mut self, form: &Affine) -> NodeId {
        self.graph.add_affine(form)
    }

    /// Returns whether a node has a value at every point: it reads nothing without `else` and divides no integers.
    fn is_total(&self, id: NodeId) -> bool {
        self.below(&[id])
            .into_iter()
            .all(|id| !match self.graph.node(id) {
                Node::Read { otherwise, .. } => otherwise.is_none(),
                Node::Apply(Function::FloorDiv | Function::Rem | Function::Pow, arguments) => {
                    let divisor = self.graph.node(arguments[1]);
                    let safe = matches!(divisor, Node::Constant(Scalar::Int(d)) if *d > 0);
                    !self.graph.dtype(id).is_float() && !safe
                }
                _ => false,
            })
    }

    /// The nodes that these are made of and they themselves, users first.
    pub(super) fn below(&self, roots: &[NodeId]) -> Vec<NodeId> {
        let mut needed = vec![false; self.graph.len()];
        roots.iter().for_each(|root| needed[root.0 as usize] = true);
        for at in (0..needed.len()).rev().filter(|_| !roots.is_empty()) {
            if needed[at] {
                let node = self.graph.node(NodeId(at as u32));
                node.arguments().for_each(|a| needed[a.0 as usize] = true);
            }
        }
        let all = (0..needed.len()).rev().filter(|at| needed[*at]);
        all.map(|at| NodeId(at as u32)).collect()
    }
}

/// Copies expressions from one sketch to another with something else for every index.
pub(super) struct Copy<'a> {
    from: &'a Sketch,
    /// The nodes that stand for the indices of `from`.
    indices: Vec<NodeId>,
    /// This operand of `from` reads 0 outside its range and where the condition, a node of the other sketch, fails.
    bounded: Option<(TensorId, NodeId)>,
    moved: Vec<Option<NodeId>>,
}

impl<'a> Copy<'a> {
    pub(super) fn new(
        from: &'a Sketch,
        indices: Vec<NodeId>,
        bounded: Option<(TensorId, NodeId)>,
    ) -> Copy<'a> {
        Copy {
            from,
            indices,
            bounded,
            moved: vec![None; from.graph.len()],
        }
    }

    /// The copy of a node, arguments first; a sum may be deep, so there is no recursion.
    pub(super) fn node(&mut self, to: &mut Sketch, id: NodeId) -> NodeId {
        let mut stack = vec![id];
        while let Some(&top) = stack.last() {
            let node = self.from.graph.node(top);
            if let Some(missing) = node
                .arguments()
                .find(|a| self.moved[a.0 as usize].is_none())
            {
                stack.push(missing);
                continue;
            }
            stack.pop();
            if self.moved[top.0 as usize].is_none() {
                self.moved[top.0 as usize] = Some(self.one(to, top));
            }
        }
        self.moved[id.0 as usize].expect("it has just been copied")
    }

    fn one(&self, to: &mut Sketch, id: NodeId) -> NodeId {
        let dtype = self.from.graph.dtype(id);
        let node = self.from.graph.node(id);
        let mut node = node.map(|a| self.moved[a.0 as usize].expect("arguments are copied first"));
        match &mut node {
            Node::Index(index) => return self.indices[index.0 as usize],
            Node::Read {
                operand,
                positions,
                otherwise,
                ..
            } => {
                let tensor = self.from.operands[*operand as usize];
                *operand = to.operand(tensor);
                for position in positions.iter_mut() {
                    if let Some(form) = to.graph.as_affine(*position) {
                        *position = to.affine(&form);
                    }
                }
                if let Some((of, condition)) = self.bounded
                    && of == tensor
                    && otherwise.is_none()
                {
                    let zero = to.number(0.0, dtype);
                    *otherwise = Some(zero);
                    let read = to.graph.add(node, dtype);
                    return to.select(condition, read, zero);
                }
            }
            _ => {}
        }
        to.graph.add(node, dtype)
    }
}
