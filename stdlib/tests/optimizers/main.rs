//! The optimizers of `std.optim` against golden vectors and against plain loops in double precision.
#![allow(clippy::unwrap_used)]

mod reference;

use reference::{Memory, Rule, norm};

/// Two steps from w = [1, 2, 2] with the gradients [0.1, -0.2, 0.2] and [0.3, 0, -0.4], computed with numpy from the formulas of the papers
/// by someone who did not see this library.
const GRADIENTS: [[f64; 3]; 2] = [[0.1, -0.2, 0.2], [0.3, 0.0, -0.4]];

type Golden = (Rule, [f64; 3], [f64; 3]);

fn golden() -> Vec<Golden> {
    let rule = Rule::new;
    vec![
        (
            rule(
                "lars",
                1.0,
                &[("trust", 1e-3), ("mu", 0.9), ("weight_decay", 0.01)],
            ),
            [0.999, 2.00163636, 1.998],
            [0.99634566, 2.00299581, 1.99835067],
        ),
        (
            rule("lars_ema", 0.1, &[("beta1", 0.9), ("weight_decay", 0.01)]),
            [0.89173051, 2.17716825, 1.78346102],
            [0.63496236, 2.26543655, 1.89938601],
        ),
        (
            rule("lamb", 0.1, &[]),
            [0.82566963, 2.16915305, 1.82394271],
            [0.59455249, 2.33096959, 1.91076146],
        ),
        (
            rule("lamb", 0.1, &[("bias_correction", 0.0)]),
            [0.8264508, 2.17193479, 1.82587619],
            [0.59826361, 2.3369007, 1.91564428],
        ),
        (
            rule("lamb", 0.1, &[("weight_decay", 0.0)]),
            [0.8267955, 2.17320537, 1.82679463],
            [0.59948143, 2.33916354, 1.91747049],
        ),
        (
            rule(
                "lamb",
                0.1,
                &[("weight_decay", 0.0), ("bias_correction", 0.0)],
            ),
            [0.82681317, 2.17321421, 1.82678579],
            [0.59949526, 2.33916595, 1.91746572],
        ),
        (
            rule("nlamb", 0.1, &[]),
            [0.82603517, 2.17049576, 1.8248788],
            [0.58849469, 2.25178459, 1.9804498],
        ),
        (
            rule("nnlamb", 0.1, &[]),
            [0.82586759, 2.16988417, 1.82445151],
            [0.60149261, 2.28848881, 1.97538058],
        ),
    ]
}

/// Two steps by the plain loops.
fn plain(rule: &Rule, start: [f64; 3]) -> [[f64; 3]; 2] {
    let (mut w, mut memory) = (start, Memory::default());
    let mut t = 0;
    GRADIENTS.map(|g| {
        t += 1;
        rule.step(&mut w, &g, &mut memory, t, norm(&g));
        w
    })
}

#[track_caller]
fn close(found: &[f64], wanted: &[f64], tolerance: f64, what: &str) {
    for (found, wanted) in found.iter().zip(wanted) {
        let fits = (found - wanted).abs() <= tolerance * wanted.abs().max(1.0);
        assert!(fits, "{what}: {found} is not {wanted}");
    }
}

#[test]
fn plain_loops_give_the_golden_vectors() {
    for (rule, first, second) in golden() {
        let [one, two] = plain(&rule, [1.0, 2.0, 2.0]);
        close(&one, &first, 1e-8, &format!("{} after step 1", rule.text()));
        close(
            &two,
            &second,
            1e-8,
            &format!("{} after step 2", rule.text()),
        );
    }
}
