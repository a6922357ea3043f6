//! Library operations: closed forms, residuals, and the interpreter's textbook methods, on 1 to 5 sites with sizes that do
//! not divide; what stops a run, and what the compiler refuses.

use crate::properties::Subject;
use ein_plan::Scalar;
use einc_core::einsum::interpret::Values;
use einc_core::einsum::random::Case;
use einc_core::einsum::{Definition, Program, interpret::interpret};
use einc_core::sema::{self, Bindings, SourceFile, Sources};
use einc_diag::FileId;
use std::collections::BTreeMap;

fn program(text: &str) -> Program {
    let sources = Sources {
        files: vec![SourceFile {
            name: "case.ein".into(),
            text: text.into(),
            ast: einc_syntax::parse(FileId(0), text).ast,
        }],
        ..Sources::default()
    };
    let bindings = Bindings {
        require_sizes: true,
        ..Bindings::default()
    };
    let analysis = sema::check(&sources, &bindings);
    let found = analysis.diagnostics;
    analysis
        .program
        .unwrap_or_else(|| panic!("{found:#?}\n{text}"))
}

/// Numbers without pattern between -1 and 1.
fn numbers(name: &str, count: u64) -> Vec<f64> {
    let mut state = name.bytes().fold(11u64, |n, b| n * 31 + u64::from(b));
    let next = |_| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as f64 / f64::from(1u32 << 30) - 1.0
    };
    (0..count).map(next).collect()
}

/// A program with values for its inputs, all outputs within a tolerance of what the interpreter gives.
pub(crate) fn case(text: &str, tolerance: f64) -> Case {
    let program = program(text);
    let sources = program
        .tensors
        .iter()
        .filter(|t| matches!(&t.definition, Definition::Source(source) if !source.is_free()));
    let value = |dtype: ein_plan::DType, x: f64| match dtype.is_float() {
        true if dtype == ein_plan::DType::F32 => Scalar::Float(f64::from(x as f32)),
        true => Scalar::Float(x),
        // Small whole numbers, so that some are equal.
        false => Scalar::Int((x * 4.0).round() as i64),
    };
    let inputs: BTreeMap<String, Values> = sources
        .map(|tensor| {
            let numbers = numbers(&tensor.name, tensor.shape.iter().product());
            let data = numbers.into_iter().map(|x| value(tensor.dtype, x));
            let values = Values {
                shape: tensor.shape.clone(),
                data: data.collect(),
            };
            (tensor.name.clone(), values)
        })
        .collect();
    Case {
        tolerance: vec![tolerance; program.outputs.len()],
        program,
        inputs,
    }
}

const PROGRAMS: &[(&str, f64)] = &[
    // One system that is not cut, then its residual.
    (
        "input M: f64[7, 7]\ninput b: f64[7]
        A[i,j] = M[i,j] + where(i == j, 6, 0)
        x = solve(A, b)
        r[i] = A[i,j] * x[j] - b[i]
        output x; output r",
        1e-11,
    ),
    // A call for every p, over sizes that do not divide; and all with whole tensors.
    (
        "input M: f64[7, 5, 5]\ninput y: f64[7, 5]\ninput B: f64[7, 5, 3]
        A[p,i,j] = M[p,i,j] + where(i == j, 5, 0)
        x[p,i] = solve(A[p], y[p])[i]
        X = solve(A, B)
        one[p,i] = solve(A[3], y[p])[i]
        every[q,p,i] = solve(A[p], y[q])[i]
        output x; output X; output one; output every",
        1e-11,
    ),
    (
        "input M: f32[6, 4, 4]
        S[p,i,j] = M[p,i,k] * M[p,j,k] + where(i == j, 1, 0)
        L = cholesky(S)
        back[p,i,j] = L[p,i,k] * L[p,j,k] - S[p,i,j]
        Y = inv(S)
        size[p] = logdet(S[p])
        output L; output back; output Y; output size",
        2e-4,
    ),
    (
        "input A: f64[5, 6, 4]\ninput B: f64[3, 5]
        q, r = qr(A)
        unit[p,k,l] = q[p,i,k] * q[p,i,l]
        back[p,i,j] = q[p,i,k] * r[p,k,j] - A[p,i,j]
        wide, upper = qr(B)
        output q; output r; output unit; output back; output wide; output upper",
        1e-11,
    ),
    (
        "input M: f64[4, 5, 5]
        S[p,i,j] = M[p,i,j] + M[p,j,i]
        w, V = eigh(S)
        back[p,i,j] = sum[k] V[p,i,k] * w[p,k] * V[p,j,k] - S[p,i,j]
        output w; output V; output back",
        1e-9,
    ),
    (
        "input A: f64[3, 6, 4]\ninput B: f64[4, 6]
        u, s, v = svd(A)
        back[p,i,j] = sum[k] u[p,i,k] * s[p,k] * v[p,k,j] - A[p,i,j]
        uB, sB, vB = svd(B)
        output u; output s; output v; output back; output uB; output sB; output vB",
        1e-8,
    ),
    // Matrices without symmetry: a batch, slices, one by one and the gradient by all that comes out, directions of vectors included.
    (
        "input M: f64[4, 5, 5]\ninput a: f64[5]\ninput B: f64[5, 5]\ninput C: f64[5, 5]\ninput one: f64[2, 1, 1]
        w, V = eig(M)
        apart[p,i,k] = M[p,i,j] * V[p,j,k] - V[p,i,k] * w[p,k]
        u, U = eig(M[2])
        x, X = eig(one)
        loss = sum[k] (a[k] * re(u[k]) + a[k]^2 * im(u[k])) + sum[i,k] (B[i,k] * re(U[i,k]) + C[i,k] * im(U[i,k]))
        g = grad(loss, M)
        wr[p,k] = re(w[p,k]); wi[p,k] = im(w[p,k]); Vr[p,i,k] = re(V[p,i,k]); Vi[p,i,k] = im(V[p,i,k])
        off[p] = max[i,k] abs(apart[p,i,k])
        ur[k] = re(u[k]); Ui[i,k] = im(U[i,k]); xr[p,k] = re(x[p,k]); Xr[p,i,k] = re(X[p,i,k])
        output wr; output wi; output Vr; output Vi; output off; output ur; output Ui; output xr; output Xr; output g",
        1e-7,
    ),
    // Equal values, integers, slices by a gather, and an order that is read.
    (
        "input x: f64[7, 9]\ninput n: i64[7, 9]\ninput at: i64[5]
        place[q] = clip(at[q] + 3, 0, 6)
        up = sort(x); ups = sort(n); order = argsort(n)
        best, where_ = topk(n, 4)
        some[q,i] = sort(x[place[q]])[i]
        by[p,i] = n[p, order[p,i]]
        output up; output ups; output order; output best; output where_; output some; output by",
        0.0,
    ),
    // What a call gives, given to another; results read transposed; an inverse of a product.
    (
        "input M: f64[5, 5]\ninput b: f64[5, 4]
        A[i,j] = M[i,j] + where(i == j, 5, 0)
        T[i,j] = inv(A)[j,i]
        x = solve(T, b)
        y = solve(inv(A), solve(A, b))
        z[k,i] = x[i,k]
        loss = sum[i,k] (x[i,k] * y[i,k])
        g = grad(loss, M)
        output x; output y; output z; output g",
        1e-9,
    ),
    // Kernel ridge regression: one model, and one for each part, padded.
    (
        "dim N = 11; dim M = 5; dim D = 3; dim P = 4
        dim R = (N + P - 1) / P
        input X: f64[N, D]; input y: f64[N]; input Z: f64[M, D]; input centre: f64[P, D]
        const s = 1.0; const lam = 1e-3
        part[n < N] = n % P
        fn gauss(x[n, d], z[m, d], s) -> k[n, m] {
          k[n,m] = exp(-(sum[d] (x[n,d] - z[m,d])^2) / (2 * s^2))
        }
        K      = gauss(X, X, s)
        A[i,j] = K[i,j] + lam * N * where(i == j, 1, 0)
        alpha  = solve(A, y)
        pred[m] = gauss(Z, X, s)[m,i] * alpha[i]
        slot[n] = sum[m < n] i64(part[m] == part[n])
        Xp[part[n], slot[n], d]: f64[P, R, D] += X[n,d]
        yp[part[n], slot[n]]:    f64[P, R]    += y[n]
        q[part[n], slot[n]]:     f64[P, R]    += 1
        Kp[p,i,j] = gauss(Xp[p], Xp[p], s)[i,j]
        rows[p]   = sum[i] q[p,i]
        Ap[p,i,j] = q[p,i] * q[p,j] * Kp[p,i,j] + where(i == j, lam * rows[p] * q[p,i] + 1 - q[p,i], 0)
        ap[p,i]   = solve(Ap[p], yp[p])[i]
        own[m]    = argmin[p] sum[d] (Z[m,d] - centre[p,d])^2
        kz[m,i]   = exp(-(sum[d] (Z[m,d] - Xp[own[m], i, d])^2) / (2 * s^2))
        pred2[m]  = kz[m,i] * ap[own[m], i]
        output pred
        output pred2",
        1e-9,
    ),
    // The inverse of a block matrix, twice over.
    (
        "dim n = 3; dim m = 4; dim H = n + m
        input W: f64[2*H, 2*H]
        M[i,j] = W[i,j] + where(i == j, 15, 0)
        fn split(M[N, N], n) -> A[n, n], B[n, N-n], C[N-n, n], D[N-n, N-n] {
          A[i < n, j < n] = M[i, j];  B[i < n, j] = M[i, j + n]
          C[i, j < n] = M[i + n, j];  D[i, j]     = M[i + n, j + n]
        }
        fn join(A[n, n], B[n, m], C[m, n], D[m, m]) -> M[n+m, n+m] {
          M[i,j] = (A[i,j] else 0) + (B[i, j - size(n)] else 0)
                 + (C[i - size(n), j] else 0) + (D[i - size(n), j - size(n)] else 0)
        }
        fn schur(Ai[n, n], B[n, m], C[m, n], D[m, m]) -> P[n, n], Q[n, m], R[m, n], S[m, m] {
          CA[i,j] = C[i,k] * Ai[k,j]
          AB[i,j] = Ai[i,k] * B[k,j]
          T[i,j]  = D[i,j] - C[i,k] * AB[k,j]
          S       = inv(T)
          Q[i,j]  = -AB[i,k] * S[k,j]
          R[i,j]  = -S[i,k] * CA[k,j]
          P[i,j]  = Ai[i,j] - Q[i,k] * CA[k,j]
        }
        A, B, C, D     = split(M, H)
        a, b, c, d     = split(A, n)
        p, q, r, s     = schur(inv(a), b, c, d)
        P, Q, R, S     = schur(join(p, q, r, s), B, C, D)
        back = join(P, Q, R, S)
        whole = inv(M)
        off[i,j] = back[i,j] - whole[i,j]
        output P; output Q; output R; output S; output off",
        1e-11,
    ),
    // Fourier transforms of rows, of slices, and of lengths that are prime, a power of 2, 1 and 0; gradients, and what they preserve.
    (
        "input a: f64[3, 12]\ninput b: f64[3, 12]\ninput c: f64[2, 17]\ninput d: f64[2, 17]
        input e: f64[8]\ninput f: f64[2, 1]\ninput o: f64[2, 0]
        re, im = fft(a, b)
        p, q = fft(c, d)
        s, t = fft(a[1], b[2])
        u, v = fft(e, e)
        h, w = fft(f, f)
        none, nothing = fft(o, o)
        G[n, k] = 0.1 * re[n, k]^2 * im[n, k] + im[n, k]
        ga = grad(sum[n, k] G[n, k], a)
        gb = grad(sum[n, k] G[n, k], b)
        twice = grad(sum[n, k] ga[n, k]^2, b)
        turned = jvp(re, a, b)
        kept[n] = (sum[k] (re[n, k]^2 + im[n, k]^2)) / 12 - (sum[k] (a[n, k]^2 + b[n, k]^2))
        output re; output im; output p; output q; output s; output t; output u; output v; output h; output w
        output none; output ga; output gb; output twice; output turned; output kept",
        1e-8,
    ),
    (
        "input a: f32[4, 30]\ninput b: f32[4, 30]
        re, im = fft(a, b)
        T[k, n] = re[n, k]
        U[k, n] = im[n, k]
        x, y = fft(T, U)
        output re; output im; output x; output y",
        1e-4,
    ),
    // Sizes 0 and 1.
    (
        "input A: f64[2, 1, 1]\ninput E: f64[0, 3, 3]\ninput b: f64[3, 0]\ninput M: f64[3, 3]
        B[p,i,j] = A[p,i,j] + 3
        x = inv(B)
        e = inv(E)
        F[i,j] = M[i,j] + where(i == j, 5, 0)
        n = solve(F, b)
        o = sort(b)
        output x; output e; output n; output o",
        1e-12,
    ),
];

#[test]
fn operations_give_what_textbook_methods_give() {
    for (number, (text, tolerance)) in PROGRAMS.iter().enumerate() {
        let subject = Subject::of_case(case(text, *tolerance));
        subject.on_all_sites(&format!("program {number}"));
        subject.on_random_layouts(number as u64);
    }
}

/// In the rounds of a loop: a matrix that stays the same, and one that changes.
#[test]
fn operations_in_rounds() {
    let text = "
        input M: f64[5, 5]
        input b: f64[5]
        S[i,j] = M[i,k] * M[j,k] + where(i == j, 3, 0)
        repeat t < 4 {
          state v[i] = b[i]
          w[i] = solve(S, v)[i]
          T[i,j] = S[i,j] + where(i == j, v[i]^2, 0)
          u = solve(T, w)
          q, r = qr(T)
          re, im = fft(v, w)
          values, vectors = eig(T)
          next v[i] = w[i] / (norm[j] w[j]) + 0.1 * u[i] + 0.01 * (r[i,j] * v[j]) + 0.01 * (re[i] - im[i]) + 0.01 * re(values[i])
        }
        output v";
    let subject = Subject::of_case(case(text, 1e-10));
    for sites in 1..=5 {
        subject.compare(&subject.once(sites), &format!("{sites} sites"));
    }
}

#[test]
fn closed_forms() {
    let text = "
        H[i < 4, j < 4] = 1.0 / f64(i + j + 1)
        K = inv(H)
        T[i < 6, j < 6] = where(i == j, 2.0, where(i == j + 1 or j == i + 1, -1.0, 0.0))
        D[i,j] = f64(T[i,j])
        w, V = eigh(D)
        d = logdet(D)
        L = cholesky(D)
        output K; output w; output d; output L";
    let case = case(text, 0.0);
    let subject = Subject::of_case(case);
    let found = subject.once(3);
    // The inverse of the Hilbert matrix has whole elements.
    let inverse = [
        16., -120., 240., -140., -120., 1200., -2700., 1680., 240., -2700., 6480., -4200., -140.,
        1680., -4200., 2800.,
    ];
    let check = |found: &Values, expected: &[f64], tolerance: f64| {
        assert_eq!(found.data.len(), expected.len());
        for (a, b) in found.data.iter().zip(expected) {
            let a = a.as_f64();
            assert!(
                (a - b).abs() <= tolerance * b.abs().max(1.0),
                "{a} is not {b}"
            );
        }
    };
    check(&found[0], &inverse, 1e-9);
    // The second difference: eigenvalues 2 - 2 cos(k pi / 7), determinant 7.
    let angle = |k: i32| f64::from(k) * std::f64::consts::PI / 7.0;
    let values: Vec<f64> = (1..=6).map(|k| 2.0 - 2.0 * angle(k).cos()).collect();
    check(&found[1], &values, 1e-12);
    check(&found[2], &[7f64.ln()], 1e-12);
    // Its factor has sqrt((k + 1) / k) on the diagonal and -sqrt(k / (k + 1)) below.
    let mut factor = vec![0.0; 36];
    for k in 0..6 {
        let n = k as f64 + 1.0;
        factor[7 * k] = ((n + 1.0) / n).sqrt();
        if k < 5 {
            factor[7 * k + 6] = -(n / (n + 1.0)).sqrt();
        }
    }
    check(&found[3], &factor, 1e-12);
}

/// What is large is planned by blocks on several sites, and gives the same.
#[test]
fn large_matrices_by_blocks() {
    let text = "
        D[i < 620, j < 620]: f64[620, 620] = where(i == j, 2.0, where(i == j + 1 or j == i + 1, -1.0, 0.0))
        L = cholesky(D)
        Y = inv(D)
        R[i < 620, j < 620]: f64[620, 620] = D[619 - i, j]
        b[i < 620]: f64[620] = R[i,j] * cos(f64(j))
        x = solve(R, b)
        output L; output Y; output x";
    let n = 620;
    let mut factor = vec![0.0; n * n];
    let mut inverse = vec![0.0; n * n];
    for i in 0..n {
        let k = i as f64 + 1.0;
        factor[i * n + i] = ((k + 1.0) / k).sqrt();
        if i + 1 < n {
            factor[(i + 1) * n + i] = -(k / (k + 1.0)).sqrt();
        }
        for j in 0..n {
            let (low, high) = (i.min(j) as f64, i.max(j) as f64);
            inverse[i * n + j] = (low + 1.0) * (n as f64 - high) / (n as f64 + 1.0);
        }
    }
    // Every leading block of R is singular.
    let solution: Vec<f64> = (0..n).map(|j| (j as f64).cos()).collect();
    let subject = Subject::unchecked(program(text));
    let mut rules = vec![];
    for sites in 1..=5 {
        rules.push(subject.rules(sites));
        let expected = [&factor, &inverse, &solution];
        for (found, expected) in subject.once(sites).iter().zip(expected) {
            for (a, b) in found.data.iter().zip(expected) {
                let a = a.as_f64();
                assert!(
                    (a - b).abs() <= 1e-9 * b.abs().max(1.0),
                    "{sites} sites: {a} is not {b}"
                );
            }
        }
    }
    assert!(rules[0].is_empty(), "{rules:?}");
    for rule in ["cholesky-blocks", "inverse-columns", "solve-blocks"] {
        assert!(rules[4].iter().any(|used| used == rule), "{rules:?}");
    }
}

/// What is wrong with a large matrix is said in the same words where it is computed by blocks.
#[test]
fn what_has_no_result_by_blocks_stops_the_run_in_the_same_words() {
    let cases = [
        (
            "x = cholesky(A)",
            "where(i == 577, -1.0, where(i == j, 2.0, 0.0))",
            "`cholesky`: the matrix `A` is not positive definite; pivot 577 is not positive",
        ),
        (
            "x = cholesky(A)",
            "where(i == 577 and j == 205, nan, where(i == j, 2.0, 0.0))",
            "`cholesky`: `A` holds NaN or infinity in row 577, column 205",
        ),
        (
            "x = solve(A, b)",
            "where(j == 577, 0.0, where(i == j, 2.0, 0.0))",
            "`solve`: the matrix `A` is singular; elimination finds only zeros in column 577",
        ),
        (
            "x = inv(A)",
            "where(j == 577, 0.0, where(i == j, 2.0, 0.0))",
            "`inv`: the matrix `A` is singular; elimination finds only zeros in column 577",
        ),
        (
            "x = inv(A)",
            "where(i == 577 and j == 205, inf, where(i == j, 2.0, 0.0))",
            "`inv`: `A` holds NaN or infinity in row 577, column 205",
        ),
    ];
    for (call, element, message) in cases {
        let text = format!(
            "A[i < 600, j < 600]: f64[600, 600] = {element}\n\
             b[i < 600]: f64[600] = f64(i)\n{call}\noutput x"
        );
        let subject = Subject::unchecked(program(&text));
        for sites in 1..=5 {
            let error = subject.error(sites);
            assert_eq!(error.message, message, "{sites} sites: {text}");
            assert_eq!(error.tensor.as_deref(), Some("x"), "{sites} sites: {text}");
        }
    }
    // Rows change places: what is left of the place is the column; of the right side its name.
    for (element, side, message) in [
        (
            "where(i == 577 and j == 205, nan, where(i == j, 2.0, 0.0))",
            "1.0",
            "`solve`: `A` holds NaN or infinity in",
        ),
        (
            "where(i == j, 2.0, 0.0)",
            "where(i == 450, inf, 1.0)",
            "`solve`: ",
        ),
    ] {
        let text = format!(
            "A[i < 600, j < 600]: f64[600, 600] = {element}\n\
             b[i < 600]: f64[600] = {side}\nx = solve(A, b)\noutput x"
        );
        let subject = Subject::unchecked(program(&text));
        for sites in 1..=5 {
            let found = subject.error(sites).message;
            assert!(found.starts_with(message), "{sites} sites: {found}");
            assert!(
                found.contains("column 205") || found.contains("`b`"),
                "{sites} sites: {found}"
            );
            assert!(!found.contains("blocks"), "{sites} sites: {found}");
        }
    }
}

#[test]
fn what_has_no_result_stops_the_run() {
    let cases = [
        (
            "A[p < 4, i < 3, j < 3] = f64(where(p == 2, 1, where(i == j, 2, 0)))\n\
             b[i < 3] = f64(i)\nx[p,i] = solve(A[p], b)[i]\noutput x",
            "E0725",
            "`solve`: the matrix `A` is singular; elimination finds only zeros in column 1; at p = 2",
        ),
        (
            "S[i < 3, j < 3] = where(i == j, f64(1 - i), 0.0)\nL = cholesky(S)\noutput L",
            "E0725",
            "`cholesky`: the matrix `S` is not positive definite; pivot 1 is not positive",
        ),
        (
            "S[i < 2, j < 2] = f64(where(i == j, 1 - 2 * i, 0))\nd = logdet(S)\noutput d",
            "E0725",
            "`logdet`: the determinant of `S` is negative and has no logarithm",
        ),
        (
            "S[i < 3, j < 3] = where(i == 1 and j == 2, nan, f64(i + j))\nd = inv(S)\noutput d",
            "E0726",
            "`inv`: `S` holds NaN or infinity in row 1, column 2",
        ),
        (
            "A[i < 3, j < 3] = f64(where(i == j, 1, 0))\nb[i < 3] = where(i == 2, inf, f64(i))\n\
             x = solve(A, b)\noutput x",
            "E0726",
            "`solve`: `b` holds NaN or infinity in position 2",
        ),
    ];
    for (text, code, message) in cases {
        let program = program(text);
        assert!(interpret(&program, &|tensor| panic!("{}", tensor.name)).is_err());
        let subject = Subject::unchecked(program);
        for sites in 1..=5 {
            let error = subject.error(sites);
            assert_eq!(
                (error.code, error.message.as_str()),
                (code, message),
                "{text}"
            );
        }
    }
}
