//! NVIDIA's run-time compiler: CUDA C++ to an image for one architecture.
//!
//! It runs on machines without a GPU too. Must not know what texts compute.
//!
//! ```text
//! compile(extern "C" __global__ void k0(…) { … }, sm_90)   ->   4,312 bytes
//! compile_ahead(the same, sm_90)   ->   4,312 bytes of machine code, 9,870 of the driver's own language
//! ```

use cudarc::nvrtc::result::{self, NvrtcError};
use cudarc::nvrtc::sys as nvrtc;
use serde::{Deserialize, Serialize};
use std::ffi::{CString, c_char};
use std::fmt;
use std::str::FromStr;

/// The instruction set of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

impl FromStr for Architecture {
    type Err = String;

    fn from_str(text: &str) -> Result<Architecture, String> {
        let number = text.strip_prefix("sm_").filter(|number| number.len() >= 2);
        let number = number.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let number = number.and_then(|number| number.parse::<u32>().ok());
        let number = number.ok_or("an architecture is written as `sm_90`: `sm_` and its number")?;
        Ok(Architecture {
            major: number / 10,
            minor: number % 10,
        })
    }
}

impl Architecture {
    /// The number in its name, such as 90.
    fn number(self) -> u32 {
        10 * self.major + self.minor
    }
}

/// Compiled functions: machine code, or text in PTX, the driver's own language, which newer GPUs take, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
pub fn present() -> Result<(), String> {
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

/// Compiles a text for the architecture of a GPU that is there: machine code, or PTX where the compiler is older than the GPU.
///
/// # Errors
/// Why it has no image.
pub fn compile(text: &str, architecture: Architecture) -> Result<Image, CompileError> {
    present().map_err(CompileError::Compiler)?;
    let own = architecture.number();
    let known = known().map_err(failed)?;
    let newest = known.iter().copied().filter(|arch| *arch <= own).max();
    let newest = newest.ok_or_else(|| {
        CompileError::Compiler(format!(
            "the CUDA compiler is too new for a GPU of {architecture}"
        ))
    })?;
    match newest == own {
        true => machine_code(&program(text, &format!("sm_{own}"))?),
        false => portable(&program(text, &format!("compute_{newest}"))?),
    }
    .map_err(failed)
}

/// Compiles a text for an architecture that need not be there: its machine code, and PTX for newer ones.
///
/// # Errors
/// Why it has no images.
pub fn compile_ahead(
    text: &str,
    architecture: Architecture,
) -> Result<(Image, Image), CompileError> {
    present().map_err(CompileError::Compiler)?;
    let known = known().map_err(failed)?;
    if !known.contains(&architecture.number()) {
        let known: Vec<String> = known.iter().map(|arch| format!("sm_{arch}")).collect();
        return Err(CompileError::Compiler(format!(
            "the CUDA compiler makes no code for {architecture}; it does for {}",
            known.join(", ")
        )));
    }
    let program = program(text, &architecture.to_string())?;
    let code = machine_code(&program).map_err(failed)?;
    Ok((code, portable(&program).map_err(failed)?))
}

/// Compiles a text for a target. Products and sums are not fused, so that results have the bits of other devices where functions do.
fn program(text: &str, target: &str) -> Result<Program, CompileError> {
    let target = format!("--gpu-architecture={target}");
    let options = [&[target.as_str()], &OPTIONS[..]].concat();
    let source = CString::new(text).map_err(|_| CompileError::Text("it has a zero".into()))?;
    let program = Program(result::create_program(&source, Some(c"kernels.cu")).map_err(failed)?);
    // SAFETY: the program was made just now.
    match unsafe { result::compile_program(program.0, &options) } {
        Ok(()) => Ok(program),
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

fn machine_code(program: &Program) -> Result<Image, NvrtcError> {
    let mut size = 0;
    // SAFETY: the program is compiled, and one number is written.
    unsafe { nvrtc::nvrtcGetCUBINSize(program.0, &raw mut size) }.result()?;
    let mut code: Vec<u8> = vec![0; size + 1];
    // SAFETY: there is room for as many bytes as it has said.
    unsafe { nvrtc::nvrtcGetCUBIN(program.0, code.as_mut_ptr().cast::<c_char>()) }.result()?;
    Ok(Image(code))
}

fn portable(program: &Program) -> Result<Image, NvrtcError> {
    // SAFETY: the program is compiled.
    let text = unsafe { result::get_ptx(program.0) }?;
    Ok(Image(text.into_iter().map(|c| c as u8).collect()))
}
