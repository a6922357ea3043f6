//! The discrete Fourier transforms of a kernel, vector by vector, in parallel over vectors.
//!
//! Vectors of one kernel have one length, for which the transform is planned once. Single precision is transformed in double precision too:
//! it takes no longer than what is around it, and there is one transform to compile. Must not know plans.
//!
//! ```text
//! [i: 4] fft(a0[:1], a1[:1], i)  of  [1 2] [0 0]   ->   3 -1 0 0
//! ```

use super::{Call, Element, Results, Writer};
use crate::KernelError;
use ein_array::Array;
use rayon::prelude::*;
use rustfft::{FftPlanner, num_complex::Complex};

/// Vectors whose results are held before they are written.
const TOGETHER: usize = 64;

type Pair = Complex<f64>;

impl Call<'_> {
    /// The real parts of every transform, and the imaginary parts behind them.
    pub(super) fn transforms<T: Element>(&self) -> Result<Array, KernelError> {
        let mut result = self.empty(self.kernel.output[0]);
        if result.data().is_empty() {
            return Ok(result);
        }
        let length = self.library.matrix(self.kernel, 0).0 as usize;
        let transform = FftPlanner::<f64>::new().plan_fft_forward(length);
        let scratch = transform.get_inplace_scratch_len();
        let buffers = || {
            let zeros = |length| vec![Complex::new(0.0, 0.0); length];
            (zeros(length), zeros(scratch))
        };
        let one = |(pairs, scratch): &mut (Vec<Pair>, Vec<Pair>), point: &Vec<u64>| {
            self.vector::<T>(0, point, |at, x| pairs[at].re = x)?;
            self.vector::<T>(1, point, |at, x| pairs[at].im = x)?;
            transform.process_with_scratch(pairs, scratch);
            let mut values = Vec::with_capacity(2 * length);
            values.extend(pairs.iter().map(|z| T::nearest(z.re)));
            values.extend(pairs.iter().map(|z| T::nearest(z.im)));
            Ok((point.clone(), values))
        };
        let (all, writer) = (T::all_mut(result.data_mut()), Writer::new(self));
        for points in self.points(&self.library.batch).chunks(TOGETHER) {
            let found: Results<T> = points.par_iter().map_init(buffers, one).collect();
            for (point, values) in found? {
                writer.each(&point, |to, from| all[to] = values[from]);
            }
        }
        Ok(result)
    }

    /// Calls `take` with the place and the value of each element of an argument that is a vector at a point; elements must be finite.
    fn vector<T: Element>(
        &self,
        number: usize,
        point: &[u64],
        mut take: impl FnMut(usize, f64),
    ) -> Result<(), KernelError> {
        let argument = &self.library.arguments[number];
        let length = self.library.matrix(self.kernel, number).0 as usize;
        let (offset, strides) = self.place(argument, point);
        let source = self.operands[argument.operand as usize].columns[0].data();
        let mut finite = true;
        let mut each = |at: usize, x: T| {
            finite &= x.finite();
            take(at, x.into());
        };
        match T::all(source) {
            Some(values) => {
                let elements = values[offset..].iter().step_by(strides[0].max(1));
                let elements = elements.take(length).enumerate();
                elements.for_each(|(at, x)| each(at, *x));
            }
            None => (0..length).for_each(|at| each(at, T::of(source, offset + at * strides[0]))),
        }
        match finite {
            true => Ok(()),
            // The error names the element.
            false => self.matrix::<T>(number, point).map(|_| ()),
        }
    }
}
