//! Dense row-major arrays of any element type: what a tuple of a relation holds.
//!
//! Must not know keys, sites, files or kernels.
//!
//! ```text
//! f32[2, 3]: 0 1 2 3 4 5
//! ```

mod reuse;

pub use reuse::release;

use ein_plan::{DType, Scalar};
use half::{bf16, f16};
use std::cell::Cell;
use std::hint::black_box;

/// The elements of an array.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Half precision.
    F16(Vec<f16>),
    /// bfloat16.
    BF16(Vec<bf16>),
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
    /// Bytes.
    U8(Vec<u8>),
    /// Integers of u16.
    U16(Vec<u16>),
    /// Integers of u32.
    U32(Vec<u32>),
    /// Integers of u64.
    U64(Vec<u64>),
    /// Integers of i8.
    I8(Vec<i8>),
    /// Integers of i16.
    I16(Vec<i16>),
    /// 32-bit integers.
    I32(Vec<i32>),
    /// 64-bit integers.
    I64(Vec<i64>),
    /// Truth values, 0 or 1.
    Bool(Vec<u8>),
}

/// Runs `$body` with `$v` bound to the typed vector inside a [`Data`] (a reference or a value).
#[macro_export]
macro_rules! each_data {
    ($data:expr, $v:ident => $body:expr) => {
        match $data {
            $crate::Data::F16($v) => $body,
            $crate::Data::BF16($v) => $body,
            $crate::Data::F32($v) => $body,
            $crate::Data::F64($v) => $body,
            $crate::Data::U8($v) => $body,
            $crate::Data::U16($v) => $body,
            $crate::Data::U32($v) => $body,
            $crate::Data::U64($v) => $body,
            $crate::Data::I8($v) => $body,
            $crate::Data::I16($v) => $body,
            $crate::Data::I32($v) => $body,
            $crate::Data::I64($v) => $body,
            $crate::Data::Bool($v) => $body,
        }
    };
}

/// So many bytes and more are asked for before they are used: the system may refuse them.
const LARGE: usize = 64 << 20;

thread_local! {
    static ASKING: Cell<bool> = const { Cell::new(false) };
}

/// Asks the system whether it has so many bytes, if they are many.
///
/// # Panics
/// With [`NoMemory`] if it refuses them. The panic prints nothing; `ein-exec` catches it and reports the statement.
pub fn ask(bytes: usize) {
    if bytes < LARGE {
        return;
    }
    ASKING.set(true);
    let mut room: Vec<u8> = vec![];
    let refused = room.try_reserve_exact(bytes).is_err();
    ASKING.set(false);
    // Else the compiler may leave out a piece that nobody writes.
    black_box(&room);
    if refused {
        std::panic::resume_unwind(Box::new(NoMemory { bytes }));
    }
}

/// Returns whether this thread is about to learn in [`ask`] that memory is refused; an allocator must not end the process then.
pub fn is_asking() -> bool {
    ASKING.get()
}

/// The panic of an allocation that the system refuses.
#[derive(Clone, Copy, Debug)]
pub struct NoMemory {
    /// Number of bytes that the array needs.
    pub bytes: usize,
}

impl Data {
    /// `n` zeros.
    ///
    /// # Panics
    /// With [`NoMemory`] if the system refuses the memory.
    pub fn zeros(dtype: DType, n: usize) -> Data {
        // The zeros themselves come from the system as such, without being written.
        ask(n.saturating_mul(dtype.size()));
        match dtype {
            DType::F16 => Data::F16(vec![f16::ZERO; n]),
            DType::BF16 => Data::BF16(vec![bf16::ZERO; n]),
            DType::F32 => Data::F32(vec![0.0; n]),
            DType::F64 => Data::F64(vec![0.0; n]),
            DType::U8 => Data::U8(vec![0; n]),
            DType::U16 => Data::U16(vec![0; n]),
            DType::U32 => Data::U32(vec![0; n]),
            DType::U64 => Data::U64(vec![0; n]),
            DType::I8 => Data::I8(vec![0; n]),
            DType::I16 => Data::I16(vec![0; n]),
            DType::I32 => Data::I32(vec![0; n]),
            DType::I64 => Data::I64(vec![0; n]),
            DType::Bool => Data::Bool(vec![0; n]),
            DType::C64 | DType::C128 => unreachable!("arrays hold the parts of complex numbers"),
        }
    }

    /// `n` elements with any values, for a writer of all of them: in the buffer of an array that is gone, if there is one.
    pub fn room(dtype: DType, n: usize) -> Data {
        reuse::room(dtype, n).0
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        each_data!(self, v => v.len())
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        match self {
            Data::F16(_) => DType::F16,
            Data::BF16(_) => DType::BF16,
            Data::F32(_) => DType::F32,
            Data::F64(_) => DType::F64,
            Data::U8(_) => DType::U8,
            Data::U16(_) => DType::U16,
            Data::U32(_) => DType::U32,
            Data::U64(_) => DType::U64,
            Data::I8(_) => DType::I8,
            Data::I16(_) => DType::I16,
            Data::I32(_) => DType::I32,
            Data::I64(_) => DType::I64,
            Data::Bool(_) => DType::Bool,
        }
    }

    /// The elements as bytes in the machine's order.
    pub fn bytes(&self) -> &[u8] {
        each_data!(self, v => bytemuck::cast_slice(v))
    }

    /// The same, to write into. Every byte pattern is allowed, except that `Bool` must stay 0 or 1.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        each_data!(self, v => bytemuck::cast_slice_mut(v))
    }

    /// Element number `at`.
    pub fn get(&self, at: usize) -> Scalar {
        match self {
            Data::F16(v) => Scalar::Float(v[at].to_f64()),
            Data::BF16(v) => Scalar::Float(v[at].to_f64()),
            Data::F32(v) => Scalar::Float(f64::from(v[at])),
            Data::F64(v) => Scalar::Float(v[at]),
            Data::U8(v) => Scalar::Int(i64::from(v[at])),
            Data::U16(v) => Scalar::Int(i64::from(v[at])),
            Data::U32(v) => Scalar::Int(i64::from(v[at])),
            // Its bits.
            Data::U64(v) => Scalar::Int(v[at] as i64),
            Data::I8(v) => Scalar::Int(i64::from(v[at])),
            Data::I16(v) => Scalar::Int(i64::from(v[at])),
            Data::I32(v) => Scalar::Int(i64::from(v[at])),
            Data::I64(v) => Scalar::Int(v[at]),
            Data::Bool(v) => Scalar::Bool(v[at] != 0),
        }
    }
}

/// A dense row-major array. The buffer of a large one is used again when it is gone.
#[derive(Debug, PartialEq)]
pub struct Array {
    shape: Vec<usize>,
    data: Data,
}

impl Drop for Array {
    fn drop(&mut self) {
        reuse::keep(self.taken());
    }
}

impl Clone for Array {
    fn clone(&self) -> Array {
        let mut copy = Array::room(self.dtype(), &self.shape);
        let bytes = self.data.bytes();
        copy.data.bytes_mut().copy_from_slice(bytes);
        copy
    }
}

impl Array {
    /// An array of that shape; `None` if the number of elements does not fit.
    pub fn new(shape: Vec<usize>, data: Data) -> Option<Array> {
        (shape.iter().product::<usize>() == data.len()).then(|| Array::of(shape, data))
    }

    /// Zeros.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Array {
        let (mut data, zeros) = reuse::room(dtype, shape.iter().product());
        if !zeros {
            data.bytes_mut().fill(0);
        }
        Array::of(shape.to_vec(), data)
    }

    /// Any values, for a writer of all of them: in the buffer of an array that is gone, if there is one.
    pub fn room(dtype: DType, shape: &[usize]) -> Array {
        let data = Data::room(dtype, shape.iter().product());
        Array::of(shape.to_vec(), data)
    }

    fn of(shape: Vec<usize>, data: Data) -> Array {
        reuse::begins(&data);
        Array { shape, data }
    }

    fn taken(&mut self) -> Data {
        std::mem::replace(&mut self.data, Data::Bool(vec![]))
    }

    /// Extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }

    /// Elements in row-major order.
    pub fn data(&self) -> &Data {
        &self.data
    }

    /// Elements in row-major order, to write.
    pub fn data_mut(&mut self) -> &mut Data {
        &mut self.data
    }

    /// The elements themselves.
    pub fn into_data(mut self) -> Data {
        let data = self.taken();
        reuse::ends(&data);
        data
    }

    /// The same elements in the same order under another shape, which must hold as many.
    #[must_use]
    pub fn reshaped(mut self, shape: Vec<usize>) -> Array {
        assert_eq!(
            shape.iter().product::<usize>(),
            self.data.len(),
            "a reshaped array has as many elements"
        );
        self.shape = shape;
        self
    }

    /// Any values of the same type in another shape, for a writer of all of them: in the same buffer, if that is large enough.
    #[must_use]
    pub fn refitted(self, shape: &[usize]) -> Array {
        if self.shape == shape {
            return self;
        }
        let (dtype, n) = (self.dtype(), shape.iter().product());
        if each_data!(&self.data, v => v.capacity()) < n {
            return Array::room(dtype, shape);
        }
        let mut data = self.into_data();
        each_data!(&mut data, v => v.resize(n, Default::default()));
        Array::of(shape.to_vec(), data)
    }

    /// Row-major strides, in elements.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.shape.len()];
        for d in (1..self.shape.len()).rev() {
            strides[d - 1] = strides[d] * self.shape[d];
        }
        strides
    }

    /// Copies the box `source_start .. source_start + extent` of `source` to `start` in `self`. Both arrays
    /// have one element type and the boxes lie inside.
    pub fn copy_box(
        &mut self,
        start: &[usize],
        source: &Array,
        source_start: &[usize],
        extent: &[usize],
    ) {
        if extent.contains(&0) {
            return;
        }
        let (to, from) = (self.strides(), source.strides());
        let size = self.dtype().size();
        let rank = extent.len();
        // The trailing dimensions that are whole in both arrays make one run with the dimension before them.
        let mut inner = rank;
        let mut run = 1;
        while inner > 0 {
            inner -= 1;
            run *= extent[inner];
            if extent[inner] != self.shape[inner] || extent[inner] != source.shape[inner] {
                break;
            }
        }
        let outer = &extent[..inner];
        let mut at = vec![0; inner];
        let base = |strides: &[usize], begin: &[usize]| -> usize {
            begin.iter().zip(strides).map(|(b, s)| b * s).sum()
        };
        let (to_base, from_base) = (base(&to, start), base(&from, source_start));
        let (target, origin) = (self.data.bytes_mut(), source.data.bytes());
        loop {
            let t = (to_base + base(&to[..inner], &at)) * size;
            let f = (from_base + base(&from[..inner], &at)) * size;
            target[t..t + run * size].copy_from_slice(&origin[f..f + run * size]);
            let mut d = inner;
            loop {
                if d == 0 {
                    return;
                }
                d -= 1;
                at[d] += 1;
                if at[d] < outer[d] {
                    break;
                }
                at[d] = 0;
            }
        }
    }

    /// Copies `source` to position `at` of dimension `dim` of `self`, which has that dimension more and the same element type.
    pub fn copy_slice(&mut self, dim: usize, at: usize, source: &Array) {
        let size = source.dtype().size();
        let (before, after) = source.shape().split_at(dim.min(source.shape().len()));
        let run = after.iter().product::<usize>() * size;
        let positions = self.shape.get(dim).copied().unwrap_or(1);
        let (from, to) = (source.data.bytes(), self.data.bytes_mut());
        for outer in 0..before.iter().product::<usize>() {
            let start = (outer * positions + at) * run;
            to[start..start + run].copy_from_slice(&from[outer * run..(outer + 1) * run]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_stands_at_its_position() {
        let slice = Array::new(vec![2, 3], Data::I64((1..7).collect())).expect("six elements");
        for dim in 0..3 {
            let mut shape = vec![2, 3];
            shape.insert(dim, 4);
            let mut whole = Array::zeros(DType::I64, &shape);
            whole.copy_slice(dim, 2, &slice);
            let strides = whole.strides();
            for number in 0..whole.data().len() {
                let at: Vec<usize> = (0..3).map(|d| number / strides[d] % shape[d]).collect();
                let mut rest = at.clone();
                rest.remove(dim);
                let expected = match at[dim] {
                    2 => (1 + rest[0] * 3 + rest[1]) as i64,
                    _ => 0,
                };
                assert_eq!(whole.data().get(number), Scalar::Int(expected));
            }
        }
    }

    #[test]
    fn boxes_are_copied_with_any_runs() {
        let source = Array::new(vec![3, 4], Data::I64((0..12).collect())).expect("12 elements");
        let mut target = Array::zeros(DType::I64, &[2, 2]);
        target.copy_box(&[0, 0], &source, &[1, 2], &[2, 2]);
        assert_eq!(target.data(), &Data::I64(vec![6, 7, 10, 11]));
        let mut whole = Array::zeros(DType::I64, &[3, 4]);
        whole.copy_box(&[0, 0], &source, &[0, 0], &[3, 4]);
        assert_eq!(whole, source);
        let mut scalar = Array::zeros(DType::I64, &[]);
        scalar.copy_box(
            &[],
            &Array::new(vec![], Data::I64(vec![7])).expect("one"),
            &[],
            &[],
        );
        assert_eq!(scalar.data(), &Data::I64(vec![7]));
    }
}
