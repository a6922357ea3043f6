//! What programs compute: their tensors, by the interpreter, against plain loops.

use crate::Case;
use ein_plan::Scalar;
use einc_core::einsum::interpret::{Values, interpret};

/// The outputs of a program; elements of an input are `value(name, number)`.
pub fn outputs(text: &str, value: &dyn Fn(&str, u64) -> f64) -> Vec<Vec<f64>> {
    let case = Case::new(text);
    assert!(case.parsed.is_empty(), "{:?}", case.parsed);
    let analysis = case.check();
    assert!(
        analysis.diagnostics.is_empty(),
        "{:?}",
        analysis.diagnostics
    );
    let program = analysis.program.unwrap();
    let inputs = |tensor: &einc_core::einsum::Tensor| {
        let count = tensor.shape.iter().product();
        let data = (0..count).map(|at| {
            let x = value(&tensor.name, at);
            match tensor.dtype.is_integer() {
                true => Scalar::Int(x as i64),
                false => Scalar::Float(x),
            }
        });
        Values {
            shape: tensor.shape.clone(),
            data: data.collect(),
        }
    };
    let values = interpret(&program, &inputs).unwrap();
    let numbers = |values: Values| values.data.iter().map(|x| x.as_f64()).collect();
    values.into_iter().map(numbers).collect()
}

pub fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (x, y) in found.iter().zip(expected) {
        assert!((x - y).abs() <= 1e-9 * y.abs().max(1.0), "{x} is not {y}");
    }
}

#[test]
fn a_call_for_every_index_and_a_slice_by_a_number() {
    let text = "
        input A: f64[3, 4, 2]
        input y: f64[3, 4]
        input pick: i64[2]
        fn scaled(x[n, m], z[n], k) -> w[n, m] {
          top = max[n] z[n]
          w[n, m] = k * x[n, m] / (top + z[n])
        }
        fn ends(x[n, m]) -> first[m], last[m] {
          first[m] = x[0, m]
          last[m] = x[size(n) - 1, m]
        }
        a[p,i,j] = scaled(A[p], y[p], y[p,0] + p)[i,j]
        b[q,i] = scaled(A[pick[q]], y[2], 3)[i,1]
        f, l = ends(A[1])
        output a
        output b
        output f
        output l
    ";
    let a = |p: usize, i: usize, j: usize| (p * 8 + i * 2 + j) as f64 + 0.5;
    let y = |p: usize, i: usize| 1.0 + ((p * 4 + i) * 7 % 5) as f64;
    let pick = [2, 0];
    let found = outputs(text, &|name, at| match name {
        "A" => at as f64 + 0.5,
        "y" => 1.0 + (at * 7 % 5) as f64,
        _ => pick[at as usize] as f64,
    });
    let top = |p: usize| (0..4).map(|i| y(p, i)).fold(0.0, f64::max);
    let mut expected = vec![];
    for p in 0..3 {
        for i in 0..4 {
            for j in 0..2 {
                expected.push((y(p, 0) + p as f64) * a(p, i, j) / (top(p) + y(p, i)));
            }
        }
    }
    close(&found[0], &expected);
    let mut expected = vec![];
    for q in pick {
        for i in 0..4 {
            expected.push(3.0 * a(q, i, 1) / (top(2) + y(2, i)));
        }
    }
    close(&found[1], &expected);
    close(&found[2], &[a(1, 0, 0), a(1, 0, 1)]);
    close(&found[3], &[a(1, 3, 0), a(1, 3, 1)]);
}

#[test]
fn scatters_add_and_choose_in_the_places_that_data_say() {
    let text = "
        dim V = 5
        input tok: i64[2, 3]
        input E: f64[2, 3, 4]
        input at: i64[6]
        input x: f64[6]
        fn collect(x[.., n], to[n], k) -> y[.., k] { y[.., to[n]] += x[..,n] }
        G[tok[n,t], d]: f64[V, 4] += E[n,t,d]
        top[at[i]]: f64[V] max= x[i]
        one[i, at[i]]: f64[6, V] min= x[i]
        back[5 - i]: i64[6] += at[i]
        W = collect(x, at, V)
        output G
        output top
        output one
        output back
        output W
    ";
    let (tok, at) = ([0, 3, 3, 4, 0, 3], [4, 4, 1, 0, 1, 4]);
    let x = |i: usize| ((i * 5 % 7) as f64) - 3.0;
    let found = outputs(text, &|name, number| match name {
        "tok" => tok[number as usize] as f64,
        "at" => at[number as usize] as f64,
        "x" => x(number as usize),
        _ => number as f64 + 1.0,
    });
    let mut sums = vec![0.0; 20];
    for (row, to) in tok.iter().enumerate() {
        for d in 0..4 {
            sums[to * 4 + d] += (row * 4 + d) as f64 + 1.0;
        }
    }
    close(&found[0], &sums);
    let (mut top, mut one) = ([f64::NEG_INFINITY; 5], vec![f64::INFINITY; 30]);
    let (mut back, mut total) = ([0.0; 6], [0.0; 5]);
    for (i, to) in at.iter().enumerate() {
        top[*to] = top[*to].max(x(i));
        one[i * 5 + to] = x(i);
        back[5 - i] = *to as f64;
        total[*to] += x(i);
    }
    assert_eq!(found[1], top);
    assert_eq!(found[2], one);
    close(&found[3], &back);
    close(&found[4], &total);
}

#[test]
fn floats_become_the_nearest_byte_and_whole_numbers_wrap() {
    let text = "
        input x: f64[7]
        input k: i64[7]
        input h: f32[7]
        a[i] = u8(x[i])
        b[i] = i64(u8(x[i])) + 1
        c[i] = u8(h[i])
        d[i] = u8(k[i])
        e = u8(2.7)
        output a; output b; output c; output d; output e";
    let all = [300.5, -2.7, 17.9, 1e10, -1e10, 255.9, f64::NAN];
    let whole = [300.0, -2.0, 17.0, 1e10, 0.0, 255.0, 256.0];
    let value = |name: &str, at: u64| match name {
        "k" => whole[at as usize],
        _ => all[at as usize],
    };
    let bytes = [255.0, 0.0, 17.0, 255.0, 0.0, 255.0, 0.0];
    let found = outputs(text, &value);
    close(&found[0], &bytes);
    close(&found[1], &bytes.map(|byte| byte + 1.0));
    close(&found[2], &bytes);
    close(&found[3], &[44.0, 254.0, 17.0, 0.0, 0.0, 255.0, 0.0]);
    close(&found[4], &[2.0]);
}

/// In a position a bare name is a scalar of that name or an index, never a tensor: no statement uses another by it.
#[test]
fn an_index_may_have_the_name_of_a_tensor() {
    let text = "
        input A: f64[2, 3]
        input v: f64[3]
        fn f(A[m, n], v[n]) -> w[m] { w[s] = A[s,r] * v[r]; r[s] = 2 * w[s]; q = max[s] r[s] }
        w = f(A, v)
        repeat t < 2 {
          state y[s] = A[s,0]
          r[s] = y[s] + 2 * z[s]
          z[s] = A[s,r] * v[r] + (max[r] v[r])
          next y[s] = r[s]
        }
        output w; output y";
    let found = outputs(text, &|_, at| at as f64 + 1.0);
    // A v = (14, 32), and each round adds twice that and twice 3.
    close(&found[0], &[14.0, 32.0]);
    close(&found[1], &[1.0 + 2.0 * 2.0 * 17.0, 4.0 + 2.0 * 2.0 * 35.0]);
}

#[test]
fn narrow_numbers_wrap_where_conditions_ask_for_them() {
    let text = "
        input a: i64[4]
        input p: i64[4]
        u[i < 4]: u8[4] = where(u8(a[3 - i]) < 100, u8(1), u8(a[3 - i]))
        v[i < 4]: u8[4] = where(u8(a[p[i]]) + u8(7) < i * 100, u8(1), u8(a[p[i]]))
        w[i < 4]: i64[4] = where(u16(a[3 - i]) > 100, i64(u16(a[3 - i])), 1)
        s = sum[i < 4] where(u8(a[3 - i]) < 100, 0, i64(u8(a[3 - i])))
        output u; output v; output w; output s";
    let a = [-5, 3, 250, -100];
    let p = [2usize, 0, 3, 1];
    let found = outputs(text, &|name, at| match name {
        "a" => f64::from(a[at as usize]),
        _ => p[at as usize] as f64,
    });
    let byte = |x: i32| f64::from(x as u8);
    let turned = |x: i32| if byte(x) < 100.0 { 1.0 } else { byte(x) };
    let u: Vec<f64> = (0..4).map(|i| turned(a[3 - i])).collect();
    close(&found[0], &u);
    let v = |i: usize| match byte(a[p[i]]) + 7.0 < (i * 100) as f64 {
        true => 1.0,
        false => byte(a[p[i]]),
    };
    close(&found[1], &(0..4).map(v).collect::<Vec<_>>());
    let w = |i: usize| f64::from(a[3 - i] as u16).max(1.0);
    let w = |i: usize| if w(i) > 100.0 { w(i) } else { 1.0 };
    close(&found[2], &(0..4).map(w).collect::<Vec<_>>());
    close(&found[3], &[u.iter().filter(|x| **x != 1.0).sum()]);
}

#[test]
fn argmax_over_several_indices_finds_ranges_as_max_does() {
    let text = "
        input v: f64[9]
        input x: f64[5, 6]
        input q: i64[4]
        first = argmax[k < 2, l < 3] (sum[m < l] 1)
        moved = argmax[r < 2, i] v[i + r]
        found = argmin[k < 4, j] x[q[k] % 5, j + 1]
        prefix = argmax[i, j] (sum[m <= j] x[i,m])
        nested = argmax[i < 5, j < 2] (sum[m < i] (sum[n <= m] x[n,j]))
        output first; output moved; output found; output prefix; output nested";
    let value = |name: &str, at: u64| match name {
        "q" => [3.0, 0.0, 4.0, 1.0][at as usize],
        _ => ((at * 37 + at * at * 11) % 23) as f64 - 7.0,
    };
    let found = outputs(text, &value);
    let x = |i: u64, j: u64| value("x", 6 * i + j);
    // The first of the best, of values in the order of the indices.
    let best = |values: Vec<f64>| {
        let first = |best: usize, at: usize| if values[at] > values[best] { at } else { best };
        (0..values.len()).fold(0, first) as f64
    };
    let pairs = |n: u64, m: u64| (0..n).flat_map(move |i| (0..m).map(move |j| (i, j)));
    let sum = |n: u64, of: &dyn Fn(u64) -> f64| (0..n).map(of).sum::<f64>();
    close(&found[0], &[2.0]);
    close(
        &found[1],
        &[best(pairs(2, 8).map(|(r, i)| value("v", i + r)).collect())],
    );
    let q = |a: u64| value("q", a) as u64;
    close(
        &found[2],
        &[best(pairs(4, 5).map(|(a, j)| -x(q(a), j + 1)).collect())],
    );
    close(
        &found[3],
        &[best(
            pairs(5, 6).map(|(i, j)| sum(j + 1, &|m| x(i, m))).collect(),
        )],
    );
    let nested = |i: u64, j: u64| sum(i, &|m| sum(m + 1, &|n| x(n, j)));
    close(
        &found[4],
        &[best(pairs(5, 2).map(|(i, j)| nested(i, j)).collect())],
    );
}

#[test]
fn whole_numbers_that_fill_a_tensor_are_not_rounded() {
    let text = "
        input a: i64[1]
        x[v < 2]: i64[2] = full(9007199254740993)
        d[v] = x[v] - 9007199254740992 + a[0]
        output d";
    let found = outputs(text, &|_, _| 0.0);
    close(&found[0], &[1.0, 1.0]);
}

#[test]
fn conditions_inside_of_conditions_are_asked_where_those_hold() {
    let text = "
        input a: i64[4]
        input b: f64[300]
        r[i < 4]: u8[4] = where(i > 0, where(u8(a[i - 1]) < 100, u8(1), u8(a[i - 1])), u8(0))
        q[i < 4] = where(i > 0, where((sum[k < 2] a[i - 1] * k) < 100, sum[k < 3] (a[i - 1] + k), 0), 7)
        g[i < 4] = where(i > 0, sum[k < u8(a[i - 1])] b[k], 7)
        output r; output q; output g";
    let a = [-5, 3, 250, -100];
    let found = outputs(text, &|name, at| match name {
        "a" => f64::from(a[at as usize]),
        _ => at as f64,
    });
    close(&found[0], &[0.0, 251.0, 1.0, 250.0]);
    close(&found[1], &[7.0, -12.0, 12.0, 0.0]);
    let below = |n: f64| n * (n - 1.0) / 2.0;
    close(&found[2], &[7.0, below(251.0), below(3.0), below(250.0)]);
}
