//! What is said of a call that waits too long.
//!
//! Must not know transports.
//!
//! ```text
//! site 0 has waited 60 s for sites 2 and 3 at step 7, `W` (model.ein:5)
//! ```

use std::time::Duration;

/// Says that a site waits.
pub(crate) fn told(site: u32, what: &str, patience: Duration, missing: &[u32]) -> String {
    let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let missing = match names.split_last() {
        None => "the others".to_owned(),
        Some((last, [])) => format!("site {last}"),
        Some((last, rest)) => format!("sites {} and {last}", rest.join(", ")),
    };
    let at = if what.is_empty() {
        String::new()
    } else {
        format!(" at {what}")
    };
    let seconds = patience.as_secs_f64();
    format!("site {site} has waited {seconds} s for {missing}{at}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_several() {
        let patience = Duration::from_millis(1500);
        let of = |missing: &[u32]| told(1, "step 2, `C` (m.ein:3)", patience, missing);
        assert_eq!(
            of(&[0]),
            "site 1 has waited 1.5 s for site 0 at step 2, `C` (m.ein:3)"
        );
        assert_eq!(
            of(&[0, 2, 5]),
            "site 1 has waited 1.5 s for sites 0, 2 and 5 at step 2, `C` (m.ein:3)"
        );
        assert_eq!(
            told(1, "", patience, &[]),
            "site 1 has waited 1.5 s for the others"
        );
    }
}
