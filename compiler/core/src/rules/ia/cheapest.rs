//! The cheapest placement of a small program by the e-graph's own extraction: a second opinion on costs.
//!
//! Every content of the program is put at every allowed placement of the mesh, rows connect them, and egg extracts the term with the
//! fewest transfers, then the least arithmetic over all sites, then the fewest operators. A tree's cost: what is used twice is paid
//! twice. Must not know how layouts are searched otherwise.
//!
//! ```text
//! 240  Σᴸ(⟨0,2⟩, sum)(SHUF(⟨0⟩)(⋈ᴸ(⟨0,1⟩, ⟨1,2⟩, …)(At(⟨1⟩, A), At(⟨0⟩, B))))
//! ```

use super::content::Content;
use super::function::{ArrayFunction, Kernels};
use super::graph::{Graph, Kind, Tree, print};
use super::language::{Algebra, Operator, Term};
use super::local::commutative;
use super::placement::{Placement, Role, transfer};
use super::rows::{Bounds, Ended, saturate, ways};
use egg::{CostFunction, Extractor, Id};
use ein_plan::{Mesh, Reduction};

/// The families that connect contents at placements.
const USED: [&str; 2] = ["table 3.1", "matrix multiplication"];

/// The inputs and limits of a search for the cheapest term.
pub struct Search<'a> {
    /// Most nodes of the e-graph.
    pub node_limit: usize,
    /// Rows that are not used, by name.
    pub disabled: &'a [String],
    /// True if the time is over.
    pub deadline: &'a dyn Fn() -> bool,
    /// True if a relation may be at a placement: where balance is asked for.
    pub allowed: &'a dyn Fn(&Content, &Placement) -> bool,
}

/// The cheapest term that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Cheapest {
    /// Floats that are transferred, by the paper's prices.
    pub transfers: u128,
    /// The term, printed.
    pub term: String,
    /// Where its result is.
    pub placement: Placement,
    /// True if everything was looked at.
    pub ended: Ended,
}

/// The cheapest way to have a content, a class of the graph, at any placement; `None` if there is none.
pub fn cheapest(graph: &mut Graph, content: Id, search: &Search<'_>) -> Option<Cheapest> {
    let mut contents = vec![];
    reachable(graph, content, &mut contents);
    for id in contents {
        let Kind::Logical(kind) = graph[id].data.clone() else {
            continue;
        };
        let mesh = graph.analysis.mesh.clone();
        let sums = sums(graph, id);
        for at in placements(&kind, &mesh, &sums) {
            if (search.allowed)(&kind, &at) {
                Tree::at(at, Tree::Class(id)).add(graph);
            }
        }
    }
    let bounds = Bounds {
        nodes: search.node_limit,
        deadline: search.deadline,
    };
    let ways = ways(&USED, true, search.disabled);
    let ended = saturate(graph, &ways, &bounds, &mut |_| false);
    let prices = TermCosts {
        graph,
        allowed: search.allowed,
    };
    let extractor = Extractor::new(&*graph, prices);
    let mut best: Option<(TermCost, Id, Placement)> = None;
    for class in graph.classes() {
        let Kind::Placed(_, at) = &class.data else {
            continue;
        };
        let wanted = class.nodes.iter().any(|term| {
            matches!(term.operator, Operator::At(_))
                && graph.find(term.children[0]) == graph.find(content)
        });
        if !wanted || at.is_partial() {
            continue;
        }
        let price = extractor.find_best_cost(class.id);
        let better = best
            .as_ref()
            .is_none_or(|(least, _, have)| (price, at) < (*least, have));
        if better && price != TermCost::NEVER {
            best = Some((price, class.id, at.clone()));
        }
    }
    let (price, id, placement) = best?;
    let (_, term) = extractor.find_best(id);
    Some(Cheapest {
        transfers: price.transfers,
        term: print(&term, &graph.analysis),
        placement,
        ended,
    })
}

/// The contents below a content, and itself.
fn reachable(graph: &Graph, id: Id, found: &mut Vec<Id>) {
    let id = graph.find(id);
    if found.contains(&id) {
        return;
    }
    found.push(id);
    for term in &graph[id].nodes {
        for child in &term.children {
            reachable(graph, *child, found);
        }
    }
}

/// The reductions of which a content can be had in addends.
fn sums(graph: &Graph, id: Id) -> Vec<Reduction> {
    let mut found = vec![];
    for term in &graph[id].nodes {
        match &term.operator {
            Operator::Tra(Algebra::Aggregate { reduction, .. }) if commutative(*reduction) => {
                found.push(*reduction);
            }
            Operator::Tra(Algebra::Join { function, .. }) if !term.children.is_empty() => {
                let all = |id: &Id| sums(graph, *id).contains(&Reduction::Sum);
                if graph.analysis.kernels.adds(function) && term.children.iter().all(all) {
                    found.push(Reduction::Sum);
                }
            }
            Operator::Tra(Algebra::Map { .. } | Algebra::Filter(_)) => {
                found.extend(sums(graph, term.children[0]));
            }
            _ => {}
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Every placement of a relation on a mesh that cuts an axis by at most one key dimension.
pub fn placements(content: &Content, mesh: &Mesh, sums: &[Reduction]) -> Vec<Placement> {
    let mut roles = vec![Role::Every, Role::Keys(vec![])];
    roles.extend((0..content.keys.len() as u32).map(|key| Role::Keys(vec![key])));
    roles.extend(sums.iter().map(|of| Role::Partial(*of)));
    let mut all = vec![vec![]];
    for _ in &mesh.axes {
        all = all
            .into_iter()
            .flat_map(|chosen: Vec<Role>| {
                let next = |role: &Role| [&chosen[..], std::slice::from_ref(role)].concat();
                roles.iter().map(next).collect::<Vec<_>>()
            })
            .collect();
    }
    let all = all.into_iter().map(Placement);
    all.filter(|at| at.fits(&content.keys, mesh)).collect()
}

/// The price of a term; its fields are compared in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TermCost {
    /// Floats that are transferred.
    pub transfers: u128,
    /// Points of kernels and combined elements, over all sites.
    pub work: u128,
    /// Operators.
    pub operators: u64,
}

impl TermCost {
    /// The price of what cannot be run.
    pub const NEVER: TermCost = TermCost {
        transfers: u128::MAX,
        work: u128::MAX,
        operators: u64::MAX,
    };

    fn plus(self, other: TermCost) -> TermCost {
        TermCost {
            transfers: self.transfers.saturating_add(other.transfers),
            work: self.work.saturating_add(other.work),
            operators: self.operators.saturating_add(other.operators),
        }
    }
}

/// The prices of terms of a graph, for egg's extraction.
pub struct TermCosts<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// True if a relation may be computed at a placement.
    pub allowed: &'a dyn Fn(&Content, &Placement) -> bool,
}

impl TermCosts<'_> {
    fn own(&self, term: &Term) -> Option<TermCost> {
        let placed = |id: &Id| match &self.graph[*id].data {
            Kind::Placed(content, at) => Some((&**content, at)),
            _ => None,
        };
        let facts = &self.graph.analysis;
        let (mut transfers, mut work) = (0, 0);
        match &term.operator {
            Operator::Tensor(_) => {}
            Operator::Tra(_) => return None,
            Operator::At(at) => {
                let leaf =
                    self.graph[term.children[0]]
                        .nodes
                        .iter()
                        .find_map(|t| match t.operator {
                            Operator::Tensor(number) => facts.leaves.get(number as usize),
                            _ => None,
                        })?;
                // What is read starts in any partition; a copy of it is a broadcast.
                let copied = |(role, count): (&Role, &u32)| *role == Role::Every && *count > 1;
                if !leaf.free && at.0.iter().zip(&facts.mesh.axes).any(copied) {
                    return None;
                }
            }
            Operator::Move(to) => {
                let (content, from) = placed(&term.children[0])?;
                transfers = transfer(from, to, &facts.mesh, content.floats())?;
            }
            Operator::Local(algebra) => {
                let inputs: Option<Vec<(&Content, &Placement)>> =
                    term.children.iter().map(placed).collect();
                let kinds: Vec<&Kind> = term
                    .children
                    .iter()
                    .map(|id| &self.graph[*id].data)
                    .collect();
                match facts.kind(&term.operator, &kinds) {
                    Kind::Placed(content, at) if (self.allowed)(&content, &at) => {}
                    _ => return None,
                }
                work = points(algebra, &inputs?, &facts.kernels, &facts.mesh);
            }
        }
        Some(TermCost {
            transfers,
            work,
            operators: 1,
        })
    }
}

impl CostFunction<Term> for TermCosts<'_> {
    type Cost = TermCost;

    fn cost<C>(&mut self, term: &Term, mut costs: C) -> TermCost
    where
        C: FnMut(Id) -> TermCost,
    {
        let Some(own) = self.own(term) else {
            return TermCost::NEVER;
        };
        // A placed leaf pays nothing for its content.
        let children = term.children.iter().map(|id| costs(*id));
        children.fold(own, TermCost::plus)
    }
}

/// Points of kernels and combined elements of a local operator, over all sites.
fn points(
    algebra: &Algebra,
    inputs: &[(&Content, &Placement)],
    kernels: &Kernels,
    mesh: &Mesh,
) -> u128 {
    let kinds: Vec<&Content> = inputs.iter().map(|(kind, _)| *kind).collect();
    // Along an axis along which no input is cut, every coordinate does the same.
    let copies = mesh.axes.iter().enumerate().filter(|(axis, _)| {
        let every = |at: &Placement| matches!(at.0[*axis], Role::Every | Role::Partial(_));
        inputs.iter().all(|(_, at)| every(at))
    });
    let copies = copies.fold(1u128, |n, (_, count)| n.saturating_mul(u128::from(*count)));
    let one = match algebra {
        Algebra::Join { keys, function, .. } => {
            let tuples =
                super::content::result_of(algebra, &kinds, kernels).map_or(0, |c| c.tuples());
            let pieces: Vec<(u64, u32)> = keys.iter().map(|k| (k.extent, k.pieces)).collect();
            tuples.saturating_mul(of_function(function, &pieces, kernels))
        }
        Algebra::Map { function, .. } => {
            let Some(kind) = kinds.first() else { return 0 };
            let pieces: Vec<(u64, u32)> = kind.keys.iter().map(|k| (k.extent, k.pieces)).collect();
            kind.tuples()
                .saturating_mul(of_function(function, &pieces, kernels))
        }
        Algebra::Aggregate { .. } | Algebra::Concat { .. } => {
            kinds.first().map_or(0, |kind| kind.floats())
        }
        Algebra::Filter(_)
        | Algebra::Tile { .. }
        | Algebra::Replicate { .. }
        | Algebra::Window { .. } => 0,
    };
    one.saturating_mul(copies)
}

/// Points of the kernels of a function, for one tuple.
fn of_function(function: &ArrayFunction, keys: &[(u64, u32)], kernels: &Kernels) -> u128 {
    match function {
        ArrayFunction::Operand(_) => 0,
        ArrayFunction::Apply {
            kernel,
            ranges,
            arguments,
        } => {
            let own = kernels.with(*kernel, |kernel| {
                let lengths = kernel.indices.iter().zip(ranges).map(|(index, range)| {
                    let cut = range.and_then(|key| keys.get(key as usize));
                    cut.map_or(index.extent, |(extent, pieces)| {
                        extent.div_ceil(u64::from(*pieces))
                    })
                });
                lengths.fold(1u128, |n, length| n.saturating_mul(u128::from(length)))
            });
            arguments
                .iter()
                .map(|argument| of_function(argument, keys, kernels))
                .fold(own, u128::saturating_add)
        }
    }
}
