//! Sparse files that are read at moved places, at rows and elements that data name, and in sums of which they make up a part.

use crate::sparse_files::few;
use crate::sparse_products::{lists_give_what_dense_inputs_give, lists_of_so_many};
use einc_tests::{Tensor, einc_command, run};

const VIEWS: &str = r#"
dim N
dim K = 7
input A: f64[N, N] = load("a.mtx")
input B: f64[N, N] = load("b.mtx")
param d: f64[N] = normal(0, 1)
param U: f64[N, 3] = normal(0, 1)
p[k<K] = (k * 8 + 5) % 61
q[k<K] = (k * k * 3) % 61
below[i<N-1] = A[i+1,j] * d[j]
around[j] = sum[i<N] ((A[i-1,j] else 0) - (B[i+2,j] else 0)) * d[i]
mirrored[i] = max[j] A[N-1-i,j]
every[j<N] = sum[i<20] A[3*i+1,N-1-j] * d[i]
row[j] = A[12,j] - B[3,j]
trace = sum[i] (A[i,i] * d[i] + B[i,i])
rows[k,h] = A[p[k],j] * U[j,h]
columns[k] = max[i] A[i,q[k]] * d[i]
elements[k] = A[p[k],q[k]] + B[q[k],p[k]]
one = A[12,7] + B[0,0]
gd = grad(sum[k,h] (rows[k,h] * rows[k,h]) + trace * trace + sum[i<N-1] below[i], U)
gb = grad(trace * trace + sum[i<N-1] below[i] * d[i], d)
output below
output around
output mirrored
output every
output row
output trace
output rows
output columns
output elements
output one
output gd
output gb
"#;

#[test]
fn moved_and_named_places_are_those_of_dense_inputs() {
    let names = [
        "below", "around", "mirrored", "every", "row", "trace", "rows", "columns", "elements",
        "one", "gd", "gb",
    ];
    let dense = lists_give_what_dense_inputs_give(VIEWS, &names);
    for (name, values) in names.iter().zip(&dense) {
        let counts = !matches!(*name, "elements" | "one");
        assert!(!counts || values.iter().any(|x| x.abs() > 0.01), "{name}");
    }
}

const TERMS: &str = r#"
dim N
input A: f64[N, N] = load("a.mtx")
input B: f64[N, N] = load("b.mtx")
param d: f64[N] = normal(0, 1)
param U: f64[N, 3] = normal(0, 1)
m[j] = mean[i] A[i,j]
centred[i] = sum[j] (A[i,j] - m[j]) * d[j]
apart[i,h] = sum[j] (A[i,j] - A[j,i] * 2) * U[j,h]
activated[i] = sum[j] exp(A[i,j]) * d[j]
distance[i] = sum[j] abs(A[i,j] - d[j])
mixed = mean[i,j] (cos(B[i,j]) * d[i] - A[i,j] / (abs(d[j]) + 1))
soft[i] = logsumexp[j] A[i,j] * d[j]
laplace[i,h] = sum[j] (where(i == j, 3.0, 0.0) - A[i,j]) * U[j,h]
gd = grad(sum[i] (centred[i] * centred[i] + activated[i] + soft[i]) + mixed, d)
output centred
output apart
output activated
output distance
output mixed
output soft
output laplace
output gd
"#;

#[test]
fn sums_in_part_over_lists_are_those_of_dense_inputs() {
    let names = [
        "centred",
        "apart",
        "activated",
        "distance",
        "mixed",
        "soft",
        "laplace",
        "gd",
    ];
    let dense = lists_give_what_dense_inputs_give(TERMS, &names);
    for (name, values) in names.iter().zip(&dense) {
        assert!(values.iter().any(|x| x.abs() > 0.01), "{name}");
    }
}

const CONDITIONS: &str = r#"
dim N
input A: f64[N, N] = load("a.mtx")
input B: f64[N, N] = load("b.mtx")
param d: f64[N] = normal(0, 1)
least[j] = min[i] where(A[i,j] != 0 or A[j,i] != 0, d[i], 7.5)
most[j] = max[i] where(A[i,j] != 0 and B[i,j] == 0, d[i], -0.5)
either[i] = any[j] (A[i,j] > 0 or B[j,i] > 0)
degree[i] = sum[j] f64(A[i,j] != 0 or A[j,i] != 0) * d[j]
common[i,j] = sum[k] where(A[i,k] != 0 and B[j,k] != 0, f64(1), f64(0))
shared = sum[i,j] where(B[i,j] != 0, common[i,j], 0)
pairs[i,j] = count[k] (A[k,i] > 0 and B[k,j] > 0)
joined[i,j] = any[k] (A[i,k] != 0 and A[k,j] != 0)
either_one[i] = f64(either[i])
pairs_one[i,j] = f64(pairs[i,j])
joined_one[i,j] = f64(joined[i,j])
output least
output most
output either_one
output degree
output common
output shared
output pairs_one
output joined_one
"#;

#[test]
fn conditions_of_several_lists_are_those_of_dense_inputs() {
    let names = [
        "least",
        "most",
        "either_one",
        "degree",
        "common",
        "shared",
        "pairs_one",
        "joined_one",
    ];
    let dense = lists_of_so_many([40, 45], CONDITIONS, &names);
    for (name, values) in names.iter().zip(&dense) {
        let changes = values.iter().any(|x| *x != values[0]);
        assert!(changes || *name == "shared" && values[0] > 0.0, "{name}");
    }
}

/// A position that data give is looked at, also where a list stands in the place of the tensor.
#[test]
fn named_places_outside_stop_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("a.mtx"), few(61, 61, 90)).unwrap();
    for (statement, place) in [
        (
            "y[k] = A[p[k],j] * d[j]",
            "outside `A.rows`, whose dimension 1",
        ),
        ("y[k] = A[p[k],p[k] - 1]", "position -1 is outside"),
    ] {
        let program = format!(
            "dim N\ninput A: f64[N, N] = load(\"a.mtx\")\nd[j<N] = f64(1)\np[k<4] = k * 30\n{statement}\noutput y\n"
        );
        std::fs::write(at("p.ein"), program).unwrap();
        for sites in ["1", "3"] {
            let arguments = ["run", "p.ein", "--formats", "list", "--sites", sites];
            let stopped = run(einc_command(&arguments).current_dir(&folder));
            stopped
                .fails_with(1)
                .says(&["error[E0720]", place, "p.ein:5"]);
        }
    }
}

/// Lists of views and of products have places that stand for nothing. What other tensors hold there, an infinity here, counts for nothing, too.
#[test]
fn places_that_stand_for_nothing_are_left_out() {
    const N: usize = 80;
    const PROGRAM: &str = r#"
dim N
input A: f64[N, N] = load("a.mtx")
first[j<N] = log(f64(j))
last[j<N] = log(f64(N - 1 - j))
y[i<N-1] = A[i+1,j] * first[j]
S[i<N-1,j] = A[i+1,j] * first[j]
z[i<N-1] = sum[j] tanh(S[i,j])
C[i,j] = A[i,k] * A[k,j]
w[i] = sum[j] tanh(C[i,j]) * last[j]
output y -> "y.npy"
output z -> "z.npy"
output w -> "w.npy"
"#;
    let column = |row: usize| (row * 7) % (N - 2) + 1;
    let value = |row: usize| (1 + row % 3) as f64;
    let head = "%%MatrixMarket matrix coordinate real general";
    let entries: String = (0..N)
        .map(|row| format!("{} {} {}\n", row + 1, column(row) + 1, value(row)))
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("a.mtx"), format!("{head}\n{N} {N} {N}\n{entries}")).unwrap();
    std::fs::write(at("p.ein"), PROGRAM).unwrap();
    for sites in ["1", "3"] {
        let arguments = ["run", "p.ein", "--formats", "list", "--sites", sites];
        run(einc_command(&arguments).current_dir(&folder)).success();
        let read = |name: &str| Tensor::read(&at(name)).data;
        let (y, z, w) = (read("y.npy"), read("z.npy"), read("w.npy"));
        for row in 0..N {
            let (near, through) = (|a: f64, b: f64| (a - b).abs() < 1e-12, column(row));
            let product = (value(row) * value(through)).tanh();
            let expected = product * ((N - 1 - column(through)) as f64).ln();
            assert!(near(w[row], expected), "{row}: {}", w[row]);
            if row + 1 < N {
                let expected = value(row + 1) * (column(row + 1) as f64).ln();
                assert!(near(y[row], expected), "{row}: {}", y[row]);
                assert!(near(z[row], expected.tanh()), "{row}: {}", z[row]);
            }
        }
    }
}

/// A sum whose bound depends on the place alone leaves a condition, and nothing to sum, where it goes over a list.
#[test]
fn a_bound_of_a_place_is_a_condition() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = "input A: f64[2, 3] = load(\"a.mtx\")
y[i < 3, j < 1] = sum[k < 3 - i] (A[1 - 2*k, j + i - 1] else 0) / (1 + sin((A[i, 2 - k] else 0))^2)
l = sum[i,j] tanh(y[i,j])
g = grad(l, A)
output g
";
    std::fs::write(at("p.ein"), text).unwrap();
    let file = "%%MatrixMarket matrix coordinate real general\n2 3 2\n2 1 0.5\n2 2 -1.5\n";
    std::fs::write(at("a.mtx"), file).unwrap();
    for (format, sites) in [("dense", "1"), ("list", "1"), ("list", "2"), ("list", "3")] {
        let mut command = einc_command(&["run", "p.ein", "--formats", format, "--sites", sites]);
        let said = run(command.current_dir(&folder)).success();
        let expected =
            "g = [[0.         0.         0.        ]\n     [0.78644773 0.18070664 0.        ]]\n";
        assert_eq!(said.stdout, expected, "{format} on {sites} sites");
    }
}

/// Of a term that lists leave, the gradient by a column is at that column alone, with nothing to sum.
#[test]
fn gradients_by_a_column_beside_a_list() {
    let program = r#"
dim N
input A: f64[N, N] = load("a.mtx")
param U: f64[N, 3] = normal(0, 1)
l = sum[i,j] abs(A[j,i] - U[j,1]) + sum[i,j] max(A[j,i], U[i,2])
g = grad(l, U)
output g
"#;
    let values = lists_give_what_dense_inputs_give(program, &["g"]);
    assert!(values[0].iter().any(|x| *x > 1.0));
}
