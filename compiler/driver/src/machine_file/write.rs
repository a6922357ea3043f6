//! The texts of the files of machines. Must not know how figures are measured.
//!
//! ```text
//! [compute]
//! operation = 1.400e-11 # an operation of a matrix product
//! ```

use super::{Figures, ONE_LEVEL, OneLevel, TWO_LEVELS};
use einc_core::cost::Rates;
use einc_core::search::TimeModel;

/// The text of a machine's file.
pub fn text(figures: &Figures) -> String {
    let TimeModel {
        compute,
        node,
        network,
    } = &figures.cores;
    let sites = network.map_or(String::new(), |network| {
        format!(
            "sites = {:<14}# sites of a node, numbered in a row\n",
            network.sites
        )
    });
    let network = network.map_or(String::new(), |network| {
        let (message, byte) = (number(network.link.message), number(network.link.byte));
        format!(
            "\n[network]\nmessage = {message}\nbyte = {byte:<15}# a byte over the link of a node, which its sites share\n"
        )
    });
    let gpu = figures.gpu.map_or(String::new(), |gpu| {
        let byte = number(gpu.byte);
        format!(
            "\n[gpu]\nbyte = {byte:<15}# a byte between the host's memory and a GPU's\n\n[gpu.compute]\n{}",
            rates(&gpu.compute)
        )
    });
    format!(
        "# A machine for `--cost time`; every figure is one of seconds.\n\
         format = \"{TWO_LEVELS}\"\n\n\
         [compute]\n\
         {}\n\
         [node]\n\
         {sites}message = {:<12}# a message\n\
         byte = {:<15}# a byte received\n\
         {network}{gpu}",
        rates(compute),
        number(node.message),
        number(node.byte),
    )
}

/// The lines of rates.
fn rates(compute: &Rates) -> String {
    format!(
        "operation = {:<10}# an operation of a matrix product\n\
         touched = {:<12}# a byte read or written\n\
         tuple = {:<14}# a tuple of a relation\n\
         element = {:<12}# an operation that is none of a matrix product\n\
         place = {:<14}# a place that data name, of a gather or a scatter\n",
        number(compute.operation),
        number(compute.touched),
        number(compute.tuple),
        number(compute.element),
        number(compute.place),
    )
}

/// The text of a machine's file in the format of one level, which cannot say what a network takes.
pub fn text_of_one_level(model: &TimeModel) -> String {
    let file = OneLevel {
        format: ONE_LEVEL.into(),
        message: model.node.message,
        byte: model.node.byte,
        operation: model.compute.operation,
        touched: model.compute.touched,
        tuple: model.compute.tuple,
        element: Some(model.compute.element),
        place: Some(model.compute.place),
    };
    let json = serde_json::to_string_pretty(&file);
    format!("{}\n", json.expect("the figures are finite numbers"))
}

/// A number that TOML reads as one with a fraction, as exact as anything that is measured.
fn number(figure: f64) -> String {
    format!("{figure:.3e}")
}
