//! Products with rows that data name: what belongs to a row is computed once for each row, and what stands beside a row is summed for it, where there are
//! no more rows than names.
//!
//! A sum over edges and features that multiplies a matrix with the row of each edge does so as often as there are edges, and element by element; over all
//! rows it is a product of matrices. Must not know placements.
//!
//! ```text
//! a: f32[9, 4] = [v: 9, h: 4 | e: 80, d: 8] sum w[e] * x[s[e], d] * W[d, h] if v == t[e]              with x: f32[9, 8]
//! x.rows: f32[9, 4] = [e1: 9, h: 4 | d: 8] sum x[e1, d] * W[d, h]
//! a: f32[9, 4] = [v: 9, h: 4 | e: 80] sum w[e] * x.rows[s[e], h] if v == t[e]
//! ```

use crate::einsum::{Program, Rewriting, canonical};
use crate::rules::gathered::{Apart, Row, Terms, is_plain, named_row, rows_first, terms_first};
use crate::rules::{factors, values_of_bits};
use ein_plan::{Kernel, Reduction};

/// How many times as many points a statement has as its parts, at least.
const FEWER: u64 = 2;

/// Returns the program in which such products are taken apart.
pub fn apart(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let kernel = statement.kernel;
        let is_float = kernel.graph.dtype(kernel.root).is_float();
        if kernel.reduction != Some(Reduction::Sum) || !is_float || !is_plain(kernel) {
            return None;
        }
        if let Some((row, Apart { first, second })) = by_rows(kernel) {
            let first = canonical::statement(first, statement.operands);
            // A place outside is reported as one of the operand.
            let first = statement.add_of(row.operand, "rows", first);
            return Some(canonical::statement(second, &statement.operands_and(first)));
        }
        let terms = by_terms(kernel)?;
        let named = canonical::statement(terms.named, statement.operands);
        let named = statement.add("row", named);
        let counts = canonical::statement(terms.counts, &statement.operands_and(named));
        let counts = statement.add("names", counts);
        let here = canonical::statement(terms.here, &statement.operands_and(counts));
        let here = statement.add("here", here);
        let sums = canonical::statement(terms.sums, &statement.operands_and(named));
        let sums = statement.add("sums", sums);
        let read = [statement.operands, &[here, sums]].concat();
        Some(canonical::statement(terms.all, &read))
    })
}

/// The products with all rows, read where a row is named.
fn by_rows(kernel: &Kernel) -> Option<(Row, Apart)> {
    let mut all = factors(&kernel.graph, kernel.root).into_iter();
    all.find_map(|id| {
        let row = named_row(kernel, kernel.graph.node(id), |_| true)?;
        let apart = rows_first(kernel, row)?;
        // A sum of a row alone is no product, and as soon done where it is named.
        let is_product = factors(&apart.first.graph, apart.first.root).len() > 1;
        let fits = is_product && is_shorter(kernel, [&apart.first, &apart.second]);
        fits.then_some((row, apart))
    })
}

/// The product of all rows with the sums of what stands beside each.
fn by_terms(kernel: &Kernel) -> Option<Terms> {
    let of_output = (1u128 << kernel.output_rank) - 1;
    let mut all = factors(&kernel.graph, kernel.root).into_iter();
    all.find_map(|id| {
        let row = named_row(kernel, kernel.graph.node(id), |bits| bits & of_output == 0)?;
        let terms = terms_first(kernel, id, row)?;
        is_shorter(kernel, [&terms.sums, &terms.all]).then_some(terms)
    })
}

/// Returns whether both parts together have fewer points.
fn is_shorter(kernel: &Kernel, parts: [&Kernel; 2]) -> bool {
    let points = |kernel: &Kernel| {
        let solved = kernel.passed_over();
        let all = 0..kernel.indices.len() as u32;
        let walked = all.filter(|at| !solved.iter().any(|index| index.0 == *at));
        let bits = walked.fold(0, |bits, at| bits | 1u128 << at);
        values_of_bits(kernel, bits)
    };
    let parts = points(parts[0]).saturating_add(points(parts[1]));
    parts.saturating_mul(FEWER) <= points(kernel)
}
