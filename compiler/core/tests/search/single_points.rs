//! Updates of single elements of a state, and those in place that they become.

use einc_core::search::single_points::named;

const INPUTS: &str = "input c: f64[9] = unbound\ninput n: i64[9] = unbound\ninput s.0: f64[9] = unbound\nrepeat t < 5 {\n  carry s.0 -> s.1\n  t.counter: i64[] = counter of t\n  s: f64[9] = state 0 of t\n";
const OUTPUTS: &str = "}\ns.last: f64[9] = last 0 of t\noutput s.last\noutput c\noutput n";

/// Asserts what a round's statement becomes, and that the values of the loop stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(named, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn places_get_names() {
    becomes(
        "  s.1: f64[9] = [i: 9] where(i == t.counter[] + 1, c[i], s[i])",
        "  hidden s.1.at: i64[] = [] t.counter[] + 1\n  s.1: f64[9] = [i: 9] where(i == s.1.at[], c[i], s[i])",
    );
    becomes(
        "  s.1: f64[9] = [i: 9] where(and(i == rem(t.counter[], 3), c[i] > 0.0_f64), c[i], s[i])",
        "  hidden s.1.at: i64[] = [] rem(t.counter[], 3)\n  s.1: f64[9] = [i: 9] where(i == s.1.at[], where(c[i] > 0.0_f64, c[i], s[i]), s[i])",
    );
    becomes(
        "  s.1: f64[9] = [i: 9] where(i != t.counter[] + 1, where(i == 2 * t.counter[], c[i], s[i]), 2.0_f64)",
        "  hidden s.1.at: i64[] = [] 2 * t.counter[]\n  hidden s.1.at.1: i64[] = [] t.counter[] + 1\n  s.1: f64[9] = [i: 9] where(i == s.1.at.1[], 2.0_f64, where(i == s.1.at[], c[i], s[i]))",
    );
}

#[test]
fn what_is_added_to_one_element_replaces_it() {
    becomes(
        "  s.1: f64[9] = [i: 9] s[i] + where(i == t.counter[], c[i], 0.0_f64)",
        "  s.1: f64[9] = [i: 9] where(i == t.counter[], s[i] + c[i], s[i])",
    );
    becomes(
        "  s.1: f64[9] = [i: 9] f64(i == t.counter[]) + s[i]",
        "  s.1: f64[9] = [i: 9] where(i == t.counter[], s[i] + 1.0_f64, s[i])",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // In place already.
        "  s.1: f64[9] = [i: 9] where(i == t.counter[], c[i], s[i])",
        // Each element has a place of its own.
        "  s.1: f64[9] = [i: 9] where(i == n[i] + t.counter[], c[i], s[i])",
        "  s.1: f64[9] = [i: 9] where(2 * i == t.counter[], c[i], s[i])",
        // Another element is given back.
        "  s.1: f64[9] = [i: 9] where(i == t.counter[] + 1, c[i], s[8 - i])",
        // Either holds.
        "  s.1: f64[9] = [i: 9] where(or(i == t.counter[] + 1, c[i] > 0.0_f64), c[i], s[i])",
        // The condition may stop the run at other elements.
        "  s.1: f64[9] = [i: 9] where(and(i == t.counter[] + 1, c[n[i] + 4] > 0.0_f64), c[i], s[i])",
    ] {
        becomes(statement, statement);
    }
}
