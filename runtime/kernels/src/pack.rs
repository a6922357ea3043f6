//! One factor of a contraction as a matrix: in place where its strides allow it, else packed block by block.
//!
//! A packed block is evaluated by the strip program of the factor, so a factor may be anything: a read of
//! another type, a diagonal, a gather, a convolution's window (then packing is im2col). Must not know the
//! other factor.
//!
//! ```text
//! I[n, c, 2*y + r - 1, 2*x + s - 1] else 0  at n = 3  ->  288 x 784 matrix (c r s, y x)
//! ```

use crate::Chunk;
use crate::drive::Driver;
use crate::forms::affine_forms;
use crate::nest::WIDTH;
use crate::product::{Element, Matrix};
use crate::program::{Place, Program, Request};
use crate::segment::Segment;
use ein_array::Data;
use ein_plan::{DType, Graph, Node, NodeId};

/// Elements of a packed block.
pub(crate) const BLOCK: usize = 1 << 20;

/// A type that factors are packed in.
pub(crate) trait Packed: Element {
    fn slice(data: &Data) -> Option<&[Self]>;
    fn segment(slice: &mut [Self]) -> Segment<'_>;
    /// The elements as an array's, if `dtype` is their type.
    fn owned(values: Vec<Self>, dtype: DType) -> Result<Data, Vec<Self>>;
}
impl Packed for f32 {
    fn slice(data: &Data) -> Option<&[f32]> {
        match data {
            Data::F32(v) => Some(v),
            _ => None,
        }
    }
    fn segment(slice: &mut [f32]) -> Segment<'_> {
        Segment::F32(slice)
    }
    fn owned(values: Vec<f32>, dtype: DType) -> Result<Data, Vec<f32>> {
        if dtype == DType::F32 {
            Ok(Data::F32(values))
        } else {
            Err(values)
        }
    }
}
impl Packed for f64 {
    fn slice(data: &Data) -> Option<&[f64]> {
        match data {
            Data::F64(v) => Some(v),
            _ => None,
        }
    }
    fn segment(slice: &mut [f64]) -> Segment<'_> {
        Segment::F64(slice)
    }
    fn owned(values: Vec<f64>, dtype: DType) -> Result<Data, Vec<f64>> {
        if dtype == DType::F64 {
            Ok(Data::F64(values))
        } else {
            Err(values)
        }
    }
}

/// A factor that stands in memory as it is: offset of its first point and the step along each index.
pub(crate) struct InPlace<'a, T> {
    pub data: &'a [T],
    offset: i64,
    pub steps: Vec<i64>,
}

/// A node as elements of a chunk, if it is a read with affine positions that are all inside.
pub(crate) fn in_place<'a, T: Packed>(
    graph: &Graph,
    id: NodeId,
    operands: &'a [Chunk<'a>],
    ranges: &[(i64, i64)],
) -> Option<InPlace<'a, T>> {
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
    for (d, stride) in Place::of(chunk).strides.into_iter().enumerate() {
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
    Some(InPlace {
        data,
        offset,
        steps,
    })
}

impl<T> InPlace<'_, T> {
    /// The one step of several indices (outermost first) that are counted through as one; `None` if there is none.
    pub(crate) fn merged(&self, indices: &[usize], lengths: &[usize]) -> Option<usize> {
        for pair in indices.windows(2) {
            if self.steps[pair[0]] != self.steps[pair[1]] * lengths[pair[1]] as i64 {
                return None;
            }
        }
        let step = indices.last().map_or(1, |i| self.steps[*i]);
        usize::try_from(step).ok()
    }

    /// Offset of the point that lies `from` past the ranges' starts.
    pub(crate) fn offset(&self, from: &[usize]) -> usize {
        let steps = self.steps.iter().zip(from);
        steps.fold(self.offset, |sum, (s, f)| sum + s * *f as i64) as usize
    }
}

/// A factor that is evaluated block by block.
pub(crate) struct Evaluated<'a> {
    program: Program<'a>,
    /// Whether a block's rows are its outer dimensions.
    rows_outside: bool,
}

impl<'a> Evaluated<'a> {
    /// The factor `root` with the given row and column indices, which usually come in such numbers.
    pub(crate) fn new(
        graph: &Graph,
        root: NodeId,
        operands: &'a [Chunk<'a>],
        ranges: &[(i64, i64)],
        lengths: &[usize],
        rows: &[usize],
        columns: &[usize],
    ) -> Evaluated<'a> {
        let compile = |outer: &[usize], inner: &[usize]| {
            let output: Vec<usize> = outer.iter().chain(inner).copied().collect();
            Program::new(&Request {
                graph,
                operands,
                root,
                guard: None,
                reduction: None,
                output: &output,
                reduced: &[],
                ranges,
                lengths,
                lanes: None,
            })
        };
        let (by_rows, by_columns) = (compile(rows, columns), compile(columns, rows));
        let cost = |program: &Program<'_>, inner: &[usize]| {
            let run = inner.last().map_or(1, |i| lengths[*i]).clamp(1, WIDTH);
            program.nest.price * (1.0 + 16.0 / run as f64)
        };
        if cost(&by_rows, columns) <= cost(&by_columns, rows) {
            Evaluated {
                program: by_rows,
                rows_outside: true,
            }
        } else {
            Evaluated {
                program: by_columns,
                rows_outside: false,
            }
        }
    }

    /// The block at `ranges`, of `rows` by `columns` points, in `scratch`; `None` if a point faults.
    pub(crate) fn block<'s, T: Packed>(
        &self,
        ranges: &[(i64, i64)],
        (rows, columns): (usize, usize),
        scratch: &'s mut Vec<T>,
    ) -> Option<Matrix<'s, T>> {
        let n = rows * columns;
        if scratch.len() < n {
            scratch.resize(n, T::default());
        }
        let driver = Driver::new(&self.program, ranges, &[], true);
        if driver.fill(T::segment(&mut scratch[..n])).is_some() {
            return None;
        }
        let (row, column) = if self.rows_outside {
            (columns, 1)
        } else {
            (1, rows)
        };
        Some(Matrix {
            data: &scratch[..n],
            offset: 0,
            row,
            column,
        })
    }
}
