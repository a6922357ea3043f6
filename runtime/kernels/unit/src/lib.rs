//! Compiled units of generated C++: they are opened, and their functions are called on memory that is lent to them.
//!
//! A unit is compiled from text that this workspace writes. It exports `functions`, which gives their number, and `launch_k0`, `launch_k1`, …, which
//! touch no memory but what they are given, and check that. Must not know what functions compute.
//!
//! ```text
//! Unit::open(unit.so) -> launch_k0, launch_k1;   launch(1, 3 blocks, 256 threads, [600, memory 0 of 2400 bytes], [memory])
//! ```
#![allow(unsafe_code)]

use libloading::{Library, Symbol};
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
pub struct Unit {
    functions: Vec<Launch>,
    _open: Library,
}

/// An argument of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A number.
    Number(u64),
    /// The first bytes of a memory, by its number among those that are lent.
    Memory {
        /// Which memory.
        number: usize,
        /// How many bytes of it.
        bytes: u64,
    },
}

impl Unit {
    /// Opens a compiled unit.
    ///
    /// # Errors
    /// The system's words: there is no such file, or it is no unit.
    pub fn open(path: &Path) -> Result<Unit, String> {
        let told = |error: libloading::Error| format!("{}: {error}", path.display());
        // SAFETY: the file was compiled from our own text, which runs nothing when it is loaded.
        let open = unsafe { Library::new(path) }.map_err(told)?;
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
        Ok(Unit {
            functions,
            _open: open,
        })
    }

    /// Calls a function, by its number, for so many blocks of threads; `words` are its parameters in their order.
    ///
    /// # Errors
    /// The fault that the function found, such as an element outside of its memory.
    ///
    /// # Panics
    /// If a word names memory that is not lent, or more of it than there is.
    pub fn launch(
        &self,
        function: usize,
        (blocks, threads): (u32, u32),
        words: &[Word],
        memories: &mut [&mut [u64]],
    ) -> Result<(), String> {
        let mut arguments = vec![];
        for word in words {
            match word {
                Word::Number(number) => arguments.push(*number),
                Word::Memory { number, bytes } => {
                    let memory = &mut *memories[*number];
                    assert!(*bytes <= 8 * memory.len() as u64, "so much is lent");
                    arguments.extend([memory.as_mut_ptr().expose_provenance() as u64, *bytes]);
                }
            }
        }
        let mut wrong = Wrong {
            what: std::ptr::null(),
            at: 0,
            length: 0,
        };
        let launch = self.functions[function];
        // SAFETY: the words are those of the function's parameters, and it touches nothing but the memory among them, which is lent to it alone.
        if unsafe { launch(blocks, threads, arguments.as_mut_ptr(), &raw mut wrong) } {
            return Ok(());
        }
        // SAFETY: what is wrong is a literal of the unit, which is open.
        let what = unsafe { CStr::from_ptr(wrong.what) }.to_string_lossy();
        Err(format!("{what}: {} of {}", wrong.at, wrong.length))
    }
}
