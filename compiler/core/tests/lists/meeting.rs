//! Products of two lists, and elements of one list at the places of another.

use super::random::Random;
use super::{assert_same, listing, over_lists, program};
use einc_core::einsum::verify::verify;
use einc_core::lists::with_lists;

const INPUTS: &str = "input A: f32[18, 18] = unbound\ninput B: f32[18, 18] = unbound\n";

/// Statements over lists of five elements of `A` and seven of `B`, as text without the lists.
fn met(statements: &str) -> String {
    let read = INPUTS
        .split_inclusive('\n')
        .filter(|line| statements.contains(&format!("{}[", &line[6..7])));
    let read: String = read.collect();
    let program = over_lists(&format!("{read}{statements}"), 5).to_string();
    let lines = program.lines().filter(|line| !line.contains("listed(\""));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn rows_of_two_lists_meet_at_the_places_of_a_third() {
    // Triangles: rows of `A` as they lie, and its columns, sorted once.
    insta::assert_snapshot!(met(
        "t: f32[] = [ | i: 18, j: 18, k: 18] sum A[i, j] * A[j, k] * A[k, i]\noutput t"
    ), @r#"
    hidden A.count: i64[18] = [x: 18 | f: 5] sum 1 if x == A.at1[f]
    hidden A.ends: i64[18] = [x: 18 | y: 18] sum A.count[y] if y <= x
    hidden A.order: i64[5] = [f: 5] argsort(A.at1[:1], f)
    hidden A.along: u32[5] = [f: 5] A.at0[A.order[f]]
    hidden A.terms: f32[5] = [f: 5] A.values[A.order[f]]
    hidden A.ends.1: i64[18] = [x: 18] A.starts0[x + 1]
    hidden t.place: f32[5] = [e: 5] listed_dot(A.ends[:1], A.along[:1], A.terms[:1], A.ends.1[:1], A.at1[:1], A.values[:1], A.at0[e], A.at1[e], 18)
    t: f32[] = [| e: 5] sum A.values[e] * t.place[e]
    output t
    "#);
    // A product of which a list reads few elements is not computed as a whole, and what stands beside it comes in once for each of them.
    insta::assert_snapshot!(met(
        "C: f32[18, 18] = [i: 18, j: 18 | k: 18] sum A[i, k] * (B[j, k] * B[j, k]) * 3.0\n\
         y: f32[18] = [i: 18 | j: 18] sum B[j, i] * C[i, j]\noutput y"
    ), @r#"
    hidden A.ends: i64[18] = [x: 18] A.starts0[x + 1]
    hidden B.ends: i64[18] = [x: 18] B.starts0[x + 1]
    hidden B.terms: f32[7] = [f: 7] B.values[f] * B.values[f]
    hidden C.dot: f32[7] = [e: 7] listed_dot(A.ends[:1], A.at1[:1], A.values[:1], B.ends[:1], B.at1[:1], B.terms[:1], B.at1[e], B.at0[e], 18)
    hidden C.values: f32[7] = [e: 7] 3.0 * C.dot[e]
    y: f32[18] = [i: 18 | e: 7] sum B.values[e] * C.values[e] if i == B.at1[e]
    output y
    "#);
}

#[test]
fn conditions_leave_out_elements_of_a_row() {
    // A condition on the index that is summed over and a row's number moves positions beyond all rows; one on the place stays outside.
    insta::assert_snapshot!(met(
        "t: f32[] = [ | i: 18, j: 18, k: 18] sum where(and(i < j, j < k), A[i, j] * A[j, k] * A[i, k], 0.0)\noutput t"
    ), @r#"
    hidden A.ends: i64[18] = [x: 18] A.starts0[x + 1]
    hidden A.kept: u32[5] = [f: 5] where(A.at0[f] < A.at1[f], A.at1[f], 18)
    hidden t.dot: f32[5] = [e: 5] listed_dot(A.ends[:1], A.at1[:1], A.values[:1], A.ends[:1], A.kept[:1], A.values[:1], A.at0[e], A.at1[e], 18)
    hidden t.place: f32[5] = [e: 5] where(A.at0[e] < A.at1[e], A.values[e] * t.dot[e], 0.0)
    t: f32[] = [| e: 5] sum t.place[e]
    output t
    "#);
}

#[test]
fn elements_of_a_list_are_found_at_the_places_of_another() {
    insta::assert_snapshot!(met(
        "s: f32[] = [ | i: 18, j: 18] sum where(A[i, j] > 0.0, B[j, i], 0.0)\noutput s"
    ), @r#"
    hidden B.key: i64[7] = [e: 7] B.at0[e] * 18 + B.at1[e]
    hidden B.key.1: i64[5] = [e: 5] A.at1[e] * 18 + A.at0[e]
    hidden B.place: i64[5] = [e: 5] find(B.key[:1], B.key.1[e])
    hidden B.found: f32[5] = [e: 5] B.values[B.place[e]] else 0.0
    s: f32[] = [| e: 5] sum where(A.values[e] > 0.0, B.found[e], 0.0)
    output s
    "#);
    // A tensor that is another number elsewhere is that where nothing is found; further dimensions are those of every place.
    insta::assert_snapshot!(met(
        "w: f32[18, 18, 2] = [i: 18, j: 18, h: 2] where(B[i, j] != 0.0, B[i, j] * f32(h), -inf)\n\
         y: f32[18, 2] = [i: 18, h: 2 | j: 18] sum where(A[i, j] != 0.0, exp(w[i, j, h]), 0.0)\noutput y"
    ), @r#"
    hidden w.values: f32[7, 2] = [e: 7, h: 2] where(B.values[e] != 0.0, B.values[e] * f32(h), -inf)
    hidden w.key: i64[7] = [e: 7] B.at0[e] * 18 + B.at1[e]
    hidden w.key.1: i64[5] = [e: 5] A.at0[e] * 18 + A.at1[e]
    hidden w.place: i64[5] = [e: 5] find(w.key[:1], w.key.1[e])
    hidden w.found: f32[5, 2] = [e: 5, e1: 2] w.values[w.place[e], e1] else -inf
    y: f32[18, 2] = [i: 18, h: 2 | e: 5] sum where(A.values[e] != 0.0, exp(w.found[e, h]), 0.0) if i == A.at0[e]
    output y
    "#);
}

#[test]
fn a_place_outside_of_the_other_tensor_is_not_found() {
    let text = "input A: f32[40, 40] = unbound\ninput B: f32[20, 16] = unbound\n\
                s: f32[] = [ | i: 20, j: 16] sum A[i, j] * B[i, j]\noutput s";
    let lists = over_lists(text, 5).to_string();
    let key = "[e: 5] where(and(A.at0[e] < 20, A.at1[e] < 16), A.at0[e] * 16 + A.at1[e], -1)";
    assert!(lists.contains(key), "{lists}");
}

#[test]
fn what_is_no_product_of_two_lists_is_none() {
    for statement in [
        // Beside the lists there is a condition, or a value where nothing is listed.
        "s: f32[] = [ | i: 18, j: 18, k: 18] sum A[i, j] * A[j, k] * B[k, i] if k < j",
        "s: f32[] = [ | i: 18, j: 18, k: 18] sum where(i + j < k, A[i, j] * A[j, k] * B[k, i], 0.0)",
        "s: f32[] = [ | i: 18, j: 18, k: 18] sum A[i, j] * exp(A[j, k]) * B[k, i]",
        "s: f32[] = [ | i: 18, j: 18, k: 18] sum A[i, j] * A[j, k] * A[j, k]",
        "s: f32[] = [ | i: 18, j: 18, k: 18] max A[i, j] * A[j, k] * B[k, i]",
    ] {
        let text = met(&format!("{statement}\noutput s"));
        assert!(!text.contains("listed_dot"), "{text}");
    }
}

/// A program of products of two matrices; all values are finite.
fn random_program(random: &mut Random) -> String {
    let mut text = format!("{INPUTS}input d: f32[18] = unbound\n");
    let mut outputs = String::new();
    for number in 0..5 {
        let mut read = |i: &str, j: &str| {
            let name = random.of(&["A", "A", "B"]);
            let read = match random.below(2) {
                0 => format!("{name}[{i}, {j}]"),
                _ => format!("{name}[{j}, {i}]"),
            };
            match random.below(6) {
                0 => format!("({read} * {read})"),
                1 => format!("where({read} != 0.0, 1.0, 0.0)"),
                _ => read,
            }
        };
        let (x, y, z, w) = (
            read("i", "j"),
            read("j", "k"),
            read("i", "k"),
            read("i", "j"),
        );
        let kept = random.of(&["and(i < j, j < k)", "j < k", "i < k", "k + i > 9", "i > 2"]);
        let beside = random.of(&["", " * d[i]", " * d[j]", " * d[i] * d[j]"]);
        text += &match random.below(6) {
            0 => {
                format!("m{number}: f32[] = [ | i: 18, j: 18, k: 18] sum {x} * {y} * {z}{beside}\n")
            }
            1 => format!(
                "c{number}: f32[18, 18] = [i: 18, j: 18 | k: 18] sum {y} * {z}{beside}\n\
                 m{number}: f32[18] = [i: 18 | j: 18] sum {x} * c{number}[i, j]\n"
            ),
            2 => format!("m{number}: f32[18, 18] = [i: 18, j: 18] {x} * {w}{beside}\n"),
            3 => format!(
                "m{number}: f32[18] = [j: 18 | i: 18] max where({x} > 0.0, {w}{beside}, -1.0)\n"
            ),
            4 => format!(
                "m{number}: f32[18] = [i: 18 | j: 18, k: 18] sum where({kept}, {x} * {y} * {z}{beside}, 0.0)\n"
            ),
            _ => {
                format!("m{number}: f32[18] = [i: 18 | j: 18, k: 18] sum {x} * {y} * {z}{beside}\n")
            }
        };
        outputs += &format!("output m{number}\n");
    }
    text + &outputs
}

#[test]
fn random_products_keep_their_meaning() {
    let (mut dots, mut finds) = (0, 0);
    for seed in 0..200 {
        let dense = program(&random_program(&mut Random(seed)));
        let lists = with_lists(&dense, &listing(7));
        assert_eq!(verify(&lists), Ok(()), "{seed}: {lists}");
        let text = lists.to_string();
        dots += usize::from(text.contains("listed_dot("));
        finds += usize::from(text.contains("find("));
        assert_same((&dense, &lists), &[18, 18], &format!("seed {seed}"));
    }
    assert!(dots > 100 && finds > 100, "{dots} {finds}");
}
