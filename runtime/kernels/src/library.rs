//! Library operations: which matrices a kernel calls an operation with, and where its results go.
//!
//! The calls of a kernel are made matrix by matrix, in parallel over matrices. A matrix that several calls share is factored once, and
//! their right sides are solved together. What an operation computes is in `ein-matrix`, for `argsort`, `sort` and `topk` in `order`, for
//! `fft` in `fourier`, for `find` and `listed_dot` in `listed`, for products of lists in `products`.
//! Must not know plans.
//!
//! ```text
//! [p: 2, i: 2] solve(a0[p, :1, :2], a1[p, :1], i)  of  [[2 0][0 4]] [[1 1][0 1]], [2 4] [3 1]   ->   1 1, 2 1
//! ```

mod fourier;
mod listed;
mod lists;
mod order;
mod ordered;
mod products;
mod quicksort;

use crate::parallel;
use crate::{Chunk, Fault, KernelError};
use ein_array::{Array, Data};
use ein_matrix::{Matrix, Problem, Real};
use ein_plan::library::Argument;
use ein_plan::{DType, Function, IndexId, Kernel, Library, Scalar};

/// Evaluates a kernel that is a library operation, on ranges of its indices.
pub(crate) fn run(
    kernel: &Kernel,
    library: &Library,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Result<Array, KernelError> {
    let call = Call {
        kernel,
        library,
        ranges,
        operands,
    };
    let column = operands[library.arguments[0].operand as usize].columns[0];
    match library.operation {
        Function::Argsort | Function::Sort | Function::Topk => return Ok(call.ordered(column)),
        Function::Find => return call.places(),
        Function::ListedPlaces => return Ok(call.places_of_product()),
        Function::ListedDot | Function::ListedProduct | Function::ListedSums => {
            return Ok(match kernel.output[0] {
                DType::F64 => call.products::<f64>(),
                DType::F32 => call.products::<f32>(),
                DType::I32 => call.products::<i32>(),
                _ => call.products::<i64>(),
            });
        }
        _ => {}
    }
    if library.operation == Function::Fft {
        return match column.dtype() {
            DType::F64 => call.transforms::<f64>(),
            _ => call.transforms::<f32>(),
        };
    }
    // The verifier of kernels holds that it is one of these two.
    match column.dtype() {
        DType::F64 => call.matrices::<f64>(),
        _ => call.matrices::<f32>(),
    }
}

/// Elements of rows that one task computes.
const ROWS: usize = 1 << 14;

/// What calls give, by the point of each.
type Results<T> = Result<Vec<(Vec<u64>, Vec<T>)>, KernelError>;

/// A type of elements that matrices are computed in.
trait Element: Real + Default + Into<f64> {
    /// The elements, where they are of this type.
    fn all(data: &Data) -> Option<&[Self]>;
    /// Elements of it.
    fn data(values: Vec<Self>) -> Data;
    /// The element at a place.
    fn of(data: &Data, at: usize) -> Self;
    /// The elements, to be written; of data of this type.
    fn all_mut(data: &mut Data) -> &mut [Self];
    /// Whether it is a number.
    fn finite(self) -> bool;
    /// The nearest element.
    fn nearest(x: f64) -> Self;
}

macro_rules! element {
    ($t:ty, $variant:ident) => {
        impl Element for $t {
            fn all(data: &Data) -> Option<&[$t]> {
                match data {
                    Data::$variant(values) => Some(values),
                    _ => None,
                }
            }
            fn data(values: Vec<$t>) -> Data {
                Data::$variant(values)
            }
            fn of(data: &Data, at: usize) -> $t {
                match data {
                    Data::$variant(values) => values[at],
                    other => other.get(at).as_f64() as $t,
                }
            }
            fn all_mut(data: &mut Data) -> &mut [$t] {
                match data {
                    Data::$variant(values) => values,
                    _ => unreachable!("results have the type that they are computed in"),
                }
            }
            fn finite(self) -> bool {
                self.is_finite()
            }
            fn nearest(x: f64) -> $t {
                x as $t
            }
        }
    };
}

element!(f32, F32);
element!(f64, F64);

struct Call<'a> {
    kernel: &'a Kernel,
    library: &'a Library,
    ranges: &'a [(u64, u64)],
    operands: &'a [Chunk<'a>],
}

impl Call<'_> {
    /// Every point of these indices, in row-major order; of the others the first.
    fn points(&self, indices: &[IndexId]) -> Vec<Vec<u64>> {
        let all = 0..self.count(indices);
        all.map(|number| self.point(indices, number)).collect()
    }

    /// The number of these points.
    fn count(&self, indices: &[IndexId]) -> usize {
        let lengths = indices.iter().map(|i| self.ranges[i.0 as usize].1 as usize);
        lengths.product()
    }

    /// One of them, by its number.
    fn point(&self, indices: &[IndexId], number: usize) -> Vec<u64> {
        let mut point: Vec<u64> = self.ranges.iter().map(|(start, _)| *start).collect();
        let mut number = number as u64;
        for index in indices.iter().rev() {
            let (start, length) = self.ranges[index.0 as usize];
            point[index.0 as usize] = start + number % length;
            number /= length;
        }
        point
    }

    /// Batch indices that the first argument depends on, and the others.
    fn batches(&self) -> (Vec<IndexId>, Vec<IndexId>) {
        let first = &self.library.arguments[0].at;
        let batch = self.library.batch.iter().copied();
        batch.partition(|index| first.contains(&Some(*index)))
    }

    /// Where an argument's matrix begins in its chunk, and its strides.
    fn place(&self, argument: &Argument, point: &[u64]) -> (usize, Vec<usize>) {
        let chunk = &self.operands[argument.operand as usize];
        let strides = chunk.columns[0].strides();
        let offset = self.offset(argument, point, &strides);
        let strides = argument.whole.iter().map(|dim| strides[*dim]).collect();
        (offset, strides)
    }

    /// Where an argument's matrix begins in its chunk, which has these strides.
    fn offset(&self, argument: &Argument, point: &[u64], strides: &[usize]) -> usize {
        let start = &self.operands[argument.operand as usize].start;
        let along = argument.at.iter().zip(start).zip(strides);
        let along = along.filter_map(|((index, start), stride)| {
            let at = point[(*index)?.0 as usize] - start;
            Some(at as usize * stride)
        });
        along.sum()
    }

    /// An argument's matrix at a point; its elements must be finite.
    fn matrix<T: Element>(&self, number: usize, point: &[u64]) -> Result<Matrix<T>, KernelError> {
        let argument = &self.library.arguments[number];
        let (rows, columns) = self.library.matrix(self.kernel, number);
        let (rows, columns) = (rows as usize, columns as usize);
        let (offset, strides) = self.place(argument, point);
        let across = strides.get(1).copied().unwrap_or(0);
        let source = self.operands[argument.operand as usize].columns[0].data();
        let mut data = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            let start = offset + row * strides[0];
            match T::all(source).filter(|_| across == 1) {
                Some(values) => data.extend_from_slice(&values[start..start + columns]),
                None => {
                    data.extend((0..columns).map(|column| T::of(source, start + column * across)));
                }
            }
        }
        match data.iter().position(|x| !x.finite()) {
            None => Ok(Matrix {
                rows,
                columns,
                data,
            }),
            Some(at) => Err(self.error(
                Problem::NotFinite {
                    argument: number as u32,
                    row: (at / columns) as u64,
                    column: (at % columns) as u64,
                },
                point,
            )),
        }
    }

    fn error(&self, problem: Problem, point: &[u64]) -> KernelError {
        KernelError {
            fault: Fault::Library {
                operation: self.library.operation,
                problem,
            },
            point: point.to_vec(),
        }
    }

    fn matrices<T: Element>(&self) -> Result<Array, KernelError> {
        let (outer, inner) = self.batches();
        let outer = self.points(&outer);
        let mut result = self.empty(self.kernel.output[0]);
        if result.data().is_empty() {
            return Ok(result);
        }
        let one = |point: &Vec<u64>| {
            let a = self.matrix::<T>(0, point)?;
            match self.library.operation {
                Function::Solve => self.solve(&a, point, &inner),
                operation => {
                    let values = T::factor(operation, a);
                    let values = values.map_err(|problem| self.error(problem, point))?;
                    Ok(vec![(point.clone(), values)])
                }
            }
        };
        let mut parts: Vec<Results<T>> = parallel::map(outer.len(), |number| one(&outer[number]));
        if let (true, [Ok(part)]) = (self.is_whole(), parts.as_mut_slice())
            && let [(_, values)] = part.as_mut_slice()
        {
            let shape = result.shape().to_vec();
            let values = T::data(std::mem::take(values));
            return Ok(Array::new(shape, values).unwrap_or(result));
        }
        let (all, writer) = (T::all_mut(result.data_mut()), Writer::new(self));
        for part in parts {
            for (point, values) in part? {
                writer.each(&point, |to, from| all[to] = values[from]);
            }
        }
        Ok(result)
    }

    /// The solutions for all right sides of one matrix.
    fn solve<T: Element>(&self, a: &Matrix<T>, point: &[u64], inner: &[IndexId]) -> Results<T> {
        let mut points = self.points(inner);
        for (index, _) in (0u32..)
            .zip(point)
            .filter(|(i, _)| !inner.contains(&IndexId(*i)))
        {
            let value = point[index as usize];
            points.iter_mut().for_each(|p| p[index as usize] = value);
        }
        let mut sides = vec![];
        for point in &points {
            sides.push(self.matrix::<T>(1, point)?.data);
        }
        let solutions = T::solve(a, &sides).map_err(|problem| self.error(problem, point))?;
        Ok(points.into_iter().zip(solutions).collect())
    }

    /// Fills the elements of the result, where each call gives a row: `call` writes that of a point, with what `scratch` made for its thread.
    fn rows<T: Copy + Default + Send, S>(
        &self,
        all: &mut [T],
        scratch: impl Fn() -> S + Sync,
        call: impl Fn(&mut S, &[u64], &mut [T]) + Sync,
    ) {
        let count = self.count(&self.library.batch);
        let point = |number: usize| self.point(&self.library.batch, number);
        let own = self.library.own[0];
        let extent = self.kernel.indices[own.0 as usize].extent;
        let length = (extent as usize).max(1);
        let is_last = own.0 + 1 == self.kernel.output_rank;
        if is_last && self.ranges[own.0 as usize] == (0, extent) {
            let each = (ROWS / length).max(1);
            let parts = all.chunks_mut(each * length).collect();
            parallel::map_with(parts, scratch, |scratch, part, to: &mut [T]| {
                for (row, number) in to.chunks_mut(length).zip(part * each..) {
                    call(scratch, &point(number), row);
                }
            });
            return;
        }
        let found = parallel::map_with(vec![(); count], scratch, |scratch, number, ()| {
            let mut row = vec![T::default(); extent as usize];
            call(scratch, &point(number), &mut row);
            row
        });
        let writer = Writer::new(self);
        for (number, row) in found.into_iter().enumerate() {
            writer.each(&point(number), |to, from| all[to] = row[from]);
        }
    }

    /// Whether one call's result is the kernel's, element by element.
    fn is_whole(&self) -> bool {
        let rank = self.kernel.output_rank;
        let whole = |index: &IndexId| {
            let extent = self.kernel.indices[index.0 as usize].extent;
            self.ranges[index.0 as usize] == (0, extent)
        };
        let own = &self.library.own;
        (0..rank).map(IndexId).eq(own.iter().copied()) && own.iter().all(whole)
    }

    /// The extents of the output.
    fn shape(&self) -> Vec<usize> {
        let rank = self.kernel.output_rank as usize;
        let lengths = self.ranges[..rank].iter();
        lengths.map(|(_, n)| *n as usize).collect()
    }

    fn empty(&self, dtype: DType) -> Array {
        Array::zeros(dtype, &self.shape())
    }
}

/// A whole number of some elements; the verifier of kernels holds that they are of such a type.
fn whole(data: &Data, at: usize) -> i64 {
    match data {
        Data::I64(numbers) => numbers[at],
        Data::U32(numbers) => numbers[at].into(),
        other => match other.get(at) {
            Scalar::Int(number) => number,
            _ => 0,
        },
    }
}

/// Where the elements of one call's result go.
struct Writer {
    /// By index of the output: start of its range, and stride in the result.
    output: Vec<(u64, usize)>,
    batch: Vec<IndexId>,
    /// By point of the own indices but the last: an offset in the result and a place in the call's own result.
    own: Vec<(usize, usize)>,
    /// Of the last one: how many values, and how far they lie apart in the result.
    run: (usize, usize),
}

impl Writer {
    fn new(call: &Call<'_>) -> Writer {
        let rank = call.kernel.output_rank as usize;
        let mut output: Vec<(u64, usize)> = vec![];
        let mut stride = 1;
        for (start, length) in call.ranges[..rank].iter().rev() {
            output.insert(0, (*start, stride));
            stride *= *length as usize;
        }
        let mut own = vec![(0, 0)];
        let mut run = (1, 0);
        let last = call.library.own.len().saturating_sub(1);
        for (number, index) in call.library.own.iter().enumerate() {
            let at = index.0 as usize;
            let extent = call.kernel.indices[at].extent as usize;
            let (start, length) = call.ranges[at];
            let (start, length) = (start as usize, length as usize);
            let stride = output[at].1;
            if number == last {
                own.iter_mut()
                    .for_each(|(_, from)| *from = *from * extent + start);
                run = (length, stride);
                continue;
            }
            let more = |(to, from): &(usize, usize)| {
                let (to, from) = (*to, from * extent + start);
                (0..length).map(move |n| (to + n * stride, from + n))
            };
            own = own.iter().flat_map(more).collect();
        }
        Writer {
            output,
            batch: call.library.batch.clone(),
            own,
            run,
        }
    }

    /// Calls `write` with the places of each element: in the result, and in what the call at `point` gave.
    fn each(&self, point: &[u64], mut write: impl FnMut(usize, usize)) {
        let offset: usize = self
            .batch
            .iter()
            .map(|index| {
                let (start, stride) = self.output[index.0 as usize];
                (point[index.0 as usize] - start) as usize * stride
            })
            .sum();
        let (length, stride) = self.run;
        for (to, from) in &self.own {
            for number in 0..length {
                write(offset + to + number * stride, from + number);
            }
        }
    }
}
