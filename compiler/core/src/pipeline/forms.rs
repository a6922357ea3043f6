//! The forms of a program's inputs: chosen by the time that it would take, or as asked for, and carried out.
//!
//! Must not know how statements go over lists, nor files.
//!
//! ```text
//! C[i,j] = A[i,k] * X[k,j], of A a file lists one element in 100   ->   A: list; C is summed over A.values
//! ```

use super::{Formats, Objective};
use crate::cost::Rates;
use crate::einsum::{Definition, Program, Role};
use crate::lists::choice::{self, FormChoice, Listed};
use crate::lists::{Form, in_training, with_formats};
use crate::search::seconds_alone;
use crate::search::truth_products::multiplied;
use ein_plan::Source;
use ein_plan::source::Listing;
use ein_plan::training::Training;
use std::collections::BTreeMap;

/// A program and the training before it, each if there is one.
pub type Programs = (Option<Program>, Option<Training<Program>>);

/// Returns the programs in which each of the inputs whose data list elements lies in the form that is best by `objective`'s rates, or in the
/// one that `formats` pins; and the forms, with their reasons.
pub fn with_forms(
    programs: Programs,
    listed: &BTreeMap<String, Listing>,
    formats: &Formats,
    objective: &Objective,
) -> (Programs, Vec<FormChoice>) {
    if formats.all == Some(Form::Dense) && formats.pinned.is_empty() {
        return (programs, vec![]);
    }
    let (program, training) = programs;
    // Counts of two conditions are products, which go over lists.
    let programs = (program.map(|program| multiplied(&program)), training);
    let inputs = inputs(&programs, listed);
    let rates = match objective {
        Objective::Time(model) => model.compute,
        Objective::Transfer | Objective::Bytes => Rates::TYPICAL,
    };
    let carried_out = |lists: &BTreeMap<String, Listing>| {
        let (program, training) = programs.clone();
        (
            program.map(|program| with_formats(&program, lists)),
            training.map(|training| in_training(training, lists)),
        )
    };
    let seconds = |lists: &BTreeMap<String, Listing>| {
        let programs = carried_out(lists);
        all(&programs)
            .map(|program| seconds_alone(program, &rates))
            .sum()
    };
    let choices = choice::choose(&inputs, &|input| formats.of(input), &seconds);
    (carried_out(&choice::listed(&inputs, &choices)), choices)
}

/// All programs.
fn all((program, training): &Programs) -> impl Iterator<Item = &Program> {
    let of_training = training.iter().flat_map(Training::programs);
    program.iter().chain(of_training)
}

/// The inputs whose data list elements, in the largest part that a program reads.
fn inputs(programs: &Programs, listed: &BTreeMap<String, Listing>) -> BTreeMap<String, Listed> {
    let mut inputs: BTreeMap<String, Listed> = BTreeMap::new();
    for tensor in all(programs).flat_map(|program| &program.tensors) {
        let (Definition::Source(source), Role::Input) = (&tensor.definition, tensor.role) else {
            continue;
        };
        let Some(listing) = listed.get(&tensor.name) else {
            continue;
        };
        let input = Listed {
            listing: listing.clone(),
            shape: tensor.shape.clone(),
            is_batch: *source == Source::Fed,
        };
        let known = inputs.entry(tensor.name.clone()).or_insert(input.clone());
        if input.elements() > known.elements() {
            *known = input;
        }
    }
    inputs
}
