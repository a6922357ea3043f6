//! The form that every input is taken in whose data list its elements: the list of them, or all.
//!
//! One site would take so many seconds for the program with the list and without; the faster form is taken. Inputs are looked at one after the
//! other, with the forms that were chosen for the others, until nothing changes. Must not know statements, nor how seconds are counted.
//!
//! ```text
//! A: 281250 of 9000000 elements, 0.0048 s as a list, 0.0135 s dense   ->   list
//! A: 2250000 of 9000000 elements, 0.038 s as a list, 0.0135 s dense   ->   dense
//! ```

use super::elements;
use ein_plan::source::Listing;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A longer list is never chosen: it takes more memory than all elements do.
const MOST_LISTED: u64 = 4;

/// How often all inputs are looked at, at most.
const PASSES: u32 = 3;

/// The form of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// The listed elements with their positions.
    List,
    /// All elements.
    Dense,
}

impl Form {
    /// The name of the form, as options and reports write it.
    pub fn name(self) -> &'static str {
        match self {
            Form::List => "list",
            Form::Dense => "dense",
        }
    }
}

/// The form of one input, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FormChoice {
    /// The input.
    pub input: String,
    /// The form that was taken.
    pub form: Form,
    /// Elements that its data list; of a batch those of the fullest rows.
    pub listed: u64,
    /// All its elements.
    pub elements: u64,
    /// True if the form was asked for.
    pub pinned: bool,
    /// Seconds that the program takes at one site with the list and without, the other inputs as they were chosen.
    pub seconds: [f64; 2],
}

impl FormChoice {
    /// Returns whether no statement goes over the list.
    pub fn is_needless(&self) -> bool {
        self.seconds[0] == self.seconds[1]
    }

    /// The list, if it is better and short enough.
    fn with_list_if(&self, is_better: bool) -> Form {
        match is_better && self.listed.saturating_mul(MOST_LISTED) <= self.elements {
            true => Form::List,
            false => Form::Dense,
        }
    }
}

/// An input whose data list its elements, or a batch of one.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The elements that the data list.
    pub listing: Listing,
    /// Elements of the input that a program reads.
    pub shape: Vec<u64>,
    /// True if the program reads a batch of its rows.
    pub is_batch: bool,
}

impl Listed {
    /// All elements.
    pub fn elements(&self) -> u64 {
        elements(&self.shape)
    }

    /// Elements that the list has room for.
    fn count(&self) -> u64 {
        match self.shape.first() {
            Some(rows) if self.is_batch => self.listing.most(*rows),
            _ => self.listing.count,
        }
    }
}

/// Returns the form of each of these inputs: the one that is asked for, or the faster one; dense where no statement reads the list. `seconds`
/// are those of the program in which these inputs are lists.
pub fn choose(
    inputs: &BTreeMap<String, Listed>,
    asked: &dyn Fn(&str) -> Option<Form>,
    seconds: &dyn Fn(&BTreeMap<String, Listing>) -> f64,
) -> Vec<FormChoice> {
    let mut choices: Vec<FormChoice> = vec![];
    for (name, input) in inputs {
        let asked = asked(name);
        let mut choice = FormChoice {
            input: name.clone(),
            form: Form::Dense,
            listed: input.count(),
            elements: input.elements(),
            pinned: asked.is_some(),
            seconds: [f64::NAN; 2],
        };
        choice.form = asked.unwrap_or_else(|| choice.with_list_if(true));
        choices.push(choice);
    }
    let mut known: BTreeMap<Vec<Form>, f64> = BTreeMap::new();
    for _ in 0..PASSES {
        let before: Vec<Form> = choices.iter().map(|choice| choice.form).collect();
        for at in 0..choices.len() {
            let taken = choices[at].form;
            let [list, dense] = [Form::List, Form::Dense].map(|form| {
                choices[at].form = form;
                let forms = choices.iter().map(|choice| choice.form).collect();
                let seconds = || seconds(&listed(inputs, &choices));
                *known.entry(forms).or_insert_with(seconds)
            });
            let choice = &mut choices[at];
            choice.seconds = [list, dense];
            choice.form = match choice.pinned {
                true => taken,
                false => choice.with_list_if(list < dense),
            };
        }
        if choices.iter().map(|choice| choice.form).eq(before) {
            break;
        }
    }
    for choice in &mut choices {
        if choice.is_needless() {
            choice.form = Form::Dense;
        }
    }
    choices
}

/// The inputs that are taken as lists.
pub fn listed(
    inputs: &BTreeMap<String, Listed>,
    choices: &[FormChoice],
) -> BTreeMap<String, Listing> {
    let lists = choices.iter().filter(|choice| choice.form == Form::List);
    let lists = lists.map(|choice| {
        let listing = inputs[&choice.input].listing.clone();
        (choice.input.clone(), listing)
    });
    lists.collect()
}
