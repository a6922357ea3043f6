//! Collectives: moves that are made of others, addends that are added before they are moved, and reductions in phases.
//!
//! Must not know prices.
//!
//! ```text
//! all-reduce   BCAST(R @ partial sum) ≡ BCAST(SHUF(⟨0⟩)(R)): a reduce-scatter, then an all-gather
//! ```

use super::graph::{Tree, View};
use super::language::{Algebra, Operator, Term};
use super::local::commutative;
use super::moves::{pull, push, spelled};
use super::placement::{Placement, Role};
use super::row::{Row, Sides};
use crate::rules::RuleInfo;
use egg::Id;

const FAMILY: &str = "collectives";
const BEYOND: &str = "beyond the paper";

/// The rows of this family.
pub const ROWS: &[Row] = &[
    Row {
        info: RuleInfo {
            name: "reduce-scatter",
            family: FAMILY,
            paper: BEYOND,
            left: "SHUF(D)(R @ partial × partial)",
            right: "SHUF(D)(SHUF(D on the first axis, partial)(R))",
            conditions: &["R holds addends along more than one axis"],
            note: "addends of several axes are combined axis by axis; along one axis it is R2-5",
        },
        simplify: None,
        expand: Some(reduce_by_axis),
    },
    Row {
        info: RuleInfo {
            name: "all-reduce",
            family: FAMILY,
            paper: BEYOND,
            left: "BCAST(R @ partial)",
            right: "BCAST(SHUF(⟨k⟩)(R))",
            conditions: &["R holds addends along an axis at all of whose coordinates it is wanted"],
            note: "a reduce-scatter by any key dimension, then an all-gather",
        },
        simplify: None,
        expand: Some(all_reduce),
    },
    Row {
        info: RuleInfo {
            name: "all-gather",
            family: FAMILY,
            paper: BEYOND,
            left: "BCAST(R @ D1 × D2)",
            right: "BCAST(SHUF(D1 × every)(R))",
            conditions: &["R is cut along more than one axis along which it is wanted everywhere"],
            note: "a broadcast may go axis by axis",
        },
        simplify: None,
        expand: Some(gather_by_axis),
    },
    Row {
        info: RuleInfo {
            name: "slice",
            family: FAMILY,
            paper: BEYOND,
            left: "⋈ᴸ(KL, KR, f)(SHUF(D)(L @ ALL), R)",
            right: "⋈ᴸ(KL, KR, f)(L, R)",
            conditions: &[
                "where L is cut, every coordinate held it",
                "R is cut by the same joined key dimensions",
            ],
            note: "every site holds the whole and reads the part that it needs: the SHUF moves nothing",
        },
        simplify: Some(slice),
        expand: None,
    },
    Row {
        info: RuleInfo {
            name: "delayed reduction",
            family: FAMILY,
            paper: BEYOND,
            left: "⋈ᴸ(KL, KR, add)(BCAST(L), BCAST(R)), L and R partial sums",
            right: "BCAST(⋈ᴸ(KL, KR, add)(L, R))",
            conditions: &[
                "the kernel is a sum of its operands",
                "every operand holds addends of a sum along the same axes",
            ],
            note: "ar(x) + ar(y) → ar(x + y): one reduction in place of two",
        },
        simplify: Some(|view, _, term, found| push(view, term, found, &is_added)),
        expand: Some(add_before_move),
    },
    Row {
        info: RuleInfo {
            name: "delayed map",
            family: FAMILY,
            paper: BEYOND,
            left: "λᴸ(k, f)(SHUF(D)(R)), R partial",
            right: "SHUF(D′)(λᴸ(k, f)(R))",
            conditions: &["f(op(x, y)) = op(f(x), f(y))"],
            note: "the unary case of delayed reduction",
        },
        simplify: None,
        expand: Some(|view, id, term, found| pull(view, id, term, found, &is_linear_map)),
    },
    Row {
        info: RuleInfo {
            name: "local pre-aggregation",
            family: FAMILY,
            paper: BEYOND,
            left: "Σᴸ(G, op)(R)",
            right: "Σᴸ(G in H, op)(Σᴸ(H, op)(R)), G ⊂ H",
            conditions: &[
                "op is associative; if it does not commute, the keys that are combined first are innermost in key order",
            ],
            note: "argmax and argmin prefer the first of equal values, so their phases keep the order of keys",
        },
        simplify: Some(one_phase),
        expand: Some(two_phases),
    },
];

fn is_added(view: &View<'_>, algebra: &Algebra, inputs: &[Id]) -> bool {
    matches!(algebra, Algebra::Join { .. })
        && view.all_placed(inputs).is_some_and(|placed| {
            placed.iter().any(|(_, at)| at.is_partial()) && view.natural(algebra, &placed).is_some()
        })
}

fn is_linear_map(view: &View<'_>, algebra: &Algebra, inputs: &[Id]) -> bool {
    matches!(algebra, Algebra::Map { .. })
        && view
            .all_placed(inputs)
            .is_some_and(|placed| placed[0].1.is_partial())
}

/// The placements on the way of a move: `next` changes the role of an axis from what is here to what is wanted there, or leaves it.
fn by_way_of(
    view: &View<'_>,
    term: &Term,
    found: &mut Vec<Sides>,
    ways: impl Fn(&Placement, &Placement, usize) -> Vec<Placement>,
) {
    let Operator::Move(to) = &term.operator else {
        return;
    };
    let input = term.children[0];
    let Some((content, from)) = view.placed(input) else {
        return;
    };
    for way in ways(from, to, content.keys.len()) {
        let way = way.on(view.mesh());
        let passes = way != *from && way != *to && from.moves_to(&way) && way.moves_to(to);
        if passes && way.fits(&content.keys, view.mesh()) {
            let first = Tree::moved(way, Tree::Class(input));
            found.push((
                Tree::moved(to.clone(), Tree::Class(input)),
                Tree::moved(to.clone(), first),
            ));
        }
    }
}

/// The axes of which both roles satisfy a condition.
fn axes(from: &Placement, to: &Placement, which: impl Fn(&Role, &Role) -> bool) -> Vec<usize> {
    let pairs = from.0.iter().zip(&to.0).enumerate();
    let chosen = pairs.filter(|(_, (from, to))| which(from, to));
    chosen.map(|(axis, _)| axis).collect()
}

fn reduce_by_axis(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    by_way_of(view, term, found, |from, to, _| {
        let partial = axes(from, to, |from, to| {
            matches!(from, Role::Partial(_)) && from != to
        });
        if partial.len() < 2 {
            return vec![];
        }
        let one = |axis: &usize| {
            let mut way = from.clone();
            way.0[*axis] = to.0[*axis].clone();
            way
        };
        partial.iter().map(one).collect()
    });
}

fn all_reduce(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    by_way_of(view, term, found, |from, to, keys| {
        let reduced = axes(from, to, |from, to| {
            matches!(from, Role::Partial(_)) && *to == Role::Every
        });
        let mut ways = vec![];
        for axis in reduced {
            for key in 0..keys as u32 {
                let mut way = to.clone();
                way.0[axis] = Role::Keys(vec![key]);
                ways.push(way);
            }
        }
        ways
    });
}

fn gather_by_axis(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    by_way_of(view, term, found, |from, to, _| {
        let gathered = axes(from, to, |from, to| {
            matches!(from, Role::Keys(_)) && *to == Role::Every
        });
        if gathered.len() < 2 {
            return vec![];
        }
        let one = |axis: &usize| {
            let mut way = from.clone();
            way.0[*axis] = Role::Every;
            way
        };
        gathered.iter().map(one).collect()
    });
}

fn slice(view: &View<'_>, id: Id, term: &Term, found: &mut Vec<Sides>) {
    let (Operator::Local(algebra), Some((_, result))) = (&term.operator, view.placed(id)) else {
        return;
    };
    if !matches!(algebra, Algebra::Join { .. }) {
        return;
    }
    for (at, child) in term.children.iter().enumerate() {
        for (to, input) in view.moves(*child) {
            let held = view
                .placed(input)
                .is_some_and(|(_, from)| from.slices_to(to));
            let mut inputs = term.children.clone();
            inputs[at] = input;
            let Some(placed) = view.all_placed(&inputs).filter(|_| held) else {
                continue;
            };
            if view.natural(algebra, &placed).as_ref() == Some(result) {
                let tree = |(n, id): (usize, &Id)| match n == at {
                    true => Tree::moved(to.clone(), Tree::Class(input)),
                    false => Tree::Class(*id),
                };
                let left = term.children.iter().enumerate().map(tree).collect();
                let right = inputs.iter().map(|id| Tree::Class(*id)).collect();
                found.push((
                    Tree::local(algebra.clone(), left),
                    Tree::local(algebra.clone(), right),
                ));
            }
        }
    }
}

fn add_before_move(view: &View<'_>, id: Id, term: &Term, found: &mut Vec<Sides>) {
    let (Operator::Local(algebra), Some((_, result))) = (&term.operator, view.placed(id)) else {
        return;
    };
    if !matches!(algebra, Algebra::Join { .. }) || term.children.is_empty() {
        return;
    }
    // One way of having had each operand before it was moved; all of them together.
    let mut ways: Vec<Vec<(Placement, Id)>> = vec![vec![]];
    for child in &term.children {
        let moves: Vec<(Placement, Id)> = view
            .moves(*child)
            .filter(|(_, input)| view.placed(*input).is_some_and(|(_, at)| at.is_partial()))
            .map(|(to, input)| (to.clone(), input))
            .collect();
        ways = ways
            .into_iter()
            .flat_map(|way| {
                let next =
                    |chosen: &(Placement, Id)| [&way[..], std::slice::from_ref(chosen)].concat();
                moves.iter().map(next).collect::<Vec<_>>()
            })
            .take(64)
            .collect();
    }
    for way in ways {
        let inputs: Vec<Id> = way.iter().map(|(_, id)| *id).collect();
        if is_added(view, algebra, &inputs) {
            let moved = way
                .iter()
                .map(|(to, id)| Tree::moved(to.clone(), Tree::Class(*id)));
            let plain = inputs.iter().map(|id| Tree::Class(*id)).collect();
            found.push((
                Tree::local(algebra.clone(), moved.collect()),
                Tree::moved(result.clone(), Tree::local(algebra.clone(), plain)),
            ));
        }
    }
}

/// Returns whether the key dimensions that the first phase takes away may go before the others.
fn in_order(commutes: bool, first: &[u32], then: &[u32]) -> bool {
    commutes || first.iter().all(|a| then.iter().all(|b| a > b))
}

fn two_phases(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    let Operator::Local(Algebra::Aggregate {
        keep,
        coarse,
        reduction,
        before,
        after,
    }) = &term.operator
    else {
        return;
    };
    if !coarse.is_empty() {
        return;
    }
    let input = term.children[0];
    let Some((kind, _)) = view.placed(input) else {
        return;
    };
    let reduced: Vec<u32> = (0..kind.keys.len() as u32)
        .filter(|k| !keep.contains(k))
        .collect();
    for first in &reduced {
        let then: Vec<u32> = reduced.iter().copied().filter(|k| k != first).collect();
        if then.is_empty() || !in_order(commutative(*reduction), &[*first], &then) {
            continue;
        }
        let between: Vec<u32> = (0..kind.keys.len() as u32).filter(|k| k != first).collect();
        let place = |key: &u32| between.iter().position(|k| k == key).map(|at| at as u32);
        let Some(rest) = keep.iter().map(place).collect::<Option<Vec<u32>>>() else {
            continue;
        };
        let inner = Algebra::Aggregate {
            keep: between,
            coarse: vec![],
            reduction: *reduction,
            before: before.clone(),
            after: super::function::ArrayFunction::IDENTITY,
        };
        let outer = Algebra::Aggregate {
            keep: rest,
            coarse: vec![],
            reduction: *reduction,
            before: super::function::ArrayFunction::IDENTITY,
            after: after.clone(),
        };
        let whole = Tree::Node(term.operator.clone(), vec![Tree::Class(input)]);
        let phases = Tree::unary(outer, Tree::unary(inner, Tree::Class(input)));
        found.push((whole, phases));
    }
}

fn one_phase(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    let Operator::Local(Algebra::Aggregate {
        keep,
        coarse,
        reduction,
        before,
        after,
    }) = &term.operator
    else {
        return;
    };
    if !coarse.is_empty() {
        return;
    }
    for (algebra, inputs) in view.locals(term.children[0]) {
        let Algebra::Aggregate {
            keep: between,
            coarse: blocks,
            reduction: inner,
            before: first,
            after: middle,
        } = algebra
        else {
            continue;
        };
        let Some((kind, at)) = view.placed(inputs[0]) else {
            continue;
        };
        let Some(kept) = keep
            .iter()
            .map(|key| between.get(*key as usize).copied())
            .collect::<Option<Vec<u32>>>()
        else {
            continue;
        };
        let all = 0..kind.keys.len() as u32;
        let gone: Vec<u32> = all.filter(|key| !between.contains(key)).collect();
        let then: Vec<u32> = between
            .iter()
            .copied()
            .filter(|k| !kept.contains(k))
            .collect();
        let ascending = between.windows(2).all(|pair| pair[0] < pair[1]);
        let commutes = commutative(*reduction);
        let plain =
            blocks.is_empty() && inner == reduction && before.is_identity() && middle.is_identity();
        if plain && !at.is_partial() && (commutes || ascending) && in_order(commutes, &gone, &then)
        {
            let one = Algebra::Aggregate {
                keep: kept,
                coarse: vec![],
                reduction: *reduction,
                before: first.clone(),
                after: after.clone(),
            };
            found.push((
                spelled(term, algebra, inputs),
                Tree::unary(one, Tree::Class(inputs[0])),
            ));
        }
    }
}
