//! The plans of all examples, as `einc plan` prints them: a change of any of them is reviewed as a diff.

use einc_core::pipeline::report::PlanReport;
use einc_tests::{einc, root};
use std::sync::OnceLock;

/// The examples, with sizes for which planning is worth it.
const EXAMPLES: [&str; 31] = [
    "attention",
    "block_inverse",
    "ccsd",
    "chain",
    "charlm",
    "cnn",
    "conv",
    "conv1d",
    "digits",
    "digits_knn",
    "embedding",
    "ffnn_step",
    "gaussian_mixture",
    "gcd",
    "graphs",
    "hops",
    "kmeans",
    "linear_solvers",
    "logistic",
    "lstm",
    "matfac",
    "matmul",
    "moe",
    "nearest",
    "page_rank",
    "quantum",
    "ridge",
    "smo",
    "spectral",
    "statistics",
    "triangles",
];

#[test]
fn the_plans_of_the_examples_are_these() {
    let folder = root().join("examples");
    let there = std::fs::read_dir(&folder).unwrap().filter_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.strip_suffix(".ein").map(str::to_string)
    });
    let mut there: Vec<String> = there.collect();
    there.sort();
    assert_eq!(there, EXAMPLES, "every example has its plans here");
    for example in EXAMPLES {
        // The search takes long for nets with many tensors on meshes of three axes.
        let sites: &[&str] = match example {
            "charlm" => &["1", "4", "5"],
            "cnn" | "lstm" => &["1", "4", "5", "8"],
            _ => &["1", "4", "5", "8", "64"],
        };
        for sites in sites {
            let file = format!("examples/{example}.ein");
            let finished = einc(&["plan", &file, "--sites", sites]).success();
            insta::assert_snapshot!(format!("{example}_on_{sites}"), finished.stdout);
        }
    }
}

#[test]
fn the_loops_of_the_examples_are_these() {
    for example in ["attention", "digits"] {
        let file = format!("examples/{example}.ein");
        let text = einc(&["plan", &file, "--kernels"]).success().stdout;
        insta::assert_snapshot!(format!("{example}_kernels"), text);
        // What is printed is the plan: comments aside, it reads back to the text that it was.
        let plan: ein_plan::Plan = text.parse().unwrap();
        assert_eq!(ein_plan::print::WithLoops(&plan).to_string(), text);
        ein_plan::verify::verify(&plan).unwrap();
    }
}

#[test]
fn what_a_gpu_would_run_of_attention_is_this() {
    let text = einc(&["plan", "examples/attention.ein", "--kernels=cuda"]).success();
    insta::assert_snapshot!("attention_cuda", text.stdout);
}

/// A program whose data are elsewhere, so that something moves.
fn product() -> &'static str {
    static FILE: OnceLock<(tempfile::TempDir, String)> = OnceLock::new();
    let (_, file) = FILE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("product.ein");
        let text = "dim I = 4096\ndim K = 4096\ndim J = 4096\ninput A: f32[I, K]\ninput B: f32[K, J]\n\
                    C[i,j] = A[i,k] * B[k,j]\noutput C\n";
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap().to_string();
        (folder, file)
    });
    file
}

fn plan(arguments: &[&str]) -> String {
    let base = ["plan", product(), "--sites", "5"];
    einc(&[&base[..], arguments].concat()).success().stdout
}

#[test]
fn a_plan_as_json_says_what_its_text_says() {
    let report: PlanReport = serde_json::from_str(&plan(&["--format", "json"])).unwrap();
    assert_eq!((report.schema.as_str(), report.sites), ("einc-plan/1", 5));
    let text = plan(&[]);
    assert!(text.contains(&format!("transfer {} floats", report.cost.transfer)));
    assert_eq!(
        report.steps.iter().map(|step| step.transfer).sum::<u64>(),
        report.cost.transfer
    );
    assert_eq!(
        report.steps.iter().map(|step| step.bytes).sum::<u64>(),
        report.cost.bytes
    );
    for step in &report.steps {
        assert!(text.contains(&step.text), "{} in\n{text}", step.text);
        assert!(step.inputs.iter().all(|input| *input < step.step));
        assert_eq!(step.moves(), !step.because.is_empty(), "{step:?}");
        assert!(step.source.line > 0 && !step.source.text.is_empty());
    }
    assert!(report.alternatives.is_empty() && report.rewrites.is_empty());
}

#[test]
fn a_plan_says_why_a_tensor_moves_whole() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("shift.ein");
    let text = "input x: f64[1000] = normal(0, 1)\nz[i] = sum[j] x[i] * x[j]\na[i < 1000] = z[(7 * i) % 1000]\noutput a\n";
    std::fs::write(&program, text).unwrap();
    let program = program.to_str().unwrap();
    let plan = einc(&["plan", program, "--sites", "4", "--format", "json"]).success();
    let report: PlanReport = serde_json::from_str(&plan.stdout).unwrap();
    let moved = report
        .steps
        .iter()
        .find(|step| step.tensor == "z" && step.moves());
    let because = &moved.expect("`z` is cut and read at other sites").because;
    assert!(
        because.contains("where no index stands alone in dimension 1"),
        "{because}"
    );
}

#[test]
fn a_plan_is_a_graph_and_a_page() {
    let report: PlanReport = serde_json::from_str(&plan(&["--format", "json"])).unwrap();
    let (dot, html) = (plan(&["--format", "dot"]), plan(&["--format", "html"]));
    for step in &report.steps {
        assert!(dot.contains(&format!("s{} [shape=", step.step)), "{dot}");
        assert!(html.contains(&format!("<code>{}</code>", step.name)));
        for input in &step.inputs {
            assert!(dot.contains(&format!("s{input} -> s{};", step.step)));
        }
    }
    assert!(html.starts_with("<!DOCTYPE html>") && html.trim_end().ends_with("</html>"));
    for outside in ["http", "<script", "<link", "@import", "url("] {
        assert!(!html.contains(outside), "the page needs {outside}");
    }
}

/// Of a training: a box for each phase of each part, links that open something, and nothing that is wider than the page.
#[test]
fn the_page_of_a_long_plan_fits_a_screen() {
    let page = einc(&[
        "plan",
        "examples/charlm.ein",
        "--sites",
        "4",
        "--format",
        "html",
    ])
    .success()
    .stdout;
    let (first, _) = page.split_once("<section").expect("boxes open sections");
    for phase in ["sources", "forward", "gradients", "updates"] {
        assert!(first.contains(&format!(">{phase}</text>")), "{first}");
    }
    let links: Vec<&str> = first.split("<a href=\"#").skip(1).collect();
    assert!((10..=28).contains(&links.len()), "{first}");
    for link in links {
        let (name, _) = link.split_once('"').expect("a link has an end");
        assert!(page.contains(&format!("<section class=\"open\" id=\"{name}\">")));
    }
    let number = |text: &str| text.split('"').next().and_then(|n| n.parse::<u32>().ok());
    for drawn in page.split("<svg width=\"").skip(1) {
        assert!(number(drawn).is_some_and(|width| width <= 1200), "{drawn}");
    }
    let height = first.split("height=\"").nth(1).and_then(number);
    assert!(height.is_some_and(|height| height <= 600), "{first}");
    // A small neighbour may share the box.
    let titles = first.split("<title>").skip(1);
    let titles = titles.filter_map(|title| title.split('<').next());
    let of_layers = |title: &&str| {
        matches!(
            title.split_once(", "),
            Some(("layers" | "model … layers", _))
        )
    };
    let layers: Vec<&str> = titles.filter(of_layers).collect();
    assert_eq!(layers.len(), 4, "{first}");
    assert!(
        layers[2].contains("moves ") && layers[2].ends_with("(gradients)"),
        "{layers:?}"
    );
}

#[test]
fn what_changed_since_a_plan_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("old.json");
    let old = old.to_str().unwrap();
    assert_eq!(plan(&["--format", "json", "-o", old]), "");
    assert_eq!(plan(&["--diff", old]), "the plans are the same\n");
    let changed = plan(&["--diff", old, "--dim", "K=100"]);
    assert!(changed.contains("cost.transfer"), "{changed}");
    std::fs::write(old, "{}").unwrap();
    let refused = einc(&["plan", product(), "--diff", old]);
    assert_eq!(refused.status, Some(1), "{refused}");
    assert!(refused.stderr.contains("no plan"), "{refused}");
}

#[test]
fn other_plans_are_shown_with_why_they_lost() {
    let text = plan(&["--compare"]);
    let (_, table) = text.split_once("\nother plans:\n").unwrap();
    for name in ["chosen", "BMM", "CMM", "RMM", "one site"] {
        let line = table
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        assert!(line.is_some(), "{name} in\n{text}");
    }
    let lost = table.lines().filter(|line| {
        line.contains("more floats") || line.contains("an even share") || line.contains("same")
    });
    assert!(lost.count() >= 3, "{text}");
}

#[test]
fn a_plan_that_does_not_fit_says_what_is_missing() {
    let base = ["plan", product(), "--sites", "4", "--memory"];
    let refused = einc(&[&base[..], &["1MB"]].concat());
    assert_eq!(refused.status, Some(1), "{refused}");
    assert!(refused.stderr.contains("E0996"), "{refused}");
    for what in ["`", "1.0 MB", "more sites", "--sites"] {
        assert!(refused.stderr.contains(what), "{what} in\n{refused}");
    }
    einc(&[&base[..], &["8GiB"]].concat()).success();
}

#[test]
fn rules_are_listed_and_can_be_left_out() {
    let list = einc(&["rules"]).success().stdout;
    for name in ["R1-1", "R1-7", "R2-1", "R2-7", "BMM", "CMM", "RMM"] {
        assert!(list.lines().any(|line| line.trim_start().starts_with(name)));
        let page = einc(&["rules", name]).success().stdout;
        assert!(page.contains("left") && page.contains("right"), "{page}");
    }
    let wrong = einc(&["plan", "examples/matmul.ein", "--disable-rule", "R2-9"]);
    assert_eq!(wrong.status, Some(2), "{wrong}");
    assert!(wrong.stderr.contains("did you mean"), "{wrong}");
}
