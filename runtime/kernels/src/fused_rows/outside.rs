//! Sets the columns of a block of rows that a mask does not choose.
//!
//! Must not know what the columns inside are.
//!
//! ```text
//! s < t + 1, else 0, rows 4 and 5 of 8 columns:   columns 5, 6, 7 of row 4 and 6, 7 of row 5 become 0
//! ```

use crate::segment::Segment;
use ein_plan::schedule::mask::Mask;

/// Sets what is outside the columns of a mask in a block of rows over these ranges.
pub(super) fn set_outside(mask: &Mask, ranges: &[(i64, i64)], to: &mut Segment<'_>, outside: f64) {
    let Some((columns, rows)) = ranges.split_last() else {
        return;
    };
    let mut point: Vec<i64> = ranges.iter().map(|range| range.0).collect();
    let count: i64 = rows.iter().map(|row| row.1).product();
    for row in 0..count {
        let of_row = mask.of_row(&point, *columns);
        let at = |column: i64| (row * columns.1 + column - columns.0) as usize;
        let (begin, end) = (at(columns.0), at(columns.0 + columns.1));
        for outside_of in [begin..at(of_row.start), at(of_row.end)..end] {
            if let Some(first) = outside_of.clone().next() {
                to.set_float(first, outside);
                to.repeat(first, outside_of);
            }
        }
        for (value, (start, length)) in point.iter_mut().zip(rows).rev() {
            *value += 1;
            if *value < start + length {
                break;
            }
            *value = *start;
        }
    }
}
