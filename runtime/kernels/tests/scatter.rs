//! Scatters: reductions whose guard gives output indices their values, against the naive evaluator.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_array::Array;
use ein_kernels::{KernelError, Options, run};
use ein_plan::{
    DType, Function, Graph, Index, IndexId, Kernel, Node, NodeId, Operand, Reduction, Scalar,
};
use reference::{Owned, array, chunks, close, interpret};

/// `[v, d | n] reduction x[n, d] if list[to[n]] == v and …`: `size` places, `rows` rows of `width`.
struct Case {
    dtype: DType,
    reduction: Reduction,
    size: u64,
    rows: u64,
    width: u64,
    /// Rows with an odd number only.
    odd: bool,
    /// How the place of a row is found.
    place: fn(u64, u64) -> i64,
}

fn kernel(case: &Case) -> (Kernel, Vec<Owned>) {
    let mut graph = Graph::default();
    let index: Vec<NodeId> = (0..3)
        .map(|i| graph.add(Node::Index(IndexId(i)), DType::I64))
        .collect();
    let mut read = |operand: u32, positions: Vec<NodeId>, dtype: DType| {
        let node = Node::Read {
            operand,
            column: 0,
            positions,
            otherwise: None,
        };
        graph.add(node, dtype.compute())
    };
    let to = read(1, vec![index[2]], DType::I64);
    let place = read(0, vec![to], DType::I64);
    let root = read(2, vec![index[2], index[1]], case.dtype);
    let mut guard = graph.add(
        Node::Apply(Function::Eq, vec![place, index[0]]),
        DType::Bool,
    );
    if case.odd {
        let two = graph.add(Node::Constant(Scalar::Int(2)), DType::I64);
        let one = graph.add(Node::Constant(Scalar::Int(1)), DType::I64);
        let rest = graph.add(Node::Apply(Function::Rem, vec![index[2], two]), DType::I64);
        let odd = graph.add(Node::Apply(Function::Eq, vec![one, rest]), DType::Bool);
        guard = graph.add(Node::Apply(Function::And, vec![odd, guard]), DType::Bool);
    }
    let (size, rows, width) = (case.size, case.rows, case.width);
    let operand = |dtype, shape: &[u64]| Operand {
        columns: vec![dtype],
        shape: shape.to_vec(),
    };
    let named = |name: &str, extent| Index {
        name: name.into(),
        extent,
    };
    let kernel = Kernel {
        indices: vec![named("v", size), named("d", width), named("n", rows)],
        output_rank: 2,
        operands: vec![
            operand(DType::I64, &[size]),
            operand(DType::I64, &[rows]),
            operand(case.dtype, &[rows, width]),
        ],
        graph,
        root,
        guard: Some(guard),
        reduction: Some(case.reduction),
        finish: true,
        output: vec![case.dtype],
    };
    let owned = |values: Array, rank: usize| Owned {
        columns: vec![values],
        start: vec![0; rank],
    };
    let place = case.place;
    let owned = vec![
        owned(array(DType::I64, &[size as usize], |e| e as f64), 1),
        owned(
            array(DType::I64, &[rows as usize], |e| {
                place(e as u64, size) as f64
            }),
            1,
        ),
        owned(
            array(case.dtype, &[rows as usize, width as usize], |e| {
                ((e * 37 + e / 3) % 29) as f64 - 11.0
            }),
            2,
        ),
    ];
    (kernel, owned)
}

fn evaluate(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    owned: &[Owned],
) -> Result<Vec<Array>, KernelError> {
    let chunks = chunks(owned);
    run(kernel, ranges, &chunks, &Options::default())
}

fn spread(row: u64, size: u64) -> i64 {
    ((row * row + 3 * row) % size) as i64
}

fn whole(kernel: &Kernel) -> Vec<(u64, u64)> {
    kernel.indices.iter().map(|i| (0, i.extent)).collect()
}

#[test]
fn scatters_are_what_the_loops_give() {
    let reductions = [
        Reduction::Sum,
        Reduction::Max,
        Reduction::Min,
        Reduction::Prod,
    ];
    for dtype in [DType::F32, DType::F64, DType::I32, DType::I64, DType::BF16] {
        for (number, reduction) in reductions.into_iter().enumerate() {
            let case = Case {
                dtype,
                reduction,
                size: [7, 30][number % 2],
                rows: [41, 9, 1][number % 3],
                width: [5, 300, 1, 2][number],
                odd: number % 2 == 1,
                place: spread,
            };
            let (kernel, owned) = kernel(&case);
            for ranges in [
                whole(&kernel),
                vec![(2, 4), (0, case.width), (0, case.rows)],
                vec![(0, 3), (0, 1), (case.rows / 2, case.rows - case.rows / 2)],
            ] {
                let got = evaluate(&kernel, &ranges, &owned).unwrap();
                let want = interpret(&kernel, &ranges, &owned).unwrap();
                assert_eq!(got[0].data().len(), want.len());
                for (at, (value, scale)) in want.iter().enumerate() {
                    let x = got[0].data().get(at).as_f64();
                    assert!(
                        close(dtype, x, value.f(), *scale),
                        "{dtype} {reduction:?} {ranges:?}, element {at}: {x}, not {value:?}"
                    );
                }
            }
        }
    }
}

/// Points in the order of their places, in several tables; nearly so; and so that only a few look so. Rows that nothing goes to stand between
/// them, and one that many points go to.
#[test]
fn points_that_come_in_the_order_of_their_places() {
    let ascending: fn(u64, u64) -> i64 =
        |row, size| (row / 3 + (row / 1000) * 40).min(size - 5) as i64;
    let one_back: fn(u64, u64) -> i64 = |row, size| match row {
        123_457 => 3,
        row => (row / 3).min(size - 1) as i64,
    };
    let spread_between: fn(u64, u64) -> i64 = |row, size| match row % 3_174 {
        0 => (row / 3).min(size - 1) as i64,
        _ => (row * 7_919 % size) as i64,
    };
    for place in [ascending, one_back, spread_between] {
        for (dtype, reduction) in [
            (DType::F64, Reduction::Sum),
            (DType::F32, Reduction::Max),
            (DType::I64, Reduction::Sum),
            (DType::I32, Reduction::Min),
        ] {
            for (width, odd) in [(1, false), (3, true)] {
                let (size, rows) = (90_000, 200_000);
                let case = Case {
                    dtype,
                    reduction,
                    size,
                    rows,
                    width,
                    odd,
                    place,
                };
                let (kernel, owned) = kernel(&case);
                let got = evaluate(&kernel, &whole(&kernel), &owned).unwrap();
                let none = match reduction {
                    Reduction::Sum => 0.0,
                    Reduction::Max => f64::NEG_INFINITY,
                    _ => f64::from(i32::MAX),
                };
                let mut want = vec![none; (size * width) as usize];
                for row in (0..rows).filter(|row| !odd || row % 2 == 1) {
                    for d in 0..width {
                        let x = owned[2].columns[0]
                            .data()
                            .get((row * width + d) as usize)
                            .as_f64();
                        let to = &mut want[place(row, size) as usize * width as usize + d as usize];
                        *to = match reduction {
                            Reduction::Sum => *to + x,
                            Reduction::Max => to.max(x),
                            _ => to.min(x),
                        };
                    }
                }
                for (at, want) in want.iter().enumerate() {
                    assert_eq!(
                        got[0].data().get(at).as_f64(),
                        *want,
                        "{dtype} {reduction:?} {width}: {at}"
                    );
                }
            }
        }
    }
}

/// Many points for few places: parts have tables of their own. Against plain loops, on one thread and many.
#[test]
fn lines_go_to_their_places() {
    for (dtype, reduction) in [
        (DType::F32, Reduction::Sum),
        (DType::F64, Reduction::Sum),
        (DType::I64, Reduction::Sum),
        (DType::F32, Reduction::Max),
        (DType::F64, Reduction::Min),
        (DType::I64, Reduction::Max),
    ] {
        for width in [1, 2, 15, 16, 17, 50] {
            let case = Case {
                dtype,
                reduction,
                size: 11,
                rows: 40_003,
                width,
                odd: false,
                place: spread,
            };
            let (kernel, mut owned) = kernel(&case);
            if let ein_array::Data::F32(values) = owned[2].columns[0].data_mut() {
                values[width as usize * 777] = f32::NAN;
                values[width as usize * 778] = f32::INFINITY;
            }
            let (first, rows) = (37, case.rows - 100);
            for ranges in [
                whole(&kernel),
                vec![(3, 5), (0, width), (first, rows)],
                vec![(0, 11), (width / 2, width - width / 2), (0, case.rows)],
            ] {
                let got = evaluate(&kernel, &ranges, &owned).unwrap();
                for threads in [1, 2, 5] {
                    let pool = rayon::ThreadPoolBuilder::new()
                        .num_threads(threads)
                        .build()
                        .unwrap();
                    let mut again = pool.install(|| evaluate(&kernel, &ranges, &owned).unwrap());
                    let mut got = got.clone();
                    assert!(
                        got[0].data_mut().bytes_mut() == again[0].data_mut().bytes_mut(),
                        "{threads} threads"
                    );
                }
                let (start, length) = (ranges[0].0, ranges[0].1);
                let (column, columns) = ranges[1];
                let begin = match reduction {
                    Reduction::Max => f64::NEG_INFINITY,
                    Reduction::Min => f64::INFINITY,
                    _ => 0.0,
                };
                let mut want = vec![begin; (length * columns) as usize];
                for row in ranges[2].0..ranges[2].0 + ranges[2].1 {
                    let place = (spread(row, case.size) as u64).wrapping_sub(start);
                    if place >= length {
                        continue;
                    }
                    for d in 0..columns {
                        let x = owned[2].columns[0]
                            .data()
                            .get((row * width + column + d) as usize)
                            .as_f64();
                        let to = &mut want[(place * columns + d) as usize];
                        *to = match reduction {
                            Reduction::Max if x.is_nan() || x > *to => x,
                            Reduction::Min if x.is_nan() || x < *to => x,
                            Reduction::Sum => *to + x,
                            _ => *to,
                        };
                    }
                }
                for (at, want) in want.iter().enumerate() {
                    let x = got[0].data().get(at).as_f64();
                    // No place goes without points but for integers' extremes, which begin elsewhere.
                    let near = (x.is_nan() && want.is_nan())
                        || x == *want
                        || (x - want).abs() <= 1e-6 * want.abs();
                    let none = want.is_infinite() && dtype == DType::I64;
                    assert!(
                        near || none,
                        "{dtype} {reduction:?} {ranges:?}, element {at}: {x}, not {want}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_place_outside_of_many_is_a_fault() {
    let case = Case {
        dtype: DType::F32,
        reduction: Reduction::Sum,
        size: 6,
        rows: 30_000,
        width: 3,
        odd: false,
        place: |row, size| if row == 20_031 { -1 } else { spread(row, size) },
    };
    let (kernel, owned) = kernel(&case);
    let error = evaluate(&kernel, &whole(&kernel), &owned).unwrap_err();
    assert_eq!(error.point, [0, 0, 20_031]);
}

#[test]
fn a_place_outside_is_the_fault_that_the_loops_find() {
    let case = Case {
        dtype: DType::F32,
        reduction: Reduction::Sum,
        size: 6,
        rows: 50,
        width: 3,
        odd: false,
        place: |row, size| if row == 31 { 6 } else { spread(row, size) },
    };
    let (kernel, owned) = kernel(&case);
    let error = evaluate(&kernel, &whole(&kernel), &owned).unwrap_err();
    assert_eq!(error.point, [0, 0, 31]);
    assert!(error.to_string().contains("position 6 of dimension 0"));
}

#[test]
fn many_places_take_no_longer_than_few() {
    // 10^5 points into 10^5 places: the loops over all places would take hours.
    let case = Case {
        dtype: DType::F32,
        reduction: Reduction::Sum,
        size: 100_000,
        rows: 100_000,
        width: 1,
        odd: false,
        place: spread,
    };
    let (kernel, owned) = kernel(&case);
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let one = alone
        .unwrap()
        .install(|| evaluate(&kernel, &whole(&kernel), &owned).unwrap());
    let many = evaluate(&kernel, &whole(&kernel), &owned).unwrap();
    assert_eq!(one[0].data(), many[0].data());
    let mut sums = vec![0.0; case.size as usize];
    for row in 0..case.rows {
        sums[spread(row, case.size) as usize] +=
            owned[2].columns[0].data().get(row as usize).as_f64();
    }
    for (at, sum) in sums.iter().enumerate() {
        assert!((many[0].data().get(at).as_f64() - sum).abs() < 1e-3);
    }
}

/// `[v, h | e] reduction w[e] * x[src[e], h] * 0.5 if list[dst[e]] == v`, or of `z[e, h]`.
struct Edges {
    dtype: DType,
    reduction: &'static str,
    places: u64,
    width: u64,
    edges: u64,
}

impl Edges {
    /// The kernel; `more`: with a further condition, which always holds.
    fn kernel(&self, value: &str, more: bool) -> Kernel {
        let guard = match more {
            true => "and(a4[a3[e]] == v, a3[e] >= 0)",
            false => "a4[a3[e]] == v",
        };
        let Edges {
            dtype,
            reduction,
            places,
            width,
            edges,
        } = self;
        let text = format!(
            "({dtype}[{edges}], i64[{edges}], {dtype}[777, {width}], i64[{edges}], i64[{places}], {dtype}[{edges}, {width}]) \
             [v: {places}, h: {width} | e: {edges}] {dtype} = {reduction} {value} if {guard}"
        );
        text.parse().unwrap()
    }

    fn operands(&self) -> Vec<Owned> {
        let (edges, width) = (self.edges as usize, self.width as usize);
        let owned = |dtype, shape: &[usize], f: fn(usize) -> f64| Owned {
            columns: vec![array(dtype, shape, f)],
            start: vec![0; shape.len()],
        };
        let mut to = owned(DType::I64, &[edges], |_| 0.0);
        if let ein_array::Data::I64(to) = to.columns[0].data_mut() {
            for (edge, to) in to.iter_mut().enumerate() {
                *to = spread(edge as u64, self.places);
            }
        }
        vec![
            owned(self.dtype, &[edges], |e| ((e * 7) % 5) as f64 - 2.0),
            owned(DType::I64, &[edges], |e| ((e * 31 + e / 7) % 777) as f64),
            owned(self.dtype, &[777, width], |e| {
                ((e * 37 + e / 3) % 29) as f64 / 3.0 - 4.0
            }),
            to,
            owned(DType::I64, &[self.places as usize], |e| e as f64),
            owned(self.dtype, &[edges, width], |e| {
                ((e * 41 + e / 5) % 31) as f64 / 7.0 - 2.0
            }),
        ]
    }
}

#[test]
fn rows_of_gathered_and_scaled_lines_have_the_bits_of_the_loop_over_points() {
    for (dtype, reduction) in [
        (DType::F32, "sum"),
        (DType::F64, "sum"),
        (DType::I64, "sum"),
        (DType::F32, "max"),
        (DType::F64, "min"),
        (DType::F64, "prod"),
    ] {
        // Few places for many points, which are added up in parts, and many places for few.
        for (places, edges, width) in [(300, 30_007, 50), (3_001, 5_003, 67), (40_000, 801, 8)] {
            let case = Edges {
                dtype,
                reduction,
                places,
                width,
                edges,
            };
            let mut operands = case.operands();
            if let ein_array::Data::F32(values) = operands[2].columns[0].data_mut() {
                values[width as usize * 7] = f32::NAN;
                values[width as usize * 8 + 1] = f32::NEG_INFINITY;
            }
            let values = match dtype {
                DType::I64 => ["a0[e] * a2[a1[e], h]", "a2[a1[e], h]"],
                _ => ["a2[a1[e], h] * a0[e]", "a0[a1[e]] * (a0[e] * a2[a1[e], h])"],
            };
            for value in values {
                let (rows, points) = (case.kernel(value, false), case.kernel(value, true));
                for ranges in [
                    whole(&rows),
                    vec![(5, places / 2), (0, width), (3, edges - 40)],
                    vec![(0, places), (width / 2, width - width / 2), (0, edges)],
                ] {
                    let got = evaluate(&rows, &ranges, &operands).unwrap();
                    let want = evaluate(&points, &ranges, &operands).unwrap();
                    let same = got[0].clone().data_mut().bytes_mut()
                        == want[0].clone().data_mut().bytes_mut();
                    assert!(same, "{dtype} {reduction} {value} {places} {ranges:?}");
                }
            }
        }
    }
}

#[test]
fn rows_of_a_large_output_are_the_sums_of_the_parts_of_the_points() {
    let case = Edges {
        dtype: DType::F64,
        reduction: "sum",
        places: 3_001,
        width: 50,
        edges: 40_003,
    };
    let (kernel, operands) = (case.kernel("a5[e, h]", false), case.operands());
    let got = evaluate(&kernel, &whole(&kernel), &operands).unwrap();
    let (width, edges, parts) = (50, 40_003, 3);
    let mut want = vec![0.0; 3_001 * width];
    for part in 0..parts {
        let mut sums = vec![0.0; want.len()];
        for edge in part * edges / parts..(part + 1) * edges / parts {
            let to = spread(edge as u64, case.places) as usize * width;
            for h in 0..width {
                sums[to + h] += operands[5].columns[0].data().get(edge * width + h).as_f64();
            }
        }
        want.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
    }
    assert!(*got[0].data() == ein_array::Data::F64(want));
}

#[test]
fn a_row_read_outside_is_the_fault_that_the_loops_find() {
    let case = Edges {
        dtype: DType::F32,
        reduction: "sum",
        places: 900,
        width: 64,
        edges: 5_000,
    };
    let kernel = case.kernel("a0[e] * a2[a1[e], h]", false);
    for operand in [1, 3] {
        let mut operands = case.operands();
        if let ein_array::Data::I64(values) = operands[operand].columns[0].data_mut() {
            values[3_456] = 5_000;
        }
        let error = evaluate(&kernel, &whole(&kernel), &operands).unwrap_err();
        assert_eq!(error.point[2], 3_456);
        assert!(error.to_string().contains("position 5000"), "{error}");
    }
}
