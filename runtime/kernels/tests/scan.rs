//! Prefix and suffix reductions against the naive evaluator.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_array::Array;
use ein_kernels::{KernelError, Options, run};
use ein_plan::{DType, Function, Graph, Index, IndexId, Kernel, Node, NodeId, Operand, Reduction};
use reference::{Owned, array, chunks, close, interpret};

/// `[b, n, d | m, k] reduction x[b, m, k] * y[m, d]`, with extents in that order, where `m < n` (or what `order` says, or `n < m` if `swapped`).
fn kernel(
    dtype: DType,
    reduction: Reduction,
    order: Function,
    swapped: bool,
    extents: [u64; 5],
) -> (Kernel, Vec<Owned>) {
    let mut graph = Graph::default();
    let index: Vec<NodeId> = (0..5)
        .map(|i| graph.add(Node::Index(IndexId(i)), DType::I64))
        .collect();
    let mut read = |operand: u32, at: &[usize]| {
        let node = Node::Read {
            operand,
            column: 0,
            positions: at.iter().map(|i| index[*i]).collect(),
            otherwise: None,
        };
        graph.add(node, dtype.compute())
    };
    let (x, y) = (read(0, &[0, 3, 4]), read(1, &[3, 2]));
    let root = graph.add(Node::Apply(Function::Mul, vec![x, y]), dtype.compute());
    let sides = match swapped {
        true => vec![index[1], index[3]],
        false => vec![index[3], index[1]],
    };
    let prefix = graph.add(Node::Apply(order, sides), DType::Bool);
    let other = graph.add(
        Node::Apply(Function::Ne, vec![index[4], index[0]]),
        DType::Bool,
    );
    let guard = graph.add(Node::Apply(Function::And, vec![prefix, other]), DType::Bool);
    let shapes = [[0, 3, 4].as_slice(), &[3, 2]]
        .map(|at| at.iter().map(|i| extents[*i]).collect::<Vec<u64>>());
    let names = ["b", "n", "d", "m", "k"];
    let kernel = Kernel {
        indices: names
            .iter()
            .zip(extents)
            .map(|(name, extent)| Index {
                name: (*name).into(),
                extent,
            })
            .collect(),
        output_rank: 3,
        operands: shapes
            .iter()
            .map(|shape| Operand {
                columns: vec![dtype],
                shape: shape.clone(),
            })
            .collect(),
        graph,
        root,
        guard: Some(guard),
        reduction: Some(reduction),
        finish: true,
        output: vec![dtype],
    };
    let owned = shapes
        .iter()
        .map(|shape| {
            let sizes: Vec<usize> = shape.iter().map(|n| *n as usize).collect();
            Owned {
                columns: vec![array(dtype, &sizes, |e| {
                    ((e * 7 + e / 4) % 11) as f64 - 4.0
                })],
                start: vec![0; sizes.len()],
            }
        })
        .collect();
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

#[test]
fn prefixes_and_suffixes_are_what_the_loops_give() {
    use Function::{Ge, Gt, Le, Lt};
    let extents = [2, 9, 3, 12, 4];
    let whole: Vec<(u64, u64)> = extents.iter().map(|n| (0, *n)).collect();
    let part = vec![(1, 1), (4, 5), (0, 2), (3, 4), (0, 4)];
    let late = vec![(0, 2), (0, 3), (0, 3), (5, 7), (1, 2)];
    for dtype in [DType::F32, DType::F64, DType::I64, DType::I32] {
        let orders = [Lt, Le, Gt, Ge];
        for (order, swapped) in orders.into_iter().flat_map(|o| [(o, false), (o, true)]) {
            let plain = [
                Reduction::Sum,
                Reduction::Max,
                Reduction::Min,
                Reduction::Prod,
            ];
            let of_floats = [
                Reduction::Mean,
                Reduction::LogSumExp,
                Reduction::Norm,
                Reduction::Norm1,
                Reduction::NormInf,
            ];
            let all = plain.into_iter().chain(of_floats);
            for reduction in all.filter(|r| dtype.is_float() || plain.contains(r)) {
                let (kernel, owned) = kernel(dtype, reduction, order, swapped, extents);
                for ranges in [&whole, &part, &late] {
                    let got = evaluate(&kernel, ranges, &owned).unwrap();
                    let want = interpret(&kernel, ranges, &owned).unwrap();
                    assert_eq!(got[0].data().len(), want.len());
                    for (at, (value, scale)) in want.iter().enumerate() {
                        let x = got[0].data().get(at).as_f64();
                        assert!(
                            close(dtype, x, value.f(), *scale),
                            "{dtype} {reduction:?} {order:?} {swapped} {ranges:?} {at}: {x}, not {value:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_long_prefix_or_suffix_takes_no_square() {
    let n = 300_000;
    for order in [Function::Le, Function::Ge] {
        let extents = [1, n, 1, n, 2];
        let (kernel, owned) = kernel(DType::F64, Reduction::Sum, order, false, extents);
        let whole: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
        let found = evaluate(&kernel, &whole, &owned).unwrap();
        // The guard leaves k = 1 only, since b is 0.
        let (x, y) = (owned[0].columns[0].data(), owned[1].columns[0].data());
        let mut sum = 0.0;
        for m in 0..n as usize {
            let m = if order == Function::Le {
                m
            } else {
                n as usize - 1 - m
            };
            sum += x.get(2 * m + 1).as_f64() * y.get(m).as_f64();
            assert_eq!(found[0].data().get(m).as_f64(), sum);
        }
    }
}

/// Of equal values the first one is chosen, from whichever side they are gone through; NaN before all numbers.
#[test]
fn the_first_of_the_best_is_chosen_from_both_sides() {
    let x = [
        3.0,
        f64::NAN,
        1.0,
        4.0,
        1.0,
        5.0,
        5.0,
        2.0,
        4.0,
        4.0,
        f64::NAN,
    ];
    let n = x.len() as u64;
    let owned = [Owned {
        columns: vec![array(DType::F64, &[x.len()], |e| x[e])],
        start: vec![0],
    }];
    for reduction in ["argmax", "argmin"] {
        for (order, inclusive) in [("m <= n", 1), ("m >= n", 0)] {
            let text = format!("(f64[{n}]) [n: {n} | m: {n}] i64 = {reduction} a0[m] if {order}");
            let kernel: Kernel = text.parse().unwrap();
            let found = evaluate(&kernel, &[(0, n), (0, n)], &owned).unwrap();
            for at in 0..x.len() {
                let all = if inclusive == 1 {
                    0..at + 1
                } else {
                    at..x.len()
                };
                let better = |a: f64, b: f64| if reduction == "argmax" { a > b } else { a < b };
                let best = all.reduce(|best, m| {
                    let wins = !x[best].is_nan() && (x[m].is_nan() || better(x[m], x[best]));
                    if wins { m } else { best }
                });
                let got = found[0].data().get(at).as_f64() as usize;
                assert_eq!(Some(got), best, "{text} {at}");
            }
        }
    }
}

#[test]
fn what_remembers_more_than_a_value_takes_no_square_either() {
    let n = 300_000;
    for reduction in [Reduction::Mean, Reduction::LogSumExp, Reduction::Norm] {
        let extents = [1, n, 1, n, 2];
        let (kernel, owned) = kernel(DType::F64, reduction, Function::Le, false, extents);
        let whole: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
        let found = evaluate(&kernel, &whole, &owned).unwrap();
        let (x, y) = (owned[0].columns[0].data(), owned[1].columns[0].data());
        let mut sum = 0.0;
        for m in 0..n as usize {
            let value = x.get(2 * m + 1).as_f64() * y.get(m).as_f64();
            sum += match reduction {
                Reduction::Mean => value,
                Reduction::LogSumExp => value.exp(),
                _ => value * value,
            };
            let want: f64 = match reduction {
                Reduction::Mean => sum / (m as f64 + 1.0),
                Reduction::LogSumExp => sum.ln(),
                _ => sum.sqrt(),
            };
            let got = found[0].data().get(m).as_f64();
            let near = (got - want).abs() <= 1e-9 * want.abs().max(1.0);
            assert!(near, "{reduction:?} {m}: {got}, not {want}");
        }
    }
}

/// Of a chunk of values that stand behind all places of a prefix, or before all of a suffix, nothing is looked at.
#[test]
fn what_no_output_point_takes_in_takes_no_square() {
    let half = 500_000;
    let nothing = [
        (Reduction::Sum, 0.0),
        (Reduction::Prod, 1.0),
        (Reduction::Max, f64::NEG_INFINITY),
        (Reduction::Norm, 0.0),
        (Reduction::LogSumExp, f64::NEG_INFINITY),
    ];
    for (reduction, want) in nothing {
        for (order, results, terms) in [(Function::Lt, 0, half), (Function::Gt, half, 0)] {
            let extents = [1, 2 * half, 1, 2 * half, 2];
            let (kernel, owned) = kernel(DType::F64, reduction, order, false, extents);
            let ranges = [(0, 1), (results, half), (0, 1), (terms, half), (0, 2)];
            let found = evaluate(&kernel, &ranges, &owned).unwrap();
            let values = (0..half as usize).map(|at| found[0].data().get(at).as_f64());
            assert!(
                values.into_iter().all(|value| value == want),
                "{reduction:?} {order:?}"
            );
        }
    }
}

#[test]
fn totals_of_elements_as_they_lie_are_those_of_the_plain_loop() {
    for (dtype, reduction) in [
        (DType::F32, "sum"),
        (DType::F64, "prod"),
        (DType::F32, "max"),
        (DType::F64, "min"),
        (DType::I64, "sum"),
        (DType::I64, "min"),
    ] {
        for order in ["m <= n", "m < n", "m >= n", "n < m"] {
            for (lines, length, beside) in [(3, 1100, 1), (2, 57, 5), (1, 30, 1)] {
                let kernel: Kernel = format!(
                    "({dtype}[{length}, {lines}, {beside}]) [b: {lines}, n: {length}, d: {beside} | m: {length}] {dtype} \
                     = {reduction} a0[m, b, d] if {order}"
                )
                .parse()
                .unwrap();
                let shape = [length as usize, lines as usize, beside as usize];
                let mut x = array(dtype, &shape, |e| ((e * 7 + e / 4) % 11) as f64 / 4.0 - 1.0);
                let at = x.data().len() - 4;
                match x.data_mut() {
                    ein_array::Data::F32(x) => x[at] = f32::NAN,
                    ein_array::Data::F64(x) => x[at] = f64::NEG_INFINITY,
                    _ => {}
                }
                let owned = [Owned {
                    columns: vec![x],
                    start: vec![0; 3],
                }];
                let whole = vec![(0, lines), (0, length), (0, beside), (0, length)];
                let part = vec![
                    (0, lines),
                    (length / 3, length / 2),
                    (0, beside),
                    (2, length - 5),
                ];
                for ranges in [whole, part] {
                    let got = evaluate(&kernel, &ranges, &owned).unwrap();
                    let mut at = 0;
                    for b in 0..lines {
                        for n in ranges[1].0..ranges[1].0 + ranges[1].1 {
                            for d in 0..beside {
                                let all = ranges[3].0..ranges[3].0 + ranges[3].1;
                                let mut taken: Vec<u64> = match order {
                                    "m <= n" => all.filter(|m| *m <= n).collect(),
                                    "m < n" => all.filter(|m| *m < n).collect(),
                                    "m >= n" => all.filter(|m| *m >= n).collect(),
                                    _ => all.filter(|m| *m > n).collect(),
                                };
                                if matches!(order, "m >= n" | "n < m") {
                                    taken.reverse();
                                }
                                let element = |m: u64| {
                                    let place = (m * lines + b) * beside + d;
                                    owned[0].columns[0].data().get(place as usize).as_f64()
                                };
                                let of_integers = dtype == DType::I64;
                                let start = match reduction {
                                    "sum" => 0.0,
                                    "prod" => 1.0,
                                    "max" => f64::NEG_INFINITY,
                                    _ if of_integers => i64::MAX as f64,
                                    _ => f64::INFINITY,
                                };
                                let want =
                                    taken.into_iter().map(element).fold(start, |total, x| {
                                        match reduction {
                                            "sum" => total + x,
                                            "prod" => total * x,
                                            _ if x.is_nan() || total.is_nan() => f64::NAN,
                                            "max" => total.max(x),
                                            _ => total.min(x),
                                        }
                                    });
                                let want = match dtype {
                                    DType::F32 => f64::from(want as f32),
                                    _ => want,
                                };
                                let x = got[0].data().get(at).as_f64();
                                assert!(
                                    x == want || (x.is_nan() && want.is_nan()),
                                    "{kernel} {ranges:?} {at}: {x}, not {want}"
                                );
                                at += 1;
                            }
                        }
                    }
                }
            }
        }
    }
}
