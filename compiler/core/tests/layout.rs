//! Any layout is carried out: random programs on random layouts keep their meaning, and plans are stated exactly.
#![allow(clippy::unwrap_used)]

mod support;

use ein_plan::{IndexId, Mesh, Plan, RelationId, Step, memory, traffic};
use einc_core::einsum::Program;
use einc_core::einsum::interpret::{Values, interpret};
use einc_core::einsum::random::case;
use einc_core::ia::from_layout::{Placed, place};
use einc_core::ia::layout::{Layout, StatementRole, TensorRole};
use einc_core::tra::chunk::Chunk;
use einc_core::{cost, ia, lower, tra};
use support::build::{conv, gather, matmul, nearest, softmax};
use support::{Given, given, inputs, same};

/// Places, verifies, lowers, verifies, and reads every printed form back.
fn placed(program: &Program, layout: &Layout, sites: u32, deterministic: bool) -> (Placed, Plan) {
    let what = || format!("{layout:?} on {sites} sites\n{program}");
    let placed = place(program, layout, sites, deterministic)
        .unwrap_or_else(|error| panic!("{error}\n{}", what()));
    tra::verify::verify(&placed.tra).unwrap_or_else(|e| panic!("{e}\n{}", placed.tra));
    ia::verify::verify(&placed.ia).unwrap_or_else(|e| panic!("{e}\n{}\n{}", placed.ia, what()));
    let plan = lower::lower(&placed.ia, deterministic).unwrap();
    ein_plan::verify::verify(&plan).unwrap_or_else(|e| panic!("{e}\n{plan}\n{}", what()));
    let text = placed.tra.to_string();
    assert_eq!(tra::parse::parse(&text).unwrap().to_string(), text);
    let text = placed.ia.to_string();
    assert_eq!(ia::parse::parse(&text).unwrap().to_string(), text);
    let text = plan.to_string();
    assert_eq!(text.parse::<Plan>().unwrap().to_string(), text);
    (placed, plan)
}

/// What is stated of a plan is what its tuples say, one by one.
fn check_statements(ia: &ia::Program, plan: &Plan) {
    let machine = cost::Machine { sites: plan.sites };
    let cost = cost::of_plan(ia, plan, &machine);
    let total = traffic::total(plan);
    assert_eq!(u128::from(total.transfer), cost.transfer);
    let mut received = vec![traffic::Received::default(); plan.sites as usize];
    let mut sent = 0;
    for step in &plan.steps {
        if let ein_plan::Operation::Window { input } = &step.operation {
            for (site, bytes) in lacking(plan, step, *input).into_iter().enumerate() {
                received[site].bytes += bytes;
                sent += bytes;
            }
            continue;
        }
        let (ein_plan::Operation::Broadcast { input } | ein_plan::Operation::Shuffle { input }) =
            &step.operation
        else {
            continue;
        };
        let from = plan.kind(*input);
        for key in from.all_keys() {
            for site in step.kind.holders(&key, &plan.mesh) {
                if !from.holds(&key, site, &plan.mesh) {
                    let bytes = from.tuple_bytes(&key);
                    received[site as usize].bytes += bytes;
                    sent += bytes;
                }
            }
        }
    }
    assert_eq!(total.bytes, sent);
    let stated: Vec<u64> = traffic::received(plan).iter().map(|r| r.bytes).collect();
    let counted: Vec<u64> = received.iter().map(|r| r.bytes).collect();
    assert_eq!(stated, counted);
    for (site, peak) in memory::peaks(plan).iter().enumerate() {
        assert!(plan.mesh.sites() > site as u32 || peak.bytes == 0);
    }
}

/// By site: the bytes of the elements of its windows that no tuple of the input at that site has, one by one.
fn lacking(plan: &Plan, step: &Step, input: RelationId) -> Vec<u64> {
    let from = plan.kind(input);
    let width: u64 = step
        .kind
        .array
        .columns
        .iter()
        .map(|c| c.size() as u64)
        .sum();
    let of_site = |site: u32| {
        let held: Vec<Vec<(u64, u64)>> = from
            .keys_at(site, &plan.mesh)
            .map(|key| from.ranges(&key))
            .collect();
        let has = |at: &[u64]| {
            held.iter().any(|ranges| {
                let mut dims = at.iter().zip(ranges);
                dims.all(|(at, (start, length))| (*start..start + length).contains(at))
            })
        };
        let mut lacks = 0;
        for key in step.kind.keys_at(site, &plan.mesh) {
            let ranges = step.kind.ranges(&key);
            let shape: Vec<u64> = ranges.iter().map(|(_, length)| *length).collect();
            for at in tra::chunk::positions(&shape) {
                let at: Vec<u64> = at.iter().zip(&ranges).map(|(x, (s, _))| x + s).collect();
                lacks += u64::from(!has(&at)) * width;
            }
        }
        lacks
    };
    (0..plan.sites).map(of_site).collect()
}

#[test]
fn random_programs_on_random_layouts_keep_their_meaning() {
    for seed in 0..50 {
        let case = case(seed);
        let expected = interpret(&case.program, &|tensor| case.input(tensor)).unwrap();
        let inputs = |name: &str| {
            let Values { shape, data } = case.inputs[name].clone();
            Chunk {
                shape,
                columns: vec![data],
            }
        };
        for round in 0..3 {
            let sites = 1 + ((seed + 3 * round) % 8) as u32;
            let layout = ia::random::layout(&case.program, sites, 97 * seed + round);
            let (placed, plan) = placed(&case.program, &layout, sites, round == 2);
            check_statements(&placed.ia, &plan);
            let by_tra = tra::interpret::interpret(&placed.tra, &inputs).unwrap();
            let by_ia = ia::interpret::interpret(&placed.ia, &inputs)
                .unwrap_or_else(|stop| panic!("{stop:?}\n{}", placed.ia));
            for (what, found) in [("TRA", by_tra), ("IA", by_ia)] {
                for (at, (expected, mut found)) in expected.iter().zip(found).enumerate() {
                    let found = Values {
                        shape: found.shape,
                        data: found.columns.remove(0),
                    };
                    if let Err(difference) = case.compare(at, expected, &found) {
                        panic!(
                            "seed {seed}, {what}, output {at}: {difference}\n{layout:?}\n{}\n{}",
                            case.program, placed.ia
                        );
                    }
                }
            }
        }
    }
}

fn by_definition(program: &Program) -> Given {
    let inputs = inputs(program);
    let values = interpret(program, &|tensor| {
        let Chunk { shape, mut columns } = inputs(&tensor.name);
        Values {
            shape,
            data: columns.remove(0),
        }
    });
    let chunk = |Values { shape, data }| Chunk {
        shape,
        columns: vec![data],
    };
    match values {
        Ok(values) => Ok(values.into_iter().map(chunk).collect()),
        Err(_) => Err("stopped"),
    }
}

/// Programs that stop, gathers and halos among them.
#[test]
fn hand_written_programs_on_random_layouts_keep_their_meaning() {
    for program in [
        matmul(4, 6, 8),
        matmul(0, 3, 2),
        nearest(9, 3),
        gather(9, 3),
        gather(1, 1),
        softmax(3, 5),
        softmax(4, 0),
        conv(3, 8),
    ] {
        let expected = by_definition(&program);
        for seed in 0..10 {
            let sites = 1 + (seed % 8) as u32;
            let layout = ia::random::layout(&program, sites, seed);
            let (placed, plan) = placed(&program, &layout, sites, seed % 3 == 0);
            check_statements(&placed.ia, &plan);
            let found = ia::interpret::interpret(&placed.ia, &inputs(&program));
            same(&expected, &given(found), &format!("{layout:?}"));
        }
    }
}

const EVERY: StatementRole = StatementRole::Every;
const ALL: TensorRole = TensorRole::Every;
const ONE: TensorRole = TensorRole::First;

fn index(number: u32) -> StatementRole {
    StatementRole::Index(IndexId(number))
}

fn cut(dim: u32) -> TensorRole {
    TensorRole::Cut(dim)
}

/// Of a product A·B of these sizes (i, k, j) on a mesh: what it moves, and the steps after the sources.
fn product(
    [i, k, j]: [u64; 3],
    axes: &[u32],
    sites: u32,
    statement: &[StatementRole],
    rests: [&[TensorRole]; 3],
) -> String {
    let layout = Layout {
        mesh: Mesh {
            axes: axes.to_vec(),
        },
        statements: vec![vec![], vec![], statement.to_vec()],
        rests: rests.map(<[TensorRole]>::to_vec).to_vec(),
    };
    carried_out(&matmul(i, k, j), &layout, sites)
}

/// Of a program laid out so: what it moves, and the steps after the sources.
fn carried_out(program: &Program, layout: &Layout, sites: u32) -> String {
    let (placed, plan) = placed(program, layout, sites, false);
    check_statements(&placed.ia, &plan);
    let found = ia::interpret::interpret(&placed.ia, &inputs(program));
    same(&by_definition(program), &given(found), "IA");
    let cost = cost::of_plan(&placed.ia, &plan, &cost::Machine { sites });
    let mut text = format!(
        "transfer {}, received at most {}, flops {}\n",
        cost.transfer, cost.received_max.floats, cost.flops
    );
    for relation in &placed.ia.relations {
        let (word, operation) = match &relation.operation {
            ia::Operation::Source { .. } => continue,
            ia::Operation::Broadcast { .. } => ("broadcast", None),
            ia::Operation::Shuffle { .. } => ("shuffle", None),
            ia::Operation::Window { .. } => ("window", None),
            ia::Operation::LocalJoin { fold, .. } => ("join", fold.as_ref()),
            ia::Operation::LocalAggregate { .. } => ("aggregate", None),
            ia::Operation::LocalTile { .. } => ("tile", None),
            ia::Operation::LocalConcat { .. } => ("concat", None),
            other => panic!("{other:?}"),
        };
        let fold = operation.map_or(String::new(), |fold| {
            let keys: Vec<String> = fold.keys.iter().map(ToString::to_string).collect();
            format!(" of {{{}}}", keys.join(", "))
        });
        text.push_str(&format!(
            "{}: {} = {word}{fold}\n",
            relation.name, relation.kind
        ));
    }
    text
}

#[test]
fn a_product_on_a_grid_gathers_rows_and_columns() {
    let text = product(
        [8, 12, 4],
        &[2, 2],
        5,
        &[index(0), index(1)],
        [&[cut(0), cut(1)], &[cut(0), cut(1)], &[cut(0), cut(1)]],
    );
    assert_eq!(
        text,
        "\
transfer 288, received at most 36, flops 192
A.by.i.all: {i: 8/2, k: 12/4@xy} f32[i, k] @ GRID(i, *) = broadcast
B.by.all.j: {k: 12/4@xy, j: 4/2@y} f32[k, j] @ GRID(*, j) = broadcast
C: {i: 8/2, j: 4/2@y} f32[i, j] @ GRID(i, j) = join of {i: 8/2, j: 4/2@y, k: 12/4@xy}
"
    );
}

#[test]
fn a_product_in_three_dimensions_scatters_its_addends() {
    let text = product(
        [8, 16, 4],
        &[2, 2, 2],
        8,
        &[index(0), index(1), index(2)],
        [
            &[cut(0), cut(1), cut(1)],
            &[cut(0), cut(1), cut(0)],
            &[cut(0), cut(1), cut(0)],
        ],
    );
    // A and B to two sites each, 256 and 128; C's addends once, 2 · 32.
    assert_eq!(
        text,
        "\
transfer 448, received at most 28, flops 128
A.by.i.all.k: {i: 8/4@xz, k: 16/8@xyz} f32[i, k] @ GRID(i, *, k) = broadcast
B.by.all.j.k: {k: 16/8@xyz, j: 4/2@y} f32[k, j] @ GRID(*, j, k) = broadcast
C.partial: {i: 8/4@xz, j: 4/2@y, k: 16/2@z} f32[i, j] @ GRID(i, j, k) = join of {i: 8/4@xz, j: 4/2@y, k: 16/8@xyz}
C.partial.by.i.j.i: {i: 8/4@xz, j: 4/2@y, k: 16/2@z} f32[i, j] @ GRID(i, j, i) = shuffle
C: {i: 8/4@xz, j: 4/2@y} f32[i, j] @ GRID(i, j, i) = aggregate
"
    );
}

#[test]
fn addends_that_are_wanted_everywhere_are_scattered_and_broadcast() {
    let text = product(
        [4, 12, 6],
        &[3],
        3,
        &[index(2)],
        [&[cut(1)], &[cut(0)], &[ALL]],
    );
    // 3 · 24 addends, then 24 values to 3 sites; a site receives 2 · (1 - 1/3) · 24.
    assert_eq!(
        text,
        "\
transfer 144, received at most 32, flops 192
C.partial: {k: 12/3} f32[4, 6] @ PART(k) = join
C.partial.cut: {k: 12/3, j: 6/3} f32[4, j] @ PART(k) = tile
C.partial.cut.by.j: {k: 12/3, j: 6/3} f32[4, j] @ PART(j) = shuffle
C.given: {j: 6/3} f32[4, j] @ PART(j) = aggregate
C.given.all: {j: 6/3} f32[4, j] @ ALL = broadcast
C: {} f32[4, 6] @ ALL = concat
"
    );
}

#[test]
fn addends_of_replicas_are_added_up_by_each_replica() {
    let text = product(
        [4, 12, 6],
        &[2, 2],
        4,
        &[index(2), EVERY],
        [&[cut(1), ONE], &[cut(0), ONE], &[cut(1), ALL]],
    );
    // A and B to two sites, 96 and 144; two times the 2 · 24 addends.
    assert_eq!(
        text,
        "\
transfer 336, received at most 72, flops 288
A.by.k.all: {k: 12/2} f32[4, k] @ GRID(k, *) = broadcast
B.by.k.all: {k: 12/2, j: 6/2} f32[k, j] @ GRID(k, *) = broadcast
C.partial: {j: 6/2, k: 12/2} f32[4, j] @ GRID(k, *) = join
C.partial.by.j.all: {j: 6/2, k: 12/2} f32[4, j] @ GRID(j, *) = shuffle
C: {j: 6/2} f32[4, j] @ GRID(j, *) = aggregate
"
    );
}

#[test]
fn what_is_made_at_one_site_is_cut_before_it_moves() {
    let text = "input A: f64[8, 8] = unbound\nB: f64[8, 8] = [i: 8, j: 8] inv(A[:1, :2], i, j)\n\
        C: f64[8, 8] = [i: 8, j: 8] B[i, j] * B[i, j]\noutput C";
    let program = einc_core::einsum::parse::parse(text).unwrap();
    let layout = Layout {
        mesh: Mesh { axes: vec![2, 2] },
        statements: vec![
            vec![],
            vec![StatementRole::First; 2],
            vec![index(0), index(1)],
        ],
        rests: vec![vec![ONE, ONE], vec![cut(0), cut(1)], vec![cut(0), cut(1)]],
    };
    // Each element goes to one site, not each half of the rows to two.
    assert_eq!(
        carried_out(&program, &layout, 4),
        "\
transfer 64, received at most 16, flops 1040
B.given: {} f64[8, 8] @ GRID(., .) = join
B.cut: {i: 8/2} f64[i, 8] @ GRID(., .) = tile
B: {i: 8/2, j: 8/2@y} f64[i, j] @ GRID(., .) = tile
B.by.i.j: {i: 8/2, j: 8/2@y} f64[i, j] @ GRID(i, j) = shuffle
C: {i: 8/2, j: 8/2@y} f64[i, j] @ GRID(i, j) = join
"
    );
}

/// A small vector that rests cut, and statements that every site runs over all of it.
const SMALL: &str = "input a: f32[N] = unbound
b: f32[N] = [i: N] exp(a[i])
c: f32[N] = [i: N] 2.0 * b[i]
d: f32[N] = [i: N] b[i] + c[i]
e: f32[] = [| i: N] sum c[i] * d[i]
output e";

#[test]
fn what_is_small_is_put_together_for_statements_that_have_all_of_it() {
    let text_of = |count: &str| {
        let program = einc_core::einsum::parse::parse(&SMALL.replace('N', count)).unwrap();
        let every = vec![StatementRole::Every];
        let layout = Layout {
            mesh: Mesh { axes: vec![4] },
            statements: vec![vec![], every.clone(), every.clone(), every.clone(), every],
            rests: [cut(0), ALL, ALL, ALL, ALL].map(|role| vec![role]).to_vec(),
        };
        carried_out(&program, &layout, 4)
    };
    assert_eq!(
        text_of("10"),
        "\
transfer 40, received at most 8, flops 120
a.all: {i: 10/4} f32[i] @ ALL = broadcast
a.whole: {} f32[10] @ ALL = concat
b: {} f32[10] @ ALL = join
c: {} f32[10] @ ALL = join
d: {} f32[10] @ ALL = join
e: {} f32[] @ ALL = join
"
    );
    // 1.2 MB are not copied for fewer tuples.
    assert_eq!(
        text_of("300000"),
        "\
transfer 1200000, received at most 225000, flops 3600000
a.all: {i: 300000/4} f32[i] @ ALL = broadcast
b: {i: 300000/4} f32[i] @ ALL = join
c: {i: 300000/4} f32[i] @ ALL = join
d: {i: 300000/4} f32[i] @ ALL = join
e: {} f32[] @ ALL = join of {i: 300000/4}
"
    );
}

#[test]
fn what_a_site_has_is_not_read_in_windows() {
    let text = "input a: f32[12, 8] = unbound\nb: f32[12] = [i: 12] a[i, 3] + a[i, 5]\noutput b";
    let program = einc_core::einsum::parse::parse(text).unwrap();
    let layout = |role| Layout {
        mesh: Mesh { axes: vec![4] },
        statements: vec![vec![], vec![index(0)]],
        rests: vec![vec![role], vec![cut(0)]],
    };
    // Only a that lies by its other dimension is moved, and only the columns that are read.
    assert_eq!(
        carried_out(&program, &layout(cut(0)), 4),
        "\
transfer 0, received at most 0, flops 3
b: {i: 12/4} f32[i] @ PART(i) = join
"
    );
    assert_eq!(
        carried_out(&program, &layout(cut(1)), 4),
        "\
transfer 27, received at most 9, flops 3
a.window: {i: 12/4} f32[i, 3..5 of 8] @ PART(i) = window
b: {i: 12/4} f32[i] @ PART(i) = join
"
    );
}

#[test]
fn a_range_may_be_shorter_than_its_pieces() {
    let text = product(
        [3, 2, 1],
        &[5],
        5,
        &[index(2)],
        [&[cut(1)], &[cut(0)], &[cut(0)]],
    );
    assert_eq!(
        text,
        "\
transfer 15, received at most 4, flops 6
C.partial: {i: 3/5, k: 2/5} f32[i, 1] @ PART(k) = join
C.partial.by.i: {i: 3/5, k: 2/5} f32[i, 1] @ PART(i) = shuffle
C: {i: 3/5} f32[i, 1] @ PART(i) = aggregate
"
    );
}

#[test]
fn layouts_that_do_not_fit_are_refused() {
    let program = matmul(2, 3, 4);
    let fits = Layout {
        mesh: Mesh::row(2),
        statements: vec![vec![], vec![], vec![index(0)]],
        rests: vec![vec![cut(0)], vec![ONE], vec![ALL]],
    };
    let refused = |change: &dyn Fn(&mut Layout)| {
        let mut layout = fits.clone();
        change(&mut layout);
        place(&program, &layout, 2, false).unwrap_err()
    };
    assert!(place(&program, &fits, 2, false).is_ok());
    assert_eq!(
        refused(&|layout| layout.mesh = Mesh::row(3)),
        "there is no mesh 3 of 2 sites"
    );
    assert_eq!(
        refused(&|layout| layout.rests[2] = vec![TensorRole::Partial]),
        "layout of `C`: it rests as addends"
    );
    assert_eq!(
        refused(&|layout| layout.statements[2] = vec![index(3)]),
        "layout of `C`: an axis cuts an index that is not there"
    );
    assert_eq!(
        refused(&|layout| layout.rests[0] = vec![cut(2)]),
        "layout of `A`: an axis cuts a dimension that is not there"
    );
    assert_eq!(
        refused(&|layout| layout.statements[2] = vec![EVERY, EVERY]),
        "layout of `C`: there is not one role for each axis"
    );
}
