//! Arrays in a GPU's memory.
//!
//! Must not know kernels.
//!
//! ```text
//! f16[2, 2]: 8 bytes at 0x7f00a400
//! ```

use crate::machine::{Address, Argument, Machine};
use ein_array::Array;
use ein_device::{Buffer, BufferType, DeviceMemory, MemorySpace};
use std::sync::Arc;

/// Dense elements in row-major order.
#[derive(Debug)]
pub(crate) struct Elements {
    machine: Arc<dyn Machine>,
    pub kind: BufferType,
    pub address: Address,
}

impl Elements {
    /// Room for an array, with any values.
    pub fn room(machine: &Arc<dyn Machine>, kind: BufferType) -> Elements {
        let address = machine.allocate(kind.bytes() as usize);
        machine.usage().take(kind.bytes());
        Elements {
            machine: Arc::clone(machine),
            kind,
            address,
        }
    }

    /// Those of an array of the host.
    pub fn of(machine: &Arc<dyn Machine>, array: &Array) -> Elements {
        let kind = BufferType::dense(array.dtype(), array.shape().to_vec());
        let elements = Elements::room(machine, kind);
        machine.write(elements.address, array.data().bytes());
        elements
    }

    /// A copy.
    pub fn copied(&self) -> Elements {
        let copy = Elements::room(&self.machine, self.kind.clone());
        let bytes = self.kind.bytes() as usize;
        self.machine.copy(copy.address, self.address, bytes);
        copy
    }

    /// As a function's argument.
    pub fn argument(&self) -> Argument {
        Argument::Memory(self.address, self.kind.bytes())
    }
}

impl Drop for Elements {
    fn drop(&mut self) {
        self.machine.free(self.address, self.kind.bytes() as usize);
        self.machine.usage().give(self.kind.bytes());
    }
}

impl DeviceMemory for Elements {
    fn space(&self) -> MemorySpace {
        self.machine.space()
    }

    fn buffer_type(&self) -> &BufferType {
        &self.kind
    }

    fn to_host(&self) -> Array {
        let mut array = Array::room(self.kind.dtype, &self.kind.shape);
        self.machine
            .read(self.address, array.data_mut().bytes_mut());
        array
    }
}

impl From<Elements> for Buffer {
    fn from(elements: Elements) -> Buffer {
        Buffer::on_device(Arc::new(elements))
    }
}

/// The elements of a buffer of a GPU.
pub(crate) fn elements(buffer: &Buffer) -> &Elements {
    let own = buffer.device_memory();
    own.expect("a buffer is given to the device whose memory it lies in")
}

/// The elements of a buffer, nobody else's.
pub(crate) fn change(buffer: &mut Buffer) -> &mut Elements {
    if buffer.device_memory_mut::<Elements>().is_none() {
        *buffer = elements(buffer).copied().into();
    }
    let own = buffer.device_memory_mut();
    own.expect("what was copied is nobody else's")
}
