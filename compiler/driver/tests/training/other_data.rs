//! Definitions on other data after training: what is trained, and constants of the data, stay as they are.

use crate::reference::Regression;
use crate::{COLUMNS, ROWS, close, made, regression, run};
use ein_plan::Source;

#[test]
fn outputs_on_other_data_have_what_was_trained() {
    let mut reference = Regression::new();
    let shift: f64 = reference.y.iter().sum::<f64>() / ROWS as f64;
    reference.y.iter_mut().for_each(|y| *y -= shift);
    for rows in Regression::batches(4, 2, Some("train.1")) {
        let (_, gradient) = reference.gradient(&rows);
        for (p, g) in reference.params.iter_mut().zip(gradient) {
            *p -= 0.1 * g;
        }
    }
    let whole = reference.loss();
    let uniform = Source::Uniform { lo: -1.0, hi: 1.0 };
    let other = |x: &str, y: &str, rows: usize| {
        let mut other = Regression {
            x: made(&uniform, x, &[rows as u64, COLUMNS as u64]),
            y: made(&uniform, y, &[rows as u64]),
            params: reference.params.clone(),
        };
        other.y.iter_mut().for_each(|y| *y -= shift);
        other.gradient(&(0..rows).collect::<Vec<_>>()).0
    };
    let text = format!(
        "dim W = 11
        input Xv: f32[7, {COLUMNS}] = uniform(-1, 1)
        input yv: f32[7] = uniform(-1, 1)
        input Xw: f32[W, {COLUMNS}] = uniform(-1, 1)
        input yw: f32[W] = uniform(-1, 1)
        {}
        output loss
        output loss on (Xv, yv)
        output z on (Xw)
        output loss on (Xw, yw)",
        regression("").replace(
            "loss = mean[n] (z[n] - y[n])^2",
            "const shift = mean[n] y[n]
            loss = mean[n] (z[n] - (y[n] - shift))^2
            train { loss: loss; data: (X, y) over N by 4 shuffle; epochs: 2; optimizer: sgd(lr: 0.1); validate: loss on (Xv, yv) }"
        )
    );
    for sites in 1..=4 {
        let found = run(&text, sites);
        let at = |name: &str| found.outputs[name].clone();
        let (v, w) = (other("Xv", "yv", 7), other("Xw", "yw", 11));
        close(&at("loss"), &[whole], "on the data");
        close(&at("loss.on.Xv.yv"), &[v], "on Xv");
        close(&at("loss.on.Xw.yw"), &[w], "on Xw");
        close(&found.validated[1..], &[v], "validated");
        let z = made(&uniform, "Xw", &[11, COLUMNS as u64]);
        let rows = z.chunks(COLUMNS).map(|row| {
            let dot: f64 = row.iter().zip(&reference.params).map(|(x, w)| x * w).sum();
            dot + reference.params[COLUMNS]
        });
        close(&at("z.on.Xw"), &rows.collect::<Vec<_>>(), "z");
    }
}

#[test]
fn where_every_step_is_over_all_data_others_stand_for_the_inputs_of_a_definition() {
    let mut reference = Regression::new();
    for _ in 0..3 {
        let (_, gradient) = reference.gradient(&(0..ROWS).collect::<Vec<_>>());
        for (p, g) in reference.params.iter_mut().zip(gradient) {
            *p -= 0.1 * g;
        }
    }
    let uniform = Source::Uniform { lo: -1.0, hi: 1.0 };
    let other = Regression {
        x: made(&uniform, "Xv", &[7, COLUMNS as u64]),
        y: made(&uniform, "yv", &[7]),
        params: reference.params.clone(),
    };
    let want = other.gradient(&(0..7).collect::<Vec<_>>()).0;
    let text = format!(
        "input Xv: f32[7, {COLUMNS}] = uniform(-1, 1)
        input yv: f32[7] = uniform(-1, 1)
        {}
        output loss on (Xv, yv)",
        regression(
            "train { loss: loss; steps: 3; optimizer: sgd(lr: 0.1); validate: loss on (Xv, yv) }"
        )
    );
    for sites in 1..=4 {
        let found = run(&text, sites);
        close(&found.outputs["loss.on.Xv.yv"], &[want], "given out");
        assert_eq!(found.validated.len(), 3);
        close(&found.validated[2..], &[want], "validated");
    }
}
