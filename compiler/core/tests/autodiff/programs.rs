//! The cases in files.

use crate::check;
use std::path::Path;

#[test]
fn cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/autodiff/cases");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for case in text.split("// ----\n") {
            check(case);
            count += 1;
        }
    }
    assert!(count >= 20, "only {count} cases");
}
