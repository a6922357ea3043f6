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

/// Products with rows that data name are those of all rows, in which rows that nobody names count for nothing, whatever they hold.
#[test]
fn products_with_named_rows_take_no_other_rows() {
    const PROGRAM: &str = "
x[v<40,d<16] = where(v == 7, log(f64(-1)), f64((v * 5 + d * 3) % 11))
z[v<40,h<8] = f64((v * 3 + h) % 7)
W[d<16,h<8] = f64((d + 2 * h) % 5)
w[e<500] = f64(e % 4)
s[e<500] = where((e * 13) % 40 == 7, 8, (e * 13) % 40)
t[e<500] = (e * 7 + e * e) % 40
g[d,h] = sum[e] w[e] * x[s[e],d] * z[t[e],h]
a[t[e],h]: f64[40, 8] += w[e] * x[s[e],d] * W[d,h]
y[d] = sum[e] x[s[e],d] * w[e]
output g -> \"g.npy\"
output a -> \"a.npy\"
output y -> \"y.npy\"
";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.ein"), PROGRAM).unwrap();
    let x = |v: usize, d: usize| ((v * 5 + d * 3) % 11) as f64;
    let (mut g, mut a, mut y) = (vec![0.0; 16 * 8], vec![0.0; 40 * 8], vec![0.0; 16]);
    for e in 0..500 {
        let (s, t, w) = ((e * 13) % 40, (e * 7 + e * e) % 40, (e % 4) as f64);
        let s = if s == 7 { 8 } else { s };
        for d in 0..16 {
            y[d] += w * x(s, d);
            for h in 0..8 {
                g[d * 8 + h] += w * x(s, d) * ((t * 3 + h) % 7) as f64;
                a[t * 8 + h] += w * x(s, d) * ((d + 2 * h) % 5) as f64;
            }
        }
    }
    for sites in ["1", "2", "3", "4", "5"] {
        let arguments = ["run", "p.ein", "--sites", sites];
        run(einc_command(&arguments).current_dir(&folder)).success();
        for (name, expected) in [("g", &g), ("a", &a), ("y", &y)] {
            let path = folder.path().join(format!("{name}.npy"));
            assert_eq!(&Tensor::read(&path).data, expected, "{name}, {sites} sites");
        }
    }
}

const GUARDED: &str = "\
input x: f64[4, 7] = load(\"x.npy\")
input z: f64[6, 2, 1] = load(\"z.npy\")
input q: i64[6] = load(\"q.npy\")
y[i < 6, j < 3] = (z[i, q[i], q[i]] else 0) + (x[j - i - 2, q[i]] else (-2)) / (1 + (z[4 - i, j, j - i - 2] else 0.5)^2)
l = sum[i,j] tanh(y[i,j])
g = grad(l, z)
h = grad(l, x)
output y
output g
output h
";

/// Positions of reads that have an `else` are looked up themselves, where a condition holds: elsewhere they are outside.
#[test]
fn positions_under_conditions_are_looked_up_where_these_hold() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str| folder.path().join(name);
    Tensor::noise(&[4, 7], 3).write_f64(&of("x.npy"));
    Tensor::noise(&[6, 2, 1], 4).write_f64(&of("z.npy"));
    let q = [-1.0, 3.0, 0.0, 2.0, -1.0, 1.0];
    Tensor::from_fn(&[6], |i| q[i]).write_i64(&of("q.npy"));
    std::fs::write(of("program.ein"), GUARDED).unwrap();
    let saved = |sites: &str, more: &[&str]| {
        let mut command = einc_command(&["run", "program.ein", "--sites", sites]);
        command.current_dir(folder.path()).args(more);
        for name in ["y", "g", "h"] {
            command.args(["--save", &format!("{name}={name}.npy")]);
        }
        run(&mut command).success();
        ["y", "g", "h"].map(|name| Tensor::read(&of(&format!("{name}.npy"))))
    };
    let wanted = saved("1", &["--disable-rule", "lookup-at-owner"]);
    for sites in ["1", "2", "3", "4", "5"] {
        for (found, wanted) in saved(sites, &[]).iter().zip(&wanted) {
            found.assert_close(wanted, 1e-12, &format!("{sites} sites"));
        }
    }
}
