//! Matrix products left to a system's BLAS.

use einc_tests::{einc_command, run};
use std::path::{Path, PathBuf};

/// Row-major, transposed, batched and vector products, of sizes that do not divide, in both types.
const PROGRAM: &str = "\
input A: f32[130, 70] = uniform(-1, 1)
input B: f32[70, 90] = uniform(-1, 1)
input H: f64[3, 41, 50] = uniform(-1, 1)
input v: f64[50] = uniform(-1, 1)
C[i,j] = A[i,k] * B[k,j] / 4
D[j,l] = C[i,j] * C[i,l]
G[h,a,b] = H[h,a,k] * H[h,b,k]
w[h,a] = H[h,a,k] * v[k]
c = sum[i,j] C[i,j]
d = sum[j,l] D[j,l]
g = sum[h,a,b] G[h,a,b]
u = sum[h,a] w[h,a]
output c
output d
output g
output u
";

fn numbers(blas: Option<&Path>, sites: &str) -> Vec<f64> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("products.ein");
    std::fs::write(&file, PROGRAM).unwrap();
    let mut command = einc_command(&["run", "--sites", sites]);
    command.arg(&file).env_remove("EIN_BLAS");
    if let Some(blas) = blas {
        command.env("EIN_BLAS", blas);
    }
    let text = run(&mut command).success().stdout;
    let value = |line: &str| line.rsplit_once("= ").unwrap().1.parse().unwrap();
    text.lines().map(value).collect()
}

/// An OpenBLAS of the system, or the one in numpy's wheel, where a virtual environment has it.
fn openblas() -> Option<PathBuf> {
    let usual = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
    ];
    let of_system = usual
        .iter()
        .map(|folder| Path::new(folder).join("libopenblas.so.0"));
    let named = std::env::var_os("EINC_TEST_OPENBLAS").map(PathBuf::from);
    named
        .into_iter()
        .chain(of_system)
        .find(|path| path.exists())
}

#[test]
fn products_are_those_of_the_built_in_library() {
    let Some(library) = openblas() else {
        assert!(
            std::env::var_os("EINC_TEST_MPI").is_none(),
            "tests/all.sh installs libopenblas0"
        );
        eprintln!("not run: there is no OpenBLAS here (apt-get install libopenblas0)");
        return;
    };
    for sites in ["1", "3"] {
        let (own, system) = (numbers(None, sites), numbers(Some(&library), sites));
        assert_eq!(own.len(), 4);
        for (own, system) in own.iter().zip(&system) {
            assert!(
                (own - system).abs() <= 1e-3 * own.abs().max(1.0),
                "{own} and {system}"
            );
        }
    }
    let mut doctor = einc_command(&["doctor"]);
    let text = run(doctor.env("EIN_BLAS", &library)).success().stdout;
    let line = text.lines().find(|line| line.starts_with("BLAS")).unwrap();
    assert!(
        line.contains("OpenBLAS") && line.contains("openblas"),
        "{line}"
    );
}

#[test]
fn a_library_that_cannot_be_used_is_named() {
    for (wanted, said) in [
        ("/nowhere/libblas.so", "/nowhere/libblas.so"),
        ("nonsense", "`nonsense` is none of openblas, blis and mkl"),
        ("/lib/x86_64-linux-gnu/libm.so.6", "has no `cblas_sgemm`"),
    ] {
        if wanted.contains("libm") && !Path::new(wanted).exists() {
            continue;
        }
        let mut command = einc_command(&["run", "examples/digits_knn.ein"]);
        let finished = run(command.env("EIN_BLAS", wanted));
        assert_eq!(finished.status, Some(1), "{finished}");
        assert!(finished.stderr.contains("E0716"), "{finished}");
        assert!(finished.stderr.contains(said), "{finished}");
    }
    let text = run(einc_command(&["doctor"]).env_remove("EIN_BLAS"))
        .success()
        .stdout;
    assert!(text.contains("EIN_BLAS=openblas"), "{text}");
}
