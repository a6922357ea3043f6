//! R2-1 … R2-7: BCAST and SHUF change places with local operators, or go away.
//!
//! Towards the normal form a move goes below the operator, whose inputs are then moved to where the result is wanted. Away from it, the
//! move goes above. Must not know contents.
//!
//! ```text
//! R2-6   SHUF(⟨0⟩)(⋈ᴸ(⟨0,1⟩, ⟨1,2⟩, f)(BCAST(A), B)) ≡ ⋈ᴸ(⟨0,1⟩, ⟨1,2⟩, f)(SHUF(⟨0⟩)(BCAST(A)), BCAST(B))
//! ```

use super::graph::{Tree, View};
use super::language::{Algebra, Operator, Term};
use super::placement::{Placement, Role};
use super::row::{Row, Sides};
use crate::rules::RuleInfo;
use egg::Id;

const FAMILY: &str = "re-partition";
const PAPER: &str = "thesis, section 3.3.2";

/// The rows of this family.
pub const ROWS: &[Row] = &[
    Row {
        info: RuleInfo {
            name: "R2-1",
            family: FAMILY,
            paper: PAPER,
            left: "SHUF(D2)(SHUF(D1)(R)), BCAST(BCAST(R))",
            right: "SHUF(D2)(R), BCAST(R)",
            conditions: &["R can be moved there at once: no axis becomes partial by a move"],
            note: "any sequence of BCAST and SHUF is its last member",
        },
        simplify: Some(last_move),
        expand: None,
    },
    Row {
        info: RuleInfo {
            name: "already there",
            family: FAMILY,
            paper: PAPER,
            left: "SHUF(D)(R), BCAST(R)",
            right: "R",
            conditions: &["R is at the very placement that the move gives"],
            note: "with this, R2-1 … R2-7 say which moves may be left out",
        },
        simplify: Some(already_there),
        expand: None,
    },
    Row {
        info: RuleInfo {
            name: "source",
            family: FAMILY,
            paper: "algebra, section 4: where data starts",
            left: "SHUF(D)(At(E, tensor)), BCAST(At(E, tensor))",
            right: "At(D, tensor)",
            conditions: &["the tensor is not computed here", "it holds no addends"],
            note: "a source can be made at any placement; its price is counted elsewhere",
        },
        simplify: Some(source),
        expand: None,
    },
    Row {
        info: RuleInfo {
            name: "R2-2",
            family: FAMILY,
            paper: PAPER,
            left: "SHUF(D)(σᴸ(p)(R)), BCAST(σᴸ(p)(R))",
            right: "σᴸ(p)(SHUF(D)(R)), σᴸ(p)(BCAST(R))",
            conditions: &[],
            note: "a filter leaves the frontier, and with it the mapping of keys to sites",
        },
        simplify: Some(|view, _, term, found| push(view, term, found, &is_filter)),
        expand: Some(|view, id, term, found| pull(view, id, term, found, &is_filter)),
    },
    Row {
        info: RuleInfo {
            name: "R2-3",
            family: FAMILY,
            paper: PAPER,
            left: "SHUF(D)(λᴸ(k, f)(R)), BCAST(λᴸ(k, f)(R))",
            right: "λᴸ(k, f)(SHUF(k⁻¹(D))(R)), λᴸ(k, f)(BCAST(R))",
            conditions: &[
                "every key dimension of D is one of R under another number; else R is broadcast and the result cut",
            ],
            note: "the paper has it for the identity on keys; a key map that only renumbers D gives the same mapping to sites",
        },
        simplify: Some(|view, _, term, found| push(view, term, found, &is_map)),
        expand: Some(|view, id, term, found| pull(view, id, term, found, &is_map)),
    },
    Row {
        info: RuleInfo {
            name: "R2-4",
            family: FAMILY,
            paper: PAPER,
            left: "Σᴸ(G, op)(SHUF(D)(R))",
            right: "SHUF(D′)(Σᴸ(G, op)(R))",
            conditions: &["R is placed by some P ⊆ G: its groups are whole", "D ⊆ G"],
            note: "as printed it asks for D ⊆ G only, and drops the shuffle even where R's groups are spread; D′ is D's places in G, and where the result is there already the shuffle goes",
        },
        simplify: Some(|view, _, term, found| push(view, term, found, &is_whole)),
        expand: Some(|view, id, term, found| pull(view, id, term, found, &is_whole)),
    },
    Row {
        info: RuleInfo {
            name: "R2-5",
            family: FAMILY,
            paper: PAPER,
            left: "Σᴸ(G, op)(SHUF(D)(R))",
            right: "SHUF(D′)(Σᴸ(G, op)(R)), the second phase of Σᴸ in the SHUF: for a sum, a reduce-scatter",
            conditions: &[
                "op is associative and commutative",
                "D ⊆ G",
                "along an axis R is cut by key dimensions outside G, and every coordinate has an addend of every group",
            ],
            note: "as printed it asks for G ⊂ D, which leaves groups spread",
        },
        simplify: Some(|view, _, term, found| push(view, term, found, &is_spread)),
        expand: Some(|view, id, term, found| pull(view, id, term, found, &is_spread)),
    },
    Row {
        info: RuleInfo {
            name: "R2-6",
            family: FAMILY,
            paper: PAPER,
            left: "SHUF(D)(⋈ᴸ(KL, KR, f)(BCAST(L), R))",
            right: "SHUF(D)(⋈ᴸ(KL, KR, f)(L, BCAST(R))), SHUF(D)(⋈ᴸ(KL, KR, f)(SHUF(KL)(L), SHUF(KR)(R))), or at D itself",
            conditions: &["the operands hold no addends"],
            note: "the three forms have different placements, so they are equal under a move to one placement only",
        },
        simplify: Some(|view, _, term, found| push(view, term, found, &is_join)),
        expand: Some(three_joins),
    },
    Row {
        info: RuleInfo {
            name: "R2-7",
            family: FAMILY,
            paper: PAPER,
            left: "SHUF(D)(⋈ᴸ(KL, KR, f)(SHUF(KL)(L), SHUF(KR)(R)))",
            right: "⋈ᴸ(KL, KR, f)(SHUF(KL)(L), SHUF(KR)(R))",
            conditions: &["D is where KL is in the result"],
            note: "as printed it asks for D ⊆ KL; PART by KL is PART by D only for KL ⊆ D, and a placement here is a mapping, so D ⊋ KL is left to R2-4, whose aggregation asks only for whole groups",
        },
        simplify: Some(joined_there),
        expand: None,
    },
];

type Accept<'a> = &'a dyn Fn(&View<'_>, &Algebra, &[Id]) -> bool;

fn is_filter(_: &View<'_>, algebra: &Algebra, _: &[Id]) -> bool {
    matches!(algebra, Algebra::Filter(_))
}

fn is_map(_: &View<'_>, algebra: &Algebra, _: &[Id]) -> bool {
    matches!(
        algebra,
        Algebra::Map { .. } | Algebra::Replicate { .. } | Algebra::Tile { .. }
    )
}

fn is_join(view: &View<'_>, algebra: &Algebra, inputs: &[Id]) -> bool {
    matches!(algebra, Algebra::Join { .. })
        && inputs
            .iter()
            .all(|id| view.placed(*id).is_some_and(|(_, at)| !at.is_partial()))
}

fn is_whole(view: &View<'_>, algebra: &Algebra, inputs: &[Id]) -> bool {
    grouping(view, algebra, inputs) == Some(false)
}

fn is_spread(view: &View<'_>, algebra: &Algebra, inputs: &[Id]) -> bool {
    grouping(view, algebra, inputs) == Some(true)
}

/// Returns whether an aggregation of a relation where it is makes addends of whole tuples; `None` if it is no aggregation, or has no placement.
fn grouping(view: &View<'_>, algebra: &Algebra, inputs: &[Id]) -> Option<bool> {
    if !matches!(algebra, Algebra::Aggregate { .. } | Algebra::Concat { .. }) {
        return None;
    }
    let placed = view.all_placed(inputs)?;
    let at = view.natural(algebra, &placed)?;
    let before = &placed.first()?.1;
    let mut axes = at.0.iter().zip(&before.0);
    Some(axes.any(|(after, before)| matches!(after, Role::Partial(_)) && after != before))
}

/// Move of an operator: operator of moves.
pub(super) fn push(view: &View<'_>, term: &Term, found: &mut Vec<Sides>, accept: Accept<'_>) {
    let Operator::Move(to) = &term.operator else {
        return;
    };
    if to.is_partial() {
        return;
    }
    for (algebra, inputs) in view.locals(term.children[0]) {
        if accept(view, algebra, inputs)
            && let Some(right) = view.pushed(to, algebra, inputs)
        {
            found.push((spelled(term, algebra, inputs), right));
        }
    }
}

/// Operator of a move: move of the operator where its input is.
pub(super) fn pull(
    view: &View<'_>,
    id: Id,
    term: &Term,
    found: &mut Vec<Sides>,
    accept: Accept<'_>,
) {
    let (Operator::Local(algebra), Some((_, result))) = (&term.operator, view.placed(id)) else {
        return;
    };
    let [child] = term.children[..] else { return };
    for (to, input) in view.moves(child) {
        let Some(placed) = view.all_placed(&[input]) else {
            continue;
        };
        if !accept(view, algebra, &[input]) || view.natural(algebra, &placed).is_none() {
            continue;
        }
        let left = Tree::moved(to.clone(), Tree::Class(input));
        let right = Tree::unary(algebra.clone(), Tree::Class(input));
        found.push((
            Tree::unary(algebra.clone(), left),
            Tree::moved(result.clone(), right),
        ));
    }
}

/// The move with the operator under it spelled out.
pub(super) fn spelled(term: &Term, algebra: &Algebra, inputs: &[Id]) -> Tree {
    let inner = inputs.iter().map(|id| Tree::Class(*id)).collect();
    Tree::Node(
        term.operator.clone(),
        vec![Tree::local(algebra.clone(), inner)],
    )
}

fn last_move(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    let Operator::Move(to) = &term.operator else {
        return;
    };
    for (between, input) in view.moves(term.children[0]) {
        if view
            .placed(input)
            .is_some_and(|(_, from)| from.moves_to(to))
        {
            let inner = Tree::moved(between.clone(), Tree::Class(input));
            found.push((
                Tree::moved(to.clone(), inner),
                Tree::moved(to.clone(), Tree::Class(input)),
            ));
        }
    }
}

fn already_there(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    if let Operator::Move(to) = &term.operator
        && view
            .placed(term.children[0])
            .is_some_and(|(_, at)| at == to)
    {
        let input = Tree::Class(term.children[0]);
        found.push((Tree::moved(to.clone(), input.clone()), input));
    }
}

fn source(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    let Operator::Move(to) = &term.operator else {
        return;
    };
    for start in view.members(term.children[0]) {
        let Operator::At(from) = &start.operator else {
            continue;
        };
        let tensor = start.children[0];
        let is_leaf = view
            .members(tensor)
            .iter()
            .any(|term| matches!(term.operator, Operator::Tensor(_)));
        if is_leaf && !from.is_partial() && !to.is_partial() {
            let tensor = Tree::Class(tensor);
            found.push((
                Tree::moved(to.clone(), Tree::at(from.clone(), tensor.clone())),
                Tree::at(to.clone(), tensor),
            ));
        }
    }
}

fn joined_there(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    let Operator::Move(to) = &term.operator else {
        return;
    };
    for (algebra, inputs) in view.locals(term.children[0]) {
        let Some(placed) = view.all_placed(inputs) else {
            continue;
        };
        let shuffled = placed
            .iter()
            .all(|(_, at)| !at.is_every() && !at.is_partial());
        if matches!(algebra, Algebra::Join { .. })
            && inputs.len() > 1
            && shuffled
            && view.natural(algebra, &placed).as_ref() == Some(to)
        {
            let operands = inputs.iter().map(|id| Tree::Class(*id)).collect();
            found.push((
                spelled(term, algebra, inputs),
                Tree::local(algebra.clone(), operands),
            ));
        }
    }
}

/// The three forms of a join of two operands, each moved to where this one is.
fn three_joins(view: &View<'_>, id: Id, term: &Term, found: &mut Vec<Sides>) {
    let (Operator::Local(algebra), Some((_, result))) = (&term.operator, view.placed(id)) else {
        return;
    };
    let Algebra::Join { inputs: maps, .. } = algebra else {
        return;
    };
    let [left, right] = term.children[..] else {
        return;
    };
    if !is_join(view, algebra, &term.children) {
        return;
    }
    let axes = view.mesh().axes.len();
    let every = Placement::every(axes);
    let mut forms = vec![
        vec![view.there(left, &every), Tree::Class(right)],
        vec![Tree::Class(left), view.there(right, &every)],
    ];
    let joined: Vec<u32> = maps[0]
        .iter()
        .copied()
        .filter(|key| maps[1].contains(key))
        .collect();
    for axis in 0..axes {
        // Both operands by the joined key dimensions along one axis, whole along the others.
        let by = |map: &[u32]| {
            let own = joined
                .iter()
                .filter_map(|key| map.iter().position(|to| to == key));
            let mut at = every.clone();
            at.0[axis] = Role::Keys(own.map(|at| at as u32).collect());
            at.on(view.mesh())
        };
        forms.push(vec![
            view.there(left, &by(&maps[0])),
            view.there(right, &by(&maps[1])),
        ]);
    }
    let own = term.children.iter().map(|id| Tree::Class(*id)).collect();
    let own = Tree::local(algebra.clone(), own);
    for form in forms {
        let other = Tree::local(algebra.clone(), form);
        if other != own {
            found.push((own.clone(), Tree::moved(result.clone(), other)));
        }
    }
}
