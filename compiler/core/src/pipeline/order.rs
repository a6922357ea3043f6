//! Products of many factors, multiplied in the order that is cheapest where they are.
//!
//! The rewrites order a product by its arithmetic. Here the laid-out program's products are ordered again, with what
//! moves: order and placement are one search (`search::reorder`), around it everything stays. What is found is laid out
//! like any other program, and taken if that is cheaper. Must not know how a layout is carried out.
//!
//! ```text
//! y: ((A B) x) -> (A (B x)) on 2x2
//! ```

use super::layouts::Layouts;
use super::report::Rewrite;
use crate::einsum::{Program, TensorId};
use crate::ia::layout::{Layout, TensorRole};
use crate::rules::order::{Order, orders};
use crate::search::choice::Choice;
use crate::search::far::convert_over;
use crate::search::price::run_choices;
use crate::search::problem::{Kind, Problem};
use crate::search::product::{Product, products};
use crate::search::reorder::{self, Wanted};
use crate::search::settle::{alone, resting};
use crate::search::transfer::{Roles, TransferItem, counts, padded};
use crate::search::{Found, SearchOptions};
use ein_plan::Mesh;
use std::collections::HashSet;

/// The rule that this is an application of.
const RULE: &str = "contraction-order";

/// Most products of a program that are ordered again, the widest first.
const MOST_PRODUCTS: usize = 16;

/// How often the price of arithmetic is raised until a product keeps to the balance.
const MOST_RAISES: usize = 6;

/// Returns whether products are ordered here, with these rules disabled.
pub(super) fn is_searched(disabled: &[String]) -> bool {
    disabled.iter().all(|rule| rule != RULE)
}

/// Prints everything that is equal in programs that differ in the orders of their products only: everything else, and what the
/// products multiply.
pub(super) fn form(program: &Program) -> Vec<String> {
    let products = products(program);
    let members: HashSet<TensorId> = products.iter().flat_map(|p| p.members.clone()).collect();
    let numbered = (0..).map(TensorId).zip(&program.tensors);
    let others = numbered.filter(|(id, _)| !members.contains(id));
    let mut form: Vec<String> = others.map(|(_, t)| program.tensor_text(t)).collect();
    for product in &products {
        let name = |id: TensorId| program.tensor(id).name.as_str();
        let factors = product.factors.iter();
        let mut factors: Vec<&str> = factors.map(|f| name(f.tensor)).collect();
        factors.sort_unstable();
        form.push(format!("{} = {}", name(product.root), factors.join(" ")));
    }
    form.sort_unstable();
    form
}

/// A program with one product in a better order.
pub(super) struct Better {
    pub program: Program,
    pub found: Found,
    pub rewrite: Rewrite,
}

/// Looks for a better order of one product. `most`: the most operations of the busiest site; `tried`: the orders that were laid out.
pub(super) fn improve(
    (program, found): (&Program, &Found),
    layouts: &Layouts<'_>,
    most: f64,
    tried: &mut HashSet<String>,
) -> Option<Better> {
    let options = &layouts.wanted;
    let mut all = products(program);
    all.sort_by_key(|product| std::cmp::Reverse(product.factors.len()));
    all.truncate(MOST_PRODUCTS);
    let problem = Problem::new(program);
    let runs = run_choices(&problem, &found.layout);
    let mut best: Option<Better> = None;
    for product in &all {
        let mut seen = vec![product.order.clone()];
        let around = product.factors.iter().map(|factor| {
            let tensor = &problem.tensors[factor.tensor.0 as usize];
            (tensor.statement().is_some(), tensor.readers.len())
        });
        let alike = format!(
            "{:?} {:?} {:?}",
            product.network,
            product.order,
            around.collect::<Vec<_>>()
        );
        for mesh in meshes(&problem, product, found) {
            if (layouts.deadline)() || layouts.are_enough() {
                return best;
            }
            let place = ProductOnMesh {
                problem: &problem,
                product,
                around: (mesh == found.layout.mesh).then_some(Around {
                    layout: &found.layout,
                    runs: &runs,
                }),
                mesh: &mesh,
                options,
            };
            // Where nothing has changed around a product, its order has been tried.
            let surroundings = place.surroundings();
            if !tried.insert(format!("{mesh} {surroundings:?} {alike}")) {
                continue;
            }
            let Some(order) = place.order(&surroundings, found, most) else {
                continue;
            };
            if seen.contains(&order) {
                continue;
            }
            seen.push(order.clone());
            // Equal layers have equal products, which change the price alike.
            if !tried.insert(format!("{mesh} {order:?} {alike}")) {
                continue;
            }
            let Some(reordered) = product.reordered(program, &order) else {
                continue;
            };
            let least = best.as_ref().map_or(found, |best| &best.found);
            let Ok(next) = layouts.next(&reordered, Some(least)) else {
                continue;
            };
            let cheaper = next.price.compare(&least.price, &options.objective).is_lt();
            if cheaper && next.price.load <= most {
                best = Some(Better {
                    rewrite: Rewrite {
                        rule: RULE.into(),
                        tensor: program.tensor(product.root).name.clone(),
                        before: product.text(program, &product.order),
                        after: product.text(program, &order),
                    },
                    program: reordered,
                    found: next,
                });
            }
        }
    }
    best
}

/// The meshes to order a product for: the layout's, and for one that stands alone all that were looked at.
fn meshes(problem: &Problem, product: &Product, found: &Found) -> Vec<Mesh> {
    let mut meshes = vec![found.layout.mesh.clone()];
    let loaded = |at: usize| !matches!(problem.tensors[at].kind, Kind::Made(_));
    let factors = product.factors.iter().map(|f| f.tensor.0 as usize);
    let root = &problem.tensors[product.root.0 as usize];
    if factors.into_iter().all(loaded) && root.readers.is_empty() && root.carried.is_none() {
        let others = found.report.meshes.iter().map(|mesh| mesh.mesh.clone());
        meshes.extend(others.filter(|mesh| *mesh != found.layout.mesh));
    }
    meshes.retain(|mesh| mesh.sites() > 1);
    meshes
}

/// A product, and the mesh that it is ordered for.
struct ProductOnMesh<'a> {
    problem: &'a Problem,
    product: &'a Product,
    /// Where everything else is, on that mesh; none: nothing else is computed.
    around: Option<Around<'a>>,
    mesh: &'a Mesh,
    options: &'a SearchOptions,
}

/// A layout, and how its statements run.
#[derive(Clone, Copy)]
struct Around<'a> {
    layout: &'a Layout,
    runs: &'a [Option<Choice>],
}

/// The placements at which factors may be read, and the result's: those that its readers want, and those at which it may rest.
#[derive(Debug)]
struct Surroundings {
    factors: Vec<Source>,
    wants: Vec<Roles>,
    rests: Vec<Roles>,
}

/// Where a factor comes from.
#[derive(Debug)]
enum Source {
    /// It costs nothing anywhere.
    Free,
    /// One of these placements, as is cheapest.
    OneOf(Vec<Roles>),
}

impl ProductOnMesh<'_> {
    /// Returns what decides about the order, besides the product itself.
    fn surroundings(&self) -> Surroundings {
        let (problem, product) = (self.problem, self.product);
        let (counts, objective) = (counts(self.mesh), &self.options.objective);
        let run = |at: usize| self.around.and_then(|around| around.runs[at].as_ref());
        let needs = |at: usize, of: usize| -> Vec<Roles> {
            let readers = problem.tensors[of].readers.iter().filter(|r| r.0 == at);
            run(at).map_or(vec![], |run| readers.map(|r| run.needs[r.1]).collect())
        };
        let source = |at: usize| {
            let tensor = &problem.tensors[at];
            let alone = tensor.readers.len() == 1;
            match (&tensor.kind, self.around) {
                (Kind::Free, _) => Source::Free,
                (Kind::Made(_), Some(_)) if alone && tensor.carried.is_none() => {
                    run(at).map_or(Source::Free, |run| Source::OneOf(vec![run.gives]))
                }
                (Kind::Loaded | Kind::Kept, _) if tensor.carried.is_none() => {
                    let copies = tensor.starts_copied();
                    Source::OneOf(resting(&tensor.shape, counts, objective, copies))
                }
                (_, Some(around)) => Source::OneOf(vec![padded(&around.layout.rests[at])]),
                (_, None) => Source::Free,
            }
        };
        let root = product.root.0 as usize;
        let own = &problem.tensors[root];
        let readers = own.readers.iter();
        let mut wants: Vec<Roles> = readers.flat_map(|(at, _)| needs(*at, root)).collect();
        wants.sort_unstable();
        wants.dedup();
        let factors = product.factors.iter();
        Surroundings {
            factors: factors.map(|f| source(f.tensor.0 as usize)).collect(),
            wants,
            rests: match self.around.filter(|_| own.carried.is_some()) {
                Some(around) => vec![padded(&around.layout.rests[root])],
                None => resting(&own.shape, counts, objective, true),
            },
        }
    }

    /// The best order that keeps to the balance.
    fn order(&self, surroundings: &Surroundings, found: &Found, most: f64) -> Option<Order> {
        let (problem, product) = (self.problem, self.product);
        let counts = counts(self.mesh);
        let objective = &self.options.objective;
        let levels = objective.levels(counts);
        let price = |at: usize, from: Roles, to: Roles| {
            let tensor = &problem.tensors[at];
            let goods = TransferItem {
                shape: &tensor.shape,
                columns: 1.0,
                windows: &problem.windows,
            };
            let moved = convert_over(goods, counts, levels.as_ref(), from, to);
            moved.map_or(f64::INFINITY, |moved| {
                objective.of_move(&moved, tensor.width)
            })
        };
        let factor = |number: usize, roles: Roles| {
            let factor = &product.factors[number];
            let to = dims(roles, &factor.indices);
            match &surroundings.factors[number] {
                Source::Free => 0.0,
                Source::OneOf(starts) => {
                    let at = factor.tensor.0 as usize;
                    let prices = starts.iter().map(|from| price(at, *from, to));
                    prices.fold(f64::INFINITY, f64::min)
                }
            }
        };
        let root = product.root.0 as usize;
        let own = &problem.tensors[root];
        let result = |roles: Roles| {
            let from = dims(roles, &product.dimensions);
            let rests = surroundings.rests.iter().map(|rest| {
                let wants = surroundings.wants.iter();
                let moves = wants.map(|want| price(root, *rest, *want));
                price(root, from, *rest) + moves.sum::<f64>()
            });
            rests.fold(f64::INFINITY, f64::min)
        };
        let least = orders(&product.network)
            .first()
            .map_or(0.0, |(_, cost)| cost.flops);
        let inside = product
            .members
            .iter()
            .map(|at| found.price.loads[at.0 as usize]);
        let others = found.price.load - inside.sum::<f64>();
        let total = found.price.under(objective).max(1.0);
        let mut wanted = Wanted {
            counts,
            levels,
            objective,
            load: 1e-6 * total / least.max(1.0),
            balance: self.options.balance,
            light: 0.001 * least,
            width: own.width,
            alone: alone(objective),
            factor: &factor,
            result: &result,
        };
        let arrangement = product.order.leaves();
        for _ in 0..MOST_RAISES {
            let (order, _) = reorder::order(&product.network, &arrangement, &wanted)?;
            let load = product.network.cost(&order).flops / f64::from(self.mesh.sites());
            if load + others <= most {
                return Some(order);
            }
            wanted.load *= 16.0;
        }
        None
    }
}

/// Placements by a tensor's dimensions, of placements by its indices in ascending order.
fn dims(mut roles: Roles, indices: &[u32]) -> Roles {
    let mut ascending = indices.to_vec();
    ascending.sort_unstable();
    for role in &mut roles {
        if let TensorRole::Cut(place) = role {
            let index = ascending[*place as usize];
            let dim = indices.iter().position(|i| *i == index).unwrap_or(0);
            *role = TensorRole::Cut(dim as u32);
        }
    }
    roles
}
