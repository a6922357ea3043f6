//! Runs the program beside this file that each library function has, and compares with the values written in it.
//!
//! A program's lines `//= name: v v v` give the elements of an output in row-major order; `reference.py` prints them
//! from plain loops over the formulas.
//!
//! ```text
//! relu.ein   //= y: 0 0 0 0.25 1 1.75 2.5
//! ```
#![allow(clippy::unwrap_used)]

use ein_data::Reader;
use ein_plan::FileRef;
use einc_driver::arguments::DeviceKind;
use einc_driver::planned::Prepared;
use einc_driver::purpose::Purpose;
use einc_driver::settings::Settings;
use einc_driver::{devices, load, session};
use std::fs;
use std::path::{Path, PathBuf};

/// Relative to 1 or the value, whichever is larger: results are f32, expected values double precision.
const TOLERANCE: f64 = 5e-6;

fn programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ein"))
        .collect();
    found.sort();
    assert!(!found.is_empty());
    found
}

/// Random numbers that a program draws on a device that computes point by point; its tolerances follow from the number.
const FEW_DRAWS: i64 = 2000;

/// Outputs and their elements.
fn expected(text: &str) -> Vec<(&str, Vec<f64>)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("//= "));
    lines
        .map(|line| {
            let (name, values) = line.split_once(": ").unwrap();
            let values = values
                .split_whitespace()
                .map(|value| value.parse().unwrap());
            (name, values.collect())
        })
        .collect()
}

/// Runs a program on a number of sites and says what is wrong.
fn run(path: &Path, sites: u32) -> Result<(), String> {
    let text = fs::read_to_string(path).unwrap();
    let wanted = expected(&text);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(format!("{name}.npy"));
    let kind = DeviceKind::of_environment()?;
    let draws = (kind != DeviceKind::Cpu && text.contains("\ndim DRAWS ="))
        .then(|| ("DRAWS".to_owned(), FEW_DRAWS));
    let settings = Settings {
        dims: draws.into_iter().collect(),
        saves: wanted
            .iter()
            .map(|(name, _)| (name.to_string(), file(name)))
            .collect(),
        sites: Some(sites),
        ..Settings::default()
    };
    let told = |diagnostics: &[einc_diag::Diagnostic]| format!("{diagnostics:#?}");
    let program = load::load(path).map_err(|diagnostic| told(&[diagnostic]))?;
    let (planned, _) = session::plan(&program, &settings, sites, Purpose::Run, None)
        .map_err(|failure| told(&failure.diagnostics))?;
    let device = devices::open(kind).map_err(|failure| told(&failure.diagnostics))?;
    let options = ein_exec::Options {
        seed: 0,
        threads: 2,
        base: program.base.clone(),
        inputs: settings.inputs.clone(),
        saves: settings.saves.clone(),
        ..ein_exec::Options::on(device)
    };
    let Prepared::Plan(plan) = planned else {
        return Err("a program without training has a plan".into());
    };
    ein_exec::run_in_process(&plan, &options).map_err(|error| format!("{error:?}"))?;
    for (name, values) in wanted {
        let path = file(name).display().to_string();
        let reader =
            Reader::open(&FileRef { path, key: None }).map_err(|error| error.to_string())?;
        let ranges: Vec<_> = reader
            .header()
            .shape
            .iter()
            .map(|extent| (0, *extent))
            .collect();
        let array = reader.read(&ranges).map_err(|error| error.to_string())?;
        if array.data().len() != values.len() {
            return Err(format!(
                "{name} is {}, not {} values",
                reader.header(),
                values.len()
            ));
        }
        for (at, value) in values.into_iter().enumerate() {
            let found = array.data().get(at).as_f64();
            // Not "greater": a NaN is wrong, too. Infinite values are equal or not.
            if found == value || (found - value).abs() <= TOLERANCE * value.abs().max(1.0) {
                continue;
            }
            return Err(format!("element {at} of {name} is {found}, not {value}"));
        }
    }
    Ok(())
}

#[test]
fn programs_and_library_parse_and_are_formatted() {
    let library = ein_stdlib::LIBRARIES
        .iter()
        .map(|library| (library.name.to_owned(), library.text.to_owned()));
    let programs = programs().into_iter().map(|path| {
        (
            path.display().to_string(),
            fs::read_to_string(path).unwrap(),
        )
    });
    for (name, text) in library.chain(programs) {
        let parsed = einc_syntax::parse(einc_diag::FileId(0), &text);
        assert!(
            parsed.diagnostics.is_empty(),
            "{name}: {:#?}",
            parsed.diagnostics
        );
        let formatted = einc_syntax::format(&text).unwrap();
        assert!(
            formatted == text,
            "{name} is not formatted; it would be:\n{formatted}"
        );
    }
}

#[test]
fn every_function_gives_its_values_on_1_to_4_sites() {
    let mut wrong = String::new();
    for path in programs() {
        for sites in 1..=4 {
            if let Err(why) = run(&path, sites) {
                wrong += &format!("{} on {sites} sites: {why}\n", path.display());
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_compiler_knows_which_library_has_a_function() {
    let own = ein_stdlib::LIBRARIES.iter().map(|library| {
        let functions = library.text.lines().filter_map(|line| {
            let (name, _) = line.strip_prefix("fn ")?.split_once('(')?;
            Some(name)
        });
        let name = library.path.strip_prefix("std.").unwrap();
        (name, functions.collect::<Vec<&str>>())
    });
    let known = einc_syntax::elsewhere::LIBRARY.iter();
    assert!(own.eq(known.map(|(name, functions)| (*name, functions.to_vec()))));
}

#[test]
fn a_library_without_use_is_hinted_at() {
    let folder = tempfile::tempdir().unwrap();
    for library in ein_stdlib::LIBRARIES {
        let name = library.path.strip_prefix("std.").unwrap();
        let path = folder.path().join(format!("{name}.ein"));
        let text = format!("input x: f32[3]\ny = {name}.unknown(x)\noutput y\n");
        fs::write(&path, text).unwrap();
        let program = load::load(&path).unwrap();
        let planned = session::plan(&program, &Settings::default(), 1, Purpose::Run, None);
        let told = format!("{:?}", planned.err().unwrap().diagnostics);
        let help = format!("write `use {}`", library.path);
        assert!(told.contains(&help), "{told}");
    }
}
