//! Matrices with the elements of several sparse matrices and of the diagonal, on any number of sites.

use crate::sparse_files::few;
use einc_tests::{Tensor, einc_command, run};

const NODES: usize = 151;
const WIDTH: usize = 3;

/// The matrix of a graph network, by name and in the sum: in both directions, with loops, by the degrees of both ends.
const NETWORK: &str = r#"
dim N
dim H = 3
input A: f64[N, N] = load("a.mtx")
input B: f64[N, N] = load("b.mtx")
param X: f64[N, H] = normal(0, 1)
S[i,j] = max(A[i,j], A[j,i]) + where(i == j, 1, 0)
degree[i] = sum[j] S[i,j]
L[i,j] = S[i,j] / sqrt(degree[i] * degree[j])
Y[i,h] = L[i,j] * X[j,h]
Z[i,h] = sum[j] (A[i,j] - 2 * B[j,i]) * X[j,h]
most[i] = max[j] (A[i,j] + B[i,j])
gX = grad(sum[i,h] Y[i,h]^2, X)
output X
output Y
output Z
output most
output gX
"#;

/// The elements of a Matrix Market file.
fn dense(text: &str) -> Vec<[f64; NODES]> {
    let mut matrix = vec![[0.0; NODES]; NODES];
    for line in text.lines().skip(2) {
        let numbers: Vec<usize> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        matrix[numbers[0] - 1][numbers[1] - 1] += numbers[2] as f64;
    }
    matrix
}

#[test]
fn networks_over_graphs_in_both_directions() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (a, b) = (few(NODES, NODES, 170), few(NODES, NODES, 130));
    std::fs::write(at("p.ein"), NETWORK).unwrap();
    std::fs::write(at("a.mtx"), &a).unwrap();
    std::fs::write(at("b.mtx"), &b).unwrap();
    let (a, b) = (dense(&a), dense(&b));
    let all = || (0..NODES).flat_map(|i| (0..NODES).map(move |j| (i, j)));
    let s = |i: usize, j: usize| a[i][j].max(a[j][i]) + f64::from(u8::from(i == j));
    let degree: Vec<f64> = (0..NODES)
        .map(|i| (0..NODES).map(|j| s(i, j)).sum())
        .collect();
    let times = |matrix: &dyn Fn(usize, usize) -> f64, x: &Tensor| {
        let mut product = vec![0.0; NODES * WIDTH];
        for (i, j) in all() {
            for h in 0..WIDTH {
                product[i * WIDTH + h] += matrix(i, j) * x.at(&[j, h]);
            }
        }
        Tensor::from_fn(&[NODES, WIDTH], |at| product[at])
    };
    let laplacian = |i: usize, j: usize| s(i, j) / (degree[i] * degree[j]).sqrt();
    let most = |i: usize| (0..NODES).map(|j| a[i][j] + b[i][j]).fold(0.0, f64::max);
    for sites in ["1", "2", "3", "4", "5"] {
        let mut command = einc_command(&["run", "p.ein", "--formats", "list", "--sites", sites]);
        for name in ["X", "Y", "Z", "most", "gX"] {
            command.args(["--save", &format!("{name}={name}.npy")]);
        }
        run(command.current_dir(&folder)).success();
        let read = |name: &str| Tensor::read(&at(&format!("{name}.npy")));
        let x = read("X");
        let y = times(&laplacian, &x);
        read("Y").assert_close(&y, 1e-12, sites);
        read("Z").assert_close(&times(&|i, j| a[i][j] - 2.0 * b[j][i], &x), 1e-12, sites);
        read("most").assert_close(&Tensor::from_fn(&[NODES], most), 1e-12, sites);
        let gradient = times(&|i, j| 2.0 * laplacian(j, i), &y);
        read("gX").assert_close(&gradient, 1e-12, sites);
        let plan = run(
            einc_command(&["plan", "p.ein", "--formats", "list", "--sites", sites])
                .current_dir(&folder),
        );
        let plan = plan.success().stdout;
        assert!(!plan.contains("151, 151]"), "{plan}");
    }
}
