//! R1-1 … R1-7: kernels are composed, filters and maps change places with joins and aggregations.
//!
//! None of them moves a tuple. Must not know moves.
//!
//! ```text
//! R1-6   σᴸ(k0 = k1)(⋈ᴸ(⟨0,1⟩, ⟨0,1⟩, matAdd)(X, Y)) ≡ ⋈ᴸ(⟨0,1⟩, ⟨0,1⟩, matAdd)(σᴸ(k0 = k1)(X), σᴸ(k0 = k1)(Y))
//! ```

use super::function::ArrayFunction;
use super::graph::{Tree, View};
use super::language::{Algebra, Operator, Term};
use super::predicate::Predicate;
use super::row::{Row, Sides};
use crate::rules::RuleInfo;
use egg::Id;

const FAMILY: &str = "kernel composition";
const PAPER: &str = "thesis, section 3.3.2";

/// The rows of this family.
pub const ROWS: &[Row] = &[
    Row {
        info: RuleInfo {
            name: "R1-1",
            family: FAMILY,
            paper: PAPER,
            left: "σᴸ(p1)(σᴸ(p2)(R))",
            right: "σᴸ(p1 ∧ p2)(R)",
            conditions: &[],
            note: "",
        },
        simplify: Some(merge_filters),
        expand: None,
    },
    Row {
        info: RuleInfo {
            name: "R1-2",
            family: FAMILY,
            paper: PAPER,
            left: "λᴸ(k1, f1)(λᴸ(k2, f2)(R))",
            right: "λᴸ(k1 ∘ k2, f1 ∘ f2)(R)",
            conditions: &[
                "both maps give one tuple of each",
                "f1 takes arrays as f2 gives them: no key dimension that cuts them is fixed in between",
            ],
            note: "",
        },
        simplify: Some(merge_maps),
        expand: None,
    },
    Row {
        info: RuleInfo {
            name: "R1-3",
            family: FAMILY,
            paper: PAPER,
            left: "σᴸ(p)(λᴸ(id, f)(R))",
            right: "λᴸ(id, f)(σᴸ(p)(R))",
            conditions: &["the key map is the identity"],
            note: "",
        },
        simplify: Some(filter_before_map),
        expand: Some(map_before_filter),
    },
    Row {
        info: RuleInfo {
            name: "R1-4",
            family: FAMILY,
            paper: PAPER,
            left: "λᴸ(id, f)(Σᴸ(G, op)(R))",
            right: "Σᴸ(G, f ∘ op)(R)",
            conditions: &["the key map is the identity"],
            note: "",
        },
        simplify: Some(finish_aggregate),
        expand: None,
    },
    Row {
        info: RuleInfo {
            name: "R1-4 distributive",
            family: FAMILY,
            paper: PAPER,
            left: "λᴸ(id, f)(Σᴸ(G, op)(R))",
            right: "Σᴸ(G, op ∘ f)(R)",
            conditions: &[
                "the key map is the identity",
                "f(op(x, y)) = op(f(x), f(y))",
            ],
            note: "distributivity is read off the kernel: selections commute with one-column carriers, neg with sum, relu with max and min",
        },
        simplify: None,
        expand: Some(map_before_aggregate),
    },
    Row {
        info: RuleInfo {
            name: "R1-5",
            family: FAMILY,
            paper: PAPER,
            left: "σᴸ(p)(Σᴸ(G, op)(R))",
            right: "Σᴸ(G, op)(σᴸ(p(G))(R))",
            conditions: &[
                "p depends on the key dimensions G only",
                "G is kept in the pieces that it has",
            ],
            note: "p's key positions are those of the result on the left and those of G on the right",
        },
        simplify: Some(filter_before_aggregate),
        expand: Some(aggregate_before_filter),
    },
    Row {
        info: RuleInfo {
            name: "R1-6",
            family: FAMILY,
            paper: PAPER,
            left: "σᴸ(p)(⋈ᴸ(KL, KR, f)(L, R))",
            right: "⋈ᴸ(KL, KR, f)(σᴸ(p(KL))(L), σᴸ(p(KR))(R))",
            conditions: &["p depends on joined key dimensions only"],
            note: "p is translated to the key positions of each side",
        },
        simplify: Some(filter_before_join),
        expand: None,
    },
    Row {
        info: RuleInfo {
            name: "R1-7",
            family: FAMILY,
            paper: PAPER,
            left: "λᴸ(k, f)(⋈ᴸ(KL, KR, g)(L, R))",
            right: "⋈ᴸ(k(KL), k(KR), f ∘ g)(L, R)",
            conditions: &[
                "the map gives one tuple of each",
                "f takes arrays as g gives them",
            ],
            note: "",
        },
        simplify: Some(map_into_join),
        expand: None,
    },
    Row {
        info: RuleInfo {
            name: "R1-7 distributive",
            family: FAMILY,
            paper: PAPER,
            left: "λᴸ(k, f)(⋈ᴸ(KL, KR, g)(L, R))",
            right: "⋈ᴸ(k(KL), k(KR), g ∘ f)(L, R)",
            conditions: &[
                "the map gives one tuple of each",
                "f(g(x, y)) = g(f(x), f(y))",
            ],
            note: "f selects elements and g works element by element",
        },
        simplify: None,
        expand: Some(map_into_operands),
    },
];

/// The filters of a term, if it is one.
fn filter(term: &Term) -> Option<(&Predicate, Id)> {
    match &term.operator {
        Operator::Local(Algebra::Filter(by)) => Some((by, term.children[0])),
        _ => None,
    }
}

/// Key map, array map and operand, if the term is a map.
fn map(term: &Term) -> Option<(&[u32], &ArrayFunction, Id)> {
    match &term.operator {
        Operator::Local(Algebra::Map { keys, function }) => {
            Some((keys, function, term.children[0]))
        }
        _ => None,
    }
}

/// Array map and operand, if the term is a map with the identity on keys.
fn transform<'t>(view: &View<'_>, term: &'t Term) -> Option<(&'t ArrayFunction, Id)> {
    let (keys, function, child) = map(term)?;
    let (kind, _) = view.placed(child)?;
    Algebra::keeps_keys(keys, kind.keys.len()).then_some((function, child))
}

fn same(term: &Term) -> Vec<Tree> {
    term.children.iter().map(|id| Tree::Class(*id)).collect()
}

/// The term itself over one of its operands, spelled out.
fn over(term: &Term, algebra: &Algebra, inputs: &[Id]) -> Tree {
    let inner = inputs.iter().map(|id| Tree::Class(*id)).collect();
    Tree::Node(
        term.operator.clone(),
        vec![Tree::local(algebra.clone(), inner)],
    )
}

fn merge_filters(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    let Some((by, child)) = filter(term) else {
        return;
    };
    for (algebra, inputs) in view.locals(child) {
        if let Algebra::Filter(inner) = algebra {
            let both = Algebra::Filter(by.and(inner));
            found.push((
                over(term, algebra, inputs),
                Tree::unary(both, Tree::Class(inputs[0])),
            ));
        }
    }
}

fn merge_maps(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    let Some((outer_keys, outer, child)) = map(term) else {
        return;
    };
    for (algebra, inputs) in view.locals(child) {
        let Algebra::Map { keys, function } = algebra else {
            continue;
        };
        let back = |key: u32| keys.get(key as usize).copied();
        let composed: Option<Vec<u32>> = outer_keys.iter().map(|key| back(*key)).collect();
        if let (Some(keys), Some(outer)) = (composed, outer.rename(&back)) {
            let both = Algebra::Map {
                keys,
                function: outer.after(function),
            };
            found.push((
                over(term, algebra, inputs),
                Tree::unary(both, Tree::Class(inputs[0])),
            ));
        }
    }
}

fn filter_before_map(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    let Some((by, child)) = filter(term) else {
        return;
    };
    for inner in view.members(child) {
        if let Some((function, input)) = transform(view, inner)
            && let Operator::Local(algebra) = &inner.operator
            && !function.is_identity()
        {
            let filtered = Tree::unary(Algebra::Filter(by.clone()), Tree::Class(input));
            found.push((
                over(term, algebra, &inner.children),
                Tree::unary(algebra.clone(), filtered),
            ));
        }
    }
}

fn map_before_filter(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    let (Some((_, child)), Operator::Local(algebra)) = (transform(view, term), &term.operator)
    else {
        return;
    };
    for inner in view.members(child) {
        if let (Some((_, input)), Operator::Local(filter)) = (filter(inner), &inner.operator) {
            let mapped = Tree::unary(algebra.clone(), Tree::Class(input));
            found.push((
                over(term, filter, &inner.children),
                Tree::unary(filter.clone(), mapped),
            ));
        }
    }
}

fn finish_aggregate(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    let Some((function, child)) = transform(view, term) else {
        return;
    };
    for (algebra, inputs) in view.locals(child) {
        if let Algebra::Aggregate {
            keep,
            coarse,
            reduction,
            before,
            after,
        } = algebra
            && !function.is_identity()
        {
            let finished = Algebra::Aggregate {
                keep: keep.clone(),
                coarse: coarse.clone(),
                reduction: *reduction,
                before: before.clone(),
                after: function.after(after),
            };
            found.push((
                over(term, algebra, inputs),
                Tree::unary(finished, Tree::Class(inputs[0])),
            ));
        }
    }
}

fn map_before_aggregate(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    let Some((function, child)) = transform(view, term) else {
        return;
    };
    for (algebra, inputs) in view.locals(child) {
        let Algebra::Aggregate {
            keep,
            coarse,
            reduction,
            before,
            after,
        } = algebra
        else {
            continue;
        };
        let commutes = after.is_identity()
            && coarse.is_empty()
            && !function.is_identity()
            && view.kernels().commutes(function, *reduction);
        let inside = function.rename(&|key| keep.get(key as usize).copied());
        if let (true, Some(inside)) = (commutes, inside) {
            let mapped = Algebra::Aggregate {
                keep: keep.clone(),
                coarse: vec![],
                reduction: *reduction,
                before: inside.after(before),
                after: ArrayFunction::IDENTITY,
            };
            found.push((
                over(term, algebra, inputs),
                Tree::unary(mapped, Tree::Class(inputs[0])),
            ));
        }
    }
}

fn filter_before_aggregate(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    let Some((by, child)) = filter(term) else {
        return;
    };
    for (algebra, inputs) in view.locals(child) {
        if let Algebra::Aggregate { keep, coarse, .. } = algebra
            && coarse.is_empty()
            && let Some(inside) = by.rename(|key| keep.get(key as usize).copied())
        {
            let filtered = Tree::unary(Algebra::Filter(inside), Tree::Class(inputs[0]));
            found.push((
                over(term, algebra, inputs),
                Tree::unary(algebra.clone(), filtered),
            ));
        }
    }
}

fn aggregate_before_filter(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    let Operator::Local(Algebra::Aggregate { keep, coarse, .. }) = &term.operator else {
        return;
    };
    if !coarse.is_empty() {
        return;
    }
    let place = |key: u32| keep.iter().position(|k| *k == key).map(|at| at as u32);
    for inner in view.members(term.children[0]) {
        let Some((by, input)) = filter(inner) else {
            continue;
        };
        if let (Some(outside), Operator::Local(filter)) = (by.rename(place), &inner.operator) {
            let all = Tree::Node(term.operator.clone(), vec![Tree::Class(input)]);
            found.push((
                over(term, filter, &inner.children),
                Tree::unary(Algebra::Filter(outside), all),
            ));
        }
    }
}

fn filter_before_join(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    let Some((by, child)) = filter(term) else {
        return;
    };
    for inner in view.members(child) {
        let Operator::Local(algebra @ Algebra::Join { inputs, keep, .. }) = &inner.operator else {
            continue;
        };
        let sides = inputs.iter().zip(&inner.children).map(|(map, input)| {
            let own = by.rename(|key| {
                let joined = keep.get(key as usize)?;
                map.iter().position(|to| to == joined).map(|at| at as u32)
            })?;
            Some(Tree::unary(Algebra::Filter(own), Tree::Class(*input)))
        });
        if let Some(filtered) = sides.collect::<Option<Vec<Tree>>>()
            && !filtered.is_empty()
        {
            let left = Tree::Node(
                term.operator.clone(),
                vec![Tree::local(algebra.clone(), same(inner))],
            );
            found.push((left, Tree::local(algebra.clone(), filtered)));
        }
    }
}

fn map_into_join(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    into_join(view, term, found, |outer, function| {
        Some(outer.after(function))
    });
}

fn map_into_operands(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    into_join(view, term, found, |outer, function| {
        let ((selection, ranges), (inner, _)) = (outer.as_kernel()?, function.as_kernel()?);
        let kernel = view.kernels().distributed(selection, inner)?;
        let count = view.kernels().with(inner, |kernel| kernel.operands.len());
        let arguments = (0..count as u32).map(|number| ArrayFunction::Apply {
            kernel: selection,
            ranges: ranges.to_vec(),
            arguments: vec![ArrayFunction::Operand(number)],
        });
        Some(ArrayFunction::Apply {
            kernel,
            ranges: ranges.to_vec(),
            arguments: arguments.collect(),
        })
    });
}

/// A map of a join as one join; `compose` is given the array map, over the joined key's dimensions, and the join's function.
fn into_join(
    view: &View<'_>,
    term: &Term,
    found: &mut Vec<Sides>,
    compose: impl Fn(&ArrayFunction, &ArrayFunction) -> Option<ArrayFunction>,
) {
    let Some((map_keys, outer, child)) = map(term) else {
        return;
    };
    for (algebra, inputs) in view.locals(child) {
        let Algebra::Join {
            keys,
            inputs: maps,
            keep,
            function,
        } = algebra
        else {
            continue;
        };
        let joined = |key: u32| keep.get(key as usize).copied();
        let kept: Option<Vec<u32>> = map_keys.iter().map(|key| joined(*key)).collect();
        let function = outer
            .rename(&joined)
            .and_then(|outer| compose(&outer, function));
        if let (Some(keep), Some(function)) = (kept, function) {
            let one = Algebra::Join {
                keys: keys.clone(),
                inputs: maps.clone(),
                keep,
                function,
            };
            let operands = inputs.iter().map(|id| Tree::Class(*id)).collect();
            found.push((over(term, algebra, inputs), Tree::local(one, operands)));
        }
    }
}
