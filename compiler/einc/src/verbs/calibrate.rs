//! `einc calibrate`: measures this machine, for plans that are chosen by time.
//!
//! Must not know what is measured, or how.
//!
//! ```text
//! $ einc calibrate
//! wrote /home/me/.config/einc/machine.toml
//! ```

use clap::Args;
use einc_core::cost::Rates;
use einc_core::search::{Link, Network, TimeModel};
use einc_diag::Diagnostic;
use einc_driver::{
    arguments::{DeviceKind, Format, sites},
    calibration, devices, exit,
    machine_file::{self, Figures},
    target,
};
use std::{collections::BTreeMap, fs, path::PathBuf};

/// Measure this machine, for plans that are chosen by time
#[derive(Args)]
#[command(after_help = "\
Examples:
  einc calibrate                                     once a machine
  einc plan model.ein --sites 8 --cost time          then plans by time
  einc calibrate --latency 2e-5 --bandwidth 1.25e8   for sites on a network of 1 Gb/s
  einc calibrate -o cluster.toml --node-sites 8 --latency 2e-5 --bandwidth 1.25e9
                                                     for nodes of 8 sites on one of 10 Gb/s; --machine cluster.toml uses it")]
pub struct Arguments {
    /// Write to a file instead of the usual place; .json has one level
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Sites of a node, if they are on several: `--latency` and `--bandwidth` are then of the network between nodes
    #[arg(long = "node-sites", value_name = "SITES", requires = "latency", requires = "bandwidth", value_parser = sites)]
    node_sites: Option<u32>,
    /// Seconds a message takes, if sites are not on one machine
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    latency: Option<f64>,
    /// Bytes a second between two sites, if they are not on one machine; of a node's link, with `--node-sites`
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
    let Some(path) = arguments.output.clone().or_else(calibration::usual_place) else {
        return wrong("there is no home folder to write to: use `--output FILE`".into());
    };
    if let Err(diagnostic) = target::whole("--output", &path, &BTreeMap::new()) {
        return super::complain(diagnostic, Format::Text);
    }
    let json = path
        .extension()
        .is_some_and(|extension| extension == "json");
    if json && arguments.node_sites.is_some() {
        return wrong(
            "a .json file has one level: give `--output` a name that ends in .toml".into(),
        );
    }
    let model = with_given(calibration::measure(), &arguments);
    let gpu = match devices::gpus() {
        Ok(gpus) if !gpus.is_empty() && !json => match devices::open(DeviceKind::Gpu) {
            Ok(device) => Some(calibration::measure_device(&*device)),
            Err(failure) => {
                exit::show(failure.diagnostics, &[], Format::Text);
                return failure.status;
            }
        },
        _ => None,
    };
    let measured = Figures { cores: model, gpu };
    let text = match json {
        true => machine_file::text_of_one_level(&model),
        false => machine_file::text(&measured),
    };
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    match folder.and_then(|()| super::replace(&path, &text)) {
        Ok(()) => {
            exit::say(&format!("{}wrote {}\n", figures(&measured), path.display()));
            0
        }
        Err(error) => wrong(format!("cannot write {}: {error}", path.display())),
    }
}

/// The figures of a machine, with what the command line says of links.
fn with_given(mut model: TimeModel, arguments: &Arguments) -> TimeModel {
    let given = |measured: Link| Link {
        message: arguments.latency.unwrap_or(measured.message),
        byte: arguments
            .bandwidth
            .map_or(measured.byte, |bytes| 1.0 / bytes),
    };
    match arguments.node_sites {
        None => model.node = given(model.node),
        Some(sites) => {
            model.network = Some(Network {
                sites,
                link: given(model.node),
            });
        }
    }
    model
}

/// The figures as lines of text.
fn figures(figures: &Figures) -> String {
    let TimeModel {
        compute,
        node,
        network,
    } = &figures.cores;
    let mut text = format!(
        "message    {:.3e} s\nbyte       {:.3e} s\n{}",
        node.message,
        node.byte,
        rates(compute),
    );
    if let Some(gpu) = &figures.gpu {
        text.push_str(&format!(
            "on the GPU:\nbyte       {:.3e} s between its memory and the host's\n{}",
            gpu.byte,
            rates(&gpu.compute)
        ));
    }
    if let Some(Network { sites, link }) = network {
        text.push_str(&format!(
            "between nodes of {sites} sites: message {:.3e} s, byte {:.3e} s\n",
            link.message, link.byte
        ));
    }
    text
}

fn rates(compute: &Rates) -> String {
    format!(
        "operation  {:.3e} s\ntouched    {:.3e} s a byte\ntuple      {:.3e} s\nelement    {:.3e} s\nplace      {:.3e} s\n",
        compute.operation, compute.touched, compute.tuple, compute.element, compute.place,
    )
}
