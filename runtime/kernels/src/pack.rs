//! One factor of a contraction as matrices: in place where its strides allow it, else copied or evaluated block by block.
//!
//! A factor may be anything: what is no box of a stored array is evaluated by its strip program (another type, a gather), a
//! window with a margin is copied line by line (then copying is im2col). Must not know the other factor.
//!
//! ```text
//! I[n, c, 2*y + r - 1, 2*x + s - 1] else 0  at n = 3  ->  288 x 784 matrix (c r s, y x)
//! ```
#![allow(unsafe_code)]

use crate::Chunk;
use crate::drive::Driver;
use crate::packed::{Packed, Part};
use crate::program::{Program, Request, place_of};
use crate::strided::{Axis, Copying};
use crate::window::Window;
use ein_array::Array;
use ein_plan::schedule::forms::affine_forms;
use ein_plan::{Graph, Node, NodeId};
use std::borrow::Cow;

/// A factor in memory: the place of its first point and the step along each index.
pub(crate) struct Strided<'a, T> {
    pub data: Memory<'a, T>,
    pub offset: i64,
    pub steps: Vec<i64>,
}

/// Elements of a chunk, or a copy.
pub(crate) enum Memory<'a, T> {
    Chunk(&'a [T]),
    Copy(Array),
}

impl<T: Packed> Memory<'_, T> {
    /// The elements.
    pub(crate) fn slice(&self) -> &[T] {
        match self {
            Memory::Chunk(slice) => slice,
            Memory::Copy(array) => T::slice(array.data()).expect("a copy has the factor's type"),
        }
    }
}

impl<T: Packed> Strided<'_, T> {
    /// Where a point lies.
    pub(crate) fn at(&self, point: &[usize]) -> usize {
        let steps = self.steps.iter().zip(point);
        steps.fold(self.offset, |sum, (s, p)| sum + s * *p as i64) as usize
    }

    /// Whether a part is inside the data, which steps of at least 0 make easy to tell.
    fn holds(&self, part: &Part) -> bool {
        let mut low = self.offset;
        let mut high = self.offset;
        for ((step, start), size) in self.steps.iter().zip(&part.start).zip(&part.size) {
            if *size == 0 {
                return false;
            }
            let first = step * *start as i64;
            let last = first + step * (*size as i64 - 1);
            low += first.min(last);
            high += first.max(last);
        }
        low >= 0 && high < self.data.slice().len() as i64
    }
}

/// A factor, as it can be had.
pub(crate) enum Factor<'a, T: Packed> {
    /// Elements of a chunk at evenly spaced places.
    Strided(Strided<'a, T>),
    /// The same, with a margin of one value around the chunk.
    Window(Window<'a, T>),
    /// Anything else.
    Evaluated,
}

impl<'a, T: Packed> Factor<'a, T> {
    /// What a node is.
    pub(crate) fn of(
        graph: &Graph,
        id: NodeId,
        operands: &'a [Chunk<'a>],
        ranges: &[(i64, i64)],
    ) -> Factor<'a, T> {
        strided(graph, id, operands, ranges)
            .map(Factor::Strided)
            .or_else(|| Window::of(graph, id, operands, ranges).map(Factor::Window))
            .unwrap_or(Factor::Evaluated)
    }
}

/// A node as elements of a chunk, if it is a read with affine positions that are all inside.
fn strided<'a, T: Packed>(
    graph: &Graph,
    id: NodeId,
    operands: &'a [Chunk<'a>],
    ranges: &[(i64, i64)],
) -> Option<Strided<'a, T>> {
    let Node::Read {
        operand,
        column,
        positions,
        ..
    } = graph.node(id)
    else {
        return None;
    };
    let chunk = &operands[*operand as usize];
    let array = chunk.columns[*column as usize];
    let data = T::slice(array.data())?;
    let forms = affine_forms(graph, ranges);
    let mut steps = vec![0; ranges.len()];
    let mut offset = 0;
    for (d, stride) in place_of(chunk).strides.into_iter().enumerate() {
        let form = forms[positions[d].0 as usize].as_ref()?;
        let start = chunk.start[d] as i64;
        if form.low < start || form.high >= start + array.shape()[d] as i64 {
            return None;
        }
        let first = form
            .terms
            .iter()
            .fold(form.constant, |sum, (i, c)| sum + c * ranges[*i].0);
        offset += (first - start) * stride;
        for (index, coefficient) in &form.terms {
            steps[*index] += coefficient * stride;
        }
    }
    Some(Strided {
        data: Memory::Chunk(data),
        offset,
        steps,
    })
}

/// Returns whether data say, for each value of an index that has several, where a node reads: then no order has neighbours.
fn looks_up(graph: &Graph, root: NodeId, sizes: &[usize]) -> bool {
    let depends = graph.dependencies();
    let varies = |id: NodeId| {
        let own = depends[id.0 as usize];
        (0..sizes.len()).any(|index| sizes[index] > 1 && own >> index & 1 == 1)
    };
    let mut open = vec![root];
    let mut seen = vec![false; graph.len()];
    while let Some(id) = open.pop() {
        if std::mem::replace(&mut seen[id.0 as usize], true) {
            continue;
        }
        let node = graph.node(id);
        if let Node::Read { positions, .. } = node {
            let found = |position: &NodeId| graph.as_affine(*position).is_none();
            if positions
                .iter()
                .any(|position| found(position) && varies(*position))
            {
                return true;
            }
        }
        open.extend(node.arguments());
    }
    false
}

/// Makes dense blocks of a factor, whose dimensions are `order`.
pub(crate) struct Packer<'f, 'a, T: Packed> {
    pub order: Vec<usize>,
    /// The indices that the factor depends on.
    pub reads: Vec<usize>,
    source: Source<'f, 'a, T>,
    /// The usual part's sizes and the copy of it.
    usual: Option<(Vec<usize>, Copying)>,
    ranges: &'f [(i64, i64)],
}

enum Source<'f, 'a, T: Packed> {
    Strided(&'f Strided<'a, T>),
    Window(&'f Window<'a, T>),
    Evaluated(Box<Program<'a>>),
}

impl<'f, 'a, T: Packed> Packer<'f, 'a, T> {
    /// A packer of the factor `root`, whose blocks usually have so many values of each index (1 of those in neither order). Its order is the
    /// first of `orders`, or the second one, of the same indices, if the factor is computed and that takes less time in it.
    pub(crate) fn new(
        factor: &'f Factor<'a, T>,
        (graph, root): (&Graph, NodeId),
        operands: &'a [Chunk<'a>],
        ranges: &'f [(i64, i64)],
        [mut order, turned]: [Vec<usize>; 2],
        reads: Vec<usize>,
        usual: &[usize],
    ) -> Packer<'f, 'a, T> {
        let mut sizes = vec![1; ranges.len()];
        order.iter().for_each(|i| sizes[*i] = usual[*i]);
        let program = |order: &[usize]| {
            Program::new(&Request {
                graph,
                operands,
                root,
                guard: None,
                reduction: None,
                output: order,
                reduced: &[],
                ranges,
                lengths: &sizes,
                lanes: None,
                apart: false,
                patches: false,
            })
        };
        let source = match factor {
            Factor::Strided(strided) => Source::Strided(strided),
            Factor::Window(window) => Source::Window(window),
            Factor::Evaluated => {
                let mut made = program(&order);
                if !looks_up(graph, root, &sizes) {
                    let other = program(&turned);
                    if other.nest.price < made.nest.price {
                        (order, made) = (turned, other);
                    }
                }
                Source::Evaluated(Box::new(made))
            }
        };
        let mut packer = Packer {
            order,
            reads,
            source,
            usual: None,
            ranges,
        };
        if let Source::Strided(strided) = packer.source {
            packer.usual = Some((sizes.clone(), packer.copying(strided, &sizes)));
        }
        packer
    }

    fn copying(&self, strided: &Strided<'a, T>, sizes: &[usize]) -> Copying {
        let mut to = 1;
        let mut axes = vec![];
        for index in self.order.iter().rev() {
            axes.push(Axis {
                extent: sizes[*index],
                from: strided.steps[*index] as isize,
                to,
            });
            to *= sizes[*index] as isize;
        }
        Copying::new(&axes)
    }

    /// Writes all of the factor, by all threads, if it is in memory; whether it is.
    pub(crate) fn copy(&self, whole: &Part, to: &mut [T]) -> bool {
        let Source::Strided(strided) = self.source else {
            return false;
        };
        assert!(strided.holds(whole), "the factor is inside its memory");
        assert_eq!(
            whole.count(&self.order),
            to.len(),
            "as many as the factor has"
        );
        let copying = self.copying(strided, &whole.size);
        // SAFETY: every element of the factor is inside `data` (asserted), and `to` holds a dense box of its sizes.
        unsafe {
            let from = strided.data.slice().as_ptr().add(strided.at(&whole.start));
            copying.copy_by_all(from, to.as_mut_ptr());
        }
        true
    }

    /// Writes a part of the factor; only the indices of `order` may have several values. Whether no point faulted.
    pub(crate) fn pack(&self, part: &Part, to: &mut [T]) -> bool {
        debug_assert_eq!(part.count(&self.order), to.len(), "as many as the part has");
        match &self.source {
            Source::Strided(strided) => {
                let mut own = Part {
                    start: part.start.clone(),
                    size: vec![1; part.size.len()],
                };
                self.order.iter().for_each(|i| own.size[*i] = part.size[*i]);
                assert!(strided.holds(&own), "the part is inside the factor");
                let copying = match &self.usual {
                    Some((sizes, copying)) if *sizes == own.size => Cow::Borrowed(copying),
                    _ => Cow::Owned(self.copying(strided, &own.size)),
                };
                // SAFETY: every element of the part is inside `data` (asserted), and `to` holds a dense box of its sizes
                // in this order.
                unsafe {
                    let from = strided.data.slice().as_ptr().add(strided.at(&part.start));
                    copying.copy(from, to.as_mut_ptr());
                }
                true
            }
            Source::Window(window) => {
                window.copy(part, &self.order, to);
                true
            }
            Source::Evaluated(program) => {
                let ranges: Vec<(i64, i64)> = (0..part.start.len())
                    .map(|i| (self.ranges[i].0 + part.start[i] as i64, part.size[i] as i64))
                    .collect();
                let driver = Driver::new(program, &ranges, &[], true);
                driver.fill(T::segment(to)).is_none()
            }
        }
    }
}
