//! The table of laws, numerically, and contraction orders against all trees.

use crate::support::rewrite;
use ein_plan::{DType, Scalar};
use einc_core::einsum::scalar::apply;
use einc_core::rules::laws::{LAWS, NonFinite, identity, repeated};
use einc_core::rules::order::{Network, orders};

fn samples(dtype: DType) -> Vec<Scalar> {
    match dtype {
        DType::Bool => vec![Scalar::Bool(false), Scalar::Bool(true)],
        DType::I32 => [0, 1, -1, 7, -13, i32::MAX, i32::MIN, 1 << 20]
            .map(|x| Scalar::Int(i64::from(x)))
            .to_vec(),
        DType::I64 => [0, 1, -1, 7, -13, i64::MAX, i64::MIN, 1 << 40]
            .map(Scalar::Int)
            .to_vec(),
        _ => [
            0.0,
            1.0,
            -1.0,
            0.5,
            -3.25,
            1e6,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ]
        .map(Scalar::Float)
        .to_vec(),
    }
}

fn same(a: Scalar, b: Scalar, exact: bool) -> bool {
    match (a, b) {
        (Scalar::Float(a), Scalar::Float(b)) => {
            let near = a == b || (a - b).abs() <= 1e-9 * (1.0 + a.abs());
            let wild = !a.is_finite() && !b.is_finite();
            near || wild && (!exact || a.is_nan() == b.is_nan())
        }
        (a, b) => a == b,
    }
}

#[test]
fn every_law_holds_for_its_types() {
    for law in LAWS {
        assert_eq!(repeated(law.sum), Some(law.reduction));
        for dtype in law.dtypes {
            let f = |function, a, b| apply(function, &[a, b], *dtype).unwrap();
            let all = samples(*dtype);
            for x in &all {
                for y in &all {
                    for z in &all {
                        let left = f(law.product, *x, f(law.sum, *y, *z));
                        let right = f(law.sum, f(law.product, *x, *y), f(law.product, *x, *z));
                        let finite = [x, y, z].iter().all(|v| v.as_f64().is_finite());
                        let exact = finite || law.non_finite == NonFinite::Exact;
                        let fine = same(left, right, exact);
                        assert!(fine, "{law:?} {x:?} {y:?} {z:?}: {left:?} {right:?}");
                    }
                    for function in [law.sum, law.product] {
                        assert!(same(f(function, *x, *y), f(function, *y, *x), true));
                    }
                }
                for function in [law.sum, law.product] {
                    if let Some(one) = identity(function, *dtype) {
                        assert!(same(f(function, *x, one), *x, true), "{function:?} {x:?}");
                    }
                }
            }
        }
    }
}

/// A law that is not in the table would be wrong: max does not go through wrapping sums, nor through products.
#[test]
fn what_is_no_law_is_not_in_the_table() {
    use ein_plan::{Function, Reduction};
    let has = |r, f, d| einc_core::rules::laws::of_reduction(r, f, d).is_some();
    assert!(!has(Reduction::Max, Function::Add, DType::I32));
    assert!(!has(Reduction::Max, Function::Mul, DType::F64));
    assert!(!has(Reduction::Prod, Function::Add, DType::F64));
    assert!(!has(Reduction::Sum, Function::Max, DType::F64));
    assert!(!has(Reduction::Mean, Function::Mul, DType::F64));
}

/// The cheapest of all trees, by trying them.
fn cheapest(network: &Network, parts: &[(u128, f64)]) -> f64 {
    let volume = |set: u128| -> f64 {
        let in_set = network
            .extents
            .iter()
            .enumerate()
            .filter(|(i, _)| set >> i & 1 == 1);
        in_set.map(|(_, e)| *e as f64).product()
    };
    if let [(_, cost)] = parts {
        return *cost;
    }
    let mut best = f64::INFINITY;
    for a in 0..parts.len() {
        for b in a + 1..parts.len() {
            let others: Vec<(u128, f64)> = (0..parts.len())
                .filter(|i| *i != a && *i != b)
                .map(|i| parts[i])
                .collect();
            let outside = others.iter().fold(network.kept, |set, p| set | p.0);
            let both = parts[a].0 | parts[b].0;
            let left = both & outside;
            let own = volume(both) * if left == both { 1.0 } else { 2.0 };
            let mut next = others;
            next.push((left, parts[a].1 + parts[b].1 + own));
            best = best.min(cheapest(network, &next));
        }
    }
    best
}

#[test]
fn small_products_get_the_best_of_all_trees() {
    let mut state = 0x1234_5678_9ABC_DEF1u64;
    let mut below = move |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) % n
    };
    for _ in 0..60 {
        let extents: Vec<u64> = (0..6).map(|_| 1 + below(9)).collect();
        let factors: Vec<u128> = (0..5)
            .map(|_| (1 << below(6)) | (1 << below(6)) | (1 << below(6)))
            .collect();
        let read = factors.iter().fold(0, |all, f| all | f);
        let network = Network {
            extents,
            factors,
            kept: u128::from(below(64)) & read,
        };
        let found = orders(&network)[0].1.flops;
        // A factor's own indices are reduced first, or with its first product, whichever is cheaper; trees here do
        // the first.
        let parts: Vec<(u128, f64)> = (0..5)
            .map(|at| {
                let others = (0..5)
                    .filter(|o| *o != at)
                    .fold(network.kept, |s, o| s | network.factors[o]);
                let own = network.factors[at];
                let volume = |set: u128| -> f64 {
                    let in_set = network
                        .extents
                        .iter()
                        .enumerate()
                        .filter(|(i, _)| set >> i & 1 == 1);
                    in_set.map(|(_, e)| *e as f64).product()
                };
                let cost = if own & others == own {
                    0.0
                } else {
                    volume(own)
                };
                (own & others, cost)
            })
            .collect();
        assert_eq!(found, cheapest(&network, &parts), "{network:?}");
    }
}

/// Beyond ten factors: never worse than from left to right.
#[test]
fn large_products_are_no_worse_than_as_written() {
    for count in [11usize, 14, 20] {
        // A ring with a hub: no path.
        let extents: Vec<u64> = (0..=count).map(|i| 2 + (i as u64 * 7) % 11).collect();
        let factors: Vec<u128> = (0..count)
            .map(|i| (1 << i) | (1 << ((i + 1) % count)) | if i % 3 == 0 { 1 << count } else { 0 })
            .collect();
        let network = Network {
            extents,
            factors,
            kept: 1,
        };
        let found = orders(&network)[0].1.flops;
        let volume = |set: u128| -> f64 {
            let in_set = network
                .extents
                .iter()
                .enumerate()
                .filter(|(i, _)| set >> i & 1 == 1);
            in_set.map(|(_, e)| *e as f64).product()
        };
        let mut have = network.factors[0];
        let mut written = 0.0;
        for at in 1..count {
            let both = have | network.factors[at];
            let rest = network.factors[at + 1..]
                .iter()
                .fold(network.kept, |s, f| s | f);
            written += volume(both) * if both & rest == both { 1.0 } else { 2.0 };
            have = both & rest;
        }
        assert!(found <= written, "{count}: {found} {written}");
    }
    let text = "x: f64[2, 3] = unbound\ny: f64[2] = [i: 2 | k: 3] sum x[i, k]\noutput y\n";
    let program = crate::support::program(text);
    assert_eq!(rewrite(&program).alternatives.len(), 1);
}
