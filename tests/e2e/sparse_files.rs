//! Files of sparse matrices as a user meets them: read on any number of sites, by a built program too, and written.

use einc_tests::everywhere::{everywhere, printed};
use einc_tests::{Tensor, einc_command, root, run};
use std::fmt::Write;

const PROGRAM: &str = r#"
dim N
dim D
input A: f32[N, D] = load("a.mtx")
input X: f32[N, D] = load("a.svm", "x")
input y: i64[N] = load("a.svm", "y")
input w: f32[D] = iota
z[n] = A[n,d] * w[d]
same = sum[n, d] abs(A[n,d] - X[n,d])
ones = sum[n] y[n]
output z -> "z.npy"
output same
output ones
output A -> "again.csr.npz"
"#;

#[test]
fn sparse_files_on_any_number_of_sites() {
    let (rows, columns) = (17usize, 11usize);
    let listed =
        |n: usize| (0..3).map(move |k| ((n * 5 + k * 4) % columns, n as f64 / 4.0 - k as f64));
    let mut matrix = format!(
        "%%MatrixMarket matrix coordinate real general\n{rows} {columns} {}\n",
        rows * 3
    );
    let (mut features, mut wanted) = (String::new(), vec![0.0; rows]);
    for (n, sum) in wanted.iter_mut().enumerate() {
        write!(features, "1").unwrap();
        for (d, value) in listed(n) {
            writeln!(matrix, "{} {} {value}", n + 1, d + 1).unwrap();
            write!(features, " {}:{value}", d + 1).unwrap();
            *sum += value * d as f64;
        }
        writeln!(features).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("p.ein"), PROGRAM).unwrap();
    std::fs::write(at("a.mtx"), matrix).unwrap();
    std::fs::write(at("a.svm"), features).unwrap();
    run(einc_command(&["build", "p.ein", "-o", "p"]).current_dir(&folder)).success();
    let mut archives = vec![];
    for sites in ["1", "2", "3", "4", "5"] {
        for built in [false, true] {
            let mut command = match built {
                true => std::process::Command::new(at("p")),
                false => einc_command(&["run", "p.ein"]),
            };
            let said = run(command
                .args(["--formats", "list", "--sites", sites])
                .current_dir(&folder))
            .success();
            let z = Tensor::read(&at("z.npy"));
            assert_eq!(z.data, wanted, "{sites} sites");
            assert!(said.stdout.contains("same = 0.0\n"), "{said}");
            assert!(said.stdout.contains("ones = 17\n"), "{said}");
            archives.push(std::fs::read(at("again.csr.npz")).unwrap());
        }
    }
    assert!(archives.windows(2).all(|pair| pair[0] == pair[1]));
    // A line that is wrong is told with its file and number, and no output is replaced.
    std::fs::write(at("a.svm"), "1 1:2\n1 1:two\n").unwrap();
    let said = run(einc_command(&["run", "p.ein"]).current_dir(&folder)).fails_with(1);
    assert!(said.stderr.contains("a.svm"), "{said}");
    assert!(
        said.stderr
            .contains("line 2: `two` is not a number, so no f32"),
        "{said}"
    );
    assert_eq!(Tensor::read(&at("z.npy")).data, wanted);
}

const SUMS: &str = r#"
dim N
dim D
input A: f32[N, D]
input X: f32[D, 3] = iota
input u: f32[N] = iota
C[i,j] = A[i,k] * X[k,j]
T[k] = A[i,k] * u[i]
s = sum[i, k] A[i,k] * u[i] * X[k,1]
repeat t < 3 {
  state v[k<D] = f32(k % 2)
  y[i] = A[i,k] * v[k]
  next v[k] = 0.5 * A[i,k] * y[i]
}
output C
output T
output s
output v
"#;

/// A Matrix Market file with `count` elements.
pub(super) fn few(rows: usize, columns: usize, count: usize) -> String {
    let mut text =
        format!("%%MatrixMarket matrix coordinate integer general\n{rows} {columns} {count}\n");
    for n in 0..count {
        let at = n * rows * columns / count + n % 3;
        writeln!(
            text,
            "{} {} {}",
            at / columns + 1,
            at % columns + 1,
            n % 5 + 1
        )
        .unwrap();
    }
    text
}

#[test]
fn sums_over_lists_are_those_of_dense_inputs() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("p.ein"), SUMS).unwrap();
    std::fs::write(at("a.mtx"), few(41, 53, 37)).unwrap();
    std::fs::write(at("b.mtx"), few(43, 50, 60)).unwrap();
    let given = |file: &str| ["--input".to_owned(), format!("A={file}")];
    run(einc_command(&["build", "p.ein", "-o", "p"])
        .args(given("a.mtx"))
        .current_dir(&folder))
    .success();
    for file in ["a.mtx", "b.mtx"] {
        let einc = |arguments: &[&str]| {
            let mut command = einc_command(&["run", "p.ein"]);
            run(command
                .args(given(file))
                .args(arguments)
                .current_dir(&folder))
            .success()
            .stdout
        };
        let dense = einc(&["--formats", "dense"]);
        for sites in ["1", "2", "3", "4", "5"] {
            assert_eq!(
                einc(&["--formats", "list", "--sites", sites]),
                dense,
                "{file} on {sites} sites"
            );
            // A program that was built for a list of another length plans again.
            let mut command = std::process::Command::new(at("p"));
            command
                .args(given(file))
                .args(["--formats", "list", "--sites", sites])
                .current_dir(&folder);
            assert_eq!(
                run(&mut command).success().stdout,
                dense,
                "{file}, built, on {sites} sites"
            );
        }
    }
    let plan = |arguments: &[&str]| {
        let mut command = einc_command(&["plan", "p.ein"]);
        run(command
            .args(given("a.mtx"))
            .args(arguments)
            .current_dir(&folder))
        .success()
        .stdout
    };
    assert!(plan(&["--formats", "list"]).contains("A.values"));
    assert!(!plan(&["--formats", "dense"]).contains("A.values"));
}

/// The number of pages, and the links of the example: from, to.
pub(super) fn links() -> (usize, Vec<(usize, usize)>) {
    let text = std::fs::read_to_string(root().join("examples/data/links.mtx")).unwrap();
    let numbers =
        |line: &str| -> Vec<usize> { line.split(' ').map(|word| word.parse().unwrap()).collect() };
    let mut lines = text
        .lines()
        .filter(|line| !line.starts_with('%'))
        .map(numbers);
    let pages = lines.next().unwrap()[0];
    let links = lines.map(|pair| (pair[0] - 1, pair[1] - 1)).collect();
    (pages, links)
}

const BATCHES: &str = r#"
use std.nn
dim N
dim D
input X: f32[N, D] = load("x.svm", "x")
input y: i64[N] = load("x.svm", "y")
param W: f32[D, 5] = normal(0, 0.1)
param V: f32[5, 2] = normal(0, 0.5)
m[n] = mean[d] X[n,d]
top[n] = max[d] (X[n,d] - m[n])
none[n] = count[d] (X[n,d] == 0)
size[n] = top[n] + m[n] + sqrt(sum[d] (X[n,d] - m[n])^2) + f32(none[n]) / 700
h[n,k] = tanh((X[n,d] * W[d,k]) / size[n])
z[n,c] = h[n,k] * V[k,c]
loss = mean[n] nn.cross_entropy(z, y)[n]
right = mean[n] f32((argmax[c] z[n,c]) == y[n])
train { loss: loss; data: (X, y) over N by 12 shuffle; accumulate: 2; epochs: 4; optimizer: adam(lr: 0.02); validate: right }
output loss
output right
output W
"#;

/// Rows of features, some of which list many more than others.
fn features(rows: usize, count: usize) -> String {
    let mut text = String::new();
    for n in 0..rows {
        write!(text, "{}", n % 2).unwrap();
        let many = if n % 10 == 3 { 3 * count } else { count };
        for k in 0..many {
            write!(
                text,
                " {}:{}",
                n % 7 + k * 40 + 1,
                1.0 + (n % 2 + k % 3) as f64 / 4.0
            )
            .unwrap();
        }
        writeln!(text).unwrap();
    }
    text
}

/// Batches of a sparse file are lists of rows, and give what dense batches give; so do data with other rows in a built program.
#[test]
fn batches_of_sparse_rows_train_as_dense_ones_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("p.ein"), BATCHES).unwrap();
    std::fs::write(at("x.svm"), features(43, 4)).unwrap();
    let given = ["--dim", "D=700"];
    run(einc_command(&["build", "p.ein", "-o", "p"])
        .args(given)
        .current_dir(&folder))
    .success();
    let trained = |command: &mut std::process::Command| {
        let said = run(command
            .args(given)
            .args(["--save", "W=w.npy"])
            .current_dir(&folder))
        .success();
        (said.stdout, Tensor::read(&at("w.npy")))
    };
    for count in [4, 5] {
        std::fs::write(at("x.svm"), features(43, count)).unwrap();
        let (_, dense) = trained(&mut einc_command(&["run", "p.ein", "--formats", "dense"]));
        for sites in ["1", "2", "3", "4", "5"] {
            let (said, lists) = trained(&mut einc_command(&[
                "run",
                "p.ein",
                "--formats",
                "list",
                "--sites",
                sites,
            ]));
            lists.assert_close(&dense, 1e-4, &format!("{count} on {sites} sites: {said}"));
            let (said, lists) = trained(std::process::Command::new(at("p")).args([
                "--formats",
                "list",
                "--sites",
                sites,
            ]));
            lists.assert_close(
                &dense,
                1e-4,
                &format!("{count}, built, on {sites} sites: {said}"),
            );
        }
    }
    let plan = run(einc_command(&["plan", "p.ein", "--formats", "list"])
        .args(given)
        .current_dir(&folder))
    .success();
    assert!(
        plan.stdout.contains("X.values") && !plan.stdout.contains("700] @"),
        "{plan}"
    );
}

/// The ranks after 50 rounds, by a walk over the lines of the file.
fn ranks() -> Vec<f64> {
    let (pages, links) = links();
    let mut degree = vec![0.0; pages];
    links.iter().for_each(|(from, _)| degree[*from] += 1.0);
    let mut rank = vec![1.0 / pages as f64; pages];
    for _ in 0..50 {
        let lost: f64 = (0..pages)
            .filter(|page| degree[*page] == 0.0)
            .map(|page| rank[page])
            .sum();
        let mut next = vec![0.15 / pages as f64 + 0.85 * lost / pages as f64; pages];
        for (from, to) in &links {
            next[*to] += 0.85 * rank[*from] / degree[*from];
        }
        rank = next;
    }
    rank
}

/// How many links lead from the page 299 to each, by a search in breadth.
fn hops() -> Vec<f64> {
    let (pages, links) = links();
    let mut hops = vec![f64::INFINITY; pages];
    let mut open = std::collections::VecDeque::from([299]);
    hops[299] = 0.0;
    while let Some(page) = open.pop_front() {
        for (_, to) in links.iter().filter(|(from, _)| *from == page) {
            if hops[*to].is_infinite() {
                hops[*to] = hops[page] + 1.0;
                open.push_back(*to);
            }
        }
    }
    hops
}

#[test]
fn shortest_paths_along_a_file_of_links() {
    let expected = hops();
    assert!(expected.iter().filter(|hops| hops.is_finite()).count() > 5);
    everywhere("hops.ein", &[], &["hops"], |output, how| {
        assert_eq!(output("hops").data, expected, "{how}");
    });
}

const ATTENTION: &str = r#"
dim N
input A: f32[N, N]
param X: f32[N, 4] = normal(0, 1)
param a: f32[4, 2] = normal(0, 1)
s[i,m] = X[i,h] * a[h,m]
score[i,j,m] = where(A[i,j] != 0, s[i,m] + tanh(s[j,m]) * A[i,j], -inf)
top[i,m] = max[j] score[i,j,m]
ez[i,j,m] = exp(score[i,j,m] - top[i,m])
z[i,m] = sum[j] ez[i,j,m]
w[i,j,m] = ez[i,j,m] / z[i,m]
y[i,m,h] = w[i,j,m] * X[j,h]
loss = sum[i,m,h] where(i % 3 == 0, y[i,m,h]^2, 0)
S[i,j] = A[i,j] * X[i,h] * X[j,h]
near = max[i,j] S[i,j]
stored = count[i,j] (A[i,j] != 0)
gX = grad(loss, X)
ga = grad(loss, a)
gn = grad(sum[i,j] S[i,j]^2, X)
output loss
output near
output stored
output gX
output ga
output gn
"#;

/// A graph with a link from every page to the next one and some more, as a Matrix Market file.
fn graph(pages: usize) -> String {
    let mut text = format!(
        "%%MatrixMarket matrix coordinate real general\n{pages} {pages} {}\n",
        2 * pages
    );
    for page in 0..pages {
        let (next, far) = ((page + 1) % pages, (page * page + 7) % pages);
        let far = if far == next { (far + 1) % pages } else { far };
        writeln!(
            text,
            "{} {} 0.5\n{} {} -{}.25",
            page + 1,
            next + 1,
            page + 1,
            far + 1,
            page % 4
        )
        .unwrap();
    }
    text
}

/// Attention over the edges of a graph with its gradients, products at listed places, and counts, are those of dense inputs.
#[test]
fn attention_over_a_graph_is_that_of_a_dense_input() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("p.ein"), ATTENTION).unwrap();
    std::fs::write(at("a.mtx"), graph(67)).unwrap();
    let names = ["loss", "near", "stored", "gX", "ga", "gn"];
    let given = |arguments: &[&str]| {
        let mut command = einc_command(&["run", "p.ein", "--input", "A=a.mtx"]);
        for name in names {
            command.arg("--save").arg(format!("{name}={name}.npy"));
        }
        run(command.args(arguments).current_dir(&folder)).success();
        names.map(|name| Tensor::read(&at(&format!("{name}.npy"))))
    };
    let dense = given(&["--formats", "dense"]);
    for sites in ["1", "2", "3", "4", "5"] {
        for (of_list, (dense, name)) in given(&["--formats", "list", "--sites", sites])
            .iter()
            .zip(dense.iter().zip(names))
        {
            of_list.assert_close(dense, 1e-4, &format!("{name} on {sites} sites"));
        }
    }
    let plan = einc_command(&["plan", "p.ein", "--input", "A=a.mtx"])
        .current_dir(&folder)
        .output()
        .unwrap();
    let plan = String::from_utf8(plan.stdout).unwrap();
    assert!(!plan.contains("f32[67, 67"), "{plan}");
}

/// Matrices that no machine holds dense: a factorisation of ratings, trained on all of them at once.
#[test]
fn ratings_are_factored_without_the_dense_matrix() {
    let (people, items) = (300_000usize, 200_000usize);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut text =
        format!("%%MatrixMarket matrix coordinate real general\n{people} {items} 4000\n");
    for n in 0..4000usize {
        let (person, item) = (n * 7919 % 1000, n * 104_729 % 997);
        writeln!(
            text,
            "{} {} {}",
            person * 300 + 1,
            item * 200 + 1,
            1 + (person + item) % 2
        )
        .unwrap();
    }
    std::fs::write(at("a.mtx"), text).unwrap();
    let program = "dim P; dim I
        input A: f32[P, I] = load(\"a.mtx\")
        param U: f32[P, 2] = normal(1, 0.1)
        param V: f32[I, 2] = normal(1, 0.1)
        p[i,j] = U[i,k] * V[j,k]
        n = count[i,j] (A[i,j] > 0)
        loss = (sum[i,j] where(A[i,j] > 0, (A[i,j] - p[i,j])^2, 0)) / f32(n)
        train { loss: loss; steps: 30; optimizer: adam(lr: 0.05) }
        output loss; output n";
    std::fs::write(at("p.ein"), program).unwrap();
    run(einc_command(&["build", "p.ein", "-o", "p"]).current_dir(&folder)).success();
    let mut told = vec![];
    for sites in ["1", "2", "3"] {
        let mut command = std::process::Command::new(at("p"));
        let said = run(command
            .args(["--formats", "list", "--sites", sites])
            .current_dir(&folder))
        .success();
        assert!(said.stdout.contains("n = 4000\n"), "{said}");
        let loss = said
            .stdout
            .lines()
            .find_map(|line| line.strip_prefix("loss = "))
            .unwrap();
        told.push(loss.parse::<f64>().unwrap());
    }
    assert!(told[0] < 0.2, "{told:?}");
    assert!(
        told.iter().all(|loss| (loss - told[0]).abs() < 1e-4),
        "{told:?}"
    );
}

#[test]
fn page_rank_of_a_file_of_links() {
    let expected = Tensor::from_fn(&[300], {
        let ranks = ranks();
        move |at| ranks[at]
    });
    everywhere("page_rank.ein", &[], &["rank"], |output, how| {
        output("rank").assert_close(&expected, 1e-5, how);
    });
}

/// A file of features may be a part of the rows, in which the last features do not occur: the dimension is what is stated, or that of the
/// file with the most.
#[test]
fn features_that_a_file_does_not_name_are_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let text = "dim N; dim M; dim D
        input X: f32[N, D] = load(\"train.svm\", \"x\")
        input V: f32[M, D] = load(\"valid.svm\", \"x\")
        w[d < D] = f32(d + 1); y[n] = X[n,d] * w[d]; z[m] = V[m,d] * w[d]
        e[n,d] = 2 * X[n,d]
        output y; output z; output e";
    std::fs::write(at("p.ein"), text).unwrap();
    std::fs::write(at("train.svm"), "1 1:2 2:3\n0 2:1\n1 1:4\n").unwrap();
    std::fs::write(at("valid.svm"), "1 4:1\n0 1:1 3:2\n").unwrap();
    let sums = "y = [8. 2. 4.]\nz = [4. 7.]\n";
    let told = |more: &str| {
        format!("{sums}e = [[4. 6. {more}]\n     [0. 2. {more}]\n     [8. 0. {more}]]\n")
    };
    let start = |more: &[&str]| {
        run(einc_command(&["run", "p.ein"])
            .args(more)
            .current_dir(&folder))
    };
    for sites in ["1", "2", "3", "4", "5"] {
        for formats in ["auto", "list", "dense"] {
            let base = ["--sites", sites, "--formats", formats];
            assert_eq!(start(&base).success().stdout, told("0. 0."));
            let wide = start(&[&base[..], &["--dim", "D=6"]].concat()).success();
            assert_eq!(wide.stdout, told("0. 0. 0. 0."));
        }
    }
    start(&["--dim", "D=3"])
        .fails_with(1)
        .says(&["E0713", "`D` is 3, but the data of `V` has 4 there"]);
}

/// A bound that data say is looked at for the elements of the list that are in range, and for no others.
#[test]
fn bounds_by_data_are_read_in_range() {
    let matrix = "%%MatrixMarket matrix coordinate real general\n40 12 7\n1 1 2\n3 4 1.5\n4 11 5\n5 6 -1\n5 9 3\n11 3 4\n40 12 1\n";
    let text = r#"
input S: f64[40, 12] = load("s.mtx")
input x: f64[12] = iota
input n: i64[5] = [1, 1, 4, 2, 9]
y[i < 5] = sum[j < n[i]] S[i,j] * x[j]
z[i < 5] = sum[j < 9] where(n[i] > 3, S[i,j] * x[j], 0)
output y
output z
"#;
    let expected = "y = [ 0.   0.   4.5  0.  19. ]\nz = [ 0.   0.   4.5  0.  19. ]\n";
    assert_eq!(printed(&[("p.ein", text), ("s.mtx", matrix)]), expected);
}
