//! A reduction over a short window as an expression.
//!
//! The window's values are written out, each with its reduced indices as numbers, and what is then known of them is left out. Must not know which
//! windows are worth it.
//!
//! ```text
//! y: f32[8] = [i: 8 | r: 2] max x[2 * i + r]   ->   y: f32[8] = [i: 8] max(x[2 * i], x[2 * i + 1])
//! ```

use super::{neutral, over};
use ein_plan::schedule::guard::conjuncts;
use ein_plan::{Affine, DType, Function, Graph, IndexId, Kernel, Node, NodeId, Reduction, Scalar};

/// Most values that are written out.
pub(crate) const MOST: u64 = 32;

/// A reduction over a short window as an expression; `None` if it is none.
pub(crate) fn over_window(kernel: &Kernel) -> Option<Kernel> {
    Window::of(kernel).and_then(|window| window.written())
}

/// A reduction over a short window.
struct Window<'a> {
    kernel: &'a Kernel,
    reduction: Reduction,
    value: DType,
}

impl Window<'_> {
    fn of(kernel: &Kernel) -> Option<Window<'_>> {
        let window = Window {
            kernel,
            reduction: kernel.reduction?,
            value: kernel.graph.dtype(kernel.root),
        };
        let plain = match window.reduction {
            Reduction::Sum | Reduction::Max | Reduction::Min => true,
            Reduction::Mean => kernel.guard.is_none(),
            _ => false,
        };
        // Of a type whose sums are kept as they are added.
        let kept = match window.value {
            DType::F32 | DType::F64 => true,
            DType::I64 => window.reduction != Reduction::Mean,
            _ => false,
        };
        let one = kernel.finish && kernel.output == [window.value] && kernel.library().is_none();
        let count = kernel.indices[kernel.output_rank as usize..].iter();
        let count = count.map(|i| i.extent).fold(1, u64::saturating_mul);
        let fits = plain && kept && one && (2..=MOST).contains(&count);
        let short = fits && kernel.scattered().is_empty();
        (short && (window.is_window() || window.is_choice())).then_some(window)
    }

    /// True if the reduced indices choose between values, and elements are read at places that follow from the indices.
    fn is_choice(&self) -> bool {
        let graph = &self.kernel.graph;
        let output = (1u128 << self.kernel.output_rank.min(127)) - 1;
        let depends = graph.dependencies();
        let mut positions = graph.reads().flat_map(|(_, positions)| positions);
        let placed = positions.all(|position| graph.as_affine(*position).is_some());
        let chooses = |node: &Node| match node {
            Node::Apply(Function::Select, a) => {
                let indices = depends[a[0].0 as usize];
                indices != 0 && indices & output == 0
            }
            _ => false,
        };
        placed && graph.iter().any(|(_, node, _)| chooses(node))
    }

    /// True if elements are read at places that follow from the indices, each reduced one beside another one, and one read has all indices of the result that any has.
    fn is_window(&self) -> bool {
        let kernel = self.kernel;
        let rank = kernel.output_rank;
        let depends = kernel.graph.dependencies();
        let reduced =
            (rank..kernel.indices.len() as u32).fold(0u128, |all, i| all | 1 << i.min(127));
        let (mut all, mut most, mut beside) = (0u128, 0u128, 0u128);
        for (_, positions) in kernel.graph.reads() {
            let mut own = 0;
            for position in positions {
                // A message about a place that data say names all indices of the point.
                if kernel.graph.as_affine(*position).is_none() {
                    return false;
                }
                let indices = depends[position.0 as usize];
                own |= indices & !reduced;
                if indices & !reduced != 0 {
                    beside |= indices & reduced;
                }
            }
            all |= own;
            if own.count_ones() > most.count_ones() {
                most = own;
            }
        }
        beside == reduced && most == all
    }

    fn written(&self) -> Option<Kernel> {
        let kernel = self.kernel;
        let rank = kernel.output_rank as usize;
        let reduced = kernel.indices[rank..].iter().map(|index| index.extent);
        let extents: Vec<i64> = reduced.map(i64::try_from).collect::<Result<_, _>>().ok()?;
        let (combine, nothing) = match self.reduction {
            Reduction::Max => (Function::Max, neutral(self.reduction, self.value)?),
            Reduction::Min => (Function::Min, neutral(self.reduction, self.value)?),
            _ => (Function::Add, neutral(Reduction::Sum, self.value)?),
        };
        let mut graph = Graph::default();
        let mut total: Option<NodeId> = None;
        let count: i64 = extents.iter().product();
        for number in 0..count {
            let mut rest = number;
            let mut at: Vec<i64> = vec![];
            for extent in extents.iter().rev() {
                at.insert(0, rest % extent);
                rest /= extent;
            }
            let (mut value, guard) = self.at(&mut graph, &at)?;
            if let Some(guard) = guard {
                value = self.unless(&mut graph, guard, value, nothing);
            }
            if let Some(total) = total {
                let both = Node::Apply(combine, vec![total, value]);
                value = graph.add(both, self.value);
            }
            total = Some(value);
        }
        let mut root = total?;
        if self.reduction == Reduction::Mean {
            let count = graph.add(Node::Constant(Scalar::Float(count as f64)), self.value);
            root = graph.add(Node::Apply(Function::Div, vec![root, count]), self.value);
        }
        let written = Kernel {
            graph,
            root,
            guard: None,
            reduction: None,
            ..kernel.clone()
        };
        let left: Vec<usize> = (0..rank).collect();
        Some(over(written.canonical(), kernel, &left))
    }

    /// Writes the value at these reduced indices, and the condition under which it counts, if there is one.
    fn at(&self, graph: &mut Graph, at: &[i64]) -> Option<(NodeId, Option<NodeId>)> {
        let kernel = self.kernel;
        let rank = kernel.output_rank;
        let placed = |form: &Affine| {
            let mut placed = Affine {
                constant: form.constant,
                terms: vec![],
            };
            for (index, weight) in &form.terms {
                match index.0.checked_sub(rank) {
                    None => placed.terms.push((*index, *weight)),
                    Some(reduced) => {
                        let value = weight.checked_mul(at[reduced as usize])?;
                        placed.constant = placed.constant.checked_add(value)?;
                    }
                }
            }
            Some(placed)
        };
        let forms: Vec<Option<Affine>> = (kernel.graph.iter())
            .map(|(id, _, _)| kernel.graph.as_affine(id))
            .collect();
        if !forms.iter().flatten().all(|form| placed(form).is_some()) {
            return None;
        }
        let extent = |index: IndexId| kernel.indices[index.0 as usize].extent;
        let moved = graph.append(&kernel.graph, |graph, id, node, dtype| {
            let form = forms[id.0 as usize].as_ref().and_then(placed);
            match form {
                Some(form) => graph.add_affine(&form),
                None => simpler(graph, node, dtype, &extent),
            }
        });
        let guard = kernel.guard.map(|guard| moved[guard.0 as usize]);
        let holds = |guard: &NodeId| *graph.node(*guard) == Node::Constant(Scalar::Bool(true));
        let guard = guard.filter(|guard| !holds(guard));
        Some((moved[kernel.root.0 as usize], guard))
    }

    /// The value where a condition holds, else nothing: an element with nothing around its tensor, if that is what the condition says.
    fn unless(&self, graph: &mut Graph, guard: NodeId, value: NodeId, nothing: Scalar) -> NodeId {
        let nothing = graph.add(Node::Constant(nothing), self.value);
        let mut node = Node::Apply(Function::Select, vec![guard, value, nothing]);
        if let Node::Read {
            operand,
            column,
            positions,
            otherwise: None,
        } = graph.node(value).clone()
            && self.says_inside(graph, guard, operand, &positions)
        {
            node = Node::Read {
                operand,
                column,
                positions,
                otherwise: Some(nothing),
            };
        }
        graph.add(node, self.value)
    }

    /// Returns true if a condition says that positions are inside, and nothing else.
    fn says_inside(
        &self,
        graph: &mut Graph,
        guard: NodeId,
        operand: u32,
        positions: &[NodeId],
    ) -> bool {
        let extent = |index: IndexId| self.kernel.indices[index.0 as usize].extent;
        let mut wanted = vec![];
        for (position, size) in positions
            .iter()
            .zip(&self.kernel.operands[operand as usize].shape)
        {
            let reach = graph
                .as_affine(*position)
                .and_then(|f| f.reach(extent, None));
            let (Some((low, high)), Ok(size)) = (reach, i64::try_from(*size)) else {
                return false;
            };
            for (function, end, within) in [
                (Function::Ge, 0, low >= 0),
                (Function::Le, size - 1, high < size),
            ] {
                let end = graph.add(Node::Constant(Scalar::Int(end)), DType::I64);
                let inside = Node::Apply(function, vec![*position, end]);
                if !within {
                    wanted.push(graph.add(inside, DType::Bool));
                }
            }
        }
        let mut said = conjuncts(graph, guard);
        said.sort_unstable();
        said.dedup();
        wanted.sort_unstable();
        said == wanted
    }
}

/// Adds a node, or what it is where a bound of an index decides.
fn simpler(
    graph: &mut Graph,
    node: Node,
    dtype: DType,
    extent: &impl Fn(IndexId) -> u64,
) -> NodeId {
    let truth = |graph: &Graph, id: NodeId| match graph.node(id) {
        Node::Constant(Scalar::Bool(truth)) => Some(*truth),
        _ => None,
    };
    if let Node::Apply(function, a) = &node {
        match (function, &a[..]) {
            (Function::Ge | Function::Le, [form, end]) => {
                let reach = graph.as_affine(*form).and_then(|f| f.reach(extent, None));
                if let (Some((low, high)), Node::Constant(Scalar::Int(end))) =
                    (reach, graph.node(*end))
                {
                    let holds = match function {
                        Function::Ge => low >= *end,
                        _ => high <= *end,
                    };
                    if holds {
                        return graph.add(Node::Constant(Scalar::Bool(true)), DType::Bool);
                    }
                }
            }
            (comparison, [one, other])
                if let Some(holds) = said(graph, *comparison, *one, *other) =>
            {
                return graph.add(Node::Constant(Scalar::Bool(holds)), DType::Bool);
            }
            (Function::And, [one, other]) if truth(graph, *one) == Some(true) => return *other,
            (Function::And, [one, other]) if truth(graph, *other) == Some(true) => return *one,
            (Function::Select, [condition, value, _]) if truth(graph, *condition) == Some(true) => {
                return *value;
            }
            (Function::Select, [condition, _, value])
                if truth(graph, *condition) == Some(false) =>
            {
                return *value;
            }
            _ => {}
        }
    }
    graph.add(node, dtype)
}

/// Decides a comparison of two whole numbers.
fn said(graph: &Graph, comparison: Function, one: NodeId, other: NodeId) -> Option<bool> {
    let number = |id: NodeId| match graph.node(id) {
        Node::Constant(Scalar::Int(number)) => Some(*number),
        _ => None,
    };
    let (one, other) = (number(one)?, number(other)?);
    match comparison {
        Function::Eq => Some(one == other),
        Function::Ne => Some(one != other),
        Function::Lt => Some(one < other),
        Function::Le => Some(one <= other),
        Function::Gt => Some(one > other),
        Function::Ge => Some(one >= other),
        _ => None,
    }
}
