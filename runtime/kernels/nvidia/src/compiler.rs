//! NVIDIA's run-time compiler: CUDA C++ to an image for one architecture.
//!
//! It runs on machines without a GPU too. Must not know what texts compute.
//!
//! ```text
//! compile(extern "C" __global__ void k0(…) { … }, sm_90)   ->   4,312 bytes
//! ```

use cudarc::nvrtc::result::{self, NvrtcError};
use cudarc::nvrtc::sys as nvrtc;
use std::ffi::{CString, c_char};
use std::fmt;

/// The instruction set of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Architecture {
    /// The generation.
    pub major: u32,
    /// The variant.
    pub minor: u32,
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.major, self.minor)
    }
}

/// Compiled functions: machine code, or the driver's own language where the compiler is older than the GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image(Vec<u8>);

impl Image {
    /// The image that gave these bytes.
    pub fn of(bytes: Vec<u8>) -> Image {
        Image(bytes)
    }

    /// The bytes, the last of them a zero.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Why a text has no image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// There is no compiler, or it does not work.
    Compiler(String),
    /// It refuses the text, with these words.
    Text(String),
}

/// Says whether the compiler is there.
///
/// # Errors
/// It is not.
pub(crate) fn present() -> Result<(), String> {
    // SAFETY: it opens the library and closes it; nothing of ours runs then.
    match unsafe { nvrtc::is_culib_present() } {
        true => Ok(()),
        false => {
            Err("the CUDA compiler (libnvrtc) is not installed, or not in LD_LIBRARY_PATH".into())
        }
    }
}

/// A program that the compiler holds.
struct Program(nvrtc::nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the program was made, and is given back once.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

/// The options of every compilation but the architecture's.
const OPTIONS: [&str; 3] = ["--std=c++17", "--fmad=false", "--disable-warnings"];

/// Says what an image depends on besides its text: the compiler, its version and its options.
///
/// # Errors
/// There is no compiler, or it does not work.
pub fn compiler(architecture: Architecture) -> Result<String, CompileError> {
    present().map_err(CompileError::Compiler)?;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: it writes two numbers.
    let asked = unsafe { nvrtc::nvrtcVersion(&raw mut major, &raw mut minor) };
    asked.result().map_err(failed)?;
    let options = OPTIONS.join(" ");
    Ok(format!(
        "NVRTC {major}.{minor} for {architecture}, {options}"
    ))
}

fn failed(NvrtcError(code): NvrtcError) -> CompileError {
    CompileError::Compiler(format!("the CUDA compiler fails: {code:?}"))
}

/// Compiles a text for an architecture. Products and sums are not fused, so that results have the bits of other devices where functions do.
///
/// # Errors
/// Why it has no image.
pub fn compile(text: &str, architecture: Architecture) -> Result<Image, CompileError> {
    present().map_err(CompileError::Compiler)?;
    let own = 10 * architecture.major + architecture.minor;
    let known = known().map_err(failed)?;
    let newest = known.iter().copied().filter(|arch| *arch <= own).max();
    let newest = newest.ok_or_else(|| {
        CompileError::Compiler(format!(
            "the CUDA compiler is too new for a GPU of {architecture}"
        ))
    })?;
    let kind = if newest == own { "sm" } else { "compute" };
    let target = format!("--gpu-architecture={kind}_{newest}");
    let options = [&[target.as_str()], &OPTIONS[..]].concat();
    let source = CString::new(text).map_err(|_| CompileError::Text("it has a zero".into()))?;
    let program = Program(result::create_program(&source, Some(c"kernels.cu")).map_err(failed)?);
    // SAFETY: the program was made just now.
    match unsafe { result::compile_program(program.0, &options) } {
        Ok(()) if newest == own => machine_code(&program).map(Image).map_err(failed),
        Ok(()) => {
            // SAFETY: the program is compiled.
            let text = unsafe { result::get_ptx(program.0) }.map_err(failed)?;
            Ok(Image(text.into_iter().map(|c| c as u8).collect()))
        }
        Err(NvrtcError(nvrtc::nvrtcResult::NVRTC_ERROR_COMPILATION)) => {
            // SAFETY: the program was given to the compiler.
            let log = unsafe { result::get_program_log(program.0) }.map_err(failed)?;
            let log: Vec<u8> = log
                .into_iter()
                .map(|c| c as u8)
                .take_while(|c| *c != 0)
                .collect();
            Err(CompileError::Text(
                String::from_utf8_lossy(&log).into_owned(),
            ))
        }
        Err(error) => Err(failed(error)),
    }
}

/// The architectures that the compiler makes code for, as numbers such as 90.
fn known() -> Result<Vec<u32>, NvrtcError> {
    let mut count = 0;
    // SAFETY: it writes one number.
    unsafe { nvrtc::nvrtcGetNumSupportedArchs(&raw mut count) }.result()?;
    let mut all = vec![0; count.unsigned_abs() as usize];
    // SAFETY: it writes as many numbers as it has said.
    unsafe { nvrtc::nvrtcGetSupportedArchs(all.as_mut_ptr()) }.result()?;
    Ok(all.into_iter().map(i32::unsigned_abs).collect())
}

fn machine_code(program: &Program) -> Result<Vec<u8>, NvrtcError> {
    let mut size = 0;
    // SAFETY: the program is compiled, and one number is written.
    unsafe { nvrtc::nvrtcGetCUBINSize(program.0, &raw mut size) }.result()?;
    let mut code: Vec<u8> = vec![0; size + 1];
    // SAFETY: there is room for as many bytes as it has said.
    unsafe { nvrtc::nvrtcGetCUBIN(program.0, code.as_mut_ptr().cast::<c_char>()) }.result()?;
    Ok(code)
}
