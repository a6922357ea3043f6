//! A run that is stopped and continued ends bit for bit where an unbroken one does, on any number of sites.
#![allow(clippy::unwrap_used, clippy::result_large_err)]
use ein_data::Reader;
use ein_exec::session::Begin;
use ein_plan::{FileRef, Scalar};
use ein_records::Show;
use einc_driver::arguments::{Format, Weights};
use einc_driver::failure::Failure;
use einc_driver::settings::Settings;
use einc_driver::shims::ShimsByName;
use einc_driver::{load, run};
use std::path::Path;

/// 53 rows in batches of 8, so that epochs of 7 steps end in short batches; a param of one number, which begins with 0; a running mean; two
/// blocks with optimizers of their own: everything that a checkpoint holds matters.
fn program(folder: &Path) -> String {
    let folder = folder.join("ckpt").display().to_string();
    format!(
        r#"
dim N = 53
const K = 40
const L = 9
input X: f32[N, 6] = uniform(-1, 1)
input y: f32[N] = uniform(-1, 1)
module scaled(D)(x[n, D]) -> z[n, D] {{
  state level[d] = zeros
  next level[d] = 0.9 * level[d] + 0.1 * (sum[n] x[n,d]) / 8
  z[n, d] = x[n, d] - 0.5 * level[d]
}}
param scale: scaled(6)
param W: f32[6, 7] = normal(0, 0.5)
param v: f32[7] = normal(0, 0.5)
param b: f32 = 0
Z = scale(X)
h[n, k] = tanh(Z[n, d] * W[d, k])
p[n] = h[n, k] * v[k] + b
loss = mean[n] (p[n] - y[n])^2
train {{
  loss: loss
  data: (X, y) over N by 8 shuffle
  steps: K
  optimizer: lamb(lr: 0.02)
  checkpoint: "{folder}" every 6 steps keep 2
}}
train {{
  loss: loss
  data: (X, y) over N by 11 shuffle
  steps: L
  optimizer: momentum(lr: 0.05)
  checkpoint: "{folder}" every 1 epoch keep 2
}}
output loss
"#
    )
}

struct Workspace(tempfile::TempDir);

impl Workspace {
    fn new() -> Workspace {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("net.ein"), program(folder.path())).unwrap();
        Workspace(folder)
    }

    /// Runs up to `K` and `L` steps of the blocks; returns the exit status.
    fn status(&self, begin: Begin, sites: u32, [k, l]: [i64; 2], seed: u64) -> i32 {
        let settings = Settings {
            sites: Some(sites),
            deterministic: true,
            seed,
            begin,
            progress: Show::Nothing,
            export: Some(self.0.path().join("all.safetensors")),
            constants: [("K", k), ("L", l)]
                .map(|(name, value)| (name.to_owned(), Scalar::Int(value)))
                .into(),
            ..Settings::default()
        };
        let file = self.0.path().join("net.ein");
        let load = || {
            let program = load::load(&file).map_err(|error| Failure::wrong(vec![error]))?;
            Ok((program, None))
        };
        run::run(load, &settings, (&ShimsByName::new(), &[]), Format::Text)
    }

    /// The bytes of the params after a run that succeeds.
    fn trained(&self, begin: Begin, sites: u32, steps: [i64; 2]) -> Vec<u8> {
        assert_eq!(self.status(begin, sites, steps, 0), 0);
        std::fs::read(self.0.path().join("all.safetensors")).unwrap()
    }
}

#[test]
fn continued_bit_for_bit_on_any_number_of_sites() {
    let place = Workspace::new();
    let whole = place.trained(Begin::Anew, 2, [40, 9]);
    // In the middle of an epoch, at the end of one, before the first checkpoint of the rhythm, in the second block.
    for (stop, sites) in [
        ([17, 0], 1),
        ([21, 0], 3),
        ([3, 0], 4),
        ([40, 4], 5),
        ([40, 0], 2),
    ] {
        place.trained(Begin::Restart, 2, stop);
        let again = place.trained(Begin::Resume, sites, [40, 9]);
        assert!(
            again == whole,
            "stopped after {stop:?}, resumed on {sites} sites"
        );
    }
    // Several times, and when there is nothing left to do.
    place.trained(Begin::Restart, 4, [5, 0]);
    place.trained(Begin::Resume, 3, [26, 0]);
    assert!(place.trained(Begin::Resume, 1, [40, 9]) == whole);
    assert!(place.trained(Begin::Resume, 2, [40, 9]) == whole);
    // One site alone gives the same, so the comparisons above are not of one mistake with itself.
    assert!(place.trained(Begin::Restart, 1, [40, 9]) == whole);
    assert!(place.trained(Begin::Restart, 1, [39, 9]) != whole);
}

#[test]
fn refused_where_it_cannot_be_continued() {
    let place = Workspace::new();
    assert_eq!(
        place.status(Begin::Resume, 1, [4, 0], 0),
        1,
        "there is nothing"
    );
    place.trained(Begin::Anew, 1, [4, 0]);
    assert_eq!(
        place.status(Begin::Anew, 1, [4, 0], 0),
        1,
        "there is something in the way"
    );
    assert_eq!(place.status(Begin::Resume, 1, [4, 0], 1), 1, "another seed");
    assert_eq!(place.status(Begin::Resume, 2, [4, 0], 0), 0);
}

/// A network whose array of modules is stored together, or whose instances are written out.
fn layers(folder: &Path, together: bool) -> String {
    let folder = folder.join("ckpt").display().to_string();
    let applied = match together {
        true => "repeat l < 3 { state h = X; next h = net[l](h) }",
        false => "h0 = net[0](X); h1 = net[1](h0); h = net[2](h1)",
    };
    format!(
        r#"
dim N = 20
const K = 12
input X: f32[N, 5] = uniform(-1, 1)
input y: f32[N] = uniform(-1, 1)
module layer(D)(x[n, D]) -> y[n, D] {{
  param w: f32[D, D] = he_normal
  param b: f32[D] = normal(0, 0.1)
  y[n,e] = tanh(x[n,d] * w[d,e]) + b[e]
}}
param net: layer(5)[3]
{applied}
loss = mean[n] ((sum[d] h[n,d]) - y[n])^2
train {{
  loss: loss
  data: (X, y) over N by 7
  steps: K
  optimizer: lamb(lr: 0.02)
  checkpoint: "{folder}" every 5 steps
}}
output loss
"#
    )
}

#[test]
fn params_of_an_array_are_tensors_of_their_own_in_files() {
    let folder = tempfile::tempdir().unwrap();
    let export = |name: &str| folder.path().join(format!("{name}.safetensors"));
    let whole = |name: &str| Weights {
        path: export(name),
        pattern: None,
    };
    let trained_from = |name: &str,
                        together: bool,
                        begin: Begin,
                        sites: u32,
                        steps: i64,
                        weights: Option<&str>| {
        let file = folder.path().join("net.ein");
        std::fs::write(&file, layers(folder.path(), together)).unwrap();
        let settings = Settings {
            sites: Some(sites),
            begin,
            progress: Show::Nothing,
            export: Some(export(name)),
            weights: weights.into_iter().map(whole).collect(),
            constants: [("K".to_owned(), Scalar::Int(steps))].into(),
            ..Settings::default()
        };
        let load = || {
            let program = load::load(&file).map_err(|error| Failure::wrong(vec![error]))?;
            Ok((program, None))
        };
        assert_eq!(
            run::run(load, &settings, (&ShimsByName::new(), &[]), Format::Text),
            0,
            "{name}"
        );
        let mut names = ein_data::keys(&export(name)).unwrap();
        names.sort();
        let read = |key: &String| {
            let from = FileRef {
                path: export(name).display().to_string(),
                key: Some(key.clone()),
            };
            let reader = Reader::open(&from).unwrap();
            let all: Vec<(u64, u64)> = reader.header().shape.iter().map(|n| (0, *n)).collect();
            let array = reader.read(&all).unwrap();
            let values = (0..array.data().len()).map(|at| array.data().get(at).as_f64());
            (
                key.clone(),
                reader.header().shape.clone(),
                values.collect::<Vec<f64>>(),
            )
        };
        names.iter().map(read).collect::<Vec<_>>()
    };
    let trained = |name: &str, together: bool, begin: Begin, sites: u32, steps: i64| {
        trained_from(name, together, begin, sites, steps, None)
    };
    let expected = trained("written", false, Begin::Anew, 1, 12);
    let shapes: Vec<(&str, &[u64])> = (expected.iter())
        .map(|(name, shape, _)| (name.as_str(), shape.as_slice()))
        .collect();
    assert_eq!(
        shapes[..2],
        [("net.0.b", &[5u64][..]), ("net.0.w", &[5, 5])]
    );
    let alike = |found: &[(String, Vec<u64>, Vec<f64>)], what: &str| {
        assert_eq!(found.len(), expected.len(), "{what}");
        for ((name, shape, values), (wanted, form, numbers)) in found.iter().zip(&expected) {
            assert_eq!((name, shape), (wanted, form), "{what}");
            for (a, b) in values.iter().zip(numbers) {
                assert!((a - b).abs() < 1e-5, "{what}, {name}: {a} and {b}");
            }
        }
    };
    for sites in 1..=4 {
        let found = trained("together", true, Begin::Restart, sites, 12);
        alike(&found, &format!("together on {sites} sites"));
    }
    // A checkpoint does not say how its tensors are held.
    for (first, sites) in [(true, 3), (false, 2)] {
        trained("first", first, Begin::Restart, sites, 5);
        let found = trained("rest", !first, Begin::Resume, sites + 1, 12);
        alike(&found, &format!("begun together: {first}"));
    }
    // Weights of the one begin the other.
    let one = trained_from("one", false, Begin::Restart, 1, 3, Some("written"));
    let other = trained_from("other", true, Begin::Restart, 2, 3, Some("written"));
    for ((_, _, a), (_, _, b)) in one.iter().zip(&other) {
        assert!(
            a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5),
            "{a:?} and {b:?}"
        );
    }
    assert!(one != expected);
}
