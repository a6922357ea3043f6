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

impl Call<'_> {
    /// The real parts of every transform, and the imaginary parts behind them.
    pub(super) fn transforms<T: Element>(&self) -> Result<Array, KernelError> {
        let mut result = self.empty(self.kernel.output[0]);
        if result.data().is_empty() {
            return Ok(result);
        }
        let length = self.library.matrix(self.kernel, 0).0 as usize;
        let transform = FftPlanner::<f64>::new().plan_fft_forward(length);
        let one = |point: Vec<u64>| {
            let (re, im) = (self.matrix::<T>(0, &point)?, self.matrix::<T>(1, &point)?);
            let pairs = re.data.iter().zip(&im.data);
            let pairs = pairs.map(|(re, im)| Complex::new((*re).into(), (*im).into()));
            let mut values: Vec<Complex<f64>> = pairs.collect();
            transform.process(&mut values);
            let (re, im) = (values.iter().map(|z| z.re), values.iter().map(|z| z.im));
            Ok((point, re.chain(im).map(T::nearest).collect()))
        };
        let points = self.points(&self.library.batch);
        let found: Results<T> = points.into_par_iter().map(one).collect();
        let (data, writer) = (result.data_mut(), Writer::new(self));
        for (point, values) in found? {
            writer.each(&point, |to, from| values[from].put(data, to));
        }
        Ok(result)
    }
}
