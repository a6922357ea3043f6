//! Members of a sweep that become one kernel with several results: element-wise ones over the same indices, and the terms of what is gathered
//! over these.
//!
//! One loop then reads what they read and writes what somebody else wants of them; what only they read stays in registers. So does a single
//! one that takes the memory of what it reads: by a loop of this kind nothing is copied first. `groups` decides, [`merge`] makes the kernel.
//! Must not know data, blocks, or how a kernel is run.
//!
//! ```text
//! m1[i] = 0.9 * a0[i] + 0.1 * a1[i]; m2[i] = a0[i] - 0.5 * m1[i]; m3 = norm m2[i]   ->   a0, a1 -> m1, m2; m2 reduced beside for m3
//! ```

use super::mask;
use super::outline::{Origin, Outline, ascends};
use crate::{DType, Function, Graph, Kernel, Node, NodeId, Reduction};

/// Most operations of one loop.
pub const MOST_OPERATIONS: usize = 48;

/// Members that are one kernel.
pub struct Merged {
    /// Their numbers, ascending.
    pub members: Vec<usize>,
    /// Its root is one of the results.
    pub kernel: Kernel,
    /// Each of its operands as the member and the operand that it is first.
    pub operands: Vec<(usize, usize)>,
    /// Nodes that are wanted, ascending, with the member whose result, or term if it gathers, each is.
    pub results: Vec<(NodeId, usize)>,
    /// Nodes that are results, or read by an operation, with the member whose terms each is that gathers.
    pub side_reductions: Vec<(NodeId, usize)>,
}

/// Fewest points of which the terms of what is gathered are made by a loop with others: of so many, lanes are points.
const FEWEST_GATHERED: u64 = 1 << 12;

impl Merged {
    /// The nodes that are wanted, ascending.
    pub fn nodes(&self) -> Vec<NodeId> {
        self.results.iter().map(|result| result.0).collect()
    }

    /// The kernel without those that gather, if there are any and others are left.
    pub fn without_terms(&self, members: &[Outline<'_>]) -> Option<Merged> {
        let own = self.members.iter().copied();
        let left: Vec<usize> = own.filter(|member| !members[*member].gathers()).collect();
        (left.len() > 1 && left.len() < self.members.len()).then(|| merge(members, left))
    }
}

/// The facts that decide whether a member becomes one with others.
trait Joins {
    /// The type of what it makes, or gathers, of a point, if it is one of floats.
    fn value(&self) -> Option<DType>;
    /// Returns whether what it gathers does not depend on where points stand, and is of many.
    fn gathers_terms(&self) -> bool;
    /// Its cheap operations, if it has no others and is element-wise, or gathers what is.
    fn operations(&self) -> Option<usize>;
    /// Returns whether it reads a member only where it is itself.
    fn is_beside(&self, member: usize) -> bool;
}

impl Joins for Outline<'_> {
    fn value(&self) -> Option<DType> {
        let value = self.kernel.graph.dtype(self.kernel.root);
        matches!(value, DType::F32 | DType::F64).then_some(value)
    }

    fn gathers_terms(&self) -> bool {
        use Reduction as R;
        let lengths = self.ranges.iter().map(|range| range.1);
        self.gathers()
            && self.kernel.finish
            && matches!(
                self.kernel.reduction,
                Some(R::Sum | R::Mean | R::Max | R::Min | R::Norm | R::Norm1 | R::NormInf)
            )
            && lengths.fold(1, u64::saturating_mul) >= FEWEST_GATHERED
    }

    fn operations(&self) -> Option<usize> {
        let kernel = self.kernel;
        let graph = &kernel.graph;
        let value = self.value()?;
        let element_wise = kernel.reduction.is_none()
            && kernel.output_rank as usize == kernel.indices.len()
            && kernel.output == [value];
        if kernel.guard.is_some() || !element_wise && !self.gathers_terms() {
            return None;
        }
        let depends = graph.dependencies();
        // It differs between neighbours, or is an operation of another loop.
        let inner = (0..self.ranges.len()).rfind(|index| self.ranges[*index].1 > 1)?;
        if depends[kernel.root.0 as usize] >> inner & 1 == 0 {
            return None;
        }
        let mut operations = 0;
        for (id, node, _) in graph.iter().filter(|(id, ..)| depends[id.0 as usize] != 0) {
            match node {
                Node::Apply(function, _) if function.is_cheap() => operations += 1,
                // Positions of reads are no operations.
                Node::Apply(..) if graph.dtype(id) == DType::I64 => {}
                Node::Apply(..) | Node::Convert(_) => return None,
                _ => {}
            }
        }
        Some(operations)
    }

    fn is_beside(&self, member: usize) -> bool {
        let mut reads = self.kernel.graph.reads();
        reads.all(|(operand, positions)| {
            self.operands[operand as usize] != Origin::Made(member)
                || ascends(&self.kernel.graph, positions)
        })
    }
}

/// The members that become one, two or more each but for those that write over an operand, in the order of their last ones. Other members than
/// those that gather stay between them as they stood.
pub(super) fn groups(members: &[Outline<'_>], rows: usize) -> Vec<Vec<usize>> {
    let worth = |open: &Vec<usize>| match open[..] {
        [only] => members[only].over,
        _ => true,
    };
    candidates(members, rows)
        .into_iter()
        .filter(worth)
        .collect()
}

/// The members that may become one, single ones too.
pub(super) fn candidates(members: &[Outline<'_>], rows: usize) -> Vec<Vec<usize>> {
    let (mut all, mut open, mut held) = (vec![], vec![], 0);
    for (number, member) in members.iter().enumerate() {
        // Of what a mask chooses of a row, a member by itself computes nothing else.
        let operations = match mask::chosen(member, rows) {
            Some(_) => None,
            None => member.operations(),
        };
        let joins = |open: &[usize]| {
            let alike = open.first().is_none_or(|first| {
                let first = &members[*first];
                first.ranges == member.ranges
                    && first.cuts == member.cuts
                    && first.value() == member.value()
            });
            alike && open.iter().all(|other| member.is_beside(*other))
        };
        match operations {
            Some(more) if held + more <= MOST_OPERATIONS && joins(&open) => held += more,
            // Nobody reads it.
            _ if member.gathers() => continue,
            _ => {
                all.push(std::mem::take(&mut open));
                held = operations.unwrap_or(0);
            }
        }
        if operations.is_some() {
            open.push(number);
        }
    }
    all.push(open);
    all.retain(|open| !open.is_empty());
    all
}

/// The kernel that computes these members, which one of [`LoopKernel::rows`] names.
///
/// [`LoopKernel::rows`]: crate::LoopKernel::rows
pub fn merge(members: &[Outline<'_>], of: Vec<usize>) -> Merged {
    let mut graph = Graph::default();
    let (mut origins, mut operands, mut types) = (vec![], vec![], vec![]);
    // By member of these: its root.
    let mut roots: Vec<NodeId> = vec![];
    for number in &of {
        let member = &members[*number];
        let kernel = member.kernel;
        let moved = graph.append(&kernel.graph, |graph, _, mut node, dtype| {
            if let Node::Read { operand, .. } = &mut node {
                let at = *operand as usize;
                let origin = member.operands[at];
                let here = |made| of.iter().position(|other| Origin::Made(*other) == made);
                if let Some(other) = here(origin) {
                    return roots[other];
                }
                let known = origins.iter().position(|known| *known == origin);
                *operand = known.unwrap_or_else(|| {
                    origins.push(origin);
                    operands.push((*number, at));
                    types.push(kernel.operands[at].clone());
                    origins.len() - 1
                }) as u32;
            }
            graph.add(node, dtype)
        });
        roots.push(moved[kernel.root.0 as usize]);
    }
    let is_read = |number: usize| {
        let others = (0..members.len()).filter(|other| !of.contains(other));
        let mut operands = others.flat_map(|other| &members[other].operands);
        operands.any(|origin| *origin == Origin::Made(number))
    };
    let mut results: Vec<(NodeId, usize)> = vec![];
    let mut side_reductions: Vec<(NodeId, usize)> = vec![];
    let of_all = of.iter().copied().zip(roots);
    let (gathering, others): (Vec<_>, Vec<_>) =
        of_all.partition(|(number, _)| members[*number].gathers());
    for (number, mut root) in others.into_iter().chain(gathering) {
        let member = &members[number];
        if !member.gathers() && !member.kept && !is_read(number) {
            continue;
        }
        let is_result = |root: NodeId| results.iter().any(|result| result.0 == root);
        if member.gathers() && (is_result(root) || is_read_beside(&graph, root, &results)) {
            side_reductions.push((root, number));
            continue;
        }
        // A result is an operation of its own.
        while !matches!(graph.node(root), Node::Apply(..)) || results.iter().any(|r| r.0 == root) {
            let dtype = graph.dtype(root);
            root = graph.add(Node::Apply(Function::Stop, vec![root]), dtype);
        }
        results.push((root, number));
    }
    results.sort_unstable();
    let first = members[of[0]].kernel;
    Merged {
        kernel: Kernel {
            indices: first.indices.clone(),
            output_rank: first.indices.len() as u32,
            operands: types,
            root: results.last().map_or(NodeId(0), |result| result.0),
            graph,
            guard: None,
            reduction: None,
            finish: true,
            output: vec![first.graph.dtype(first.root)],
        },
        members: of,
        operands,
        results,
        side_reductions,
    }
}

/// Returns whether a node is a read of floats and an operation that results depend on takes it.
fn is_read_beside(graph: &Graph, read: NodeId, results: &[(NodeId, usize)]) -> bool {
    if !matches!(graph.node(read), Node::Read { .. }) || !graph.dtype(read).is_float() {
        return false;
    }
    let mut open: Vec<NodeId> = results.iter().map(|result| result.0).collect();
    let mut known = vec![];
    while let Some(node) = open.pop() {
        if known.contains(&node) {
            continue;
        }
        known.push(node);
        if let Node::Apply(_, arguments) = graph.node(node) {
            if arguments.contains(&read) {
                return true;
            }
            open.extend(arguments);
        }
    }
    false
}
