//! Compiled groups of a machine, and curves from memory to memory: where their lanes are.
//!
//! Must not know what a group or a curve computes.
//!
//! ```text
//! 250 lanes, 4 at once:  248 where they are, 2 more by way of a buffer
//! ```
#![allow(unsafe_code)]

use super::{Bank, Machine};
use crate::column::{Column, MOST_LANES, Passage, Passing, SideReduction};
use crate::element::Element;
use crate::fuse::MOST_REGISTERS as MOST;
use crate::program::{Fused, Kind, Operation, Register};
use crate::segment::Segment;
use crate::stream::{self, Ahead};
use ein_plan::DType;
use std::ops::Range;

/// Bytes that a register takes in the buffer for the lanes that are left over: the widest vector.
const SLOT: usize = 16;

/// Bytes of each input that a group takes before more are asked for: of one, and of each of several. There are as many lines in them as may be
/// under way at once.
const ASKED: [usize; 2] = [1024, 512];

/// Bytes of an input that a group takes before it asks for what somebody else reads.
const BESIDE: usize = 4096;

/// Most results of a group that go past the caches.
const MOST_PAST: usize = 4;

/// Where the lanes of a group's inputs and outputs lie, and the size of one.
#[derive(Clone, Copy)]
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

/// Reduces the lanes of those of `nodes` that are wanted, by their numbers; `n` lanes of each lie at the addresses from `first` on.
fn reduce_beside<T: Element>(
    side_reductions: &mut [SideReduction],
    nodes: &[u32],
    (lanes, first, n): (&Lanes, usize, usize),
    wanted: impl Fn(usize) -> bool,
) {
    for SideReduction { node, gathering } in side_reductions {
        let at = nodes.iter().position(|other| other == node);
        let Some(at) = at.filter(|at| wanted(*at)) else {
            continue;
        };
        let (address, size) = (lanes.addresses[first + at], lanes.sizes[first + at]);
        assert_eq!(
            size,
            size_of::<T>(),
            "what is reduced beside is of the group's type"
        );
        // SAFETY: at the address are `n` lanes, which the group reads or has just made, and nobody writes them meanwhile.
        gathering.take_from(unsafe { std::slice::from_raw_parts(address.cast::<T>(), n) });
    }
}

impl<T: Copy + Default> Bank<'_, T> {
    /// The address of a register's lanes, `n` of which are there, and the size of a lane.
    fn address(&mut self, register: Register, n: usize) -> (*mut u8, usize) {
        let at = register.slot as usize;
        let address = match self.views[at] {
            Some(view) if view.len() >= n => view.as_ptr().cast_mut(),
            _ => {
                assert!(n <= self.width, "a register holds a strip");
                self.values[at * self.width..][..self.width].as_mut_ptr()
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

    /// Executes the innermost level of a direct program: reads of neighbours and one group or curve, whose results go to these elements of the
    /// columns. What results are over is what their columns hold so far; these are [`Column::There`]. What is tapped is read or made by the group.
    pub(crate) fn through(
        &mut self,
        level: &[Operation],
        (columns, side_reductions): (&mut [Column<'_>], &mut [SideReduction]),
        to: Range<usize>,
        passage: &mut Passage,
    ) {
        for operation in level {
            match &operation.kind {
                Kind::Read(read) if self.column_over(read).is_some() => {}
                Kind::Read(read) => {
                    let register = self.program.registers[operation.node as usize];
                    self.read(operation.node, register, read, false);
                }
                Kind::Fused(fused) => {
                    let mut lanes = Lanes::default();
                    let there = |column: &mut Column<'_>| match column.segment() {
                        Some(segment) => segment.address(to.clone()),
                        None => (std::ptr::null_mut(), 0),
                    };
                    for node in &fused.inputs {
                        lanes.push(match self.there(level, *node) {
                            Some(column) => there(&mut columns[column]),
                            None => self.address(*node, to.len()),
                        });
                    }
                    assert_eq!(columns.len(), fused.outputs.len(), "a column a result");
                    for column in &mut *columns {
                        lanes.push(there(column));
                    }
                    let there = side_reductions.is_empty() && columns.iter().all(Column::is_there);
                    let (columns, to) = ((&mut *columns, &mut *side_reductions), to.clone());
                    match (there, self.program.value()) {
                        (true, _) => self.asking(fused, to.len(), &lanes),
                        (_, DType::F32) => {
                            self.parted(fused, &lanes, columns, to, &mut passage.single);
                        }
                        (_, _) => self.parted(fused, &lanes, columns, to, &mut passage.double),
                    }
                }
                Kind::Curve(curve) => {
                    let (known, n) = (self.known(curve), to.len());
                    let x = self.program.registers[curve.argument as usize];
                    let streams = !columns[0].is_there();
                    let Some(segment) = columns[0].segment() else {
                        continue;
                    };
                    let elements = &mut f32::elements(segment)[to.clone()];
                    match (self.there(level, curve.argument).is_some(), streams) {
                        (true, _) => known.over(elements, self.ahead),
                        (_, true) => known.past(elements, self.f32s.lanes(x, n), self.ahead),
                        (_, false) => known.run_ahead(elements, self.f32s.lanes(x, n), self.ahead),
                    }
                }
                _ => {}
            }
        }
    }

    /// The column that holds the elements of a node, if it is a read of what a result is over.
    fn there(&self, level: &[Operation], node: u32) -> Option<usize> {
        level.iter().find_map(|operation| match &operation.kind {
            Kind::Read(read) if operation.node == node => self.column_over(read),
            _ => None,
        })
    }

    /// Runs a group over lanes, which lie at these addresses, part by part: what goes past the caches, to these elements of the columns, or into a
    /// number goes by way of the first cache, parts being whole strips of what is gathered if they can.
    fn parted<T: Element>(
        &self,
        fused: &Fused,
        lanes: &Lanes,
        (columns, side_reductions): (&mut [Column<'_>], &mut [SideReduction]),
        to: Range<usize>,
        passing: &mut Vec<Passing<T>>,
    ) {
        let most = MOST_LANES * 4 / size_of::<T>();
        let gathering = side_reductions.iter().map(|side| &side.gathering).next();
        let gathering = gathering.or_else(|| columns.iter().find_map(Column::gathering));
        let most = gathering.map_or(most, |gathering| gathering.whole_strips(most));
        let past = |column: &Column<'_>| matches!(column, Column::Past(_));
        let (mut part, inputs) = (*lanes, fused.inputs.len());
        let streams = columns.iter().filter(|column| past(column)).count();
        let streams = if streams <= MOST_PAST { streams } else { 0 };
        passing.resize_with(streams, Passing::new);
        let alone = fused
            .inputs
            .iter()
            .filter(|node| self.moves(**node))
            .count()
            == 1;
        let mut done = 0;
        while done < to.len() {
            let next = most.min(to.len() - done);
            for (k, node) in fused.inputs.iter().enumerate() {
                if self.moves(*node) {
                    part.addresses[k] = lanes.addresses[k].wrapping_add(done * lanes.sizes[k]);
                }
            }
            let mut free = passing.iter_mut();
            for (k, column) in (inputs..).zip(&mut *columns) {
                let passing = match column {
                    Column::Past(_) => free.next(),
                    _ => None,
                };
                part.sizes[k] = size_of::<T>();
                part.addresses[k] = match (passing, column) {
                    (Some(passing), _) => passing.room().cast(),
                    (None, Column::Gathered(gathering)) => gathering.room::<T>(next).cast(),
                    (None, _) => lanes.addresses[k].wrapping_add(done * lanes.sizes[k]),
                };
            }
            let (from, into) = part.addresses[..part.count].split_at(inputs);
            let over = |input: usize| into.contains(&from[input]);
            reduce_beside::<T>(side_reductions, &fused.inputs, (&part, 0, next), over);
            // Several are read ahead well enough where they go by way of a cache anyway.
            match (alone, self.ahead) {
                (false, Ahead::Next) => self.on_lanes(fused, next, &part),
                _ => self.asking(fused, next, &part),
            }
            // What has just been read is in a cache.
            reduce_beside::<T>(side_reductions, &fused.inputs, (&part, 0, next), |input| {
                !over(input)
            });
            reduce_beside::<T>(
                side_reductions,
                &fused.outputs,
                (&part, inputs, next),
                |_| true,
            );
            let at = to.start + done;
            done += next;
            let mut made = passing.iter_mut();
            for column in &mut *columns {
                match column {
                    Column::Gathered(gathering) => gathering.take::<T>(next),
                    Column::Past(segment) => {
                        if let Some(passing) = made.next() {
                            let last = done == to.len();
                            passing.pass(T::elements(segment), at..at + next, last);
                        }
                    }
                    Column::There(_) => {}
                }
            }
        }
    }

    /// Whether a node has a value of its own in every lane.
    fn moves(&self, node: u32) -> bool {
        !self.program.registers[node as usize].uniform
    }

    /// Runs a group over `n` lanes, which lie at these addresses, piece by piece, and asks for memory meanwhile.
    fn asking(&self, fused: &Fused, n: usize, lanes: &Lanes) {
        if matches!(self.ahead, Ahead::Nothing) {
            return self.on_lanes(fused, n, lanes);
        }
        let inputs = fused.inputs.len();
        let moves = |k: usize| k >= inputs || self.moves(fused.inputs[k]);
        let read = || (0..inputs).filter(|k| moves(*k));
        let size = read().map(|k| lanes.sizes[k]).max().unwrap_or(1);
        let most = match self.ahead {
            Ahead::Soon(_) => BESIDE,
            _ => ASKED[usize::from(read().count() > 1)],
        } / size;
        let mut part = *lanes;
        for start in (0..n).step_by(most) {
            let next = most.min(n - start);
            for k in (0..lanes.count).filter(|k| moves(*k)) {
                let address = lanes.addresses[k].wrapping_add(start * lanes.sizes[k]);
                if k < inputs && matches!(self.ahead, Ahead::Next) {
                    stream::next(address, next * lanes.sizes[k]);
                }
                part.addresses[k] = address;
            }
            if let Ahead::Soon(soon) = self.ahead {
                soon.ask(next);
            }
            self.on_lanes(fused, next, &part);
        }
    }

    /// Runs a group over `n` lanes, which lie at these addresses.
    fn on_lanes(&self, fused: &Fused, n: usize, lanes: &Lanes) {
        let Lanes {
            addresses,
            sizes,
            count,
        } = lanes;
        let count = *count;
        let inputs = fused.inputs.len();
        let whole = n - n % fused.width;
        if whole > 0 {
            // SAFETY: at every address are `n` lanes or more (one, if it is uniform), and the outputs' are their own: computed registers
            // are never views, and elements of a result, or of a buffer, are borrowed. An input that is an output's old elements lies just where that is,
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
            let uniform = k < inputs && !self.moves(fused.inputs[k]);
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
