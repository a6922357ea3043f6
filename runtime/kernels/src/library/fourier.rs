//! The discrete Fourier transforms of a kernel, vector by vector, in parallel over vectors.
//!
//! Vectors of one kernel have one length, for which a transform is planned once: one for complex numbers, and one of half the work for
//! vectors whose imaginary parts are all zero. Single precision is transformed in double precision too: it takes no longer than what is
//! around it, and there is one transform to compile. Must not know plans.
//!
//! ```text
//! [i: 4] fft(a0[:1], a1[:1], i)  of  [1 2] [0 0]   ->   3 -1 0 0
//! ```

use super::{Call, Element};
use crate::KernelError;
use ein_array::Array;
use realfft::{RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftPlanner, num_complex::Complex};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

type Pair = Complex<f64>;

/// The transforms of one length, each planned when a vector needs it.
struct Transforms {
    length: usize,
    real: LazyLock<Arc<dyn RealToComplex<f64>>, Planner<dyn RealToComplex<f64>>>,
    complex: LazyLock<Arc<dyn Fft<f64>>, Planner<dyn Fft<f64>>>,
}

type Planner<T> = Box<dyn FnOnce() -> Arc<T> + Send>;

impl Transforms {
    fn new(length: usize) -> Transforms {
        let real = move || RealFftPlanner::new().plan_fft_forward(length);
        let complex = move || FftPlanner::new().plan_fft_forward(length);
        Transforms {
            length,
            real: LazyLock::new(Box::new(real)),
            complex: LazyLock::new(Box::new(complex)),
        }
    }

    fn buffers(&self) -> Buffers {
        Buffers {
            real: vec![0.0; self.length],
            pairs: vec![Complex::ZERO; self.length],
            scratch: vec![],
        }
    }

    /// Writes the transform of a vector to `buffers.pairs`.
    fn transform<T: Element>(&self, re: &[T], im: &[T], buffers: &mut Buffers) {
        let Buffers {
            real,
            pairs,
            scratch,
        } = buffers;
        // All are looked at, so that several are together.
        let is_real = (im.iter()).fold(true, |is_real, x| is_real & (*x == T::default()));
        if !is_real {
            for ((z, re), im) in pairs.iter_mut().zip(re).zip(im) {
                *z = Complex::new((*re).into(), (*im).into());
            }
            scratch.resize(self.complex.get_inplace_scratch_len(), Complex::ZERO);
            self.complex.process_with_scratch(pairs, scratch);
            return;
        }
        for (x, re) in real.iter_mut().zip(re) {
            *x = (*re).into();
        }
        scratch.resize(self.real.get_scratch_len(), Complex::ZERO);
        let half = &mut pairs[..self.length / 2 + 1];
        self.real
            .process_with_scratch(real, half, scratch)
            .expect("the buffers have the lengths of the transform");
        // The others are the conjugates, in the opposite order.
        for at in self.length / 2 + 1..self.length {
            let z = pairs[self.length - at];
            pairs[at] = Complex::new(z.re, 0.0 - z.im);
        }
    }
}

/// The vectors that one thread computes in.
struct Buffers {
    real: Vec<f64>,
    pairs: Vec<Pair>,
    scratch: Vec<Pair>,
}

impl Call<'_> {
    /// The real parts of every transform, and the imaginary parts behind them.
    pub(super) fn transforms<T: Element>(&self) -> Result<Array, KernelError> {
        let length = self.library.matrix(self.kernel, 0).0 as usize;
        let transforms = Transforms::new(length);
        let finite = AtomicBool::new(true);
        let mut result = crate::memory::room(self.kernel.output[0], &self.shape());
        self.rows(
            T::all_mut(result.data_mut()),
            || (transforms.buffers(), [vec![], vec![]]),
            |(buffers, [re, im]), point, row: &mut [T]| {
                let (re, im) = (
                    self.vector::<T>(0, point, re),
                    self.vector::<T>(1, point, im),
                );
                if !(is_finite(re) && is_finite(im)) {
                    finite.store(false, Ordering::Relaxed);
                    return;
                }
                transforms.transform(re, im, buffers);
                let (re, im) = row.split_at_mut(length);
                for ((re, im), z) in re.iter_mut().zip(im).zip(&buffers.pairs) {
                    (*re, *im) = (T::nearest(z.re), T::nearest(z.im));
                }
            },
        );
        if !finite.into_inner() {
            // The error names the first element that is not finite.
            for number in 0..self.count(&self.library.batch) {
                let point = self.point(&self.library.batch, number);
                self.matrix::<T>(0, &point)?;
                self.matrix::<T>(1, &point)?;
            }
        }
        Ok(result)
    }

    /// The elements of an argument that is a vector at a point: where they are, or copied to `room`.
    fn vector<'v, T: Element>(
        &'v self,
        number: usize,
        point: &[u64],
        room: &'v mut Vec<T>,
    ) -> &'v [T] {
        let argument = &self.library.arguments[number];
        let length = self.library.matrix(self.kernel, number).0 as usize;
        let (offset, strides) = self.place(argument, point);
        let source = self.operands[argument.operand as usize].columns[0].data();
        if let (Some(values), 1) = (T::all(source), strides[0]) {
            return &values[offset..offset + length];
        }
        room.clear();
        room.extend((0..length).map(|at| T::of(source, offset + at * strides[0])));
        room
    }
}

/// Returns whether all are numbers. All are looked at, so that several are together.
fn is_finite<T: Element>(values: &[T]) -> bool {
    (values.iter()).fold(true, |finite, x| finite & x.finite())
}
