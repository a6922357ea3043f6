//! Training against plain loops in double precision, on 1 to 4 sites.
//!
//! ```text
//! losses of all steps and the params at the end, of a program and of loops over the same rows
//! ```
#![allow(clippy::unwrap_used, clippy::result_large_err)]

mod carried;
mod modules;
mod other_data;
mod reference;
mod rounds;
mod rules;
mod schedules;
mod stored;
mod subnets;
mod wrong;

use ein_array::{Array, Data};
use ein_exec::{Event, Report, RunError, train_in_process};
use ein_plan::{DType, Source};
use einc_driver::arguments::DeviceKind;
use einc_driver::planned::Prepared;
use einc_driver::purpose::Purpose;
use einc_driver::session;
use einc_driver::settings::Settings;
use einc_driver::{devices, exit, load};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

/// Rows and columns of the data.
pub(crate) const ROWS: usize = 23;
pub(crate) const COLUMNS: usize = 5;

/// The outcome of a run of a program.
pub(crate) struct Run {
    pub(crate) losses: Vec<f64>,
    pub(crate) rates: Vec<f64>,
    pub(crate) validated: Vec<f64>,
    pub(crate) outputs: BTreeMap<String, Vec<f64>>,
}

/// Linear regression on random data; `rest` has what is trained and how.
pub(crate) fn regression(rest: &str) -> String {
    format!(
        "dim N = {ROWS}\ninput X: f32[N, {COLUMNS}] = uniform(-1, 1)\ninput y: f32[N] = uniform(-1, 1)\n\
         param w: f32[{COLUMNS}] = full(0.1)\nparam b: f32 = 0.2\nz[n] = X[n,d] * w[d] + b\n\
         loss = mean[n] (z[n] - y[n])^2\n{rest}\noutput w\noutput b\n"
    )
}

fn numbers(values: &Array) -> Vec<f64> {
    let data: &Data = values.data();
    (0..data.len()).map(|at| data.get(at).as_f64()).collect()
}

/// Runs a text; what is wrong with it is a failure of the test.
pub(crate) fn attempt(text: &str, sites: u32) -> Result<Run, RunError> {
    attempt_in(PathBuf::from("."), text, sites, &|_, _| {})
}

/// Runs in a folder, with a session that is changed before it runs.
pub(crate) fn attempt_in(
    folder: PathBuf,
    text: &str,
    sites: u32,
    change: &dyn Fn(&mut ein_exec::Session, &mut ein_exec::Options),
) -> Result<Run, RunError> {
    let program = load::load_text("test", "test.ein", text.into(), None, folder);
    let settings = Settings {
        sites: Some(sites),
        ..Settings::default()
    };
    let prepared = session::plan(&program, &settings, sites, Purpose::Run, None);
    let mut session = match prepared {
        Ok((Prepared::Session(session), warnings))
            if warnings.iter().all(|w| w.code == "E0629") =>
        {
            session
        }
        Ok((_, warnings)) => panic!("{warnings:?}"),
        Err(failure) => panic!(
            "{}",
            exit::drawn(failure.diagnostics, &program.texts(), Default::default())
        ),
    };
    let told = Mutex::new((vec![], vec![], vec![]));
    let watch = |event: &Event| {
        let mut told = told.lock().unwrap();
        if let Event::Step {
            loss,
            validated,
            rate,
            ..
        } = event
        {
            told.0.push(*loss);
            told.2.extend(rate);
            told.1.extend(validated.as_ref().map(|(_, value)| *value));
        }
        Ok(())
    };
    let mut options = ein_exec::Options {
        threads: sites as usize,
        base: program.base.clone(),
        ..ein_exec::Options::on(devices::open(DeviceKind::of_environment().unwrap()).unwrap())
    };
    change(&mut session, &mut options);
    let report: Report = train_in_process(&session, sites, &options, &watch)?;
    let (losses, validated, rates) = told.into_inner().unwrap();
    let printed = report.printed.iter();
    // What is stated of an exchange is what was exchanged, to the float.
    for (number, block) in session.blocks.iter().enumerate() {
        if let Some(rounds) = &block.rounds {
            let from = match report.begun {
                (begun, step) if begun == number as u64 => step,
                _ => 0,
            };
            let stated = {
                let drawn = (0, &ein_device_cpu::Cpu as &dyn ein_device::Device);
                ein_exec::session::stated(&session, block, rounds, sites, drawn, from)
            };
            for (of, name, found) in &report.exchanged {
                let expected = stated.get(name).copied().unwrap_or_default();
                if *of == number {
                    assert_eq!(
                        (found.handed, found.sent),
                        (expected.handed, expected.sent),
                        "{name} on {sites}"
                    );
                }
            }
        }
    }
    let peaks = einc_driver::training::peaks(&session);
    for (stated, held) in peaks.iter().zip(&report.peak_bytes) {
        assert!(
            held <= stated,
            "a site holds {held} bytes, {stated} were stated\n{text}"
        );
    }
    Ok(Run {
        losses,
        rates,
        validated,
        outputs: printed
            .map(|printed| (printed.name.clone(), numbers(&printed.values)))
            .collect(),
    })
}

pub(crate) fn run(text: &str, sites: u32) -> Run {
    attempt(text, sites).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

/// A generated tensor, as the language promises it: by name and element number.
pub(crate) fn made(source: &Source, name: &str, shape: &[u64]) -> Vec<f64> {
    let ranges: Vec<(u64, u64)> = shape.iter().map(|n| (0, *n)).collect();
    let dtype = match source {
        Source::Permutation => DType::I64,
        _ => DType::F32,
    };
    numbers(&ein_kernels::generate(
        source, dtype, name, 0, shape, &ranges,
    ))
}

/// Returns whether two lists are the same up to rounding.
pub(crate) fn close(found: &[f64], wanted: &[f64], what: &str) {
    assert_eq!(found.len(), wanted.len(), "{what}");
    for (at, (a, b)) in found.iter().zip(wanted).enumerate() {
        let tolerance = 2e-5 * b.abs().max(1.0);
        assert!(
            (a - b).abs() <= tolerance,
            "{what}, number {at}: {a} and {b}"
        );
    }
}
