//! Values beside a list that are computed of few elements, computed before.
//!
//! A statement over a list goes through its places, and would compute a value of the column alone for each place of the column. Where columns
//! are much fewer than places, a statement of its own computes it once a column. Must not know how a statement goes over a list.
//!
//! ```text
//! y: f32[9] = [i: 9 | j: 9] sum A[i, j] * (x[j] / d[j])                           with 50 elements of A listed
//! y.beside: f32[9] = [j: 9] x[j] / d[j];   y: f32[9] = [i: 9 | j: 9] sum A[i, j] * y.beside[j]
//! ```

use crate::einsum::nodes::needed;
use crate::einsum::{Definition, Program, Rewriting, Rewritten, canonical};
use crate::rules::{element, may_fault_in, over};
use ein_plan::source::Listing;
use ein_plan::{DType, Function, Kernel, Node, NodeId, Source};
use std::collections::{BTreeMap, BTreeSet};

/// How many times as many places a list has as there are values that are computed before, at least.
const FEWER: u64 = 4;

/// Returns the program in which such values have statements of their own.
pub(super) fn before(program: &Program, listed: &BTreeMap<String, Listing>) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let parts = Beside::of(&statement, listed)?.parts();
        if parts.is_empty() {
            return None;
        }
        let kernel = statement.kernel;
        let mut operands = statement.operands.to_vec();
        let mut described = kernel.operands.clone();
        let mut whole = kernel.clone().rewritten(|graph, id, node, dtype| {
            let Some((_, indices)) = parts.iter().find(|(part, _)| *part == id) else {
                return graph.add(node, dtype);
            };
            let own = canonical::statement(alone(kernel, id, indices), statement.operands);
            operands.push(statement.add("beside", own));
            element((graph, &mut described), kernel, indices, dtype)
        });
        whole.operands = described;
        Some(canonical::statement(whole, &operands))
    })
}

/// A statement beside a list that it reads.
struct Beside<'a> {
    kernel: &'a Kernel,
    depends: Vec<u128>,
    /// The reads of the list.
    reads: Vec<NodeId>,
    /// The indices of the list, and how many places it has.
    along: u128,
    count: u64,
}

impl<'a> Beside<'a> {
    fn of(statement: &Rewritten<'a>, listed: &BTreeMap<String, Listing>) -> Option<Beside<'a>> {
        let kernel = statement.kernel;
        let reduced = kernel.reduction.is_some() && kernel.library().is_none();
        if !reduced || kernel.indices.len() >= 128 {
            return None;
        }
        let mut found: Option<Beside<'a>> = None;
        for (id, node, _) in kernel.graph.iter() {
            let Node::Read {
                operand, positions, ..
            } = node
            else {
                continue;
            };
            let tensor = statement.operand(*operand);
            let Definition::Source(source) = &tensor.definition else {
                continue;
            };
            let Some(list) = listed.get(&tensor.name) else {
                continue;
            };
            let index = |position: &NodeId| kernel.graph.as_index(*position);
            let own: Option<Vec<_>> = positions.iter().map(index).collect();
            let along = own?.iter().fold(0u128, |all, index| all | 1 << index.0);
            let count = match (source, tensor.shape.first()) {
                (Source::Fed, Some(rows)) => list.most(*rows),
                _ => list.count,
            };
            match &mut found {
                // Which of several lists is gone through is not known here.
                Some(found) if found.along != along => return None,
                Some(found) => found.reads.push(id),
                None => {
                    found = Some(Beside {
                        kernel,
                        depends: kernel.graph.dependencies(),
                        reads: vec![id],
                        along,
                        count,
                    });
                }
            }
        }
        found
    }

    /// The largest values that are computed before, with their indices.
    fn parts(&self) -> Vec<(NodeId, Vec<usize>)> {
        let kernel = self.kernel;
        let (mut parts, mut seen) = (vec![], BTreeSet::new());
        let mut open: Vec<NodeId> = kernel.guard.into_iter().chain([kernel.root]).collect();
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            if self.is_part(id) {
                let indices = 0..kernel.indices.len();
                let own = self.depends[id.0 as usize];
                parts.push((id, indices.filter(|index| own >> index & 1 == 1).collect()));
            } else {
                open.extend(kernel.graph.node(id).arguments());
            }
        }
        parts
    }

    fn is_part(&self, id: NodeId) -> bool {
        let (kernel, depends) = (self.kernel, self.depends[id.0 as usize]);
        let listed = depends & self.along;
        let is_stored = matches!(kernel.graph.dtype(id), DType::F32 | DType::F64);
        let is_computed = matches!(kernel.graph.node(id), Node::Apply(..));
        if !is_stored || !is_computed || listed == 0 || listed == self.along {
            return false;
        }
        let values = kernel.indices.iter().enumerate();
        let values = values.filter(|(index, _)| listed >> index & 1 == 1);
        let values = values.fold(1u64, |all, (_, index)| all.saturating_mul(index.extent));
        values.saturating_mul(FEWER) <= self.count
            && self.is_costly(id)
            && !may_fault_in(kernel, id)
    }

    /// True if a value takes more than to read an element and change it a little, and is none of the list.
    fn is_costly(&self, id: NodeId) -> bool {
        use Function::{Add, Mul, Neg, Sub};
        let needed = needed(&self.kernel.graph, &[id]);
        let (mut reads, mut computes) = (0, false);
        for (node, what, _) in self.kernel.graph.iter() {
            match what {
                _ if !needed[node.0 as usize] => {}
                Node::Read { .. } if self.reads.contains(&node) => return false,
                Node::Read { .. } => reads += 1,
                Node::Apply(Add | Mul | Neg | Sub, _) => {}
                Node::Apply(..) => computes = true,
                _ => {}
            }
        }
        reads > 1 || reads == 1 && computes
    }
}

/// A value as a statement over its indices.
fn alone(kernel: &Kernel, value: NodeId, indices: &[usize]) -> Kernel {
    let own = Kernel {
        root: value,
        guard: None,
        reduction: None,
        finish: true,
        output: vec![kernel.graph.dtype(value)],
        output_rank: indices.len() as u32,
        ..kernel.clone()
    };
    over(own.canonical(), kernel, indices)
}
