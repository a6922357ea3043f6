//! Printed groups, and what is wrong with some.
#![allow(clippy::unwrap_used, missing_docs)]

use ein_fused::Group;

#[test]
fn groups_print_and_parse_back() {
    let texts = [
        "f32 (v, u) v2 = mul v0 v1; v3 = gt v2 v0; v4 = select v3 v2 v0 -> v4",
        "f64 (v, b, ub) v3 = and v1 v2; v4 = neg v0; v5 = select v3 v4 v0 -> v3, v5",
        "f32 (v) v1 = relu v0; v2 = sqrt v1; v3 = add v2 v0 -> v3",
    ];
    for text in texts {
        let group: Group = text.parse().unwrap();
        assert_eq!(group.to_string(), text);
    }
    let first: Group = texts[0].parse().unwrap();
    assert_eq!(first.truths(), [false, false, false, true, false]);
}

#[test]
fn wrong_groups_are_refused() {
    let wrong = [
        (
            "i32 (v) v1 = neg v0 -> v1",
            "`i32` is not the type of a group's numbers",
        ),
        ("f32 (w) v1 = neg v0 -> v1", "`w` is not an input"),
        ("f32 (v) v1 = exp v0 -> v1", "a group has no `exp`"),
        ("f32 (v) v1 = add v0 -> v1", "`add` has 2 arguments"),
        ("f32 (v) v1 = neg v1 -> v1", "`v1` is not a value"),
        ("f32 (v) v2 = neg v0 -> v2", "v1 is next, not `v2`"),
        (
            "f32 (v) v1 = neg v0 -> v0",
            "an output is a step, not an input",
        ),
    ];
    for (text, message) in wrong {
        assert_eq!(text.parse::<Group>().unwrap_err(), message);
    }
}

/// The code of a group is one loop: two jumps into it, and none elsewhere but to the end; no call.
#[test]
fn the_code_is_one_loop_without_calls() {
    use cranelift_codegen::settings;
    let text = "f32 (v, u) v2 = mul v0 v1; v3 = max v2 v0; v4 = floor v3 -> v4";
    let isa = cranelift_native::builder()
        .unwrap()
        .finish(settings::Flags::new(settings::builder()))
        .unwrap();
    let code = ein_fused::generate::function(&text.parse().unwrap(), isa.frontend_config());
    let code = code.to_string();
    assert!(!code.contains("call"), "{code}");
    assert_eq!(
        code.matches("jump ").count() + code.matches("brif ").count(),
        2,
        "{code}"
    );
    assert_eq!(code.matches("store").count(), 1, "{code}");
}
