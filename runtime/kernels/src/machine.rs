//! Executes a program's operations on the registers of one task.
//!
//! Must not know loops over tasks, or reductions.
//!
//! ```text
//! level 2 at n = 7, lanes d = 0..64:  r0 = a0[7, d], r2 = r0 * r1
//! ```

mod bank;
mod chosen;
mod convert;
mod groups;
mod poison;
mod reads;
mod room;
mod runs;

use crate::load::{Extents, along};
use crate::nest::WIDTH;
use crate::operations as op;
use crate::program::{Curve, Kind, Operation, Program, Read, Register};
use crate::quotient;
use crate::stream::Ahead;
use crate::unary_epilogue::Known;
use crate::wide::{self, Job};
use crate::{Chunk, Fault};
use bank::Bank;
use ein_plan::{DType, Function, Scalar};
use room::Room;

/// The state of one task.
pub(crate) struct Machine<'p, 'a> {
    pub program: &'p Program<'a>,
    /// What is read.
    operands: &'a [Chunk<'a>],
    /// By operand: how many elements before its first one the part that is there begins; none for operands that are there.
    skipped: &'p [i64],
    /// The operands whose lanes are taken from where results go ([`Machine::take`]), not read; with the columns.
    pub over: &'p [(usize, usize)],
    /// What a group or a curve of a direct program asks for of memory meanwhile.
    pub ahead: Ahead<'p>,
    /// The value of each index; of an index of the strip, its first lane's.
    pub point: Vec<i64>,
    /// The present strip.
    pub extents: Extents,
    /// The most lanes that a strip has.
    pub most: usize,
    f32s: Bank<'a, f32>,
    f64s: Bank<'a, f64>,
    i32s: Bank<'a, i32>,
    i64s: Bank<'a, i64>,
    truths: Bank<'a, u8>,
    poison: Vec<u8>,
    /// Whether any lane of a poison mask is set.
    poisoned: Vec<bool>,
    offsets: Vec<i64>,
    missing: Vec<u8>,
    /// For each node the fault that poisons its first lane, where faults are traced.
    trace: Option<Vec<Option<Fault>>>,
}

impl Drop for Machine<'_, '_> {
    fn drop(&mut self) {
        use std::mem::take;
        Room {
            f32s: take(&mut self.f32s.values),
            f64s: take(&mut self.f64s.values),
            i32s: take(&mut self.i32s.values),
            i64s: take(&mut self.i64s.values),
            truths: take(&mut self.truths.values),
            poison: take(&mut self.poison),
            offsets: take(&mut self.offsets),
            missing: take(&mut self.missing),
        }
        .give();
    }
}

/// Elements as they lie.
pub(crate) enum View<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
}

struct Level<'m, 'p, 'a> {
    machine: &'m mut Machine<'p, 'a>,
    level: usize,
}

impl Job for Level<'_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<const BYTES: usize>(self) {
        self.machine.execute_here(self.level);
    }
}

impl<'p, 'a> Machine<'p, 'a> {
    /// A machine whose indices have the values `point`. `traced`: it remembers which fault poisons what.
    pub(crate) fn new(program: &'p Program<'a>, point: Vec<i64>, traced: bool) -> Self {
        Machine::on(program, (program.operands, &[]), point, traced)
    }

    /// The same on these operands, of which `skipped` first elements (by operand; none: 0) are not there.
    pub(crate) fn on(
        program: &'p Program<'a>,
        (operands, skipped): (&'a [Chunk<'a>], &'p [i64]),
        point: Vec<i64>,
        traced: bool,
    ) -> Self {
        let [f32s, f64s, i32s, i64s, truths, poison] = program.banks;
        let width = program.nest.width;
        debug_assert!(poison == 0 || width == WIDTH, "masks have so many lanes");
        let mut room = Room::take();
        if room.poison.len() < poison * WIDTH {
            room.poison.resize(poison * WIDTH, 0);
        }
        room.offsets.resize(WIDTH, 0);
        room.missing.resize(WIDTH, 0);
        Machine {
            program,
            operands,
            skipped,
            over: &[],
            ahead: Ahead::Nothing,
            point,
            extents: Extents::default(),
            most: width,
            f32s: Bank::new(room.f32s, f32s, width),
            f64s: Bank::new(room.f64s, f64s, width),
            i32s: Bank::new(room.i32s, i32s, width),
            i64s: Bank::new(room.i64s, i64s, width),
            truths: Bank::new(room.truths, truths, width),
            poison: room.poison,
            poisoned: vec![false; poison],
            offsets: room.offsets,
            missing: room.missing,
            trace: traced.then(|| vec![None; program.registers.len()]),
        }
    }

    /// Executes the operations of one level.
    pub(crate) fn execute(&mut self, level: usize) {
        wide::run(Level {
            machine: self,
            level,
        });
    }

    /// The same in the instructions of the caller.
    #[inline(always)]
    fn execute_here(&mut self, level: usize) {
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
                let n = if register.uniform {
                    1
                } else {
                    self.extents.lanes()
                };
                let condition = self.truths.lanes(register, n);
                if op::trues(condition) == if *wanted { 0 } else { n } {
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
        self.f32s.lanes(register, self.extents.lanes())
    }

    /// The lanes of a node of floats, if they are elements as they lie.
    pub(crate) fn view_of(&self, node: u32) -> Option<View<'a>> {
        let register = self.program.registers[node as usize];
        let (slot, n) = (register.slot as usize, self.extents.lanes());
        match register.dtype {
            DType::F32 => self.f32s.views[slot]?.get(..n).map(View::F32),
            DType::F64 => self.f64s.views[slot]?.get(..n).map(View::F64),
            _ => None,
        }
    }

    /// Lanes of a node of type `f64`.
    pub(crate) fn f64s(&self, node: u32) -> &[f64] {
        let register = self.program.registers[node as usize];
        self.f64s.lanes(register, self.extents.lanes())
    }

    /// Lanes of a node of type `i32`.
    pub(crate) fn i32s(&self, node: u32) -> &[i32] {
        let register = self.program.registers[node as usize];
        self.i32s.lanes(register, self.extents.lanes())
    }

    /// Lanes of a node of type `i64`.
    pub(crate) fn i64s(&self, node: u32) -> &[i64] {
        let register = self.program.registers[node as usize];
        self.i64s.lanes(register, self.extents.lanes())
    }

    /// The first lane of a node of type `i64` that is the same in all.
    pub(crate) fn first_i64(&self, node: u32) -> i64 {
        self.i64s.first(self.program.registers[node as usize])
    }

    /// Lanes of a node of type `bool`.
    pub(crate) fn truths(&self, node: u32) -> &[u8] {
        let register = self.program.registers[node as usize];
        self.truths.lanes(register, self.extents.lanes())
    }

    /// The column that holds what is read, if its result takes the place of that.
    fn column_over(&self, read: &Read) -> Option<usize> {
        let mut over = self.over.iter();
        over.find_map(|(operand, column)| (*operand == read.operand).then_some(*column))
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

    #[inline(always)]
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
            Kind::Read(read) if self.column_over(read).is_some() => {}
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
            Kind::Curve(curve) => self.curve(to, curve, n),
            Kind::Fused(fused) => self.fused(fused, n),
            Kind::Skip { .. } => {}
        }
        if operation.splat {
            self.splat(to);
        }
    }

    fn splat(&mut self, to: Register) {
        match to.dtype {
            DType::F32 => self.f32s.splat(to, self.most),
            DType::F64 => self.f64s.splat(to, self.most),
            DType::I32 => self.i32s.splat(to, self.most),
            DType::I64 => self.i64s.splat(to, self.most),
            _ => self.truths.splat(to, self.most),
        }
        if let Some(slot) = to.poison {
            let at = slot as usize * WIDTH;
            let x = self.poison[at];
            if self.poisoned[slot as usize] {
                self.poison[at..at + self.most].fill(x);
            }
        }
    }

    fn constant(&mut self, to: Register, value: Scalar) {
        let at = to.slot as usize * self.program.nest.width;
        match (to.dtype, value) {
            (DType::F32, value) => self.f32s.values[at] = value.as_f64() as f32,
            (DType::F64, value) => self.f64s.values[at] = value.as_f64(),
            (DType::I32, Scalar::Int(x)) => self.i32s.values[at] = x as i32,
            (DType::I32, value) => self.i32s.values[at] = value.as_f64() as i32,
            (DType::I64, Scalar::Int(x)) => self.i64s.values[at] = x,
            (DType::I64, value) => self.i64s.values[at] = value.as_f64() as i64,
            (_, value) => self.truths.values[at] = u8::from(value.as_f64() != 0.0),
        }
    }

    fn index(&mut self, to: Register, index: usize, steps: &[i64], n: usize) {
        let first = self.point[index];
        let (_, to) = self.i64s.split(to, n);
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

    #[inline(always)]
    fn apply(&mut self, to: Register, f: Function, arguments: [u32; 3], n: usize) {
        use Function as F;
        let register = |i: usize| self.program.registers[arguments[i] as usize];
        let (a, two) = (register(0), f.arity() == 2);
        let b = if two { register(1) } else { a };
        if matches!(f, F::Eq | F::Ne | F::Lt | F::Le | F::Gt | F::Ge) && a.dtype != DType::Bool {
            let (_, to) = self.truths.split(to, n);
            return match a.dtype {
                DType::F32 => op::compare(f, to, self.f32s.lanes(a, n), self.f32s.lanes(b, n)),
                DType::F64 => op::compare(f, to, self.f64s.lanes(a, n), self.f64s.lanes(b, n)),
                DType::I32 => op::compare(f, to, self.i32s.lanes(a, n), self.i32s.lanes(b, n)),
                _ => op::compare(f, to, self.i64s.lanes(a, n), self.i64s.lanes(b, n)),
            };
        }
        if let (F::Pow, Some(power)) = (f, b.whole) {
            match to.dtype {
                DType::F32 => {
                    let (before, to) = self.f32s.split(to, n);
                    return op::whole_power_f32(to, before.lanes(a, n), power.into());
                }
                DType::F64 if op::WHOLE_F64.contains(&power) => {
                    let (before, to) = self.f64s.split(to, n);
                    return op::whole_power_f64(to, before.lanes(a, n), power.into());
                }
                _ => {}
            }
        }
        if let (F::Pow, Some(halves)) = (f, b.halves) {
            match to.dtype {
                DType::F32 => {
                    let (before, to) = self.f32s.split(to, n);
                    return op::half_power_f32(to, before.lanes(a, n), halves);
                }
                DType::F64 => {
                    let (before, to) = self.f64s.split(to, n);
                    return op::half_power_f64(to, before.lanes(a, n), halves);
                }
                _ => {}
            }
        }
        if f == F::Div && to.dtype == DType::F32 && b.uniform && n > 1 {
            let (before, to) = self.f32s.split(to, n);
            return quotient::run(to, before.lanes(a, n), before.lanes(b, 1)[0]);
        }
        macro_rules! arithmetic {
            ($bank:ident, $unary:ident, $binary:ident) => {{
                let (before, to) = self.$bank.split(to, n);
                if two {
                    op::$binary(f, to, before.lanes(a, n), before.lanes(b, n));
                } else {
                    op::$unary(f, to, before.lanes(a, n));
                }
            }};
        }
        match to.dtype {
            DType::F32 => arithmetic!(f32s, unary_f32, binary_f32),
            DType::F64 => arithmetic!(f64s, unary_f64, binary_f64),
            DType::I32 => arithmetic!(i32s, unary_i32, binary_i32),
            DType::I64 => arithmetic!(i64s, unary_i64, binary_i64),
            _ => {
                let (before, to) = self.truths.split(to, n);
                match f {
                    F::Not => op::map(to, before.lanes(a, n), |x| u8::from(x == 0)),
                    F::Stop => op::map(to, before.lanes(a, n), |x| x),
                    _ => op::truth(f, to, before.lanes(a, n), before.lanes(b, n)),
                }
            }
        }
    }

    fn curve(&mut self, to: Register, curve: &Curve, n: usize) {
        let known = self.known(curve);
        let x = self.program.registers[curve.argument as usize];
        let (before, to) = self.f32s.split(to, n);
        known.run(to, before.lanes(x, n));
    }

    /// A curve with the values that its nodes have now.
    fn known(&self, curve: &Curve) -> Known {
        let first = |node: u32| self.f32s.lanes(self.program.registers[node as usize], 1)[0];
        let value = |node: Option<u32>, otherwise: f32| node.map_or(otherwise, first);
        // Times 1, minus 0 and plus -0 change nothing.
        Known {
            function: curve.function,
            scale: value(curve.scale, 1.0),
            shift: value(curve.shift, 0.0),
            plus: value(curve.plus, -0.0),
            by: curve.by.map(|by| value(by, 1.0)),
            under: curve.under.map(first),
        }
    }
}
