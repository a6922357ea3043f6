//! Products of two sparse files, and elements of one at the places of another, on any number of sites.

use crate::sparse_files::{few, links};
use einc_tests::everywhere::everywhere;
use einc_tests::{Tensor, einc_command, run};
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn triangles_of_a_file_of_links() {
    let (_, links) = links();
    let links: BTreeSet<(usize, usize)> = links.into_iter().filter(|(i, j)| i != j).collect();
    let ways = |i: usize, j: usize| {
        let through = links.iter().filter(|(from, _)| *from == i);
        through
            .filter(|(_, page)| links.contains(&(*page, j)))
            .count() as f64
    };
    let shortcuts: Vec<f64> = links.iter().map(|(i, j)| ways(*i, *j)).collect();
    let pairs: usize = (links.iter())
        .map(|(_, j)| links.iter().filter(|(from, _)| from == j).count())
        .sum();
    let back = links.iter().filter(|(i, j)| links.contains(&(*j, *i)));
    let pairs = pairs - back.count();
    let sum: f64 = shortcuts.iter().sum();
    let most = shortcuts.iter().copied().fold(0.0, f64::max);
    assert!(sum > 100.0 && most > 1.0);
    let names = ["shortcuts", "most", "closed"];
    everywhere("triangles.ein", &[], &names, |output, how| {
        assert_eq!(output("shortcuts").data, [sum], "{how}");
        assert_eq!(output("most").data, [most], "{how}");
        let error = output("closed").data[0] - sum / pairs as f64;
        assert!(error.abs() < 1e-6, "{how}");
    });
}

const PRODUCTS: &str = r#"
dim N
input A: f64[N, N] = load("a.mtx")
input B: f64[N, N] = load("b.mtx")
param d: f64[N] = normal(0, 1)
t = sum[i,j,k] A[i,j] * d[j] * B[j,k] * A[i,k]
C[i,j] = A[i,k] * B[j,k]
y[i] = sum[j] where(B[j,i] != 0, B[j,i] * C[i,j], 0)
s = sum[i,j] A[i,j] * B[j,i] * d[i]
w[i<N,j<N,h<2] = where(B[i,j] != 0, B[i,j] * d[j] - h, -inf)
near[i,h] = max[j] where(A[i,j] != 0, w[i,j,h], -inf)
up = sum[i,j,k] where(i < j and j < k, A[i,j] * B[j,k] * A[i,k], 0)
gt = grad(t * t + s, d)
output t
output y
output s
output near
output up
output gt
"#;

/// Values and gradients are those of dense inputs, and no plan has a dense input.
#[test]
fn products_of_two_files_are_those_of_dense_inputs() {
    let dense = lists_give_what_dense_inputs_give(PRODUCTS, &["t", "y", "s", "near", "up", "gt"]);
    assert!(dense[0][0].abs() > 0.01 && dense[2][0].abs() > 0.01);
}

/// Runs a program over `a.mtx` and `b.mtx`, 61 by 61, dense and over lists on any number of sites: the values are the same, and no plan has `A` or
/// `B`. Returns the values.
pub fn lists_give_what_dense_inputs_give(program: &str, names: &[&str]) -> Vec<Vec<f64>> {
    lists_of_so_many([90, 110], program, names)
}

/// Does this with so many elements in each of the files, see [`lists_give_what_dense_inputs_give`].
pub fn lists_of_so_many(counts: [usize; 2], program: &str, names: &[&str]) -> Vec<Vec<f64>> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("p.ein"), program).unwrap();
    std::fs::write(at("a.mtx"), few(61, 61, counts[0])).unwrap();
    std::fs::write(at("b.mtx"), few(61, 61, counts[1])).unwrap();
    let values = |arguments: &[&str]| -> Vec<Vec<f64>> {
        let mut command = einc_command(&["run", "p.ein", "--seed", "3"]);
        for name in names {
            command.args(["--save", &format!("{name}={name}.npy")]);
        }
        run(command.args(arguments).current_dir(&folder)).success();
        let read = |name: &&str| Tensor::read(&at(&format!("{name}.npy"))).data;
        names.iter().map(read).collect()
    };
    let dense = values(&["--formats", "dense"]);
    for sites in ["1", "2", "3", "4", "5"] {
        let lists = values(&["--formats", "list", "--sites", sites]);
        for (name, (list, dense)) in names.iter().zip(lists.iter().zip(&dense)) {
            for (x, y) in list.iter().zip(dense) {
                let near = x == y || (x - y).abs() <= 1e-10 * (1.0 + y.abs());
                assert!(near, "{name} on {sites} sites: {x}, not {y}");
            }
        }
        let plan = run(
            einc_command(&["plan", "p.ein", "--formats", "list", "--sites", sites])
                .current_dir(&folder),
        );
        let plan = plan.success().stdout;
        let mut relations = plan
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1));
        assert!(!relations.any(|name| name == "A" || name == "B"), "{plan}");
    }
    dense
}

/// Elements of any type meet: narrow ones are computed in a wider type.
#[test]
fn products_of_elements_of_any_type() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("a.mtx"), few(47, 47, 60)).unwrap();
    let mut sums = vec![];
    for dtype in [
        "f16", "bf16", "f32", "f64", "u32", "u64", "i64", "u8", "i32",
    ] {
        let program = format!(
            "dim N\ninput A: {dtype}[N, N] = load(\"a.mtx\")\n\
             t = sum[i,j,k] A[i,j] * A[j,k] * A[i,k]\ns = sum[i,j] A[i,j] * A[j,i]\n\
             both[m<2] = where(m == 0, f64(t), f64(s))\noutput both -> \"both.npy\"\n"
        );
        std::fs::write(at("p.ein"), program).unwrap();
        for sites in ["1", "3"] {
            run(
                einc_command(&["run", "p.ein", "--formats", "list", "--sites", sites])
                    .current_dir(&folder),
            )
            .success();
            sums.push((dtype, Tensor::read(&at("both.npy")).data));
        }
    }
    assert!(sums[0].1[0] > 0.0 && sums[0].1[1] > 0.0, "{sums:?}");
    assert!(sums.iter().all(|(_, both)| *both == sums[0].1), "{sums:?}");
}

/// A product of which few elements are not 0 has a list: of three elements a row, powers of a graph are never dense.
#[test]
fn products_of_lists_have_lists() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    const PAGES: usize = 5000;
    let entries: Vec<(usize, usize)> = (0..3 * PAGES)
        .map(|n| (n / 3, (n * 7919 + n * n % 911) % PAGES))
        .collect();
    let ways = |row: usize| -> BTreeMap<usize, f64> {
        let mut found = BTreeMap::new();
        for (_, middle) in entries.iter().filter(|(from, _)| *from == row) {
            for (_, to) in &entries[3 * middle..3 * middle + 3] {
                *found.entry(*to).or_insert(0.0) += 1.0;
            }
        }
        found
    };
    for dtype in ["f64", "f32", "i64", "i32", "u8"] {
        let text: String = entries
            .iter()
            .map(|(i, j)| format!("{} {} 1\n", i + 1, j + 1))
            .collect();
        let head = "%%MatrixMarket matrix coordinate integer general";
        let size = format!("{PAGES} {PAGES} {}", entries.len());
        std::fs::write(at("a.mtx"), format!("{head}\n{size}\n{text}")).unwrap();
        let program = format!(
            "dim N\ninput A: {dtype}[N, N] = load(\"a.mtx\")\nways[i,j] = A[i,k] * A[k,j]\n\
             squares[i] = sum[j] f64(ways[i,j])^2\nmost[i] = max[j] ways[i,j]\nreached[i] = count[j] (ways[i,j] > 0)\n\
             output squares -> \"squares.npy\"\noutput most -> \"most.npy\"\noutput reached -> \"reached.npy\"\n"
        );
        std::fs::write(at("p.ein"), program).unwrap();
        for sites in ["1", "3"] {
            run(einc_command(&["run", "p.ein", "--sites", sites]).current_dir(&folder)).success();
            let read = |name: &str| Tensor::read(&at(name)).data;
            let (squares, most) = (read("squares.npy"), read("most.npy"));
            let reached = read("reached.npy");
            for row in 0..PAGES {
                let ways = ways(row);
                let squared: f64 = ways.values().map(|n| n * n).sum();
                let largest = ways.values().copied().fold(0.0, f64::max);
                assert_eq!(squares[row], squared, "{dtype}, row {row}");
                assert_eq!(most[row], largest, "{dtype}, row {row}");
                assert_eq!(reached[row], ways.len() as f64, "{dtype}, row {row}");
            }
        }
        let plan = run(einc_command(&["plan", "p.ein"]).current_dir(&folder));
        let plan = plan.success().stdout;
        let mut relations = (plan.lines()).filter_map(|line| line.split_whitespace().nth(1));
        assert!(
            !relations.any(|name| name == "A" || name == "ways"),
            "{plan}"
        );
    }
}

/// A product of which many elements are not 0 is computed row by row, from both lists.
#[test]
fn products_of_many_elements_are_computed_by_row() {
    const PROGRAM: &str = r#"
dim N
input A: f64[N, N] = load("a.mtx")
input B: f64[N, N] = load("b.mtx")
param d: f64[N] = normal(0, 1)
C[i,j] = A[k,i] * d[k] * B[j,k]
y[i] = sum[j] A[i,j] * d[j]
D[j,i] = A[i,k] * B[k,j] * d[j]
output C
output y
output D
"#;
    let dense = lists_of_so_many([150, 160], PROGRAM, &["C", "y", "D"]);
    assert!(dense.iter().flatten().any(|x| x.abs() > 0.1));
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("p.ein"), PROGRAM).unwrap();
    std::fs::write(at("a.mtx"), few(61, 61, 150)).unwrap();
    std::fs::write(at("b.mtx"), few(61, 61, 160)).unwrap();
    let plan = run(einc_command(&["plan", "p.ein", "--formats", "list"]).current_dir(&folder));
    let plan = plan.success().stdout;
    assert_eq!(plan.matches("local listed_product").count(), 2, "{plan}");
}

/// Of such a product, few elements are read: rows of both lists meet for each, and the product is not made.
#[test]
fn few_elements_of_a_product_are_computed_alone() {
    const SIDE: usize = 200;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // The first row and the first column: all elements of their product are not 0.
    let entries = (0..SIDE).map(|n| (0, n)).chain((1..SIDE).map(|n| (n, 0)));
    let entries: String = entries
        .map(|(i, j)| format!("{} {} 1\n", i + 1, j + 1))
        .collect();
    let head = "%%MatrixMarket matrix coordinate integer general";
    let text = format!("{head}\n{SIDE} {SIDE} {}\n{entries}", 2 * SIDE - 1);
    std::fs::write(at("a.mtx"), text).unwrap();
    let program = "dim N\ninput A: f64[N, N] = load(\"a.mtx\")\nW[i,j] = A[i,j] * (j + 1)\n\
                   q[i] = sum[j] A[i,j] * (sum[k] W[i,k] * A[k,j])\noutput q -> \"q.npy\"\n";
    std::fs::write(at("p.ein"), program).unwrap();
    let plan = run(einc_command(&["plan", "p.ein"]).current_dir(&folder));
    let plan = plan.success().stdout;
    assert!(
        plan.contains("listed_dot") && !plan.contains("listed_product"),
        "{plan}"
    );
    for sites in ["1", "3"] {
        run(einc_command(&["run", "p.ein", "--sites", sites]).current_dir(&folder)).success();
        let q = Tensor::read(&at("q.npy")).data;
        // Row 0 meets all rows, of which each has a first element, and row 0 all others; other rows meet row 0.
        let whole: usize = (1..=SIDE).sum();
        assert_eq!(q[0], (whole + SIDE - 1) as f64);
        assert!(q[1..].iter().all(|x| *x == 1.0), "{q:?}");
    }
}
