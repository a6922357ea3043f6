//! Reads at positions that are looked up lane by lane.
//!
//! Positions that all lanes share are found once a strip, and those that the lanes of a row share once a row. Must not know how a position is computed.
//!
//! ```text
//! a0[i, t[j]] at i = 3, t = 2 0 9 1   of a0[8, 5]   ->   elements 17 15, lane 2 is missing, element 16
//! a0[t[n], d]  at t = 2 0, d = 0..3   of a0[8, 3]   ->   rows of 3 elements from 6 and from 0 on
//! ```

use super::Machine;
use crate::load::{Extents, Pattern, along};
use crate::nest::WIDTH;
use crate::program::{Followed, Form, Position, Read, Register};
use crate::wide::{self, Job};

/// Shorter rows are looked up lane by lane.
const LEAST_ROW: usize = 8;

/// Fills positions with the quotients of a form that begins with `value` and goes on by `step`.
fn fill_quotients(positions: &mut [i64], value: i64, step: i64, divisor: i64) {
    if divisor == 1 {
        for (position, lane) in positions.iter_mut().zip(0..) {
            *position = value + step * lane;
        }
        return;
    }
    let (mut quotient, mut rest) = (value.div_euclid(divisor), value.rem_euclid(divisor));
    let (whole, part) = (step.div_euclid(divisor), step.rem_euclid(divisor));
    for position in positions {
        *position = quotient;
        quotient += whole;
        rest += part;
        if rest >= divisor {
            rest -= divisor;
            quotient += 1;
        }
    }
}

impl Followed {
    /// Its positions in the lanes of a strip that begins at a point.
    fn fill(&self, positions: &mut [i64], point: &[i64], strip: &Extents) {
        let (first, run) = (self.form(point), strip.run());
        let inner = self.lanes.last().copied().unwrap_or(0);
        strip.runs(|lane, at| {
            let value = first + along(&self.lanes, at);
            fill_quotients(&mut positions[lane..lane + run], value, inner, self.divisor);
        });
        if let Some(modulus) = self.modulus {
            for position in positions {
                *position = position.rem_euclid(modulus);
            }
        }
    }
}

/// Adds the distances of positions along a dimension to offsets; whether all of them are inside.
struct Distances<'o> {
    offsets: &'o mut [i64],
    positions: &'o [i64],
    dim: &'o Position,
}

impl Job for Distances<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<const BYTES: usize>(self) -> bool {
        let Position {
            start,
            length,
            stride,
            ..
        } = *self.dim;
        let mut farthest = 0;
        let lanes = self.offsets.iter_mut().zip(self.positions);
        if stride == 1 {
            for (offset, position) in lanes {
                let relative = position.wrapping_sub(start);
                farthest = farthest.max(relative as u64);
                *offset = offset.wrapping_add(relative);
            }
        } else {
            for (offset, position) in lanes {
                let relative = position.wrapping_sub(start);
                farthest = farthest.max(relative as u64);
                *offset = offset.wrapping_add(relative.wrapping_mul(stride));
            }
        }
        farthest < length as u64
    }
}

impl Machine<'_, '_> {
    /// Positions that are looked up lane by lane. Whether lanes are missing.
    pub(super) fn read_chosen(
        &mut self,
        to: Register,
        read: &Read,
        strip: &Extents,
        n: usize,
    ) -> bool {
        if read.by_rows && strip.run() >= LEAST_ROW && self.read_rows(to, read, strip, n) {
            return false;
        }
        let skipped = self.skipped.get(read.operand).copied().unwrap_or(0);
        let mut offsets = std::mem::take(&mut self.offsets);
        let mut positions = [0i64; WIDTH];
        // The distance that all lanes have in common, and whether all is inside.
        let (mut base, mut inside) = (-skipped, true);
        offsets[..n].fill(0);
        for dim in &read.dims {
            if let Some(position) = self.common(dim, strip) {
                let relative = position.wrapping_sub(dim.start);
                inside &= (relative as u64) < dim.length as u64;
                base = base.wrapping_add(relative.wrapping_mul(dim.stride));
                continue;
            }
            inside &= wide::run(Distances {
                offsets: &mut offsets[..n],
                positions: self.positions(dim, strip, &mut positions[..n]),
                dim,
            });
        }
        if inside {
            let offsets = &offsets[..n];
            self.fetch(to, read, 0, n, &Pattern::There { base, offsets });
        } else {
            self.mark_missing(read, strip, &mut offsets[..n]);
            for offset in offsets[..n].iter_mut().filter(|offset| **offset >= 0) {
                *offset -= skipped;
            }
            self.fetch(to, read, 0, n, &Pattern::Chosen(&offsets[..n]));
        }
        self.offsets = offsets;
        !inside
    }

    /// Reads row by row along the last dimension of a strip. Returns false, and reads nothing, if an element is outside.
    fn read_rows(&mut self, to: Register, read: &Read, strip: &Extents, n: usize) -> bool {
        let (run, inner) = (strip.run(), strip.sizes.len() - 1);
        let skipped = self.skipped.get(read.operand).copied().unwrap_or(0);
        let mut offsets = std::mem::take(&mut self.offsets);
        let rows = &mut offsets[..n / run];
        rows.fill(-skipped);
        let mut inside = true;
        for dim in &read.dims {
            let mut add = |row: usize, position: i64, step: i64| {
                let relative = position.wrapping_sub(dim.start);
                let last = relative.wrapping_add(step * (run as i64 - 1));
                inside &= (relative.max(last) as u64) < dim.length as u64;
                inside &= relative.min(last) >= 0;
                rows[row] = rows[row].wrapping_add(relative.wrapping_mul(dim.stride));
            };
            match &dim.form {
                Form::Followed(form) => {
                    let first = form.form(&self.point);
                    strip.runs(|lane, at| {
                        let value = first + along(&form.lanes, at);
                        add(lane / run, form.position(value), form.lanes[inner]);
                    });
                }
                Form::Value(id) => {
                    let register = self.program.registers[*id as usize];
                    if register.uniform {
                        let position = self.i64s.first(register);
                        (0..n / run).for_each(|row| add(row, position, 0));
                        continue;
                    }
                    let lanes = self.i64s.lanes(register, n);
                    let firsts = lanes.iter().step_by(run).enumerate();
                    firsts.for_each(|(row, position)| add(row, *position, 0));
                }
            }
        }
        if inside {
            let pattern = Pattern::Rows {
                offsets: rows,
                length: run,
                step: read.lanes[inner],
            };
            self.fetch(to, read, 0, n, &pattern);
        }
        self.offsets = offsets;
        inside
    }

    /// The position along a dimension, if it is the same in all lanes of a strip.
    fn common(&self, dim: &Position, strip: &Extents) -> Option<i64> {
        match dim.form {
            Form::Followed(ref form) => {
                let fixed = strip.sizes.is_empty() || form.lanes.iter().all(|step| *step == 0);
                fixed.then(|| form.position(form.form(&self.point)))
            }
            Form::Value(id) => {
                let register = self.program.registers[id as usize];
                register.uniform.then(|| self.i64s.first(register))
            }
        }
    }

    /// The positions along a dimension that differ between lanes, in `room` if they are nowhere else.
    fn positions<'s>(&'s self, dim: &Position, strip: &Extents, room: &'s mut [i64]) -> &'s [i64] {
        match dim.form {
            Form::Followed(ref form) => {
                form.fill(room, &self.point, strip);
                room
            }
            Form::Value(id) => self
                .i64s
                .lanes(self.program.registers[id as usize], room.len()),
        }
    }

    /// Finds the offset of each lane, -1 where it is missing, and marks those.
    fn mark_missing(&mut self, read: &Read, strip: &Extents, offsets: &mut [i64]) {
        let mut positions = [0i64; WIDTH];
        offsets.fill(0);
        for dim in &read.dims {
            let room = &mut positions[..offsets.len()];
            let positions = match self.common(dim, strip) {
                Some(position) => {
                    room.fill(position);
                    &*room
                }
                None => self.positions(dim, strip, room),
            };
            for (offset, position) in offsets.iter_mut().zip(positions) {
                let relative = position.wrapping_sub(dim.start);
                let there = *offset >= 0 && (relative as u64) < dim.length as u64;
                *offset = if there {
                    *offset + relative * dim.stride
                } else {
                    -1
                };
            }
        }
        for (missing, offset) in self.missing.iter_mut().zip(offsets) {
            *missing = u8::from(*offset < 0);
        }
    }
}
