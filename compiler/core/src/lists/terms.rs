//! Sums of several terms, some of which go over a list: each term becomes a sum of its own.
//!
//! A product with a sum is a sum of products. A factor that is a number c where nothing is listed is c plus a difference that is 0 there; so is a factor
//! whose value there depends on fewer indices. Each sum runs over the indices of its term alone. Must not know how a statement comes to go over a list.
//!
//! ```text
//! y: f32[9] = [i: 9 | k: 8] sum (A[i, k] - m[i]) * x[k]                with 5 elements of A listed
//!
//! y.term: f32[9] = [i: 9 | e: 5] sum A.values[e] * x[A.at1[e]] if i == A.at0[e]
//! y.term1: f32[] = [| k: 8] sum x[k]
//! y: f32[9] = [i: 9] y.term[i] - m[i] * y.term1[]
//! ```

use super::access::Access;
use super::united::diagonal;
use super::{Lists, fill};
use crate::einsum::canonical::statement;
use crate::einsum::nodes::needed;
use crate::einsum::{Statement, TensorId};
use crate::rules::conditions::chosen_factor;
use crate::rules::{element, elementwise, may_fault, over, summed, times, values};
use ein_plan::{DType, Function, Graph, Kernel, Node, NodeId, Origin, Reduction, Scalar};

/// Sums of more terms are left as they are.
const MOST_TERMS: usize = 8;

/// Sums are looked through so many levels deep: each level is a call.
const DEEPEST: u32 = 64;

/// A term of a sum: a product of factors, of which some divide.
#[derive(Clone, Default)]
struct Term {
    negative: bool,
    over: Vec<NodeId>,
    under: Vec<NodeId>,
}

/// A term in two parts: a sum, and the factors that stand before it.
struct Part {
    /// The sum, over the indices that it has.
    inner: Kernel,
    /// The indices of the output that the sum has.
    left: Vec<usize>,
    outer: Term,
}

/// A statement that is taken apart. Its kernel gets further nodes for the terms.
struct Terms<'a> {
    kernel: Kernel,
    /// By access: what is known of each node of the statement where the list has no place.
    known: Vec<Vec<Option<Scalar>>>,
    /// By access: a read at it, and the number that the list has everywhere else.
    reads: Vec<(NodeId, Scalar)>,
    /// By node of the statement: the accesses on which it depends, bit by bit.
    listed: Vec<u64>,
    /// Nodes of the terms that depend on a list, beside those of the statement.
    differences: Vec<NodeId>,
    /// The graph of the statement.
    graph: &'a Graph,
}

impl Lists {
    /// The sum as sums of its terms, if each that reads lists goes over one then.
    pub(super) fn in_terms(
        &mut self,
        (name, origin): (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<Statement> {
        let dtype = kernel.graph.dtype(kernel.root);
        let is_sum = match kernel.reduction? {
            Reduction::Sum => true,
            Reduction::Mean => kernel.guard.is_none() && dtype.is_float(),
            _ => false,
        };
        let plain = is_sum && kernel.finish && kernel.output == [dtype];
        let is_known = kernel.indices.len() < 128 && kernel.library().is_none();
        let is_over_one = self.access_of_sum(kernel, operands).is_some();
        if !plain || !is_known || is_over_one || may_fault(kernel) {
            return None;
        }
        if self.completing(kernel, operands).is_some() {
            return None;
        }
        let mut terms = self.terms(kernel, operands)?;
        let found = terms.of(kernel.root, 0)?;
        if !(2..=MOST_TERMS).contains(&found.len()) {
            return None;
        }
        let mut parts = vec![];
        for term in &found {
            let part = terms.part(term, dtype)?;
            let (inner, read) = statement(part.inner.clone(), operands);
            let is_dense = self.accesses(&inner, &read).is_empty();
            if !is_dense && self.access_of_sum(&inner, &read).is_none() {
                return None;
            }
            parts.push((part, (inner, read)));
        }
        let mut result = elementwise(&terms.kernel);
        let mut operands = operands.to_vec();
        let mut sum = None;
        for (part, (inner, read)) in parts {
            let inner = self.reduced((name, origin), &inner, &read);
            operands.push(self.made(&format!("{name}.term"), inner, origin));
            let (graph, own) = (&mut result.graph, &mut result.operands);
            let mut term = part.outer;
            term.over
                .push(element((graph, own), kernel, &part.left, dtype));
            sum = Some(term.added_to(sum, &mut result.graph, dtype));
        }
        result.root = sum?;
        if kernel.reduction == Some(Reduction::Mean) {
            let rank = kernel.output_rank as usize;
            let points = values(kernel, rank..kernel.indices.len()) as f64;
            let graph = &mut result.graph;
            let points = graph.add(Node::Constant(Scalar::Float(points)), dtype);
            let mean = Node::Apply(Function::Div, vec![result.root, points]);
            result.root = graph.add(mean, dtype);
        }
        Some(statement(result, &operands))
    }

    /// A statement with the values of its nodes where the lists that it reads have no place.
    fn terms<'a>(&self, kernel: &'a Kernel, operands: &[TensorId]) -> Option<Terms<'a>> {
        let mut accesses: Vec<Access> = vec![];
        let (mut reads, mut listed): (Vec<(NodeId, Scalar)>, Vec<u64>) = (vec![], vec![]);
        for (id, node, _) in kernel.graph.iter() {
            let mut own = 0;
            if let Some((access, fill)) = self.access_of_read(kernel, operands, node) {
                let known = accesses.iter().position(|other| *other == access);
                let at = known.unwrap_or(accesses.len());
                if known.is_none() {
                    accesses.push(access);
                    reads.push((id, fill));
                }
                own = 1u64.checked_shl(at as u32)?;
            }
            let arguments = node.arguments().map(|id| listed[id.0 as usize]);
            listed.push(arguments.fold(own, |all, of| all | of));
        }
        if accesses.is_empty() {
            return None;
        }
        let is_free = kernel
            .guard
            .is_none_or(|guard| listed[guard.0 as usize] == 0);
        let known = accesses.iter();
        let known = known.map(|access| self.fill_values(kernel, operands, access));
        is_free.then(|| Terms {
            kernel: kernel.clone(),
            known: known.collect(),
            reads,
            listed,
            differences: vec![],
            graph: &kernel.graph,
        })
    }
}

impl Terms<'_> {
    /// The terms of a node of the statement; `None` if one of them has no value where nothing is listed.
    fn of(&mut self, id: NodeId, depth: u32) -> Option<Vec<Term>> {
        let listed = |id: NodeId| self.listed[id.0 as usize] != 0;
        let single = |id: NodeId| {
            vec![Term {
                over: vec![id],
                ..Term::default()
            }]
        };
        if !listed(id) || self.is_zero(id) {
            return Some(single(id));
        }
        let Node::Apply(function, sides) = self.graph.node(id) else {
            return self.parted(id);
        };
        let (first, second) = (sides[0], sides.get(1).copied().unwrap_or(sides[0]));
        if depth >= DEEPEST {
            return self.parted(id);
        }
        match function {
            Function::Neg => Some(negated(self.of(first, depth + 1)?)),
            Function::Add | Function::Sub => {
                let mut all = self.of(first, depth + 1)?;
                let more = self.of(second, depth + 1)?;
                all.extend(match function {
                    Function::Sub => negated(more),
                    _ => more,
                });
                (all.len() <= MOST_TERMS).then_some(all)
            }
            Function::Mul if listed(first) != listed(second) => {
                let (sum, factor) = match listed(first) {
                    true => (first, second),
                    false => (second, first),
                };
                let mut all = self.of(sum, depth + 1)?;
                all.iter_mut().for_each(|term| term.over.push(factor));
                Some(all)
            }
            Function::Div if !listed(second) && self.graph.dtype(id).is_float() => {
                let mut all = self.of(first, depth + 1)?;
                all.iter_mut().for_each(|term| term.under.push(second));
                Some(all)
            }
            _ => self.parted(id),
        }
    }

    /// Returns whether a node is 0 wherever one of the lists has no place.
    fn is_zero(&self, id: NodeId) -> bool {
        let zero = fill::zero(self.graph.dtype(id));
        let values = self.known.iter().filter_map(|known| known[id.0 as usize]);
        values.into_iter().any(|value| fill::is_same(value, zero))
    }

    /// A node that depends on one list, as its value where the list has no place and the difference from it.
    fn parted(&mut self, id: NodeId) -> Option<Vec<Term>> {
        let dtype = self.graph.dtype(id);
        let listed = self.listed[id.0 as usize];
        let access = listed.trailing_zeros() as usize;
        if listed.count_ones() != 1 || !dtype.is_float() {
            return None;
        }
        let known = &self.known[access];
        let is_finite = |value: &Scalar| value.as_f64().is_finite();
        let graph = &mut self.kernel.graph;
        // By node: the node that has its value where the list has no place. Only nodes that this one needs matter.
        let mut without: Vec<NodeId> = vec![];
        let needed = needed(self.graph, &[id]);
        for (own, node, dtype) in self.graph.iter() {
            without.push(match known[own.0 as usize] {
                _ if !needed[own.0 as usize] || self.listed[own.0 as usize] == 0 => own,
                Some(value) if is_finite(&value) => graph.add(Node::Constant(value), dtype),
                Some(_) => return None,
                None => {
                    let node = node.clone().map(|argument| without[argument.0 as usize]);
                    graph.add(node, dtype)
                }
            });
        }
        let otherwise = without[id.0 as usize];
        let depends = graph.dependencies();
        if known[id.0 as usize].is_none() && depends[otherwise.0 as usize] == depends[id.0 as usize]
        {
            return None;
        }
        let sides = vec![id, otherwise];
        let mut difference = graph.add(Node::Apply(Function::Sub, sides), dtype);
        if known[id.0 as usize].is_none() {
            let (read, fill) = self.reads[access];
            let fill = graph.add(Node::Constant(fill), self.graph.dtype(read));
            let is_listed = Node::Apply(Function::Ne, vec![read, fill]);
            let is_listed = graph.add(is_listed, DType::Bool);
            let zero = graph.add(Node::Constant(fill::zero(dtype)), dtype);
            let chosen = Node::Apply(Function::Select, vec![is_listed, difference, zero]);
            difference = graph.add(chosen, dtype);
        }
        self.differences.push(difference);
        let term = |over: NodeId| Term {
            over: vec![over],
            ..Term::default()
        };
        Some(vec![term(difference), term(otherwise)])
    }

    /// The sum of a term over the indices that it depends on; `None` if a list would stand before the sum.
    fn part(&mut self, term: &Term, dtype: DType) -> Option<Part> {
        let kernel = &mut self.kernel;
        let rank = kernel.output_rank as usize;
        let depends = kernel.graph.dependencies();
        let of = |id: &NodeId| depends[id.0 as usize];
        let of_guard = kernel.guard.as_ref().map_or(0, of);
        let is_summed = |id: &NodeId| of(id) >> rank != 0;
        let split = |all: &[NodeId]| -> (Vec<NodeId>, Vec<NodeId>) {
            all.iter().copied().partition(is_summed)
        };
        let ((over_in, over_out), (under_in, under_out)) = (split(&term.over), split(&term.under));
        let is_listed = |id: &NodeId| {
            let own = self.listed.get(id.0 as usize);
            own.is_some_and(|of| *of != 0) || self.differences.contains(id)
        };
        if over_out.iter().any(is_listed) {
            return None;
        }
        let inner = over_in.iter().chain(&under_in);
        let bits = inner.fold(of_guard, |bits, id| bits | of(id));
        let all = 0..kernel.indices.len();
        let (own, others): (Vec<usize>, Vec<usize>) = all.partition(|at| bits >> at & 1 == 1);
        let (left, reduced): (Vec<usize>, Vec<usize>) = own.iter().partition(|at| **at < rank);
        let times_all = values(kernel, others.into_iter().filter(|at| *at >= rank));
        let graph = &mut kernel.graph;
        let one = constant(graph, 1, dtype);
        let mut root = match &over_in[..] {
            [] => one,
            factors => times(graph, factors, dtype),
        };
        for under in &under_in {
            root = graph.add(Node::Apply(Function::Div, vec![root, *under]), dtype);
        }
        let mut outer = Term {
            negative: term.negative,
            over: over_out,
            under: under_out,
        };
        if times_all != 1 {
            outer.over.push(constant(graph, times_all, dtype));
        }
        let inner = Kernel {
            root,
            output_rank: left.len() as u32,
            reduction: Some(Reduction::Sum),
            ..kernel.clone()
        };
        let mut inner = over(inner, kernel, &own);
        if reduced.is_empty() {
            inner = summed(inner);
        }
        // A term that is 0 beside a diagonal is computed on the diagonal alone, as a list would do.
        if inner.reduction.is_some()
            && let Some(product) = chosen_factor(&mut inner)
            && diagonal(&inner, product.condition).is_some()
        {
            inner.root = product.value;
            inner.restrict(product.condition);
        }
        Some(Part { inner, left, outer })
    }
}

impl Term {
    /// The sum of what comes before, and the term.
    fn added_to(&self, before: Option<NodeId>, graph: &mut Graph, dtype: DType) -> NodeId {
        let mut value = times(graph, &self.over, dtype);
        for under in &self.under {
            value = graph.add(Node::Apply(Function::Div, vec![value, *under]), dtype);
        }
        let node = match (before, self.negative) {
            (None, false) => return value,
            (None, true) => Node::Apply(Function::Neg, vec![value]),
            (Some(before), false) => Node::Apply(Function::Add, vec![before, value]),
            (Some(before), true) => Node::Apply(Function::Sub, vec![before, value]),
        };
        graph.add(node, dtype)
    }
}

/// The terms with the other sign.
fn negated(mut terms: Vec<Term>) -> Vec<Term> {
    terms.iter_mut().for_each(|term| term.negative ^= true);
    terms
}

/// A whole number of a type.
fn constant(graph: &mut Graph, number: u64, dtype: DType) -> NodeId {
    let value = match dtype.is_float() {
        true => Scalar::Float(number as f64),
        false => Scalar::Int(i64::try_from(number).unwrap_or(i64::MAX)),
    };
    graph.add(Node::Constant(value), dtype)
}
