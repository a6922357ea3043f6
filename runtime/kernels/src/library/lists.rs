//! Operations on lists as kernels: which columns they read, and where results go.
//!
//! Must not know how an operation is computed.
//!
//! ```text
//! [e: 70] find(a0[:1], a1[e])                                                  all calls at once, of `listed`
//! [i: 9, j: 8] listed_product(a0[:1], a1[:1], a2[:1], a3[:1], a4[:1], a5[:1], j)   a row at a time, of `products`
//! ```

use super::{Call, listed, products, whole};
use crate::KernelError;
use ein_array::{Array, Data};
use ein_plan::Function;
use std::borrow::Cow;

impl Call<'_> {
    /// `find`, for all calls at once.
    pub(super) fn places(&self) -> Result<Array, KernelError> {
        let places = listed::places(&self.numbers(0), &self.numbers(1));
        Ok(self.of_calls(Data::I64(places)))
    }

    /// Sums of products of two lists of rows.
    pub(super) fn products<T: listed::Summed>(&self) -> Array {
        let ends = [0, 3].map(|number| self.numbers(number));
        let own = self.library.own.first();
        let own = own.map_or(0, |own| self.kernel.indices[own.0 as usize].extent);
        let columns = self.library.positions.unwrap_or(own) as usize;
        let values = |number: usize| match T::of(self.column(number)) {
            Some(values) => Cow::Borrowed(values),
            None => {
                let all = self.column(number);
                let value = |at: usize| T::constant(&all.get(at)).unwrap_or(T::ZERO);
                Cow::Owned((0..all.len()).map(value).collect())
            }
        };
        let is_dot = self.library.operation == Function::ListedDot;
        let rows = |side: usize, count: usize| listed::Rows {
            ends: &ends[side],
            positions: listed::positions(self.column(3 * side + 1), count),
            values: values(3 * side + 2),
        };
        let (a, b) = (
            rows(0, if is_dot { columns } else { ends[1].len() }),
            rows(1, columns),
        );
        match self.library.operation {
            Function::ListedDot => {
                let numbers = [6, 7].map(|number| self.numbers(number));
                let sums = listed::dots([&a, &b], [&numbers[0], &numbers[1]], columns);
                self.of_calls(T::data(sums))
            }
            Function::ListedSums => {
                let sums = products::sums([&a, &b], &self.numbers(6), columns);
                self.part_of(T::data(sums))
            }
            _ => {
                let shape = self.shape();
                let mut all = vec![T::default(); shape.iter().product()];
                let batch = self.library.batch[0].0 as usize;
                let scratch = || vec![T::Sum::default(); columns];
                self.rows(&mut all, scratch, |sums, point, to| {
                    products::row([&a, &b], point[batch] as usize, sums, to);
                });
                Array::new(shape, T::data(all)).expect("each row has its elements")
            }
        }
    }

    /// `listed_places`.
    pub(super) fn places_of_product(&self) -> Array {
        let ends = [0, 2].map(|number| self.numbers(number));
        let columns = self.library.positions.unwrap_or(0) as usize;
        let rows = |side: usize, count: usize| listed::Rows::<()> {
            ends: &ends[side],
            positions: listed::positions(self.column(2 * side + 1), count),
            values: Cow::Borrowed(&[]),
        };
        let (a, b) = (rows(0, ends[1].len()), rows(1, columns));
        let count = self.kernel.indices[self.library.own[0].0 as usize].extent as usize;
        self.part_of(Data::I64(products::places([&a, &b], columns, count)))
    }

    /// The elements of the one call in the range of its index.
    fn part_of(&self, data: Data) -> Array {
        let (start, length) = self.ranges[self.library.own[0].0 as usize];
        let all = Array::new(vec![data.len()], data).expect("a vector of all elements");
        if length as usize == all.data().len() {
            return all;
        }
        let mut part = self.empty(all.dtype());
        part.copy_box(&[0], &all, &[start as usize], &[length as usize]);
        part
    }

    /// The elements of an argument that is a list.
    fn column(&self, number: usize) -> &Data {
        let argument = &self.library.arguments[number];
        self.operands[argument.operand as usize].columns[0].data()
    }

    /// The whole numbers of an argument: a list, or one for each call.
    fn numbers(&self, number: usize) -> Cow<'_, [i64]> {
        let argument = &self.library.arguments[number];
        let chunk = &self.operands[argument.operand as usize];
        let all = match argument.whole.is_empty() {
            false => 0..chunk.columns[0].data().len(),
            true => match (&argument.at[..], &self.library.batch[..]) {
                (&[Some(index)], &[own]) if index == own => {
                    let (start, length) = self.ranges[index.0 as usize];
                    let first = (start - chunk.start[0]) as usize;
                    first..first + length as usize
                }
                _ => {
                    let points = self.points(&self.library.batch);
                    let at = points.iter().map(|point| self.place(argument, point).0);
                    return Cow::Owned(at.map(|at| whole(self.column(number), at)).collect());
                }
            },
        };
        match self.column(number) {
            Data::I64(numbers) => Cow::Borrowed(&numbers[all]),
            numbers => Cow::Owned(all.map(|at| whole(numbers, at)).collect()),
        }
    }

    /// One element for each call.
    fn of_calls(&self, data: Data) -> Array {
        Array::new(self.shape(), data).expect("each call has one element")
    }
}
