//! The e-graph: what is known of every class, the check that all its members agree, and how rows look at it.
//!
//! All members of a class have the same keys, arrays and placement: this is what makes congruence sound, since local operators depend
//! on where their inputs are. It is checked whenever two classes become one; a breach is recorded in [`Facts::faults`], and then
//! nothing is proved. Must not know single rules.
//!
//! ```text
//! merge  {8/2} [8/k0] f32 @ ⟨0⟩  with  {8/2} [8/k0] f32 @ ALL   →   fault
//! ```

use super::content::{self, Content};
use super::function::Kernels;
use super::language::{Algebra, Operator, Term};
use super::local;
use super::placement::Placement;
use egg::{Analysis, DidMerge, EGraph, Id, RecExpr};
use ein_plan::Mesh;
use std::collections::HashMap;
use std::sync::Arc;

/// An e-graph of [`Term`]s.
pub type Graph = EGraph<Term, Facts>;

/// A content that is not computed by the terms at hand.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// Its printed name.
    pub name: String,
    /// Its type.
    pub content: Content,
    /// True if any site can make any of it at no cost: literals and random numbers.
    pub free: bool,
}

/// The type that all members of a class agree on.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A content of this type.
    Logical(Arc<Content>),
    /// A physical relation of this type at this placement.
    Placed(Arc<Content>, Placement),
    /// No relation: an operator whose inputs are not what or where it needs them. Rows leave it alone.
    Nothing,
}

/// The tables that terms refer to, and what went wrong.
#[derive(Debug, Default)]
pub struct Facts {
    /// The sites.
    pub mesh: Mesh,
    /// Kernels by number.
    pub kernels: Kernels,
    /// Contents by number.
    pub leaves: Vec<Leaf>,
    /// Merges of classes that do not agree: a rule was unsound, or applied where it must not.
    pub faults: Vec<String>,
}

impl Facts {
    /// The number of a content.
    pub fn leaf(&mut self, leaf: Leaf) -> u32 {
        let found = self.leaves.iter().position(|have| *have == leaf);
        found.unwrap_or_else(|| {
            self.leaves.push(leaf);
            self.leaves.len() - 1
        }) as u32
    }

    /// Returns the type of a term, given the types of its children.
    pub fn kind(&self, operator: &Operator, children: &[&Kind]) -> Kind {
        self.known(operator, children).unwrap_or(Kind::Nothing)
    }

    fn known(&self, operator: &Operator, children: &[&Kind]) -> Option<Kind> {
        let placed = |content: Arc<Content>, at: Placement| {
            let fits = at.fits(&content.keys, &self.mesh);
            fits.then_some(Kind::Placed(content, at))
        };
        match (operator, children) {
            (Operator::Tensor(number), []) => {
                let leaf = self.leaves.get(*number as usize)?;
                Some(Kind::Logical(Arc::new(leaf.content.clone())))
            }
            (Operator::Tra(algebra), _) => {
                let inputs: Option<Vec<&Content>> = children
                    .iter()
                    .map(|child| match child {
                        Kind::Logical(content) => Some(&**content),
                        _ => None,
                    })
                    .collect();
                let content = content::result_of(algebra, &inputs?, &self.kernels)?;
                Some(Kind::Logical(Arc::new(content)))
            }
            (Operator::At(at), [Kind::Logical(content)]) => placed(content.clone(), at.clone()),
            (Operator::Move(to), [Kind::Placed(content, from)]) if from.moves_to(to) => {
                placed(content.clone(), to.clone())
            }
            (Operator::Local(algebra), _) => {
                let inputs: Option<Vec<(&Content, &Placement)>> = children
                    .iter()
                    .map(|child| match child {
                        Kind::Placed(content, at) => Some((&**content, at)),
                        _ => None,
                    })
                    .collect();
                let inputs = inputs?;
                let contents: Vec<&Content> = inputs.iter().map(|(content, _)| *content).collect();
                let content = content::result_of(algebra, &contents, &self.kernels)?;
                let at = local::natural(algebra, &inputs, &self.kernels, &self.mesh)?;
                placed(Arc::new(content), at)
            }
            _ => None,
        }
    }

    /// An operator as text.
    pub fn print(&self, operator: &Operator) -> String {
        operator.print(&self.kernels, &|number| {
            self.leaves[number as usize].name.clone()
        })
    }
}

impl Analysis<Term> for Facts {
    type Data = Kind;

    fn make(graph: &mut Graph, term: &Term, _: Id) -> Kind {
        let children: Vec<&Kind> = term.children.iter().map(|id| &graph[*id].data).collect();
        graph.analysis.kind(&term.operator, &children)
    }

    fn merge(&mut self, kept: &mut Kind, other: Kind) -> DidMerge {
        if *kept != other {
            self.faults
                .push(format!("{kept} became one with {other}, which it is not"));
        }
        DidMerge(false, false)
    }
}

/// A term over classes: what a row finds and what it puts in its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Tree {
    /// Some member of a class.
    Class(Id),
    /// An operator of trees.
    Node(Operator, Vec<Tree>),
}

impl Tree {
    /// A local operator.
    pub fn local(algebra: Algebra, children: Vec<Tree>) -> Tree {
        Tree::Node(Operator::Local(algebra), children)
    }

    /// A local operator of one relation.
    pub fn unary(algebra: Algebra, child: Tree) -> Tree {
        Tree::local(algebra, vec![child])
    }

    /// A move.
    pub fn moved(to: Placement, child: Tree) -> Tree {
        Tree::Node(Operator::Move(to), vec![child])
    }

    /// A content at a placement.
    pub fn at(placement: Placement, content: Tree) -> Tree {
        Tree::Node(Operator::At(placement), vec![content])
    }

    /// Adds it to the graph: the class, and the very term, for explanations.
    pub fn add(&self, graph: &mut Graph) -> Id {
        match self {
            Tree::Class(id) => *id,
            Tree::Node(operator, children) => {
                let children = children.iter().map(|child| child.add(graph)).collect();
                graph.add_uncanonical(Term {
                    operator: operator.clone(),
                    children,
                })
            }
        }
    }
}

/// How rows look at the graph; clean, that is rebuilt.
pub struct View<'a> {
    /// The graph.
    pub graph: &'a Graph,
    placements: HashMap<Id, Vec<Placement>>,
}

impl<'a> View<'a> {
    /// A view of a rebuilt graph.
    pub fn new(graph: &'a Graph) -> View<'a> {
        let mut placements: HashMap<Id, Vec<Placement>> = HashMap::new();
        for class in graph.classes() {
            for node in &class.nodes {
                if let Operator::At(at) = &node.operator {
                    let known = placements.entry(graph.find(node.children[0])).or_default();
                    known.push(at.clone());
                }
            }
        }
        for known in placements.values_mut() {
            known.sort();
            known.dedup();
        }
        View { graph, placements }
    }

    /// The sites.
    pub fn mesh(&self) -> &'a Mesh {
        &self.graph.analysis.mesh
    }

    /// The kernels.
    pub fn kernels(&self) -> &'a Kernels {
        &self.graph.analysis.kernels
    }

    /// The members of a class.
    pub fn members(&self, id: Id) -> &'a [Term] {
        &self.graph[id].nodes
    }

    /// The local operators in a class, with their inputs.
    pub fn locals(&self, id: Id) -> impl Iterator<Item = (&'a Algebra, &'a [Id])> + use<'a> {
        self.graph[id]
            .nodes
            .iter()
            .filter_map(|t| match &t.operator {
                Operator::Local(algebra) => Some((algebra, &t.children[..])),
                _ => None,
            })
    }

    /// The moves in a class: where to, and of what.
    pub fn moves(&self, id: Id) -> impl Iterator<Item = (&'a Placement, Id)> + use<'a> {
        self.graph[id]
            .nodes
            .iter()
            .filter_map(|t| match &t.operator {
                Operator::Move(to) => Some((to, t.children[0])),
                _ => None,
            })
    }

    /// The contents of a class of placed terms.
    pub fn contents(&self, id: Id) -> impl Iterator<Item = Id> + use<'a> {
        self.graph[id]
            .nodes
            .iter()
            .filter_map(|t| match &t.operator {
                Operator::At(_) => Some(t.children[0]),
                _ => None,
            })
    }

    /// Type and placement of a class of placed terms.
    pub fn placed(&self, id: Id) -> Option<(&'a Content, &'a Placement)> {
        match &self.graph[id].data {
            Kind::Placed(content, at) => Some((content, at)),
            _ => None,
        }
    }

    /// Returns the placed contents of several classes; `None` if one has none.
    pub fn all_placed(&self, ids: &[Id]) -> Option<Vec<(&'a Content, &'a Placement)>> {
        ids.iter().map(|id| self.placed(*id)).collect()
    }

    /// Where a local operator of these relations is.
    pub fn natural(
        &self,
        algebra: &Algebra,
        inputs: &[(&Content, &Placement)],
    ) -> Option<Placement> {
        let at = local::natural(algebra, inputs, self.kernels(), self.mesh())?;
        let kinds: Vec<&Content> = inputs.iter().map(|(kind, _)| *kind).collect();
        let content = content::result_of(algebra, &kinds, self.kernels())?;
        at.fits(&content.keys, self.mesh()).then_some(at)
    }

    /// The placements at which a content is known.
    pub fn placements(&self, content: Id) -> &[Placement] {
        let known = self.placements.get(&self.graph.find(content));
        known.map_or(&[], Vec::as_slice)
    }

    /// A relation moved to a placement; as it is, if it is there.
    pub fn there(&self, id: Id, to: &Placement) -> Tree {
        match self.placed(id) {
            Some((_, at)) if at == to => Tree::Class(id),
            _ => Tree::moved(to.clone(), Tree::Class(id)),
        }
    }

    /// An operator of its inputs moved to where they have to be for the result to be at a placement, sliced if it is not there then;
    /// nothing if the inputs are there already.
    pub fn pushed(&self, to: &Placement, algebra: &Algebra, inputs: &[Id]) -> Option<Tree> {
        let placed = self.all_placed(inputs)?;
        let kinds: Vec<&Content> = placed.iter().map(|(kind, _)| *kind).collect();
        let needs = local::required(algebra, &kinds, to);
        if placed.iter().zip(&needs).all(|((_, at), need)| *at == need) {
            return None;
        }
        let moved: Vec<(&Content, &Placement)> = kinds.iter().copied().zip(&needs).collect();
        let natural = self.natural(algebra, &moved)?;
        let inputs = inputs.iter().zip(&needs);
        let inputs = inputs.map(|(id, need)| self.there(*id, need)).collect();
        let result = Tree::local(algebra.clone(), inputs);
        Some(match natural == *to {
            true => result,
            false => Tree::moved(to.clone(), result),
        })
    }
}

/// A term printed as one expression, relations that repeat written out each time.
pub fn print(expression: &RecExpr<Term>, facts: &Facts) -> String {
    let mut lines: Vec<String> = vec![];
    for term in expression.as_ref() {
        let children: Vec<&str> = term
            .children
            .iter()
            .map(|id| lines[usize::from(*id)].as_str())
            .collect();
        lines.push(applied(&facts.print(&term.operator), &children));
    }
    lines.pop().unwrap_or_default()
}

/// An operator and its operands as text.
pub fn applied(operator: &str, children: &[&str]) -> String {
    match children {
        [] => operator.into(),
        _ => format!("{operator}({})", children.join(", ")),
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Kind::Logical(content) => write!(f, "{content}"),
            Kind::Placed(content, at) => write!(f, "{content} @ {at}"),
            Kind::Nothing => f.write_str("no relation"),
        }
    }
}
