//! Executes a program's operations on the registers of one task.
//!
//! Must not know loops over tasks, or reductions.
//!
//! ```text
//! level 2 at n = 7, lanes d = 0..64:  r0 = a0[7, d], r2 = r0 * r1
//! ```

use crate::Fault;
use crate::load::{Extents, Lane, Pattern, along};
use crate::nest::WIDTH;
use crate::operations as op;
use crate::program::{Form, Kind, Operation, Program, Read, Register};
use ein_plan::{DType, Function, Scalar};

/// Registers of one type, `WIDTH` lanes each.
type Bank<T> = Vec<T>;

/// The state of one task.
pub(crate) struct Machine<'p, 'a> {
    pub program: &'p Program<'a>,
    /// The value of each index; of an index of the strip, its first lane's.
    pub point: Vec<i64>,
    /// The present strip.
    pub extents: Extents,
    f32s: Bank<f32>,
    f64s: Bank<f64>,
    i32s: Bank<i32>,
    i64s: Bank<i64>,
    truths: Bank<u8>,
    poison: Bank<u8>,
    /// Whether any lane of a poison mask is set.
    poisoned: Vec<bool>,
    offsets: Vec<i64>,
    missing: Vec<u8>,
    /// For each node the fault that poisons its first lane, where faults are traced.
    trace: Option<Vec<Option<Fault>>>,
}

fn lanes<T>(bank: &[T], register: Register, n: usize) -> &[T] {
    &bank[register.slot as usize * WIDTH..][..n]
}

/// The registers before `to`'s, and `to`'s: arguments stand before their users.
fn split<T>(bank: &mut [T], to: Register, n: usize) -> (&[T], &mut [T]) {
    let (before, after) = bank.split_at_mut(to.slot as usize * WIDTH);
    (before, &mut after[..n])
}

impl<'p, 'a> Machine<'p, 'a> {
    /// A machine whose indices have the values `point`. `traced`: it remembers which fault poisons what.
    pub(crate) fn new(program: &'p Program<'a>, point: Vec<i64>, traced: bool) -> Self {
        let bank = |n: usize| program.banks[n] * WIDTH;
        Machine {
            program,
            point,
            extents: Extents::default(),
            f32s: vec![0.0; bank(0)],
            f64s: vec![0.0; bank(1)],
            i32s: vec![0; bank(2)],
            i64s: vec![0; bank(3)],
            truths: vec![0; bank(4)],
            poison: vec![0; bank(5)],
            poisoned: vec![false; program.banks[5]],
            offsets: vec![0; WIDTH],
            missing: vec![0; WIDTH],
            trace: traced.then(|| vec![None; program.registers.len()]),
        }
    }

    /// Executes the operations of one level.
    pub(crate) fn execute(&mut self, level: usize) {
        let program = self.program;
        let operations = &program.levels[level];
        let mut next = 0;
        while let Some(operation) = operations.get(next) {
            next += 1;
            if let Kind::Skip {
                condition,
                wanted,
                to,
            } = &operation.kind
            {
                let register = program.registers[*condition as usize];
                let condition = lanes(&self.truths, register, self.extents.lanes());
                if condition.iter().all(|c| (*c != 0) != *wanted) {
                    next = *to;
                }
                continue;
            }
            self.perform(operation);
        }
    }

    /// Lanes of a node of type `f32`.
    pub(crate) fn f32s(&self, node: u32) -> &[f32] {
        let register = self.program.registers[node as usize];
        lanes(&self.f32s, register, self.extents.lanes())
    }

    /// Lanes of a node of type `f64`.
    pub(crate) fn f64s(&self, node: u32) -> &[f64] {
        let register = self.program.registers[node as usize];
        lanes(&self.f64s, register, self.extents.lanes())
    }

    /// Lanes of a node of type `i32`.
    pub(crate) fn i32s(&self, node: u32) -> &[i32] {
        let register = self.program.registers[node as usize];
        lanes(&self.i32s, register, self.extents.lanes())
    }

    /// Lanes of a node of type `i64`.
    pub(crate) fn i64s(&self, node: u32) -> &[i64] {
        let register = self.program.registers[node as usize];
        lanes(&self.i64s, register, self.extents.lanes())
    }

    /// Lanes of a node of type `bool`.
    pub(crate) fn truths(&self, node: u32) -> &[u8] {
        let register = self.program.registers[node as usize];
        lanes(&self.truths, register, self.extents.lanes())
    }

    /// The poison mask of a node, if any lane is set.
    pub(crate) fn poison(&self, node: u32) -> Option<&[u8]> {
        let register = self.program.registers[node as usize];
        let slot = register
            .poison
            .filter(|slot| self.poisoned[*slot as usize])?;
        Some(&self.poison[slot as usize * WIDTH..][..self.extents.lanes()])
    }

    /// The fault that poisons a node's first lane.
    pub(crate) fn traced(&self, node: u32) -> Option<Fault> {
        self.trace.as_ref()?[node as usize].clone()
    }

    fn perform(&mut self, operation: &Operation) {
        let n = if operation.uniform {
            1
        } else {
            self.extents.lanes()
        };
        let to = self.program.registers[operation.node as usize];
        match &operation.kind {
            Kind::Constant(value) => self.constant(to, *value),
            Kind::Index { index, lanes } => self.index(to, *index, lanes, n),
            Kind::Read(read) => self.read(operation.node, to, read, operation.uniform),
            Kind::Apply(Function::Select, [c, a, b]) => {
                self.select(operation.node, to, [*c, *a, *b], n);
            }
            Kind::Apply(function, arguments) => {
                self.apply(to, *function, *arguments, n);
                if to.poison.is_some() {
                    self.strict(operation.node, to, *function, *arguments, n);
                }
            }
            Kind::Convert(argument) => {
                self.convert(to, *argument, n);
                if to.poison.is_some() {
                    self.pass(operation.node, to, *argument, n);
                }
            }
            Kind::Skip { .. } => {}
        }
        if operation.splat {
            self.splat(to);
        }
    }

    fn splat(&mut self, to: Register) {
        let at = to.slot as usize * WIDTH;
        match to.dtype {
            DType::F32 => {
                let x = self.f32s[at];
                self.f32s[at..at + WIDTH].fill(x);
            }
            DType::F64 => {
                let x = self.f64s[at];
                self.f64s[at..at + WIDTH].fill(x);
            }
            DType::I32 => {
                let x = self.i32s[at];
                self.i32s[at..at + WIDTH].fill(x);
            }
            DType::I64 => {
                let x = self.i64s[at];
                self.i64s[at..at + WIDTH].fill(x);
            }
            _ => {
                let x = self.truths[at];
                self.truths[at..at + WIDTH].fill(x);
            }
        }
        if let Some(slot) = to.poison {
            let at = slot as usize * WIDTH;
            let x = self.poison[at];
            if self.poisoned[slot as usize] {
                self.poison[at..at + WIDTH].fill(x);
            }
        }
    }

    fn constant(&mut self, to: Register, value: Scalar) {
        let at = to.slot as usize * WIDTH;
        match (to.dtype, value) {
            (DType::F32, value) => self.f32s[at] = value.as_f64() as f32,
            (DType::F64, value) => self.f64s[at] = value.as_f64(),
            (DType::I32, Scalar::Int(x)) => self.i32s[at] = x as i32,
            (DType::I32, value) => self.i32s[at] = value.as_f64() as i32,
            (DType::I64, Scalar::Int(x)) => self.i64s[at] = x,
            (DType::I64, value) => self.i64s[at] = value.as_f64() as i64,
            (_, value) => self.truths[at] = u8::from(value.as_f64() != 0.0),
        }
    }

    fn index(&mut self, to: Register, index: usize, steps: &[i64], n: usize) {
        let first = self.point[index];
        let (_, to) = split(&mut self.i64s, to, n);
        if n == 1 {
            to[0] = first;
            return;
        }
        let run = self.extents.run();
        let inner = steps.last().copied().unwrap_or(0);
        self.extents.runs(|lane, at| {
            let mut value = first + along(steps, at);
            for to in &mut to[lane..lane + run] {
                *to = value;
                value += inner;
            }
        });
    }

    fn apply(&mut self, to: Register, f: Function, arguments: [u32; 3], n: usize) {
        use Function as F;
        let register = |i: usize| self.program.registers[arguments[i] as usize];
        let (a, two) = (register(0), f.arity() == 2);
        let b = if two { register(1) } else { a };
        if matches!(f, F::Eq | F::Ne | F::Lt | F::Le | F::Gt | F::Ge) && a.dtype != DType::Bool {
            let (_, to) = split(&mut self.truths, to, n);
            return match a.dtype {
                DType::F32 => op::compare(f, to, lanes(&self.f32s, a, n), lanes(&self.f32s, b, n)),
                DType::F64 => op::compare(f, to, lanes(&self.f64s, a, n), lanes(&self.f64s, b, n)),
                DType::I32 => op::compare(f, to, lanes(&self.i32s, a, n), lanes(&self.i32s, b, n)),
                _ => op::compare(f, to, lanes(&self.i64s, a, n), lanes(&self.i64s, b, n)),
            };
        }
        macro_rules! arithmetic {
            ($bank:ident, $unary:ident, $binary:ident) => {{
                let (before, to) = split(&mut self.$bank, to, n);
                if two {
                    op::$binary(f, to, lanes(before, a, n), lanes(before, b, n));
                } else {
                    op::$unary(f, to, lanes(before, a, n));
                }
            }};
        }
        match to.dtype {
            DType::F32 => arithmetic!(f32s, unary_f32, binary_f32),
            DType::F64 => arithmetic!(f64s, unary_f64, binary_f64),
            DType::I32 => arithmetic!(i32s, unary_i32, binary_i32),
            DType::I64 => arithmetic!(i64s, unary_i64, binary_i64),
            _ => {
                let (before, to) = split(&mut self.truths, to, n);
                match f {
                    F::Not => op::map(to, lanes(before, a, n), |x| u8::from(x == 0)),
                    F::Stop => op::map(to, lanes(before, a, n), |x| x),
                    _ => op::truth(f, to, lanes(before, a, n), lanes(before, b, n)),
                }
            }
        }
    }

    fn select(&mut self, node: u32, to: Register, [c, a, b]: [u32; 3], n: usize) {
        let [rc, ra, rb] = [c, a, b].map(|id| self.program.registers[id as usize]);
        macro_rules! choose {
            ($bank:ident) => {{
                let (before, to) = split(&mut self.$bank, to, n);
                op::select(
                    to,
                    lanes(&self.truths, rc, n),
                    lanes(before, ra, n),
                    lanes(before, rb, n),
                );
            }};
        }
        match to.dtype {
            DType::F32 => choose!(f32s),
            DType::F64 => choose!(f64s),
            DType::I32 => choose!(i32s),
            DType::I64 => choose!(i64s),
            _ => {
                let (before, to) = split(&mut self.truths, to, n);
                op::select(
                    to,
                    lanes(before, rc, n),
                    lanes(before, ra, n),
                    lanes(before, rb, n),
                );
            }
        }
        let Some(slot) = to.poison else { return };
        let set =
            |machine: &Self, r: Register| r.poison.is_some_and(|p| machine.poisoned[p as usize]);
        let (pc, pa, pb) = (set(self, rc), set(self, ra), set(self, rb));
        let mut any = false;
        if pc || pa || pb {
            let (before, mask) = self.poison.split_at_mut(slot as usize * WIDTH);
            let of = |on: bool, r: Register, l: usize| {
                on && before[r.poison.unwrap_or(0) as usize * WIDTH + l] != 0
            };
            let condition = lanes(&self.truths, rc, n);
            for l in 0..n {
                let branch = if condition[l] != 0 {
                    of(pa, ra, l)
                } else {
                    of(pb, rb, l)
                };
                let bad = of(pc, rc, l) || branch;
                mask[l] = u8::from(bad);
                any |= bad;
            }
        }
        self.poisoned[slot as usize] = any;
        if any && self.trace.is_some() {
            let taken = if pc && self.first_poisoned(rc) {
                c
            } else if lanes(&self.truths, rc, 1)[0] != 0 {
                a
            } else {
                b
            };
            self.inherit(node, taken);
        }
    }

    fn first_poisoned(&self, r: Register) -> bool {
        r.poison
            .is_some_and(|p| self.poisoned[p as usize] && self.poison[p as usize * WIDTH] != 0)
    }

    fn inherit(&mut self, node: u32, from: u32) {
        if let Some(trace) = &mut self.trace {
            trace[node as usize] = trace[from as usize].clone();
        }
    }

    /// The poison of a function that needs all its arguments, and its own.
    fn strict(&mut self, node: u32, to: Register, f: Function, arguments: [u32; 3], n: usize) {
        let Some(slot) = to.poison else { return };
        let mask_at = slot as usize * WIDTH;
        let mut any = false;
        self.poison[mask_at..mask_at + n].fill(0);
        for argument in &arguments[..f.arity()] {
            let r = self.program.registers[*argument as usize];
            let Some(from) = r.poison.filter(|p| self.poisoned[*p as usize]) else {
                continue;
            };
            let (before, mask) = self.poison.split_at_mut(mask_at);
            let from = &before[from as usize * WIDTH..][..n];
            for (m, p) in mask.iter_mut().zip(from) {
                *m |= *p;
            }
            if !any && self.first_poisoned(r) {
                self.inherit(node, *argument);
            }
            any = true;
        }
        if to.dtype.is_integer() && f.arity() == 2 {
            let own: Option<(fn(i64) -> bool, Fault)> = match f {
                Function::FloorDiv | Function::Div | Function::Rem => {
                    Some((|y| y == 0, Fault::DivisionByZero))
                }
                Function::Pow => Some((|y| y < 0, Fault::NegativePower)),
                _ => None,
            };
            if let Some((bad, fault)) = own {
                let r = self.program.registers[arguments[1] as usize];
                let mask = &mut self.poison[mask_at..mask_at + n];
                let already = mask[0] != 0;
                let mut found = false;
                let mut mark = |l: usize, y: i64| {
                    if bad(y) {
                        mask[l] = 1;
                        found = true;
                    }
                };
                if to.dtype == DType::I32 {
                    let y = lanes(&self.i32s, r, n);
                    y.iter()
                        .enumerate()
                        .for_each(|(l, y)| mark(l, i64::from(*y)));
                } else {
                    let y = lanes(&self.i64s, r, n);
                    y.iter().enumerate().for_each(|(l, y)| mark(l, *y));
                }
                any |= found;
                if found
                    && !already
                    && let Some(trace) = &mut self.trace
                {
                    trace[node as usize] = Some(fault);
                }
            }
        }
        self.poisoned[slot as usize] = any;
    }

    /// The poison of an operation with one argument that cannot fault itself.
    fn pass(&mut self, node: u32, to: Register, argument: u32, n: usize) {
        let Some(slot) = to.poison else { return };
        let r = self.program.registers[argument as usize];
        let from = r.poison.filter(|p| self.poisoned[*p as usize]);
        self.poisoned[slot as usize] = from.is_some();
        if let Some(from) = from {
            let at = from as usize * WIDTH;
            self.poison.copy_within(at..at + n, slot as usize * WIDTH);
            self.inherit(node, argument);
        }
    }

    fn convert(&mut self, to: Register, argument: u32, n: usize) {
        let a = self.program.registers[argument as usize];
        macro_rules! same {
            ($bank:ident) => {{
                let (before, to) = split(&mut self.$bank, to, n);
                to.copy_from_slice(lanes(before, a, n));
            }};
        }
        macro_rules! from {
            ($target:ident, $source:ident, $f:expr) => {{
                let (_, to) = split(&mut self.$target, to, n);
                op::map(to, lanes(&self.$source, a, n), $f);
            }};
        }
        use DType as D;
        match (to.dtype, a.dtype) {
            (D::F32, D::F32) => same!(f32s),
            (D::F32, D::F64) => from!(f32s, f64s, |x| x as f32),
            (D::F32, D::I32) => from!(f32s, i32s, |x| x as f32),
            (D::F32, D::I64) => from!(f32s, i64s, |x| x as f32),
            (D::F32, _) => from!(f32s, truths, f32::from),
            (D::F64, D::F32) => from!(f64s, f32s, f64::from),
            (D::F64, D::F64) => same!(f64s),
            (D::F64, D::I32) => from!(f64s, i32s, f64::from),
            (D::F64, D::I64) => from!(f64s, i64s, |x| x as f64),
            (D::F64, _) => from!(f64s, truths, f64::from),
            (D::I32, D::F32) => from!(i32s, f32s, |x| x as i32),
            (D::I32, D::F64) => from!(i32s, f64s, |x| x as i32),
            (D::I32, D::I32) => same!(i32s),
            (D::I32, D::I64) => from!(i32s, i64s, |x| x as i32),
            (D::I32, _) => from!(i32s, truths, i32::from),
            (D::I64, D::F32) => from!(i64s, f32s, |x| x as i64),
            (D::I64, D::F64) => from!(i64s, f64s, |x| x as i64),
            (D::I64, D::I32) => from!(i64s, i32s, i64::from),
            (D::I64, D::I64) => same!(i64s),
            (D::I64, _) => from!(i64s, truths, i64::from),
            (_, D::F32) => from!(truths, f32s, |x| u8::from(x != 0.0)),
            (_, D::F64) => from!(truths, f64s, |x| u8::from(x != 0.0)),
            (_, D::I32) => from!(truths, i32s, |x| u8::from(x != 0)),
            (_, D::I64) => from!(truths, i64s, |x| u8::from(x != 0)),
            _ => same!(truths),
        }
    }

    fn fetch(&mut self, to: Register, read: &Read, first: usize, n: usize, pattern: &Pattern<'_>) {
        let data = self.program.operands[read.operand].columns[read.column].data();
        let at = to.slot as usize * WIDTH + first;
        match to.dtype {
            DType::F32 => f32::read(&mut self.f32s[at..at + n], data, pattern),
            DType::F64 => f64::read(&mut self.f64s[at..at + n], data, pattern),
            DType::I32 => i32::read(&mut self.i32s[at..at + n], data, pattern),
            DType::I64 => i64::read(&mut self.i64s[at..at + n], data, pattern),
            _ => u8::read(&mut self.truths[at..at + n], data, pattern),
        }
    }

    fn read(&mut self, node: u32, to: Register, read: &Read, uniform: bool) {
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

    fn read_strip(&mut self, node: u32, to: Register, read: &Read, strip: &Extents, n: usize) {
        // Where the strip begins, and whether all of it is inside.
        let (mut offset, mut inside) = (0i64, true);
        let mut firsts = [0i64; 16];
        let wide = read.dims.len() > firsts.len();
        for (d, position) in read.dims.iter().enumerate() {
            let (first, low, high) = match &position.form {
                Form::Affine {
                    constant,
                    terms,
                    lanes,
                    checked,
                } => {
                    let first = terms
                        .iter()
                        .fold(*constant, |sum, (i, c)| sum + c * self.point[*i]);
                    let (mut low, mut high) = (first, first);
                    if *checked {
                        for (step, size) in lanes.iter().zip(&strip.sizes) {
                            let far = step * (*size as i64 - 1).max(0);
                            low += far.min(0);
                            high += far.max(0);
                        }
                    } else {
                        (low, high) = (position.start, position.start);
                    }
                    (first, low, high)
                }
                Form::Value(id) => {
                    let register = self.program.registers[*id as usize];
                    if !register.uniform {
                        continue;
                    }
                    let x = self.i64s[register.slot as usize * WIDTH];
                    (x, x, x)
                }
            };
            if !wide {
                firsts[d] = first;
            }
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
        if inside && !read.scattered {
            let pattern = Pattern::Strip {
                offset,
                steps,
                extents: strip,
            };
            if n > 0 {
                self.fetch(to, read, 0, n, &pattern);
            }
            self.missing[..n].fill(0);
            return self.settle(node, to, read, n, false);
        }
        let missing = if read.scattered || wide {
            self.read_chosen(to, read, strip, n)
        } else {
            self.read_clipped(to, read, strip, &firsts, offset)
        };
        self.settle(node, to, read, n, missing);
    }

    /// Affine positions, partly outside: each run is cut to what is inside. Whether lanes are missing.
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
        // The runs are walked with the machine borrowed, so their beginnings are listed first.
        let mut runs: Vec<(usize, [usize; 8])> = Vec::with_capacity(strip.lanes() / run.max(1));
        strip.runs(|lane, at| {
            let mut coordinates = [0; 8];
            coordinates[..at.len()].copy_from_slice(at);
            runs.push((lane, coordinates));
        });
        let outer = strip.sizes.len().saturating_sub(1);
        for (lane, at) in runs {
            let at = &at[..outer];
            // The lanes begin..end of the run are inside in every dimension.
            let (mut begin, mut end) = (0i64, run as i64);
            for (d, position) in read.dims.iter().enumerate() {
                let (first, step) = match &position.form {
                    Form::Affine { lanes, .. } if !strip.sizes.is_empty() => {
                        (firsts[d] + along(lanes, at), lanes[outer])
                    }
                    _ => (firsts[d], 0),
                };
                let (low, high) = (position.start, position.start + position.length - 1);
                if step == 0 {
                    if first < low || first > high {
                        end = begin;
                    }
                } else {
                    // low <= first + step·l <= high, solved for l.
                    let (from, to) = if step > 0 {
                        (
                            (first - low).div_euclid(step),
                            (high - first).div_euclid(step),
                        )
                    } else {
                        (
                            (high - first).div_euclid(-step),
                            (first - low).div_euclid(-step),
                        )
                    };
                    let from = -from;
                    begin = begin.max(from);
                    end = end.min(to + 1);
                }
            }
            if end <= begin {
                (begin, end) = (0, 0);
            }
            let (begin, end) = (begin as usize, end as usize);
            if begin < end {
                let step = if strip.sizes.is_empty() {
                    0
                } else {
                    read.lanes[outer]
                };
                let from = if strip.sizes.is_empty() {
                    0
                } else {
                    along(&read.lanes, at)
                };
                let pattern = Pattern::Run {
                    offset: offset.wrapping_add(from).wrapping_add(step * begin as i64),
                    step,
                };
                self.fetch(to, read, lane + begin, end - begin, &pattern);
            }
            let mask = &mut self.missing[lane..lane + run];
            mask.fill(1);
            mask[begin..end].fill(0);
            missing |= end - begin < run;
        }
        missing
    }

    /// Positions that are looked up lane by lane. Whether lanes are missing.
    fn read_chosen(&mut self, to: Register, read: &Read, strip: &Extents, n: usize) -> bool {
        let mut offsets = std::mem::take(&mut self.offsets);
        offsets[..n].fill(0);
        let mut positions = [0i64; WIDTH];
        let mut missing = false;
        for dim in &read.dims {
            let mut plain = false;
            match &dim.form {
                Form::Affine {
                    constant,
                    terms,
                    lanes,
                    checked,
                } => {
                    plain = !checked;
                    let first = terms
                        .iter()
                        .fold(*constant, |sum, (i, c)| sum + c * self.point[*i]);
                    if strip.sizes.is_empty() {
                        positions[0] = first;
                    } else {
                        let inner = lanes[strip.sizes.len() - 1];
                        let run = strip.run();
                        strip.runs(|lane, at| {
                            let mut value = first + along(lanes, at);
                            for p in &mut positions[lane..lane + run] {
                                *p = value;
                                value += inner;
                            }
                        });
                    }
                }
                Form::Value(id) => {
                    let register = self.program.registers[*id as usize];
                    if register.uniform {
                        positions[..n].fill(self.i64s[register.slot as usize * WIDTH]);
                    } else {
                        positions[..n].copy_from_slice(lanes(&self.i64s, register, n));
                    }
                }
            }
            let (start, length, stride) = (dim.start, dim.length, dim.stride);
            if plain {
                for (o, p) in offsets[..n].iter_mut().zip(&positions) {
                    *o += if *o < 0 { 0 } else { (p - start) * stride };
                }
            } else {
                for (o, p) in offsets[..n].iter_mut().zip(&positions) {
                    let relative = p.wrapping_sub(start);
                    if (relative as u64) < length as u64 {
                        *o += if *o < 0 { 0 } else { relative * stride };
                    } else {
                        *o = -1;
                        missing = true;
                    }
                }
            }
        }
        if n > 0 {
            self.fetch(to, read, 0, n, &Pattern::Chosen(&offsets[..n]));
        }
        for (m, o) in self.missing[..n].iter_mut().zip(&offsets) {
            *m = u8::from(*o < 0);
        }
        self.offsets = offsets;
        missing
    }

    /// Fills the lanes that are missing and sets the poison of a read.
    fn settle(&mut self, node: u32, to: Register, read: &Read, n: usize, missing: bool) {
        if missing {
            let other = read.otherwise.map(|id| self.program.registers[id as usize]);
            macro_rules! fill {
                ($bank:ident, $zero:expr) => {{
                    let (before, to) = split(&mut self.$bank, to, n);
                    let other = other.map(|r| lanes(before, r, n));
                    for (l, m) in self.missing[..n].iter().enumerate() {
                        if *m != 0 {
                            to[l] = other.map_or($zero, |o| o[l]);
                        }
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
                Form::Affine {
                    constant, terms, ..
                } => terms
                    .iter()
                    .fold(*constant, |sum, (i, c)| sum + c * self.point[*i]),
                Form::Value(id) => {
                    self.i64s[self.program.registers[*id as usize].slot as usize * WIDTH]
                }
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
