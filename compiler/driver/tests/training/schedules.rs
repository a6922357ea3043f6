//! Every schedule of the library against its closed form, through the rates that runs record.
//!
//! ```text
//! warmup(epochs: 2) then poly(), 23 rows by 5   =>   0.1, 0.2, … 1 times the rate in steps 0 to 9, then (1 - t / 10)
//! ```

use crate::{ROWS, regression, run};

/// A step of a block: its number, that of its epoch, steps an epoch, steps of the block.
#[derive(Clone, Copy)]
struct At {
    step: f64,
    epoch: f64,
    per_epoch: f64,
    total: f64,
}

impl At {
    /// The step as a span sees it that begins at `from` and has the rest.
    fn after(self, from: f64) -> At {
        At {
            step: self.step - from,
            total: self.total - from,
            ..self
        }
    }
}

const RATE: f64 = 0.03125;

/// A batch, how long it lasts, a schedule and its factor.
type Stretch<'a> = (usize, &'a str, &'a str, &'a dyn Fn(At) -> f64);

/// Runs blocks and compares the recorded rates; numbers of schedules are f32.
fn rates(blocks: &[Stretch<'_>]) {
    let mut text = String::new();
    let mut wanted = vec![];
    for (batch, lasts, schedule, factor) in blocks {
        text += &format!(
            "train {{ loss: loss; data: (X, y) over N by {batch} shuffle; {lasts}; optimizer: sgd(lr: {RATE}); schedule: {schedule} }}\n"
        );
        let per_epoch = ROWS.div_ceil(*batch);
        let (unit, count) = lasts.split_once(": ").unwrap();
        let count: usize = count.parse().unwrap();
        let total = if unit == "epochs" {
            count * per_epoch
        } else {
            count
        };
        wanted.extend((0..total).map(|step| {
            RATE * factor(At {
                step: step as f64,
                epoch: (step / per_epoch) as f64,
                per_epoch: per_epoch as f64,
                total: total as f64,
            })
        }));
    }
    for sites in [1, 3] {
        let found = run(&regression(&text), sites).rates;
        assert_eq!(found.len(), wanted.len(), "{text}");
        for (step, (a, b)) in found.iter().zip(&wanted).enumerate() {
            assert!(
                (a - b).abs() <= 1e-7 * RATE,
                "step {step}: {a} and {b}\n{text}"
            );
        }
    }
}

fn poly(at: At, power: i32) -> f64 {
    (1.0 - at.step / at.total).powi(power)
}

fn cosine(at: At, floor: f64) -> f64 {
    floor + (1.0 - floor) * (1.0 + (std::f64::consts::PI * at.step / at.total).cos()) / 2.0
}

fn warm(at: At, steps: f64) -> Option<f64> {
    (at.step < steps).then(|| ((at.step + 1.0) / steps).min(1.0))
}

#[test]
fn schedules_without_a_length() {
    for lasts in ["epochs: 4", "steps: 13", "steps: 1"] {
        rates(&[(5, lasts, "constant()", &|_| 1.0)]);
        rates(&[(5, lasts, "step(factor: 0.5, every: 2)", &|at| {
            0.5f64.powf((at.epoch / 2.0).floor())
        })]);
        rates(&[(5, lasts, "exponential(factor: 0.8)", &|at| {
            0.8f64.powf(at.step / at.per_epoch)
        })]);
        rates(&[(5, lasts, "cosine(floor: 0.1)", &|at| cosine(at, 0.1))]);
        rates(&[(5, lasts, "cosine", &|at| cosine(at, 0.0))]);
        rates(&[(5, lasts, "poly(power: 2)", &|at| poly(at, 2))]);
        rates(&[(5, lasts, "decay(factor: 0.1, at: [1, 3])", &|at| {
            0.1f64.powi(i32::from(at.epoch >= 1.0) + i32::from(at.epoch >= 3.0))
        })]);
    }
    // A batch larger than the data is all of them: one step an epoch.
    rates(&[(64, "epochs: 3", "exponential(factor: 0.8)", &|at| {
        0.8f64.powf(at.step)
    })]);
}

#[test]
fn a_warm_up_and_what_follows_it() {
    let then_poly = |at: At| warm(at, 10.0).unwrap_or_else(|| poly(at.after(10.0), 1));
    rates(&[(5, "epochs: 4", "warmup(epochs: 2) then poly()", &then_poly)]);
    let then_cosine = |at: At| warm(at, 3.0).unwrap_or_else(|| cosine(at.after(3.0), 0.2));
    rates(&[(
        5,
        "steps: 13",
        "warmup(steps: 3) then cosine(floor: 0.2)",
        &then_cosine,
    )]);
    // Nothing behind it: the last value stays. Longer than the run: its first part.
    rates(&[(5, "steps: 7", "warmup(steps: 4)", &|at| {
        warm(at, 4.0).unwrap_or(1.0)
    })]);
    rates(&[(5, "steps: 7", "warmup(steps: 50) then poly()", &|at| {
        (at.step + 1.0) / 50.0
    })]);
    // Of one step, of none, of a part of a step.
    rates(&[(5, "steps: 1", "warmup(steps: 1) then poly()", &|_| 1.0)]);
    rates(&[(5, "steps: 4", "warmup(epochs: 0) then poly()", &|at| {
        poly(at, 1)
    })]);
    rates(&[(5, "steps: 4", "warmup(epochs: 0)", &|_| 1.0)]);
    let part = |at: At| match warm(at, 2.5) {
        Some(factor) => factor,
        None => poly(at.after(3.0), 1),
    };
    rates(&[(5, "epochs: 2", "warmup(epochs: 0.5) then poly()", &part)]);
    let three = |at: At| {
        let cooled = |at: At| warm(at, 5.0).unwrap_or_else(|| poly(at.after(5.0), 2));
        warm(at, 2.0).unwrap_or_else(|| cooled(at.after(2.0)))
    };
    rates(&[(
        5,
        "epochs: 4",
        "warmup(steps: 2) then warmup(epochs: 1) then poly(power: 2)",
        &three,
    )]);
}

#[test]
fn legw_warms_up_for_the_same_number_of_steps() {
    for batch in [2usize, 4, 5, 23] {
        // One epoch at a batch of 2 is 12 steps; at batches that do not divide, the epochs grow with the batch and the steps are rounded up.
        let per_epoch = ROWS.div_ceil(batch) as f64;
        let length = batch as f64 / 2.0 * per_epoch;
        let factor =
            move |at: At| warm(at, length).unwrap_or_else(|| poly(at.after(length.ceil()), 1));
        let schedule = "legw(base_batch: 2, base_epochs: 1) then poly()";
        rates(&[(batch, "epochs: 14", schedule, &factor)]);
        // With a rate the factor is all of the rule, by name and by position.
        let scale = 0.5 * (batch as f64 / 2.0).sqrt();
        let whole = move |at: At| scale * warm(at, length).unwrap_or(1.0);
        for schedule in [
            "legw(base_batch: 2, base_lr: 0.5, base_warmup: 1)",
            "legw(2, 0.5, 1)",
        ] {
            rates(&[(batch, "epochs: 14", schedule, &whole)]);
        }
    }
}

#[test]
fn cycles_warm_up_again() {
    let cycle = |at: At, warmup: f64| match at.step < warmup {
        true => ((at.step + 1.0) / warmup).min(1.0),
        false => (at.total - at.step) / (at.total - warmup),
    };
    let both = move |at: At| match at.step < 15.0 {
        true => cycle(At { total: 15.0, ..at }, 4.0),
        false => cycle(
            At {
                total: 5.0,
                ..at.after(15.0)
            },
            2.0,
        ),
    };
    rates(&[(
        5,
        "epochs: 4",
        "cycle(epochs: 3, warmup: 4) then cycle(epochs: 1, warmup: 2)",
        &both,
    )]);
}

#[test]
fn a_second_block_has_its_own_batch_and_schedule() {
    let first = |at: At| warm(at, 2.0).unwrap_or_else(|| poly(at.after(2.0), 1));
    let again = |at: At| {
        let length = 9.0 / 3.0 * 3.0;
        warm(at, length).unwrap_or_else(|| cosine(at.after(length), 0.0))
    };
    rates(&[
        (4, "epochs: 2", "warmup(steps: 2) then poly()", &first),
        (
            9,
            "epochs: 5",
            "legw(base_batch: 3, base_epochs: 1) then cosine",
            &again,
        ),
    ]);
}

#[test]
fn rates_scale_with_the_batch() {
    for (scaling, wanted) in [("linear", 3.5), ("sqrt", 3.5f64.sqrt())] {
        let text = format!(
            "use std.schedule\nconst B = 7\ntrain {{ loss: loss; data: (X, y) over N by B; epochs: 1\n\
             optimizer: sgd(lr: 0.01 * schedule.{scaling}_scaling(B, 2)) }}"
        );
        let found = run(&format!("{}\n{text}", regression("")), 1).rates;
        assert_eq!(found.len(), 4);
        assert!(
            found
                .iter()
                .all(|rate| (rate - 0.01 * wanted).abs() < 1e-15),
            "{found:?}"
        );
    }
}
