//! Linear regression by plain loops in double precision.
//!
//! ```text
//! w = 0.1 …, b = 0.2; of each batch: the mean loss, gradients, a rule for every number
//! ```

use crate::{COLUMNS, ROWS, made};
use ein_plan::Source;

/// The data and the params: `COLUMNS` weights, then the bias.
pub(crate) struct Regression {
    pub(crate) x: Vec<f64>,
    pub(crate) y: Vec<f64>,
    pub(crate) params: Vec<f64>,
}

impl Regression {
    pub(crate) fn new() -> Regression {
        let uniform = Source::Uniform { lo: -1.0, hi: 1.0 };
        let (rows, columns) = (ROWS as u64, COLUMNS as u64);
        let mut params = vec![f64::from(0.1f32); COLUMNS];
        params.push(f64::from(0.2f32));
        Regression {
            x: made(&uniform, "X", &[rows, columns]),
            y: made(&uniform, "y", &[rows]),
            params,
        }
    }

    /// The rows of every batch of some epochs, shuffled or in their order.
    pub(crate) fn batches(batch: usize, epochs: usize, block: Option<&str>) -> Vec<Vec<usize>> {
        let mut found = vec![];
        for epoch in 0..epochs {
            let order: Vec<usize> = match block {
                None => (0..ROWS).collect(),
                Some(block) => {
                    let stream = format!("{block}.epoch.{epoch}");
                    let order = made(&Source::Permutation, &stream, &[ROWS as u64]);
                    order.into_iter().map(|row| row as usize).collect()
                }
            };
            found.extend(order.chunks(batch).map(<[usize]>::to_vec));
        }
        found
    }

    /// The loss over some rows, and its gradient.
    pub(crate) fn gradient(&self, rows: &[usize]) -> (f64, Vec<f64>) {
        let (mut loss, mut gradient) = (0.0, vec![0.0; COLUMNS + 1]);
        for row in rows {
            let x = &self.x[row * COLUMNS..(row + 1) * COLUMNS];
            let dot: f64 = x.iter().zip(&self.params).map(|(x, w)| x * w).sum();
            let error = dot + self.params[COLUMNS] - self.y[*row];
            loss += error * error / rows.len() as f64;
            for (g, x) in gradient.iter_mut().zip(x.iter().chain(&[1.0])) {
                *g += 2.0 * error * x / rows.len() as f64;
            }
        }
        (loss, gradient)
    }

    /// The loss over all rows.
    pub(crate) fn loss(&self) -> f64 {
        self.gradient(&(0..ROWS).collect::<Vec<_>>()).0
    }
}
