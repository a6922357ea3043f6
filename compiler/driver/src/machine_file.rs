//! The file of a machine, from which `--cost time` takes its figures: rates of a site, of a node's links, of the network between nodes.
//!
//! A file of the first format is JSON and knows one level, in which any two sites are alike. Every figure is one of seconds. Must not know how figures
//! are measured, nor plans.
//!
//! ```text
//! format = "einc-machine/2"
//!
//! [compute]
//! operation = 1.4e-11   # an operation of a matrix product
//! touched = 1.1e-10     # a byte read or written
//! tuple = 3.0e-6        # a tuple of a relation
//! element = 1.0e-10     # an operation that is none of a matrix product
//! place = 3.0e-9        # a place that data name, of a gather or a scatter
//!
//! [node]
//! sites = 8             # sites of a node, numbered in a row
//! message = 8.1e-6      # a message
//! byte = 2.0e-10        # a byte received
//!
//! [network]
//! message = 2.0e-5
//! byte = 8.0e-10        # a byte over the link of a node, which its sites share
//!
//! [gpu]
//! byte = 4.0e-11        # a byte between the host's memory and a GPU's
//!
//! [gpu.compute]         # as [compute], on a GPU
//! operation = 4.0e-14
//! touched = 4.0e-13
//! tuple = 6.0e-6
//! ```

mod write;

pub use write::{text, text_of_one_level};

use einc_core::cost::Rates;
use einc_core::search::{Link, Network, TimeModel};
use einc_diag::Diagnostic;
use serde::{Deserialize, Serialize};
use std::path::Path;
use toml::Spanned;

/// The figures of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Of its cores, and of the links between sites.
    pub cores: TimeModel,
    /// Of its GPUs, if it has some.
    pub gpu: Option<GpuFigures>,
}

/// The figures of a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GpuFigures {
    /// Its rates.
    pub compute: Rates,
    /// Seconds a byte between the host's memory and its own.
    pub byte: f64,
}

/// The first fields of the files.
const ONE_LEVEL: &str = "einc-machine/1";
const TWO_LEVELS: &str = "einc-machine/2";

/// A file of one level.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OneLevel {
    format: String,
    /// Seconds a message.
    message: f64,
    /// Seconds a byte received.
    byte: f64,
    /// Seconds an operation of a matrix product.
    operation: f64,
    /// Seconds a byte that is read or written.
    touched: f64,
    /// Seconds a tuple.
    tuple: f64,
    /// Seconds an operation that is none of a matrix product.
    element: Option<f64>,
    /// Seconds a place that data name.
    place: Option<f64>,
}

/// A file of two levels.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TwoLevels {
    format: Spanned<String>,
    compute: ComputeTable,
    node: Spanned<NodeTable>,
    network: Option<NetworkTable>,
    gpu: Option<GpuTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ComputeTable {
    operation: Spanned<f64>,
    touched: Spanned<f64>,
    tuple: Spanned<f64>,
    element: Option<Spanned<f64>>,
    place: Option<Spanned<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeTable {
    sites: Option<Spanned<i64>>,
    message: Spanned<f64>,
    byte: Spanned<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkTable {
    message: Spanned<f64>,
    byte: Spanned<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GpuTable {
    byte: Spanned<f64>,
    compute: ComputeTable,
}

/// The figures of a file with this text.
///
/// # Errors
/// It is not of a machine, or a figure cannot be (E0193): file, line and field.
pub fn parse(path: &Path, text: &str) -> Result<Figures, Diagnostic> {
    let file = File { path, text };
    match text.trim_start().starts_with('{') {
        true => Ok(Figures {
            cores: file.one_level()?,
            gpu: None,
        }),
        false => file.two_levels(),
    }
}

/// The diagnostic about figures that are not to be had.
pub fn missing(what: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error(
        "E0193",
        format!("the figures of the machine are needed: {what}"),
    )
    .help("`einc calibrate` measures them; `--machine FILE` names a file that it wrote; `einc explain E0193` shows one")
}

/// The diagnostic about a file without the figures of a GPU.
pub fn no_gpu() -> Diagnostic {
    missing("the file has no table `[gpu]`, which `einc calibrate` writes where there is a GPU")
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn one_level(&self) -> Result<TimeModel, Diagnostic> {
        let file: OneLevel = serde_json::from_str(self.text).map_err(|error| {
            missing(format!(
                "{} is not of a machine: {error}",
                self.path.display()
            ))
        })?;
        if file.format != ONE_LEVEL {
            let what = format!("`format` is {:?}, not {ONE_LEVEL:?}", file.format);
            return Err(missing(format!("{}: {what}", self.path.display())));
        }
        let figure = |name: &str, value: f64| match possible(value) {
            true => Ok(value),
            false => Err(missing(format!(
                "{}: {}",
                self.path.display(),
                wrong(name, value)
            ))),
        };
        let given = |name, value: Option<f64>| value.map(|value| figure(name, value)).transpose();
        let rates = Rates::of_products(
            figure("operation", file.operation)?,
            figure("touched", file.touched)?,
            figure("tuple", file.tuple)?,
        );
        Ok(TimeModel {
            compute: Rates {
                element: given("element", file.element)?.unwrap_or(rates.element),
                place: given("place", file.place)?.unwrap_or(rates.place),
                ..rates
            },
            node: Link {
                message: figure("message", file.message)?,
                byte: figure("byte", file.byte)?,
            },
            network: None,
        })
    }

    fn two_levels(&self) -> Result<Figures, Diagnostic> {
        let file: TwoLevels = toml::from_str(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.at(at, error.message().trim_end())
        })?;
        if file.format.get_ref() != TWO_LEVELS {
            let what = format!(
                "`format` is {:?}, not {TWO_LEVELS:?}",
                file.format.get_ref()
            );
            return Err(self.at(file.format.span().start, what));
        }
        let link = |table: &str, message: &Spanned<f64>, byte: &Spanned<f64>| {
            Ok(Link {
                message: self.figure(&format!("{table}.message"), message)?,
                byte: self.figure(&format!("{table}.byte"), byte)?,
            })
        };
        let node = file.node.get_ref();
        let network = match &file.network {
            None => None,
            Some(network) => Some(Network {
                sites: self.sites(&file.node)?,
                link: link("network", &network.message, &network.byte)?,
            }),
        };
        let gpu = match &file.gpu {
            None => None,
            Some(gpu) => Some(GpuFigures {
                compute: self.rates("gpu.compute", &gpu.compute)?,
                byte: self.figure("gpu.byte", &gpu.byte)?,
            }),
        };
        Ok(Figures {
            cores: TimeModel {
                compute: self.rates("compute", &file.compute)?,
                node: link("node", &node.message, &node.byte)?,
                network,
            },
            gpu,
        })
    }

    /// The rates in a table.
    fn rates(&self, table: &str, compute: &ComputeTable) -> Result<Rates, Diagnostic> {
        let own = |name: &str, value| self.figure(&format!("{table}.{name}"), value);
        let rates = Rates::of_products(
            own("operation", &compute.operation)?,
            own("touched", &compute.touched)?,
            own("tuple", &compute.tuple)?,
        );
        let given = |name: &str, value: &Option<Spanned<f64>>, otherwise: f64| match value {
            Some(value) => self.figure(&format!("{table}.{name}"), value),
            None => Ok(otherwise),
        };
        Ok(Rates {
            element: given("element", &compute.element, rates.element)?,
            place: given("place", &compute.place, rates.place)?,
            ..rates
        })
    }

    /// The figure of a field.
    fn figure(&self, name: &str, value: &Spanned<f64>) -> Result<f64, Diagnostic> {
        match possible(*value.get_ref()) {
            true => Ok(*value.get_ref()),
            false => Err(self.at(value.span().start, wrong(name, *value.get_ref()))),
        }
    }

    /// How many sites a node has, which a network needs to know.
    fn sites(&self, node: &Spanned<NodeTable>) -> Result<u32, Diagnostic> {
        let Some(sites) = &node.get_ref().sites else {
            let what =
                "`node.sites` is missing: how many sites a node has, whose link `[network]` is";
            return Err(self.at(node.span().start, what));
        };
        match u32::try_from(*sites.get_ref()) {
            Ok(number) if number > 0 => Ok(number),
            _ => {
                let what = format!(
                    "`node.sites` is {}, not a whole number from 1",
                    sites.get_ref()
                );
                Err(self.at(sites.span().start, what))
            }
        }
    }

    /// The diagnostic about a place of the text.
    fn at(&self, start: usize, what: impl std::fmt::Display) -> Diagnostic {
        let before = self.text.get(..start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        missing(format!("{}:{line}: {what}", self.path.display()))
    }
}

fn possible(figure: f64) -> bool {
    figure.is_finite() && figure >= 0.0
}

fn wrong(name: &str, figure: f64) -> String {
    format!("`{name}` is {figure}, not a number of seconds from 0")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const FILE: &str = "format = \"einc-machine/2\"

[compute]
operation = 1.4e-11
touched = 1.1e-10
tuple = 3.0e-6
element = 1.2e-10
place = 2.0e-9

[node]
sites = 8
message = 8.1e-6
byte = 2.0e-10

[network]
message = 2.0e-5
byte = 8.0e-10

[gpu]
byte = 4.0e-11

[gpu.compute]
operation = 4.0e-14
touched = 4.0e-13
tuple = 6.0e-6
element = 5.0e-14
place = 1.0e-12
";

    #[test]
    fn a_file_of_two_levels_is_read_and_written() {
        let figures = parse(Path::new("cluster.toml"), FILE).unwrap();
        let gpu = figures.gpu.unwrap();
        assert_eq!((gpu.compute.tuple, gpu.byte), (6.0e-6, 4.0e-11));
        let model = figures.cores;
        let network = model.network.unwrap();
        assert_eq!((network.sites, network.link.byte), (8, 8.0e-10));
        assert_eq!(
            (model.node.message, model.compute.touched),
            (8.1e-6, 1.1e-10)
        );
        assert_eq!(
            parse(Path::new("again.toml"), &text(&figures)).unwrap(),
            figures
        );
        // An older file has no rates but these: others are in proportion.
        let older = FILE.replace("element = 1.2e-10\nplace = 2.0e-9\n", "");
        let older = parse(Path::new("older.toml"), &older).unwrap();
        let rates = older.cores.compute;
        assert_eq!(rates, Rates::of_products(1.4e-11, 1.1e-10, 3.0e-6));
        assert!(rates.element > 1.0e-10 && rates.place > 2.0e-9, "{rates:?}");
        let one = Figures {
            cores: TimeModel {
                network: None,
                ..model
            },
            gpu: None,
        };
        for text in [text(&one), text_of_one_level(&one.cores)] {
            assert_eq!(parse(Path::new("machine"), &text).unwrap(), one, "{text}");
        }
    }

    #[test]
    fn errors_name_file_line_and_field() {
        let cases = [
            (
                "tuple = 3.0e-6",
                "",
                "cluster.toml:3: missing field `tuple`",
            ),
            ("[network]", "[lan]", "cluster.toml:15: unknown field `lan`"),
            (
                "byte = 2.0e-10",
                "bytes = 2.0e-10",
                "cluster.toml:13: unknown field `bytes`",
            ),
            (
                "byte = 8.0e-10",
                "byte = -8.0e-10",
                "cluster.toml:17: `network.byte` is -0.0000000008, not a number of seconds from 0",
            ),
            (
                "operation = 1.4e-11",
                "operation = inf",
                "cluster.toml:4: `compute.operation` is inf, not a number of seconds from 0",
            ),
            (
                "sites = 8",
                "sites = 0",
                "cluster.toml:11: `node.sites` is 0, not a whole number from 1",
            ),
            (
                "place = 2.0e-9",
                "place = -1.0",
                "cluster.toml:8: `compute.place` is -1, not a number of seconds from 0",
            ),
            (
                "byte = 4.0e-11",
                "byte = nan",
                "cluster.toml:20: `gpu.byte` is NaN, not a number of seconds from 0",
            ),
            (
                "sites = 8\n",
                "",
                "cluster.toml:10: `node.sites` is missing",
            ),
            ("sites = 8", "sites = eight", "cluster.toml:11: "),
            (
                "einc-machine/2",
                "einc-machine/3",
                "cluster.toml:1: `format` is \"einc-machine/3\"",
            ),
        ];
        for (right, wrong, message) in cases {
            let text = FILE.replacen(right, wrong, 1);
            let error = parse(Path::new("cluster.toml"), &text).unwrap_err();
            assert_eq!(error.code, "E0193");
            assert!(error.message.contains(message), "{}", error.message);
        }
        let one = text_of_one_level(&parse(Path::new("cluster.toml"), FILE).unwrap().cores);
        let wrong = one.replace("\"byte\": 2", "\"byte\": -2");
        let error = parse(Path::new("machine.json"), &wrong).unwrap_err();
        assert!(
            error.message.contains("machine.json: `byte` is -"),
            "{}",
            error.message
        );
    }
}
