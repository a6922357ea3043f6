//! Rows of a cut table looked up at the sites that have them, against plain loops.

use einc_tests::everywhere::printed;
use einc_tests::{Tensor, einc, einc_command, run};
use std::path::Path;

const PROGRAM: &str = "\
input x: f32[V, H] = load(\"x.npy\")
input tok: i64[T] = load(\"tok.npy\")
input w: f32[T] = load(\"w.npy\")
dim V
dim H
dim T
z[t, h] = x[tok[t], h]
y[h] = sum[t] w[t] * x[tok[t], h] * x[tok[T - 1 - t], h]
G[tok[t], h]: f32[V, H] += w[t] * z[t, h]
g[h] = sum[v] G[v, h] * G[v, h]
output z
output y
output g
";

const ROWS: usize = 1003;
const WIDTH: usize = 5;
const READS: usize = 13;

/// Writes the program and its data; the last position is `last`.
fn place(folder: &Path, last: i64) -> (Vec<usize>, Tensor, Tensor) {
    let x = Tensor::noise(&[ROWS, WIDTH], 5);
    let w = Tensor::noise(&[READS], 6);
    let mut positions: Vec<usize> = (0..READS).map(|t| (t * t * 37 + 5) % ROWS).collect();
    positions[READS - 1] = last as usize;
    let tok = Tensor::from_fn(&[READS], |t| positions[t] as f64);
    x.write_f32(&folder.join("x.npy"));
    w.write_f32(&folder.join("w.npy"));
    tok.write_i64(&folder.join("tok.npy"));
    std::fs::write(folder.join("program.ein"), PROGRAM).unwrap();
    let [x, w] = ["x.npy", "w.npy"].map(|name| Tensor::read(&folder.join(name)));
    (positions, x, w)
}

#[test]
fn rows_come_from_the_sites_that_have_them() {
    let folder = tempfile::tempdir().unwrap();
    let (positions, x, w) = place(folder.path(), 1002);
    let at = |t: usize, h: usize| x.at(&[positions[t], h]);
    let z = Tensor::from_fn(&[READS, WIDTH], |e| at(e / WIDTH, e % WIDTH));
    let y = Tensor::from_fn(&[WIDTH], |h| {
        let terms = (0..READS).map(|t| w.at(&[t]) * at(t, h) * at(READS - 1 - t, h));
        terms.sum()
    });
    let g = Tensor::from_fn(&[WIDTH], |h| {
        let mut rows = vec![0.0; ROWS];
        (0..READS).for_each(|t| rows[positions[t]] += w.at(&[t]) * at(t, h));
        rows.iter().map(|x| x * x).sum()
    });
    for sites in ["1", "2", "3", "4", "5"] {
        for more in [
            &[][..],
            &["--deterministic"],
            &["--disable-rule", "lookup-at-owner"],
        ] {
            let mut command = einc_command(&["run", "program.ein", "--sites", sites]);
            command.current_dir(folder.path()).args(more);
            for name in ["z", "y", "g"] {
                command.args(["--save", &format!("{name}={name}.npy")]);
            }
            run(&mut command).success();
            for (name, wanted) in [("z", &z), ("y", &y), ("g", &g)] {
                let found = Tensor::read(&folder.path().join(format!("{name}.npy")));
                found.assert_close(wanted, 1e-5, &format!("{name} on {sites} sites {more:?}"));
            }
        }
    }
}

#[test]
fn a_position_outside_is_told_alike_on_any_number_of_sites() {
    let folder = tempfile::tempdir().unwrap();
    place(folder.path(), 1003);
    for sites in ["1", "2", "3", "5"] {
        let mut command = einc_command(&["run", "program.ein", "--sites", sites]);
        command.current_dir(folder.path());
        run(&mut command).fails_with(1).says(&[
            "E0720",
            "position 1003 is outside `x`, whose dimension 1 has positions 0 to 1002; at t = 12, h = 0",
        ]);
    }
}

/// The floats that a run moves are those of the plan: positions and rows, not the table.
#[test]
fn what_moves_is_stated() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("rows.ein");
    let text = "input x: f32[100000] = uniform(0, 1)\ninput tok: i64[64] = permutation\n\
        y[i] = x[i] * x[i]\nz[n] = y[tok[n]]\noutput z\noutput y\n";
    std::fs::write(&program, text).unwrap();
    let program = program.to_str().unwrap();
    for (sites, most) in [("2", 256), ("4", 512), ("5", 640)] {
        let finished = einc(&["run", program, "--sites", sites, "--stats"]).success();
        let (_, moved) = finished.stderr.split_once("moved in all = ").unwrap();
        let (moved, _) = moved.split_once(" floats").unwrap();
        let moved: u64 = moved.parse().unwrap();
        assert!(moved <= most, "{finished}");
    }
}

/// A condition that reads is looked at only where the conditions around it hold, also where loops take them for a guard.
#[test]
fn conditions_hide_the_faults_of_those_inside() {
    let text = "
input x: f64[4, 5] = iota
t = max[r < 2] x[2 - r, 2*r + 1]
g = grad(t^2, x)
h = grad(sum[a,b] g[a,b]^2, x)
best[a] = max[b] h[a,b]
input at: i64[6] = [3, 9, 0, 1, 9, 1]
input w: f64[4] = [1, 2, 3, 4]
label[i < 6] = i % 3
sums[k < 3] = sum[i] where(label[i] == k, where(at[i] < 4, where(w[at[i]] > 1.5, f64(i), 0), 0), 0)
output best
output sums
";
    let expected = "best = [ 0.  0. 88.  0.]\nsums = [3. 0. 5.]\n";
    assert_eq!(printed(&[("p.ein", text)]), expected);
}
