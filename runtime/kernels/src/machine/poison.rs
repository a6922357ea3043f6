//! Which lanes of a register count as faulty.
//!
//! A select has the poison of the branch that is taken, everything else that of all its arguments. Must not know where faults are told.
//!
//! ```text
//! select c, a / b, 0   with c = 1 0 1, b = 2 0 0:   lane 2 is faulty
//! ```

use super::Machine;
use crate::Fault;
use crate::nest::WIDTH;
use crate::operations as op;
use crate::program::Register;
use ein_plan::{DType, Function, NodeId};

impl Machine<'_, '_> {
    /// One of two values lane by lane, with the poison of the one that is taken.
    #[inline(always)]
    pub(super) fn select(&mut self, node: u32, to: Register, [c, a, b]: [u32; 3], n: usize) {
        let [rc, ra, rb] = [c, a, b].map(|id| self.program.registers[id as usize]);
        macro_rules! choose {
            ($bank:ident) => {{
                let (before, to) = self.$bank.split(to, n);
                op::select(
                    to,
                    self.truths.lanes(rc, n),
                    before.lanes(ra, n),
                    before.lanes(rb, n),
                );
            }};
        }
        match to.dtype {
            DType::F32 => choose!(f32s),
            DType::F64 => choose!(f64s),
            DType::I32 => choose!(i32s),
            DType::I64 => choose!(i64s),
            _ => {
                let (before, to) = self.truths.split(to, n);
                op::select(
                    to,
                    before.lanes(rc, n),
                    before.lanes(ra, n),
                    before.lanes(rb, n),
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
            let condition = self.truths.lanes(rc, n);
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
            } else if self.truths.lanes(rc, 1)[0] != 0 {
                a
            } else {
                b
            };
            self.inherit(node, taken);
        }
    }

    pub(super) fn first_poisoned(&self, r: Register) -> bool {
        r.poison
            .is_some_and(|p| self.poisoned[p as usize] && self.poison[p as usize * WIDTH] != 0)
    }

    pub(super) fn inherit(&mut self, node: u32, from: u32) {
        if let Some(trace) = &mut self.trace {
            trace[node as usize] = trace[from as usize].clone();
        }
    }

    /// The poison of a function that needs all its arguments, and its own.
    pub(super) fn strict(
        &mut self,
        node: u32,
        to: Register,
        f: Function,
        arguments: [u32; 3],
        n: usize,
    ) {
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
            let own = match f {
                Function::FloorDiv | Function::Div | Function::Rem => Some(Fault::DivisionByZero),
                Function::Pow => Some(Fault::NegativePower),
                _ => None,
            };
            if let Some(fault) = own {
                let bad = |y: i64| y < 0 && f == Function::Pow || y == 0 && f != Function::Pow;
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
                    let y = self.i32s.lanes(r, n);
                    y.iter()
                        .enumerate()
                        .for_each(|(l, y)| mark(l, i64::from(*y)));
                } else {
                    let y = self.i64s.lanes(r, n);
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
        if f == Function::Within {
            any |= self.outside(node, arguments, mask_at, n);
        }
        self.poisoned[slot as usize] = any;
    }

    /// Marks the lanes whose position is not one of so many; returns whether any is marked.
    fn outside(&mut self, node: u32, arguments: [u32; 3], mask_at: usize, n: usize) -> bool {
        let [x, most] = [0, 1].map(|side| {
            let r = self.program.registers[arguments[side] as usize];
            self.i64s.lanes(r, n)
        });
        let mask = &mut self.poison[mask_at..mask_at + n];
        let fault = (mask[0] == 0).then_some(Fault::NotWithin {
            check: NodeId(node),
            position: x[0],
            extent: most[0],
        });
        for (m, (x, most)) in mask.iter_mut().zip(x.iter().zip(most)) {
            *m |= u8::from(!(0..*most).contains(x));
        }
        if mask[0] != 0
            && let Some(trace) = &mut self.trace
            && fault.is_some()
        {
            trace[node as usize] = fault;
        }
        mask.contains(&1)
    }

    /// The poison of an operation with one argument that cannot fault itself.
    pub(super) fn pass(&mut self, node: u32, to: Register, argument: u32, n: usize) {
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
}
