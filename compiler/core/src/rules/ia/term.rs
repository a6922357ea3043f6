//! From IA programs to terms: the one place that knows how a program writes its operators and placements.
//!
//! A program states where each result is, and an operator's inputs may be at more sites than that asks for; in terms every such slice is
//! a move of its own, which costs nothing. Must not know rows.
//!
//! ```text
//! C @ PART(i) = local join(A{i}, B.all{j})     ⋈ᴸ(⟨0⟩, ⟨1⟩, …)(A, B.all)
//! C @ PART(i) = local join(A.all{i}, B.all{j})   ⋈ᴸ(⟨0⟩, ⟨1⟩, …)(SHUF(⟨0⟩)(A.all), B.all)
//! ```

use super::content::Content;
use super::function::{ArrayFunction, Kernels};
use super::graph::{Graph, Kind, Leaf, Tree};
use super::keys::KeyRange;
use super::language::{Algebra, Operator};
use super::local;
use super::placement::{Placement, Role};
use super::predicate::{Atom, Predicate};
use crate::ia::{self, Operation};
use egg::Id;
use ein_plan::{
    AxisRole, BlockId, Fold, Kernel, KeyDim, LoopValue, Mesh, Range, Reduction, RelationId,
    RelationType,
};

/// The sites of a program.
pub fn mesh(program: &ia::Program) -> Mesh {
    program.mesh.clone()
}

/// Where a relation of a program is.
pub fn placement(kind: &RelationType, mesh: &Mesh) -> Placement {
    let role = |role: &AxisRole| match role {
        AxisRole::Every => Role::Every,
        AxisRole::First => Role::Keys(vec![]),
        AxisRole::Key(key) => Role::Keys(vec![*key]),
    };
    Placement(kind.placement.roles.iter().map(role).collect()).on(mesh)
}

/// Returns the content of a relation of a program.
pub fn content(kind: &RelationType) -> Content {
    Content::from(&ia::content(kind))
}

/// A source of a program, as a content that is not computed.
pub fn source(name: &str, source: &ein_plan::Source, kind: &RelationType) -> Leaf {
    Leaf {
        name: name.into(),
        content: content(kind),
        free: source.is_free() || *source == ein_plan::Source::Kept,
    }
}

/// A value of a loop, as a content that is not computed; the same in every program in which the loop has that name.
pub fn loop_value(program: &ia::Program, value: LoopValue, kind: &RelationType) -> Leaf {
    let name = &program.blocks[value.block().0 as usize].name;
    Leaf {
        name: format!("{} of the loop {name}", value.of(BlockId(0))),
        content: content(kind),
        free: false,
    }
}

/// Adds a relation of a program, its inputs being these classes. The error says what is not where it is needed, or does not fit.
pub fn add(
    graph: &mut Graph,
    program: &ia::Program,
    relation: &ia::Relation,
    input: &dyn Fn(RelationId) -> Id,
) -> Result<Id, String> {
    let mesh = graph.analysis.mesh.clone();
    let at = placement(&relation.kind, &mesh);
    let fail = |what: &str| format!("relation `{}`: {what}", relation.name);
    let tree = match &relation.operation {
        Operation::Source { name, source: from } => {
            let leaf = source(name, from, &relation.kind);
            let number = graph.analysis.leaf(leaf);
            Tree::at(at.clone(), Tree::Node(Operator::Tensor(number), vec![]))
        }
        Operation::Loop { value } => {
            let number = graph
                .analysis
                .leaf(loop_value(program, *value, &relation.kind));
            Tree::at(at.clone(), Tree::Node(Operator::Tensor(number), vec![]))
        }
        Operation::Broadcast { input: of } | Operation::Shuffle { input: of } => {
            Tree::moved(at.clone(), Tree::Class(input(*of)))
        }
        Operation::Window { input: of } => {
            let whole = Tree::moved(Placement::every(mesh.axes.len()), Tree::Class(input(*of)));
            let window = Algebra::Window {
                keys: relation.kind.keys.iter().map(KeyRange::from).collect(),
                dims: relation.kind.array.dims.clone(),
            };
            Tree::moved(at.clone(), Tree::unary(window, whole))
        }
        operation => {
            let ids: Vec<Id> = operation.inputs().into_iter().map(input).collect();
            let algebras = algebras(program, relation, &graph.analysis.kernels);
            let tree = placed(graph, &algebras, &ids, &at, &mesh);
            tree.map_err(|what| fail(&what))?
        }
    };
    let id = tree.add(graph);
    match &graph[id].data {
        Kind::Placed(kind, there) if *there == at && **kind == content(&relation.kind) => Ok(id),
        other => Err(fail(&format!(
            "it is stated to be {} @ {at} but is {other}",
            content(&relation.kind)
        ))),
    }
}

/// Operators one after the other, the first of these inputs, with the slices that bring the result to a placement.
fn placed(
    graph: &Graph,
    algebras: &[Algebra],
    inputs: &[Id],
    at: &Placement,
    mesh: &Mesh,
) -> Result<Tree, String> {
    let kernels = &graph.analysis.kernels;
    let mut kinds: Vec<(Content, Placement)> = vec![];
    for id in inputs {
        match &graph[*id].data {
            Kind::Placed(content, at) => kinds.push(((**content).clone(), at.clone())),
            _ => return Err("an input is no relation".into()),
        }
    }
    // Types between the operators, then what each needs, from the last to the first.
    let mut stages: Vec<Vec<Content>> = vec![kinds.iter().map(|(kind, _)| kind.clone()).collect()];
    for algebra in algebras {
        let before: Vec<&Content> = stages.last().into_iter().flatten().collect();
        let after = super::content::result_of(algebra, &before, kernels);
        stages.push(vec![after.ok_or("its operator does not fit its inputs")?]);
    }
    let mut wanted = vec![at.clone()];
    for (algebra, before) in algebras.iter().zip(&stages).rev() {
        let before: Vec<&Content> = before.iter().collect();
        wanted = local::required(algebra, &before, &wanted[0]);
    }
    let mut trees = vec![];
    for ((id, (_, have)), want) in inputs.iter().zip(&kinds).zip(&wanted) {
        let tree = Tree::Class(*id);
        trees.push(match have == want {
            true => tree,
            false if have.slices_to(want) => Tree::moved(want.clone(), tree),
            false => {
                return Err(format!("it needs an input at {want} that is at {have}"));
            }
        });
    }
    let mut there = wanted;
    let mut result = trees;
    for (algebra, before) in algebras.iter().zip(&stages) {
        let inputs: Vec<(&Content, &Placement)> = before.iter().zip(&there).collect();
        let next = local::natural(algebra, &inputs, kernels, mesh);
        there = vec![next.ok_or("its inputs are not together")?];
        result = vec![Tree::local(algebra.clone(), result)];
    }
    let tree = result.pop().ok_or("it has no operator")?;
    match &there[0] {
        natural if natural == at => Ok(tree),
        natural if natural.slices_to(at) => Ok(Tree::moved(at.clone(), tree)),
        natural => Err(format!("it is stated to be at {at} but is at {natural}")),
    }
}

/// The local operators that one operator of a program is, the first first.
fn algebras(program: &ia::Program, relation: &ia::Relation, kernels: &Kernels) -> Vec<Algebra> {
    let keys_of = |id: &RelationId| program.relation(*id).kind.keys.len() as u32;
    match &relation.operation {
        Operation::Source { .. }
        | Operation::Broadcast { .. }
        | Operation::Shuffle { .. }
        | Operation::Window { .. }
        | Operation::Loop { .. } => vec![],
        Operation::LocalJoin {
            inputs,
            kernel,
            ranges: of,
            fold,
        } => {
            let keys = fold.as_ref().map_or(&relation.kind.keys, |fold| &fold.keys);
            let join = Algebra::Join {
                keys: keys.iter().map(KeyRange::from).collect(),
                inputs: inputs.iter().map(|input| input.keys.clone()).collect(),
                keep: (0..keys.len() as u32).collect(),
                function: function(kernel, of, kernels, |key| key),
            };
            let folded = fold.as_ref().zip(kernel.reduction);
            let sum = folded.map(|(fold, of)| folding(fold, of, &relation.kind.keys));
            [join].into_iter().chain(sum).collect()
        }
        Operation::LocalAggregate {
            keep, reduction, ..
        } => vec![Algebra::aggregate(keep.clone(), *reduction)],
        Operation::LocalFilter { input, key, value } => {
            let kept = (0..keys_of(input)).filter(|k| k != key).collect();
            vec![
                Algebra::Filter(Predicate::new([Atom::Is(*key, *value)])),
                Algebra::rekey(kept),
            ]
        }
        Operation::LocalMap { keys, map, .. } => {
            let function = match map {
                None => ArrayFunction::IDENTITY,
                Some((kernel, of)) => {
                    let before = |key: u32| keys.get(key as usize).copied().unwrap_or(key);
                    function(kernel, of, kernels, before)
                }
            };
            vec![Algebra::Map {
                keys: keys.clone(),
                function,
            }]
        }
        Operation::LocalTile { array_dim, .. } => {
            let new = relation.kind.keys.last().map(KeyRange::from);
            let tile = |key| Algebra::Tile {
                array_dim: *array_dim,
                key,
            };
            new.map(tile).into_iter().collect()
        }
        Operation::LocalConcat { array_dim, .. } => vec![Algebra::Concat {
            array_dim: *array_dim,
        }],
    }
}

/// The Σᴸ in a join that combines its tuples at once.
fn folding(fold: &Fold, reduction: Reduction, result: &[KeyDim]) -> Algebra {
    let coarse = fold.keep.iter().zip(result).map(|(key, kept)| {
        let before = KeyRange::from(&fold.keys[*key as usize]);
        let after = KeyRange::from(kept);
        (before != after).then_some(after)
    });
    let coarse: Vec<Option<KeyRange>> = coarse.collect();
    Algebra::Aggregate {
        keep: fold.keep.clone(),
        coarse: match coarse.iter().any(Option::is_some) {
            true => coarse,
            false => vec![],
        },
        reduction,
        before: ArrayFunction::IDENTITY,
        after: ArrayFunction::IDENTITY,
    }
}

/// A kernel with its ranges over the input's key dimensions.
fn function(
    kernel: &Kernel,
    ranges: &[Range],
    kernels: &Kernels,
    before: impl Fn(u32) -> u32,
) -> ArrayFunction {
    let ranges = ranges.iter().map(|range| match range {
        Range::Whole => None,
        Range::Key(key) => Some(before(*key)),
    });
    let operands = kernel.operands.len() as u32;
    ArrayFunction::of_kernel(kernels.add(kernel), ranges.collect(), operands)
}
