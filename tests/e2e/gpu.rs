//! `--device gpu` over a driver, a compiler and a matrix library that run on the host (`runtime/cuda/tests/host`): the path to a real GPU.

use einc_tests::{Finished, einc_command, launchers, mpirun, root, run};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A softmax of products, a batch of products whose results are turned, a scatter, a look-up, a loop and random numbers.
const PROGRAM: &str = "\
dim N = 37, D = 24, H = 3
input X: f32[N, D] = uniform(-1, 1)
input W: f32[D, H, 8] = uniform(-1, 1)
input t: i32[N] = uniform(0, 20)
Q[n, h, e] = X[n, d] * W[d, h, e]
S[h, n, m] = Q[n, h, e] * Q[m, h, e] / 8.0
A[h, n, m] = exp(S[h, n, m]) / (sum[k] exp(S[h, n, k]))
Z[n, h, e] = A[h, n, m] * Q[m, h, e]
B[t[n]]: f32[20] += Z[n, 1, 2]
y[n] = B[t[n]] + Z[n, 0, 0]
repeat k < 5 {
  state s = 0.0
  next s = s + (max[n] y[n]) / (k + 1)
}
z = sum[n, h, e] Z[n, h, e]
output y
output z
output s
";

/// The folder of the libraries, built when first asked for.
fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("host-cuda");
        let script = root().join("runtime/cuda/tests/host/build.sh");
        run(Command::new("sh").arg(script).arg(&folder)).success();
        folder
    })
}

/// The command with a cache of compiled kernels that is the tests' own.
fn cached(command: &mut Command) -> &mut Command {
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("host-cuda-cache");
    command.env("XDG_CACHE_HOME", cache)
}

/// A folder with these libraries alone.
fn some(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        std::fs::copy(libraries().join(name), folder.path().join(name)).unwrap();
    }
    folder
}

fn program(folder: &Path) -> PathBuf {
    let file = folder.join("model.ein");
    std::fs::write(&file, PROGRAM).unwrap();
    file
}

/// Runs the program with these libraries.
fn on_gpu(libraries: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    let mut command = einc_command(&["run", "--device", "gpu"]);
    command.args(arguments).arg(program(folder.path()));
    command.env("LD_LIBRARY_PATH", libraries);
    run(cached(&mut command).envs(variables.iter().copied()))
}

fn numbers(text: &str) -> Vec<f64> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
    words.filter_map(|word| word.parse().ok()).collect()
}

fn assert_near(found: &str, wanted: &str) {
    let (found_numbers, wanted_numbers) = (numbers(found), numbers(wanted));
    assert_eq!(
        found_numbers.len(),
        wanted_numbers.len(),
        "{found}\n{wanted}"
    );
    assert!(wanted_numbers.len() > 30, "{wanted}");
    for (a, b) in found_numbers.iter().zip(&wanted_numbers) {
        assert!(
            (a - b).abs() <= 1e-4 * b.abs().max(1.0),
            "{found}\nnot\n{wanted}"
        );
    }
}

/// Compares the numbers that trainings end with.
fn assert_learnt(found: &str, wanted: &str) {
    let (found, wanted) = (numbers(found), numbers(wanted));
    assert_eq!(found.len(), wanted.len());
    for (a, b) in found.iter().zip(&wanted) {
        assert!(
            (a - b).abs() <= 1e-3 * b.abs().max(1.0),
            "{found:?}, {wanted:?}"
        );
    }
}

/// The processor's results.
fn wanted() -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut command = einc_command(&["run"]);
    run(command.arg(program(folder.path()))).success().stdout
}

#[test]
fn a_gpu_gives_what_the_processor_gives() {
    let wanted = wanted();
    for sites in ["1", "2", "3", "4", "5"] {
        let found = on_gpu(libraries(), &["--sites", sites], &[]).success();
        assert_eq!(found.stderr, "");
        assert_near(&found.stdout, &wanted);
    }
    // A GPU for each site; two for three sites.
    for (sites, gpus) in [("2", "4"), ("3", "2")] {
        let found = on_gpu(
            libraries(),
            &["--sites", sites],
            &[("HOST_CUDA_GPUS", gpus)],
        );
        assert_near(&found.success().stdout, &wanted);
    }
    let found = on_gpu(libraries(), &["--deterministic", "--sites", "3"], &[]).success();
    assert_near(&found.stdout, &wanted);
}

#[test]
fn training_on_a_gpu_learns_as_on_the_processor() {
    let result = |device: &str| {
        let mut command = einc_command(&["run", "examples/logistic.ein", "--progress", "none"]);
        command
            .args(["--device", device])
            .env("LD_LIBRARY_PATH", libraries());
        run(cached(&mut command)).success().stdout
    };
    assert_learnt(&result("gpu"), &result("cpu"));
}

#[test]
fn a_built_program_and_its_ranks_use_gpus() {
    let folder = tempfile::tempdir().unwrap();
    let (model, built) = (program(folder.path()), folder.path().join("model"));
    run(einc_command(&["build"]).arg(&model).arg("-o").arg(&built)).success();
    let wanted = wanted();
    let mut alone = Command::new(&built);
    alone
        .args(["--device", "gpu"])
        .env("LD_LIBRARY_PATH", libraries());
    assert_near(&run(cached(&mut alone)).success().stdout, &wanted);
    for launcher in launchers() {
        // The second rank takes the second GPU, where there is one.
        for gpus in ["1", "2"] {
            let mut ranks = mpirun(launcher, 2, &built);
            ranks.env("EIN_DEVICE", "gpu").env("HOST_CUDA_GPUS", gpus);
            let inherited = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
            let own = std::iter::once(libraries().to_owned());
            let all = std::env::join_paths(own.chain(std::env::split_paths(&inherited)));
            let ranks = ranks.env("LD_LIBRARY_PATH", all.unwrap());
            let found = run(cached(ranks)).success();
            assert_near(&found.stdout, &wanted);
        }
    }
}

#[test]
fn compiled_kernels_are_kept_and_damaged_ones_replaced() {
    let cache = tempfile::tempdir().unwrap();
    let variables = [("XDG_CACHE_HOME", cache.path().to_str().unwrap())];
    let wanted = on_gpu(libraries(), &[], &variables).success().stdout;
    let folder = cache.path().join("einc/kernels");
    let files = || {
        let mut all: Vec<PathBuf> = (std::fs::read_dir(&folder).unwrap())
            .map(|entry| entry.unwrap().path())
            .collect();
        all.sort();
        all
    };
    let first = files();
    assert!(!first.is_empty());
    // Without a compiler behind them, kept kernels are all that there is.
    let no_compiler = [variables[0], ("CXX", "false")];
    let found = on_gpu(libraries(), &[], &no_compiler).success();
    assert_eq!((found.stdout, files()), (wanted.clone(), first.clone()));
    std::fs::write(&first[0], b"damaged").unwrap();
    on_gpu(libraries(), &[], &no_compiler).fails_with(3);
    let found = on_gpu(libraries(), &[], &variables).success();
    assert_eq!((found.stdout, files()), (wanted, first));
}

/// Builds a program of this folder with kernels for GPUs.
fn built_for(architectures: &str, folder: &Path, model: &Path) -> PathBuf {
    let built = folder.join("model");
    let mut command = einc_command(&["build", "--gpu-arch", architectures, "-o"]);
    command.arg(&built).arg(model);
    command.env("LD_LIBRARY_PATH", libraries());
    run(&mut command).success();
    built
}

#[test]
fn kernels_that_are_built_ahead_need_no_compiler() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let built = built_for("sm_80,sm_90", folder.path(), &program(folder.path()));
    let no_compiler = some(&["libcuda.so", "libcublas.so"]);
    let start = |libraries: &Path, architecture: &str, sites: &str| {
        let mut command = Command::new(&built);
        command.args(["--device", "gpu", "--sites", sites]);
        command.env("XDG_CACHE_HOME", cache.path());
        command.env("LD_LIBRARY_PATH", libraries);
        run(command.env("HOST_CUDA_ARCHITECTURE", architecture))
    };
    let wanted = wanted();
    // Machine code of the GPU's own architecture or generation, or portable text.
    for architecture in ["80", "86", "90", "100"] {
        let found = start(no_compiler.path(), architecture, "1").success();
        assert_eq!(found.stderr, "");
        assert_near(&found.stdout, &wanted);
    }
    assert!(!cache.path().join("einc").exists());
    let old = start(no_compiler.path(), "75", "1").fails_with(1);
    old.says(&["E0735", "libnvrtc", "no image of a kernel for sm_75"]);
    // The plan for other sites has other kernels, which a compiler adds.
    for _ in 0..3 {
        let others = start(no_compiler.path(), "90", "3").fails_with(1);
        others.says(&["E0735", "libnvrtc", "these sites"]);
    }
    let others = start(libraries(), "90", "3").success();
    assert_near(&others.stdout, &wanted);
    // The matrix library may be missing, too.
    let driver = some(&["libcuda.so"]);
    let found = start(driver.path(), "90", "1").success();
    assert!(found.stderr.contains("libcublas"), "{found}");
    assert_near(&found.stdout, &wanted);
}

#[test]
fn a_training_that_is_built_ahead_needs_no_compiler() {
    let folder = tempfile::tempdir().unwrap();
    let model = root().join("examples/logistic.ein");
    let built = built_for("sm_90", folder.path(), &model);
    let no_compiler = some(&["libcuda.so", "libcublas.so"]);
    let result = |device: &str| {
        let mut command = Command::new(&built);
        command.args(["--progress", "none", "--device", device]);
        command.env("LD_LIBRARY_PATH", no_compiler.path());
        run(&mut command).success().stdout
    };
    assert_learnt(&result("gpu"), &result("cpu"));
}

#[test]
fn kernels_that_cannot_be_built_ahead_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let model = program(folder.path());
    let sizes = folder.path().join("sizes.ein");
    std::fs::write(
        &sizes,
        "dim N\ninput x: f32[N]\ny = sum[n] x[n]\noutput y\n",
    )
    .unwrap();
    let no_compiler = some(&["libcuda.so"]);
    let build = |libraries: &Path, architecture: &str, model: &Path| {
        let mut command = einc_command(&["build", "--gpu-arch", architecture, "-o"]);
        command.arg(folder.path().join("built")).arg(model);
        run(command.env("LD_LIBRARY_PATH", libraries))
    };
    let found = build(no_compiler.path(), "sm_90", &model).fails_with(1);
    found.says(&["E0738", "libnvrtc", "LD_LIBRARY_PATH"]);
    let found = build(libraries(), "sm_90,sm_60", &model).fails_with(1);
    found.says(&["E0738", "no code for sm_60", "sm_80, sm_90"]);
    let found = build(libraries(), "90", &model).fails_with(2);
    found.says(&["--gpu-arch", "sm_90"]);
    let found = build(libraries(), "sm_90", &sizes).fails_with(2);
    found.says(&["E0738", "planned when it starts", "--input", "--sites"]);
    assert!(!folder.path().join("built").exists());
}

#[test]
fn without_a_matrix_library_generated_kernels_multiply() {
    let libraries = some(&["libcuda.so", "libnvrtc.so"]);
    let found = on_gpu(libraries.path(), &[], &[]).success();
    assert!(found.stderr.contains("libcublas"), "{found}");
    assert_near(&found.stdout, &wanted());
}

#[test]
fn a_gpu_that_cannot_be_used_is_told_before_the_run() {
    let no_compiler = some(&["libcuda.so"]);
    let found = on_gpu(no_compiler.path(), &[], &[]).fails_with(1);
    found.says(&["E0718", "libnvrtc", "LD_LIBRARY_PATH"]);
    let found = on_gpu(libraries(), &[], &[("HOST_CUDA_GPUS", "0")]).fails_with(1);
    found.says(&["E0718", "finds no GPU", "einc doctor"]);
    let doctor = |libraries: &Path| {
        let mut command = einc_command(&["doctor"]);
        run(command.env("LD_LIBRARY_PATH", libraries))
            .success()
            .stdout
    };
    let all = doctor(libraries());
    assert!(
        all.contains("GPU         Host GPU 0, sm_90, 4.0 GiB"),
        "{all}"
    );
    let some = doctor(no_compiler.path());
    assert!(
        some.contains("libnvrtc") && some.contains("libcublas"),
        "{some}"
    );
}

/// The figures of a machine whose GPU takes so many seconds for a kernel.
fn figures(folder: &Path, kernel: &str) -> String {
    let text = format!(
        "format = \"einc-machine/2\"\n[compute]\noperation = 1e-11\ntouched = 1e-10\ntuple = 1e-6\n\
        [node]\nmessage = 1e-6\nbyte = 1e-10\n\
        [gpu]\nbyte = 1e-11\n[gpu.compute]\noperation = 1e-14\ntouched = 1e-13\ntuple = {kernel}\n"
    );
    let file = folder.join(format!("{kernel}.toml"));
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

#[test]
fn the_faster_device_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (quick, slow) = (
        figures(folder.path(), "1e-9"),
        figures(folder.path(), "1.0"),
    );
    let taken_of = |bytes: &str, machine: &[&str], libraries: &Path| {
        let mut command = einc_command(&["run", "--device", "auto", "--stats"]);
        command.args(machine).arg(program(folder.path()));
        command.env("LD_LIBRARY_PATH", libraries);
        command.env("HOST_CUDA_MEMORY", bytes);
        let config = command.env("XDG_CONFIG_HOME", folder.path());
        let found = run(cached(config)).success();
        found.stderr.contains("of its GPU's memory")
    };
    let taken = |machine: &[&str], libraries: &Path| taken_of("1000000", machine, libraries);
    assert!(taken(&["--machine", &quick], libraries()));
    assert!(!taken_of("20000", &["--machine", &quick], libraries()));
    assert!(!taken(&["--machine", &slow], libraries()));
    // Nothing is known of the GPU; there is none, or its compiler is missing.
    assert!(taken(&[], libraries()));
    assert!(!taken(&["--machine", &quick], folder.path()));
    let driver = some(&["libcuda.so"]);
    assert!(!taken(&["--machine", &quick], driver.path()));
}

#[test]
fn plans_for_a_gpu_follow_its_figures_where_there_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let (quick, slow) = (
        figures(folder.path(), "1e-9"),
        figures(folder.path(), "1.0"),
    );
    let planned = |arguments: &[&str]| {
        let mut command = einc_command(&["plan"]);
        run(command.args(arguments).arg(program(folder.path())))
    };
    for (machine, device) in [(&quick, "device: gpu; "), (&slow, "device: cpu; ")] {
        let found = planned(&["--device", "auto", "--machine", machine]).success();
        assert!(found.stdout.starts_with(device), "{found}");
    }
    let estimate = |device: &str| {
        let found = planned(&["--device", device, "--machine", &slow]).success();
        let line = found.stdout.lines().find(|line| line.contains("estimated"));
        line.unwrap().to_owned()
    };
    assert!(estimate("gpu").ends_with(" s") && !estimate("gpu").ends_with("ms"));
    assert!(estimate("cpu").ends_with("us"), "{}", estimate("cpu"));
    // X, W and t are made there; y, z and s are given out.
    let found = planned(&["--device", "gpu"]).success();
    let copied = "on a GPU: 0 B copied to it at a site, 156 B back\nplan for 1 site";
    assert!(found.stdout.starts_with(copied), "{found}");
    let text = std::fs::read_to_string(&slow).unwrap();
    let (without, _) = text.split_once("[gpu]").unwrap();
    std::fs::write(&slow, without).unwrap();
    for device in ["gpu", "auto"] {
        planned(&["--device", device, "--machine", &slow])
            .fails_with(1)
            .says(&["E0193", "the file has no table `[gpu]`"]);
    }
}

#[test]
fn the_figures_of_a_gpu_are_measured() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = einc_command(&["calibrate", "-o", "machine.toml"]);
    command.env("LD_LIBRARY_PATH", libraries());
    let found = run(cached(&mut command).current_dir(folder.path())).success();
    for words in ["on the GPU:", "wrote machine.toml"] {
        assert!(found.stdout.contains(words), "{found}");
    }
    let text = std::fs::read_to_string(folder.path().join("machine.toml")).unwrap();
    assert!(text.contains("[gpu.compute]\noperation = "), "{text}");
    let mut command = einc_command(&["plan", "--device", "auto", "--machine", "machine.toml"]);
    command
        .arg(program(folder.path()))
        .current_dir(folder.path());
    let found = run(&mut command).success();
    assert!(found.stdout.starts_with("device: "), "{found}");
}

#[test]
fn a_gpu_that_stops_says_where() {
    let found = on_gpu(libraries(), &[], &[("HOST_CUDA_FAILS", "cuLaunchKernel")]).fails_with(1);
    found.says(&[
        "E0735",
        "Host GPU 0",
        "cuLaunchKernel",
        "CUDA_ERROR_LAUNCH_FAILED",
        "model.ein",
    ]);
    let found = on_gpu(libraries(), &[], &[("HOST_CUDA_FAILS", "cuMemAllocAsync")]).fails_with(1);
    found.says(&[
        "E0717",
        "the GPU has not enough memory",
        "model.ein",
        "--gpu-memory",
    ]);
    // What the plan lacks is told in front of the run.
    let found = on_gpu(libraries(), &[], &[("HOST_CUDA_MEMORY", "20000")]).fails_with(1);
    found.says(&[
        "E0717",
        "the plan holds 36.9 kB in the memory of gpu 0, of which 20.0 kB are free",
        "`--gpu-memory 20000`",
    ]);
}
