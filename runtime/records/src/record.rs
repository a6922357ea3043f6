//! A record: what is known after a step.
//!
//! Must not know where it goes.
//!
//! ```text
//! epoch 3, step 69: loss 0.1234, rate 0.018, accuracy 0.9861; 4416 examples in 0.36 s
//! ```

/// What is known after a step. Steps and epochs count from 1 here: the first record is that of step 1, made in epoch 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// The epoch that the step was part of.
    pub epoch: u64,
    /// The number of steps made, over all of the run.
    pub step: u64,
    /// The loss of the step's batch.
    pub loss: Option<f64>,
    /// The learning rate, with the schedule's factor.
    pub rate: Option<f64>,
    /// What was validated after this step, by name; empty after most steps.
    pub validation: Vec<(String, f64)>,
    /// Rows that went through the steps of this process since it began.
    pub examples: u64,
    /// Seconds since this process began its first step.
    pub seconds: f64,
    /// Whether the step was the last of its epoch.
    pub epoch_ends: bool,
}

/// How long a run will be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// All steps, those before a resumption included.
    pub steps: u64,
    /// All epochs; `None` where a run is counted in steps.
    pub epochs: Option<u64>,
    /// Steps that were made before this process began.
    pub made: u64,
}

/// A number with the digits that a person reads: `0.1234`, `1.23e-5`, `12.35`.
pub(crate) fn digits(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".into()
    } else if !value.is_finite() {
        value.to_string()
    } else if !(1e-3..1e5).contains(&size) {
        format!("{value:.3e}")
    } else if size < 10.0 {
        format!("{value:.4}")
    } else {
        format!("{value:.2}")
    }
}

/// `950`, `12.3k`, `4.57M`.
pub(crate) fn thousands(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.2}G", v / 1e9),
        v if v >= 1e6 => format!("{:.2}M", v / 1e6),
        v if v >= 1e3 => format!("{:.1}k", v / 1e3),
        v if v >= 10.0 => format!("{v:.0}"),
        v => format!("{v:.2}"),
    }
}

/// `0:07`, `12:30`, `3:05:00`.
pub(crate) fn clock(seconds: f64) -> String {
    let seconds = seconds.max(0.0).round() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        let shown: Vec<_> = [
            0.0,
            0.12345,
            2.5,
            12.345,
            99_999.0,
            1e5,
            1.2345e-5,
            -0.5,
            f64::NAN,
        ]
        .into_iter()
        .map(digits)
        .collect();
        assert_eq!(
            shown,
            [
                "0", "0.1235", "2.5000", "12.35", "99999.00", "1.000e5", "1.234e-5", "-0.5000",
                "NaN"
            ]
        );
        assert_eq!(
            [0.5, 42.0, 950.0, 12_345.0, 4.567e6].map(thousands),
            ["0.50", "42", "950", "12.3k", "4.57M"]
        );
        assert_eq!(
            [6.6, 750.0, 11_100.0].map(clock),
            ["0:07", "12:30", "3:05:00"]
        );
    }
}
