//! Which operations only one branch of a select needs, so that a strip which takes the other skips them.
//!
//! Skipping saves time only: poison makes untaken branches harmless (see `program`). The points that a guard
//! leaves out are such a branch of the whole kernel. Must not know what operations do.
//!
//! ```text
//! where(s <= t, exp(a0[t, s]), 0)   ->   c = s <= t;  skip 2 unless some c;  r = a0;  e = exp r;  select
//! ```

use crate::program::{Kind, Operation, Request};
use ein_plan::{Function, Graph, Node, NodeId};
use std::collections::HashMap;

/// Deepest nesting that is looked at; what is nested deeper is never skipped.
const DEEPEST: usize = 32;

/// A branch: of a select (by its node), or the whole body behind the guard.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Branch {
    Guarded,
    Of(u32, bool),
}

/// For each branch the operations that only it needs, at the level of its select.
pub(crate) struct Branches {
    guard: Option<u32>,
    members: HashMap<Branch, Vec<u32>>,
    /// Whether a node is in some branch's list.
    inside: Vec<bool>,
}

impl Branches {
    /// None: all of so many nodes are computed, whatever is chosen.
    pub(crate) fn none(count: usize) -> Branches {
        Branches {
            guard: None,
            members: HashMap::new(),
            inside: vec![false; count],
        }
    }

    /// Finds the branches of a request. `levels` are the nodes' levels, `last` the innermost one, `free` the nodes that take no time worth
    /// a skip, `arguments` the nodes whose values a node needs.
    pub(crate) fn new(
        request: &Request<'_, '_>,
        (needed, free): (&[bool], &[bool]),
        levels: &[usize],
        last: usize,
        arguments: impl Fn(usize) -> Vec<usize>,
    ) -> Branches {
        let graph = request.graph;
        let count = graph.len();
        // Each node's chain of branches, outermost first; `None` until a user is seen.
        let mut chains: Vec<Option<Vec<Branch>>> = vec![None; count];
        let root = request.root.0 as usize;
        if let Some(guard) = request.guard {
            chains[root] = Some(vec![Branch::Guarded]);
            chains[guard.0 as usize] = Some(vec![]);
        } else {
            chains[root] = Some(vec![]);
        }
        for id in (0..count).rev().filter(|id| needed[*id]) {
            let own = chains[id].clone().unwrap_or_default();
            let select = match graph.node(NodeId(id as u32)) {
                Node::Apply(Function::Select, a) => Some(a),
                _ => None,
            };
            let mut meet = |argument: usize, chain: &[Branch]| match &mut chains[argument] {
                Some(old) => {
                    let common = old.iter().zip(chain).take_while(|(a, b)| a == b).count();
                    old.truncate(common);
                }
                empty => *empty = Some(chain.to_vec()),
            };
            match select {
                Some(a) => {
                    meet(a[0].0 as usize, &own);
                    for (argument, taken) in [(a[1], true), (a[2], false)] {
                        let mut chain = own.clone();
                        if chain.len() < DEEPEST {
                            chain.push(Branch::Of(id as u32, taken));
                        }
                        meet(argument.0 as usize, &chain);
                    }
                }
                None => arguments(id).into_iter().for_each(|a| meet(a, &own)),
            }
        }
        let mut members: HashMap<Branch, Vec<u32>> = HashMap::new();
        for id in (0..count).filter(|id| needed[*id]) {
            let Some(branch) = chains[id].as_ref().and_then(|chain| chain.last()) else {
                continue;
            };
            // What changes less often than its select is computed where it changes, come what may.
            let level = match branch {
                Branch::Guarded => last,
                Branch::Of(select, _) => levels[*select as usize],
            };
            if level == levels[id] && !matches!(graph.node(NodeId(id as u32)), Node::Constant(_)) {
                members.entry(*branch).or_default().push(id as u32);
            }
        }
        let mut inside = vec![false; count];
        members.retain(|_, list| list.iter().any(|id| !free[*id as usize]));
        for id in members.values().flatten() {
            inside[*id as usize] = true;
        }
        Branches {
            guard: request.guard.map(|g| g.0),
            members,
            inside,
        }
    }

    /// The operations of each level in the order in which they are executed.
    pub(crate) fn place(
        &self,
        graph: &Graph,
        mut operations: Vec<Option<Operation>>,
        levels: &[usize],
        last: usize,
    ) -> Vec<Vec<Operation>> {
        let mut placed = vec![Vec::new(); last + 1];
        for id in 0..operations.len() {
            if !self.inside[id] {
                self.emit(graph, id as u32, &mut operations, &mut placed[levels[id]]);
            }
        }
        if let Some(guard) = self.guard {
            self.block(
                graph,
                Branch::Guarded,
                guard,
                true,
                &mut operations,
                &mut placed[last],
            );
        }
        placed
    }

    /// A node's operation, after the branches that only it needs.
    fn emit(
        &self,
        graph: &Graph,
        id: u32,
        operations: &mut [Option<Operation>],
        to: &mut Vec<Operation>,
    ) {
        let Some(operation) = operations[id as usize].take() else {
            return;
        };
        if let Node::Apply(Function::Select, a) = graph.node(NodeId(id)) {
            for taken in [true, false] {
                self.block(graph, Branch::Of(id, taken), a[0].0, taken, operations, to);
            }
        }
        to.push(operation);
    }

    fn block(
        &self,
        graph: &Graph,
        branch: Branch,
        condition: u32,
        wanted: bool,
        operations: &mut [Option<Operation>],
        to: &mut Vec<Operation>,
    ) {
        let Some(list) = self.members.get(&branch) else {
            return;
        };
        let at = to.len();
        to.push(Operation {
            node: condition,
            uniform: false,
            splat: false,
            kind: Kind::Skip {
                condition,
                wanted,
                to: 0,
            },
        });
        for id in list {
            self.emit(graph, *id, operations, to);
        }
        let end = to.len();
        if let Kind::Skip { to, .. } = &mut to[at].kind {
            *to = end;
        }
    }
}
