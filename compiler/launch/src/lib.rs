//! The entry point linked into every built program.
//!
//! Everything it does is the driver's; here the C side ends.
//!
//! ```text
//! ein_launch(bundle, 5310, shims, 884736, groups, 2, 3, ["./model", "--sites", "4"]) -> 0
//! ```

#[allow(unsafe_code)]
mod entry {
    use std::{
        ffi::{CStr, OsStr, c_char},
        os::unix::ffi::OsStrExt,
        slice,
    };

    /// The code of a group: its name and the address of its function.
    #[repr(C)]
    pub struct Compiled {
        name: u64,
        function: *const u8,
    }

    /// Runs the program of a bundle and returns its exit status.
    ///
    /// # Safety
    /// `bundle` and `shims` are the addresses of that many constant bytes that live as long as the process; `groups` is that
    /// of as many names and functions of groups, generated for this family of processors; `argv` is
    /// that of `main`: `argc` addresses of strings that end with a zero byte.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn ein_launch(
        bundle: *const u8,
        bundle_length: u64,
        shims: *const u8,
        shims_length: u64,
        groups: *const Compiled,
        groups_count: u64,
        argc: i32,
        argv: *const *const c_char,
    ) -> i32 {
        // SAFETY: the caller, the `main` that codegen writes, passes two constant data objects with their lengths.
        let (bundle, shims) = unsafe {
            (
                slice::from_raw_parts(bundle, bundle_length as usize),
                slice::from_raw_parts(shims, shims_length as usize),
            )
        };
        // SAFETY: the same caller passes a table of that many entries, with the functions that it wrote beside it.
        unsafe {
            let compiled = slice::from_raw_parts(groups, groups_count as usize);
            let compiled = compiled.iter().map(|group| (group.name, group.function));
            ein_kernels::register(compiled);
        }
        let arguments = (0..usize::try_from(argc).unwrap_or(0)).map(|number| {
            // SAFETY: the C library passes `main` this many addresses of strings that end with a zero byte.
            let argument = unsafe { CStr::from_ptr(*argv.add(number)) };
            OsStr::from_bytes(argument.to_bytes()).to_os_string()
        });
        einc_driver::launcher::main(bundle, shims, arguments.collect())
    }
}

pub use entry::ein_launch;
