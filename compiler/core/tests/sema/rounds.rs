//! Rounds: what programs with `repeat` compute, by the interpreter, against plain loops.
#![allow(
    clippy::needless_range_loop,
    reason = "references are loops over indices"
)]

use crate::values::{close, outputs};

/// Numbers without pattern between 0 and 1.
fn noise(seed: u64, at: u64) -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (at + 1);
    for _ in 0..3 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state ^= state >> 29;
    }
    (state >> 11) as f64 / (1u64 << 53) as f64
}

#[test]
fn k_means() {
    let text = "
        dim N = 23; dim D = 3; dim K = 4
        input X: f32[N, D]
        repeat t < 100 until changed / N <= 1e-3 {
          state c[k < K, d] = X[k,d]
          state near[n]: i64 = -1
          dist[n,k]  = sum[d] (X[n,d] - c[k,d])^2
          next near[n] = argmin[k] dist[n,k]
          changed    = sum[n] i64(next near[n] != near[n])
          count[next near[n]]: f32[K]       += 1
          total[next near[n], d]: f32[K, D] += X[n,d]
          next c[k,d] = where(count[k] > 0, total[k,d] / count[k], c[k,d])
        }
        output c
        output near
        output t
    ";
    let x = |at: u64| (noise(1, at) * 64.0).round() / 8.0;
    let found = outputs(text, &|_, at| x(at));
    let point = |n: usize, d: usize| x((n * 3 + d) as u64) as f32;
    let mut c: Vec<[f32; 3]> = (0..4).map(|k| [0, 1, 2].map(|d| point(k, d))).collect();
    let mut near = [usize::MAX; 23];
    let mut rounds = 0;
    loop {
        let mut changed = 0;
        let mut total = [[0f64; 3]; 4];
        let mut count = [0f64; 4];
        for n in 0..23 {
            let dist = |k: usize| -> f32 { (0..3).map(|d| (point(n, d) - c[k][d]).powi(2)).sum() };
            let best = (0..4).fold(0, |best, k| if dist(k) < dist(best) { k } else { best });
            changed += usize::from(near[n] != best);
            near[n] = best;
            count[best] += 1.0;
            for d in 0..3 {
                total[best][d] += f64::from(point(n, d));
            }
        }
        for k in 0..4 {
            for d in 0..3 {
                if count[k] > 0.0 {
                    c[k][d] = total[k][d] as f32 / count[k] as f32;
                }
            }
        }
        rounds += 1;
        if changed == 0 || rounds == 100 {
            break;
        }
    }
    assert!(rounds > 3, "{rounds} rounds show nothing");
    let expected: Vec<f64> = c.iter().flatten().map(|x| f64::from(*x)).collect();
    for (x, y) in found[0].iter().zip(&expected) {
        assert!((x - y).abs() < 1e-5, "{x} is not {y}");
    }
    assert_eq!(found[1], near.iter().map(|n| *n as f64).collect::<Vec<_>>());
    assert_eq!(found[2], [rounds as f64]);
}

#[test]
fn conjugate_gradients_and_power_iteration() {
    let text = "
        dim N = 7
        input A: f64[N, N]; input b: f64[N]
        repeat k < N until sqrt(rr) < 1e-10 {
          state x[i] = zeros
          state r[i] = b[i]
          state p[i] = b[i]
          state rr   = b[i] * b[i]
          q[i]  = A[i,j] * p[j]
          alpha = rr / (sum[i] p[i] * q[i])
          next x[i] = x[i] + alpha * p[i]
          next r[i] = r[i] - alpha * q[i]
          next rr   = next r[i] * next r[i]
          next p[i] = next r[i] + next rr / rr * p[i]
        }
        repeat m < 500 until abs(next lambda - lambda) < 1e-12 {
          state v[i] = 1 / sqrt(N)
          state lambda = 0.0
          w[i] = A[i,j] * v[j]
          next v[i] = w[i] / norm[j] w[j]
          next lambda = v[i] * w[i]
        }
        output x
        output lambda
        output m
    ";
    const N: usize = 7;
    // Symmetric, with a heavy diagonal.
    let a = |i: usize, j: usize| {
        let (low, high) = (i.min(j), i.max(j));
        noise(2, (low * N + high) as u64) + if i == j { 3.0 + i as f64 } else { 0.0 }
    };
    let found = outputs(text, &|name, at| match name {
        "A" => a(at as usize / N, at as usize % N),
        _ => noise(3, at),
    });
    // Elimination.
    let mut m: Vec<Vec<f64>> = (0..N)
        .map(|i| {
            (0..N)
                .map(|j| a(i, j))
                .chain([noise(3, i as u64)])
                .collect()
        })
        .collect();
    for i in 0..N {
        for r in 0..N {
            if r != i {
                let factor = m[r][i] / m[i][i];
                for j in 0..=N {
                    m[r][j] -= factor * m[i][j];
                }
            }
        }
    }
    let x: Vec<f64> = (0..N).map(|i| m[i][N] / m[i][i]).collect();
    close(&found[0], &x);
    let mut v = vec![1.0 / (N as f64).sqrt(); N];
    let (mut lambda, mut rounds) = (0.0f64, 0);
    loop {
        let w: Vec<f64> = (0..N)
            .map(|i| (0..N).map(|j| a(i, j) * v[j]).sum())
            .collect();
        let norm = w.iter().map(|x| x * x).sum::<f64>().sqrt();
        let next: f64 = (0..N).map(|i| v[i] * w[i]).sum();
        v = w.iter().map(|x| x / norm).collect();
        rounds += 1;
        let done = (next - lambda).abs() < 1e-12;
        lambda = next;
        if done || rounds == 500 {
            break;
        }
    }
    assert!(rounds > 5 && rounds < 500);
    close(&found[1], &[lambda]);
    // The last digits decide the last round.
    assert!((found[2][0] - f64::from(rounds)).abs() <= 1.0);
}

#[test]
fn two_multipliers_a_round() {
    let text = "
        dim M = 11; dim D = 2
        input X: f64[M, D]; input y: f64[M]
        const C = 1.0; const g = 0.5; const tol = 1e-3
        fn row(X[i, d], r, g) -> k[i] { k[i] = exp(-g * sum[d] (X[i,d] - X[r,d])^2) }
        fn snap(a, C) = where(a < 1e-9 * C, 0, where(a > C * (1 - 1e-9), C, a))
        repeat t < 1_000_000 until gap <= 2 * tol {
          state a[i] = zeros
          state f[i] = -y[i]
          free[i] = 0 < a[i] < C
          hi = argmin[i] where(free[i] or (y[i] > 0 and a[i] == 0) or (y[i] < 0 and a[i] == C), f[i], inf)
          lo = argmax[i] where(free[i] or (y[i] > 0 and a[i] == C) or (y[i] < 0 and a[i] == 0), f[i], -inf)
          gap = f[lo] - f[hi]
          kh = row(X, hi, g)
          kl = row(X, lo, g)
          s  = y[lo] * y[hi]
          L  = max(0, where(s < 0, a[lo] - a[hi], a[lo] + a[hi] - C))
          H  = min(C, where(s < 0, a[lo] - a[hi] + C, a[lo] + a[hi]))
          al = snap(clip(a[lo] - y[lo] * gap / (2 - 2 * kh[lo]), L, H), C)
          ah = snap(a[hi] - s * (al - a[lo]), C)
          next a[i] = where(i == lo, al, where(i == hi, ah, a[i]))
          next f[i] = f[i] + (al - a[lo]) * y[lo] * kl[i] + (ah - a[hi]) * y[hi] * kh[i]
        }
        output a
        output t
    ";
    const M: usize = 11;
    let x = |i: usize, d: usize| 4.0 * noise(5, (i * 2 + d) as u64);
    let y = |i: usize| if noise(6, i as u64) < 0.5 { -1.0 } else { 1.0 };
    let found = outputs(text, &|name, at| match name {
        "X" => x(at as usize / 2, at as usize % 2),
        _ => y(at as usize),
    });
    let snap = |a: f64| match a {
        a if a < 1e-9 => 0.0,
        a if a > 1.0 - 1e-9 => 1.0,
        a => a,
    };
    let kernel = |i: usize, j: usize| {
        (-0.5 * (0..2).map(|d| (x(i, d) - x(j, d)).powi(2)).sum::<f64>()).exp()
    };
    let (mut a, mut f) = ([0.0; M], [0; M].map(f64::from));
    for i in 0..M {
        f[i] = -y(i);
    }
    let mut rounds = 0;
    loop {
        let free = |i: usize| 0.0 < a[i] && a[i] < 1.0;
        let up = |i: usize| free(i) || (y(i) > 0.0 && a[i] == 0.0) || (y(i) < 0.0 && a[i] == 1.0);
        let down = |i: usize| free(i) || (y(i) > 0.0 && a[i] == 1.0) || (y(i) < 0.0 && a[i] == 0.0);
        let mut hi = (0..M).find(|i| up(*i)).unwrap();
        let mut lo = (0..M).find(|i| down(*i)).unwrap();
        for i in 0..M {
            if up(i) && f[i] < f[hi] {
                hi = i;
            }
            if down(i) && f[i] > f[lo] {
                lo = i;
            }
        }
        let gap = f[lo] - f[hi];
        let s = y(lo) * y(hi);
        let (low, high) = match s < 0.0 {
            true => (a[lo] - a[hi], a[lo] - a[hi] + 1.0),
            false => (a[lo] + a[hi] - 1.0, a[lo] + a[hi]),
        };
        let wanted = a[lo] - y(lo) * gap / (2.0 - 2.0 * kernel(lo, hi));
        let al = snap(wanted.max(low.max(0.0)).min(high.min(1.0)));
        let ah = snap(a[hi] - s * (al - a[lo]));
        let (dl, dh) = (al - a[lo], ah - a[hi]);
        for i in 0..M {
            // In this order: the two are equal afterwards but for the last digits.
            f[i] = f[i] + dl * y(lo) * kernel(i, lo) + dh * y(hi) * kernel(i, hi);
        }
        (a[lo], a[hi]) = (al, ah);
        rounds += 1;
        if gap <= 2e-3 {
            break;
        }
    }
    assert!(rounds > 5);
    close(&found[0], &a);
    assert_eq!(found[1], [f64::from(rounds)]);
}

#[test]
fn the_greediest_of_each_block() {
    let text = "
        dim N = 12; dim P = 3; dim B = N / P
        input Q: f64[N, N]
        const C = 0.5
        assert N % P == 0
        repeat t < 10_000 until worst < 1e-6 {
          state a[i] = zeros
          state g[i] = full(-1)
          viol[i] = abs(a[i] - clip(a[i] - g[i], 0, C))
          worst   = max[i] viol[i]
          i1[b < P] = b * B + argmax[r < B] viol[b * B + r]
          d[b]    = clip(a[i1[b]] - g[i1[b]] / Q[i1[b], i1[b]], 0, C) - a[i1[b]]
          slope   = g[i1[b]] * d[b]
          curve   = d[b] * Q[i1[b], i1[c]] * d[c]
          theta   = min(1, -slope / curve)
          da[i1[b]]: f64[N] += theta * d[b]
          next a[i] = a[i] + da[i]
          next g[i] = g[i] + theta * Q[i, i1[b]] * d[b]
        }
        output a
    ";
    const N: usize = 12;
    let q = |i: usize, j: usize| {
        let (low, high) = (i.min(j), i.max(j));
        0.3 * noise(8, (low * N + high) as u64) + if i == j { 2.0 } else { 0.0 }
    };
    let found = outputs(text, &|_, at| q(at as usize / N, at as usize % N));
    // At the minimum of a Q a / 2 - sum a in the box, each coordinate is its own best.
    let a = &found[0];
    for i in 0..N {
        let g: f64 = (0..N).map(|j| q(i, j) * a[j]).sum::<f64>() - 1.0;
        let best = (a[i] - g).clamp(0.0, 0.5);
        assert!((a[i] - best).abs() < 1e-5, "{i}: {} or {best}", a[i]);
    }
    assert!(a.iter().any(|a| *a > 0.1 && *a < 0.49));
}

#[test]
fn slices_are_collected_and_rounds_that_are_not_made_hold_0() {
    let text = "
        input x: f64[3]
        repeat t < 6 until size < 1 {
          state h[n] = x[n]
          next h[n] = h[n] / 2
          size = max[n] abs(next h[n])
          hs[n, t]: f64[3, 6] = next h[n] - t
          before[t] = h[1]
          counted[t]: i64[6] = t * t
        }
        output hs
        output before
        output counted
        output t
        output h
    ";
    let x = [1.5, -6.0, 4.0];
    let found = outputs(text, &|_, at| x[at as usize]);
    let mut h = x;
    let (mut hs, mut before, mut counted) = ([[0.0; 6]; 3], [0.0; 6], [0.0; 6]);
    let mut rounds = 0;
    for t in 0..6 {
        before[t] = h[1];
        counted[t] = (t * t) as f64;
        h = h.map(|h| h / 2.0);
        for n in 0..3 {
            hs[n][t] = h[n] - t as f64;
        }
        rounds += 1;
        if h.iter().all(|h| h.abs() < 1.0) {
            break;
        }
    }
    assert!(rounds > 1 && rounds < 6, "{rounds}");
    close(&found[0], hs.as_flattened());
    close(&found[1], &before);
    close(&found[2], &counted);
    assert_eq!(found[3], [f64::from(rounds)]);
    close(&found[4], &h);
}

#[test]
fn blocks_nest_and_an_inner_one_starts_afresh() {
    let text = "
        input a: f64
        input n: i64
        repeat t < n {
          state sum = 0.0
          repeat u < t + 1 until y > 100 {
            state y = a
            next y = y * 2 + t
            grown[u] = next y
          }
          next sum = sum + y / (u + 1)
          ys[t] = y
        }
        output sum
        output t
    ";
    let wrong = crate::Case::new(text).check();
    let codes: Vec<&str> = wrong.diagnostics.iter().map(|d| d.code).collect();
    assert_eq!(codes, ["E0515"], "{:?}", wrong.diagnostics);
    let right = text.replace("          grown[u] = next y\n", "");
    let right = right.replace("          ys[t] = y\n", "");
    for n in [-1, 0, 1, 5] {
        let found = outputs(&right, &|name, _| {
            if name == "a" { 1.5 } else { f64::from(n) }
        });
        let mut sum = 0.0;
        for t in 0..n.max(0) {
            let (mut y, mut u) = (1.5, 0);
            while u < t + 1 {
                let begins = y;
                y = y * 2.0 + f64::from(t);
                u += 1;
                if begins > 100.0 {
                    break;
                }
            }
            sum += y / f64::from(u + 1);
        }
        close(&found[0], &[sum]);
        assert_eq!(found[1], [f64::from(n.max(0))]);
    }
}

#[test]
fn whole_states_of_calls_with_several_results() {
    let text = "
        dim N = 2; dim T = 3; dim D = 2; dim H = 3
        input x: f64[N, T, D]
        input wx: f64[D, 4, H]; input wh: f64[H, 4, H]; input b: f64[4, H]
        fn cell(x[n, d], h[n, k], c[n, k]) -> h2[n, k], c2[n, k] {
          z[n,g,k] = x[n,d] * wx[d,g,k] + h[n,j] * wh[j,g,k] + b[g,k]
          c2[n,k]  = sigmoid(z[n,1,k]) * c[n,k] + sigmoid(z[n,0,k]) * tanh(z[n,2,k])
          h2[n,k]  = sigmoid(z[n,3,k]) * tanh(c2[n,k])
        }
        repeat t < T {
          state h[n < N, k < H] = zeros
          state c[n < N, k < H] = zeros
          xt[n,d] = x[n,t,d]
          next h, c = cell(xt, h, c)
          all_h[t,n,k] = next h[n,k]
        }
        output h
        output c
        output all_h
    ";
    let value =
        |name: &str, at: u64| noise(name.len() as u64 + u64::from(name.as_bytes()[0]), at) - 0.5;
    let found = outputs(text, &value);
    let x = |n: usize, t: usize, d: usize| value("x", ((n * 3 + t) * 2 + d) as u64);
    let wx = |d: usize, g: usize, k: usize| value("wx", ((d * 4 + g) * 3 + k) as u64);
    let wh = |j: usize, g: usize, k: usize| value("wh", ((j * 4 + g) * 3 + k) as u64);
    let b = |g: usize, k: usize| value("b", (g * 3 + k) as u64);
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let (mut h, mut c) = ([[0.0f64; 3]; 2], [[0.0f64; 3]; 2]);
    let mut all = vec![];
    for t in 0..3 {
        let (h0, c0) = (h, c);
        for n in 0..2 {
            for k in 0..3 {
                let z = |g: usize| {
                    let of_x: f64 = (0..2).map(|d| x(n, t, d) * wx(d, g, k)).sum();
                    let of_h: f64 = (0..3).map(|j| h0[n][j] * wh(j, g, k)).sum();
                    of_x + of_h + b(g, k)
                };
                c[n][k] = sigmoid(z(1)) * c0[n][k] + sigmoid(z(0)) * z(2).tanh();
                h[n][k] = sigmoid(z(3)) * c[n][k].tanh();
            }
        }
        all.extend(h.as_flattened());
    }
    close(&found[0], h.as_flattened());
    close(&found[1], c.as_flattened());
    close(&found[2], &all);
}

#[test]
fn the_counter_says_which_instance_is_applied() {
    let text = "
        module layer(D)(x[.., D], k = 1) -> y[.., D] {
          param w: f64[D] = normal(0, 1)
          repeat r < 2 { state y = x; next y[..,d] = y[..,d] * w[d] + k }
        }
        input X: f64[2, 3]
        param enc: layer(3)[4]
        fn net(x[n, d]) -> y[n, d] {
          repeat l < 4 { state h = x; next h = enc[l](h, k: l); mid[n, l] = h[n, 0] }
          y[n, d] = h[n, d] + mid[n, 3] + l
        }
        Y = net(X)
        repeat l < 2 { state g = X; next g = enc[l + 1](g) }
        output Y
        output g
        output l
    ";
    let w = |l: usize, d: usize| 0.5 + noise(l as u64, d as u64);
    let found = outputs(text, &|name, at| match name {
        "X" => noise(20, at),
        name => w(name[4..5].parse().unwrap(), at as usize),
    });
    let layer = |l: usize, k: f64, x: [[f64; 3]; 2]| {
        let mut y = x;
        for _ in 0..2 {
            for n in 0..2 {
                for d in 0..3 {
                    y[n][d] = y[n][d] * w(l, d) + k;
                }
            }
        }
        y
    };
    let x = [
        [0, 1, 2].map(|d| noise(20, d)),
        [3, 4, 5].map(|d| noise(20, d)),
    ];
    let (mut h, mut mid) = (x, x);
    for l in 0..4 {
        mid = h;
        h = layer(l, l as f64, h);
    }
    let mut y = vec![];
    for n in 0..2 {
        y.extend(h[n].map(|h| h + mid[n][0] + 4.0));
    }
    close(&found[0], &y);
    close(&found[1], layer(2, 1.0, layer(1, 1.0, x)).as_flattened());
    assert_eq!(found[2], [2.0]);
}

#[test]
fn a_function_with_rounds_is_called_for_every_index() {
    let text = "
        input x: f64[4]
        input A: f64[4, 2]
        fn root(a) -> r {
          repeat k < 30 { state r = 1.0; next r = (r + a / r) / 2 }
        }
        fn shrunk(v[n], by) -> w[n], ws[3, n] {
          repeat k < 3 {
            state w = v
            next w[n] = w[n] / (1 + by)
            ws[k, n] = w[n]
          }
        }
        y[i] = root(x[i])
        whole = root(f64(7))
        z[i, n] = first(A[i], x[i])[n]
        fn first(v[n], by) -> w[n] { s, ws = shrunk(v, by); w[n] = s[n] + ws[1, n] }
        output y
        output whole
        output z
    ";
    let x = |i: usize| 1.0 + noise(30, i as u64);
    let a = |i: usize, n: usize| noise(31, (2 * i + n) as u64);
    let found = outputs(text, &|name, at| match name {
        "x" => x(at as usize),
        _ => a(at as usize / 2, at as usize % 2),
    });
    close(&found[0], &[0, 1, 2, 3].map(|i| x(i).sqrt()));
    close(&found[1], &[7f64.sqrt()]);
    let z = |i: usize, n: usize| a(i, n) / (1.0 + x(i)).powi(3) + a(i, n) / (1.0 + x(i));
    let z: Vec<f64> = (0..8).map(|at| z(at / 2, at % 2)).collect();
    close(&found[2], &z);
}

#[test]
fn a_call_in_rounds_and_the_same_outside() {
    let text = "
        input w: f64
        fn root(a) -> r { repeat k < 30 { state r = 1.0; next r = (r + a / r) / 2 } }
        repeat t < 3 { state x = 0.0; next x = x + root(w) }
        y = root(w)
        output x
        output y
    ";
    let found = outputs(text, &|_, _| 5.0);
    close(&found[0], &[3.0 * 5f64.sqrt()]);
    close(&found[1], &[5f64.sqrt()]);
}
