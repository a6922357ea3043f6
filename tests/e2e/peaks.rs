//! A process takes as much memory as its plan states: within 5 % or 32 MB, without code and libraries.

use einc_tests::{einc_command, root, run};
use std::fs;
use std::path::Path;

const SLACK: u64 = 32 << 20;

fn figure(text: &str, name: &str) -> u64 {
    let (_, rest) = text
        .split_once(&format!("stats: {name} = "))
        .unwrap_or_else(|| panic!("{name} is not in {text}"));
    rest.lines().next().unwrap().parse().unwrap()
}

fn is_kept(folder: &Path, program: &Path, sites: &str) {
    let mut command = einc_command(&["run", "--stats", "--progress", "none", "--sites", sites]);
    let finished = run(command.arg(program).current_dir(folder)).success();
    let (stated, measured) = (
        figure(&finished.stderr, "stated peak bytes"),
        figure(&finished.stderr, "measured peak bytes"),
    );
    let bound = (stated + stated / 20).max(stated + SLACK);
    assert!(
        measured <= bound,
        "{} on {sites}: {measured} bytes, {stated} stated",
        program.display()
    );
}

#[test]
fn examples_take_what_they_state() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "attention",
        "block_inverse",
        "ccsd",
        "chain",
        "cnn",
        "conv",
        "digits_knn",
        "gcd",
        "linear_solvers",
        "logistic",
        "lstm",
        "matfac",
        "matmul",
        "ridge",
    ] {
        is_kept(
            folder.path(),
            &root().join(format!("examples/{name}.ein")),
            "1",
        );
    }
    for name in ["attention", "conv", "matmul"] {
        is_kept(
            folder.path(),
            &root().join(format!("examples/{name}.ein")),
            "3",
        );
    }
}

#[test]
fn steps_that_work_in_memory_of_their_own_state_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let square = "dim N = 1000\ninput A: f64[N,N] = normal(0, 1)\n";
    let cases = [
        format!("{square}x = solve(A, A)\ns = sum[i,j] x[i,j]\noutput s\n"),
        format!("{square}B = inv(A)\ns = sum[i,j] B[i,j]\noutput s\n"),
        format!("{square}P[i,j] = A[i,k] * A[j,k]\nL = cholesky(P)\ns = sum[i,j] L[i,j]\noutput s\n"),
        format!("{square}Q, R = qr(A)\ns = sum[i,j] (Q[i,j] + R[i,j])\noutput s\n"),
        format!("{square}S[i,j] = A[i,j] + A[j,i]\nw, V = eigh(S)\ns = sum[i] w[i]\noutput s\n"),
        format!("{square}u, s, v = svd(A)\nt = sum[i] s[i]\noutput t\n"),
        format!("{square}P[i,j] = A[i,k] * A[j,k]\ns = logdet(P)\noutput s\n"),
        "input x: f64[3000000] = normal(0, 1)\ny = sort(x)\ns = y[17]\noutput s\n".into(),
        "input x: c64[2097152] = normal(0, 1)\ny = fft(x)\ns = max[i] abs(y[i])\noutput s\n".into(),
        "input x: f64[1000003] = normal(0, 1)\ny = fft(x)\ns = max[i] abs(y[i])\noutput s\n".into(),
        "input p: i64[8000000] = permutation()\ns = sum[i] p[i] * i\noutput s\n".into(),
        "input x: f32[2000, 1000] = normal(0, 1)\ny, z = fft(x, x)\ns = max[i,j] y[i,j]\noutput s\n".into(),
        "dim N = 10000000\nx[i<N] = i % 7\ny[i] = sum[j <= i] f32(x[j])\ns = max[i] y[i]\noutput s\n".into(),
        "dim N = 60\ninput A: f32[N,N,N,N] = normal(0, 1)\ninput B: f32[N,N,N,N] = normal(0, 1)\n\
         C[a,b,i,j] = A[a,k,i,l] * B[l,b,k,j]\ns = max[a,b,i,j] C[a,b,i,j]\noutput s\n".into(),
        "dim N = 3000\nx[i<N,j<N] = cos(i * 0.001 + j)\ny[j,i] = x[i,j] + x[j,i]\ns = sum[i,j] y[i,j]\noutput s\n".into(),
        "dim N = 4000000\ninput x: f32[N] = normal(0, 1)\ninput k: i64[N] = uniform(0, 1000)\n\
         h[k[n]]: f32[1000] += x[n]\ns = max[i] h[i]\noutput s\n".into(),
        "dim N = 2048\ninput v: f32[N,N] = normal(0, 1)\nrepeat t < 10 {\n  state u[i<N,j<N] = v[i,j]\n\
         \x20 next u[i,j] = u[i,j] + 0.1 * ((u[i-1,j] else 0) + (u[i,j+1] else 0) - 2 * u[i,j])\n}\ns = max[i,j] u[i,j]\noutput s\n".into(),
        "dim N = 20000\ndim D = 300\ninput X: f32[N,D] = normal(0, 1)\ninput y: i64[N] = uniform(0, 10)\n\
         param W: f32[D,512] = normal(0, 0.05)\nparam V: f32[512,10] = normal(0, 0.05)\n\
         h[n,j] = relu(sum[d] X[n,d] * W[d,j])\nz[n,c] = h[n,j] * V[j,c]\nloss = mean[n] (log(sum[c] exp(z[n,c])) - z[n,y[n]])\n\
         train {\n  data: (X, y) over N by 1000\n  loss: loss\n  optimizer: adam(lr: 0.001)\n  epochs: 1\n}\n".into(),
    ];
    let program = folder.join("program.ein");
    for text in cases {
        fs::write(&program, &text).unwrap();
        is_kept(folder, &program, "1");
    }
}
