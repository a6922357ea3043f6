//! Reads at positions that go round a modulus or on to another quotient within a strip: run by run.
//!
//! Must not know what is outside.
//!
//! ```text
//! a0[(x + 2) % 4]        at x = 0..4   ->   elements 2 3, then 0 1
//! a0[x / 3, x % 3]       at x = 1..6   ->   elements (0, 1) (0, 2), then (1, 0) (1, 1) (1, 2)
//! a0[x % 2, x / 2]       at x = 0..6   ->   elements (0, 0) (1, 0), then both further by (0, 1), and again
//! ```

use super::Machine;
use crate::load::{Extents, Pattern, along};
use crate::program::{Followed, Form, Read, Register};

/// Runs of fewer lanes take longer than lanes one by one.
const SHORT: i64 = 8;

impl Followed {
    /// Returns whether it goes on to another quotient, or round its modulus, after a few lanes.
    pub(super) fn is_short(&self, strip: &Extents) -> bool {
        let inner = strip.sizes.len().checked_sub(1);
        let step = inner.map_or(0, |inner| self.lanes[inner]);
        let turn = self.turn(step);
        turn.is_some_and(|turn| turn < SHORT)
    }

    /// After how many lanes it goes on to another quotient, or round its modulus, if it ever does.
    fn turn(&self, step: i64) -> Option<i64> {
        let round = match self.divisor {
            1 => self.modulus?,
            divisor => divisor,
        };
        (step != 0).then(|| round / step.abs())
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

impl Followed {
    /// How far the position goes on in `turn` lanes, if that is the same from each lane between two values of the affine form on.
    fn in_turn(&self, turn: i64, step: i64, (low, high): (i64, i64)) -> Option<i64> {
        let far = turn.checked_mul(step)?;
        let whole = far % self.divisor == 0;
        let quotient = far / self.divisor;
        match self.modulus {
            None => whole.then_some(quotient),
            Some(modulus) if whole && quotient % modulus == 0 => Some(0),
            Some(modulus) => {
                let round = |form: i64| self.quotient(form).div_euclid(modulus);
                (whole && round(low) == round(high)).then_some(quotient)
            }
        }
    }
}

impl Read {
    /// After how few lanes each position has gone on by the same from any lane on, if it does.
    fn turn(&self, inner: usize) -> Option<i64> {
        let turns = self.dims.iter().filter_map(|dim| match &dim.form {
            Form::Followed(form) => form.turn(form.lanes[inner]),
            Form::Value(_) => None,
        });
        let turn = turns.max()?;
        (1..=SHORT).contains(&turn).then_some(turn)
    }
}

impl Machine<'_, '_> {
    /// Positions that are all inside and go on to another quotient after a few lanes: after some lanes each has gone on by the same. Returns
    /// false, and reads nothing, if they have not.
    pub(super) fn read_turns(
        &mut self,
        to: Register,
        read: &Read,
        strip: &Extents,
        firsts: &[i64; 16],
    ) -> bool {
        let Some(inner) = strip.sizes.len().checked_sub(1) else {
            return false;
        };
        let Some(turn) = read.turn(inner) else {
            return false;
        };
        // How far the element is in a turn from where it was.
        let mut step = 0;
        for (dim, first) in read.dims.iter().zip(firsts) {
            let Form::Followed(form) = &dim.form else {
                continue;
            };
            let ends = super::reads::ends(*first, &form.lanes, strip);
            match form.in_turn(turn, form.lanes[inner], ends) {
                Some(far) => step += far * dim.stride,
                None => return false,
            }
        }
        let run = strip.run();
        let skipped = self.skipped.get(read.operand).copied().unwrap_or(0);
        strip.runs(|lane, at| {
            let mut offsets = [-skipped; SHORT as usize];
            for (l, offset) in (0..turn).zip(&mut offsets) {
                for (dim, first) in read.dims.iter().zip(firsts) {
                    let value = match &dim.form {
                        Form::Followed(form) => {
                            form.position(first + along(&form.lanes, at) + form.lanes[inner] * l)
                        }
                        Form::Value(_) => *first,
                    };
                    *offset += (value - dim.start) * dim.stride;
                }
            }
            let offsets = &offsets[..(turn as usize).min(run)];
            self.fetch(to, read, lane, run, &Pattern::Turns { offsets, step });
        });
        true
    }

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
        let skipped = self.skipped.get(read.operand).copied().unwrap_or(0);
        strip.runs(|lane, at| {
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
        });
    }
}
