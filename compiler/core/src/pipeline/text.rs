//! Numbers and tables as people read them.
//!
//! Must not know what they are of.
//!
//! ```text
//! 201326592 bytes: 201.3 MB      0.00261 seconds: 2.61 ms
//! ```

/// Columns are aligned up to this many characters.
const WIDEST: usize = 60;

/// A time in the unit that suits it: `2.61 ms`.
pub fn seconds(seconds: f64) -> String {
    let (factor, unit) = match seconds.abs() {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e3, "ms"),
        _ => (1e6, "us"),
    };
    format!("{:.2} {unit}", seconds * factor)
}

/// Columns of text, each aligned to the right or to the left.
pub(super) fn table(rows: &[Vec<String>], right: &[bool]) -> String {
    let width = |column: usize| {
        let longest = rows.iter().map(|row| row[column].chars().count()).max();
        longest.unwrap_or(0).min(WIDEST)
    };
    let widths: Vec<usize> = (0..right.len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let space = widths[column].saturating_sub(cell.chars().count());
            let space = " ".repeat(space);
            if column > 0 {
                line.push_str("  ");
            }
            match right[column] {
                true => line.push_str(&format!("{space}{cell}")),
                false => line.push_str(&format!("{cell}{space}")),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Returns a number of things in words.
pub fn count(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A whole number as it is up to seven digits, else in scientific notation.
pub(super) fn figure(value: f64) -> String {
    match value < 1e7 {
        true => format!("{value:.0}"),
        false => format!("{value:.3e}"),
    }
}

/// A number with a decimal prefix: 201326592 bytes are `201.3 MB`.
pub fn scaled(number: u64, unit: &str) -> String {
    let mut value = number as f64;
    for prefix in ["", "k", "M", "G", "T", "P"] {
        if value < 999.95 {
            return match prefix.is_empty() {
                true => format!("{number} {unit}").trim_end().into(),
                false => format!("{value:.1} {prefix}{unit}"),
            };
        }
        value /= 1000.0;
    }
    format!("{value:.1} E{unit}")
}
