//! Compiled units, and the memory that they work on.
//!
//! The functions that are called here are those that this crate has written and compiled; they touch no memory but their arguments', which they check. Must not know
//! texts.
//!
//! ```text
//! open unit.so -> launch_k0, launch_k1
//! ```
#![allow(unsafe_code)]

use crate::machine::{Address, Argument, Module};
use libloading::Symbol;
use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CStr, c_char};
use std::path::Path;

/// The report of a launch that went wrong.
#[repr(C)]
struct Wrong {
    what: *const c_char,
    at: u64,
    length: u64,
}

type Launch = unsafe extern "C" fn(u32, u32, *mut u64, *mut Wrong) -> bool;

/// A compiled unit. It stays open as long as this is there.
#[derive(Debug)]
pub(super) struct Library {
    functions: Vec<Launch>,
    _open: libloading::Library,
}

impl Library {
    /// Opens a compiled unit.
    pub fn open(path: &Path) -> Result<Library, String> {
        let told = |error: libloading::Error| format!("{}: {error}", path.display());
        // SAFETY: the file was compiled from our own text, which runs nothing when it is loaded.
        let open = unsafe { libloading::Library::new(path) }.map_err(told)?;
        let count = {
            // SAFETY: the unit defines it with this type.
            let count: Symbol<'_, unsafe extern "C" fn() -> u32> =
                unsafe { open.get(b"functions") }.map_err(told)?;
            // SAFETY: it only gives a number.
            unsafe { count() }
        };
        let mut functions = vec![];
        for number in 0..count {
            let name = format!("launch_k{number}");
            // SAFETY: the unit defines it with this type; the pointer is kept beside the library that it points into.
            let launch: Symbol<'_, Launch> = unsafe { open.get(name.as_bytes()) }.map_err(told)?;
            functions.push(*launch);
        }
        Ok(Library {
            functions,
            _open: open,
        })
    }
}

impl Module for Library {
    fn launch(
        &self,
        function: usize,
        blocks: u32,
        threads: u32,
        arguments: &[Argument],
    ) -> Result<(), String> {
        let mut words = vec![];
        for argument in arguments {
            match argument {
                Argument::Whole(number) => words.push(*number as u64),
                Argument::Memory(address, bytes) => words.extend([address.0, *bytes]),
            }
        }
        let mut wrong = Wrong {
            what: std::ptr::null(),
            at: 0,
            length: 0,
        };
        let launch = self.functions[function];
        // SAFETY: the words are those of the function's parameters; memory among them is allocated, and accesses outside it are not made.
        if unsafe { launch(blocks, threads, words.as_mut_ptr(), &raw mut wrong) } {
            return Ok(());
        }
        // SAFETY: what is wrong is a literal of the unit, which is open.
        let what = unsafe { CStr::from_ptr(wrong.what) }.to_string_lossy();
        Err(format!("{what}: {} of {}", wrong.at, wrong.length))
    }
}

/// The layout of so many bytes, at least one, for any element.
fn layout(bytes: usize) -> Layout {
    let layout = Layout::from_size_align(bytes.max(1), 64);
    layout.expect("an array has less than the address space")
}

/// Memory with bytes that are no ordinary numbers.
pub(super) fn allocate(bytes: usize) -> Address {
    // SAFETY: the layout has a size.
    let memory = unsafe { alloc(layout(bytes)) };
    if memory.is_null() {
        std::panic::resume_unwind(Box::new(ein_array::NoMemory { bytes }));
    }
    // SAFETY: so many bytes were allocated.
    unsafe { memory.write_bytes(0xff, bytes) };
    Address(memory.expose_provenance() as u64)
}

fn pointer(address: Address) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address.0 as usize)
}

pub(super) fn free(address: Address, bytes: usize) {
    // SAFETY: it was allocated with this layout, and its owner gives it back once.
    unsafe { dealloc(pointer(address), layout(bytes)) }
}

pub(super) fn clear(address: Address, bytes: usize) {
    // SAFETY: the owner of so many bytes asks for it, and nobody else holds them.
    unsafe { pointer(address).write_bytes(0, bytes) }
}

pub(super) fn write(to: Address, from: &[u8]) {
    // SAFETY: the owner of the memory gives as many bytes as it has.
    unsafe { pointer(to).copy_from_nonoverlapping(from.as_ptr(), from.len()) }
}

pub(super) fn read(from: Address, to: &mut [u8]) {
    // SAFETY: the owner of the memory asks for as many bytes as it has; launches have ended.
    unsafe { pointer(from).copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) }
}

pub(super) fn copy(to: Address, from: Address, bytes: usize) {
    // SAFETY: both have so many bytes, and are two allocations.
    unsafe { pointer(from).copy_to_nonoverlapping(pointer(to), bytes) }
}
