//! Units: what NVIDIA's compiler is given, and what is kept of one that it refuses.
//!
//! Must not know when a unit is compiled.
//!
//! ```text
//! texts k, l   ->   cuda.cuh, prelude.cuh, random.cuh, k0, k1
//! ```

use crate::text::{Text, prelude};
use std::fmt::Write;
use std::fs;

/// The names of so many functions of a unit.
pub(crate) fn names(functions: usize) -> Vec<String> {
    (0..functions).map(|number| format!("k{number}")).collect()
}

/// The unit of some texts.
pub(crate) fn unit(texts: &[&Text]) -> String {
    let mut unit = [include_str!("cuda.cuh"), prelude()].join("\n");
    for (number, text) in texts.iter().enumerate() {
        let _ = write!(unit, "\n{}", text.function(&format!("k{number}")));
    }
    unit
}

/// Keeps a unit that does not compile, with the compiler's words, and says where.
pub(crate) fn kept(unit: &str, log: &str) -> String {
    let first = log
        .lines()
        .find(|line| line.contains("error"))
        .unwrap_or(log);
    let folder = tempfile::Builder::new().prefix("ein-kernels-").tempdir();
    let written = folder.and_then(|folder| {
        fs::write(folder.path().join("unit.cu"), unit)?;
        fs::write(folder.path().join("log"), log)?;
        Ok(folder.keep())
    });
    let place = match written {
        Ok(folder) => format!("they and its words are kept in {}", folder.display()),
        Err(error) => format!("they cannot be kept: {error}"),
    };
    format!("the CUDA compiler does not compile generated kernels; {place}: {first}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_text_that_does_not_compile_is_kept() {
        let error = kept(
            "void f() { nothing; }",
            "kernels.cu(1): error: \"nothing\" is undefined\n",
        );
        assert!(
            error.ends_with(": kernels.cu(1): error: \"nothing\" is undefined"),
            "{error}"
        );
        let folder = error.split("are kept in ").nth(1).unwrap();
        let folder = std::path::Path::new(folder.split(": ").next().unwrap());
        assert_eq!(
            fs::read_to_string(folder.join("unit.cu")).unwrap(),
            "void f() { nothing; }"
        );
        fs::remove_dir_all(folder).unwrap();
    }
}
