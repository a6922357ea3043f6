//! Products of large matrices in less memory than their rows and columns take: they are taken in panels.

use einc_tests::{Tensor, einc_command, launchers, mpirun, run};
use std::fs;

/// A product of 10 and 13 MB, of sizes that divide by little.
const PRODUCT: &str = "dim M = 700\ndim N = 903\ndim K = 1801\n\
    input A: f64[M, K] = normal(0, 1)\ninput B: f64[K, N] = normal(0, 1)\n\
    C[i, j] = A[i, k] * B[k, j]\noutput C\n";

#[test]
fn a_product_that_does_not_fit_is_taken_in_panels() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("product.ein"), PRODUCT).unwrap();
    let in_folder = |arguments: &[&str]| {
        let mut command = einc_command(arguments);
        command.current_dir(folder);
        command
    };
    let result = || Tensor::read(&folder.join("C.npy"));
    run(&mut in_folder(&["run", "product.ein", "--save", "C=C.npy"])).success();
    let wanted = result();
    // Rows and columns take 11.5 MB of 4 sites, 10 MB of 5.
    for (sites, limit) in [("4", "10MB"), ("5", "8800kB"), ("9", "5500kB")] {
        let limited = ["product.ein", "--sites", sites, "--memory", limit];
        let plan = run(in_folder(&["plan"]).args(limited)).success();
        assert!(plan.stdout.contains("repeat C.panel"), "{plan}");
        run(in_folder(&["run"])
            .args(limited)
            .args(["--save", "C=C.npy", "--stats"]))
        .success();
        result().assert_close(&wanted, 1e-12, sites);
        let whole = run(in_folder(&["plan"])
            .args(limited)
            .args(["--disable-rule", "panels"]));
        assert!(!whole.stdout.contains("C.panel"), "{whole}");
    }
    let limit = ["--sites", "4", "--memory", "10MB"];
    run(in_folder(&["build", "product.ein", "-o", "product"]).args(limit)).success();
    for launcher in launchers() {
        let mut ranks = mpirun(launcher, 4, &folder.join("product"));
        run(ranks.args(["--save", "C=C.npy"]).current_dir(folder)).success();
        result().assert_close(&wanted, 1e-12, launcher);
    }
}

#[test]
fn a_product_of_large_matrices_fits_many_small_sites() {
    let folder = tempfile::tempdir().unwrap();
    let text = "dim N = 30000\ninput A: f32[N, N]\ninput B: f32[N, N]\nC[i, j] = A[i, k] * B[k, j]\noutput C\n";
    fs::write(folder.path().join("large.ein"), text).unwrap();
    // Rows and columns take 720 MB of each site.
    let limited = ["plan", "large.ein", "--sites", "100", "--memory", "250MB"];
    let plan = run(einc_command(&limited).current_dir(folder.path())).success();
    assert!(plan.stdout.contains("repeat C.panel"), "{plan}");
}
