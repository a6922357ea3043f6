//! Steps that are taken together: their results against plain loops, how a plan shows them, and what a run tells of its steps.
//!
//! Must not know how blocks are made.

use crate::families::{in_process, inputs};
use einc_tests::{Tensor, einc, launchers, mpirun, run};
use std::path::Path;
use std::process::Command;

/// So many that every site's part is worth a sweep.
const ROWS: usize = 1103;
const COLUMNS: usize = 257;

const PROGRAM: &str = "use std.nn
dim N
dim D
input X: f64[N, D]
input g: f64[D]
top[n]    = max[d] X[n,d]
e[n,d]    = exp(X[n,d] - top[n])
total[n]  = sum[d] e[n,d]
p[n,d]    = e[n,d] / total[n]
y         = nn.layer_norm(X, g, g)
best[n]   = argmax[d] p[n,d]
spread[n] = logsumexp[d] y[n,d]
output p
output y
output best
output spread
";

/// The same without what is cut along the columns, so that rows are whole on any number of sites.
const SOFTMAX: &str = "dim N
dim D
input X: f64[N, D]
top[n]    = max[d] X[n,d]
e[n,d]    = exp(X[n,d] - top[n])
total[n]  = sum[d] e[n,d]
p[n,d]    = e[n,d] / total[n]
best[n]   = argmax[d] p[n,d]
output p
output best
";

fn write(folder: &Path, program: &str) -> std::path::PathBuf {
    let source = folder.join("rows.ein");
    std::fs::write(&source, program).unwrap();
    source
}

#[test]
fn rows_are_what_loops_say() {
    let folder = tempfile::tempdir().unwrap();
    let (x, g) = (
        Tensor::noise(&[ROWS, COLUMNS], 1),
        Tensor::noise(&[COLUMNS], 2),
    );
    let arguments = inputs(folder.path(), &[("X", &x), ("g", &g)]);
    let (mut p, mut y, mut best, mut spread) = (vec![], vec![], vec![], vec![]);
    for row in x.data.chunks(COLUMNS) {
        let top = row.iter().copied().fold(f64::MIN, f64::max);
        let total: f64 = row.iter().map(|x| (x - top).exp()).sum();
        p.extend(row.iter().map(|x| (x - top).exp() / total));
        best.push(row.iter().position(|x| *x == top).unwrap() as f64);
        let mean = row.iter().sum::<f64>() / COLUMNS as f64;
        let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / COLUMNS as f64;
        let scale = 1.0 / (variance + 1e-5).sqrt();
        let normal = row
            .iter()
            .zip(&g.data)
            .map(|(x, g)| g * (x - mean) * scale + g);
        let normal: Vec<f64> = normal.collect();
        spread.push(normal.iter().map(|y| y.exp()).sum::<f64>().ln());
        y.extend(normal);
    }
    in_process(
        &write(folder.path(), PROGRAM),
        &arguments,
        &["p", "y", "best", "spread"],
        |output, how| {
            for (name, want) in [("p", &p), ("y", &y), ("best", &best), ("spread", &spread)] {
                let got = output(name);
                assert_eq!(got.data.len(), want.len(), "{name}, {how}");
                for (at, (got, want)) in got.data.iter().zip(want).enumerate() {
                    let close = (got - want).abs() <= 1e-11 * (1.0 + want.abs());
                    assert!(close, "{name}[{at}] is {got}, not {want}, {how}");
                }
            }
        },
    );
}

#[test]
fn a_plan_shows_what_passes_and_does_not_count_it() {
    let folder = tempfile::tempdir().unwrap();
    let source = write(folder.path(), SOFTMAX);
    let sizes = [
        "--dim".to_string(),
        format!("N={ROWS}"),
        "--dim".into(),
        format!("D={COLUMNS}"),
    ];
    for sites in ["1", "2", "4"] {
        let mut command = vec!["plan".to_string(), source.display().to_string()];
        command.extend(sizes.iter().cloned());
        command.extend(["--sites".into(), sites.to_string()]);
        let text = einc(&command).success().stdout;
        let line = |name: &str| {
            let found = text
                .lines()
                .find(|line| line.split_whitespace().nth(1) == Some(name));
            found
                .unwrap_or_else(|| panic!("no step `{name}` in\n{text}"))
                .to_owned()
        };
        assert!(line("e").contains("in sweep 0, passes"), "{text}");
        assert!(line("p").contains("in sweep 0"), "{text}");
        assert!(!line("p").contains("passes"), "{text}");
    }
}

#[test]
fn a_trace_has_a_track_a_site_and_a_slice_a_step() {
    let folder = tempfile::tempdir().unwrap();
    let source = write(folder.path(), SOFTMAX);
    let x = Tensor::noise(&[ROWS, COLUMNS], 1);
    let arguments = inputs(folder.path(), &[("X", &x)]);
    let read = |name: &str, sites: usize| {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        for site in 0..sites {
            assert!(
                text.contains(&format!(r#""tid":{site},"args":{{"name":"site {site}"}}"#)),
                "{text}"
            );
        }
        assert!(
            text.contains(r#""cat":"sweep""#) && text.contains("rows.ein:"),
            "{text}"
        );
        // Every slice is a line of its own.
        text.matches(r#""ph":"X""#).count()
    };
    let file = |name: &str| folder.path().join(name).display().to_string();
    let mut command = vec![
        "run".to_string(),
        source.display().to_string(),
        "--stats".into(),
    ];
    command.extend(arguments.iter().cloned());
    command.extend([
        "--sites".into(),
        "3".into(),
        "--profile".into(),
        file("a.json"),
    ]);
    let stats = einc(&command).success().stderr;
    assert!(
        stats.contains("stats: step ") && stats.contains("Gflop/s"),
        "{stats}"
    );
    assert!(read("a.json", 3) >= 6);

    let program = folder.path().join("rows");
    run(einc_tests::einc_command(&["build"])
        .arg(&source)
        .arg("-o")
        .arg(&program))
    .success();
    run(Command::new(&program)
        .args(&arguments)
        .args(["--profile", &file("b.json")]))
    .success();
    assert!(read("b.json", 1) >= 2);
    for launcher in launchers() {
        run(mpirun(launcher, 2, &program)
            .args(&arguments)
            .args(["--profile", &file("c.json")]))
        .success();
        assert!(read("c.json", 2) >= 4);
    }
    let wrong = run(Command::new(&program)
        .args(&arguments)
        .args(["--profile", "/nowhere/t.json"]));
    let told = wrong.fails_with(1).stderr;
    assert!(told.contains("/nowhere/t.json"), "{told}");
}

/// A rank that is stopped for a while: the other says for whom it waits, once, and the run ends well.
#[test]
fn a_stalled_rank_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("rounds.ein");
    let text = "dim N = 1200
input X: f64[N, N] = normal(0, 1)
repeat t < 800 {
  state v[i] = X[i,0]
  w[i] = sum[j] X[i,j] * v[j]
  next v[i] = w[i] / sqrt(sum[k] w[k]^2)
}
length = sum[i] v[i]^2
output length
";
    std::fs::write(&source, text).unwrap();
    let program = folder.path().join("rounds");
    run(einc_tests::einc_command(&["build"])
        .arg(&source)
        .arg("-o")
        .arg(&program))
    .success();
    for launcher in launchers() {
        // The trace's temporary is there when the rounds are about to begin.
        let script = format!(
            "case \"$OMPI_COMM_WORLD_RANK$PMI_RANK\" in 1) (
  until ls {0}/.t.json-*.part >/dev/null 2>&1; do sleep 0.02; done
  sleep 0.1; kill -STOP $$; sleep 2.5; kill -CONT $$) & esac
exec {0}/rounds --stall 0.4 --profile {0}/t.json\n",
            folder.path().display()
        );
        let stopped = folder.path().join("stopped.sh");
        std::fs::write(&stopped, script).unwrap();
        let mut command = mpirun(launcher, 2, Path::new("/bin/sh"));
        let told = run(command.arg(&stopped)).success();
        assert!(told.stdout.contains("length = 1"), "{told}");
        // The stopped rank, when it goes on, may find that it has waited too.
        let line = told
            .stderr
            .lines()
            .find(|line| line.contains("site 0 has waited 0.4 s for"));
        let line = line.unwrap_or_else(|| panic!("{launcher}: {told}"));
        assert!(line.contains("rounds.ein:"), "{told}");
    }
}
