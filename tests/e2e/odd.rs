//! Small programs with an odd twist each: no rounds, one round, empty tensors, blocks in blocks, modules of modules. On 1 to 5
//! sites they give what the interpreter does, and the same as numbers that are written here where these are known.

use crate::operations::case;
use crate::properties::Subject;
use einc_tests::everywhere::printed;
use einc_tests::{Tensor, einc};

const MODULES: &[&str] = &[
    // Local dims, defaults, an instance with a switch.
    "
    module lin(D, H = D)(x[.., D]) -> y[.., H] {
      param w: f64[D, H] = full(0.5); param b: f64[H] = iota
      y[..,h] = x[..,d] * w[d,h] + b[h]
    }
    module two(D, K = 2)(x[.., D]) -> y[.., D] {
      dim E = K * D + 1
      param up: lin(D, E); param down: lin(E, D)
      u = up(x); r[..,e] = relu(u[..,e]); y = down(r)
    }
    input X: f64[7, 5]
    param m: two(5); param q: lin(5)
    Y = m(X); Z = q(Y)
    output Y; output Z",
    // An array in an array, gone through by rounds in rounds; and an instance by its number behind them.
    "
    module lin(D)(x[.., D]) -> y[.., D] { param w: f64[D, D] = full(0.3); param b: f64[D] = iota; y[..,h] = tanh(x[..,d] * w[d,h] + 0.1 * b[h]) }
    module stack(D, L)(x[.., D]) -> y[.., D] {
      param l: lin(D)[L]
      repeat k < L { state h[..,d] = x[..,d]; next h = l[k](h) }
      y = h
    }
    input X: f64[7, 5]
    param s: stack(5, 3)[3]
    repeat j < 2 { state h = X; next h = s[j](h) }
    Z = s[2](h)
    output h; output Z",
    // What an instance of an array owns, by its path, in values and gradients: of an array that rounds go through, and of others.
    "
    module lin(D)(x[.., D]) -> y[.., D] { param w: f64[D, D] = full(0.3); param b: f64[D] = iota; y[..,h] = tanh(x[..,d] * w[d,h] + 0.1 * b[h]) }
    module two(D)(x[.., D]) -> y[.., D] { param a: lin(D); param c: lin(D)[2]; h = a(x); y = c[1](h) }
    input X: f64[7, 5]
    param s: two(5)[3]; param t: two(5)[2]
    repeat j < 3 { state h = X; next h = s[j](h) }
    Z = t[1](h)
    l = sum[n,d] Z[n,d]
    G[d,e] = grad(l, s.1.c.1.w)[d,e] + grad(l, t.1.a.w)[d,e] * s.2.a.b[d]
    H = grad(l, s.2.a.w)
    v = s.0.a.b
    output h; output G; output H; output v; output s.2.a.b; output t.0.c.1.w",
];

const ROUNDS: &[&str] = &[
    // States that begin with, or become, what a library operation gives: on grids its pieces have their keys in another order.
    "
    input X: f64[2, 3, 3]
    A[p,i,j] = X[p,i,j] + where(i == j, 4, 0)
    b = solve(A, X)
    repeat t < 3 {
      state y[p,i,j] = b[p,i,j]
      q[p,i,j] = y[p,i,l] * y[p,l,j]
      next y[p,i,j] = where(t < 2, q[p,i,j], y[p,i,j])
    }
    repeat u < 2 { state z[p,i,j] = X[p,i,j]; next z[p,i,j] = solve(A, z)[p,i,j] }
    output y; output z",
    // No round: by a number, and by data that may say anything.
    "
    input X: f64[7, 5]; input K: i64
    repeat t < 0 { state s[n,d] = X[n,d]; next s[n,d] = s[n,d] * 2; w[t,n]: f64[0, 7] = s[n,0] }
    repeat u < K * K - 100 { state r[n,d] = X[n,d]; next r[n,d] = r[n,d] * 2 }
    output s; output t; output w; output r; output u",
    "
    input X: f64[7, 5]
    repeat t < 1 { state s[n,d] = X[n,d]; next s[n,d] = s[n,d] * 2 + f64(t); w[n,t] = s[n,0] }
    output s; output t; output w",
    // Blocks in blocks that end by themselves, what the outer one counts, states of all kinds.
    "
    input X: f64[7, 5]
    repeat i < 4 {
      state x[n,d] = X[n,d]
      state tot[n] = zeros
      repeat k < 50 until max[n] abs(next y[n]) < 1 + 2*i {
        state y[n] = x[n,0]
        next y[n] = y[n] * 0.5 + i
      }
      next x[n,d] = where(d == 0, y[n] + 1, x[n,d])
      next tot[n] = tot[n] + y[n]
      cnt[i] = k
    }
    output x; output tot; output cnt",
    "
    repeat t < 9 {
      state f: f64 = 1.0
      state i = 1
      state b = false
      state v[q < 6] = q
      state g[r < 2, c < 3]: f64 = zeros
      next f = f * 1.5; next i = (i * 3 + t) % 1000; next b = not b
      next v[q] = v[(q + 5) % 6]; next g[r,c] = g[r,c] + f64(c)
    }
    output f; output i; output b; output v; output g",
    "
    repeat a < 3 {
      state s = 0
      repeat b < a {
        state q = s
        repeat c < b + 1 { state r = q; next r = r + a * 100 + b * 10 + c }
        next q = r
      }
      next s = q
    }
    output s",
    // Single elements that change, the same one twice.
    "
    input P: i64[6]
    repeat t < 6 {
      state s[i < 9]: f64 = i
      at = abs(P[t])
      next s[i] = where(i == at, s[i] * 10, where(i == t, s[i] + s[at], s[i]))
    }
    output s",
];

const REST: &[&str] = &[
    // Scatters onto one place from many, a prefix sum as a rank, first occurrences.
    "
    input X: f64[7, 5]; input i: i64[7]
    at[n] = abs(i[n])
    A[at[n],d]: f64[8, 5] += X[n,d]
    M[at[n],d]: f64[8, 5] max= X[n,d]
    D[n + d]: f64[11] += X[n,d]
    rank[n] = sum[m < n] i64(at[m] == at[n])
    first[at[n]]: i64[8] min= n
    new[n] = first[at[n]] == n
    output A; output M; output D; output rank; output new",
    // Prefixes from the other end, in two dimensions, of a choice.
    "
    input X: f64[7, 5]
    R[r < 7,d] = X[6 - r,d]
    rev[k,d] = sum[m <= k] R[m,d]
    e[n < 7,d] = rev[6 - n,d]
    S[n,d] = sum[m <= n, c <= d] X[m,c]
    q[n] = prod[m <= n] (1 + 0.1 * X[m,0])
    A[n] = argmax[m <= n] X[m,1]
    L[n] = logsumexp[m <= n] X[m,2]
    output e; output S; output q; output A; output L",
    // Suffixes, a gradient that is one, and both ways in two dimensions.
    "
    input X: f64[7, 5]
    S[n < 7,d] = sum[m] where(m >= n, X[m,d], 0)
    B[n < 7,d < 5] = prod[m, c] where(m > n and c >= d, 1 + 0.1 * X[m,c], 1)
    C[n,d < 5] = sum[m <= n, c] where(c > d, X[m,c], 0)
    t[n,k < 6] = max[d] where(d < k, -inf, X[n,d])
    L[n < 7] = logsumexp[m] where(n <= m, X[m,2], -inf)
    loss = sum[n,d] (sum[m <= n] X[m,d])^2
    G = grad(loss, X)
    output S; output B; output C; output t; output L; output G",
    // Conditions in sums: labels, segments, ranks, and the gradients of running products and extremes.
    "
    input X: f64[23, 5]; input l: i64[23]; input A: f64[3, 23]; input B: f64[3, 4]
    k[n] = abs(l[n]) % 3
    sums[c < 3,d] = sum[n] where(k[n] == c, X[n,d], 0)
    counts[c < 3] = sum[n] i64(k[n] == c)
    tops[c < 3] = max[n] where(k[n] != c, -inf, X[n,2])
    seg[n,d] = sum[m <= n] where(k[m] == k[n], X[m,d], 0)
    all_[n] = sum[m] where(k[m] == k[n], X[m,0]^2, 0)
    soft[n] = exp(X[n,1] - logsumexp[m] where(k[m] == k[n], X[m,1], -inf))
    rank[n,d] = sum[m < n] i64(X[m,d] == X[n,d])
    near[n] = sum[m] where(m >= n, X[m,0] * X[n,1], 0)
    p[n] = prod[m <= n] X[m,3]
    gp = grad(sum[n] p[n] * X[n,0], X)
    top[n,d] = max[m <= n] X[m,d]
    gt = grad(sum[n,d] top[n,d]^2, X)
    gs = grad(sum[n,d] seg[n,d]^2, X)
    S[2 * t + u,r]: f64[67, 4] += A[i,t] * B[i,r] * X[u,0]
    output sums; output counts; output tops; output seg; output all_; output soft; output rank; output near; output gp; output gt; output gs; output S",
    // Slices by data, a function of functions for every p, results of which one is read.
    "
    fn stats(x[n, d]) -> m[d], c[d, d] { m[d] = mean[n] x[n,d]; c[d,e] = mean[n] (x[n,d]-m[d])*(x[n,e]-m[e]) }
    fn cov(x[n, d]) -> c[d, d] { m, c = stats(x) }
    fn f(x[d], k) -> y[d] { y[d] = k * x[d] - x[0] }
    input T: f64[4, 7, 5]; input j: i64[4]
    C[p,d,e] = cov(T[p])[d,e]
    at[p] = abs(j[p])
    a[p,d] = f(T[p,at[p]], f64(p))[d]
    output C; output a",
    // Groups that data say: what points read of theirs, what others stand for, reductions inside of a scatter, and sorted values.
    "
    dim G = 6
    input x: f64[50]; input k: i64[50]; input t: i64[50, 3]
    at[n] = abs(k[n]); from[n,j] = min(abs(t[n,j]), 49)
    size[g < G] = count[n] (at[n] == g)
    m[g < G] = (sum[n] where(at[n] == g, x[n], 0)) / f64(max(1, size[g]))
    v[g < G] = mean[n] where(at[n] == g, (x[n] - m[g])^2, 0)
    top[g < G] = max[n] where(at[n] == g and x[n] < m[g], x[n], 9)
    some[g < G] = any[n] (at[n] == g and x[n] > m[g])
    none[g < G] = all[n] (at[n] != g or x[n] <= m[g])
    same[g < G] = sum[n] x[n]
    S[min(at[n], 5)]: f64[6] += max[j] x[from[n,j]] * (j + 1)
    up = sort(v); down, places = topk(v, 3)
    output v; output top; output some; output none; output same; output S; output up; output down",
    // Products whose condition breaks at the ends of an index alone, with a gradient.
    "
    input x: f64[203]; input h: f64[37]
    c[l < 37] = sum[i < 203 - l] x[i] * x[i + l]
    y[n < 203] = sum[k <= n] h[k] * x[n - k]
    z[n < 203] = sum[k] where(n + k >= 11 and n + k < 214, h[k] * x[n + k - 11], 0)
    g = grad(sum[n] y[n] * z[n], h)
    output c; output y; output z; output g",
    // Nothing at all.
    "
    input B: f64[0, 5, 5]; input y: f64[0, 5]; input E: f64[0, 0]
    x = solve(B, y); w, V = eigh(B); q, r = qr(B); u, t, vt = svd(B); s = sort(y); v, at = topk(y, 2)
    I = inv(E); d = logdet(E)
    m[i] = max[n] y[n,i]; z[i] = norm[n] y[n,i]
    output x; output w; output q; output u; output s; output at; output I; output d; output m; output z",
];

/// Layers with matrices that data choose, and their gradients.
const EXPERTS: &[&str] = &["
    dim N = 50, D = 64, F = 66, E = 3
    input x: f64[N, D]
    input u: f64[E, D, F]
    input v: f64[E, F, D]
    g[n,e<E] = sum[d < 3] x[n, 3 * e + d]
    to[n,k<2] = (argmax[e] g[n,e] + k) % E
    h[n,k,f] = relu(sum[d] x[n,d] * u[to[n,k], d, f])
    y[n,d] = sum[k, f] g[n, to[n,k]] * h[n,k,f] * v[to[n,k], f, d]
    loss = mean[n,d] y[n,d]^2
    du = grad(loss, u)
    dv = grad(loss, v)
    dx = grad(loss, x)
    s[to[n,0], i, j]: f64[E, D, D] += x[n,i] * x[n,j]
    output y
    output du
    output dv
    output dx
    output s"];

/// Algorithms as they stand in books.
const BOOKS: &[&str] = &[
    // The likeliest way through a hidden Markov model, backwards by what the way there has collected.
    "
    input T: f64[4, 4]; input E: f64[4, 6]; input o: i64[9]
    obs[n] = o[n] % 6
    repeat t < 8 {
      state d[k] = E[k, obs[0]]
      back[t,k] = argmax[j] (d[j] + T[j,k])
      next d[k] = (max[j] (d[j] + T[j,k])) + E[k, obs[t + 1]]
    }
    last = argmax[k] d[k]
    repeat s < 8 { state at = last; next at = back[7 - s, at]; path[s] = next at }
    output path; output last; output d",
    // A Kalman filter.
    "
    input F: f64[2, 2]; input H: f64[1, 2]; input y: f64[9, 1]
    repeat t < 9 {
      state m[s < 2]: f64 = zeros
      state P[s < 2, r < 2] = where(s == r, f64(1), 0)
      mp[s] = 0.5 * F[s,r] * m[r]
      Pp[s,r] = 0.25 * F[s,a]*P[a,b]*F[r,b] + where(s == r, 0.1, 0)
      G[o,p] = H[o,a]*Pp[a,b]*H[p,b] + where(o == p, 1, 0)
      Gi = inv(G)
      K[s,p] = Pp[s,a]*H[o,a]*Gi[o,p]
      next m[s] = mp[s] + K[s,o]*(y[t,o] - (sum[a] H[o,a]*mp[a]))
      next P[s,r] = Pp[s,r] - K[s,o]*G[o,p]*K[r,p]
      ms[t,s] = next m[s]
    }
    output ms; output P",
    // Projections onto the simplex; the fast Fourier transform, a stage a round.
    "
    input V: f64[3, 7]; input re: f64[8]; input im: f64[8]
    s = sort(V)
    u[p,i < 7] = s[p, 6 - i]
    c[p,i] = sum[j <= i] u[p,j]
    ok[p,i] = u[p,i] - (c[p,i] - 1) / (i + 1) > 0
    r[p] = max[i] where(ok[p,i], i, 0)
    W[p,i] = max(V[p,i] - (c[p, r[p]] - 1) / f64(r[p] + 1), 0)
    repeat q < 3 {
      state a[i] = re[div(i, 4) + 2 * (div(i, 2) % 2) + 4 * (i % 2)]
      state b[i] = im[div(i, 4) + 2 * (div(i, 2) % 2) + 4 * (i % 2)]
      state h = 1
      next h = 2 * h
      up[i < 8] = i % (2 * h) >= h
      w[i < 8] = -pi * f64(i % h) / f64(h)
      lo[i < 8] = i - where(up[i], h, 0)
      cr[i] = cos(w[i])*a[lo[i] + h] - sin(w[i])*b[lo[i] + h]
      ci[i] = cos(w[i])*b[lo[i] + h] + sin(w[i])*a[lo[i] + h]
      next a[i] = where(up[i], a[lo[i]] - cr[i], a[lo[i]] + cr[i])
      next b[i] = where(up[i], b[lo[i]] - ci[i], b[lo[i]] + ci[i])
    }
    output W; output a; output b",
    // Edit distance, row by row; colours of a graph; Gauss and Seidel.
    "
    input x: i64[7]; input y: i64[9]; input g: i64[9, 9]; input A: f64[6, 6]; input b: f64[6]
    repeat letter < 7 {
      state row[j < 10] = j
      up[j < 10] = min(row[j] + 1, (row[j-1] else 1000) + where(j > 0 and x[letter] == (y[j-1] else 99), 0, 1))
      first[j < 10] = where(j == 0, letter + 1, up[j])
      next row[j] = (min[k <= j] (first[k] - k)) + j
    }
    repeat v < 9 {
      state c[i < 9]: i64 = full(-1)
      used[k < 9] = any[j] (g[v,j] + g[j,v] > 0 and c[j] == k)
      free = argmin[k] i64(used[k])
      next c[i] = where(i == v, free, c[i])
    }
    repeat t < 3 {
      state z[i < 6]: f64 = zeros
      repeat q < 6 {
        state w = z
        r = b[q] - (sum[j] A[q,j] * w[j]) + A[q,q]*w[q]
        next w[j] = where(j == q, r / (A[q,q] + 6), w[j])
      }
      next z = w
    }
    output row; output c; output z",
    // A beam of the three likeliest words; life on a torus.
    "
    input P: f64[7, 7]; input L: i64[6, 11]
    s0, t0 = topk(P[0], 3)
    repeat k < 4 {
      state s = s0
      state word = t0
      all_[c < 21] = s[div(c, 7)] + P[word[div(c, 7)], c % 7]
      sv, at = topk(all_, 3)
      next s = sv
      next word[b] = at[b] % 7
    }
    repeat t < 4 {
      state g[i,j] = L[i,j] > 0
      n[i,j] = sum[a < 3, b < 3] i64(g[(i + a + 5) % 6, (j + b + 10) % 11]) - i64(g[i,j])
      next g[i,j] = n[i,j] == 3 or (n[i,j] == 2 and g[i,j])
    }
    output s; output word; output g",
    // The best of each group, some of which are empty; ties and NaN.
    "input x: f64[61]; input label: i64[61]; input y: i64[61, 3]
    z[n] = where(n % 9 == 4, nan, where(x[n] > 0.5, 0.5, x[n]))
    best[k < 11] = argmax[n] where(label[n] + 4 == k, z[n], -inf)
    least[k < 11, d] = argmin[n] where(label[n] == k and n != 7, f32(y[n,d]), inf)
    of[k] = x[best[k]]
    output best; output least; output of",
    // Ranks and sums of all that is below: enough of them are sorted.
    "input x: f64[1060]; input v: f64[1000]; input n: i64[1060]; input w: f64[1, 1060]
    z[j] = where(j % 40 == 3, nan, x[j])
    rank[i] = count[j] (z[j] <= z[i])
    above[b,i] = sum[j] where(z[j] > v[i], w[b,j], 0)
    last[i] = max[j] where(n[j] <= n[i] and j % 3 == 0, f64(j), -inf)
    l = sum[b,i] above[b,i] * above[b,i]
    g = grad(l, w)
    output rank; output above; output last; output g",
    // The least of what goes to a place, of which a diagonal is read, and its gradient: what is compared is computed once.
    "input x: f64[7]; input z: f64[3, 6]
    q[i < 5] = where(i == 0, 4, where(i == 1, -1, 5 - i))
    y[q[i] + 1, j < 4] else drop: f64[5,4] min= z[0,j] - (z[i, q[i]] else 1) + (x[j] * (x[q[i]] else 0.5))^2
    l = sum[i,j] where(isfinite(y[i,j]), y[i,j], 0)
    g = grad(l, x)
    output y; output g",
    // Sums over all that is above and to the left, and their gradient.
    "input A: f64[13, 11]; input B: f64[5, 6, 7]
    S[i,j] = sum[p <= i, q <= j] A[p,q]
    M[i,j,k] = max[p <= i, q < j, r <= k] B[p,q,r]
    l = sum[i,j] S[i,j] * S[i,j] * A[i,j]
    g = grad(l, A)
    output S; output M; output g",
    // Products of which a condition leaves terms or elements out.
    "input A: f64[45, 41]; input B: f64[41, 40]; input C: f64[40, 41]
    lower[i,j] = sum[k <= i] A[i,k] * B[k,j]
    upper[i,j] = sum[k] where(k > j, A[i,k] * C[j,k], 0)
    positive[i,j] = sum[k] where(A[i,k] > 0, A[i,k] * B[k,j], 0)
    band[i,j] = sum[k] where(k <= i + 3 and i <= k + 3, A[i,k] * B[k,j], 0)
    l = sum[i,j] lower[i,j] * lower[i,j] + sum[i,j] upper[i,j] * band[i,j]
    g = grad(l, A); h = grad(l, B)
    output lower; output upper; output positive; output g; output h",
];

/// Runs a program, and asserts what it prints.
#[track_caller]
fn prints(text: &str, expected: &str) {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("p.ein");
    std::fs::write(&program, text).unwrap();
    let said = einc(&["run", &program.display().to_string()]).success();
    assert_eq!(said.stdout, expected);
}

#[test]
fn odd_programs_give_what_the_interpreter_does() {
    let all = MODULES.iter().chain(ROUNDS).chain(REST);
    let all = all.chain(BOOKS).chain(EXPERTS);
    for (number, text) in all.enumerate() {
        let subject = Subject::of_case(case(text, 1e-9));
        for sites in 1..=5 {
            let what = format!("program {number} on {sites} sites\n{text}");
            subject.compare(&subject.once(sites), &what);
        }
    }
}

/// A rate is known before the run, also where bits of the step make it.
#[test]
fn rates_may_be_made_of_bits() {
    let trained = |factor: &str| {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("p.ein");
        let text = format!(
            "input x: f64[8] = iota
param v: f64 = 1
loss = mean[n] (x[n] * v - 1)^2
schedule by_bits() = {factor}
train {{ loss: loss; steps: 6; optimizer: sgd(lr: 0.01); schedule: by_bits() }}
output v
"
        );
        std::fs::write(&program, text).unwrap();
        einc(&["run", &program.display().to_string()])
            .success()
            .stdout
    };
    assert_eq!(
        trained("((step & 3) ^ 2 + (step >> 1)) / 8"),
        trained("((step % 4) ^ 2 + div(step, 2)) / 8")
    );
    assert_eq!(
        trained("1 / (1 + popcount(step))"),
        trained("1 / (1 + step % 2 + div(step, 2) % 2 + div(step, 4))")
    );
}

/// A file for each of two params that begin alike.
#[test]
fn params_that_begin_alike_have_their_own_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let program =
        "param a: f32[3] = zeros\nparam b: f32[3] = zeros\nc[i] = a[i] + 2 * b[i]\noutput c\n";
    std::fs::write(file("p.ein"), program).unwrap();
    for (name, factor) in [("a.npy", 1.0), ("b.npy", 10.0)] {
        let tensor = Tensor::from_fn(&[3], |at| factor * (at as f64 + 1.0));
        tensor.write_f32(file(name).as_ref());
    }
    let (a, b) = (
        format!("a={}", file("a.npy")),
        format!("b={}", file("b.npy")),
    );
    let done = einc(&["run", &file("p.ein"), "--input", &a, "--input", &b]).success();
    assert_eq!(done.stdout, "c = [21. 42. 63.]\n");
}

/// A gradient in a loop that comes to nothing, so that its statement reads nothing of the loop any more.
#[test]
fn a_statement_may_come_to_read_nothing_of_its_loop() {
    prints(
        "input y: f64[4] = iota\ninput w: f64[5] = iota\n\
         repeat t < 3 { state s[i < 3] = 0.0; next s[i < 3] = sum[r < 3] f64(t) * where(i < 0, y[t], w[i]) }\n\
         g = grad(sum[i] s[i]^2, y)\noutput s\noutput g\n",
        "s = [ 0.  6. 12.]\ng = [0. 0. 0. 0.]\n",
    );
}

/// What is stored rounded and taken further in a wider type has that type, and its digits.
#[test]
fn what_was_rounded_has_the_type_that_it_is_converted_to() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.ein");
    let text = "input x: f32[2] = 0.1\ne[i] = f32(bf16(x[i]))\nh[i]: f64[2] = f64(f16(x[i]))\n\
                w[i] = i32(u8(x[i] * 2000))\noutput e\noutput h\noutput w\n";
    std::fs::write(&path, text).unwrap();
    for sites in ["1", "2", "3"] {
        let [w, h] =
            ["w", "h"].map(|name| format!("{name}={}/{name}.npy", folder.path().display()));
        let arguments = [
            "run",
            path.to_str().unwrap(),
            "--sites",
            sites,
            "--save",
            &w,
            "--save",
            &h,
        ];
        let done = einc(&arguments).success();
        let expected = "e = [0.10009766 0.10009766]\nh = [0.09997559 0.09997559]\nw = [200 200]\n";
        assert_eq!(done.stdout, expected, "{sites} sites");
        for (name, kind) in [("w", "<i4"), ("h", "<f8")] {
            let file = std::fs::read(folder.path().join(format!("{name}.npy"))).unwrap();
            let header = String::from_utf8_lossy(&file);
            assert!(header.contains(kind), "{name} on {sites} sites");
        }
    }
}

/// Seven indices of two classes, all of which are cut: with sixteen pieces each it would be 2^28 joins.
#[test]
fn deterministic_pieces_are_few_where_many_indices_are_cut_alike() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("ccsd.ein");
    let text = "
        dim O = 4; dim V = 3
        input t: f64[O, O, V, V] = normal(0, 1); input v: f64[V, V, V, V] = normal(0, 1)
        q[i,j,a,b] = v[a,b,c,d] * t[i,j,c,d]
        r[i,j,a,b] = q[i,j,a,b] - q[j,i,a,b] + (t[i,k,a,c] * (sum[d] v[c,d,d,g]) * t[k,j,g,b])
        e = r[i,j,a,b] * t[i,j,a,b]
        output r; output e";
    std::fs::write(&program, text).unwrap();
    let program = program.to_str().unwrap();
    let on = |sites| einc(&["run", program, "--deterministic", "--sites", sites]).success();
    let one = on("1").stdout;
    for sites in ["2", "3", "5"] {
        assert_eq!(on(sites).stdout, one, "{sites} sites");
    }
}

/// Two products, not one sum over 300 x 300 terms for each of 300 x 300 elements; in one order on any number of sites.
#[test]
fn deterministic_chains_are_products_of_two() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("chain.ein");
    let text = "
        dim N = 300
        input A: f64[N, N] = normal(0, 1); input B: f64[N, N] = normal(0, 1); input C: f64[N, 7] = normal(0, 1)
        D[i,j] = A[i,k] * B[k,l] * C[l,j]
        top = max[i,j] D[i,j]
        output D; output top";
    std::fs::write(&program, text).unwrap();
    let program = program.to_str().unwrap();
    let on = |verb, sites| {
        let arguments = [verb, program, "--deterministic", "--sites", sites];
        einc(&arguments).success().stdout
    };
    let one = on("run", "1");
    for sites in ["2", "3", "5"] {
        assert_eq!(on("run", sites), one, "{sites} sites");
    }
    for sites in ["1", "4"] {
        let plan = on("plan", sites);
        assert!(plan.contains("local join sum (A, D.1"), "{plan}");
    }
}

/// What is rewritten keeps its meaning at the ends of the range, and its digits where large numbers are taken from each other.
#[test]
fn rewritten_programs_mean_the_same_at_the_ends_of_the_range() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let inf = f64::INFINITY;
    let text = "input x: f64[4]; input a: f32[4]; input b: f32[1000]
        large[i] = x[i] * 1e200 * 1e200; small[i] = x[i] * 1e-200 * 1e-200; more[i] = x[i] + 1e308 + 1e308
        other[i] = 1 / (0 - x[i]); near[i] = sum[j] (a[i] - b[j])
        output large; output small; output more; output other; output near";
    std::fs::write(at("p.ein"), text).unwrap();
    let x = [0.0, inf, -inf, 1e-300];
    Tensor::from_fn(&[4], |e| x[e]).write_f64(&at("x.npy"));
    Tensor::from_fn(&[4], |e| 1e7 + e as f64).write_f32(&at("a.npy"));
    Tensor::from_fn(&[1000], |e| 1e7 + (e % 7) as f64).write_f32(&at("b.npy"));
    let near = |e: usize| (0..1000).map(|j| e as f64 - (j % 7) as f64).sum::<f64>();
    let wanted = [
        ("large", x.map(|x| x * 1e200 * 1e200)),
        ("small", x.map(|x| x * 1e-200 * 1e-200)),
        ("more", x.map(|x| x + 1e308 + 1e308)),
        ("other", x.map(|x| 1.0 / (0.0 - x))),
        ("near", [0, 1, 2, 3].map(near)),
    ];
    for sites in ["1", "3"] {
        let program = at("p.ein").display().to_string();
        let mut command = vec!["run".to_owned(), program, "--sites".into(), sites.into()];
        for name in ["x", "a", "b"] {
            let file = at(&format!("{name}.npy"));
            command.extend(["--input".into(), format!("{name}={}", file.display())]);
        }
        for (name, _) in &wanted {
            let file = at(&format!("{name}.npy"));
            command.extend(["--save".into(), format!("{name}={}", file.display())]);
        }
        einc(&command).success();
        for (name, wanted) in &wanted {
            let expected = Tensor::from_fn(&[4], |e| wanted[e]);
            Tensor::read(&at(&format!("{name}.npy"))).assert_close(&expected, 1e-6, name);
        }
    }
}

#[test]
fn narrow_integers_over_nothing_are_the_extremes_of_their_type() {
    let text = "input x: i8[3] = [-5, -7, 3]
input at: i64[3] = 1
most[at[i]]: i8[3] max= x[i]
least[at[i]] else drop: i16[2] min= i16(x[i])
before[i] = max[j < i] x[j]
behind[i < 3] = min[j < 2 - i] x[j]
one = i32(max[j < 0] x[j]) - 1
wrapped[i] = max[j <= i] (x[j] * 30)
output most; output least; output before; output behind; output one; output wrapped
";
    let expected = "most = [-128    3 -128]
least = [32767    -7]
before = [-128   -5   -5]
behind = [ -7  -5 127]
one = -129
wrapped = [106 106  90]
";
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("p.ein");
    std::fs::write(&program, text).unwrap();
    let program = program.display().to_string();
    for sites in ["1", "3"] {
        let said = einc(&["run", &program, "--sites", sites]).success().stdout;
        assert_eq!(said, expected);
    }
}

#[test]
fn a_tensor_with_the_name_of_an_operation_leaves_it_callable() {
    let text = "input A: f64[2, 2] = [[2, 0], [0, 4]]
input sort: f64[2] = [3, 1]
dim topk = 1
const grad = 5
inv[i,j] = 2 * A[i,j]
full[i] = sort[i] + 1
fn f(M[n, n]) -> N[n, n] { N = inv(M) }
B = inv(A)
C = f(inv)
s = sort(sort)
best, at = topk(s, topk)
x[i < 2]: f64[2] = full(7)
loss = sum[i] grad * full[i]^2
g = grad(loss, sort)
output B; output C; output s; output best; output at; output x; output g
";
    let expected = "B = [[0.5  0.  ]
     [0.   0.25]]
C = [[0.25  0.   ]
     [0.    0.125]]
s = [1. 3.]
best = [3.]
at = [1]
x = [7. 7.]
g = [40. 20.]
";
    prints(text, expected);
}

#[test]
fn results_have_the_types_of_their_signature() {
    let text = "use std.array
input x: f32[2] = 1
fn numbers(x[n]) -> a[n]: f64, b[n]: u8, c: i64 { a[i] = i; b[i] = where(x[i] > 0, 1, 0) - 2; c = 7 }
fn drawn(x[n]) -> u[n]: c64 { u[n] = zeros }
fn rounds(x[n]) -> s: f32 { repeat t < 2 { state s = 0.0; next s = s + x[t] } }
a, b, c = numbers(x)
u = drawn(x)
s = rounds(x)
label[i < 2] = i
hot = array.one_hot(label, classes: 2)
output a; output b; output c; output u; output s; output hot
";
    let expected = "a = [0. 1.]
b = [255 255]
c = 7
u = [0.+0.j 0.+0.j]
s = 2.0
hot = [[1. 0.]
       [0. 1.]]
";
    prints(text, expected);
}

#[test]
fn the_least_integer_is_a_literal() {
    let text = "const least = -9223372036854775808
input x: i64[3] = [-9223372036854775808, 0, 9223372036854775807]
y[i] = x[i] == least
z[i] = max(x[i], -9223372036854775808) + 1
w = -9223372036854775808
output y; output z; output w
";
    let expected = "y = [ true false false]
z = [-9223372036854775807                    1 -9223372036854775808]
w = -9223372036854775808
";
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("p.ein");
    std::fs::write(&program, text).unwrap();
    let program = program.display().to_string();
    assert_eq!(einc(&["run", &program]).success().stdout, expected);
    let filled = einc(&["run", &program, "--input", "x=-9223372036854775808"]).success();
    assert!(
        filled.stdout.starts_with("y = [true true true]\n"),
        "{filled}"
    );
}

/// A list among the arguments of an optimizer: left out, given, and given by a group; its numbers take the type of the param.
#[test]
fn an_argument_of_an_optimizer_is_a_list() {
    let text = "
optimizer turns(lr, parts = [1, 0.5, 0.25]) for w[..], g[..] {
  sum_of = sum[k] parts[k]
  next w[..] = w[..] - lr * parts[step % 3] * g[..] + 0 * sum_of
}
param w: f32 = 1
param v: f64 = 1
param u: f32 = 1
loss = w^2 + f32(v^2) + u^2
train { loss: loss; steps: 3; optimizer: turns(lr: 0.25); group u { parts: [2, 1, 2] } }
output w; output v; output u
";
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("p.ein").display().to_string();
    std::fs::write(&program, text).unwrap();
    for sites in ["1", "2"] {
        let said = einc(&["run", &program, "--sites", sites, "--progress", "none"]).success();
        assert_eq!(said.stdout, "w = 0.328125\nv = 0.328125\nu = 0.0\n");
    }
}

/// Subnets of a net whose first layer looks words up in an embedding: in the product itself, and under a name.
#[test]
fn subnets_stand_behind_an_embedding() {
    let net = |layer: &str| {
        format!(
            "
dim N = 24
input tok: i64[N] = uniform(0, 19)
param E: f64[20, 10] = normal(0, 1)
param U: f64[10, 7] = normal(0, 0.3)
param W: f64[7, 3] = he_normal
{layer}
z[n,c] = u[n,j] * W[j,c]
loss = mean[n,c] (z[n,c] - f64(c == tok[n] % 3))^2
train {{ loss: loss; data: tok over N by 6; epochs: 2; optimizer: sgd(lr: 0.1); strategy: ist(local_steps: 2) }}
output loss; output U
"
        )
    };
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("p.ein").display().to_string();
    let run = |layer: &str| {
        std::fs::write(&program, net(layer)).unwrap();
        einc(&["run", &program, "--sites", "2", "--progress", "none"]).success()
    };
    let inside = run("u[n,j] = relu(sum[d] E[tok[n],d] * U[d,j])");
    let named = run("e[n,d] = E[tok[n],d]\nu[n,j] = relu(sum[d] e[n,d] * U[d,j])");
    assert!(inside.stdout.starts_with("loss = "), "{inside}");
    assert_eq!(inside.stdout, named.stdout);
}

#[test]
fn an_index_of_a_scatter_may_stand_in_front_of_its_bound() {
    for left in ["a[j, j < 3]", "a[j < 3, j]"] {
        prints(
            &format!("v[i < 3] = 10.0 * (i + 1)\n{left}: f32[3, 3] += v[j]\noutput a\n"),
            "a = [[10.  0.  0.]\n     [ 0. 20.  0.]\n     [ 0.  0. 30.]]\n",
        );
    }
}

/// Of values that are equal, each has a share of what the inner maximum has.
#[test]
fn a_maximum_of_maxima_gives_shares_to_these_first() {
    prints(
        "x[k < 2, l < 2] = where(k == 1 and l == 0, 0.0, 1.0)
m = max[k] (max[l] x[k,l])
g = grad(m, x)
n = min[k < 2] (min[l < 2 - k] x[0,k])
h = grad(n, x)
output g
output h
",
        "g = [[0.25 0.25]\n     [0.   0.5 ]]\nh = [[0.5 0.5]\n     [0.  0. ]]\n",
    );
}

#[test]
fn points_and_numbers_beyond_64_bits_are_counted_and_converted() {
    let text = "dim N = 3000000\ninput x: f64[N] = ones\nm = mean[i,j,k] x[i]*x[j]*x[k]\n\
                s = sum[i<N,j<N,k<N] f64(1)\ny = u64(1e19)\nz = u64(1e30)\n\
                h = u64(9.223372036854775808e18)\noutput m\noutput s\noutput y\noutput z\noutput h\n";
    let expected = "m = 1.0\ns = 2.7e+19\ny = 10000000000000000000\nz = 18446744073709551615\nh = 9223372036854775808\n";
    assert_eq!(printed(&[("p.ein", text)]), expected);
}

/// A truth value that leaves a reduction as it is says nothing about how many points there are.
#[test]
fn literals_that_decide_nothing_are_not_counted() {
    let text = "a[i < 4] = all[k <= i] true\nb[i < 4] = any[k <= i] false\nc[i < 4] = any[k < i] true\n\
                d[i < 4] = all[k < i] false\noutput a\noutput b\noutput c\noutput d\n";
    let expected = "a = [true true true true]\nb = [false false false false]\nc = [false  true  true  true]\n\
                    d = [ true false false false]\n";
    assert_eq!(printed(&[("p.ein", text)]), expected);
}
