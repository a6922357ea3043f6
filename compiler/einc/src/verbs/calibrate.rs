//! `einc calibrate`: measures this machine, for plans that are chosen by time.
//!
//! Must not know what is measured, or how.
//!
//! ```text
//! $ einc calibrate
//! wrote /home/me/.config/einc/machine.json
//! ```

use clap::Args;
use einc_diag::Diagnostic;
use einc_driver::{arguments::Format, calibration, exit, target};
use std::{collections::BTreeMap, fs, path::PathBuf};

/// Measure this machine, for plans that are chosen by time
#[derive(Args)]
#[command(after_help = "\
Examples:
  einc calibrate                                     once a machine
  einc plan model.ein --sites 8 --cost time          then plans by time
  einc calibrate --latency 2e-5 --bandwidth 1.25e8   for sites on a network of 1 Gb/s
  einc calibrate -o cluster.json                     elsewhere; --machine cluster.json uses it")]
pub struct Arguments {
    /// Write to a file instead of the usual place
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Seconds a message takes, if sites are not on one machine
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    latency: Option<f64>,
    /// Bytes a second between two sites, if they are not on one machine
    #[arg(long, value_name = "BYTES", value_parser = positive)]
    bandwidth: Option<f64>,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("a number above 0".into()),
    }
}

pub fn perform(arguments: Arguments) -> i32 {
    let wrong = |what: String| super::complain(Diagnostic::error("E0192", what), Format::Text);
    let Some(path) = arguments.output.or_else(calibration::usual_place) else {
        return wrong("there is no home folder to write to: use `--output FILE`".into());
    };
    if let Err(diagnostic) = target::whole("--output", &path, &BTreeMap::new()) {
        return super::complain(diagnostic, Format::Text);
    }
    let mut model = calibration::measure();
    model.alpha = arguments.latency.unwrap_or(model.alpha);
    model.beta = arguments.bandwidth.map_or(model.beta, |bytes| 1.0 / bytes);
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    match folder.and_then(|()| super::replace(&path, &calibration::text(&model))) {
        Ok(()) => {
            exit::say(&format!(
                "message    {:.3e} s\nbyte       {:.3e} s\noperation  {:.3e} s\ntouched    {:.3e} s a byte\ntuple      {:.3e} s\nwrote {}\n",
                model.alpha,
                model.beta,
                model.gamma,
                model.delta,
                model.epsilon,
                path.display()
            ));
            0
        }
        Err(error) => wrong(format!("cannot write {}: {error}", path.display())),
    }
}
