//! Reads at positions that go round a modulus or on to another quotient within a strip: run by run.
//!
//! Must not know what is outside.
//!
//! ```text
//! a0[(x + 2) % 4]        at x = 0..4   ->   elements 2 3, then 0 1
//! a0[x / 3, x % 3]       at x = 1..6   ->   elements (0, 1) (0, 2), then (1, 0) (1, 1) (1, 2)
//! ```

use super::Machine;
use crate::load::{Extents, Pattern, along};
use crate::program::{Followed, Form, Read, Register};

/// Runs of fewer lanes take longer than lanes one by one.
const SHORT: i64 = 8;

impl Followed {
    /// Returns whether it goes on to another quotient after a few lanes.
    pub(super) fn is_short(&self, strip: &Extents) -> bool {
        let inner = strip
            .sizes
            .len()
            .checked_sub(1)
            .map(|last| self.lanes[last]);
        inner.is_some_and(|step| step != 0 && self.divisor > 1 && self.divisor / step.abs() < SHORT)
    }

    /// How many lanes from one with this value of the affine form on, which is `step` more in the next one, have positions that are a
    /// step apart.
    fn lanes_from(&self, form: i64, step: i64) -> i64 {
        let until = |at: i64, end: i64, step: i64| match step {
            0 => i64::MAX,
            1.. => (end - 1 - at) / step + 1,
            _ => at / -step + 1,
        };
        match (self.divisor, self.modulus) {
            (1, None) => i64::MAX,
            (1, Some(modulus)) => until(form.rem_euclid(modulus), modulus, step),
            (divisor, _) => until(form.rem_euclid(divisor), divisor, step),
        }
    }
}

impl Machine<'_, '_> {
    /// Positions that are all inside: each run is cut where one of them does not go on by its step. `firsts`: the affine forms at the
    /// first lane.
    pub(super) fn read_round(
        &mut self,
        to: Register,
        read: &Read,
        strip: &Extents,
        firsts: &[i64; 16],
    ) {
        let run = strip.run();
        let inner = strip.sizes.len().saturating_sub(1);
        // The runs are walked with the machine borrowed, so their beginnings are listed first.
        let mut runs: Vec<(usize, [usize; 8])> = Vec::with_capacity(strip.lanes() / run.max(1));
        strip.runs(|lane, at| {
            let mut coordinates = [0; 8];
            coordinates[..at.len()].copy_from_slice(at);
            runs.push((lane, coordinates));
        });
        let skipped = self.skipped.get(read.operand).copied().unwrap_or(0);
        for (lane, at) in runs {
            let at = &at[..inner];
            let mut done = 0;
            while done < run {
                let (mut offset, mut length) = (-skipped, (run - done) as i64);
                for (position, first) in read.dims.iter().zip(firsts) {
                    let value = match &position.form {
                        Form::Followed(form) => {
                            let step = form.lanes[inner];
                            let value = first + along(&form.lanes, at) + step * done as i64;
                            length = length.min(form.lanes_from(value, step));
                            form.position(value)
                        }
                        Form::Value(_) => *first,
                    };
                    offset += (value - position.start) * position.stride;
                }
                let pattern = Pattern::Run {
                    offset,
                    step: read.lanes[inner],
                };
                let length = length as usize;
                self.fetch(to, read, lane + done, length, &pattern);
                done += length;
            }
        }
    }
}
