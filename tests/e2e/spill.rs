//! Runs in less memory than what they work on: values rest on disk between two uses, and results are the same bit for bit.

use einc_tests::{Finished, einc_command, launchers, mpirun, run};
use std::fs;
use std::path::Path;
use std::process::Command;

const FACTORS: usize = 6;

/// Products with factors that are used once early and once late, the first ones latest.
fn there_and_back() -> String {
    let mut text = String::from("dim N = 150\ninput A0: f64[N, N] = uniform(-0.1, 0.1)\n");
    let mut last = String::from("A0");
    for factor in 1..=FACTORS {
        text += &format!(
            "input A{factor}: f64[N, N] = uniform(-0.1, 0.1)\nC{factor}[i,j] = tanh({last}[i,k] * A{factor}[k,j])\n"
        );
        last = format!("C{factor}");
    }
    for factor in (1..=FACTORS).rev() {
        text += &format!("D{factor}[i,j] = tanh({last}[i,k] * A{factor}[k,j])\n");
        last = format!("D{factor}");
    }
    text + "output D1\nrepeat t < 3 { state x[i,j] = A0[i,j]\n next x[i,j] = 0.5 * (x[i,k] * D1[k,j]) }\noutput x\n"
}

fn number(text: &str, field: &str) -> u64 {
    let (_, rest) = text.split_once(&format!("\"{field}\":")).unwrap();
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap();
    rest[..end].parse().unwrap()
}

fn plan(folder: &Path, arguments: &[&str]) -> String {
    let base = ["plan", "back.ein", "--format", "json"];
    let mut command = einc_command(&base);
    run(command.args(arguments).current_dir(folder))
        .success()
        .stdout
}

#[test]
fn values_rest_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("back.ein"), there_and_back()).unwrap();
    fs::create_dir(folder.join("rest")).unwrap();
    let computed = |how: &str, command: &mut Command| -> (Finished, Vec<u8>, Vec<u8>) {
        command.args(["--save", "D1=D1.npy", "--save", "x=x.npy", "--stats"]);
        let finished = run(command.current_dir(folder)).success();
        let bytes = |name: &str| {
            fs::read(folder.join(name)).unwrap_or_else(|_| panic!("{how}: {finished}"))
        };
        let left = fs::read_dir(folder.join("rest")).unwrap().count();
        assert_eq!(left, 0, "{how}: {finished}");
        let (first, second) = (bytes("D1.npy"), bytes("x.npy"));
        (finished, first, second)
    };
    for sites in ["1", "2", "3", "4"] {
        let on = ["--sites", sites];
        let whole = number(&plan(folder, &on), "peak_memory_per_site_max");
        // On four sites there is a layout that needs two fifths of it and no disk.
        let most = whole * if sites == "4" { 7 } else { 14 } / 20;
        let limit = most.to_string();
        // Without panels, which need no disk.
        let limited = [
            "--sites",
            sites,
            "--memory",
            &limit,
            "--disable-rule",
            "panels",
        ];
        let (free, first, second) = computed("whole", einc_command(&["run", "back.ein"]).args(on));
        assert!(!free.stderr.contains("to disk"), "{free}");
        let refused = run(einc_command(&["run", "back.ein"])
            .args(limited)
            .current_dir(folder));
        let refused = refused.fails_with(1);
        refused.says(&["E0996", "`--spill`: it fits, with", "written and"]);
        let resting = [&limited[..], &["--spill=rest"]].concat();
        let stated = plan(folder, &resting);
        let written = number(&stated, "spill_written");
        assert!(written > 0 && number(&stated, "spill_read") >= written);
        assert!(number(&stated, "peak_memory_per_site_max") <= most);
        let (spilled, found, also) =
            computed(sites, einc_command(&["run", "back.ein"]).args(&resting));
        // A layout for less memory may add up in another order.
        let same_layout = sites == "1";
        if same_layout {
            assert!(found == first && also == second, "not bit for bit the same");
        }
        let said = format!("site 0: wrote {written} bytes to disk and read");
        assert!(spilled.stderr.contains(&said), "{said}\n{spilled}");
    }
    let whole = number(&plan(folder, &["--sites", "2"]), "peak_memory_per_site_max");
    let limit = (whole * 7 / 10).to_string();
    let resting = ["--memory", &limit, "--spill=rest"];
    let on_two = einc_command(&["run", "back.ein", "--sites", "2", "--deterministic"]);
    let (_, first, second) = computed("two", { on_two }.args(resting));
    run(
        einc_command(&["build", "back.ein", "--deterministic", "-o", "back"])
            .args(resting)
            .current_dir(folder),
    )
    .success();
    for launcher in launchers() {
        let mut command = mpirun(launcher, 2, &folder.join("back"));
        let (finished, found, also) = computed(launcher, command.arg("--spill=rest"));
        assert!(finished.stderr.contains("bytes to disk"), "{finished}");
        assert!(found == first && also == second, "{launcher}: other bits");
    }
}

#[test]
fn a_full_disk_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("back.ein"), there_and_back()).unwrap();
    let whole = number(&plan(folder, &[]), "peak_memory_per_site_max");
    let limit = (whole * 7 / 10).to_string();
    let refused = run(einc_command(&["run", "back.ein", "--memory", &limit])
        .arg("--spill=nowhere")
        .current_dir(folder));
    refused
        .fails_with(1)
        .says(&["E0705", "nowhere", "--spill=FOLDER"]);
    // A file may have no more than 32 KiB, as on a disk without room; the signal that tells so does not end the run.
    let einc = einc_command::<&str>(&[]);
    let full = run(Command::new("sh")
        .args(["-c", "ulimit -f 64; exec \"$@\"", "sh"])
        .arg(einc.get_program())
        .args(["run", "back.ein", "--spill=.", "--memory", &limit])
        .current_dir(folder));
    full.fails_with(1)
        .says(&["E0707", "ulimit", "--spill=FOLDER"]);
    let left = fs::read_dir(folder).unwrap().count();
    assert_eq!(left, 1, "files are left behind");
}

/// What a refusal says is so: a plan for the number of sites that it names fits, and no half of them does; what outputs
/// hold is told beside what the step misses.
#[test]
fn a_refusal_names_sites_that_do() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = "dim N = 150\ninput A: f64[N, N] = uniform(-1, 1)\ninput B: f64[N, N] = uniform(-1, 1)\n\
        C[i,j] = A[i,k] * B[k,j]\nD[i,j] = C[i,k] * A[k,j]\nE[i,j] = D[i,k] * B[k,j] + C[i,j]\n\
        F[i,j] = E[j,i] * A[i,j] + D[i,j]\ns = sum[i,j] F[i,j] * C[i,j]\noutput s\noutput F\n";
    fs::write(folder.join("back.ein"), text).unwrap();
    let planned = |limit: &str, sites: u32, spills: &[&str]| {
        let limited = ["plan", "back.ein", "--memory", limit];
        let sites = ["--sites".to_string(), sites.to_string()];
        let mut command = einc_command(&limited);
        run(command.args(sites).args(spills).current_dir(folder))
    };
    let mut named = 0;
    for (limit, sites) in [
        ("600kB", 1),
        ("400kB", 1),
        ("300kB", 1),
        ("300kB", 2),
        ("200kB", 2),
    ] {
        let refused = planned(limit, sites, &[]).fails_with(1);
        let refused = refused.says(&["E0996"]);
        let Some((_, rest)) = refused
            .stderr
            .split_once("it fits on more sites: `--sites ")
        else {
            continue;
        };
        named += 1;
        let enough: u32 = rest.split('`').next().unwrap().parse().unwrap();
        planned(limit, enough, &[]).success();
        if enough / 2 > sites {
            planned(limit, enough / 2, &[]).fails_with(1);
        }
    }
    assert!(named >= 2, "{named}");

    // What loops leave behind does not rest.
    let mut text = String::from("dim N = 100\n");
    for n in 0..6 {
        text += &format!(
            "repeat t{n} < 2 {{ state x{n}[i < N, j < N] = {n}.0\n next x{n}[i,j] = 0.5 * x{n}[j,i] }}\noutput x{n}\n"
        );
    }
    fs::write(folder.join("back.ein"), text).unwrap();
    planned("170kB", 1, &["--spill"])
        .fails_with(1)
        .says(&["of outputs that are held to the end"]);
}
