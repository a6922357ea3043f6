//! The cheapest tree of every class: a bound, and where the search for programs starts.
//!
//! Shared terms count as often as they are read. Must not know programs.
//!
//! ```text
//! #7: sum mul #1 #5 (cost 3.1e4), not sum mul #1 #2 #3 (cost 9.0e5)
//! ```

use super::bound::Bound;
use super::price;
use super::term::{Head, Term};
use egg::Id;
use ein_plan::{Function, Reduction};
use rustc_hash::FxHashMap;

/// By class, the term of the cheapest tree.
pub(super) fn cheapest(bound: &Bound<'_>) -> FxHashMap<Id, usize> {
    let egraph = &bound.graph.egraph;
    let mut classes: Vec<Id> = egraph.classes().map(|c| c.id).collect();
    classes.sort();
    let mut best: FxHashMap<Id, (f64, usize)> = FxHashMap::default();
    let own: FxHashMap<Id, Vec<f64>> = classes
        .iter()
        .map(|class| {
            let terms = egraph[*class].nodes.iter();
            (*class, terms.map(|t| alone(bound, *class, t)).collect())
        })
        .collect();
    loop {
        let mut changed = false;
        for class in &classes {
            for (number, term) in egraph[*class].nodes.iter().enumerate() {
                let children: Option<f64> = term
                    .children
                    .iter()
                    .map(|c| best.get(&egraph.find(*c)).map(|b| b.0))
                    .sum();
                let Some(children) = children else {
                    continue;
                };
                let cost = own[class][number] + children;
                // Prices are only compared where they differ by more than rounding.
                let better = best.get(class).is_none_or(|b| cost < b.0 * (1.0 - 1e-12));
                if better {
                    best.insert(*class, (cost, number));
                    changed = true;
                }
            }
        }
        if !changed {
            return best
                .into_iter()
                .map(|(class, (_, number))| (class, number))
                .collect();
        }
    }
}

/// A bound of what a term costs without its children.
fn alone(bound: &Bound<'_>, class: Id, term: &Term) -> f64 {
    let points: f64 = term.extents.iter().map(|e| *e as f64).product();
    let count = term.children.len() as f64;
    let bytes: f64 = match bound.is_read(class, term) {
        true => {
            let data = bound.graph.data(class);
            data.shape.iter().map(|e| *e as f64).product::<f64>() * data.dtype.size() as f64
        }
        false => 0.0,
    };
    let operations = match term.head {
        Head::Source(_) | Head::Constant(..) => 0.0,
        Head::Fold(_) => count - 1.0 + f64::from(u8::from(term.reduction.is_some())),
        Head::Apply(function) => function.flops() as f64,
        Head::Convert(_) | Head::Store(_) => 0.0,
        Head::Copy => f64::from(u8::from(term.reduction.is_some())),
        Head::Whole(kernel, _) => {
            let kernel = &bound.graph.egraph.analysis.kernels[kernel as usize];
            let price = price::statement(kernel);
            return price.weighted + bytes + 1e-3;
        }
    };
    let product = matches!(term.head, Head::Fold(Function::Mul))
        && term.reduction == Some(Reduction::Sum)
        && count <= 2.0;
    points * operations * if product { 1.0 } else { 4.0 } + bytes + 1e-3
}
