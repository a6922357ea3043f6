//! The solvers against exhaustive search, an integer program, and each other.

use super::programs::{Linked, Text, Transformer, luo, perceptron, program, transformer};
use ein_plan::Mesh;
use einc_core::cost::Rates;
use einc_core::einsum::Program;
use einc_core::search::balance::Balance;
use einc_core::search::bounds::{Bounding, of_classes};
use einc_core::search::choice::{Run, choices};
use einc_core::search::cost_table::{CostTable, Weights};
use einc_core::search::model::Model;
use einc_core::search::narrow;
use einc_core::search::network::{Eliminated, Network, Table};
use einc_core::search::price::price;
use einc_core::search::problem::Problem;
use einc_core::search::settle::{resting, settle};
use einc_core::search::transfer::counts;
use einc_core::search::{
    Known, Link, Network as Nodes, Objective, Pinned, SearchOptions, TimeModel, layout,
    layout_knowing,
};
use good_lp::{Expression, ProblemVariables, Solution, SolverModel, variable};
use std::collections::BTreeMap;

/// Numbers that depend on nothing but a seed (Knuth's MMIX generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A random network: a tree of pairs, some more pairs, whole prices, some combinations forbidden.
fn network(numbers: &mut Numbers, variables: usize, eliminated: &mut Eliminated) -> Network {
    let domains: Vec<usize> = (0..variables)
        .map(|_| 1 + numbers.below(4) as usize)
        .collect();
    let mut pairs: Vec<Vec<usize>> = (1..variables)
        .map(|x| vec![numbers.below(x as u64) as usize, x])
        .collect();
    for _ in 0..variables {
        let (x, y) = (
            numbers.below(variables as u64) as usize,
            numbers.below(variables as u64) as usize,
        );
        if x != y {
            pairs.push(vec![x, y]);
        }
    }
    pairs.extend((0..variables).map(|x| vec![x]));
    let mut tables = vec![];
    for variables in pairs {
        let size: usize = variables.iter().map(|x| domains[*x]).product();
        let prices = (0..size)
            .map(|_| match numbers.below(12) {
                0 if variables.len() > 1 => f64::INFINITY,
                price => (price * price) as f64,
            })
            .collect();
        tables.push(Table {
            variables,
            prices: eliminated.number(prices),
        });
    }
    Network { domains, tables }
}

fn exhaustive(network: &Network) -> f64 {
    let total: usize = network.domains.iter().product();
    let mut best = f64::INFINITY;
    for mut number in 0..total {
        let mut choice = vec![0; network.domains.len()];
        for (value, size) in choice.iter_mut().zip(&network.domains) {
            *value = number % size;
            number /= size;
        }
        best = best.min(network.price(&choice));
    }
    best
}

/// One 0/1 variable a value, a flow a pair of values: the local polytope, with whole values for the variables.
fn integer_program(network: &Network) -> Option<f64> {
    let mut all = ProblemVariables::new();
    let values: Vec<Vec<_>> = network
        .domains
        .iter()
        .map(|n| (0..*n).map(|_| all.add(variable().binary())).collect())
        .collect();
    let mut cost = Expression::from(0.0);
    let mut equations = vec![];
    for own in &values {
        equations.push((own.iter().sum::<Expression>(), Expression::from(1.0)));
    }
    for table in &network.tables {
        match table.variables.as_slice() {
            [x] => {
                for (value, price) in values[*x].iter().zip(table.prices.values.iter()) {
                    cost += *value * *price;
                }
            }
            [x, y] => {
                let columns = network.domains[*y];
                let flows: Vec<_> = table
                    .prices
                    .values
                    .iter()
                    .map(|price| {
                        let most = if price.is_finite() { 1.0 } else { 0.0 };
                        let flow = all.add(variable().min(0.0).max(most));
                        if price.is_finite() {
                            cost += flow * *price;
                        }
                        flow
                    })
                    .collect();
                for (row, value) in values[*x].iter().enumerate() {
                    let sum: Expression = flows[row * columns..(row + 1) * columns].iter().sum();
                    equations.push((sum, Expression::from(*value)));
                }
                for (column, value) in values[*y].iter().enumerate() {
                    let sum: Expression = flows.iter().skip(column).step_by(columns).sum();
                    equations.push((sum, Expression::from(*value)));
                }
            }
            _ => panic!("a table of {:?}", table.variables),
        }
    }
    let mut model = all.minimise(cost.clone()).using(good_lp::microlp);
    for (left, right) in equations {
        model = model.with((left - right).eq(0.0));
    }
    model.solve().ok().map(|solution| solution.eval(&cost))
}

#[test]
fn elimination_finds_what_exhaustive_search_and_an_integer_program_find() {
    let (mut feasible, mut met, mut shrunk) = (0, 0, 0);
    for seed in 0..60 {
        let mut numbers = Numbers(seed);
        let mut eliminated = Eliminated::default();
        let network = network(&mut numbers, 3 + seed as usize % 5, &mut eliminated);
        let least = exhaustive(&network);
        let solution = network.solve(1 << 20, &mut eliminated, &|| false).unwrap();
        assert_eq!(solution.value, least, "{seed}");
        if least.is_finite() {
            feasible += 1;
            assert_eq!(network.price(&solution.choice), least, "{seed}");
            // Bounds hold, also of what is left once the values of dearer choices are left out.
            let mut known = Bounding::new(&network, 2000.0);
            for _ in 0..12 {
                known.trip();
                let lowest = known.least();
                assert!(lowest <= least + 1e-6, "{seed}: {lowest} {least}");
                let bounds = known.by_value();
                for (x, value) in solution.choice.iter().enumerate() {
                    assert!(bounds[x][*value] <= least + 1e-6, "{seed}");
                }
                if let Some(best) = known.best() {
                    assert_eq!(network.price(&best.choice), best.value, "{seed}");
                    assert!(best.value >= least, "{seed}");
                    met += usize::from(best.value == least);
                }
                shrunk += usize::from(known.shrink(least, &mut eliminated));
            }
            // What holds for classes of values, whichever they are, holds for their values.
            let classes: Vec<Vec<usize>> = network
                .domains
                .iter()
                .map(|n| (0..*n).map(|value| value / 2).collect())
                .collect();
            let mut coarse =
                Bounding::new(&of_classes(&network, &classes, &mut eliminated), 2000.0);
            for _ in 0..6 {
                coarse.trip();
                coarse.shrink(least, &mut eliminated);
            }
            assert!(coarse.least() <= least + 1e-6, "{seed}");
            let mut fine = coarse.refined(&network, &classes, least, &mut eliminated);
            let held = fine
                .current()
                .solve(1 << 20, &mut eliminated, &|| false)
                .unwrap();
            assert_eq!(fine.given(held).value, least, "{seed}");
            for _ in 0..6 {
                fine.trip();
                assert!(fine.least() <= least + 1e-6, "{seed}");
            }
            let left = known.current().solve(1 << 20, &mut eliminated, &|| false);
            assert_eq!(known.given(left.unwrap()).value, least, "{seed}");
            let split = network
                .bound(2, &mut Eliminated::default(), &|| false)
                .unwrap();
            assert!(split <= least);
            if seed % 4 == 0 {
                let found = integer_program(&network).unwrap();
                assert!((found - least).abs() < 1e-6, "{seed}: {found} {least}");
            }
        }
    }
    assert!(
        feasible > 40 && met > 300 && shrunk > 40,
        "{feasible} {met} {shrunk}"
    );
}

/// Three or four random statements over square matrices, some read twice.
pub(crate) fn random_program(seed: u64) -> Program {
    let mut numbers = Numbers(seed);
    let n = [24, 36, 48][numbers.below(3) as usize];
    let mut text = Text::default();
    let mut names = vec!["A".to_string(), "B".to_string()];
    text.line(&format!("input A: f32[{n}, {n}] = unbound"));
    text.line(&format!("param B: f32[{n}, {n}] = unbound"));
    for at in 0..2 + numbers.below(2) {
        let mut pick = || {
            // The newest first, so that most statements are needed.
            let back = numbers.below(2).min(numbers.below(3)) as usize;
            names[names.len() - 1 - back].clone()
        };
        let (left, right) = if at == 0 {
            ("A".to_string(), "B".to_string())
        } else {
            (pick(), pick())
        };
        let name = format!("t{at}");
        match numbers.below(5) {
            0 | 1 => text.matmul(&name, &left, &right, [n, n, n]),
            2 => text.matmul_left(&name, &left, &right, [n, n, n]),
            3 => text.map(&name, [n, n], &format!("{left}@ + exp({right}@)")),
            _ => text.matmul_right(&name, &right, &left, [n, n, n]),
        }
        names.push(name);
    }
    text.map(
        "B_next",
        [n, n],
        &format!("B@ - {}@", names[names.len() - 1]),
    );
    text.lines.push_str("output B_next replaces B\n");
    for name in &names[2..] {
        text.line(&format!("output {name}"));
    }
    program(&text.lines)
}

/// The least price over all admissible runs, everything resting where it is best.
fn exhaustive_layout(program: &Program, options: &SearchOptions, mesh: &Mesh) -> f64 {
    let problem = Problem::new(program);
    let model = Model::new(&problem);
    let balance = Balance::new(&problem, options.sites, options.balance, false);
    let alone = options.objective == Objective::Transfer;
    let lists: Vec<(usize, Vec<Run>)> = problem
        .statements()
        .map(|(at, _)| {
            let all = choices(&problem, at, counts(mesh), alone, balance.limits[at]);
            (at, all.iter().map(|choice| choice.run).collect())
        })
        .collect();
    let total: usize = lists.iter().map(|(_, list)| list.len()).product();
    let weights = Weights::below(1e6, &options.objective);
    let mut tariff = CostTable::new(&problem, counts(mesh), &options.objective, weights);
    let mut best = f64::INFINITY;
    for mut number in 0..total {
        let mut runs: BTreeMap<usize, Run> = BTreeMap::new();
        for (at, list) in &lists {
            runs.insert(*at, list[number % list.len()]);
            number /= list.len();
        }
        let layout = settle(&problem, &model, &mut tariff, mesh, &runs);
        best = best.min(price(program, &layout, &options.objective).under(&options.objective));
    }
    best
}

/// Seconds on nodes of so many sites, whose links are slow.
pub(crate) fn on_nodes(sites: u32) -> Objective {
    Objective::Time(TimeModel {
        compute: Rates {
            operation: 1e-9,
            touched: 1e-9,
            tuple: 1e-7,
            element: 1e-9,
            place: 0.0,
        },
        node: Link {
            message: 1e-6,
            byte: 1e-8,
        },
        network: Some(Nodes {
            sites,
            link: Link {
                message: 3e-6,
                byte: 2e-8,
            },
        }),
    })
}

#[test]
fn plans_of_small_programs_are_the_best_of_all() {
    for seed in 0..32 {
        let program = random_program(seed);
        let objective = [Objective::Transfer, Objective::Bytes, on_nodes(2)];
        let (objective, axes) = match seed {
            0..24 => (objective[seed as usize % 2], [vec![3], vec![4], vec![2]]),
            _ => (objective[2], [vec![4], vec![2, 2], vec![2, 2]]),
        };
        let mesh = Mesh {
            axes: axes[seed as usize % 3].clone(),
        };
        let options = SearchOptions {
            balance: 1.0,
            pinned: Pinned {
                mesh: Some(mesh.clone()),
                ..Pinned::default()
            },
            ..SearchOptions::new(mesh.sites(), objective)
        };
        let found = layout(&program, &options, &|| false).unwrap();
        assert!(found.proved_optimal);
        let best = exhaustive_layout(&program, &options, &mesh);
        let price = found.price.under(&objective);
        assert!(
            (price - best).abs() <= 1e-9 * best,
            "{seed}: {price} {best}\n{program}"
        );
    }
}

/// The network of a program on a mesh.
fn of_program(program: &Program, mesh: &Mesh, eliminated: &mut Eliminated) -> Network {
    use einc_core::search::assemble::{Allowed, Workspace};
    let problem = Problem::new(program);
    let model = Model::new(&problem);
    let balance = Balance::new(&problem, mesh.sites(), 1.25, false);
    let objective = Objective::Bytes;
    let weights = Weights::below(1e8, &objective);
    let tariff = CostTable::new(&problem, counts(mesh), &objective, weights);
    let known = einc_core::search::Known::default();
    let mut space = Workspace::new(&problem, &model, tariff, &known);
    let allowed = Allowed {
        limits: &balance.limits,
        memory: None,
        runs: &Default::default(),
        rests: &Default::default(),
    };
    let domains = space.domains(&allowed).unwrap();
    let network = space.network(&domains);
    std::mem::swap(eliminated, &mut space.eliminated);
    network
}

#[test]
fn equal_blocks_are_solved_once_and_change_nothing() {
    let tiny = Transformer {
        layers: 4,
        batch: 4,
        sequence: 32,
        heads: 4,
        head: 8,
        hidden: 64,
    };
    for program in [
        perceptron(6, 64, 64),
        transformer(tiny, false),
        luo(Linked::Dag2, 6, 64),
    ] {
        let mut shared = Eliminated::default();
        let network = of_program(&program, &Mesh { axes: vec![2, 2] }, &mut shared);
        let with = network.solve(1 << 22, &mut shared, &|| false).unwrap();
        let mut apart = Eliminated::default();
        let untied = Network {
            domains: network.domains.clone(),
            tables: network
                .tables
                .iter()
                .map(|table| Table {
                    variables: table.variables.clone(),
                    prices: apart.number(table.prices.values.to_vec()),
                })
                .collect(),
        };
        let without = untied.solve(1 << 22, &mut apart, &|| false).unwrap();
        assert_eq!(with, without);
        assert_eq!(apart.reused, 0);
        assert!(
            shared.reused > network.domains.len() / 4,
            "{}",
            shared.reused
        );
        assert!(shared.operations < apart.operations);
    }
}

#[test]
fn a_variable_of_one_value_connects_nothing() {
    let mut eliminated = Eliminated::default();
    let mut tables = vec![];
    for leaf in 1..=40 {
        tables.push(Table {
            variables: vec![0, leaf],
            prices: eliminated.number(vec![3.0, 1.0, 2.0, leaf as f64]),
        });
    }
    let network = Network {
        domains: [1].into_iter().chain([4; 40]).collect(),
        tables,
    };
    let (order, effort) = network.small(200.0, 1).unwrap();
    assert_eq!((order.len(), effort.largest), (41, 1.0));
    let solution = network.solve(1, &mut eliminated, &|| false).unwrap();
    assert_eq!(solution.value, 40.0);
    assert_eq!(solution.choice[..4], [0, 1, 1, 1]);
}

#[test]
fn narrowing_finds_the_optimum_that_elimination_finds() {
    let program = perceptron(8, 4096, 1024);
    let mut eliminated = Eliminated::default();
    let network = of_program(
        &program,
        &Mesh {
            axes: vec![2, 2, 2],
        },
        &mut eliminated,
    );
    let (_, effort) = network.order();
    assert!(
        effort.operations > 2e7,
        "small enough to be eliminated as it is: {effort:?}"
    );
    let direct = network.solve(1 << 22, &mut eliminated, &|| false).unwrap();
    let mut other = Eliminated::default();
    std::mem::swap(&mut other, &mut eliminated);
    let found = narrow::solve(
        &network,
        None,
        1 << 22,
        direct.value,
        f64::INFINITY,
        &mut other,
        &|| false,
    );
    assert!(found.proved);
    assert_eq!(found.solution.unwrap().value, direct.value);
    // What is dearer than a ceiling is known to be so without a solution.
    let below = direct.value * 0.9;
    let found = narrow::solve(
        &network,
        None,
        1 << 22,
        direct.value,
        below,
        &mut other,
        &|| false,
    );
    assert!(found.proved && found.solution.is_none() && found.bound >= below);
}

#[test]
fn names_and_orders_do_not_matter() {
    let forward = "input A: f32[64, 48] = unbound\ninput B: f32[48, 96] = unbound\ninput E: f32[96, 32] = unbound\n\
        C: f32[64, 96] = [i: 64, j: 96 | k: 48] sum A[i, k] * B[k, j]\n\
        D: f32[64, 32] = [i: 64, j: 32 | k: 96] sum C[i, k] * E[k, j]\n\
        s: f32[64] = [i: 64 | k: 96] max C[i, k]\noutput D\noutput s";
    // Transposed tensors, other names, inputs and independent statements in another order.
    let turned = "input Z: f32[96, 32] = unbound\ninput X: f32[48, 64] = unbound\ninput Y: f32[96, 48] = unbound\n\
        P: f32[96, 64] = [y: 96, x: 64 | z: 48] sum Y[y, z] * X[z, x]\n\
        m: f32[64] = [x: 64 | y: 96] max P[y, x]\n\
        Q: f32[32, 64] = [w: 32, x: 64 | y: 96] sum Z[y, w] * P[y, x]\noutput m\noutput Q";
    for sites in [2, 4, 5, 6, 8] {
        for objective in [Objective::Transfer, Objective::Bytes, on_nodes(2)] {
            let options = SearchOptions::new(sites, objective);
            let price = |text: &str| {
                let found = layout(&program(text), &options, &|| false).unwrap();
                let again = layout(&program(text), &options, &|| false).unwrap();
                assert_eq!(found, again);
                found.price.under(&options.objective)
            };
            let (one, other) = (price(forward), price(turned));
            assert!((one - other).abs() <= 1e-12 * one, "{sites}: {one} {other}");
        }
    }
}

#[test]
fn tables_of_earlier_programs_change_nothing() {
    let known = Known::default();
    for seed in 0..16 {
        let program = random_program(seed);
        let objective = [Objective::Transfer, on_nodes(2)][seed as usize % 2];
        let options = SearchOptions::new(4, objective);
        let shared = layout_knowing(&program, &options, &known, &|| false).unwrap();
        let alone = layout(&program, &options, &|| false).unwrap();
        assert_eq!(shared.layout, alone.layout, "{seed}\n{program}");
        assert_eq!(shared.price, alone.price, "{seed}\n{program}");
    }
}

#[test]
fn a_tensor_on_its_way_rests_where_that_is_cheapest() {
    use einc_core::search::assemble::{Allowed, Domain, Workspace};
    use einc_core::search::model::Entry;
    let text = "input u: f32[40, 36] = unbound\n\
        v: f32[40, 36] = [i: 40, j: 36] tanh(u[i, j])\n\
        w: f32[38, 34] = [i: 38, j: 34] v[i, j] + v[i + 2, j + 1]\n\
        y: f32[38, 9] = [i: 38, j: 9 | k: 34] sum w[i, k] * w[j, k]\n\
        z: f32[9, 38] = [i: 9, j: 38] tanh(y[j, i])\noutput z";
    let problem = Problem::new(&einc_core::einsum::parse::parse(text).unwrap());
    let model = Model::new(&problem);
    let objective = Objective::Transfer;
    let weights = Weights::below(1e6, &objective);
    for counts in [[2, 2, 2], [2, 3, 2], [4, 2, 1]] {
        let table = || CostTable::new(&problem, counts, &objective, weights);
        let known = Known::default();
        let mut space = Workspace::new(&problem, &model, table(), &known);
        let allowed = Allowed {
            limits: &vec![f64::INFINITY; problem.tensors.len()],
            memory: None,
            runs: &Default::default(),
            rests: &Default::default(),
        };
        let domains = space.domains(&allowed).unwrap();
        let network = space.network(&domains);
        let mut direct = table();
        let mut tables = 0;
        for (at, tensor) in problem.tensors.iter().enumerate() {
            if model.ways[at] != Entry::Passes {
                continue;
            }
            let (reader, numbers) = &model.readers[at][0];
            let pair = [model.run[at].unwrap(), model.run[*reader].unwrap()];
            let of_pair = |table: &&Table| table.variables == pair;
            let table = network.tables.iter().find(of_pair).unwrap();
            let [Domain::Runs(from, _), Domain::Runs(to, _)] = pair.map(|v| &domains[v]) else {
                panic!("not runs");
            };
            let rests = resting(&tensor.shape, counts, &objective, true);
            let goods = direct.goods(tensor);
            // Some of all pairs.
            for number in (0..table.prices.values.len()).step_by(7) {
                let (from, to) = (&from[number / to.len()], &to[number % to.len()]);
                let mut needs: Vec<_> = numbers.iter().map(|read| to.needs[*read]).collect();
                needs.sort_unstable();
                needs.dedup();
                let by_rest = rests.iter().map(|rest| {
                    let onward = needs.iter().map(|need| direct.convert(goods, *rest, *need));
                    onward.sum::<f64>()
                });
                let onward: Vec<f64> = by_rest.collect();
                let there = rests.iter().zip(onward);
                let all =
                    there.map(|(rest, onward)| direct.convert(goods, from.gives, *rest) + onward);
                let least = all.fold(f64::INFINITY, f64::min);
                assert_eq!(
                    table.prices.values[number], least,
                    "{} {counts:?}",
                    tensor.name
                );
            }
            tables += 1;
        }
        assert!(tables > 2);
    }
}
