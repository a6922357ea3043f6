//! Look-ups at the owner: reads at positions that data say, as reductions over the dimension that they look at.
//!
//! A read at such a position needs all of its operand at every site. As a reduction over the dimension, with a guard that
//! names the position, it can be cut along that dimension: each site looks at the rows that it has, and the rows that are
//! found travel instead of the table. The kernel's loops solve the guard, so the work is that of the read. The largest of
//! one value is that value, so no bit changes; `within` stops the run where the read would. A read that a condition or an `else` leaves out
//! looks up the first row there, and the statement takes the other value. Must not know sites or costs: the search lays the program out beside
//! the others.
//!
//! ```text
//! z = [n: 64] x[tok[n]] + 1.0   =>   x.rows = [n: 64 | d0: 900] max x[d0] if d0 == within(tok[n], 900);  z = [n: 64] x.rows[n] + 1.0
//! ```

mod everywhere;

use super::{Alternative, RuleInfo, indices_of};
use crate::einsum::{Definition, Program, Rewriting, Tensor, TensorId, canonical};
use ein_plan::{
    DType, Function, Graph, Index, IndexId, Kernel, Node, NodeId, Operand, Reduction, Scalar,
};
use everywhere::{Candidate, conditions, everywhere};

const NAME: &str = "lookup-at-owner";

/// The rule of this family.
pub(super) fn rows() -> Vec<RuleInfo> {
    vec![RuleInfo {
        name: NAME,
        family: "lookup",
        paper: "classical",
        left: "z[n] = x[tok[n]]",
        right: "z[n] = max[d] x[d] if d == within(tok[n], D)",
        conditions: &[
            "of a read that takes place under a condition, the condition is known at every point",
            "fewer elements are read than x has",
            "more than one site",
        ],
        note: "Cut along d, each site looks at the rows that it has.",
    }]
}

/// The program with its reads of these tables at the owners of their rows, if it has any.
pub fn expand(
    program: &Program,
    disabled: &[String],
    is_wanted: &dyn Fn(TensorId) -> bool,
) -> Option<Alternative> {
    let mut known = vec![];
    Alternative::by_rule(program, (NAME, disabled), |rewriting, old| {
        let known = &mut known;
        LookingUp { rewriting, known }.tensor(program, old, is_wanted)
    })
}

/// The tensors that statements read at positions that data say, where that could take place at the owners.
pub fn tables(program: &Program) -> Vec<TensorId> {
    let mut tables = vec![];
    for tensor in &program.tensors {
        let Definition::Statement { kernel, operands } = &tensor.definition else {
            continue;
        };
        for candidate in candidates(program, kernel, operands) {
            let Node::Read { operand, .. } = kernel.graph.node(candidate.read) else {
                continue;
            };
            let table = operands[*operand as usize];
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
    }
    tables
}

/// The reads of a kernel that the rule is for.
fn candidates(program: &Program, kernel: &Kernel, operands: &[TensorId]) -> Vec<Candidate> {
    if kernel.library().is_some() {
        return vec![];
    }
    let mut known = conditions(kernel);
    let mut found = vec![];
    for (read, node, _) in kernel.graph.iter() {
        let Node::Read {
            operand, positions, ..
        } = node
        else {
            continue;
        };
        let free = match &program.tensor(operands[*operand as usize]).definition {
            Definition::Source(source) => source.is_free(),
            _ => false,
        };
        let looks_up = positions
            .iter()
            .any(|p| kernel.graph.as_quotient(*p).is_none());
        let Some(conditions) = known[read.0 as usize].take().filter(|_| looks_up && !free) else {
            continue;
        };
        let conditional = conditions.iter().map(|(condition, _)| *condition);
        let needed: Vec<NodeId> = positions.iter().copied().chain(conditional).collect();
        if is_few(kernel, *operand, &needed) {
            found.push(Candidate { read, conditions });
        }
    }
    found
}

/// True if a read whose positions and conditions are these nodes takes fewer elements than the operand has.
fn is_few(kernel: &Kernel, operand: u32, needed: &[NodeId]) -> bool {
    let indices = indices_of(&kernel.graph, needed);
    let count = |n: u64, extent: &u64| n.saturating_mul(*extent);
    let extents = indices.iter().map(|i| &kernel.indices[i.0 as usize].extent);
    let shape = &kernel.operands[operand as usize].shape;
    extents.fold(1, count) < shape.iter().fold(1, count)
}

struct LookingUp<'r> {
    rewriting: &'r mut Rewriting,
    /// Look-ups that are there already.
    known: &'r mut Vec<(Kernel, Vec<TensorId>, TensorId)>,
}

impl LookingUp<'_> {
    /// The tensor with its wanted reads at the owners, if it has any.
    fn tensor(
        &mut self,
        program: &Program,
        old: &Tensor,
        is_wanted: &dyn Fn(TensorId) -> bool,
    ) -> Option<Tensor> {
        let Definition::Statement { kernel, operands } = &old.definition else {
            return None;
        };
        let mut wanted = candidates(program, kernel, operands);
        wanted.retain(|candidate| match kernel.graph.node(candidate.read) {
            Node::Read { operand, .. } => is_wanted(operands[*operand as usize]),
            _ => false,
        });
        if wanted.is_empty() {
            return None;
        }
        let (everywhere, reads) = everywhere(kernel, &wanted);
        let mut tensor = self.rewriting.copy(old);
        if let Definition::Statement { kernel, operands } = &mut tensor.definition {
            *kernel = everywhere;
            (*kernel, *operands) = match whole(kernel, &reads, &tensor.shape, tensor.dtype) {
                Some((operand, positions)) => {
                    let all: Vec<IndexId> = (0..kernel.output_rank).map(IndexId).collect();
                    let table = self.rewriting.result().tensor(operands[operand as usize]);
                    let shape = (table.shape.clone(), table.dtype);
                    let kernel = looking(kernel, (operand, &positions), &all, shape);
                    canonical::statement(kernel, operands)
                }
                None => self.statement(kernel, operands, &reads, old),
            };
        }
        Some(tensor)
    }

    /// Gives a statement look-ups of their own in place of these reads.
    fn statement(
        &mut self,
        kernel: &Kernel,
        operands: &[TensorId],
        reads: &[NodeId],
        of: &Tensor,
    ) -> (Kernel, Vec<TensorId>) {
        let mut operands = operands.to_vec();
        let mut described = kernel.operands.clone();
        let mut rewritten = kernel.clone().rewritten(|graph, id, mut node, dtype| {
            if let Node::Read {
                operand, positions, ..
            } = &mut node
                && reads.contains(&id)
            {
                // A position may itself be looked up: it is as the new graph has it.
                let so_far = Kernel {
                    operands: described.clone(),
                    graph: graph.clone(),
                    ..kernel.clone()
                };
                let indices = indices_of(&so_far.graph, positions);
                let found = self.lookup(&so_far, &operands, (*operand, positions), &indices, of);
                let tensor = self.rewriting.result().tensor(found);
                described.push(Operand {
                    columns: vec![tensor.dtype],
                    shape: tensor.shape.clone(),
                });
                *operand = operands.len() as u32;
                operands.push(found);
                let at = indices.iter();
                let at = at.map(|index| graph.add(Node::Index(*index), DType::I64));
                *positions = at.collect();
            }
            graph.add(node, dtype)
        });
        rewritten.operands = described;
        canonical::statement(rewritten, &operands)
    }

    /// The tensor of what a read takes: its dimensions are the indices that the positions depend on. The positions are
    /// nodes of the kernel.
    fn lookup(
        &mut self,
        kernel: &Kernel,
        operands: &[TensorId],
        (operand, positions): (u32, &[NodeId]),
        indices: &[IndexId],
        of: &Tensor,
    ) -> TensorId {
        let table = self.rewriting.result().tensor(operands[operand as usize]);
        let (name, shape) = (
            format!("{}.rows", table.name),
            (table.shape.clone(), table.dtype),
        );
        let looking = looking(kernel, (operand, positions), indices, shape);
        let (looking, operands) = canonical::statement(looking, operands);
        let same = |(other, others, _): &&(Kernel, Vec<TensorId>, TensorId)| {
            *other == looking && *others == operands
        };
        if let Some((.., known)) = self.known.iter().find(same) {
            return *known;
        }
        let statement = (looking.clone(), operands.clone());
        let found = self.rewriting.add_hidden(&name, statement, of.origin);
        self.known.push((looking, operands, found));
        found
    }
}

/// The kernel that gives what a read takes, at the values of some indices that its positions depend on: of a table of this
/// shape and type. The positions are nodes of `kernel`.
fn looking(
    kernel: &Kernel,
    (operand, positions): (u32, &[NodeId]),
    indices: &[IndexId],
    (shape, dtype): (Vec<u64>, DType),
) -> Kernel {
    let rank = indices.len() as u32;
    let mut looking = Kernel {
        indices: (indices.iter())
            .map(|index| kernel.indices[index.0 as usize].clone())
            .collect(),
        output_rank: rank,
        operands: kernel.operands.clone(),
        graph: Graph::default(),
        root: NodeId(0),
        guard: None,
        reduction: Some(match dtype {
            DType::Bool => Reduction::Any,
            _ => Reduction::Max,
        }),
        finish: true,
        output: vec![dtype],
    };
    let mut moved: Vec<NodeId> = vec![];
    let last = positions
        .iter()
        .map(|p| p.0 as usize + 1)
        .max()
        .unwrap_or(0);
    for (_, node, own) in kernel.graph.iter().take(last) {
        let node = match node {
            // An index that no position depends on is in no node that is kept.
            Node::Index(index) => {
                let number = indices.iter().position(|other| other == index);
                Node::Index(IndexId(number.unwrap_or(0) as u32))
            }
            node => node.map(|argument| moved[argument.0 as usize]),
        };
        moved.push(looking.graph.add(node, own));
    }
    let mut at = vec![];
    for (position, extent) in positions.iter().zip(&shape) {
        let place = moved[position.0 as usize];
        if kernel.graph.as_quotient(*position).is_some() {
            at.push(place);
            continue;
        }
        let number = looking.indices.len() as u32;
        looking.indices.push(Index {
            name: free_name(&looking.indices, number - rank),
            extent: *extent,
        });
        let graph = &mut looking.graph;
        let index = graph.add(Node::Index(IndexId(number)), DType::I64);
        let count = graph.add(Node::Constant(Scalar::Int(*extent as i64)), DType::I64);
        let checked = Node::Apply(Function::Within, vec![place, count]);
        let checked = graph.add(checked, DType::I64);
        let here = Node::Apply(Function::Eq, vec![index, checked]);
        let here = graph.add(here, DType::Bool);
        looking.restrict(here);
        at.push(index);
    }
    let read = Node::Read {
        operand,
        column: 0,
        positions: at,
        otherwise: None,
    };
    looking.root = looking.graph.add(read, dtype.compute());
    looking
}

/// The only read of a statement that is nothing else.
fn whole(
    kernel: &Kernel,
    reads: &[NodeId],
    shape: &[u64],
    dtype: DType,
) -> Option<(u32, Vec<NodeId>)> {
    let Node::Read {
        operand, positions, ..
    } = kernel.graph.node(kernel.root)
    else {
        return None;
    };
    let all = indices_of(&kernel.graph, positions).len() == shape.len();
    let same = kernel.operands[*operand as usize].columns == [dtype];
    let is_whole = kernel.reduction.is_none() && kernel.guard.is_none() && all && same;
    (is_whole && reads == [kernel.root]).then(|| (*operand, positions.clone()))
}

/// A name for an index beside these.
fn free_name(indices: &[Index], number: u32) -> String {
    let names = (number..).map(|number| format!("d{number}"));
    let taken = |name: &String| indices.iter().any(|index| index.name == *name);
    let mut names = names.skip_while(taken);
    names.next().unwrap_or_default()
}
