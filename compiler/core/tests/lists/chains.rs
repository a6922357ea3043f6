//! Products of a list and several other factors, in parts.

use super::{listing, program};
use einc_core::lists::with_formats;

/// The program in which `A` lists 90 elements and `B` 92.
fn parted(text: &str) -> String {
    with_formats(&program(text), &listing(90)).to_string()
}

#[test]
fn what_the_list_has_no_index_of_is_summed_first() {
    insta::assert_snapshot!(parted(
        "input A: f32[40, 30] = unbound\ninput x: f32[30, 8] = unbound\ninput w: f32[8, 6] = unbound\n\
         y: f32[40, 6] = [i: 40, h: 6 | j: 30, d: 8] sum A[i, j] * x[j, d] * w[d, h]\noutput y"
    ));
}

#[test]
fn two_lists_meet_one_after_the_other() {
    insta::assert_snapshot!(parted(
        "input A: f32[40, 30] = unbound\ninput B: f32[30, 50] = unbound\ninput x: f32[50] = unbound\n\
         y: f32[40] = [i: 40 | k: 30, j: 50] sum A[i, k] * B[k, j] * x[j]\noutput y"
    ));
}

#[test]
fn a_product_that_gains_nothing_stays_whole() {
    insta::assert_snapshot!(parted(
        "input A: f32[40, 30] = unbound\ninput x: f32[30, 80] = unbound\ninput w: f32[80] = unbound\n\
         y: f32[40] = [i: 40 | j: 30] sum A[i, j] * x[j, 3] * w[j]\noutput y"
    ));
}
