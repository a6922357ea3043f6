//! Complex numbers: programs in `complex/` against numpy's values, files against numpy's bytes, training against a closed form, on 1 to 5
//! sites.

use einc_tests::everywhere::{self, SITES};
use einc_tests::{Tensor, einc, einc_command, root, run};
use std::path::Path;

/// Elements of an output; of a complex number its two parts.
type Expected<'t> = (&'t str, Vec<f64>);

/// The lines `//= name: v v v` of a program.
fn expected(text: &str) -> Vec<Expected<'_>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("//= "));
    lines
        .map(|line| {
            let (name, values) = line.split_once(':').unwrap();
            let values = values.split_whitespace().map(|v| v.parse().unwrap());
            (name, values.collect())
        })
        .collect()
}

/// The element type and the elements of a complex .npy file in C order, or of a real one.
fn elements(path: &Path) -> (String, Vec<f64>) {
    let bytes = std::fs::read(path).unwrap();
    let length = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let head = String::from_utf8_lossy(&bytes[10..10 + length]).into_owned();
    let descr = head.split('\'').nth(3).unwrap().to_owned();
    let data = &bytes[10 + length..];
    let values = match descr.as_str() {
        "<c8" => (data.chunks_exact(4))
            .map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap())))
            .collect(),
        "<c16" => (data.chunks_exact(8))
            .map(|b| f64::from_le_bytes(b.try_into().unwrap()))
            .collect(),
        _ => Tensor::read(path).data,
    };
    (descr, values)
}

#[track_caller]
fn assert_close(found: &[f64], wanted: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}: {found:?}");
    for (at, (x, y)) in found.iter().zip(wanted).enumerate() {
        let close = (x - y).abs() <= tolerance * y.abs().max(1.0);
        assert!(close, "{what}: number {at} is {x}, expected {y}");
    }
}

/// Runs a program of the folder on all numbers of sites, and compares its outputs with the values that stand in it.
fn agrees(name: &str, tolerance: f64) {
    let program = root().join(format!("tests/e2e/complex/{name}.ein"));
    let text = std::fs::read_to_string(&program).unwrap();
    let wanted = expected(&text);
    assert!(!wanted.is_empty());
    for sites in SITES {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(format!("{name}.npy"));
        let mut command = einc_command(&["run"]);
        command.arg(&program).args(["--sites", sites]);
        for (output, _) in &wanted {
            let save = format!("{output}={}", file(output).display());
            command.args(["--save", &save]);
        }
        run(&mut command).success();
        for (output, values) in &wanted {
            let what = format!("{name}, {output} on {sites}");
            assert_close(&elements(&file(output)).1, values, tolerance, &what);
        }
    }
}

#[test]
fn arithmetic_is_numpy_s() {
    agrees("arithmetic", 1e-13);
}

/// By closed forms.
#[test]
fn quotients_of_very_small_numbers_are_as_they_are_written() {
    agrees("far", 1e-6);
}

#[test]
fn roots_and_powers_of_very_large_numbers_are_finite_where_they_can_be() {
    agrees("large", 1e-5);
}

#[test]
fn functions_are_numpy_s() {
    agrees("functions", 1e-13);
}

/// On the cuts, too, where the sign of a zero counts.
#[test]
fn inverse_functions_are_numpy_s() {
    agrees("inverses", 1e-13);
}

/// By closed forms, in the program itself.
#[test]
fn functions_have_slopes() {
    agrees("slopes", 1e-12);
}

#[test]
fn products_over_indices_are_numpy_s() {
    agrees("products", 1e-12);
}

#[test]
fn real_numbers_are_transformed() {
    agrees("real", 1e-12);
}

/// By closed forms, in the program itself.
#[test]
fn directions_and_jacobians_are_complex() {
    agrees("directions", 1e-12);
}

#[test]
fn states_of_rounds_are_complex() {
    agrees("rounds", 1e-12);
}

#[test]
fn tensors_are_passed_gathered_and_transformed() {
    agrees("tensors", 1e-12);
}

#[test]
fn rounds_and_arrays_of_modules_have_gradients() {
    agrees("loops", 1e-12);
}

/// The reference has central differences.
#[test]
fn gradients_are_jax_s() {
    agrees("gradients", 1e-7);
}

/// An .npy file.
fn npy(path: &Path, descr: &str, order: &str, shape: &str, data: &[u8]) {
    let head = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((head.len() as u16).to_le_bytes());
    bytes.extend(head.as_bytes());
    bytes.extend(data);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn files_are_numpy_s() {
    // Element (i, j) is 10 i + j + 1 − (i − 2 j) i.
    let value = |i: usize, j: usize| [(10 * i + j + 1) as f64, -(i as f64 - 2.0 * j as f64)];
    let by_rows: Vec<[f64; 2]> = (0..3)
        .flat_map(|i| (0..2).map(move |j| value(i, j)))
        .collect();
    let by_columns: Vec<[f64; 2]> = (0..2)
        .flat_map(|j| (0..3).map(move |i| value(i, j)))
        .collect();
    let conjugates: Vec<f64> = by_rows.iter().flat_map(|[a, b]| [*a, -b]).collect();
    for (descr, ty) in [
        ("<c8", "c64"),
        (">c8", "c64"),
        ("<c16", "c128"),
        (">c16", "c128"),
    ] {
        for (order, values) in [("False", &by_rows), ("True", &by_columns)] {
            let data: Vec<u8> = (values.iter().flatten())
                .flat_map(|x| match descr {
                    "<c8" => (*x as f32).to_le_bytes().to_vec(),
                    ">c8" => (*x as f32).to_be_bytes().to_vec(),
                    "<c16" => x.to_le_bytes().to_vec(),
                    _ => x.to_be_bytes().to_vec(),
                })
                .collect();
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name).display().to_string();
            npy(Path::new(&at("z.npy")), descr, order, "(3, 2)", &data);
            let text = format!(
                "dim N\ninput z: {ty}[N, 2] = load(\"z.npy\")\nw[i, j] = conj(z[i, j])\noutput w -> \"{}\"\noutput z\n",
                at("w.npy")
            );
            std::fs::write(at("p.ein"), text).unwrap();
            for sites in SITES {
                let archive = at("all.npz");
                let arguments = ["run", &at("p.ein"), "--sites", sites, "--save", &archive];
                einc(&arguments).success();
                let (written, found) = elements(Path::new(&at("w.npy")));
                assert_eq!(written, descr.replace('>', "<"));
                assert_eq!(found, conjugates, "{descr} {order} on {sites}");
                let again = format!("z={archive}::z");
                let arguments = ["run", &at("p.ein"), "--sites", sites, "--input", &again];
                einc(&arguments).success();
                assert_eq!(elements(Path::new(&at("w.npy"))).1, conjugates);
            }
        }
    }
}

#[test]
fn numbers_fill_and_print_as_numpy_prints() {
    let text = "input z: c64[3] = 2
input o: c128[2] = zeros
input q: c64 = 0.5
w[i] = z[i] * complex(0.25, i) - q
one = w[2] * 2
r[i] = o[i] - complex(0, 1)
param p: c64[2] = [1, -2]
i1[k] = complex(0, 1) * p[k]
output w; output one; output r; output z; output p; output i1
";
    let expected = "w = [0.+0.j 0.+2.j 0.+4.j]
one = 8j
r = [0.-1.j 0.-1.j]
z = [2.+0.j 2.+0.j 2.+0.j]
p = [ 1.+0.j -2.+0.j]
i1 = [0.+1.j 0.-2.j]
";
    assert_eq!(everywhere::printed(&[("p.ein", text)]), expected);
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("p.ein").display().to_string();
    std::fs::write(&program, text).unwrap();
    let said = einc(&["run", &program, "--input", "z=3", "--sites", "2"]).success();
    assert!(said.stdout.contains("z = [3.+0.j 3.+0.j 3.+0.j]"), "{said}");
}

/// Least squares with complex params: what is learned is what made the data.
#[test]
fn training_descends() {
    for optimizer in ["sgd(lr: 0.2)", "adamw(lr: 0.05, weight_decay: 0)"] {
        let text = format!(
            "dim N = 40
input A: c64[N, 3] = normal(0, 1)
const truth = [1.5, -2, 0.5]
x0[d < 3] = complex(f32(truth[d]), 0.5 - f32(truth[d]))
b[n] = A[n, d] * x0[d]
param x: c64[3] = zeros
loss = mean[n] abs(A[n, d] * x[d] - b[n])^2
train {{ loss: loss; steps: 400; optimizer: {optimizer}; clip: 10 }}
error = max[d] abs(x[d] - x0[d])
output loss; output error; output x
"
        );
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(at("p.ein"), text).unwrap();
        for sites in ["1", "3"] {
            let save = format!("x={}", at("x.npy"));
            einc(&["run", &at("p.ein"), "--sites", sites, "--save", &save]).success();
            let (descr, found) = elements(Path::new(&at("x.npy")));
            assert_eq!(descr, "<c8");
            let wanted = [1.5, -1.0, -2.0, 2.5, 0.5, 0.0];
            assert_close(&found, &wanted, 2e-3, &format!("{optimizer} on {sites}"));
        }
    }
}

/// Batches of complex rows, checkpoints and other data: the same on any number of sites, and again after a resumption.
#[test]
fn training_goes_on_by_batches() {
    let text = "dim N = 30, H = 4
input X: c64[N, 3] = normal(0, 1)
input t: f32[N] = uniform(0, 1)
input Xv: c64[11, 3] = normal(0, 1)
input tv: f32[11] = uniform(0, 1)
module layer(D, E)(x[.., D]) -> y[.., E] {
  param w: c64[D, E] = normal(0, 0.3)
  param b: c64[E] = 0.25
  y[.., e] = x[.., d] * w[d, e] + b[e]
}
param a: layer(3, H)
param c: layer(H, 1)
h = a(X)
g[n, e] = h[n, e] / (1 + abs(h[n, e])) * complex(0, 1)
y = c(g)
loss = mean[n] (abs(y[n, 0])^2 - t[n])^2
train {
  loss: loss; data: (X, t) over N by 7 shuffle; steps: 12; accumulate: 2
  optimizer: adamw(lr: 0.02); checkpoint: \"ck\" every 1 epoch
}
output loss
output loss on (Xv, tv)
";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.ein"), text).unwrap();
    let losses = |arguments: &[&str]| -> Vec<f64> {
        let mut command = einc_command(&["run", "p.ein"]);
        let finished = run(command.current_dir(folder.path()).args(arguments)).success();
        let numbers = finished
            .stdout
            .lines()
            .map(|line| line.rsplit(' ').next().unwrap());
        numbers.map(|number| number.parse().unwrap()).collect()
    };
    let first = losses(&["--sites", "1"]);
    assert_eq!(first.len(), 2);
    for arguments in [["--sites", "3", "--restart"], ["--sites", "2", "--resume"]] {
        let again = losses(&arguments);
        assert_close(&again, &first, 1e-5, &format!("{arguments:?}"));
    }
}

/// Exported complex params begin another run, and an executable that does not train: of c64 as complex numbers, of c128 as pairs.
#[test]
fn params_are_exported_and_given() {
    for (dtype, real, kind) in [
        ("c64", "f32", "\"C64\",\"shape\":[3]"),
        ("c128", "f64", "\"F64\",\"shape\":[3,2]"),
    ] {
        let text = format!(
            "input x: {dtype}[5, 3] = normal(0, 1)
input t: {real}[5] = uniform(0, 1)
module scaled(D)(x[.., D]) -> y[.., D] {{
  param w: {dtype}[D] = normal(0, 1)
  y[.., d] = x[.., d] * w[d]
}}
param net: scaled(3)[2]
repeat l < 2 {{ state h = x; next h = net[l](h) }}
param v: {dtype}[3] = normal(0, 1)
p[n] = h[n, d] * v[d]
loss = mean[n] (abs(p[n])^2 - t[n])^2
train {{ loss: loss; steps: 3; optimizer: adam(lr: 0.01) }}
output p; output net.1.w
"
        );
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("p.ein"), &text).unwrap();
        let at = |name: &str| folder.path().join(name);
        let run_here = |arguments: &[&str]| {
            let mut command = einc_command(arguments);
            run(command.current_dir(folder.path())).success()
        };
        run_here(&[
            "run",
            "p.ein",
            "--sites",
            "2",
            "--export",
            "m.safetensors",
            "--save",
            "p=p.npy",
            "--save",
            "net.1.w=w.npy",
        ]);
        let file = std::fs::read(at("m.safetensors")).unwrap();
        let head = String::from_utf8_lossy(&file[..400.min(file.len())]).into_owned();
        assert!(head.contains(kind), "{head}");
        let same = |name: &str, other: &str| {
            let (first, again) = (elements(&at(name)), elements(&at(other)));
            assert_eq!(first.0, again.0);
            assert_close(&again.1, &first.1, 1e-5, name);
        };
        run_here(&["build", "p.ein", "--infer", "p", "-o", "infer"]);
        let mut infer = std::process::Command::new(at("infer"));
        infer.current_dir(folder.path());
        run(infer.args([
            "--weights",
            "m.safetensors",
            "--sites",
            "3",
            "--save",
            "p=again.npy",
        ]))
        .success();
        same("p.npy", "again.npy");
        // A run of no steps gives what it began with.
        std::fs::write(
            at("p.ein"),
            text.replace("steps: 3", "steps: 1").replace("0.01", "0"),
        )
        .unwrap();
        run_here(&[
            "run",
            "p.ein",
            "--weights",
            "m.safetensors",
            "--save",
            "net.1.w=w2.npy",
        ]);
        same("w.npy", "w2.npy");
    }
}

#[test]
fn what_is_wrong_with_data_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let data: Vec<u8> = [1f32, 2.0, 3.0, 4.0]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect();
    npy(Path::new(&at("z.npy")), "<c8", "False", "(2,)", &data);
    let says = |text: &str, texts: &[&str]| {
        std::fs::write(at("p.ein"), text).unwrap();
        let finished = einc(&["run", &at("p.ein")]);
        finished.fails_with(1).says(texts);
    };
    says(
        "input z: f32[2, 2] = load(\"z.npy\")\noutput z\n",
        &["E0703", "`z` is declared f32, but its data is c64"],
    );
    says(
        "input z: c128[2] = load(\"z.npy\")\noutput z\n",
        &["E0703", "`z` is declared c128, but its data is c64"],
    );
    says(
        "input z: c64[3] = load(\"z.npy\")\noutput z\n",
        &["E0713", "declared with 3, but its data has 2"],
    );
    let text = "%%MatrixMarket matrix coordinate real general\n2 1 1\n1 1 2.0\n";
    std::fs::write(at("m.mtx"), text).unwrap();
    says(
        "input z: c64[2, 1] = load(\"m.mtx\")\noutput z\n",
        &["E0703", "`z` is declared c64, but its data is f32"],
    );
    let matrix = at("w.mtx");
    says(
        &format!(
            "input z: c64[2] = load(\"z.npy\")\nw[i, j] = z[i] * z[j]\noutput w -> \"{matrix}\"\n"
        ),
        &["E0705", "c64[2, 2]", ".mtx files hold real numbers"],
    );
}

#[test]
fn a_definition_by_a_source_is_written_under_its_name() {
    let text = "u: c64[3] = normal(0, 1)
n: c128[2] = zeros
output u; output n
";
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    std::fs::write(at("p.ein"), text).unwrap();
    for sites in SITES {
        let arguments = ["run", &at("p.ein"), "--sites", sites];
        let file = format!("u={}", at("u.safetensors"));
        for save in [at("all.npz"), file] {
            einc(&[&arguments[..], &["--save", &save]].concat()).success();
        }
        let read = "input u: c64[3] = load(\"all.npz\", \"u\")
input v: c64[3] = load(\"u.safetensors\", \"u\")
input n: c128[2] = load(\"all.npz\", \"n\")
d = sum[i] abs(u[i] - v[i])
e = sum[i] abs(n[i])
output d; output e
";
        std::fs::write(at("q.ein"), read).unwrap();
        let said = einc(&["run", &at("q.ein")]).success().stdout;
        assert_eq!(said, "d = 0.0\ne = 0.0\n");
    }
}
