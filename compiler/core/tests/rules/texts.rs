use crate::support::{program, rewrite};

#[test]
fn look() {
    for text in [
        "A: f64[9, 8] = unbound\nB: f64[8, 7] = unbound\nx: f64[7] = unbound\nC: f64[9, 7] = [i: 9, j: 7 | k: 8] sum A[i, k] * B[k, j]\ny: f64[9] = [i: 9 | j: 7] sum C[i, j] * x[j]\noutput y\n",
        "A: f64[9, 8] = unbound\nB: f64[8, 7] = unbound\nx: f64[7] = unbound\ny: f64[9] = [i: 9 | k: 8, j: 7] sum A[i, k] * B[k, j] * x[j]\noutput y\n",
        "X: f64[9, 9] = unbound\nY: f64[9, 9] = unbound\nz: f64[9, 9] = [i: 9, j: 9] X[i, j] + Y[i, j]\nd: f64[9] = [i: 9] z[i, i]\noutput d\n",
        "A: f64[9, 8] = unbound\nt: f64[8, 9] = [j: 8, i: 9] A[i, j]\nu: f64[9, 8] = [i: 9, j: 8] t[j, i]\ny: f64[9] = [i: 9 | j: 8] max u[i, j]\noutput y\noutput t\n",
        "U: f64[30, 2] = unbound\nV: f64[2, 40] = unbound\nD: f64[30, 40] = unbound\nx: f64[40] = unbound\np: f64[30, 40] = [i: 30, j: 40 | r: 2] sum U[i, r] * V[r, j]\nz: f64[30, 40] = [i: 30, j: 40] p[i, j] + D[i, j]\ny: f64[30] = [i: 30 | j: 40] sum z[i, j] * x[j]\noutput y\n",
        "A: f64[9, 8] = unbound\nB: f64[8, 7] = unbound\nC: f64[8, 7] = unbound\np: f64[9, 7] = [i: 9, j: 7 | k: 8] sum A[i, k] * B[k, j]\nq: f64[9, 7] = [i: 9, j: 7 | l: 8] sum A[i, l] * C[l, j]\ny: f64[9, 7] = [i: 9, j: 7] p[i, j] - q[i, j]\noutput y\n",
    ] {
        let p = program(text);
        let logic = rewrite(&p);
        println!("=== {}", text);
        println!("{:?}", logic.explored);
        for a in &logic.alternatives {
            println!("--- work {} flops {}\n{}", a.work, a.flops, a.program);
            for r in &a.rules {
                println!("   {} @{}: {}  =>  {}", r.rule, r.tensor, r.before, r.after);
            }
        }
    }
}
