//! Files of params: `--weights model.safetensors`, or a part of one.
//!
//! A file without a pattern holds every param; of one with a pattern the params are taken that match, and the others begin as the
//! program says. Must not know plans.
//!
//! ```text
//! --weights big.safetensors::enc.*   ->   enc.0.w begins with big.safetensors::enc.0.w, head.w as it is declared
//! ```

use crate::arguments::Weights;
use ein_plan::FileRef;
use einc_core::sema::patterns::matches;
use einc_diag::Diagnostic;
use std::{collections::BTreeMap, path::Path};

/// Where every array is that the files of params give, by name; of two with one name the later.
///
/// # Errors
/// E0701, E0702: a file that cannot be read. E0706: nothing in a file matches.
pub fn files(all: &[Weights]) -> Result<BTreeMap<String, FileRef>, Diagnostic> {
    let mut found = BTreeMap::new();
    for weights in all {
        found.extend(of_file(weights)?);
    }
    Ok(found)
}

/// Where the arrays of one file are that are taken, by name.
fn of_file(weights: &Weights) -> Result<BTreeMap<String, FileRef>, Diagnostic> {
    let keys = ein_data::keys(&weights.path).map_err(|error| {
        let message = format!("{}: {}", error.file, error.message);
        let diagnostic = Diagnostic::error(error.code, message);
        match error.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    })?;
    let pattern = weights.pattern.as_deref().unwrap_or("*");
    let taken = keys.iter().filter(|key| matches(pattern, key));
    let file = |key: &String| FileRef {
        path: weights.path.display().to_string(),
        key: Some(key.clone()),
    };
    let found: BTreeMap<String, FileRef> = taken.map(|key| (key.clone(), file(key))).collect();
    match &weights.pattern {
        Some(pattern) if found.is_empty() => {
            let message = format!(
                "{}: nothing in it is called `{pattern}`",
                weights.path.display()
            );
            Err(Diagnostic::error("E0706", message).help(format!("it holds {}", keys.join(", "))))
        }
        _ => Ok(found),
    }
}

/// Looks whether the files hold every param of a program, if one of them is given without a pattern.
///
/// # Errors
/// E0706.
pub fn complete(all: &[Weights], params: &[&str]) -> Result<(), Diagnostic> {
    let Some(whole) = all.iter().find(|weights| weights.pattern.is_none()) else {
        return Ok(());
    };
    let given = files(all)?;
    match params.iter().find(|name| !given.contains_key(**name)) {
        Some(missing) => Err(lacking(&whole.path, missing, &given)),
        None => Ok(()),
    }
}

/// Looks whether each file holds a param of a program, that matches the pattern if it is given with one.
///
/// # Errors
/// E0706.
pub fn used(all: &[Weights], params: &[&str]) -> Result<(), Diagnostic> {
    for weights in all {
        let taken = of_file(weights)?;
        if taken.keys().any(|key| params.contains(&key.as_str())) {
            continue;
        }
        let path = weights.path.display();
        let message = match &weights.pattern {
            Some(pattern) => {
                format!("{path}: what is called `{pattern}` in it is no param of the program")
            }
            None => format!("{path}: nothing in it is a param of the program"),
        };
        let taken: Vec<&str> = taken.keys().map(String::as_str).collect();
        let has = match params {
            [] => "no params".to_owned(),
            _ => params.join(", "),
        };
        let help = format!("it holds {}; the program has {has}", taken.join(", "));
        return Err(Diagnostic::error("E0706", message).help(help));
    }
    Ok(())
}

/// The error for a file without one of the params.
pub fn lacking(path: &Path, param: &str, given: &BTreeMap<String, FileRef>) -> Diagnostic {
    let message = format!("{}: holds no param `{param}`", path.display());
    let names: Vec<&str> = given.keys().map(String::as_str).collect();
    Diagnostic::error("E0706", message)
        .help(format!("it holds {}", names.join(", ")))
        .help("to take those that it holds, name them: `--weights FILE::NAMES`, where `*` stands for any text")
}
