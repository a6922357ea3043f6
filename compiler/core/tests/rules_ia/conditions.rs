//! Every side condition, in a term where it fails: the row does not fire.

use crate::terms::{self, binary, content, kernel, key, leaf, unary};
use egg::Id;
use ein_plan::{ArrayDim, DType, Function, Reduction};
use einc_core::rules::ia::content::Content;
use einc_core::rules::ia::function::ArrayFunction;
use einc_core::rules::ia::graph::{Graph, Kind, Tree};
use einc_core::rules::ia::keys::KeyRange;
use einc_core::rules::ia::language::{Algebra, Operator};
use einc_core::rules::ia::predicate::{Atom, Predicate};
use einc_core::rules::ia::rows::{matches, rows};
use einc_core::rules::ia::{Placement, Role};

/// Whether a row applies anywhere with relations on both sides.
fn applies(graph: &mut Graph, name: &str) -> bool {
    graph.rebuild();
    let row = rows()
        .into_iter()
        .find(|row| row.info.name == name)
        .unwrap();
    let ways: Vec<_> = row
        .simplify
        .into_iter()
        .chain(row.expand)
        .map(|find| (row.info.name, find))
        .collect();
    matches(graph, &ways).into_iter().any(|(_, (left, right))| {
        let (left, right) = (left.add(graph), right.add(graph));
        graph[left].data != Kind::Nothing && graph[right].data != Kind::Nothing
    })
}

fn is_nothing(graph: &mut Graph, tree: &Tree) -> bool {
    let id = tree.add(graph);
    graph[id].data == Kind::Nothing
}

fn by(dims: &[u32]) -> Placement {
    Placement(vec![Role::Keys(dims.to_vec())])
}

fn every() -> Placement {
    Placement(vec![Role::Every])
}

fn partial(of: Reduction) -> Placement {
    Placement(vec![Role::Partial(of)])
}

/// {6/3, 4/2} [6/k0, 4/k1], or without cuts.
fn matrix(cut: bool) -> Content {
    let cut = |key: u32| cut.then_some(key);
    content(
        &[key(6, 3, &[0]), key(4, 2, &[0])],
        &[(6, cut(0)), (4, cut(1))],
    )
}

struct Test {
    graph: Graph,
    kind: Content,
}

fn on(axes: &[u32], cut: bool) -> Test {
    Test {
        graph: terms::graph(axes),
        kind: matrix(cut),
    }
}

impl Test {
    fn leaf(&mut self, name: &str, at: &Placement) -> Id {
        let kind = self.kind.clone();
        leaf(&mut self.graph, name, &kind, at)
    }

    fn map(&self, function: Option<Function>) -> Algebra {
        let f = self
            .graph
            .analysis
            .kernels
            .add(&unary(&terms::extents(&self.kind), function));
        Algebra::transform(
            self.kind.keys.len(),
            ArrayFunction::of_kernel(f, terms::ranges(&self.kind), 1),
        )
    }

    fn join(&self, function: Function) -> Algebra {
        let f = self
            .graph
            .analysis
            .kernels
            .add(&binary(&terms::extents(&self.kind), function));
        let own: Vec<u32> = (0..self.kind.keys.len() as u32).collect();
        Algebra::Join {
            keys: self.kind.keys.clone(),
            inputs: vec![own.clone(), own.clone()],
            keep: own,
            function: ArrayFunction::of_kernel(f, terms::ranges(&self.kind), 2),
        }
    }

    /// Adds operators one over the other, and says whether a row then applies.
    fn fires(&mut self, name: &str, start: Id, operators: Vec<Operator>) -> bool {
        let tree = operators
            .into_iter()
            .fold(Tree::Class(start), |tree, o| Tree::Node(o, vec![tree]));
        tree.add(&mut self.graph);
        applies(&mut self.graph, name)
    }
}

fn local(algebra: Algebra) -> Operator {
    Operator::Local(algebra)
}

fn filter(atom: Atom) -> Operator {
    local(Algebra::Filter(Predicate::new([atom])))
}

fn replicate() -> Operator {
    local(Algebra::Replicate {
        at: 0,
        key: key(3, 3, &[0]),
    })
}

fn coarse(keep: u32, to: KeyRange) -> Operator {
    let mut sum = Algebra::aggregate(vec![keep], Reduction::Sum);
    if let Algebra::Aggregate { coarse, .. } = &mut sum {
        *coarse = vec![Some(to)];
    }
    local(sum)
}

#[test]
fn composition() {
    // R1-2: a multi-map; a map of pieces whose key dimension was fixed in between.
    let mut t = on(&[2], true);
    let x = t.leaf("X", &every());
    assert!(!t.fires(
        "R1-2",
        x,
        vec![local(Algebra::rekey(vec![1, 0])), replicate()]
    ));
    assert!(
        !t.fires(
            "R1-2",
            x,
            vec![replicate(), local(Algebra::rekey(vec![1, 2, 0]))]
                .into_iter()
                .take(1)
                .collect()
        )
    );
    let mut t = on(&[2], true);
    let x = t.leaf("X", &every());
    let piece = unary(&[2, 4], Some(Function::Neg));
    let piece = t.graph.analysis.kernels.add(&piece);
    let of_piece = Algebra::transform(1, ArrayFunction::of_kernel(piece, vec![None, Some(0)], 1));
    let fixed = vec![
        filter(Atom::Is(0, 1)),
        local(Algebra::rekey(vec![1])),
        local(of_piece),
    ];
    assert!(!t.fires("R1-2", x, fixed));
    // The same without the fixed key dimension does fire.
    let turned = local(Algebra::rekey(vec![0, 1]));
    let neg = t.map(Some(Function::Neg));
    assert!(t.fires("R1-2", x, vec![turned, local(neg)]));

    // R1-3, R1-4: the key map turns the key.
    let mut t = on(&[2], false);
    let x = t.leaf("X", &every());
    let turn = |f: &Algebra| match f {
        Algebra::Map { function, .. } => local(Algebra::Map {
            keys: vec![1, 0],
            function: function.clone(),
        }),
        _ => panic!(),
    };
    let square = t.map(None);
    assert!(!t.fires("R1-3", x, vec![turn(&square), filter(Atom::Is(0, 1))]));
    let sum = Algebra::Aggregate {
        keep: vec![0, 1],
        coarse: vec![],
        reduction: Reduction::Sum,
        before: ArrayFunction::IDENTITY,
        after: ArrayFunction::IDENTITY,
    };
    let neg = t.map(Some(Function::Neg));
    assert!(!t.fires("R1-4", x, vec![local(sum.clone()), turn(&neg)]));
    assert!(!t.fires("R1-4 distributive", x, vec![local(sum.clone()), turn(&neg)]));
    // R1-4 distributive: the kernels do not commute; the groups are blocks.
    for function in [
        None,
        Some(Function::Exp),
        Some(Function::Relu),
        Some(Function::Abs),
    ] {
        let f = t.map(function);
        assert!(
            !t.fires("R1-4 distributive", x, vec![local(sum.clone()), local(f)]),
            "{function:?}"
        );
    }
    let one = unary(&[6, 4], Some(Function::Neg));
    let one = t.graph.analysis.kernels.add(&one);
    let one = Algebra::transform(1, ArrayFunction::of_kernel(one, vec![None, None], 1));
    let blocks = coarse(0, key(6, 2, &[0]));
    assert!(!t.fires("R1-4 distributive", x, vec![blocks.clone(), local(one)]));
    assert!(t.fires("R1-4 distributive", x, vec![local(sum), local(neg)]));

    // R1-5: the filter depends on a key dimension that is aggregated; on a block.
    let mut t = on(&[2], false);
    let x = t.leaf("X", &every());
    let kept = local(Algebra::aggregate(vec![0], Reduction::Sum));
    assert!(!t.fires("R1-5", x, vec![filter(Atom::Is(1, 1)), kept]));
    assert!(!t.fires("R1-5", x, vec![blocks, filter(Atom::Is(0, 1))]));
}

#[test]
fn composition_with_joins() {
    // R1-6: the filter depends on a key dimension of one side only.
    let mut t = on(&[2], false);
    let x = t.leaf("X", &every());
    let y = leaf(
        &mut t.graph,
        "Y",
        &content(&[key(6, 3, &[0])], &[(6, None), (4, None)]),
        &every(),
    );
    let mut one_side = t.join(Function::Add);
    if let Algebra::Join { inputs, .. } = &mut one_side {
        inputs[1] = vec![0];
    }
    let joined = Tree::local(one_side, vec![Tree::Class(x), Tree::Class(y)]).add(&mut t.graph);
    assert!(!t.fires("R1-6", joined, vec![filter(Atom::Is(1, 0))]));
    assert!(t.fires("R1-6", joined, vec![filter(Atom::Is(0, 0))]));
    // R1-7: a multi-map.
    assert!(!t.fires("R1-7", joined, vec![replicate()]));
    // R1-7 distributive: not a selection; not element by element.
    let exp = t.map(Some(Function::Exp));
    assert!(!t.fires("R1-7 distributive", joined, vec![local(exp)]));
    let outer = kernel(&[6, 4], &[&[0], &[1]], 2, |g, x| {
        terms::apply2(g, Function::Mul, x[0], x[1])
    });
    let outer = t.graph.analysis.kernels.add(&outer);
    let turned = kernel(&[4, 6], &[&[1, 0]], 2, |_, x| x[0]);
    let turned = t.graph.analysis.kernels.add(&turned);
    let (a, b) = (content(&[], &[(6, None)]), content(&[], &[(4, None)]));
    let sides = [
        leaf(&mut t.graph, "a", &a, &every()),
        leaf(&mut t.graph, "b", &b, &every()),
    ];
    let product = Algebra::Join {
        keys: vec![],
        inputs: vec![vec![], vec![]],
        keep: vec![],
        function: ArrayFunction::of_kernel(outer, vec![None, None], 2),
    };
    let product = Tree::local(product, sides.map(Tree::Class).to_vec()).add(&mut t.graph);
    let turn = Algebra::transform(0, ArrayFunction::of_kernel(turned, vec![None, None], 1));
    assert!(!t.fires("R1-7 distributive", product, vec![local(turn)]));
    // R1-7: f takes pieces whose key dimension the filter before fixed.
    let mut t = on(&[2], true);
    let sides = ["X", "Y"].map(|name| t.leaf(name, &every()));
    let add = t.join(Function::Add);
    let drop_fixed = |side: Id| {
        Tree::unary(
            Algebra::Filter(Predicate::new([Atom::Is(0, 1)])),
            Tree::Class(side),
        )
    };
    let joined = Tree::local(add, sides.map(drop_fixed).to_vec()).add(&mut t.graph);
    let piece = unary(&[2, 4], Some(Function::Neg));
    let piece = t.graph.analysis.kernels.add(&piece);
    let of_piece = Algebra::transform(1, ArrayFunction::of_kernel(piece, vec![None, Some(0)], 1));
    let tree = Tree::unary(
        of_piece,
        Tree::unary(Algebra::rekey(vec![1]), Tree::Class(joined)),
    );
    let id = tree.add(&mut t.graph);
    assert!(matches!(t.graph[id].data, Kind::Placed(..)));
    let inner = t.graph.id_to_node(id).children[0];
    t.graph.rebuild();
    let row = rows()
        .into_iter()
        .find(|row| row.info.name == "R1-7")
        .unwrap();
    let found = matches(&t.graph, &[("R1-7", row.simplify.unwrap())]);
    // Only the key map goes into the join.
    for (_, (left, _)) in found {
        assert_eq!(left.add(&mut t.graph), inner);
    }
}

#[test]
fn moves() {
    // No axis becomes partial by a move.
    let mut t = on(&[2], false);
    let x = t.leaf("X", &by(&[0]));
    assert!(is_nothing(
        &mut t.graph,
        &Tree::moved(partial(Reduction::Sum), Tree::Class(x))
    ));
    let twice = vec![
        Operator::Move(by(&[1])),
        Operator::Move(partial(Reduction::Sum)),
    ];
    assert!(!t.fires("R2-1", x, twice));
    // It is not there yet.
    assert!(!t.fires("already there", x, vec![Operator::Move(by(&[1]))]));
    // A computed relation, or addends, are no source.
    let mut t = on(&[2], false);
    let x = t.leaf("X", &partial(Reduction::Sum));
    assert!(!t.fires("source", x, vec![Operator::Move(by(&[1]))]));
    let y = t.leaf("Y", &by(&[0]));
    assert!(!t.fires(
        "source",
        y,
        vec![filter(Atom::Is(0, 0)), Operator::Move(by(&[1]))]
    ));
    // R2-3: the new key dimension of a TILE is none of its input, which is therefore broadcast.
    let mut t = on(&[2], false);
    let x = t.leaf("X", &by(&[0]));
    let tile = local(Algebra::Tile {
        array_dim: 0,
        key: key(6, 2, &[0]),
    });
    assert!(t.fires("R2-3", x, vec![tile.clone(), Operator::Move(by(&[2]))]));
    let row = rows()
        .into_iter()
        .find(|row| row.info.name == "R2-3")
        .unwrap();
    for (_, (_, right)) in matches(&t.graph, &[("R2-3", row.simplify.unwrap())]) {
        let Tree::Node(operator, inner) = right else {
            panic!()
        };
        assert_eq!(operator, Operator::Move(by(&[2])));
        let broadcast = Tree::moved(every(), Tree::Class(x));
        assert_eq!(inner, [Tree::Node(tile.clone(), vec![broadcast])]);
    }

    // R2-4 asks for whole groups, R2-5 for spread ones; both for a shuffle by part of the groups.
    let sum = || local(Algebra::aggregate(vec![0], Reduction::Sum));
    for (at, to, whole, spread) in [
        (0, 0, true, false),
        (1, 0, false, true),
        (0, 1, false, false),
    ] {
        let mut t = on(&[2], false);
        let x = t.leaf("X", &by(&[at]));
        let term = vec![Operator::Move(by(&[to])), sum()];
        assert_eq!(t.fires("R2-4", x, term.clone()), whole, "{at} {to}");
        assert_eq!(t.fires("R2-5", x, term), spread, "{at} {to}");
    }
    // R2-5: a coordinate without an addend; a reduction that prefers the first.
    let mut t = on(&[4], false);
    let x = t.leaf("X", &by(&[1]));
    assert!(!t.fires("R2-5", x, vec![Operator::Move(by(&[0])), sum()]));
    let mut t = on(&[2], false);
    t.kind.columns = vec![DType::F64, DType::I64];
    let x = t.leaf("X", &by(&[1]));
    let first = local(Algebra::aggregate(vec![0], Reduction::ArgMax));
    let id = Tree::unary(
        Algebra::aggregate(vec![0], Reduction::ArgMax),
        Tree::Class(x),
    );
    assert!(is_nothing(&mut t.graph, &id));
    assert!(!t.fires("R2-5", x, vec![Operator::Move(by(&[0])), first]));

    // R2-6: addends.
    let mut t = on(&[2], false);
    let sides = ["X", "Y"].map(|name| t.leaf(name, &partial(Reduction::Sum)));
    let add = Tree::local(t.join(Function::Add), sides.map(Tree::Class).to_vec()).add(&mut t.graph);
    assert!(!t.fires("R2-6", add, vec![Operator::Move(by(&[0]))]));
    assert!(t.fires("delayed reduction", add, vec![]));
    // R2-7: somewhere else, though that is part of the joined key, as the paper prints the condition.
    let mut t = on(&[2], false);
    let sides = ["X", "Y"].map(|name| t.leaf(name, &by(&[0, 1])));
    let add = Tree::local(t.join(Function::Add), sides.map(Tree::Class).to_vec()).add(&mut t.graph);
    assert!(!t.fires("R2-7", add, vec![Operator::Move(by(&[0]))]));
    assert!(t.fires("R2-7", add, vec![Operator::Move(by(&[0, 1]))]));
}

#[test]
fn collectives() {
    let two = |a: Role, b: Role| Placement(vec![a, b]);
    let sum = || Role::Partial(Reduction::Sum);
    let cut = |key: u32| Role::Keys(vec![key]);
    let mesh = |roles: Placement, to: Placement, name: &str| {
        let mut t = on(&[2, 2], false);
        t.kind.keys = vec![key(6, 4, &[0, 1]), key(4, 4, &[0, 1])];
        let x = t.leaf("X", &roles);
        t.fires(name, x, vec![Operator::Move(to)])
    };
    assert!(!mesh(
        two(sum(), cut(1)),
        two(cut(0), cut(1)),
        "reduce-scatter"
    ));
    assert!(mesh(
        two(sum(), sum()),
        two(cut(0), cut(1)),
        "reduce-scatter"
    ));
    assert!(!mesh(two(sum(), cut(1)), two(cut(0), cut(1)), "all-reduce"));
    assert!(mesh(
        two(sum(), cut(1)),
        two(Role::Every, cut(1)),
        "all-reduce"
    ));
    assert!(!mesh(
        two(cut(0), cut(1)),
        two(Role::Every, cut(1)),
        "all-gather"
    ));
    assert!(mesh(
        two(cut(0), cut(1)),
        two(Role::Every, Role::Every),
        "all-gather"
    ));

    // Slices: from where it was not everywhere; of an operand whose partner is not cut.
    for (from, partner, fires) in [
        (by(&[1]), by(&[0]), false),
        (every(), every(), false),
        (every(), by(&[0]), true),
    ] {
        let mut t = on(&[2], false);
        let (x, y) = (t.leaf("X", &from), t.leaf("Y", &partner));
        let sliced = Tree::moved(by(&[0]), Tree::Class(x));
        Tree::local(t.join(Function::Add), vec![sliced, Tree::Class(y)]).add(&mut t.graph);
        assert_eq!(applies(&mut t.graph, "slice"), fires);
    }
    // Delayed reduction: a product; an operand without addends; another reduction.
    for (function, other, fires) in [
        (Function::Mul, partial(Reduction::Sum), false),
        (Function::Add, by(&[1]), false),
        (Function::Add, partial(Reduction::Max), false),
        (Function::Add, partial(Reduction::Sum), true),
    ] {
        let mut t = on(&[2], false);
        let (x, y) = (t.leaf("X", &partial(Reduction::Sum)), t.leaf("Y", &other));
        let moved = [x, y].map(|id| Tree::moved(by(&[0]), Tree::Class(id)));
        Tree::local(t.join(function), moved.to_vec()).add(&mut t.graph);
        assert_eq!(applies(&mut t.graph, "delayed reduction"), fires);
    }
    for (function, fires) in [(Function::Exp, false), (Function::Neg, true)] {
        let mut t = on(&[2], false);
        let x = t.leaf("X", &partial(Reduction::Sum));
        let map = t.map(Some(function));
        assert_eq!(
            t.fires("delayed map", x, vec![Operator::Move(by(&[0])), local(map)]),
            fires
        );
    }
    // Phases of argmax: the inner key dimension goes first.
    let mut t = on(&[2], false);
    t.kind.columns = vec![DType::F64, DType::I64];
    let x = t.leaf("X", &every());
    Tree::unary(
        Algebra::aggregate(vec![], Reduction::ArgMax),
        Tree::Class(x),
    )
    .add(&mut t.graph);
    t.graph.rebuild();
    let row = rows()
        .into_iter()
        .find(|row| row.info.name == "local pre-aggregation")
        .unwrap();
    let found = matches(&t.graph, &[("local pre-aggregation", row.expand.unwrap())]);
    let inner = Tree::unary(
        Algebra::aggregate(vec![0], Reduction::ArgMax),
        Tree::Class(x),
    );
    let phases = Tree::unary(Algebra::aggregate(vec![], Reduction::ArgMax), inner);
    assert_eq!(
        found
            .iter()
            .map(|(_, (_, right))| right)
            .collect::<Vec<_>>(),
        [&phases]
    );
    let outer = vec![
        local(Algebra::aggregate(vec![1], Reduction::ArgMax)),
        local(Algebra::aggregate(vec![], Reduction::ArgMax)),
    ];
    let tree = outer
        .into_iter()
        .fold(Tree::Class(x), |tree, o| Tree::Node(o, vec![tree]));
    tree.add(&mut t.graph);
    t.graph.rebuild();
    assert!(
        matches(
            &t.graph,
            &[("local pre-aggregation", row.simplify.unwrap())]
        )
        .is_empty()
    );
    // Blocks.
    let mut t = on(&[2], false);
    t.kind.keys.push(key(5, 2, &[0]));
    let x = t.leaf("X", &every());
    assert!(!t.fires("local pre-aggregation", x, vec![coarse(0, key(6, 2, &[0]))]));
}

#[test]
fn contents() {
    // A key dimension with fewer pieces than blocks leaves coarser groups empty.
    let mut t = on(&[3], false);
    let x = t.leaf("X", &every());
    for (kept, full) in [(0, true), (1, false)] {
        let to = key(t.kind.keys[kept as usize].extent, 3, &[0]);
        let tree = Tree::Node(coarse(kept, to), vec![Tree::Class(x)]);
        assert_eq!(is_nothing(&mut t.graph, &tree), !full);
    }
    // 3.1: spread groups without an order, joins cut differently, a key map that loses the placing key, a nonlinear map of addends,
    // a CONCAT of what is elsewhere.
    let mut t = on(&[2], true);
    let (x, y) = (t.leaf("X", &by(&[0])), t.leaf("Y", &by(&[1])));
    let joined = Tree::local(t.join(Function::Add), vec![Tree::Class(x), Tree::Class(y)]);
    assert!(is_nothing(&mut t.graph, &joined));
    assert!(is_nothing(
        &mut t.graph,
        &Tree::unary(Algebra::Concat { array_dim: 0 }, Tree::Class(x))
    ));
    let fixed = Tree::unary(
        Algebra::Filter(Predicate::new([Atom::Is(0, 1)])),
        Tree::Class(x),
    );
    assert!(is_nothing(
        &mut t.graph,
        &Tree::unary(Algebra::rekey(vec![1]), fixed)
    ));
    // A window of what is in pieces at other coordinates.
    let window = Algebra::Window {
        keys: vec![t.kind.keys[0].clone()],
        dims: t
            .kind
            .dims
            .iter()
            .map(|dim| ArrayDim::whole(dim.extent))
            .collect(),
    };
    assert!(is_nothing(
        &mut t.graph,
        &Tree::unary(window, Tree::Class(x))
    ));
    let addends = t.leaf("Z", &partial(Reduction::Sum));
    let exp = Tree::unary(t.map(Some(Function::Exp)), Tree::Class(addends));
    assert!(is_nothing(&mut t.graph, &exp));
    for name in [
        "3.1-Σ",
        "3.1-⋈",
        "3.1-REKEY",
        "3.1-σ",
        "3.1-λ",
        "3.1-TILE",
        "3.1-CONCAT",
        "3.1-WINDOW",
        "placement",
    ] {
        assert_eq!(applies(&mut t.graph, name), name == "3.1-σ", "{name}");
    }
    assert!(!applies(&mut t.graph, "one content"));

    // Products: three operands; nothing joined is contracted; an operand lacks nothing.
    let vector = |name: &str, graph: &mut Graph| {
        let kind = content(&[key(6, 3, &[0])], &[(6, Some(0))]);
        let id = leaf(graph, name, &kind, &by(&[0]));
        graph.id_to_node(id).children[0]
    };
    let product = |count: usize, kept: &[u32]| {
        let mut graph = terms::graph(&[2]);
        let leaves: Vec<Tree> = (0..count)
            .map(|n| Tree::Class(vector(&format!("x{n}"), &mut graph)))
            .collect();
        let reads: Vec<&[u32]> = (0..count).map(|_| &[0][..]).collect();
        let rank = kept.len();
        let f = kernel(&[6], &reads, rank, |g, x| {
            x[1..]
                .iter()
                .fold(x[0], |a, b| terms::apply2(g, Function::Mul, a, *b))
        });
        let f = graph.analysis.kernels.add(&f);
        let join = Algebra::Join {
            keys: vec![key(6, 3, &[0])],
            inputs: vec![vec![0]; count],
            keep: vec![0],
            function: ArrayFunction::of_kernel(f, vec![Some(0)], count as u32),
        };
        let joined = Tree::Node(Operator::Tra(join), leaves);
        let sum = Operator::Tra(Algebra::aggregate(kept.to_vec(), Reduction::Sum));
        let at = if kept.is_empty() { by(&[]) } else { by(&[0]) };
        let id = Tree::at(at, Tree::Node(sum, vec![joined])).add(&mut graph);
        assert!(matches!(graph[id].data, Kind::Placed(..)));
        ["BMM", "CMM", "RMM"].map(|name| applies(&mut graph, name))
    };
    assert_eq!(product(2, &[]), [true, true, false]);
    assert_eq!(product(2, &[0]), [true, false, false]);
    assert_eq!(product(3, &[]), [false, false, false]);
}
