//! The forms that a command line asks for and that inputs cannot have.
//!
//! Must not know how a form is chosen.
//!
//! ```text
//! error[E0736]: `--formats A=list`: a.npy holds all elements of `A`
//! ```

use crate::{bind::Headers, purpose::Purpose, settings::Settings};
use einc_core::lists::{Form, FormChoice};
use einc_diag::Diagnostic;

/// The inputs that cannot be lists and are to be some. Before a run, those that have no data yet may still become lists.
pub fn impossible(
    settings: &Settings,
    headers: &Headers,
    chosen: &[FormChoice],
    purpose: Purpose,
) -> Vec<Diagnostic> {
    let pinned = settings.criteria.formats.pinned.iter();
    let lists = pinned.filter(|(_, form)| **form == Form::List);
    let wrong = lists.filter_map(|(name, _)| {
        let what = match chosen.iter().find(|choice| choice.input == *name) {
            Some(choice) if choice.is_needless() => {
                format!("no statement can read `{name}` by its listed elements alone")
            }
            Some(_) => return None,
            None => match headers.get(name) {
                Some(header) if header.listed.is_some() => return None,
                Some(_) => format!("the data of `{name}` hold all its elements"),
                None if purpose == Purpose::Run => format!("`{name}` is read from no file"),
                None => return None,
            },
        };
        let what = format!("`--formats {name}=list`: {what}");
        Some(Diagnostic::error("E0736", what))
    });
    wrong.collect()
}
