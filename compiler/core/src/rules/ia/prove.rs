//! The proof that a plan computes what the initial translation computes.
//!
//! Both programs become terms of one e-graph, in which rows that say nothing about cost are applied until the initial result, moved to
//! where the plan's is, and the plan's result are one class. A program that is too large is proved tensor by tensor: what earlier
//! tensors gave enters as leaves, equal ones (by the proof of their own tensor) as the same leaf. Values of loops are leaves, and what
//! a loop begins and ends its rounds with is proved like outputs: so rounds are equal one after the other. Must not know how a plan was
//! found.
//!
//! ```text
//! C: R2-6   SHUF(⟨0⟩)(⋈ᴸ(⟨0⟩, ⟨1⟩, a0[i] * a1[j])(BCAST(A), B)) = ⋈ᴸ(⟨0⟩, ⟨1⟩, a0[i] * a1[j])(SHUF(⟨0⟩)(BCAST(A)), BCAST(B))
//! ```

use super::content::Content;
use super::explain::{self, ProofStep};
use super::graph::{Facts, Graph, Kind, Leaf, Tree};
use super::language::Operator;
use super::rows::{Bounds, Ended, FAMILIES, saturate, ways};
use super::term;
use crate::ia::Program;
use egg::Id;
use ein_plan::{Block, RelationId};
use std::collections::{BTreeSet, HashMap};

/// The limits and switches of a proof.
pub struct Options<'a> {
    /// Most nodes of the e-graph, for each tensor or for all of them.
    pub node_limit: usize,
    /// Rows that are not used, by name.
    pub disabled: &'a [String],
    /// True if the steps are written down: they take several times as long as the proof.
    pub explain: bool,
    /// True if the time is over.
    pub deadline: &'a dyn Fn() -> bool,
}

/// The outcome of a proof.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proof {
    /// True if every output was shown to be that of the initial translation.
    pub proved: bool,
    /// True if it went tensor by tensor.
    pub statement_by_statement: bool,
    /// The applications of rows that it rests on, tensor by tensor; none if they were not asked for.
    pub steps: Vec<ProofStep>,
    /// E-nodes, of all e-graphs together.
    pub nodes: usize,
    /// E-classes, likewise.
    pub classes: usize,
    /// Why it is not proved.
    pub stopped: Option<String>,
}

/// Operators of an output, written out as one expression, up to which the whole program is tried at once.
const WHOLE: usize = 64;

/// The most operators that an output of a program is, written out as one expression.
fn size(program: &Program) -> usize {
    let mut sizes: Vec<usize> = vec![];
    for relation in &program.relations {
        let inputs = relation.operation.inputs().into_iter();
        sizes.push(inputs.fold(1, |n, id| n.saturating_add(sizes[id.0 as usize])));
    }
    let outputs = program
        .outputs
        .iter()
        .map(|output| sizes[output.relation.0 as usize]);
    outputs.max().unwrap_or(0)
}

/// Proves that `chosen` gives the outputs of `initial`; both were made from one TRA program, for the same sites.
pub fn prove(initial: &Program, chosen: &Program, options: &Options<'_>) -> Proof {
    let mut whole = Proof::default();
    if size(initial).max(size(chosen)) <= WHOLE {
        whole = run(initial, chosen, options, false);
        if whole.proved || (options.deadline)() {
            return whole;
        }
    }
    let mut proof = run(initial, chosen, options, true);
    proof.nodes += whole.nodes;
    proof.classes += whole.classes;
    proof
}

/// A relation that is shown to be equal to others: which program's, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ProgramRelation {
    chosen: bool,
    relation: RelationId,
}

struct Prover<'a> {
    programs: [&'a Program; 2],
    options: &'a Options<'a>,
    /// The leaves that stand for relations of finished tensors.
    known: HashMap<ProgramRelation, Leaf>,
    proof: Proof,
}

fn run(initial: &Program, chosen: &Program, options: &Options<'_>, parts: bool) -> Proof {
    let mut prover = Prover {
        programs: [initial, chosen],
        options,
        known: HashMap::new(),
        proof: Proof {
            statement_by_statement: parts,
            ..Proof::default()
        },
    };
    if term::mesh(initial) != term::mesh(chosen) || initial.outputs.len() != chosen.outputs.len() {
        prover.proof.stopped = Some("the programs have other sites or outputs".into());
        return prover.proof;
    }
    let groups = match parts {
        true => prover.tensors(),
        false => vec![None],
    };
    for tensor in groups {
        if let Err(what) = prover.group(tensor.as_deref()) {
            prover.proof.stopped = Some(what);
            return prover.proof;
        }
    }
    prover.outputs();
    prover.proof
}

impl Prover<'_> {
    fn program(&self, place: ProgramRelation) -> &Program {
        self.programs[usize::from(place.chosen)]
    }

    /// The tensors of both programs, every one after those that its relations read.
    fn tensors(&self) -> Vec<Option<String>> {
        let mut last: HashMap<&str, usize> = HashMap::new();
        let mut order: Vec<&str> = vec![];
        for program in self.programs {
            for relation in &program.relations {
                let known = last.len();
                last.entry(&relation.tensor).or_insert_with(|| {
                    order.push(&relation.tensor);
                    known
                });
            }
        }
        // Depth in the graph of tensors; moved copies stand late in a program, but read only their own tensor.
        let mut reads: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); order.len()];
        for program in self.programs {
            for relation in &program.relations {
                let own = last[relation.tensor.as_str()];
                for input in relation.operation.inputs() {
                    let other = last[program.relation(input).tensor.as_str()];
                    if other != own {
                        reads[own].insert(other);
                    }
                }
            }
        }
        let mut done = vec![false; order.len()];
        let mut sorted = vec![];
        while sorted.len() < order.len() {
            let next =
                (0..order.len()).find(|at| !done[*at] && reads[*at].iter().all(|r| done[*r]));
            // Tensors that read each other cannot be told apart: the rest is left as it is.
            let next = next.or_else(|| (0..order.len()).find(|at| !done[*at]));
            if let Some(next) = next {
                done[next] = true;
                sorted.push(Some(order[next].to_string()));
            }
        }
        sorted
    }

    /// Proves the relations of one tensor, or of all: afterwards equal ones that are used elsewhere are known as one leaf.
    fn group(&mut self, tensor: Option<&str>) -> Result<(), String> {
        let mesh = term::mesh(self.programs[0]);
        let facts = Facts {
            mesh: mesh.clone(),
            ..Facts::default()
        };
        let mut graph = Graph::new(facts);
        if self.options.explain {
            graph = graph
                .with_explanations_enabled()
                .without_explanation_length_optimization();
        }
        let (mut ids, mut shown) = (HashMap::new(), vec![]);
        for chosen in [false, true] {
            let program = self.programs[usize::from(chosen)];
            let exported = exported(program, tensor);
            for (number, relation) in program.relations.iter().enumerate() {
                let relation_id = RelationId(number as u32);
                if tensor.is_some_and(|tensor| relation.tensor != tensor) {
                    continue;
                }
                for input in relation.operation.inputs() {
                    let place = ProgramRelation {
                        chosen,
                        relation: input,
                    };
                    if let Some(leaf) = self.known.get(&place).filter(|_| !ids.contains_key(&place))
                    {
                        let leaf = graph.analysis.leaf(leaf.clone());
                        let at = term::placement(&program.relation(input).kind, &mesh);
                        let tree = Tree::at(at, Tree::Node(Operator::Tensor(leaf), vec![]));
                        ids.insert(place, tree.add(&mut graph));
                    }
                }
                let missing = relation
                    .operation
                    .inputs()
                    .into_iter()
                    .any(|relation| !ids.contains_key(&ProgramRelation { chosen, relation }));
                if missing {
                    return Err(format!("`{}` reads what comes later", relation.name));
                }
                let input = |relation: RelationId| ids[&ProgramRelation { chosen, relation }];
                let id = term::add(&mut graph, program, relation, &input)?;
                let place = ProgramRelation {
                    chosen,
                    relation: relation_id,
                };
                ids.insert(place, id);
                if exported.contains(&relation_id) {
                    shown.push((place, id));
                }
            }
        }
        let goals = self.goals(&mut graph, &shown);
        let ended = self.search(&mut graph, &shown, &goals);
        self.proof.nodes += graph.total_number_of_nodes();
        self.proof.classes += graph.number_of_classes();
        if let Some(fault) = graph.analysis.faults.first() {
            return Err(format!("a rule is unsound: {fault}"));
        }
        self.learn(&mut graph, tensor, &shown, &goals, &ids)?;
        if ended == Ended::Time {
            return Err("the time is over".into());
        }
        Ok(())
    }

    /// Every relation that is used elsewhere, with each earlier one of its type moved to where it is.
    fn goals(&self, graph: &mut Graph, shown: &[(ProgramRelation, Id)]) -> Vec<Vec<(usize, Id)>> {
        let mut goals = vec![];
        for (number, (_, id)) in shown.iter().enumerate() {
            let mut earlier = vec![];
            let Kind::Placed(content, at) = graph[*id].data.clone() else {
                goals.push(earlier);
                continue;
            };
            for (other, (_, first)) in shown[..number].iter().enumerate() {
                let same = matches!(&graph[*first].data, Kind::Placed(kind, _) if *kind == content);
                if same {
                    let moved = Tree::moved(at.clone(), Tree::Class(*first));
                    earlier.push((other, moved.add(graph)));
                }
            }
            goals.push(earlier);
        }
        // What is equal to something earlier is found by it; the chosen program's must be.
        for (goal, (_, id)) in goals.iter_mut().zip(shown) {
            goal.push((usize::MAX, *id));
        }
        goals
    }

    /// Applies rows until the chosen program's relations are found. Whether the initial one's are equal to each other is
    /// looked for by moves alone: where they are not, more rows would never come to an end.
    fn search(
        &self,
        graph: &mut Graph,
        shown: &[(ProgramRelation, Id)],
        goals: &[Vec<(usize, Id)>],
    ) -> Ended {
        let mut ended = Ended::Saturated;
        let bounds = Bounds {
            nodes: self.options.node_limit,
            deadline: self.options.deadline,
        };
        let found = |graph: &Graph, goal: &[(usize, Id)]| {
            let own = goal.last().map(|(_, id)| graph.find(*id));
            let earlier = &goal[..goal.len() - 1];
            earlier.is_empty() || earlier.iter().any(|(_, id)| Some(graph.find(*id)) == own)
        };
        for (count, expand) in (1..=FAMILIES.len())
            .map(|n| (n, false))
            .chain([(FAMILIES.len(), true)])
        {
            let ways = ways(&FAMILIES[..count], expand, self.options.disabled);
            let mut done = |graph: &Graph| {
                let mut goals = shown.iter().zip(goals);
                goals.all(|((place, _), goal)| !place.chosen && count > 1 || found(graph, goal))
            };
            ended = saturate(graph, &ways, &bounds, &mut done);
            if ended != Ended::Saturated {
                break;
            }
        }
        ended
    }

    /// Writes down which relations are equal, as leaves, and the steps by which they are.
    fn learn(
        &mut self,
        graph: &mut Graph,
        tensor: Option<&str>,
        shown: &[(ProgramRelation, Id)],
        goals: &[Vec<(usize, Id)>],
        ids: &HashMap<ProgramRelation, Id>,
    ) -> Result<(), String> {
        let mut names: HashMap<Id, (String, String)> = HashMap::new();
        let mut places: Vec<(&ProgramRelation, &Id)> = ids.iter().collect();
        places.sort_unstable();
        for (place, id) in places {
            let relation = self.program(*place).relation(place.relation);
            let name = (relation.name.clone(), relation.tensor.clone());
            names.entry(graph.find(*id)).or_insert(name);
        }
        let mut leaves: Vec<Leaf> = vec![];
        for (number, (place, id)) in shown.iter().enumerate() {
            let relation = self.program(*place).relation(place.relation);
            let own = graph.find(*id);
            let equal = goals[number]
                .iter()
                .find(|(other, moved)| *other < number && graph.find(*moved) == own);
            let leaf = match equal {
                Some((other, moved)) => {
                    let (left, right) = (*moved, *id);
                    if self.options.explain && place.chosen && left != right {
                        let proof = graph.explain_id_equivalence(left, right);
                        let about = tensor.unwrap_or(&relation.tensor);
                        let steps = explain::steps(&proof, graph, &names, about);
                        for step in steps {
                            if !self.proof.steps.contains(&step) {
                                self.proof.steps.push(step);
                            }
                        }
                    }
                    leaves[*other].clone()
                }
                None => fresh(relation, &leaves, self.known.values()),
            };
            leaves.push(leaf.clone());
            self.known.insert(*place, leaf);
        }
        Ok(())
    }

    /// Returns whether the outputs of the two programs are the same leaves.
    fn outputs(&mut self) {
        let [initial, chosen] = self.programs;
        for (first, second) in initial.outputs.iter().zip(&chosen.outputs) {
            let place = |chosen: bool, relation: RelationId| ProgramRelation { chosen, relation };
            let a = self.known.get(&place(false, first.relation));
            let b = self.known.get(&place(true, second.relation));
            if a.is_none() || a != b {
                let what = format!(
                    "output `{}` was not shown to be the initial one",
                    second.name
                );
                self.proof.stopped = Some(what);
                return;
            }
        }
        for first in &initial.blocks {
            let second = chosen.blocks.iter().find(|block| block.name == first.name);
            let Some(second) = second else { continue };
            let same = held(first).zip(held(second)).all(|(a, b)| {
                let place =
                    |chosen: bool, relation: RelationId| ProgramRelation { chosen, relation };
                let a = self.known.get(&place(false, a));
                a.is_some() && a == self.known.get(&place(true, b))
            });
            if !same || held(first).count() != held(second).count() {
                let what = format!(
                    "the loop `{}` was not shown to be the initial one",
                    first.name
                );
                self.proof.stopped = Some(what);
                return;
            }
        }
        self.proof.proved = true;
    }
}

/// The relations that a loop begins and ends its rounds with: equal loops are those in which these are equal, if the values of their
/// states are.
fn held(block: &Block) -> impl Iterator<Item = RelationId> {
    let all: Vec<RelationId> = block.begins_with().chain(block.ends_with()).collect();
    all.into_iter()
}

/// A leaf like no other for a relation that is equal to no earlier one.
fn fresh<'a>(
    relation: &crate::ia::Relation,
    leaves: &'a [Leaf],
    known: impl Iterator<Item = &'a Leaf>,
) -> Leaf {
    let taken: Vec<&str> = known.chain(leaves).map(|leaf| leaf.name.as_str()).collect();
    let mut name = relation.name.clone();
    while taken.contains(&name.as_str()) {
        name.push('′');
    }
    let content: Content = term::content(&relation.kind);
    Leaf {
        name,
        content,
        free: false,
    }
}

/// The relations that outputs or other tensors read.
fn exported(program: &Program, tensor: Option<&str>) -> BTreeSet<RelationId> {
    let mut exported: BTreeSet<RelationId> = program
        .outputs
        .iter()
        .map(|output| output.relation)
        .chain(program.blocks.iter().flat_map(held))
        .collect();
    if let Some(tensor) = tensor {
        for relation in program.relations.iter().filter(|r| r.tensor != tensor) {
            exported.extend(relation.operation.inputs());
        }
    }
    exported
}
