//! The form of an input that a file lists: the faster one, or the one that is asked for.

use super::program;
use ein_plan::source::Listing;
use einc_core::lists::Form;
use einc_core::pipeline::{Formats, Objective, with_forms};
use std::collections::BTreeMap;

/// The forms of the inputs of a program, of which files list so many elements, and whether it reads a list of `A`.
fn forms(text: &str, listed: &[(&str, u64)], formats: &Formats) -> (Vec<(String, Form)>, bool) {
    let listing = |count: &u64| Listing {
        count: *count,
        of_dims: vec![],
    };
    let listed = listed
        .iter()
        .map(|(name, count)| ((*name).to_owned(), listing(count)));
    let programs = (Some(program(text)), None);
    let ((result, _), chosen) =
        with_forms(programs, &listed.collect(), formats, &Objective::Transfer);
    let reads = result.unwrap().to_string().contains("A.values");
    let chosen = chosen.into_iter().map(|choice| (choice.input, choice.form));
    (chosen.collect(), reads)
}

fn pinned(form: Form) -> Formats {
    Formats {
        pinned: BTreeMap::from([("A".to_owned(), form)]),
        ..Formats::default()
    }
}

fn statement(shape: &str, statement: &str) -> String {
    format!(
        "input A: f32[2000, 2000] = unbound\ninput X: f32[{shape}] = unbound\n{statement}\noutput C"
    )
}

/// One in how many elements is listed where the list begins to be faster. Measured on one core of 2026: between 11 and 16, 16 and 32, 8 and 16.
#[test]
fn a_list_is_taken_where_it_is_faster() {
    let cases = [
        (
            statement(
                "2000, 64",
                "C: f32[2000, 64] = [i: 2000, j: 64 | k: 2000] sum A[i, k] * X[k, j]",
            ),
            8,
            16,
        ),
        (
            statement(
                "2000, 8",
                "C: f32[2000, 8] = [i: 2000, j: 8 | k: 2000] sum A[i, k] * X[k, j]",
            ),
            8,
            32,
        ),
        (
            statement(
                "2000",
                "C: f32[2000] = [i: 2000 | k: 2000] sum A[i, k] * X[k]",
            ),
            4,
            16,
        ),
        (
            statement(
                "2000",
                "C: f32[2000] = [i: 2000 | k: 2000] max A[i, k] * X[k]",
            ),
            4,
            16,
        ),
    ];
    for (text, dense, list) in cases {
        for (part, expected) in [(dense, Form::Dense), (list, Form::List)] {
            let (found, reads) = forms(&text, &[("A", 4_000_000 / part)], &Formats::default());
            assert_eq!(found, [("A".to_owned(), expected)], "1 in {part}: {text}");
            assert_eq!(reads, expected == Form::List, "1 in {part}: {text}");
        }
    }
}

#[test]
fn a_form_that_is_asked_for_is_taken() {
    let text = statement(
        "2000",
        "C: f32[2000] = [i: 2000 | k: 2000] sum A[i, k] * X[k]",
    );
    for form in [Form::List, Form::Dense] {
        for count in [40, 2_000_000] {
            let (found, reads) = forms(&text, &[("A", count)], &pinned(form));
            assert_eq!(found, [("A".to_owned(), form)], "{count}");
            assert_eq!(reads, form == Form::List, "{count}");
        }
    }
}

/// Of two inputs whose elements meet, both lists are faster than one.
#[test]
fn forms_are_chosen_together() {
    let text = "input A: f32[2000, 2000] = unbound\ninput B: f32[2000, 2000] = unbound\n\
         C: f32[] = [ | i: 2000, k: 2000] sum A[i, k] * B[i, k]\noutput C";
    let (found, _) = forms(text, &[("A", 4000), ("B", 4000)], &Formats::default());
    assert_eq!(
        found,
        [("A".to_owned(), Form::List), ("B".to_owned(), Form::List)]
    );
}

/// An input whose list no statement can read is dense, and so are all where that is asked for.
#[test]
fn lists_that_nothing_reads_are_not_made() {
    let text = "input A: f32[2000, 2000] = unbound\n\
         C: f32[2000, 2000] = [i: 2000, k: 2000] exp(A[i, k])\noutput C";
    for asked in [Formats::default(), pinned(Form::List)] {
        let (found, reads) = forms(text, &[("A", 40)], &asked);
        assert_eq!((found, reads), (vec![("A".to_owned(), Form::Dense)], false));
    }
    let dense = Formats {
        all: Some(Form::Dense),
        ..Formats::default()
    };
    let text = statement(
        "2000",
        "C: f32[2000] = [i: 2000 | k: 2000] sum A[i, k] * X[k]",
    );
    assert_eq!(forms(&text, &[("A", 40)], &dense), (vec![], false));
}
