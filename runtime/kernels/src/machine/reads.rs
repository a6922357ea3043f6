//! Reads of a machine: where a strip's elements lie, what is outside, and the poison that this makes.
//!
//! Reads whose positions change from run to run are in [`super::runs`], those at positions that are looked up in [`super::chosen`]. Must not know
//! other operations.
//!
//! ```text
//! a0[2 * x - 1] else 0 at x = 0..4   ->   lane 0 is outside: 0; lanes 1..4: elements 1 3 5
//! a0[(x + 2) % 4]      at x = 0..4   ->   lanes 0..2: elements 2 3; lanes 2..4: elements 0 1
//! ```

use super::Machine;
use crate::Fault;
use crate::load::{Extents, Lane, Pattern, along};
use crate::nest::WIDTH;
use crate::program::{Form, Kind, Operation, Read, Register};
use crate::segment::Segment;
use crate::stream;
use ein_plan::DType;

/// The least and the greatest value along a strip, of a form whose first value and steps these are.
pub(super) fn ends(first: i64, lanes: &[i64], strip: &Extents) -> (i64, i64) {
    let (mut low, mut high) = (first, first);
    for (step, size) in lanes.iter().zip(&strip.sizes) {
        let far = step * (*size as i64 - 1).max(0);
        low += far.min(0);
        high += far.max(0);
    }
    (low, high)
}

impl Machine<'_, '_> {
    /// Performs a read into a register.
    pub(super) fn read(&mut self, node: u32, to: Register, read: &Read, uniform: bool) {
        let single = Extents { sizes: vec![] };
        let strip = if uniform {
            single
        } else {
            std::mem::take(&mut self.extents)
        };
        let n = strip.lanes();
        self.read_strip(node, to, read, &strip, n);
        if !uniform {
            self.extents = strip;
        }
    }

    /// Takes the lanes of the operand that the result is over from its elements, from `at` on, for the reads of a level.
    pub(crate) fn take(&mut self, level: &[Operation], from: &Segment<'_>, at: usize) {
        let n = self.extents.lanes();
        for operation in level {
            let to = self.program.registers[operation.node as usize];
            macro_rules! take {
                ($bank:ident, $elements:ident) => {{
                    stream::ahead($elements, at + n..at + 2 * n);
                    self.$bank
                        .split(to, n)
                        .1
                        .copy_from_slice(&$elements[at..at + n]);
                }};
            }
            match (&operation.kind, from) {
                (Kind::Read(read), _) if self.column_over(read).is_none() => {}
                (Kind::Read(_), Segment::F32(elements)) => take!(f32s, elements),
                (Kind::Read(_), Segment::F64(elements)) => take!(f64s, elements),
                (Kind::Read(_), Segment::I32(elements)) => take!(i32s, elements),
                (Kind::Read(_), Segment::I64(elements)) => take!(i64s, elements),
                _ => {}
            }
        }
    }

    pub(super) fn fetch(
        &mut self,
        to: Register,
        read: &Read,
        first: usize,
        n: usize,
        pattern: &Pattern<'_>,
    ) {
        let data = self.operands[read.operand].columns[read.column].data();
        let at = to.slot as usize * self.program.nest.width + first;
        match to.dtype {
            DType::F32 => f32::read(&mut self.f32s.values[at..at + n], data, pattern),
            DType::F64 => f64::read(&mut self.f64s.values[at..at + n], data, pattern),
            DType::I32 => i32::read(&mut self.i32s.values[at..at + n], data, pattern),
            DType::I64 => i64::read(&mut self.i64s.values[at..at + n], data, pattern),
            _ => u8::read(&mut self.truths.values[at..at + n], data, pattern),
        }
    }

    /// Makes a register a view of neighbouring elements, or none any more. Whether it is one.
    fn view(&mut self, to: Register, read: &Read, offset: i64, n: usize) -> bool {
        let data = self.operands[read.operand].columns[read.column].data();
        let (slot, from) = (to.slot as usize, offset as usize);
        macro_rules! view {
            ($bank:ident, $t:ty) => {{
                let elements = <$t>::elements(data);
                if let Some(elements) = elements
                    && n <= WIDTH
                {
                    stream::ahead(elements, from + n..from + 2 * n);
                }
                let view = elements.map(|elements| &elements[from..from + n]);
                self.$bank.views[slot] = view;
                view.is_some()
            }};
        }
        match to.dtype {
            DType::F32 => view!(f32s, f32),
            DType::F64 => view!(f64s, f64),
            DType::I32 => view!(i32s, i32),
            DType::I64 => view!(i64s, i64),
            _ => view!(truths, u8),
        }
    }

    /// Makes a register hold its own lanes.
    fn unview(&mut self, to: Register) {
        let slot = to.slot as usize;
        match to.dtype {
            DType::F32 => self.f32s.views[slot] = None,
            DType::F64 => self.f64s.views[slot] = None,
            DType::I32 => self.i32s.views[slot] = None,
            DType::I64 => self.i64s.views[slot] = None,
            _ => self.truths.views[slot] = None,
        }
    }

    fn read_strip(&mut self, node: u32, to: Register, read: &Read, strip: &Extents, n: usize) {
        self.unview(to);
        // Where the strip begins, and whether all of it is inside.
        let skipped = self.skipped.get(read.operand).copied().unwrap_or(0);
        let (mut offset, mut inside) = (-skipped, true);
        // True if a position goes round its modulus or on to another quotient within the strip, and if it often does.
        let (mut round, mut short) = (false, false);
        let mut firsts = [0i64; 16];
        let wide = read.dims.len() > firsts.len();
        for (d, position) in read.dims.iter().enumerate() {
            let (first, low, high) = match &position.form {
                Form::Followed(form) => {
                    let mut first = form.form(&self.point);
                    let (mut low, mut high) = (first, first);
                    if form.divisor > 1 || form.modulus.is_some() {
                        let ends = ends(first, &form.lanes, strip);
                        (low, high) = (form.quotient(ends.0), form.quotient(ends.1));
                        round |= form.divisor > 1 && low != high;
                        if let Some(modulus) = form.modulus {
                            let rounds = low.div_euclid(modulus);
                            round |= rounds != high.div_euclid(modulus);
                            first -= rounds * modulus * form.divisor;
                            low -= rounds * modulus;
                            high -= rounds * modulus;
                        }
                        short |= form.is_short(strip);
                    } else if form.checked {
                        (low, high) = ends(first, &form.lanes, strip);
                    }
                    if !form.checked {
                        (low, high) = (position.start, position.start);
                    }
                    if !wide {
                        firsts[d] = first;
                    }
                    (form.quotient(first), low, high)
                }
                Form::Value(id) => {
                    let register = self.program.registers[*id as usize];
                    if !register.uniform {
                        continue;
                    }
                    let x = self.i64s.first(register);
                    if !wide {
                        firsts[d] = x;
                    }
                    (x, x, x)
                }
            };
            inside &=
                low >= position.start && high < position.start.saturating_add(position.length);
            let relative = first.wrapping_sub(position.start);
            offset = offset.wrapping_add(relative.wrapping_mul(position.stride));
        }
        let steps = if strip.sizes.is_empty() {
            &[][..]
        } else {
            &read.lanes[..]
        };
        if inside && !read.scattered && !round {
            let pattern = Pattern::Strip {
                offset,
                steps,
                extents: strip,
            };
            let viewed = strip.is_run(steps) && self.view(to, read, offset, n);
            if n > 0 && !viewed {
                self.fetch(to, read, 0, n, &pattern);
            }
            return self.settle(node, to, read, n, false);
        }
        let missing = if inside && !read.scattered && !wide && !short {
            self.read_round(to, read, strip, &firsts);
            false
        } else if inside && !read.scattered && !wide && self.read_turns(to, read, strip, &firsts) {
            false
        } else if read.scattered || wide || round {
            self.read_chosen(to, read, strip, n)
        } else {
            self.read_clipped(to, read, strip, &firsts, offset)
        };
        self.settle(node, to, read, n, missing);
    }

    /// Affine positions, partly outside: each run is cut to what is inside. Lanes outside get the value that stands for them, if it is the
    /// same in all. Returns whether lanes are missing.
    fn read_clipped(
        &mut self,
        to: Register,
        read: &Read,
        strip: &Extents,
        firsts: &[i64; 16],
        offset: i64,
    ) -> bool {
        let run = strip.run();
        let mut missing = false;
        let other = read.otherwise.map(|id| self.program.registers[id as usize]);
        let other = other.filter(|other| other.uniform && to.poison.is_none());
        let outer = strip.sizes.len().saturating_sub(1);
        let step = strip.sizes.last().map_or(0, |_| read.lanes[outer]);
        strip.runs(|lane, at| {
            let (begin, end) = lanes_inside(read, strip, firsts, at);
            if begin < end {
                let from = along(&read.lanes, at).wrapping_add(step * begin as i64);
                let pattern = Pattern::Run {
                    offset: offset.wrapping_add(from),
                    step,
                };
                self.fetch(to, read, lane + begin, end - begin, &pattern);
            }
            if let Some(other) = other {
                self.fill(to, lane..lane + begin, other);
                self.fill(to, lane + end..lane + run, other);
                return;
            }
            let mask = &mut self.missing[lane..lane + run];
            mask.fill(1);
            mask[begin..end].fill(0);
            missing |= end - begin < run;
        });
        missing
    }

    /// Gives lanes of a register the value of one that is the same in all lanes.
    fn fill(&mut self, to: Register, lanes: std::ops::Range<usize>, other: Register) {
        if lanes.is_empty() {
            return;
        }
        macro_rules! fill {
            ($bank:ident) => {{
                let value = self.$bank.first(other);
                self.$bank.split(to, lanes.end).1[lanes].fill(value);
            }};
        }
        match to.dtype {
            DType::F32 => fill!(f32s),
            DType::F64 => fill!(f64s),
            DType::I32 => fill!(i32s),
            DType::I64 => fill!(i64s),
            _ => fill!(truths),
        }
    }

    /// Fills the lanes that are missing and sets the poison of a read.
    fn settle(&mut self, node: u32, to: Register, read: &Read, n: usize, missing: bool) {
        if missing {
            let other = read.otherwise.map(|id| self.program.registers[id as usize]);
            macro_rules! fill {
                ($bank:ident, $zero:expr) => {{
                    let (before, to) = self.$bank.split(to, n);
                    let other = other.map(|r| before.lanes(r, n));
                    let lanes = to.iter_mut().zip(&self.missing[..n]);
                    match other {
                        None => lanes.for_each(|(to, m)| *to = if *m != 0 { $zero } else { *to }),
                        Some(other) => (lanes.zip(other))
                            .for_each(|((to, m), other)| *to = if *m != 0 { *other } else { *to }),
                    }
                }};
            }
            match to.dtype {
                DType::F32 => fill!(f32s, 0.0),
                DType::F64 => fill!(f64s, 0.0),
                DType::I32 => fill!(i32s, 0),
                DType::I64 => fill!(i64s, 0),
                _ => fill!(truths, 0),
            }
        }
        let Some(slot) = to.poison else { return };
        let at = slot as usize * WIDTH;
        self.poison[at..at + n].fill(0);
        let mut any = false;
        for dim in &read.dims {
            let Form::Value(id) = dim.form else { continue };
            let r = self.program.registers[id as usize];
            let Some(from) = r.poison.filter(|p| self.poisoned[*p as usize]) else {
                continue;
            };
            let uniform = r.uniform;
            let (before, mask) = self.poison.split_at_mut(at);
            for (l, m) in mask[..n].iter_mut().enumerate() {
                *m |= before[from as usize * WIDTH + if uniform { 0 } else { l }];
            }
            if !any && self.first_poisoned(r) {
                self.inherit(node, id);
            }
            any = true;
        }
        if missing {
            let before_first = self.poison[at] != 0;
            match read.otherwise {
                None => {
                    for l in 0..n {
                        self.poison[at + l] |= self.missing[l];
                    }
                    any = true;
                    if self.trace.is_some() && !before_first {
                        let fault = self.find_position(read);
                        if let Some(trace) = &mut self.trace {
                            trace[node as usize] = fault;
                        }
                    }
                }
                Some(id) => {
                    let r = self.program.registers[id as usize];
                    if let Some(from) = r.poison.filter(|p| self.poisoned[*p as usize]) {
                        for l in 0..n {
                            self.poison[at + l] |=
                                self.missing[l] & self.poison[from as usize * WIDTH + l];
                        }
                        any = true;
                        if !before_first && self.poison[at] != 0 {
                            self.inherit(node, id);
                        }
                    }
                }
            }
        }
        self.poisoned[slot as usize] = any;
    }

    /// The first dimension in which the first lane is outside.
    fn find_position(&self, read: &Read) -> Option<Fault> {
        read.dims.iter().enumerate().find_map(|(d, dim)| {
            let position = match &dim.form {
                Form::Followed(form) => form.position(form.form(&self.point)),
                Form::Value(id) => self.i64s.first(self.program.registers[*id as usize]),
            };
            let outside = position < dim.start || position - dim.start >= dim.length;
            outside.then_some(Fault::OutOfRange {
                operand: read.operand as u32,
                dimension: d as u32,
                position,
                extent: dim.length as u64,
            })
        })
    }
}

/// The lanes, from the first on and before the second, of the run at these outer coordinates that are inside in every dimension.
fn lanes_inside(read: &Read, strip: &Extents, firsts: &[i64; 16], at: &[usize]) -> (usize, usize) {
    let outer = strip.sizes.len().saturating_sub(1);
    let (mut begin, mut end) = (0i64, strip.run() as i64);
    for (position, first) in read.dims.iter().zip(firsts) {
        let (first, step) = match &position.form {
            // Where no position goes on to another quotient, one is the same in all lanes.
            Form::Followed(form) if form.divisor > 1 => (form.quotient(*first), 0),
            Form::Followed(form) if !strip.sizes.is_empty() => {
                (first + along(&form.lanes, at), form.lanes[outer])
            }
            _ => (*first, 0),
        };
        let (low, high) = (position.start, position.start + position.length - 1);
        // low <= first + step·l <= high, solved for l.
        let (before, last) = match step {
            0 if first < low || first > high => return (0, 0),
            0 => continue,
            1 => (first - low, high - first),
            step if step > 0 => (
                (first - low).div_euclid(step),
                (high - first).div_euclid(step),
            ),
            step => (
                (high - first).div_euclid(-step),
                (first - low).div_euclid(-step),
            ),
        };
        begin = begin.max(-before);
        end = end.min(last + 1);
    }
    match begin < end {
        true => (begin as usize, end as usize),
        false => (0, 0),
    }
}
