//! Every row by execution: wherever it applies to a random term, both sides are the same keys, arrays and placement.

use crate::evaluate::{Value, check_same, evaluate};
use crate::support::Numbers;
use crate::terms::{self, Random, binary, content, kernel, key, leaf};
use egg::Id;
use ein_plan::{Function, Reduction};
use einc_core::rules::ia::function::ArrayFunction;
use einc_core::rules::ia::graph::{Graph, Kind, Tree};
use einc_core::rules::ia::language::{Algebra, Operator};
use einc_core::rules::ia::rows::{FAMILIES, matches, rows, ways};
use einc_core::rules::ia::{Placement, Role, all};
use std::collections::HashMap;

pub const MESHES: [&[u32]; 8] = [&[1], &[2], &[3], &[4], &[5], &[2, 2], &[2, 2], &[1, 3]];

/// Values of terms by their own numbers, which unions do not change.
#[derive(Default)]
pub struct Values(HashMap<Id, Value>);

impl Values {
    pub fn of(&mut self, graph: &Graph, id: Id) -> Value {
        if let Some(value) = self.0.get(&id) {
            return value.clone();
        }
        let term = graph.id_to_node(id).clone();
        let children: Vec<Value> = term
            .children
            .iter()
            .map(|child| self.of(graph, *child))
            .collect();
        let children: Vec<&Value> = children.iter().collect();
        let value = evaluate(&term.operator, &children, &graph.analysis);
        self.0.insert(id, value.clone());
        value
    }
}

/// Applies what applies, a few rounds; every application is executed. Then members of one class are compared too.
fn execute(
    graph: &mut Graph,
    n: &mut Numbers,
    counts: &mut HashMap<&'static str, usize>,
    about: &str,
) {
    let ways = ways(&FAMILIES, true, &[]);
    let mut values = Values::default();
    for _ in 0..3 {
        graph.rebuild();
        let mut found = matches(graph, &ways);
        while found.len() > 40 {
            found.swap_remove(n.below(found.len()));
        }
        for (name, sides) in found {
            let (left, right) = (sides.0.add(graph), sides.1.add(graph));
            let nothing = |id: Id| graph[id].data == Kind::Nothing;
            if nothing(left) || nothing(right) {
                continue;
            }
            let (a, b) = (values.of(graph, left), values.of(graph, right));
            check_same(&a, &b, &graph.analysis.mesh, &format!("{name}, {about}"));
            *counts.entry(name).or_default() += 1;
            graph.union_trusted(left, right, name);
        }
    }
    graph.rebuild();
    assert_eq!(graph.analysis.faults, Vec::<String>::new(), "{about}");
    let mut first: HashMap<Id, Value> = HashMap::new();
    let mut known: Vec<(Id, Value)> = values.0.into_iter().collect();
    known.sort_by_key(|(id, _)| *id);
    for (id, value) in known {
        let mesh = graph.analysis.mesh.clone();
        match first.get(&graph.find(id)) {
            None => drop(first.insert(graph.find(id), value)),
            Some(other) => check_same(other, &value, &mesh, about),
        }
    }
}

/// The content and seeds of a product of two matrices, cut along every index.
pub fn product(graph: &mut Graph, n: &mut Numbers, places: usize) -> Id {
    let axes: Vec<u8> = (0..graph.analysis.mesh.axes.len() as u8).collect();
    let range = |n: &mut Numbers| key(n.pick(&[2, 3, 5]), 1 + n.below(5) as u32, &axes);
    let (i, k, j) = (range(n), range(n), range(n));
    let a = content(
        &[i.clone(), k.clone()],
        &[(i.extent, Some(0)), (k.extent, Some(1))],
    );
    let b = content(
        &[k.clone(), j.clone()],
        &[(k.extent, Some(0)), (j.extent, Some(1))],
    );
    let times = kernel(
        &[i.extent, j.extent, k.extent],
        &[&[0, 2], &[2, 1]],
        2,
        |g, x| terms::apply2(g, Function::Mul, x[0], x[1]),
    );
    let times = graph.analysis.kernels.labelled(&times, "matMul");
    let join = Algebra::Join {
        keys: vec![i, k, j],
        inputs: vec![vec![0, 1], vec![1, 2]],
        keep: vec![0, 1, 2],
        function: ArrayFunction::of_kernel(times, vec![Some(0), Some(2), Some(1)], 2),
    };
    let sum = Algebra::aggregate(vec![0, 2], Reduction::Sum);
    let mut tensors = vec![];
    for (name, kind) in [("A", &a), ("B", &b)] {
        for _ in 0..places {
            let mut random = Random {
                n,
                graph,
                leaves: 0,
            };
            let at = random.placement(kind, false);
            let id = leaf(graph, name, kind, &at);
            tensors.push(graph.id_to_node(id).children[0]);
        }
    }
    let operands = vec![Tree::Class(tensors[0]), Tree::Class(tensors[places])];
    let joined = Tree::Node(Operator::Tra(join), operands);
    let summed = Tree::Node(Operator::Tra(sum), vec![joined]).add(graph);
    let result = match &graph[summed].data {
        Kind::Logical(content) => (**content).clone(),
        other => panic!("{other}"),
    };
    for _ in 0..places {
        let at = Random {
            n,
            graph,
            leaves: 0,
        }
        .placement(&result, false);
        Tree::at(at, Tree::Class(summed)).add(graph);
    }
    summed
}

/// Terms to which the rarer rows apply.
fn directed(graph: &mut Graph, n: &mut Numbers, which: usize) {
    let mut random = Random {
        n,
        graph,
        leaves: 0,
    };
    let kind = random.content();
    let partial = |r: &mut Random<'_>| loop {
        let at = r.placement(&kind, true);
        let sums =
            at.0.iter()
                .all(|role| !matches!(role, Role::Partial(of) if *of != Reduction::Sum));
        if r.mesh().sites() == 1 || (at.is_partial() && sums) {
            return at;
        }
    };
    let of = |graph: &mut Graph, f: &ein_plan::Kernel, operands| {
        let f = graph.analysis.kernels.add(f);
        ArrayFunction::of_kernel(f, terms::ranges(&kind), operands)
    };
    let join = |function: ArrayFunction| {
        let own: Vec<u32> = (0..kind.keys.len() as u32).collect();
        Algebra::Join {
            keys: kind.keys.clone(),
            inputs: vec![own.clone(), own.clone()],
            keep: own,
            function,
        }
    };
    let e = terms::extents(&kind);
    match which {
        0 => {
            // Two partial sums, each reduced, then added.
            let at = partial(&mut random);
            let to = random.placement(&kind, false);
            let sides = [0, 1].map(|_| random.leaf(&kind, &at));
            let add = of(graph, &binary(&e, Function::Add), 2);
            let moved = sides
                .map(|id| Tree::moved(to.clone(), Tree::Class(id)))
                .to_vec();
            Tree::local(join(add), moved).add(graph);
            let add = of(graph, &binary(&e, Function::Sub), 2);
            let plain = sides.map(Tree::Class).to_vec();
            Tree::moved(to, Tree::local(join(add), plain)).add(graph);
        }
        1 => {
            // A partial sum that is wanted everywhere, and one with a linear map.
            let at = partial(&mut random);
            let to = random.placement(&kind, false);
            let id = random.leaf(&kind, &at);
            let every = Placement::every(graph.analysis.mesh.axes.len());
            Tree::moved(every, Tree::Class(id)).add(graph);
            let neg = of(graph, &terms::unary(&e, Some(Function::Neg)), 1);
            let map = Algebra::transform(kind.keys.len(), neg);
            Tree::unary(map, Tree::moved(to, Tree::Class(id))).add(graph);
        }
        2 => {
            // A selection of an element-by-element join, maps of filters, filters of joins.
            let at = random.placement(&kind, false);
            let sides = [0, 1].map(|_| random.leaf(&kind, &at));
            let f = of(
                graph,
                &binary(&e, n.pick(&[Function::Add, Function::Mul])),
                2,
            );
            let joined = Tree::local(join(f), sides.map(Tree::Class).to_vec());
            if let [a, b] = e[..] {
                let turned = kernel(&[b, a], &[&[1, 0]], 2, |_, x| x[0]);
                let turned = graph.analysis.kernels.add(&turned);
                let cuts = vec![kind.dims[1].cut, kind.dims[0].cut];
                let map =
                    Algebra::transform(kind.keys.len(), ArrayFunction::of_kernel(turned, cuts, 1));
                Tree::unary(map, joined).add(graph);
            }
        }
        3 => {
            // Maps of aggregations.
            let at = random.placement(&kind, false);
            let id = random.leaf(&kind, &at);
            let cuts: Vec<u32> = kind.dims.iter().filter_map(|d| d.cut).collect();
            let kept: Vec<u32> = (0..kind.keys.len() as u32)
                .filter(|k| cuts.contains(k))
                .collect();
            let (reduction, function) = n.pick(&[
                (Reduction::Sum, Function::Neg),
                (Reduction::Max, Function::Relu),
            ]);
            let f = graph
                .analysis
                .kernels
                .add(&terms::unary(&e, Some(function)));
            let place = |k: u32| kept.iter().position(|o| *o == k).map(|at| at as u32);
            let f = ArrayFunction::of_kernel(f, terms::ranges(&kind), 1)
                .rename(&place)
                .unwrap();
            let sum = Tree::unary(Algebra::aggregate(kept.clone(), reduction), Tree::Class(id));
            Tree::unary(Algebra::transform(kept.len(), f), sum).add(graph);
        }
        4 => {
            // Two filters; two descriptions of one content.
            let at = random.placement(&kind, false);
            let id = random.leaf(&kind, &at);
            let by = |value: u32| {
                use einc_core::rules::ia::predicate::{Atom, Predicate};
                Algebra::Filter(Predicate::new([Atom::Is(0, value)]))
            };
            let twice = Tree::unary(by(0), Tree::unary(by(0), Tree::Class(id)));
            let to = Random {
                n,
                graph,
                leaves: 9,
            }
            .placement(&kind, false);
            Tree::moved(to, twice).add(graph);
        }
        5 => {
            // Windows of what is cut, wanted cut by their own key.
            let at = random.placement(&kind, false);
            let id = random.leaf(&kind, &at);
            if let Some(windows) = random.windows(id) {
                let id = windows.add(graph);
                if let Kind::Placed(kind, _) = graph[id].data.clone() {
                    let to = Random {
                        n,
                        graph,
                        leaves: 9,
                    }
                    .placement(&kind, false);
                    Tree::moved(to, Tree::Class(id)).add(graph);
                }
            }
        }
        _ => drop(product(graph, n, 2)),
    }
}

#[test]
fn every_row_by_execution() {
    let mut counts = HashMap::new();
    for seed in 0..320 {
        let mut n = Numbers(seed * 0x9E37_79B9 + 1);
        let mesh = MESHES[seed as usize % MESHES.len()];
        let mut graph = terms::graph(mesh);
        if seed % 3 == 0 {
            directed(&mut graph, &mut n, (seed as usize / 3) % 7);
        } else {
            let depth = 1 + n.below(4);
            Random {
                n: &mut n,
                graph: &mut graph,
                leaves: 0,
            }
            .term(depth);
        }
        execute(
            &mut graph,
            &mut n,
            &mut counts,
            &format!("seed {seed}, mesh {mesh:?}"),
        );
    }
    let mut rare: Vec<String> = vec![];
    for info in all() {
        let count = counts.get(info.name).copied().unwrap_or(0);
        if count < 5 {
            rare.push(format!("{}: {count}", info.name));
        }
    }
    assert!(rare.is_empty(), "too few instances: {rare:?} of {counts:?}");
}

#[test]
fn merging_two_placements_is_a_fault() {
    let mut graph = terms::graph(&[2]);
    let kind = content(&[key(4, 2, &[0])], &[(4, Some(0))]);
    let every = leaf(&mut graph, "A", &kind, &Placement(vec![Role::Every]));
    let cut = leaf(
        &mut graph,
        "A",
        &kind,
        &Placement(vec![Role::Keys(vec![0])]),
    );
    graph.union_trusted(every, cut, "unsound");
    graph.rebuild();
    assert_eq!(
        graph.analysis.faults,
        ["{4/2} [4/k0] f64 @ ALL became one with {4/2} [4/k0] f64 @ ⟨0⟩, which it is not"]
    );
}

#[test]
fn rows_have_names_of_their_own_and_families_that_proofs_try() {
    let mut names: Vec<&str> = all().iter().map(|info| info.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    for row in rows() {
        assert!(FAMILIES.contains(&row.info.family), "{}", row.info.name);
        assert!(
            row.simplify.is_some() || row.expand.is_some(),
            "{}",
            row.info.name
        );
    }
}
