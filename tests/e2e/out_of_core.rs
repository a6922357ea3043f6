//! Steps whose tensors exceed the memory of a site: they are made and read tuple by tuple on disk, and results are those of loops written here.

use einc_tests::{Finished, Tensor, einc_command, launchers, mpirun, run};
use std::fs;
use std::path::Path;

/// What comes behind a text in another, as a number.
fn number(text: &str, before: &str) -> u64 {
    let (_, rest) = text
        .split_once(before)
        .unwrap_or_else(|| panic!("{before} is not in {text}"));
    let digits: String = (rest.trim_start().chars())
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap()
}

fn planned(folder: &Path, arguments: &[String]) -> String {
    let mut command = einc_command(&["plan", "program.ein", "--format", "json"]);
    let finished = run(command.args(arguments).current_dir(folder));
    finished.success().stdout
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_string()).collect()
}

/// Runs a program whose inputs lie in `folder` with so many percent of the memory that it would hold, and checks what it states, what it
/// measures and what it gives.
fn fits_in(folder: &Path, percent: u64, sites: u32, expected: &[(&str, &Tensor)]) -> String {
    let on = texts(&["--sites", &sites.to_string()]);
    let whole = number(&planned(folder, &on), "\"peak_memory_per_site_max\":");
    let limit = whole * percent / 100;
    let limited = [&on[..], &texts(&["--memory", &limit.to_string()])].concat();
    let refused = run(einc_command(&["run", "program.ein"])
        .args(&limited)
        .current_dir(folder));
    refused
        .fails_with(1)
        .says(&["E0996", "`--spill`: it fits, with"]);
    let resting = [&limited[..], &texts(&["--spill=rest"])].concat();
    let stated = planned(folder, &resting);
    let peak = number(&stated, "\"peak_memory_per_site_max\":");
    assert!(peak <= limit, "{percent}%: {peak} of {limit}");
    let finished = given(
        folder,
        &resting,
        expected,
        &format!("{percent}% on {sites}"),
    );
    for line in finished.stderr.lines() {
        if line.contains("stated peak") && line.contains("held") {
            let held = number(line, "bytes, held");
            assert!(held <= peak, "{held} held, {peak} stated: {finished}");
        }
        if line.contains(": moved ") && line.contains("(stated") {
            let (moved, stated) = (number(line, ": moved "), number(line, "(stated"));
            assert_eq!(moved, stated, "{finished}");
        }
    }
    assert!(finished.stderr.contains("times as long as without"));
    if sites == 1 {
        let (wrote, read) = (
            number(&stated, "\"spill_written\":"),
            number(&stated, "\"spill_read\":"),
        );
        assert!(read > 0);
        let said = format!("site 0: wrote {wrote} bytes to disk and read {read} in");
        assert!(finished.stderr.contains(&said), "{said}\n{finished}");
    }
    assert_eq!(fs::read_dir(folder.join("rest")).unwrap().count(), 0);
    stated
}

fn given(
    folder: &Path,
    arguments: &[String],
    expected: &[(&str, &Tensor)],
    what: &str,
) -> Finished {
    let mut command = einc_command(&["run", "program.ein", "--stats"]);
    for (name, _) in expected {
        command.args(["--save", &format!("{name}={name}.npy")]);
    }
    let finished = run(command.args(arguments).current_dir(folder)).success();
    for (name, expected) in expected {
        let found = Tensor::read(&folder.join(format!("{name}.npy")));
        found.assert_close(expected, 1e-10, &format!("{name}, {what}"));
    }
    finished
}

/// Returns whether a step of one of these operations leaves its result on disk tuple by tuple.
fn on_disk(stated: &str, operations: &[&str]) -> bool {
    let plan: serde_json::Value = serde_json::from_str(stated).unwrap();
    let steps = plan["steps"].as_array().unwrap().iter();
    { steps }.any(|step| {
        let is = |operation: &&str| step["operator"].as_str().unwrap().contains(operation);
        step["streamed"] == true && operations.iter().any(is)
    })
}

fn product(a: &Tensor, b: &Tensor) -> Tensor {
    let (rows, inner, columns) = (a.shape[0], a.shape[1], b.shape[1]);
    Tensor::from_fn(&[rows, columns], |at| {
        let (i, j) = (at / columns, at % columns);
        (0..inner)
            .map(|k| a.data[i * inner + k] * b.data[k * columns + j])
            .sum()
    })
}

fn begin(folder: &Path, program: &str, inputs: &[(&str, &Tensor)]) {
    fs::write(folder.join("program.ein"), program).unwrap();
    fs::create_dir(folder.join("rest")).unwrap();
    for (name, tensor) in inputs {
        tensor.write_f64(&folder.join(format!("{name}.npy")));
    }
}

#[test]
fn a_product_is_larger_than_memory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (a, b) = (Tensor::noise(&[150, 131], 1), Tensor::noise(&[131, 97], 2));
    let program = "input A: f64[150, 131] = load(\"A.npy\")\ninput B: f64[131, 97] = load(\"B.npy\")\n\
        C[i,j] = A[i,k] * B[k,j]\noutput C\n";
    begin(folder, program, &[("A", &a), ("B", &b)]);
    let c = product(&a, &b);
    let mut volumes = vec![];
    for percent in [80, 50, 20, 5] {
        let stated = fits_in(folder, percent, 1, &[("C", &c)]);
        volumes.push(number(&stated, "\"spill_read\":"));
    }
    assert!(
        volumes.is_sorted() && volumes[0] < volumes[3],
        "{volumes:?}"
    );
    // What moves between sites lies on disk, too.
    let mut moved = 0;
    for (sites, percent) in [(2, 60), (2, 30), (3, 60), (3, 25), (4, 40), (5, 30)] {
        let stated = fits_in(folder, percent, sites, &[("C", &c)]);
        moved += usize::from(on_disk(&stated, &["broadcast", "shuffle"]));
    }
    assert!(moved >= 4, "{moved}");
    // Where nothing that is added up is cut, results are the same bit for bit.
    let free = given(folder, &[], &[("C", &c)], "whole");
    assert!(!free.stderr.contains("to disk"), "{free}");
    let whole = fs::read(folder.join("C.npy")).unwrap();
    fits_in(folder, 80, 1, &[("C", &c)]);
    assert!(whole == fs::read(folder.join("C.npy")).unwrap());
}

#[test]
fn other_steps_are_larger_than_memory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (rows, columns) = (211, 83);
    let x = Tensor::noise(&[rows, columns], 3);
    let w = Tensor::noise(&[columns], 4);
    let program = "dim I = 211\ndim J = 83\ninput X: f64[I, J] = load(\"X.npy\")\ninput w: f64[J] = load(\"w.npy\")\n\
        m[i] = max[j] X[i,j]\nE[i,j] = exp(X[i,j] - m[i])\ns[i] = sum[j] E[i,j]\nP[i,j] = E[i,j] / s[i] * w[j]\n\
        b[i] = argmin[j] P[i,j]\nc[j] = mean[i] P[i,j]^2\nn = norm[i,j] P[i,j]\nT[j,i] = P[i,j] + X[i,j]\n\
        output P\noutput b\noutput c\noutput n\noutput T\n";
    begin(folder, program, &[("X", &x), ("w", &w)]);
    let row = |i: usize| &x.data[i * columns..(i + 1) * columns];
    let p = Tensor::from_fn(&[rows, columns], |at| {
        let (i, j) = (at / columns, at % columns);
        let most = row(i).iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row(i).iter().map(|x| (x - most).exp()).sum();
        (row(i)[j] - most).exp() / sum * w.data[j]
    });
    let b = Tensor::from_fn(&[rows], |i| {
        let own = (0..columns).map(|j| p.data[i * columns + j]).enumerate();
        own.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0 as f64
    });
    let c = Tensor::from_fn(&[columns], |j| {
        let squares = (0..rows).map(|i| p.data[i * columns + j].powi(2));
        squares.sum::<f64>() / rows as f64
    });
    let n = Tensor::from_fn(&[], |_| p.data.iter().map(|x| x * x).sum::<f64>().sqrt());
    let t = Tensor::from_fn(&[columns, rows], |at| {
        let (j, i) = (at / rows, at % rows);
        p.data[i * columns + j] + x.data[i * columns + j]
    });
    let expected = [("P", &p), ("b", &b), ("c", &c), ("n", &n), ("T", &t)];
    for percent in [60, 25, 8] {
        fits_in(folder, percent, 1, &expected);
    }
    for (sites, percent) in [(2, 50), (3, 30), (5, 40)] {
        fits_in(folder, percent, sites, &expected);
    }
}

#[test]
fn a_loop_reads_what_is_larger_than_memory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let size = 160;
    let a = Tensor::noise(&[size, size], 5);
    let program = "dim N = 160\ninput A: f64[N, N] = load(\"A.npy\")\nS[i,j] = (A[i,j] + A[j,i]) / 20\n\
        repeat t < 5 { state x[i] = 1.0\n next x[i] = S[i,j] * x[j] }\noutput x\n";
    begin(folder, program, &[("A", &a)]);
    let mut x = vec![1.0; size];
    for _ in 0..5 {
        let of = |i: usize, j: usize| (a.data[i * size + j] + a.data[j * size + i]) / 20.0;
        x = (0..size)
            .map(|i| (0..size).map(|j| of(i, j) * x[j]).sum())
            .collect();
    }
    let x = Tensor::from_fn(&[size], |at| x[at]);
    for percent in [70, 20] {
        fits_in(folder, percent, 1, &[("x", &x)]);
    }
}

#[test]
fn contractions_are_larger_than_memory() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (a, b) = (
        Tensor::noise(&[11, 19, 23], 6),
        Tensor::noise(&[23, 13, 19], 7),
    );
    let program = "input A: f64[11, 19, 23] = load(\"A.npy\")\ninput B: f64[23, 13, 19] = load(\"B.npy\")\n\
        C[a,b,l] = A[a,l,k] * B[k,b,l]\nD[a,c] = C[a,b,l] * C[c,b,l]\noutput C\noutput D\n";
    begin(folder, program, &[("A", &a), ("B", &b)]);
    let c = Tensor::from_fn(&[11, 13, 19], |at| {
        let (row, b_, l) = (at / 247, at / 19 % 13, at % 19);
        (0..23)
            .map(|k| a.at(&[row, l, k]) * b.at(&[k, b_, l]))
            .sum()
    });
    let d = Tensor::from_fn(&[11, 11], |at| {
        (0..247)
            .map(|n| c.data[at / 11 * 247 + n] * c.data[at % 11 * 247 + n])
            .sum()
    });
    for percent in [70, 40, 15] {
        fits_in(folder, percent, 1, &[("C", &c), ("D", &d)]);
    }
}

/// Under an MPI every rank has its own files, and a built program holds its plan.
#[test]
fn ranks_go_through_tuples() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (a, b) = (Tensor::noise(&[150, 131], 1), Tensor::noise(&[131, 97], 2));
    let program = "input A: f64[150, 131] = load(\"A.npy\")\ninput B: f64[131, 97] = load(\"B.npy\")\n\
        C[i,j] = tanh(A[i,k] * B[k,j])\noutput C\n";
    begin(folder, program, &[("A", &a), ("B", &b)]);
    let mut c = product(&a, &b);
    c.data.iter_mut().for_each(|x| *x = x.tanh());
    let limited = ["--memory", "100kB", "--spill=rest"];
    run(einc_command(&["build", "program.ein", "-o", "program"])
        .args(limited)
        .current_dir(folder))
    .success();
    for launcher in launchers() {
        for ranks in [1, 2, 3] {
            let mut command = mpirun(launcher, ranks, &folder.join("program"));
            command.args(["--spill=rest", "--stats", "--save", "C=C.npy"]);
            let finished = run(command.current_dir(folder)).success();
            assert!(finished.stderr.contains("bytes to disk"), "{finished}");
            let found = Tensor::read(&folder.join("C.npy"));
            found.assert_close(&c, 1e-10, &format!("{launcher} on {ranks}"));
        }
    }
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Read at positions that data gives, it is needed whole.
    let program = "dim N = 20000\ninput x: f64[N] = uniform(-1, 1)\ninput p: i64[N] = permutation\n\
        y[i] = x[p[i]]\noutput y\n";
    fs::write(folder.join("program.ein"), program).unwrap();
    let limited = ["plan", "program.ein", "--memory", "150kB", "--spill"];
    let refused = run(einc_command(&limited).current_dir(folder)).fails_with(1);
    refused.says(&["E0996", "are missing"]);
    let enough = ["plan", "program.ein", "--memory", "250kB", "--spill"];
    let planned = run(einc_command(&enough).current_dir(folder)).success();
    assert!(planned.stdout.contains(", on disk"), "{planned}");
}
