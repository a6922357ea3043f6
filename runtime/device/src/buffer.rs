//! Buffers: handles on arrays, wherever their elements lie.
//!
//! A buffer has an element type, a shape, a format and a place. Cloning one copies the handle. Only its device changes what it holds; the host
//! asks for a copy with [`Buffer::to_host`], which costs nothing where the elements lie in its memory. Must not know kernels, keys or sites.
//!
//! ```text
//! f32[2, 3] dense, host, 24 bytes
//! ```

use ein_array::Array;
use ein_plan::{DType, Format};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Element type, shape and format of an array: what both ends of a message, or whoever allocates, must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferType {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<usize>,
    /// How the elements lie.
    pub format: Format,
}

impl BufferType {
    /// The type of a dense array.
    pub fn dense(dtype: DType, shape: Vec<usize>) -> BufferType {
        BufferType {
            dtype,
            shape,
            format: Format::Dense,
        }
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Bytes of the elements.
    pub fn bytes(&self) -> u64 {
        self.format.bytes(self.dtype, self.elements() as u64)
    }
}

impl fmt::Display for BufferType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)
    }
}

/// The memory that a buffer lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemorySpace {
    /// The memory of the process.
    Host,
    /// The memory of a device, which the host cannot address.
    Device {
        /// The kind of device.
        name: &'static str,
        /// Which of them, from 0.
        number: u32,
    },
}

impl fmt::Display for MemorySpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MemorySpace::Host => f.write_str("host"),
            MemorySpace::Device { name, number } => write!(f, "{name} {number}"),
        }
    }
}

/// Elements in a device's own memory. A device has a type of its own for this and finds it again by [`Buffer::device_memory`].
pub trait DeviceMemory: Any + fmt::Debug + Send + Sync {
    /// The memory that the elements lie in.
    fn space(&self) -> MemorySpace;

    /// Element type, shape and format.
    fn buffer_type(&self) -> &BufferType;

    /// A dense copy in the host's memory. Waits for whatever still computes the elements.
    fn to_host(&self) -> Array;
}

/// A handle on an array. Clones share the elements.
#[derive(Clone, Debug)]
pub struct Buffer(Storage);

#[derive(Clone, Debug)]
enum Storage {
    Host(Arc<Array>),
    Device(Arc<dyn DeviceMemory>),
}

/// Tells buffers with different elements apart, as long as both are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferIdentity(usize);

impl Buffer {
    /// A buffer in a device's own memory.
    pub fn on_device(memory: Arc<dyn DeviceMemory>) -> Buffer {
        Buffer(Storage::Device(memory))
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        match &self.0 {
            Storage::Host(array) => array.dtype(),
            Storage::Device(memory) => memory.buffer_type().dtype,
        }
    }

    /// Extents.
    pub fn shape(&self) -> &[usize] {
        match &self.0 {
            Storage::Host(array) => array.shape(),
            Storage::Device(memory) => &memory.buffer_type().shape,
        }
    }

    /// How the elements lie.
    pub fn format(&self) -> Format {
        match &self.0 {
            Storage::Host(_) => Format::Dense,
            Storage::Device(memory) => memory.buffer_type().format,
        }
    }

    /// Where the elements lie.
    pub fn space(&self) -> MemorySpace {
        match &self.0 {
            Storage::Host(_) => MemorySpace::Host,
            Storage::Device(memory) => memory.space(),
        }
    }

    /// Element type, shape and format.
    pub fn buffer_type(&self) -> BufferType {
        BufferType {
            dtype: self.dtype(),
            shape: self.shape().to_vec(),
            format: self.format(),
        }
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape().iter().product()
    }

    /// Bytes of the elements.
    pub fn bytes(&self) -> u64 {
        self.format().bytes(self.dtype(), self.elements() as u64)
    }

    /// Which elements these are; `None` if there are none.
    pub fn identity(&self) -> Option<BufferIdentity> {
        if self.elements() == 0 {
            return None;
        }
        Some(BufferIdentity(match &self.0 {
            Storage::Host(array) => array.data().bytes().as_ptr() as usize,
            Storage::Device(memory) => Arc::as_ptr(memory).cast::<()>() as usize,
        }))
    }

    /// The array, if it lies in the host's memory.
    pub fn host(&self) -> Option<&Array> {
        match &self.0 {
            Storage::Host(array) => Some(array),
            Storage::Device(_) => None,
        }
    }

    /// The elements in the host's memory: the array itself if it lies there, else a copy.
    pub fn to_host(&self) -> Arc<Array> {
        match &self.0 {
            Storage::Host(array) => Arc::clone(array),
            Storage::Device(memory) => Arc::new(memory.to_host()),
        }
    }

    /// The elements in the host's memory, for good: no copy is made of what lies there and nobody else holds.
    pub fn into_host(self) -> Array {
        match self.0 {
            Storage::Host(array) => Arc::unwrap_or_clone(array),
            Storage::Device(memory) => memory.to_host(),
        }
    }

    /// The array, for good, if it lies in the host's memory and nobody else holds it.
    ///
    /// # Errors
    /// The buffer itself otherwise.
    pub fn into_unshared_host(self) -> Result<Array, Buffer> {
        match self.0 {
            Storage::Host(array) => Arc::try_unwrap(array).map_err(Buffer::from),
            Storage::Device(_) => Err(self),
        }
    }

    /// The array to be changed, if it lies in the host's memory; what somebody else holds too is copied first.
    pub fn host_mut(&mut self) -> Option<&mut Array> {
        match &mut self.0 {
            Storage::Host(array) => Some(Arc::make_mut(array)),
            Storage::Device(_) => None,
        }
    }

    /// The elements in the memory of the device whose type of memory this is.
    pub fn device_memory<M: DeviceMemory>(&self) -> Option<&M> {
        match &self.0 {
            Storage::Host(_) => None,
            Storage::Device(memory) => {
                let memory: &dyn Any = memory.as_ref();
                memory.downcast_ref()
            }
        }
    }

    /// Those elements, to be changed, if nobody else holds them.
    pub fn device_memory_mut<M: DeviceMemory>(&mut self) -> Option<&mut M> {
        match &mut self.0 {
            Storage::Host(_) => None,
            Storage::Device(memory) => {
                let memory: &mut dyn Any = Arc::get_mut(memory)?;
                memory.downcast_mut()
            }
        }
    }
}

impl From<Array> for Buffer {
    fn from(array: Array) -> Buffer {
        Buffer(Storage::Host(Arc::new(array)))
    }
}

impl From<Arc<Array>> for Buffer {
    fn from(array: Arc<Array>) -> Buffer {
        Buffer(Storage::Host(array))
    }
}

/// Buffers are equal if their elements are, wherever they lie.
impl PartialEq for Buffer {
    fn eq(&self, other: &Buffer) -> bool {
        self.to_host() == other.to_host()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ein_array::Data;

    #[test]
    fn an_array_of_the_host_is_handed_on_and_not_copied() {
        let array = Array::new(vec![3], Data::F32(vec![1.0, 2.0, 3.0])).unwrap();
        let address = array.data().bytes().as_ptr();
        let buffer = Buffer::from(array);
        assert_eq!(buffer.to_host().data().bytes().as_ptr(), address);
        let text = format!(
            "{}, {}, {} bytes",
            buffer.buffer_type(),
            buffer.space(),
            buffer.bytes()
        );
        assert_eq!(text, "f32[3], host, 12 bytes");
        let mut other = buffer.clone();
        assert_eq!(other.identity(), buffer.identity());
        // What is shared is copied before it is changed, and is nobody's for good.
        other.host_mut().unwrap().data_mut().bytes_mut().fill(0);
        assert_ne!(other.identity(), buffer.identity());
        assert_eq!(buffer.to_host().data(), &Data::F32(vec![1.0, 2.0, 3.0]));
        let shared = buffer.clone();
        assert!(shared.into_unshared_host().is_err());
        assert_eq!(
            buffer.into_unshared_host().unwrap().data().bytes().as_ptr(),
            address
        );
    }

    #[test]
    fn empty_buffers_have_no_identity() {
        let buffer = Buffer::from(Array::zeros(DType::F32, &[0, 4]));
        assert_eq!((buffer.identity(), buffer.bytes()), (None, 0));
    }
}
