//! The forms that a command line asks for and that inputs cannot have.
//!
//! Must not know how a form is chosen.
//!
//! ```text
//! error[E0736]: `--formats A=list`: a.npy holds all elements of `A`
//! ```

use crate::{bind::Headers, settings::Settings};
use einc_core::lists::{Form, FormChoice};
use einc_diag::Diagnostic;

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
