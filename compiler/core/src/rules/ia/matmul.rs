//! The three distributed multiplications of the thesis, for any contraction of two operands: broadcast-based, cross-product-based and
//! replication-based.
//!
//! A contraction is Σ(G, op)(⋈(KL, KR, f)(L, R)); f and op may be anything, since only keys decide. Must not know costs.
//!
//! ```text
//! BMM  Σᴸ(SHUF(⋈ᴸ(BCAST(L), R)))   CMM  Σᴸ(SHUF(⋈ᴸ(SHUF(K)(L), SHUF(K)(R))))   RMM  Σᴸ(⋈ᴸ(SHUF(G)(dup(L)), SHUF(G)(dup(R))))
//! ```

use super::content::Content;
use super::graph::{Kind, Tree, View};
use super::keys::KeyRange;
use super::language::{Algebra, Operator, Term};
use super::local;
use super::placement::{Placement, Role};
use super::row::{Row, Sides};
use crate::rules::RuleInfo;
use egg::Id;

const FAMILY: &str = "matrix multiplication";
const PAPER: &str = "thesis, section 3.3.2, domain-specific rules";
const LEFT: &str = "Σ(G, op)(⋈(KL, KR, f)(L, R))";

/// The rows of this family.
pub const ROWS: &[Row] = &[
    Row {
        info: RuleInfo {
            name: "BMM",
            family: FAMILY,
            paper: PAPER,
            left: LEFT,
            right: "Σᴸ(G, op)(SHUF(G)(⋈ᴸ(KL, KR, f)(BCAST(L), R)))",
            conditions: &["a contraction of two operands"],
            note: "either operand may be the one that is broadcast",
        },
        simplify: None,
        expand: Some(|view, _, term, found| contraction(view, term, found, broadcast)),
    },
    Row {
        info: RuleInfo {
            name: "CMM",
            family: FAMILY,
            paper: PAPER,
            left: LEFT,
            right: "Σᴸ(G, op)(SHUF(G)(⋈ᴸ(KL, KR, f)(SHUF(KL)(L), SHUF(KR)(R))))",
            conditions: &[
                "a contraction of two operands",
                "some joined key dimension is not in G",
            ],
            note: "along each axis of a mesh",
        },
        simplify: None,
        expand: Some(|view, _, term, found| contraction(view, term, found, cross)),
    },
    Row {
        info: RuleInfo {
            name: "RMM",
            family: FAMILY,
            paper: PAPER,
            left: LEFT,
            right: "Σᴸ(G, op)(⋈ᴸ(f)(SHUF(G)(λᴸ(insertDim, duplicate)(L)), SHUF(G)(λᴸ(insertDim, duplicate)(R))))",
            conditions: &[
                "a contraction of two operands",
                "each operand lacks a key dimension of G that the other has",
            ],
            note: "each operand is repeated along the key dimensions of G that it lacks",
        },
        simplify: None,
        expand: Some(|view, _, term, found| contraction(view, term, found, replicate)),
    },
];

/// A contraction whose result is wanted somewhere.
struct Contraction<'a> {
    aggregate: &'a Algebra,
    join: &'a Algebra,
    keys: &'a [KeyRange],
    maps: [&'a [u32]; 2],
    /// The joined key dimensions that are kept, in the result's order.
    kept: Vec<u32>,
    operands: [Id; 2],
    kinds: [&'a Content; 2],
    at: &'a Placement,
}

fn logical<'a>(view: &View<'a>, id: Id) -> Option<&'a Content> {
    match &view.graph[id].data {
        Kind::Logical(content) => Some(content),
        _ => None,
    }
}

/// The forms in which each contraction that is wanted somewhere can be made there.
fn contraction(
    view: &View<'_>,
    term: &Term,
    found: &mut Vec<Sides>,
    forms: fn(&View<'_>, &Contraction<'_>) -> Vec<Tree>,
) {
    let Operator::At(at) = &term.operator else {
        return;
    };
    if at.is_partial() {
        return;
    }
    for sum in view.members(term.children[0]) {
        let Operator::Tra(aggregate @ Algebra::Aggregate { keep, .. }) = &sum.operator else {
            continue;
        };
        for product in view.members(sum.children[0]) {
            let Operator::Tra(join) = &product.operator else {
                continue;
            };
            let (
                Algebra::Join {
                    keys,
                    inputs,
                    keep: joined,
                    ..
                },
                [left, right],
            ) = (join, &product.children[..])
            else {
                continue;
            };
            let kept = keep.iter().map(|key| joined.get(*key as usize).copied());
            let (Some(kept), Some(l), Some(r)) = (
                kept.collect::<Option<Vec<u32>>>(),
                logical(view, *left),
                logical(view, *right),
            ) else {
                continue;
            };
            let of = Contraction {
                aggregate,
                join,
                keys,
                maps: [&inputs[0], &inputs[1]],
                kept,
                operands: [*left, *right],
                kinds: [l, r],
                at,
            };
            let inner = Tree::Node(
                product.operator.clone(),
                vec![Tree::Class(*left), Tree::Class(*right)],
            );
            let whole = Tree::Node(sum.operator.clone(), vec![inner]);
            for form in forms(view, &of) {
                found.push((Tree::at(at.clone(), whole.clone()), form));
            }
        }
    }
}

/// The result of a join at a placement: shuffled for the aggregation, aggregated, and sliced if need be.
fn summed(view: &View<'_>, of: &Contraction<'_>, product: Tree, kind: &Content) -> Option<Tree> {
    let need = local::required(of.aggregate, &[kind], of.at).pop()?;
    let natural = view.natural(of.aggregate, &[(kind, &need)])?;
    let sum = Tree::unary(of.aggregate.clone(), Tree::moved(need, product));
    Some(match natural == *of.at {
        true => sum,
        false => Tree::moved(of.at.clone(), sum),
    })
}

fn product_kind(view: &View<'_>, of: &Contraction<'_>) -> Option<Content> {
    super::content::result_of(of.join, &of.kinds, view.kernels())
}

fn broadcast(view: &View<'_>, of: &Contraction<'_>) -> Vec<Tree> {
    let Some(kind) = product_kind(view, of) else {
        return vec![];
    };
    let every = Placement::every(view.mesh().axes.len());
    let mut forms = vec![];
    for stays in 0..2 {
        for at in view.placements(of.operands[stays]) {
            if at.is_partial() || at.is_every() {
                continue;
            }
            let operands = (0..2).map(|number| {
                let there = if number == stays { at } else { &every };
                Tree::at(there.clone(), Tree::Class(of.operands[number]))
            });
            let product = Tree::local(of.join.clone(), operands.collect());
            forms.extend(summed(view, of, product, &kind));
        }
    }
    forms
}

fn cross(view: &View<'_>, of: &Contraction<'_>) -> Vec<Tree> {
    let contracted: Vec<u32> = of.maps[0]
        .iter()
        .copied()
        .filter(|key| of.maps[1].contains(key) && !of.kept.contains(key))
        .collect();
    let Some(kind) = product_kind(view, of) else {
        return vec![];
    };
    if contracted.is_empty() {
        return vec![];
    }
    let mut forms = vec![];
    for axis in 0..view.mesh().axes.len() {
        let operands = (0..2).map(|number| {
            let by = contracted.iter().filter_map(|key| {
                let own = of.maps[number].iter().position(|to| to == key);
                own.map(|at| at as u32)
            });
            let mut at = elsewhere(of, number, axis);
            at.0[axis] = Role::Keys(by.collect());
            Tree::at(at.on(view.mesh()), Tree::Class(of.operands[number]))
        });
        let product = Tree::local(of.join.clone(), operands.collect());
        forms.extend(summed(view, of, product, &kind));
    }
    forms
}

/// Where an operand is along the other axes, if the result is wanted where it is.
fn elsewhere(of: &Contraction<'_>, number: usize, axis: usize) -> Placement {
    let role = |(at, role): (usize, &Role)| match role {
        Role::Keys(dims) if at != axis => {
            let own = dims.iter().map(|dim| {
                let joined = of.kept.get(*dim as usize)?;
                let own = of.maps[number].iter().position(|to| to == joined);
                own.map(|at| at as u32)
            });
            own.collect::<Option<_>>().map_or(Role::Every, Role::Keys)
        }
        _ => Role::Every,
    };
    Placement(of.at.0.iter().enumerate().map(role).collect())
}

fn replicate(view: &View<'_>, of: &Contraction<'_>) -> Vec<Tree> {
    let lacks = |number: usize| -> Vec<u32> {
        let missing = of.kept.iter().copied();
        missing
            .filter(|key| !of.maps[number].contains(key))
            .collect()
    };
    let missing = [lacks(0), lacks(1)];
    let Algebra::Join { keep, function, .. } = of.join else {
        return vec![];
    };
    if missing.iter().any(Vec::is_empty) {
        return vec![];
    }
    let mut forms = vec![];
    for axis in 0..view.mesh().axes.len() {
        let (mut maps, mut operands) = (vec![], vec![]);
        for (number, missing) in missing.iter().enumerate() {
            let mut map = of.maps[number].to_vec();
            let mut at = elsewhere(of, number, axis);
            let mut tree = Tree::at(
                own_start(view, of, number),
                Tree::Class(of.operands[number]),
            );
            for key in missing {
                let repeat = Algebra::Replicate {
                    at: map.len() as u32,
                    key: of.keys[*key as usize].clone(),
                };
                tree = Tree::unary(repeat, tree);
                map.push(*key);
            }
            let by = of
                .kept
                .iter()
                .filter_map(|key| map.iter().position(|to| to == key));
            at.0[axis] = Role::Keys(by.map(|at| at as u32).collect());
            operands.push(Tree::moved(at.on(view.mesh()), tree));
            maps.push(map);
        }
        let join = Algebra::Join {
            keys: of.keys.to_vec(),
            inputs: maps,
            keep: keep.clone(),
            function: function.clone(),
        };
        let sum = Tree::unary(of.aggregate.clone(), Tree::local(join, operands));
        forms.push(Tree::moved(of.at.clone(), sum));
    }
    forms
}

/// A placement at which an operand is known; everywhere, if it is known nowhere.
fn own_start(view: &View<'_>, of: &Contraction<'_>, number: usize) -> Placement {
    let known = view.placements(of.operands[number]).iter();
    let whole = known.clone().find(|at| !at.is_partial() && !at.is_every());
    let every = || Placement::every(view.mesh().axes.len());
    whole.cloned().unwrap_or_else(every)
}
