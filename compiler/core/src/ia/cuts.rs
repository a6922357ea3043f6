//! Which indices and dimensions a layout cuts alike: the classes for the chunking.
//!
//! Where a statement reads a dimension by an index's bare name, index and dimension are cut alike, and nothing is re-chunked between them
//! ([`alike`]). An index that no axis cuts where it stands is then in pieces only because others are, and its statements make as many small
//! tuples at every site as there are combinations of pieces. What is small is re-chunked instead where that saves tuples ([`worth_while`]).
//! Must not know what a layout costs, nor memory limits.
//!
//! ```text
//! mesh 4; a[i] rests cut by i; b[i] = f(a[i]), c[i] = g(b[i]) and d = sum[i] c[i] at every site, in each of 100 rounds:
//! alike        {a.i, b.i, c.i, d.i} in 4 pieces: 4 tuples of b, 4 of c, and 4 addends of d
//! worth_while  {a.i} in 4 pieces, {b.i, c.i, d.i} whole: the 4 tuples of a are put together, then 1 of b, 1 of c, no addends
//! ```

use super::layout::{Layout, StatementRole, TensorRole};
use crate::einsum::{Definition, Program, Tensor};
use crate::tra::classes::{Classes, Read, reads};
use std::collections::HashSet;

/// Most bytes of a tensor that may be re-chunked so that its readers have fewer tuples.
const SMALL: u64 = 1 << 20;

/// Bytes that take as long to re-chunk as a statement takes for a tuple beyond its arithmetic.
const BYTES_OF_TUPLE: f64 = 32_768.0;

/// Tuples that a statement may make while a relation is re-chunked, its bytes not counted.
const TUPLES_OF_STEP: f64 = 2.0;

/// The classes of indices that a layout cuts alike, with nothing re-chunked but what a loop begins with where its state is not cut: the rounds
/// would put the pieces together again and again.
pub fn alike(program: &Program, layout: &Layout) -> Classes {
    classes(program, layout, |_| true)
}

/// [`alike`], less the reads of small tensors at which an index is whole where the dimension is cut, or the other way round, if
/// re-chunking takes less than the tuples that are saved.
pub fn worth_while(program: &Program, layout: &Layout) -> Classes {
    let together = alike(program, layout);
    let cut = axes(&together, layout);
    if cut.iter().all(Vec::is_empty) {
        return together;
    }
    let is_small = |at: usize| bytes(&program.tensors[at]) <= SMALL;
    // Without the reads of small tensors: the classes of which some member has to be cut, or is of a large tensor.
    let apart = classes(program, layout, |read| !is_small(read.tensor));
    let mut fixed: Vec<bool> = axes(&apart, layout)
        .iter()
        .map(|axes| !axes.is_empty())
        .collect();
    for at in (0..program.tensors.len()).filter(|at| !is_small(*at)) {
        for class in apart.dims[at].iter().chain(&apart.indices[at]) {
            fixed[*class as usize] = true;
        }
    }
    let is_fixed = |class: u32| fixed[class as usize];
    let of_index = |classes: &Classes, read: Read| classes.indices[read.reader][read.index];
    let of_dim = |classes: &Classes, read: Read| classes.dims[read.tensor][read.dim];
    let groups = classes(program, layout, |read| {
        is_fixed(of_index(&apart, read)) == is_fixed(of_dim(&apart, read))
    });
    let saved = Saved {
        program,
        layout,
        together: &together,
        cut: &cut,
        groups: &groups,
    };
    let gains = saved.gains();
    let mut whole: Vec<bool> = gains.iter().map(|gain| *gain > 0.0).collect();
    for at in 0..program.tensors.len() {
        let dims = apart.dims[at].iter().zip(&groups.dims[at]);
        let indices = apart.indices[at].iter().zip(&groups.indices[at]);
        for (_, group) in dims.chain(indices).filter(|(class, _)| is_fixed(**class)) {
            whole[*group as usize] = false;
        }
    }
    let is_whole = |group: u32| whole[group as usize];
    classes(program, layout, |read| {
        is_whole(of_index(&groups, read)) == is_whole(of_dim(&groups, read))
    })
}

/// By class: the axes that cut it.
pub fn axes(classes: &Classes, layout: &Layout) -> Vec<Vec<u8>> {
    let mut axes: Vec<Vec<u8>> = vec![vec![]; classes.count as usize];
    let mut cut_along = |class: u32, axis: u8| {
        let axes = &mut axes[class as usize];
        if let Err(at) = axes.binary_search(&axis) {
            axes.insert(at, axis);
        }
    };
    for at in 0..classes.dims.len() {
        for (axis, role) in (0u8..).zip(&layout.statements[at]) {
            if let StatementRole::Index(index) = role {
                cut_along(classes.indices[at][index.0 as usize], axis);
            }
        }
        for (axis, role) in (0u8..).zip(&layout.rests[at]) {
            if let TensorRole::Cut(dim) = role {
                cut_along(classes.dims[at][*dim as usize], axis);
            }
        }
    }
    axes
}

/// The classes with these reads alike; what a loop begins with is cut by itself where its state is not cut.
fn classes(program: &Program, layout: &Layout, alike: impl Fn(Read) -> bool) -> Classes {
    let apart = Classes::of_program(program, |_| true, &alike);
    let cut = axes(&apart, layout);
    let is_whole = |class: &u32| cut[*class as usize].is_empty();
    Classes::of_program(program, |at| apart.dims[at].iter().all(is_whole), &alike)
}

/// Bytes of a whole tensor.
fn bytes(tensor: &Tensor) -> u64 {
    let width = tensor.dtype.size() as u64;
    tensor
        .shape
        .iter()
        .fold(width, |bytes, extent| bytes.saturating_mul(*extent))
}

/// What whole groups of indices save.
struct Saved<'a> {
    program: &'a Program,
    layout: &'a Layout,
    /// The classes that are cut alike otherwise, and the axes that cut them.
    together: &'a Classes,
    cut: &'a [Vec<u8>],
    groups: &'a Classes,
}

impl Saved<'_> {
    /// By group: the tuples that are saved at a site if it is whole, less what is re-chunked at its edge, in tuples.
    fn gains(&self) -> Vec<f64> {
        let mut gains = vec![0.0; self.groups.count as usize];
        let times = self.program.expected_times();
        let mut edges = HashSet::new();
        for (at, tensor) in self.program.tensors.iter().enumerate() {
            let tuples = self.tuples(at);
            let distinct: HashSet<u32> = self.groups.indices[at].iter().copied().collect();
            for group in distinct {
                let pieces: f64 = (0..self.groups.indices[at].len())
                    .filter(|index| self.groups.indices[at][*index] == group)
                    .map(|index| self.pieces(self.together.indices[at][index]))
                    .product();
                gains[group as usize] += times[at] * (tuples - tuples / pieces);
            }
            let Definition::Statement { kernel, operands } = &tensor.definition else {
                continue;
            };
            for read in reads(at, kernel, operands) {
                let (inner, outer) = (
                    self.groups.indices[at][read.index],
                    self.groups.dims[read.tensor][read.dim],
                );
                if inner == outer || self.pieces(self.together.indices[at][read.index]) == 1.0 {
                    continue;
                }
                let bytes = bytes(&self.program.tensors[read.tensor]) as f64;
                let loss = times[read.tensor] * (TUPLES_OF_STEP + bytes / BYTES_OF_TUPLE);
                for group in [inner, outer] {
                    if edges.insert((read.tensor, read.dim, group)) {
                        gains[group as usize] -= loss;
                    }
                }
            }
        }
        gains
    }

    /// The tuples that a statement makes at a site that takes part in it.
    fn tuples(&self, at: usize) -> f64 {
        let indices = self.together.indices[at].iter();
        let all: f64 = indices.map(|class| self.pieces(*class)).product();
        let roles = self.layout.statements[at]
            .iter()
            .zip(&self.layout.mesh.axes);
        let apart = roles.filter(|(role, _)| matches!(role, StatementRole::Index(_)));
        let sites: f64 = apart.map(|(_, count)| f64::from(*count)).product();
        all / sites
    }

    /// Pieces of a class.
    fn pieces(&self, class: u32) -> f64 {
        let axes = self.cut[class as usize].iter();
        let counts = axes.map(|axis| f64::from(self.layout.mesh.count(*axis)));
        counts.product()
    }
}
