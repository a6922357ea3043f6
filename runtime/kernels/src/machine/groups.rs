//! Compiled groups of a machine: where their lanes are.
//!
//! Must not know what a group computes.
//!
//! ```text
//! 250 lanes, 4 at once:  248 where they are, 2 more by way of a buffer
//! ```
#![allow(unsafe_code)]

use super::{Bank, Machine};
use crate::fuse::{Fused, MOST_REGISTERS as MOST};
use crate::nest::WIDTH;
use crate::program::{Kind, Operation, Read, Register};
use crate::segment::Segment;
use ein_plan::DType;
use std::ops::Range;

/// Bytes that a register takes in the buffer for the lanes that are left over: the widest vector.
const SLOT: usize = 16;

/// Where the lanes of a group's inputs and outputs lie, and the size of one.
struct Lanes {
    addresses: [*mut u8; MOST],
    sizes: [usize; MOST],
    count: usize,
}

impl Default for Lanes {
    fn default() -> Lanes {
        Lanes {
            addresses: [std::ptr::null_mut(); MOST],
            sizes: [0; MOST],
            count: 0,
        }
    }
}

impl Lanes {
    fn push(&mut self, (address, size): (*mut u8, usize)) {
        (self.addresses[self.count], self.sizes[self.count]) = (address, size);
        self.count += 1;
    }
}

impl<T: Copy + Default> Bank<'_, T> {
    /// The address of a register's lanes, `n` of which are there, and the size of a lane.
    fn address(&mut self, register: Register, n: usize) -> (*mut u8, usize) {
        let at = register.slot as usize;
        let address = match self.views[at] {
            Some(view) if view.len() >= n => view.as_ptr().cast_mut(),
            _ => {
                assert!(n <= WIDTH, "a register holds a strip");
                self.values[at * WIDTH..][..WIDTH].as_mut_ptr()
            }
        };
        (address.cast(), size_of::<T>())
    }
}

impl Segment<'_> {
    /// The address of some elements, and the size of one.
    fn address(&mut self, to: Range<usize>) -> (*mut u8, usize) {
        match self {
            Segment::F32(all) => (all[to].as_mut_ptr().cast(), size_of::<f32>()),
            Segment::F64(all) => (all[to].as_mut_ptr().cast(), size_of::<f64>()),
            _ => unreachable!("a program is direct for results of floats"),
        }
    }
}

impl Machine<'_, '_> {
    fn address(&mut self, node: u32, n: usize) -> (*mut u8, usize) {
        let register = self.program.registers[node as usize];
        let n = if register.uniform { 1 } else { n };
        match register.dtype {
            DType::F32 => self.f32s.address(register, n),
            DType::F64 => self.f64s.address(register, n),
            _ => self.truths.address(register, n),
        }
    }

    /// Runs a compiled group over the `n` lanes of the strip.
    pub(super) fn fused(&mut self, fused: &Fused, n: usize) {
        let mut lanes = Lanes::default();
        for node in fused.inputs.iter().chain(&fused.outputs) {
            lanes.push(self.address(*node, n));
        }
        self.on_lanes(fused, n, &lanes);
    }

    /// Executes the innermost level of a direct program: reads of neighbours and one group, whose results go to these elements of the columns.
    /// The operands `over` are what columns hold so far.
    pub(crate) fn through(
        &mut self,
        level: &[Operation],
        columns: &mut [Segment<'_>],
        to: Range<usize>,
        over: &[(usize, usize)],
    ) {
        let column = |read: &Read| {
            let mut over = over.iter();
            over.find_map(|(operand, column)| (*operand == read.operand).then_some(*column))
        };
        for operation in level {
            match &operation.kind {
                Kind::Read(read) if column(read).is_some() => {}
                Kind::Read(read) => {
                    let register = self.program.registers[operation.node as usize];
                    self.read(operation.node, register, read, false);
                }
                Kind::Fused(fused) => {
                    let mut lanes = Lanes::default();
                    for node in &fused.inputs {
                        let there = level.iter().find_map(|operation| match &operation.kind {
                            Kind::Read(read) if operation.node == *node => column(read),
                            _ => None,
                        });
                        lanes.push(match there {
                            Some(column) => columns[column].address(to.clone()),
                            None => self.address(*node, to.len()),
                        });
                    }
                    assert_eq!(columns.len(), fused.outputs.len(), "a column a result");
                    for column in &mut *columns {
                        lanes.push(column.address(to.clone()));
                    }
                    self.on_lanes(fused, to.len(), &lanes);
                }
                _ => {}
            }
        }
    }

    /// Runs a group over `n` lanes, which lie at these addresses.
    fn on_lanes(&self, fused: &Fused, n: usize, lanes: &Lanes) {
        let Lanes {
            addresses,
            sizes,
            count,
        } = *lanes;
        let inputs = fused.inputs.len();
        let whole = n - n % fused.width;
        if whole > 0 {
            // SAFETY: at every address are `n` lanes or more (one, if it is uniform), and the outputs' are their own: computed registers
            // are never views, and elements of a result are borrowed. An input that is an output's old elements lies just where that is,
            // under the same borrow.
            unsafe { fused.code.run(whole, &addresses[..count]) };
        }
        if whole == n {
            return;
        }
        // The lanes that are left: to a buffer of whole vectors and back.
        let mut buffer = [0u8; MOST * SLOT];
        let base = buffer.as_mut_ptr();
        let mut places = [std::ptr::null_mut(); MOST];
        for k in 0..count {
            let uniform = k < inputs && self.program.registers[fused.inputs[k] as usize].uniform;
            let (from, lanes) = if uniform { (0, 1) } else { (whole, n - whole) };
            // SAFETY: a slot holds a vector's lanes, and the lanes copied are among the register's `n`.
            unsafe {
                places[k] = base.add(k * SLOT);
                if k < inputs {
                    let source = addresses[k].add(from * sizes[k]);
                    std::ptr::copy_nonoverlapping(source, places[k], lanes * sizes[k]);
                }
            }
        }
        // SAFETY: every slot holds a whole vector, and slots do not overlap.
        unsafe { fused.code.run(fused.width, &places[..count]) };
        for k in inputs..count {
            // SAFETY: as above; the register is the group's own to write.
            unsafe {
                let target = addresses[k].add(whole * sizes[k]);
                std::ptr::copy_nonoverlapping(places[k], target, (n - whole) * sizes[k]);
            }
        }
    }
}
