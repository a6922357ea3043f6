//! From chosen terms back to statements.
//!
//! A statement is made of each term that reduces, is stored rounded or is a tensor of the program; other terms are written
//! where they are read. A statement whose chosen term is the whole kernel comes out as it went in. Must not know how
//! terms are chosen.
//!
//! ```text
//! #7 = sum mul #1[0, 2] #5[2, 1],  #5 = add #2 #3   gives   C = [i: 4, j: 8 | k: 6] sum A[i, k] * (B[k, j] + D[k, j])
//! ```

use super::bound::Bound;
use super::kernel::{permute_operands, permute_output};
use super::memory_order::in_memory_order;
use super::price::{self, ComputeCost};
use super::term::{Head, Term, scalar};
use crate::einsum::Role;
use egg::Id;
use ein_plan::{
    DType, Function, Graph as Expressions, Index, IndexId, Kernel, Node, NodeId, Operand, Scalar,
};
use std::collections::{HashMap, HashSet};

/// Deepest expression that is written out.
const DEEPEST: usize = 600;
/// A product inside a sum is a tensor of its own if it has this many times fewer elements than the sum has points.
const OUTWEIGHS: u64 = 8;

/// A statement before its operands have numbers.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    /// Not yet in canonical form.
    pub kernel: Kernel,
    /// The classes that it reads.
    pub operands: Vec<Id>,
    /// The classes whose terms it depends on.
    pub seen: Vec<Id>,
    pub price: ComputeCost,
}

/// The statement of a class under a choice of terms; none if its expression is too deep (or a cycle).
pub(super) fn statement(
    bound: &Bound<'_>,
    class: Id,
    choice: &dyn Fn(Id) -> Term,
) -> Option<Statement> {
    let class = bound.graph.egraph.find(class);
    let term = choice(class);
    let build = |apart: bool| {
        let mut builder = Builder {
            bound,
            choice,
            graph: Expressions::default(),
            operands: vec![],
            seen: vec![class],
            apart: vec![],
            written: HashMap::new(),
            path: vec![class],
        };
        let kernel = match term.head {
            Head::Whole(number, _) => builder.whole(number, class, &term),
            _ => builder.open(class, &term, apart)?,
        };
        let kernel = Kernel {
            operands: builder
                .operands
                .iter()
                .map(|o| operand(bound, *o))
                .collect(),
            ..kernel
        };
        // Dimensions of a class, and so the indices of what reduces it, are in any order.
        let ordered = match term.head {
            Head::Whole(..) => None,
            _ => in_memory_order(&kernel),
        };
        let kernel = ordered.unwrap_or(kernel);
        Some(Statement {
            price: price::statement(&kernel),
            kernel,
            operands: builder.operands,
            seen: builder.seen,
        })
    };
    let together = build(false)?;
    let whole = matches!(term.head, Head::Whole(..));
    // What a matrix product can take in is best left there.
    if whole || term.reduction.is_none() || price::is_priced_as_product(&together.kernel) {
        return Some(together);
    }
    build(true)
}

/// Returns the shape and columns of a class, as a kernel's operand has them.
pub(super) fn operand(bound: &Bound<'_>, class: Id) -> Operand {
    Operand {
        columns: vec![bound.graph.data(class).dtype],
        shape: bound.shape(class),
    }
}

/// The statement of a tensor that equals another one: a copy, in its own order of dimensions.
pub(super) fn copy(bound: &Bound<'_>, tensor: usize, class: Id, order: &[u32]) -> Statement {
    let own = &bound.program.tensors[tensor];
    let mut graph = Expressions::default();
    let at: Vec<NodeId> = (0..order.len() as u32)
        .map(|i| graph.add(Node::Index(IndexId(i)), DType::I64))
        .collect();
    // The class dimension `order[d]` is this tensor's `d`.
    let place = |dimension: &u32| order.iter().position(|o| o == dimension).unwrap_or(0);
    let positions = bound.order(class).iter().map(|c| at[place(c)]).collect();
    let read = Node::Read {
        operand: 0,
        column: 0,
        positions,
        otherwise: None,
    };
    let root = graph.add(read, own.dtype.compute());
    let mut names = Names::default();
    let kernel = Kernel {
        indices: order
            .iter()
            .map(|d| Index {
                name: names.unique(bound.names.get(&(bound.graph.egraph.find(class), *d))),
                extent: bound.graph.data(class).shape[*d as usize],
            })
            .collect(),
        output_rank: order.len() as u32,
        operands: vec![operand(bound, class)],
        graph,
        root,
        guard: None,
        reduction: None,
        finish: true,
        output: vec![own.dtype],
    };
    Statement {
        price: price::statement(&kernel),
        kernel,
        operands: vec![class],
        seen: vec![],
    }
}

/// Gives out names, each once.
#[derive(Default)]
struct Names {
    given: HashSet<String>,
}

impl Names {
    fn unique(&mut self, wanted: Option<&String>) -> String {
        let letters = || ('i'..='z').map(String::from);
        let wanted = wanted.cloned();
        let base = wanted.or_else(|| letters().find(|l| !self.given.contains(l)));
        let base = base.unwrap_or_else(|| "i".to_string());
        let mut name = base.clone();
        let mut number = 2;
        while !self.given.insert(name.clone()) {
            name = format!("{base}{number}");
            number += 1;
        }
        name
    }
}

struct Builder<'a> {
    bound: &'a Bound<'a>,
    choice: &'a dyn Fn(Id) -> Term,
    graph: Expressions,
    operands: Vec<Id>,
    seen: Vec<Id>,
    /// Classes that are read although they could be written out.
    apart: Vec<Id>,
    /// The nodes that are written out already, by class and indices.
    written: HashMap<(Id, Vec<IndexId>), NodeId>,
    /// The classes that are being written out.
    path: Vec<Id>,
}

impl Builder<'_> {
    /// The kernel of a whole statement, its dimensions and its operands' as they are written.
    fn whole(&mut self, number: u32, class: Id, term: &Term) -> Kernel {
        let graph = self.bound.graph;
        let mut kernel = graph.egraph.analysis.kernels[number as usize].clone();
        let names = self.bound.kernel_names.get(&(number, class));
        let mut given = Names::default();
        for (at, index) in kernel.indices.iter_mut().enumerate() {
            index.name = given.unique(names.and_then(|n| n.get(at)));
        }
        let children: Vec<Id> = term
            .children
            .iter()
            .map(|c| graph.egraph.find(*c))
            .collect();
        let back: Vec<Vec<u32>> = children
            .iter()
            .map(|c| inverse(&self.bound.order(*c)))
            .collect();
        kernel = permute_operands(&kernel, &back);
        self.operands = children;
        permute_output(&kernel, &inverse(&self.bound.order(class)))
    }

    /// The kernel of any other term; `apart` lets small products inside a sum be tensors.
    fn open(&mut self, class: Id, term: &Term, apart: bool) -> Option<Kernel> {
        let rank = term.rank as usize;
        let order = self.bound.order(class);
        let back = inverse(&order);
        let at: Vec<IndexId> = (0..term.extents.len())
            .map(|i| IndexId(back.get(i).copied().unwrap_or(i as u32)))
            .collect();
        let points: u64 = term.extents.iter().fold(1, |n, e| n.saturating_mul(*e));
        if apart {
            self.set_apart(term, points);
        }
        let root = self.term(class, term, &at, 0)?;
        let mut names = Names::default();
        let mut indices = vec![];
        for dimension in &order {
            indices.push(Index {
                name: names.unique(self.bound.names.get(&(class, *dimension))),
                extent: term.extents[*dimension as usize],
            });
        }
        for index in rank..term.extents.len() {
            let hint = term
                .reads
                .iter()
                .zip(&term.children)
                .find_map(|(read, child)| {
                    let dimension = read.indices.iter().position(|i| *i as usize == index)?;
                    let child = self.bound.graph.egraph.find(*child);
                    self.bound.names.get(&(child, dimension as u32))
                });
            indices.push(Index {
                name: names.unique(hint),
                extent: term.extents[index],
            });
        }
        Some(Kernel {
            indices,
            output_rank: term.rank,
            operands: vec![],
            graph: std::mem::take(&mut self.graph),
            root,
            guard: None,
            reduction: term.reduction,
            finish: true,
            output: vec![self.bound.graph.data(class).dtype],
        })
    }

    /// Products inside a sum that are much smaller than it become tensors.
    fn set_apart(&mut self, term: &Term, points: u64) {
        if term.reduction.is_none() || term.children.len() < 2 {
            return;
        }
        for child in &term.children {
            let child = self.bound.graph.egraph.find(*child);
            let inner = (self.choice)(child);
            let product =
                matches!((inner.head, term.head), (Head::Fold(f), Head::Fold(g)) if f == g);
            let size = inner
                .extents
                .iter()
                .fold(OUTWEIGHS, |n, e| n.saturating_mul(*e));
            let wide = inner.reads.iter().filter(|r| !r.indices.is_empty()).count() > 1;
            if product && wide && inner.reduction.is_none() && size <= points {
                self.apart.push(child);
                self.seen.push(child);
            }
        }
    }

    fn argument(&mut self, class: Id, at: &[IndexId], depth: usize) -> Option<NodeId> {
        let class = self.bound.graph.egraph.find(class);
        let term = (self.choice)(class);
        if !self.seen.contains(&class) {
            self.seen.push(class);
        }
        if self.bound.is_read(class, &term) || self.apart.contains(&class) {
            let positions: Vec<NodeId> = self
                .bound
                .order(class)
                .iter()
                .map(|d| self.index(at[*d as usize]))
                .collect();
            return Some(self.read(class, positions, None));
        }
        if let Some(known) = self.written.get(&(class, at.to_vec())) {
            return Some(*known);
        }
        // A term that needs itself has no value.
        if depth >= DEEPEST || self.path.contains(&class) {
            return None;
        }
        self.path.push(class);
        let value = self.term(class, &term, at, depth + 1);
        self.path.pop();
        self.written.insert((class, at.to_vec()), value?);
        value
    }

    fn index(&mut self, index: IndexId) -> NodeId {
        self.graph.add(Node::Index(index), DType::I64)
    }

    fn read(&mut self, class: Id, positions: Vec<NodeId>, otherwise: Option<NodeId>) -> NodeId {
        let known = self.operands.iter().position(|o| *o == class);
        let operand = known.unwrap_or_else(|| {
            self.operands.push(class);
            self.operands.len() - 1
        }) as u32;
        let read = Node::Read {
            operand,
            column: 0,
            positions,
            otherwise,
        };
        self.graph.add(read, self.bound.graph.compute(class))
    }

    /// The value of a term at indices, without its reduction.
    fn term(&mut self, class: Id, term: &Term, at: &[IndexId], depth: usize) -> Option<NodeId> {
        match term.head {
            Head::Whole(number, _) => return self.embed(number, term, at),
            Head::Constant(bits, dtype) => {
                return Some(self.graph.add(Node::Constant(scalar(bits)), dtype));
            }
            Head::Source(_) => {
                let order = self.bound.order(class);
                let positions = order.iter().map(|d| self.index(at[*d as usize])).collect();
                return Some(self.read(class, positions, None));
            }
            _ => {}
        }
        let mut arguments: Vec<(bool, NodeId)> = vec![];
        for (read, child) in term.reads.iter().zip(&term.children) {
            let at: Vec<IndexId> = read.indices.iter().map(|i| at[*i as usize]).collect();
            arguments.push((read.turned, self.argument(*child, &at, depth)?));
        }
        let first = arguments.first()?.1;
        let dtype = self.graph.dtype(first);
        Some(match term.head {
            Head::Fold(function) => self.fold(function, dtype, &arguments),
            Head::Apply(function) => {
                let arguments: Vec<NodeId> = arguments.iter().map(|a| a.1).collect();
                let types: Vec<DType> = arguments.iter().map(|a| self.graph.dtype(*a)).collect();
                let result = function.result(&types).ok()?;
                self.graph.add(Node::Apply(function, arguments), result)
            }
            Head::Convert(to) => self.graph.add(Node::Convert(first), to),
            _ => first,
        })
    }

    fn fold(&mut self, function: Function, dtype: DType, arguments: &[(bool, NodeId)]) -> NodeId {
        let back = match function {
            Function::Add => Function::Sub,
            _ => Function::Div,
        };
        let mut all = arguments.to_vec();
        all.sort_by_key(|(turned, _)| *turned);
        let (turned, mut value) = all[0];
        if turned {
            value = match function {
                Function::Add => self
                    .graph
                    .add(Node::Apply(Function::Neg, vec![value]), dtype),
                _ => {
                    let one = self.graph.add(Node::Constant(Scalar::Float(1.0)), dtype);
                    self.graph
                        .add(Node::Apply(Function::Div, vec![one, value]), dtype)
                }
            };
        }
        for (turned, next) in &all[1..] {
            let function = if *turned { back } else { function };
            value = self
                .graph
                .add(Node::Apply(function, vec![value, *next]), dtype);
        }
        value
    }

    /// A kernel without reduction, at indices.
    fn embed(&mut self, number: u32, term: &Term, at: &[IndexId]) -> Option<NodeId> {
        let graph = self.bound.graph;
        let kernel = &graph.egraph.analysis.kernels[number as usize];
        let mut moved: Vec<NodeId> = vec![];
        for (_, node, dtype) in kernel.graph.iter() {
            let node = match node {
                Node::Index(index) => Node::Index(*at.get(index.0 as usize)?),
                Node::Read {
                    operand,
                    positions,
                    otherwise,
                    ..
                } => {
                    let class = graph.egraph.find(term.children[*operand as usize]);
                    let order = self.bound.order(class);
                    let place = |d: &u32| moved[positions[*d as usize].0 as usize];
                    let positions = order.iter().map(place).collect();
                    let otherwise = otherwise.map(|o| moved[o.0 as usize]);
                    moved.push(self.read(class, positions, otherwise));
                    continue;
                }
                node => node.map(|a| moved[a.0 as usize]),
            };
            moved.push(self.graph.add(node, dtype));
        }
        Some(moved[kernel.root.0 as usize])
    }
}

/// The inverse of a permutation.
fn inverse(order: &[u32]) -> Vec<u32> {
    let mut inverse = vec![0; order.len()];
    for (at, to) in (0u32..).zip(order) {
        inverse[*to as usize] = at;
    }
    inverse
}

/// Returns the name of a statement that has no tensor of the program: after the one that needs it.
pub(super) fn hidden_name(base: &str, taken: &mut HashSet<String>) -> String {
    let mut number = 1;
    loop {
        let name = format!("{base}.{number}");
        if taken.insert(name.clone()) {
            return name;
        }
        number += 1;
    }
}

/// The role of a statement that the rules made.
pub(super) const NEW: Role = Role::Hidden;
