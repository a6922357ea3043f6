//! `argsort`, `sort` and `topk` of a kernel: a call for each row, whose result is a row as well.
//!
//! Must not know how a row is sorted.
//!
//! ```text
//! [n: 2, i: 3] sort(a0[n, :3], i)   of   [[3 1 2][6 5 4]]   ->   [[1 2 3][4 5 6]]
//! ```

use super::Call;
use super::order::{self, Ranked, Row};
use ein_array::{Array, each_data};
use ein_plan::Function;

impl Call<'_> {
    /// `argsort`, `sort` and `topk`.
    pub(super) fn ordered(&self, column: &Array) -> Array {
        let argument = &self.library.arguments[0];
        let count = self.library.matrix(self.kernel, 0).0 as usize;
        let own = self.library.own[0].0 as usize;
        let chosen = self.kernel.indices[own].extent as usize;
        let strides = column.strides();
        let stride = strides[argument.whole[0]];
        each_data!(column.data(), values => {
            let row = |point: &[u64]| Row {
                values: &values[self.offset(argument, point, &strides)..],
                stride,
                count,
            };
            if self.library.operation == Function::Sort {
                return self.of_rows(|point| order::values(row(point)));
            }
            self.of_rows(|point| {
                let row = row(point);
                let ranks = |first: usize, to: &mut [u64]| row.each(first, to, Ranked::wide_rank);
                match self.library.operation {
                    Function::Topk => order::largest(count, chosen, &ranks),
                    _ => order::ascending(count, &ranks),
                }
            })
        })
    }

    /// The result of which each call gives a row.
    fn of_rows<T: Ranked>(&self, call: impl Fn(&[u64]) -> Vec<T> + Sync) -> Array {
        let all = match self.count(&self.library.batch) {
            1 if self.is_whole() => call(&self.point(&self.library.batch, 0)),
            _ => {
                let mut all = vec![T::default(); self.shape().iter().product()];
                let row = |(): &mut (), point: &[u64], row: &mut [T]| {
                    row.copy_from_slice(&call(point));
                };
                self.rows(&mut all, || (), row);
                all
            }
        };
        Array::new(self.shape(), T::data(all))
            .expect("a call gives as many elements as its index has values")
    }
}
