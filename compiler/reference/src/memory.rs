//! The memory of the reference device: numbers, one after the other.
//!
//! Must not know kernels.
//!
//! ```text
//! f16[2, 2]: 1.0 2.5 -inf 0.0
//! ```

use ein_array::{Array, Data};
use ein_device::{Buffer, BufferType, DeviceMemory, MemorySpace};
use ein_plan::{DType, Scalar};
use half::{bf16, f16};
use std::sync::Arc;

/// Where its buffers lie.
pub(crate) const SPACE: MemorySpace = MemorySpace::Device {
    name: "reference",
    number: 0,
};

/// Elements in row-major order.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    pub kind: BufferType,
    pub values: Vec<Scalar>,
}

impl Numbers {
    /// Those of an array.
    pub fn of(array: &Array) -> Numbers {
        let all = 0..array.data().len();
        Numbers {
            kind: BufferType::dense(array.dtype(), array.shape().to_vec()),
            values: all.map(|at| array.data().get(at)).collect(),
        }
    }

    /// The number of the element at a place.
    pub fn offset(&self, place: impl Iterator<Item = usize>) -> usize {
        let extents = self.kind.shape.iter();
        extents
            .zip(place)
            .fold(0, |number, (extent, at)| number * extent + at)
    }
}

impl DeviceMemory for Numbers {
    fn space(&self) -> MemorySpace {
        SPACE
    }

    fn buffer_type(&self) -> &BufferType {
        &self.kind
    }

    fn to_host(&self) -> Array {
        let data = data(self.kind.dtype, &self.values);
        let array = Array::new(self.kind.shape.clone(), data);
        array.expect("as many numbers as the shape says")
    }
}

impl From<Numbers> for Buffer {
    fn from(numbers: Numbers) -> Buffer {
        Buffer::on_device(Arc::new(numbers))
    }
}

/// The numbers of a buffer of this device.
pub(crate) fn numbers(buffer: &Buffer) -> &Numbers {
    let own = buffer.device_memory();
    own.expect("a buffer is given to the device whose memory it lies in")
}

/// The numbers of a buffer, to be changed; what somebody else holds too is copied first.
pub(crate) fn change(buffer: &mut Buffer) -> &mut Numbers {
    if buffer.device_memory_mut::<Numbers>().is_none() {
        *buffer = numbers(buffer).clone().into();
    }
    let own = buffer.device_memory_mut();
    own.expect("nobody else holds what has just been copied")
}

/// All places of an array of that shape, in row-major order.
pub(crate) fn places(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + use<> {
    let shape: Vec<u64> = shape.iter().map(|extent| *extent as u64).collect();
    let places = einc_core::tra::chunk::positions(&shape);
    places.map(|place| place.into_iter().map(|at| at as usize).collect())
}

/// Numbers as an array stores them; they are of its type already.
fn data(dtype: DType, values: &[Scalar]) -> Data {
    let float = |value: &Scalar| value.as_f64();
    let whole = |value: &Scalar| match value {
        Scalar::Int(number) => *number,
        Scalar::Bool(truth) => i64::from(*truth),
        Scalar::Float(number) => *number as i64,
    };
    let values = values.iter();
    match dtype {
        DType::F16 => Data::F16(values.map(|v| f16::from_f64(float(v))).collect()),
        DType::BF16 => Data::BF16(values.map(|v| bf16::from_f64(float(v))).collect()),
        DType::F32 => Data::F32(values.map(|v| float(v) as f32).collect()),
        DType::F64 => Data::F64(values.map(float).collect()),
        DType::U8 => Data::U8(values.map(|v| whole(v) as u8).collect()),
        DType::U16 => Data::U16(values.map(|v| whole(v) as u16).collect()),
        DType::U32 => Data::U32(values.map(|v| whole(v) as u32).collect()),
        DType::U64 => Data::U64(values.map(|v| whole(v) as u64).collect()),
        DType::I8 => Data::I8(values.map(|v| whole(v) as i8).collect()),
        DType::I16 => Data::I16(values.map(|v| whole(v) as i16).collect()),
        DType::I32 => Data::I32(values.map(|v| whole(v) as i32).collect()),
        DType::I64 => Data::I64(values.map(whole).collect()),
        DType::Bool => Data::Bool(values.map(|v| u8::from(whole(v) != 0)).collect()),
        DType::C64 | DType::C128 => unreachable!("arrays hold the parts of complex numbers"),
    }
}
