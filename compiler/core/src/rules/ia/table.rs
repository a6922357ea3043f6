//! Table 3.1 and what BCAST and SHUF are: how contents and placed relations belong together.
//!
//! Each row reads a local operator of relations with known contents as the content that TRA's operator of that name gives, where the
//! operator's result is. Must not know which placement is best.
//!
//! ```text
//! 3.1-Σ   Σᴸ(G, op)(At(D, c)) ≡ At(D′, Σ(G, op)(c)),  D′ the places in G of D ⊆ G
//! ```

use super::content::Content;
use super::graph::{Tree, View};
use super::language::{Algebra, Operator, Term};
use super::local;
use super::placement::{Placement, Role};
use super::row::{Row, Sides};
use crate::rules::RuleInfo;
use egg::Id;
use ein_plan::Reduction;

const FAMILY: &str = "table 3.1";
const PAPER: &str = "thesis, table 3.1";

macro_rules! row {
    ($name:literal, $left:literal, $right:literal, $conditions:expr, $note:literal, $test:expr) => {
        Row {
            info: RuleInfo {
                name: $name,
                family: FAMILY,
                paper: PAPER,
                left: $left,
                right: $right,
                conditions: $conditions,
                note: $note,
            },
            simplify: Some(|view, _, term, found| {
                let test: fn(&Algebra) -> bool = $test;
                if let Operator::Local(algebra) = &term.operator
                    && test(algebra)
                {
                    read(view, algebra, &term.children, found);
                }
            }),
            expand: Some(|view, id, term, found| {
                let test: fn(&Algebra) -> bool = $test;
                if let Operator::Tra(algebra) = &term.operator
                    && test(algebra)
                {
                    implement(view, id, algebra, &term.children, found);
                }
            }),
        }
    };
}

/// The rows of this family.
pub const ROWS: &[Row] = &[
    row!(
        "3.1-Σ",
        "Σ(G, op)(R)",
        "Σᴸ(G, op)(SHUF(G)(R))",
        &[
            "every group is at one coordinate of each axis, or the reduction commutes and each coordinate has an addend of each group",
            "a group that is a block of pieces has one"
        ],
        "any SHUF by part of G will do; groups that are spread over an axis give addends",
        |of| matches!(of, Algebra::Aggregate { .. })
    ),
    row!(
        "3.1-⋈",
        "⋈(KL, KR, f)(L, R)",
        "⋈ᴸ(KL, KR, f)(BCAST(L), R)",
        &["along each axis, operands that are cut are cut by the same joined key dimensions"],
        "of any number of operands; each may be the one that stays",
        |of| matches!(of, Algebra::Join { .. })
    ),
    row!(
        "3.1-REKEY",
        "REKEY(k)(R)",
        "λᴸ(k, id)(R)",
        &["the key dimensions that place R are left"],
        "",
        |of| matches!(of, Algebra::Map { function, .. } if function.is_identity())
    ),
    row!("3.1-σ", "σ(p)(R)", "σᴸ(p)(R)", &[], "", |of| matches!(
        of,
        Algebra::Filter(_)
    )),
    row!(
        "3.1-λ",
        "λ(f)(R)",
        "λᴸ(id, f)(R)",
        &["R is whole, or f distributes over the reduction of its addends"],
        "also with a key map, and the multi-map of RMM",
        |of| match of {
            Algebra::Map { function, .. } => !function.is_identity(),
            of => matches!(of, Algebra::Replicate { .. }),
        }
    ),
    row!(
        "3.1-TILE",
        "TILE(d, size)(R)",
        "λᴸ(keyTile, arrayTile)(R)",
        &[],
        "",
        |of| matches!(of, Algebra::Tile { .. })
    ),
    row!(
        "3.1-CONCAT",
        "CONCAT(keyDim, arrayDim)(R)",
        "Σᴸ(keyDimᶜ, arrayConcat)(SHUF(keyDimᶜ)(R))",
        &["R is not cut by keyDim"],
        "",
        |of| matches!(of, Algebra::Concat { .. })
    ),
    row!(
        "3.1-WINDOW",
        "WINDOW(boxes)(R)",
        "λᴸ(boxes)(BCAST(R))",
        &["R is at every coordinate, and its tuples are the pieces of a tensor"],
        "beyond the table: each tuple is a part of the whole tensor, as a kernel reads it; a plan sends only what a site lacks of its boxes",
        |of| matches!(of, Algebra::Window { .. })
    ),
    Row {
        info: RuleInfo {
            name: "placement",
            family: FAMILY,
            paper: "thesis, section 3.2.2: BCAST and SHUF leave the set of (key, array) pairs unchanged",
            left: "SHUF(D)(At(E, c))",
            right: "At(D, c)",
            conditions: &["no axis becomes partial by a move"],
            note: "addends are combined by the move that resolves them",
        },
        simplify: Some(placed),
        expand: Some(reached),
    },
    Row {
        info: RuleInfo {
            name: "one content",
            family: FAMILY,
            paper: "algebra, section 3: what a class stands for",
            left: "c, where At(D, c) ≡ At(D, c′)",
            right: "c′",
            conditions: &["the two physical relations are one class"],
            note: "a physical relation has one content",
        },
        simplify: Some(one_content),
        expand: None,
    },
];

/// A local operator of known contents, read as a content.
fn read(view: &View<'_>, algebra: &Algebra, inputs: &[Id], found: &mut Vec<Sides>) {
    let Some(placed) = view.all_placed(inputs) else {
        return;
    };
    let Some(at) = view.natural(algebra, &placed) else {
        return;
    };
    let contents: Option<Vec<Id>> = inputs.iter().map(|id| view.contents(*id).next()).collect();
    let Some(contents) = contents else { return };
    let spelled = contents.iter().zip(&placed);
    let left = spelled
        .map(|(content, (_, at))| Tree::at((*at).clone(), Tree::Class(*content)))
        .collect();
    let inner = contents.iter().map(|id| Tree::Class(*id)).collect();
    let content = Tree::Node(Operator::Tra(algebra.clone()), inner);
    found.push((Tree::local(algebra.clone(), left), Tree::at(at, content)));
}

/// A content made by the local operator, at the placements at which it or its operands are known.
fn implement(view: &View<'_>, id: Id, algebra: &Algebra, contents: &[Id], found: &mut Vec<Sides>) {
    let kinds: Option<Vec<&Content>> = contents.iter().map(|c| logical(view, *c)).collect();
    let Some(kinds) = kinds else { return };
    let mut ways: Vec<Vec<Placement>> = match (algebra, contents) {
        (Algebra::Join { .. }, _) | (_, []) => vec![],
        (_, [child, ..]) => view
            .placements(*child)
            .iter()
            .map(|at| vec![at.clone()])
            .collect(),
    };
    for at in view.placements(id) {
        let mut needs = local::required(algebra, &kinds, at);
        for need in &mut needs {
            // Addends are made of addends of every operand.
            for (role, wanted) in need.0.iter_mut().zip(&at.0) {
                if *wanted == Role::Partial(Reduction::Sum) {
                    *role = wanted.clone();
                }
            }
        }
        ways.push(needs);
    }
    for needs in ways {
        let inputs: Vec<(&Content, &Placement)> = kinds.iter().copied().zip(&needs).collect();
        let fits = inputs
            .iter()
            .all(|(kind, at)| at.fits(&kind.keys, view.mesh()));
        let Some(at) = view.natural(algebra, &inputs).filter(|_| fits) else {
            continue;
        };
        let operands = contents.iter().zip(needs);
        let operands = operands.map(|(content, at)| Tree::at(at, Tree::Class(*content)));
        let right = Tree::local(algebra.clone(), operands.collect());
        let inner = contents.iter().map(|id| Tree::Class(*id)).collect();
        let content = Tree::Node(Operator::Tra(algebra.clone()), inner);
        found.push((Tree::at(at, content), right));
    }
}

fn logical<'a>(view: &View<'a>, id: Id) -> Option<&'a Content> {
    match &view.graph[id].data {
        super::graph::Kind::Logical(content) => Some(content),
        _ => None,
    }
}

fn placed(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    let Operator::Move(to) = &term.operator else {
        return;
    };
    let child = term.children[0];
    let Some((_, from)) = view.placed(child) else {
        return;
    };
    if let (Some(content), true) = (view.contents(child).next(), from.moves_to(to)) {
        let content = Tree::Class(content);
        found.push((
            Tree::moved(to.clone(), Tree::at(from.clone(), content.clone())),
            Tree::at(to.clone(), content),
        ));
    }
}

/// A content at one known placement, moved there from another.
fn reached(view: &View<'_>, _: Id, term: &Term, found: &mut Vec<Sides>) {
    let Operator::At(to) = &term.operator else {
        return;
    };
    let content = term.children[0];
    for from in view.placements(content) {
        if from != to && from.moves_to(to) {
            let content = Tree::Class(content);
            found.push((
                Tree::at(to.clone(), content.clone()),
                Tree::moved(to.clone(), Tree::at(from.clone(), content)),
            ));
        }
    }
}

fn one_content(view: &View<'_>, id: Id, term: &Term, found: &mut Vec<Sides>) {
    if let Operator::At(_) = &term.operator
        && let Some(first) = view.contents(id).next()
        && view.graph.find(first) != view.graph.find(term.children[0])
    {
        found.push((Tree::Class(first), Tree::Class(term.children[0])));
    }
}
