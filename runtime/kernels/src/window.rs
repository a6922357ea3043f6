//! Windows over a chunk with a margin: reads at affine positions, with one value for what is outside.
//!
//! They are copied line by line: the part of a line that is inside is a run, the rest is filled. Must not know what they
//! are multiplied with.
//!
//! ```text
//! I[n, c, y + r - 1, x + s - 1] else 0.0   at r = 0, y = 0: 56 zeros;  at y = 1, s = 0: one zero, then 55 neighbours
//! ```

use crate::Chunk;
use crate::packed::{Packed, Part};
use crate::program::place_of;
use crate::strided::copied;
use ein_plan::schedule::forms::affine_forms;
use ein_plan::{Graph, Node, NodeId, Scalar};

/// A position along one dimension of a chunk: `constant + Σ steps · index`, counted from the chunk's start.
struct Dimension {
    constant: i64,
    steps: Vec<i64>,
    extent: i64,
    stride: i64,
}

/// A read at affine positions, some of which may be outside.
pub(crate) struct Window<'a, T> {
    data: &'a [T],
    dimensions: Vec<Dimension>,
    outside: T,
}

impl<'a, T: Packed> Window<'a, T> {
    /// A node as a window, if it is one. Positions must be inside the chunk or outside the whole operand.
    pub(crate) fn of(
        graph: &Graph,
        id: NodeId,
        operands: &'a [Chunk<'a>],
        ranges: &[(i64, i64)],
    ) -> Option<Window<'a, T>> {
        let Node::Read {
            operand,
            column,
            positions,
            otherwise: Some(otherwise),
        } = graph.node(id)
        else {
            return None;
        };
        let Node::Constant(Scalar::Float(outside)) = graph.node(*otherwise) else {
            return None;
        };
        let chunk = &operands[*operand as usize];
        let array = chunk.columns[*column as usize];
        let data = T::slice(array.data())?;
        let forms = affine_forms(graph, ranges);
        let place = place_of(chunk);
        let mut dimensions = vec![];
        for (d, position) in positions.iter().enumerate() {
            let form = forms[position.0 as usize].as_ref()?;
            let mut steps = vec![0; ranges.len()];
            let mut constant = form.constant - place.start[d];
            for (index, coefficient) in &form.terms {
                steps[*index] += coefficient;
                constant += coefficient * ranges[*index].0;
            }
            dimensions.push(Dimension {
                constant,
                steps,
                extent: place.shape[d],
                stride: place.strides[d],
            });
        }
        Some(Window {
            data,
            dimensions,
            outside: T::from_f64(*outside),
        })
    }

    /// Copies a part as a dense box with the dimensions `order`.
    pub(crate) fn copy(&self, part: &Part, order: &[usize], to: &mut [T]) {
        let Some((line, outer)) = order.split_last() else {
            return self.line(
                &self.positions(&part.start),
                &vec![0; self.dimensions.len()],
                to,
            );
        };
        let length = part.size[*line];
        if length == 0 {
            return;
        }
        let along: Vec<i64> = self.dimensions.iter().map(|d| d.steps[*line]).collect();
        let mut at: Vec<i64> = self.positions(&part.start);
        let mut count = vec![0usize; outer.len()];
        for to in to.chunks_exact_mut(length) {
            self.line(&at, &along, to);
            for (slot, index) in count.iter_mut().zip(outer).rev() {
                let step = |at: &mut [i64], times: i64| {
                    for (at, d) in at.iter_mut().zip(&self.dimensions) {
                        *at += times * d.steps[*index];
                    }
                };
                *slot += 1;
                if *slot < part.size[*index] {
                    step(&mut at, 1);
                    break;
                }
                step(&mut at, 1 - *slot as i64);
                *slot = 0;
            }
        }
    }

    /// The position along each dimension of a point.
    fn positions(&self, point: &[usize]) -> Vec<i64> {
        let at = |d: &Dimension| {
            let steps = d.steps.iter().zip(point);
            steps.fold(d.constant, |sum, (s, p)| sum + s * *p as i64)
        };
        self.dimensions.iter().map(at).collect()
    }

    /// One line, from these positions on, `along` further with each element.
    #[inline]
    fn line(&self, at: &[i64], along: &[i64], to: &mut [T]) {
        let (mut first, mut end) = (0i64, to.len() as i64);
        let (mut offset, mut step) = (0, 0);
        for ((dimension, at), along) in self.dimensions.iter().zip(at).zip(along) {
            offset += at * dimension.stride;
            step += along * dimension.stride;
            // Inside are the elements l with 0 <= at + along * l < extent.
            match along.signum() {
                1 if *along == 1 => {
                    first = first.max(-at);
                    end = end.min(dimension.extent - at);
                }
                1 => {
                    first = first.max((-at + along - 1).div_euclid(*along));
                    end = end.min((dimension.extent - at + along - 1).div_euclid(*along));
                }
                -1 => {
                    first = first.max((at - dimension.extent - along).div_euclid(-along));
                    end = end.min(at.div_euclid(-along) + 1);
                }
                _ if *at < 0 || *at >= dimension.extent => end = 0,
                _ => {}
            }
        }
        if first >= end {
            return to.fill(self.outside);
        }
        let (low, high) = (first as usize, end as usize);
        // Margins are short: a loop is faster than a call.
        to[..low].iter_mut().for_each(|to| *to = self.outside);
        to[high..].iter_mut().for_each(|to| *to = self.outside);
        let begin = (offset + first * step) as usize;
        let to = &mut to[low..high];
        match step {
            1 => {
                copied(to, &self.data[begin..begin + to.len()]);
            }
            2 => {
                // Pairs are taken apart by vectors.
                let (last, to) = to.split_last_mut().expect("a line is not empty");
                let from = &self.data[begin..=begin + 2 * to.len()];
                for (to, pair) in to.iter_mut().zip(from.chunks_exact(2)) {
                    *to = pair[0];
                }
                *last = from[2 * to.len()];
            }
            0 => to.fill(self.data[begin]),
            3.. => {
                let from = self.data[begin..].iter().step_by(step as usize);
                to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
            _ => {
                for (l, to) in to.iter_mut().enumerate() {
                    *to = self.data[(begin as i64 + l as i64 * step) as usize];
                }
            }
        }
    }
}
