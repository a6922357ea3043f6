//! Values that repeat along an index, computed once: a function of a few indices becomes a table.
//!
//! A statement over many indices may hold a function of some of them, such as the angles of a rotary embedding, which are the same in every row of
//! every batch. Its value is needed again and again, so where that is a good part of the statement's work it becomes a tensor of its own, of which the statement
//! reads an element. Tables are of what indices say, or no larger than a tensor that the statement reads or gives, so that a table is never more to move than that. What
//! stays the same along the innermost loops is left to the loops, which compute it once a row. Of products of matrices only what
//! indices say becomes a table; the rest is left to the rules. Must not know
//! placements.
//!
//! ```text
//! y: f32[64, 256] = [n: 64, t: 256] x[n, t] * exp(-0.5 * f32(t))
//! y.table: f32[256] = [t: 256] exp(-0.5 * f32(t));  y: f32[64, 256] = [n: 64, t: 256] x[n, t] * y.table[t]
//! ```

use crate::einsum::{Definition, Program, Rewriting, TensorId, canonical};
use crate::rules::{element, may_fault, over};
use ein_plan::work::flops_per_point;
use ein_plan::{DType, Function, Graph, Kernel, Node, NodeId};

/// The least number of times that each value of a table is needed.
const LEAST_USES: u128 = 8;

/// The least number of points of a statement with tables.
const LEAST_POINTS: u128 = 4096;

/// The least operations that a value of a table takes, where they are a small part of the statement's.
const LEAST_FLOPS: u64 = 8;

/// A table that saves one operation of so many is worth it, however cheap its values are.
const WORTH: u128 = 16;

/// Points of an innermost loop from which on values that stay the same along it are cheap.
const LONG_LOOP: u128 = 32;

/// Returns the program in which costly values that repeat are read from tables.
pub fn once(program: &Program) -> Program {
    let mut rewriting = Rewriting::of(program);
    for (at, tensor) in (0..).zip(&program.tensors) {
        let mut tensor = rewriting.copy(tensor);
        if let Definition::Statement { kernel, operands } = &mut tensor.definition {
            let name = format!("{}.table", tensor.name);
            let origin = tensor.origin;
            let tables = Repeats::of(kernel).map_or(vec![], |repeats| repeats.tables());
            if !tables.is_empty() {
                let made = tables.into_iter().map(|(id, kept, table)| {
                    let table = canonical::statement(table, operands);
                    (id, kept, rewriting.add_hidden(&name, table, origin))
                });
                let made: Vec<(NodeId, Vec<usize>, TensorId)> = made.collect();
                (*kernel, *operands) = reading(kernel, operands, &made);
            }
        }
        rewriting.place(TensorId(at), tensor);
    }
    rewriting.finish()
}

/// A statement whose values may repeat.
struct Repeats<'a> {
    kernel: &'a Kernel,
    /// By node: the indices that it depends on.
    depends: Vec<u128>,
    points: u128,
}

impl Repeats<'_> {
    fn of(kernel: &Kernel) -> Option<Repeats<'_>> {
        // The bits of a number tell so many indices apart.
        let few = kernel.indices.len() < 128;
        let plain = kernel.library().is_none() && kernel.passed_over().is_empty();
        let repeats = Repeats {
            kernel,
            depends: kernel.graph.dependencies(),
            points: size(kernel, u128::MAX),
        };
        (few && plain && repeats.points >= LEAST_POINTS).then_some(repeats)
    }

    /// The largest parts that become tables: node, indices, and the table's kernel.
    fn tables(&self) -> Vec<(NodeId, Vec<usize>, Kernel)> {
        let graph = &self.kernel.graph;
        let mut tables = vec![];
        let mut seen = vec![false; graph.len()];
        let mut open: Vec<NodeId> = self.kernel.guard.into_iter().collect();
        open.push(self.kernel.root);
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut seen[id.0 as usize], true) {
                continue;
            }
            match self.table(id) {
                Some((kept, table)) => tables.push((id, kept, table)),
                None => open.extend(graph.node(id).arguments()),
            }
        }
        tables
    }

    /// The table of a node, with the indices that it is over, if it pays to make it.
    fn table(&self, id: NodeId) -> Option<(Vec<usize>, Kernel)> {
        let kernel = self.kernel;
        let own = self.depends[id.0 as usize];
        let dtype = kernel.graph.dtype(id);
        let float = matches!(dtype, DType::F32 | DType::F64);
        let applied = matches!(kernel.graph.node(id), Node::Apply(..));
        let repeats = size(kernel, own).saturating_mul(LEAST_USES) <= self.points;
        if !(float && applied && own != 0 && repeats) || self.inner_loop(own) >= LONG_LOOP {
            return None;
        }
        let kept: Vec<usize> = (0..kernel.indices.len())
            .filter(|index| own >> index & 1 == 1)
            .collect();
        let table = Kernel {
            root: id,
            output: vec![dtype],
            output_rank: kept.len() as u32,
            guard: None,
            reduction: None,
            ..kernel.clone()
        };
        let table = over(table.canonical(), kernel, &kept);
        let functions = table.graph.iter().map(|(_, node, dtype)| match node {
            Node::Apply(function, _) if dtype.is_float() => Function::flops(*function),
            _ => 0,
        });
        let flops = functions.sum::<u64>();
        let costly = flops >= LEAST_FLOPS || self.saved(own, flops) >= self.work() / WORTH;
        (costly && self.is_no_larger(&table, &kept) && !may_fault(&table)).then_some((kept, table))
    }

    /// Operations that the loops do for a node of these indices, of which each value takes so many, beyond once for each value.
    fn saved(&self, own: u128, flops: u64) -> u128 {
        let depth = 128 - own.leading_zeros();
        let around = u128::MAX.checked_shr(128 - depth).unwrap_or(0);
        let again = size(self.kernel, around) - size(self.kernel, own);
        again.saturating_mul(flops.into())
    }

    /// Operations of the statement.
    fn work(&self) -> u128 {
        self.points
            .saturating_mul(flops_per_point(self.kernel).into())
    }

    /// How often an innermost loop goes through values that stay the same along it.
    fn inner_loop(&self, own: u128) -> u128 {
        let indices = self.kernel.indices.iter().enumerate().rev();
        indices
            .take_while(|(at, _)| own >> at & 1 == 0)
            .map(|(_, index)| u128::from(index.extent))
            .product()
    }

    /// Returns whether a table over these indices is no larger than a tensor that the statement reads or gives: all of them are in the positions
    /// of a read, or are the result's. A table that only indices decide is never moved.
    fn is_no_larger(&self, table: &Kernel, kept: &[usize]) -> bool {
        let reads = table.graph.reads().next().is_some();
        if !reads || self.kernel.is_product() {
            return !reads;
        }
        if kept
            .iter()
            .all(|index| *index < self.kernel.output_rank as usize)
        {
            return true;
        }
        let has = |positions: &[NodeId]| {
            let own = |p: &NodeId| self.depends[p.0 as usize];
            let all = positions.iter().fold(0u128, |set, p| set | own(p));
            kept.iter().all(|index| all >> index & 1 == 1)
        };
        let mut reads = self.kernel.graph.reads();
        reads.any(|(_, positions)| has(positions))
    }
}

/// How many values some indices of a kernel have together.
fn size(kernel: &Kernel, indices: u128) -> u128 {
    let own = kernel.indices.iter().enumerate();
    own.filter(|(at, _)| indices >> at & 1 == 1)
        .map(|(_, index)| u128::from(index.extent))
        .fold(1, u128::saturating_mul)
}

/// The statement that reads nodes from tables.
fn reading(
    kernel: &Kernel,
    operands: &[TensorId],
    tables: &[(NodeId, Vec<usize>, TensorId)],
) -> (Kernel, Vec<TensorId>) {
    let mut operands = operands.to_vec();
    let mut outer = kernel.clone();
    let mut graph = Graph::default();
    let moved = graph.append(&kernel.graph, |graph, id, node, dtype| {
        let Some((_, kept, tensor)) = tables.iter().find(|(table, ..)| *table == id) else {
            return graph.add(node, dtype);
        };
        operands.push(*tensor);
        element((graph, &mut outer.operands), kernel, kept, dtype)
    });
    outer.graph = graph;
    outer.root = moved[kernel.root.0 as usize];
    outer.guard = kernel.guard.map(|guard| moved[guard.0 as usize]);
    canonical::statement(outer, &operands)
}
