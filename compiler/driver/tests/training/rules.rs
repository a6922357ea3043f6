//! Every key of `train` against the reference.
//!
//! ```text
//! momentum, clip, groups, a schedule, accumulation, two blocks, states, constants, rows as values
//! ```

use crate::reference::Regression;
use crate::{COLUMNS, ROWS, Run, close, regression, run};

/// Runs on 1 to 4 sites; all must give the same as the reference.
fn compare(text: &str, losses: &[f64], params: &[f64]) -> Vec<Run> {
    let mut runs = vec![];
    for sites in 1..=4 {
        let found = run(text, sites);
        let what = format!("{sites} sites\n{text}");
        close(&found.losses, losses, &format!("losses, {what}"));
        let mut all = found.outputs["w"].clone();
        all.extend(&found.outputs["b"]);
        close(&all, params, &format!("params, {what}"));
        runs.push(found);
    }
    runs
}

#[test]
fn gradient_descent_on_shuffled_batches_with_a_short_one() {
    let mut reference = Regression::new();
    let mut losses = vec![];
    for rows in Regression::batches(4, 3, Some("train.1")) {
        let (loss, gradient) = reference.gradient(&rows);
        losses.push(loss);
        for (p, g) in reference.params.iter_mut().zip(gradient) {
            *p -= 0.1 * g;
        }
    }
    let text = regression(
        "train { loss: loss; data: (X, y) over N by 4 shuffle; epochs: 3; optimizer: sgd(lr: 0.1); validate: loss }",
    );
    let params = reference.params.clone();
    for found in compare(&text, &losses, &params) {
        assert_eq!(found.validated.len(), 3);
        close(&found.validated[2..], &[reference.loss()], "validation");
    }
}

#[test]
fn clipped_momentum_with_a_schedule_and_groups() {
    let mut reference = Regression::new();
    let (mut losses, mut states) = (vec![], [0.0; COLUMNS + 1]);
    let batches = Regression::batches(5, 4, None);
    let total = batches.len() as f64;
    for (step, rows) in batches.iter().enumerate() {
        let (loss, mut gradient) = reference.gradient(rows);
        losses.push(loss);
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        if norm > 0.5 {
            gradient.iter_mut().for_each(|g| *g *= 0.5 / norm);
        }
        let step = step as f64;
        let factor = match step < 5.0 {
            true => (step + 1.0) / 5.0,
            false => (1.0 - (step - 5.0) / (total - 5.0)).powi(2),
        };
        for (at, g) in gradient.iter().enumerate() {
            let decay = if at == COLUMNS { 0.0 } else { 0.1 };
            states[at] = 0.9 * states[at] + g + decay * reference.params[at];
            reference.params[at] -= 0.3 * factor * states[at];
        }
    }
    let text = regression(
        "train {\n  loss: loss; data: (X, y) over N by 5; epochs: 4; clip: 0.5\n  optimizer: momentum(lr: 0.3, weight_decay: 0.1)\n  \
         schedule: warmup(epochs: 1) then poly(power: 2)\n  \
         group * { weight_decay: 0.7 }\n  group w { weight_decay: 0.1 }\n  group b { weight_decay: 0 }\n}",
    );
    compare(&text, &losses, &reference.params.clone());
}

#[test]
fn accumulated_gradients_are_those_of_the_batch() {
    let rest = |accumulate: &str| {
        regression(&format!(
            "train {{ loss: loss; data: (X, y) over N by 10 shuffle; epochs: 3; {accumulate} optimizer: adamw(lr: 0.05) }}"
        ))
    };
    let whole = run(&rest(""), 1);
    let mut params = whole.outputs["w"].clone();
    params.extend(&whole.outputs["b"]);
    // Parts of 3 and 4 rows; the last batch has 3 rows in parts of one.
    compare(&rest("accumulate: 3;"), &whole.losses, &params);
}

#[test]
fn blocks_with_one_optimizer_share_its_states() {
    let once = regression(
        "train { loss: loss; data: (X, y) over N by 6; epochs: 4; optimizer: adamw(lr: 0.05) }",
    );
    let whole = run(&once, 1);
    let mut params = whole.outputs["w"].clone();
    params.extend(&whole.outputs["b"]);
    let half =
        "train { loss: loss; data: (X, y) over N by 6; epochs: 2; optimizer: adamw(lr: 0.05) }";
    compare(
        &regression(&format!("{half}\n{half}")),
        &whole.losses,
        &params,
    );
}

#[test]
fn a_block_over_all_data_stands_before_and_behind_one_over_batches() {
    let mut reference = Regression::new();
    let mut losses = vec![];
    let all = || vec![(0..ROWS).collect::<Vec<_>>(); 2];
    let batches = Regression::batches(6, 1, None);
    for rows in all().into_iter().chain(batches).chain(all()) {
        let (loss, gradient) = reference.gradient(&rows);
        losses.push(loss);
        for (p, g) in reference.params.iter_mut().zip(gradient) {
            *p -= 0.1 * g;
        }
    }
    let whole = "train { loss: loss; steps: 2; optimizer: sgd(lr: 0.1) }";
    let part = "train { loss: loss; data: (X, y) over N by 6; epochs: 1; optimizer: sgd(lr: 0.1) }";
    let text = regression(&format!("{whole}\n{part}\n{whole}"));
    compare(&text, &losses, &reference.params.clone());
    // The first steps are over batches: what they read by rows is not what later steps read as a whole.
    let mut reference = Regression::new();
    let mut losses = vec![];
    for rows in Regression::batches(6, 1, None).into_iter().chain(all()) {
        let (loss, gradient) = reference.gradient(&rows);
        losses.push(loss);
        for (p, g) in reference.params.iter_mut().zip(gradient) {
            *p -= 0.1 * g;
        }
    }
    let text = regression(&format!("{part}\n{whole}"));
    compare(&text, &losses, &reference.params.clone());
}

#[test]
fn constants_are_of_all_data_and_an_index_is_the_row_s_number() {
    let mut reference = Regression::new();
    let mean: Vec<f64> = (0..COLUMNS)
        .map(|d| (0..ROWS).map(|n| reference.x[n * COLUMNS + d]).sum::<f64>() / ROWS as f64)
        .collect();
    for n in 0..ROWS {
        for (d, mean) in mean.iter().enumerate() {
            reference.x[n * COLUMNS + d] -= mean;
        }
        reference.y[n] = n as f64 / ROWS as f64 + reference.x[n * COLUMNS];
    }
    let mut losses = vec![];
    for rows in Regression::batches(4, 2, Some("train.1")) {
        let (loss, gradient) = reference.gradient(&rows);
        losses.push(loss);
        for (p, g) in reference.params.iter_mut().zip(gradient) {
            *p -= 0.1 * g;
        }
    }
    let text = format!(
        "dim N = {ROWS}\ndim M = N\ninput X: f32[N, {COLUMNS}] = uniform(-1, 1)\nparam w: f32[{COLUMNS}] = full(0.1)\nparam b: f32 = 0.2\n\
         const mu[d] = mean[n] X[n,d]\nconst shifted[n] = X[n,0] - mu[0]\nc[n,d] = X[n,d] - mu[d]\n\
         z[n] = c[n,d] * w[d] + b\nloss = mean[n] (z[n] - f32(n) / M - shifted[n])^2\n\
         train {{ loss: loss; data: X over N by 4 shuffle; epochs: 2; optimizer: sgd(lr: 0.1) }}\noutput w\noutput b\n"
    );
    compare(&text, &losses, &reference.params.clone());
}

#[test]
fn states_of_modules_go_from_step_to_step() {
    let text = format!(
        "dim N = {ROWS}\ninput X: f32[N, {COLUMNS}] = uniform(-1, 1)\nparam w: f32[{COLUMNS}] = full(0.1)\nparam b: f32 = 0\n\
         module seen(D)(x[n, D]) -> y[n, D] {{\n  state count = 0.0\n  state total[d < D]: f32[D] = zeros\n  next count = count + 1\n  \
         next total[d] = total[d] + (sum[n] x[n,d])\n  y[n,d] = x[n,d] - where(training, 0, count)\n}}\n\
         param s: seen({COLUMNS})\nz = s(X)\nloss = mean[n] (z[n,d] * w[d] + b)^2\n\
         train {{ loss: loss; data: X over N by 4; epochs: 2; optimizer: sgd(lr: 0.01) }}\nafter = z[0,0] - X[0,0]\noutput w\noutput b\noutput after\n"
    );
    for sites in 1..=3 {
        // 6 steps an epoch: after training, `count` is 12.
        close(&run(&text, sites).outputs["after"], &[-12.0], "count");
    }
}

#[test]
fn dropout_is_drawn_anew_in_every_step_and_alike_on_any_number_of_sites() {
    let text = format!(
        "dim N = {ROWS}\ninput X: f32[N, {COLUMNS}] = uniform(1, 2)\nparam w: f32[{COLUMNS}] = full(0.5)\nparam b: f32 = 0\n\
         fn drop(x[..]) -> y[..] {{\n  u[..]: f32[..] = uniform(0, 1)\n  y[..] = where(training and u[..] < 0.5, 0, x[..])\n}}\n\
         kept[n,d] = drop(X)[n,d]\nloss = mean[n] (kept[n,d] * w[d] + b)^2\n\
         train {{ loss: loss; steps: 4; optimizer: sgd(lr: 0) }}\noutput w\noutput b\n"
    );
    let first = run(&text, 1);
    for (at, loss) in first.losses.iter().enumerate() {
        assert!(first.losses[..at].iter().all(|other| other != loss));
    }
    compare(&text, &first.losses, &[0.5, 0.5, 0.5, 0.5, 0.5, 0.0]);
}

#[test]
fn params_of_other_types_are_kept_in_them() {
    let of = |dtype: &str, cast: &str| {
        format!(
            "dim N = {ROWS}\ninput X: f32[N, {COLUMNS}] = uniform(-1, 1)\ninput y: f32[N] = uniform(-1, 1)\n\
             param w: {dtype}[{COLUMNS}] = full(0.125)\nparam b: f32 = 0.25\n\
             z[n] = {cast}(X[n,d]) * {cast}(w[d])\nloss = mean[n] (f32(z[n]) + b - y[n])^2\n\
             train {{ loss: loss; data: (X, y) over N by 8; epochs: 2; optimizer: lamb(lr: 0.01); schedule: cosine }}\noutput w\noutput b\n"
        )
    };
    let f32s = run(&of("f32", "f32"), 1);
    let f64s = run(&of("f64", "f64"), 2);
    let f16s = run(&of("f16", "f32"), 3);
    close(&f64s.outputs["w"], &f32s.outputs["w"], "f64 and f32");
    for (a, b) in f16s.outputs["w"].iter().zip(&f32s.outputs["w"]) {
        assert!((a - b).abs() < 2e-3 && half::f16::from_f64(*a).to_f64() == *a);
    }
}

#[test]
fn a_state_may_begin_with_what_the_first_update_finds() {
    let mut reference = Regression::new();
    let (mut losses, mut slow, mut first) = (vec![], vec![], vec![]);
    let mut top = [0.0, 0.0];
    for (step, rows) in Regression::batches(6, 3, None).into_iter().enumerate() {
        let (loss, gradient) = reference.gradient(&rows);
        losses.push(loss);
        let norm = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>().sqrt();
        if step == 0 {
            slow = reference.params.clone();
            first = gradient.clone();
            top = [norm(&slow[..COLUMNS]), norm(&slow[COLUMNS..])];
        }
        for (at, g) in gradient.iter().enumerate() {
            let top = top[usize::from(at == COLUMNS)];
            let w = reference.params[at];
            slow[at] = 0.5 * slow[at] + 0.5 * w;
            reference.params[at] = w - 0.1 * (g + 0.2 * first[at]) + 0.1 * (slow[at] - w) / top;
        }
    }
    // Two blocks: the second goes on with the states of the first.
    let block = |epochs: usize| {
        format!(
            "train {{ loss: loss; data: (X, y) over N by 6; epochs: {epochs}; optimizer: pulled(lr: 0.1) }}\n"
        )
    };
    let text = regression(&format!(
        "optimizer pulled(lr) for w[..], g[..] {{\n  state slow[..] = w[..]\n  state first[..] = g[..]\n  state top = norm[..] w[..]\n  \
         next slow[..] = 0.5 * slow[..] + 0.5 * w[..]\n  next first[..] = first[..]\n  next top = top\n  \
         next w[..] = w[..] - lr * (g[..] + 0.2 * first[..]) + 0.1 * (next slow[..] - w[..]) / top\n}}\n{}{}",
        block(1),
        block(2)
    ));
    compare(&text, &losses, &reference.params.clone());
}
