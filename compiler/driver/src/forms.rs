//! The forms that a command line asks for, and what is wrong with them.
//!
//! Must not know how a form is chosen.
//!
//! ```text
//! --formats A=list,B=dense   ->   A: list, B: dense
//! error[E0736]: `--formats A=list`: a.npy holds all elements of `A`
//! ```

use crate::{arguments::FormatChoice, bind::Headers, settings::Settings};
use einc_core::lists::{Form, FormChoice};
use einc_core::pipeline::Formats;
use einc_diag::Diagnostic;

/// The forms that these words ask for; of words for all inputs the last one counts.
pub fn asked(words: &[FormatChoice]) -> Formats {
    let mut formats = Formats::default();
    for word in words {
        match word {
            FormatChoice::All(form) => formats.all = *form,
            FormatChoice::Pinned(name, form) => {
                formats.pinned.insert(name.clone(), *form);
            }
        }
    }
    formats
}

/// The inputs that cannot be lists and are to be some.
pub fn impossible(
    settings: &Settings,
    headers: &Headers,
    chosen: &[FormChoice],
) -> Vec<Diagnostic> {
    let pinned = settings.criteria.formats.pinned.iter();
    let lists = pinned.filter(|(_, form)| **form == Form::List);
    let wrong = lists.filter_map(|(name, _)| {
        let what = match chosen.iter().find(|choice| choice.input == *name) {
            Some(choice) if choice.is_needless() => {
                format!("no statement can read `{name}` by its listed elements alone")
            }
            Some(_) => return None,
            None if headers.get(name)?.listed.is_some() => return None,
            None => format!("the data of `{name}` hold all its elements"),
        };
        let what = format!("`--formats {name}=list`: {what}");
        Some(Diagnostic::error("E0736", what))
    });
    wrong.collect()
}
