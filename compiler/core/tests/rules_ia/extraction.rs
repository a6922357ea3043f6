//! What saturation and extraction find: the thesis's diag(X + Y), and cheapest placements against brute force.

use crate::soundness::product;
use crate::support::Numbers;
use crate::terms::{self, content, kernel, key, leaf};
use egg::{Extractor, Id};
use ein_plan::{Function, Mesh, Reduction};
use einc_core::einsum::{Program, parse::parse};
use einc_core::rules::ia::cheapest::{Search, TermCosts, cheapest, placements};
use einc_core::rules::ia::content::Content;
use einc_core::rules::ia::explain;
use einc_core::rules::ia::function::ArrayFunction;
use einc_core::rules::ia::graph::{Graph, Kind, Tree, print};
use einc_core::rules::ia::language::Algebra;
use einc_core::rules::ia::placement::transfer;
use einc_core::rules::ia::predicate::{Atom, Predicate};
use einc_core::rules::ia::rows::{Bounds, rows, saturate};
use einc_core::rules::ia::{Placement, Role};
use einc_core::search::{Objective, Pinned, SearchOptions, layout};
use std::collections::HashMap;

/// λ(diag)(REKEY(merge)(σ(isEq)(⋈(⟨0,1⟩, ⟨0,1⟩, matAdd)(BCAST(X), Y)))), as the thesis translates it.
fn diagonal(graph: &mut Graph) -> Id {
    let range = key(16, 4, &[0]);
    let kind = content(
        &[range.clone(), range.clone()],
        &[(16, Some(0)), (16, Some(1))],
    );
    let at = Placement(vec![Role::Keys(vec![0])]);
    let (x, y) = (leaf(graph, "X", &kind, &at), leaf(graph, "Y", &kind, &at));
    let kernels = &graph.analysis.kernels;
    let add = kernels.labelled(&terms::binary(&[16, 16], Function::Add), "matAdd");
    let diag = kernels.labelled(&kernel(&[16], &[&[0, 0]], 1, |_, x| x[0]), "diag");
    let join = Algebra::Join {
        keys: vec![range.clone(), range],
        inputs: vec![vec![0, 1], vec![0, 1]],
        keep: vec![0, 1],
        function: ArrayFunction::of_kernel(add, vec![Some(0), Some(1)], 2),
    };
    let is_eq = Algebra::Filter(Predicate::new([Atom::Equal(0, 1)]));
    let merge = Algebra::rekey(vec![0]);
    let diag = Algebra::transform(1, ArrayFunction::of_kernel(diag, vec![Some(0)], 1));
    let every = Tree::moved(Placement::every(1), Tree::Class(x));
    let tree = Tree::local(join, vec![every, Tree::Class(y)]);
    [is_eq, merge, diag]
        .into_iter()
        .fold(tree, |tree, algebra| Tree::unary(algebra, tree))
        .add(graph)
}

#[test]
fn the_diagonal_of_a_sum_is_the_papers_final_form() {
    let mut graph = terms::graph(&[4]);
    let root = diagonal(&mut graph);
    let initial = print(&graph.id_to_expr(root), &graph.analysis);
    let wanted = ["R1-2", "R1-6", "R1-7", "R1-7 distributive", "R2-2"];
    let mut ways = vec![];
    for row in rows()
        .into_iter()
        .filter(|row| wanted.contains(&row.info.name))
    {
        let directions = row.simplify.into_iter().chain(row.expand);
        ways.extend(directions.map(|find| (row.info.name, find)));
    }
    let bounds = Bounds {
        nodes: 2_000,
        deadline: &|| false,
    };
    saturate(&mut graph, &ways, &bounds, &mut |_| false);
    assert!(graph.analysis.faults.is_empty());
    let (_, best) = Extractor::new(
        &graph,
        TermCosts {
            graph: &graph,
            allowed: &|_, _| true,
        },
    )
    .find_best(root);
    let last = print(&best, &graph.analysis);
    let end = graph.add_expr_uncanonical(&best);
    let proof = graph.explain_id_equivalence(root, end);
    let steps = explain::steps(&proof, &graph, &HashMap::new(), "diagonal");
    let chain: Vec<String> = steps.iter().map(|step| step.rule.clone()).collect();
    assert_eq!(
        format!("{initial}
{last}
{}", chain.join(", ")),
        "λᴸ(⟨0⟩, diag)(λᴸ(⟨0⟩, idOp)(σᴸ(k0 = k1)(⋈ᴸ(⟨0,1⟩, ⟨0,1⟩, matAdd)(BCAST(At(⟨0⟩)(X)), At(⟨0⟩)(Y)))))
\
         ⋈ᴸ(⟨0,1⟩, ⟨0,1⟩ → ⟨0⟩, matAdd∘diag)(BCAST(σᴸ(k0 = k1)(At(⟨0⟩)(X))), σᴸ(k0 = k1)(At(⟨0⟩)(Y)))
\
         R1-2, R1-6, R1-7 distributive, R2-2"
    );
}

/// The least transfers for a content that is a tree of one product after another, over all placements: independent of rows.
fn brute(
    graph: &Graph,
    id: Id,
    mesh: &Mesh,
    allowed: &dyn Fn(&Content, &Placement) -> bool,
) -> Vec<(Placement, u128)> {
    use einc_core::rules::ia::language::Operator;
    let Kind::Logical(kind) = &graph[id].data else {
        panic!()
    };
    let term = &graph[id].nodes[0];
    let copied = |at: &Placement| {
        at.0.iter()
            .zip(&mesh.axes)
            .any(|(role, n)| *role == Role::Every && *n > 1)
    };
    let start: Vec<(Placement, u128)> = match &term.operator {
        // A source starts in any partition.
        Operator::Tensor(_) => placements(kind, mesh, &[])
            .into_iter()
            .filter(|at| !copied(at))
            .map(|at| (at, 0))
            .collect(),
        Operator::Tra(Algebra::Aggregate { keep, .. }) => {
            // The roles of the joined key along each axis: those of the result and the operands follow.
            let join = &graph[term.children[0]].nodes[0];
            let Operator::Tra(Algebra::Join { keys, inputs, .. }) = &join.operator else {
                panic!()
            };
            let Kind::Logical(joined) = &graph[term.children[0]].data else {
                panic!()
            };
            let operands: Vec<Vec<(Placement, u128)>> = join
                .children
                .iter()
                .map(|c| brute(graph, *c, mesh, allowed))
                .collect();
            let mut found: Vec<(Placement, u128)> = vec![];
            for run in placements(&content(keys, &[]), mesh, &[]) {
                if !allowed(joined, &run) {
                    continue;
                }
                let needs = |map: &[u32]| {
                    let role = |role: &Role| match role {
                        Role::Keys(dims) if dims.len() == 1 => map
                            .iter()
                            .position(|k| *k == dims[0])
                            .map_or(Role::Every, |at| Role::Keys(vec![at as u32])),
                        other => other.clone(),
                    };
                    Placement(run.0.iter().map(role).collect())
                };
                let role = |role: &Role| match role {
                    Role::Keys(dims) if dims.len() == 1 => keep
                        .iter()
                        .position(|k| *k == dims[0])
                        .map_or(Role::Partial(Reduction::Sum), |at| {
                            Role::Keys(vec![at as u32])
                        }),
                    other => other.clone(),
                };
                let gives = Placement(run.0.iter().map(role).collect());
                let cost: u128 = inputs
                    .iter()
                    .zip(&operands)
                    .map(|(map, have)| have.iter().find(|(at, _)| *at == needs(map)).unwrap().1)
                    .sum();
                found.push((gives, cost));
            }
            found
        }
        other => panic!("{other:?}"),
    };
    // Moves, any number of them.
    let f = kind.floats();
    let sums = [Reduction::Sum];
    let mut cost: Vec<(Placement, u128)> = placements(kind, mesh, &sums)
        .into_iter()
        .map(|at| (at, u128::MAX))
        .collect();
    for (at, price) in &mut cost {
        *price = start
            .iter()
            .filter(|(have, _)| have == at)
            .map(|(_, c)| *c)
            .min()
            .unwrap_or(u128::MAX);
    }
    loop {
        let before = cost.clone();
        for (to, price) in &mut cost {
            if !allowed(kind, to) {
                continue;
            }
            for (from, paid) in &before {
                if let Some(moved) = transfer(from, to, mesh, f) {
                    *price = (*price).min(paid.saturating_add(moved));
                }
            }
        }
        if cost == before {
            return cost;
        }
    }
}

/// A chain of products of that many factors.
fn chain(graph: &mut Graph, sizes: &[u64]) -> Id {
    let axes: Vec<u8> = (0..graph.analysis.mesh.axes.len() as u8).collect();
    let pieces: u32 = graph.analysis.mesh.sites();
    let range = |n: u64| key(n, pieces, &axes);
    let start = Placement(vec![Role::Keys(vec![]); axes.len()]);
    let mut tensors = vec![];
    for pair in sizes.windows(2) {
        let kind = content(
            &[range(pair[0]), range(pair[1])],
            &[(pair[0], Some(0)), (pair[1], Some(1))],
        );
        let id = leaf(graph, &format!("M{}", tensors.len()), &kind, &start);
        tensors.push(graph.id_to_node(id).children[0]);
    }
    let mut left = tensors[0];
    for (at, right) in tensors[1..].iter().enumerate() {
        let (i, k, j) = (sizes[0], sizes[at + 1], sizes[at + 2]);
        let times = kernel(&[i, j, k], &[&[0, 2], &[2, 1]], 2, |g, x| {
            terms::apply2(g, Function::Mul, x[0], x[1])
        });
        let times = graph.analysis.kernels.add(&times);
        let join = Algebra::Join {
            keys: vec![range(i), range(k), range(j)],
            inputs: vec![vec![0, 1], vec![1, 2]],
            keep: vec![0, 1, 2],
            function: ArrayFunction::of_kernel(times, vec![Some(0), Some(2), Some(1)], 2),
        };
        use einc_core::rules::ia::language::Operator;
        let joined = Tree::Node(
            Operator::Tra(join),
            vec![Tree::Class(left), Tree::Class(*right)],
        );
        let sum = Algebra::aggregate(vec![0, 2], Reduction::Sum);
        left = Tree::Node(Operator::Tra(sum), vec![joined]).add(graph);
    }
    left
}

#[test]
fn the_cheapest_term_costs_what_brute_force_says() {
    let cases: [(&[u32], &[u64]); 6] = [
        (&[4], &[16, 64, 16]),
        (&[4], &[64, 8, 64]),
        (&[5], &[16, 640, 16]),
        (&[2, 2], &[32, 32, 32]),
        (&[4], &[64, 8, 64, 8]),
        (&[3], &[8, 64, 4, 64]),
    ];
    for (mesh, sizes) in cases {
        // Products are spread over all sites.
        let spread = |kind: &Content, at: &Placement| {
            kind.keys.len() < 3
                || at
                    .0
                    .iter()
                    .all(|role| matches!(role, Role::Keys(dims) if !dims.is_empty()))
        };
        let mut graph = terms::graph(mesh).with_explanations_disabled();
        let root = chain(&mut graph, sizes);
        let mesh = graph.analysis.mesh.clone();
        let all = brute(&graph, root, &mesh, &spread);
        let least = all
            .iter()
            .filter(|(at, _)| !at.is_partial())
            .map(|(_, c)| *c)
            .min()
            .unwrap();
        let search = Search {
            node_limit: 200_000,
            disabled: &[],
            deadline: &|| false,
            allowed: &spread,
        };
        let found = cheapest(&mut graph, root, &search).unwrap();
        assert!(graph.analysis.faults.is_empty());
        assert_eq!(found.transfers, least, "{mesh}, {sizes:?}: {found:?}");
    }
}

/// The same chain as an Einstein program.
fn program(sizes: &[u64]) -> Program {
    let mut text = String::new();
    for (at, pair) in sizes.windows(2).enumerate() {
        text += &format!("input M{at}: f32[{}, {}] = unbound\n", pair[0], pair[1]);
    }
    let (rows, mut left) = (sizes[0], "M0".to_string());
    for at in 1..sizes.len() - 1 {
        let (inner, columns) = (sizes[at], sizes[at + 1]);
        let hidden = if at + 2 < sizes.len() { "hidden " } else { "" };
        text += &format!(
            "{hidden}P{at}: f32[{rows}, {columns}] = [i: {rows}, j: {columns} | k: {inner}] sum {left}[i, k] * M{at}[k, j]\n"
        );
        left = format!("P{at}");
    }
    parse(&format!("{text}output {left}\n")).unwrap()
}

/// Two ways to the same cost that share nothing: the e-graph's rules and extraction, and the network of placements.
#[test]
fn the_cheapest_term_costs_what_the_placement_search_finds() {
    let cases: [(&[u32], &[u64]); 9] = [
        (&[4], &[16, 64, 16]),
        (&[4], &[64, 8, 64]),
        (&[5], &[20, 640, 20]),
        (&[2, 2], &[32, 32, 32]),
        (&[2, 2], &[16, 128, 16]),
        (&[2, 3], &[48, 24, 96]),
        (&[4], &[64, 8, 64, 8]),
        (&[3], &[9, 63, 6, 63]),
        (&[2], &[8, 64, 8, 64, 8]),
    ];
    for (axes, sizes) in cases {
        let spread = |kind: &Content, at: &Placement| {
            let cut = |role: &Role| matches!(role, Role::Keys(dims) if !dims.is_empty());
            kind.keys.len() < 3 || at.0.iter().all(cut)
        };
        let mut graph = terms::graph(axes).with_explanations_disabled();
        let root = chain(&mut graph, sizes);
        let search = Search {
            node_limit: 200_000,
            disabled: &[],
            deadline: &|| false,
            allowed: &spread,
        };
        let term = cheapest(&mut graph, root, &search).unwrap();
        let mesh = Mesh {
            axes: axes.to_vec(),
        };
        // A factor of 1: every product cuts along every axis, as above.
        let options = SearchOptions {
            balance: 1.0,
            pinned: Pinned {
                mesh: Some(mesh.clone()),
                ..Pinned::default()
            },
            ..SearchOptions::new(mesh.sites(), Objective::Transfer)
        };
        let network = layout(&program(sizes), &options, &|| false).unwrap();
        assert!(network.proved_optimal);
        assert_eq!(
            term.transfers as f64, network.price.transfer,
            "{mesh}, {sizes:?}: {term:?}"
        );
    }
}

#[test]
fn the_three_products_cost_what_the_thesis_prints() {
    // Table 3.3, 10 sites: the named plan of each shape, every operand starting in a partition.
    for ([i, k, j], bmm, cmm) in [
        ([40_000, 40_000, 40_000], 16_000_000_000, 16_000_000_000),
        ([10_000, 640_000, 10_000], 64_000_000_000, 1_000_000_000),
        ([80_000, 10_000, 80_000], 8_000_000_000, 64_000_000_000u128),
    ] {
        let mesh = Mesh::row(10);
        let (every, by) = (Placement::every(1), Placement(vec![Role::Keys(vec![0])]));
        let partial = Placement(vec![Role::Partial(Reduction::Sum)]);
        let (a, c): (u128, u128) = (i * k, i * j);
        assert_eq!(transfer(&by, &every, &mesh, a), Some(bmm));
        assert_eq!(transfer(&partial, &by, &mesh, c), Some(cmm));
    }
}

#[test]
fn a_product_knows_the_three_forms() {
    let mut n = Numbers(5);
    let mut graph = terms::graph(&[3]);
    let root = product(&mut graph, &mut n, 2);
    let ways = einc_core::rules::ia::rows::ways(&["matrix multiplication"], true, &[]);
    let found = einc_core::rules::ia::rows::matches(&graph, &ways);
    for name in ["BMM", "CMM", "RMM"] {
        assert!(found.iter().any(|(row, _)| *row == name), "{name}");
    }
    assert!(matches!(graph[root].data, Kind::Logical(_)));
}
