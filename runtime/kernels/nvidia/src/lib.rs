//! NVIDIA GPUs: the driver, the run-time compiler and the matrix library, which are opened when a program starts.
//!
//! Nothing of CUDA is needed to build this. A library that is missing is an error in words, never the end of the process. All work of a GPU
//! goes to one stream, in the order of the calls. Must not know what functions compute, nor who owns an address.
//!
//! ```text
//! Nvidia::open(0) -> NVIDIA H100, sm_90;   load(text, 2 functions);   launch(function 1, 3 blocks, 256 threads, [600, 0x7f00a400])
//! ```
#![allow(unsafe_code)]

mod compiler;
mod matrices;

pub use compiler::{Architecture, CompileError, Image, compile, compile_ahead, compiler, present};
pub use matrices::{Element, Matrices, Matrix};

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::{CudaContext, CudaStream, sys};
use matrices::MatrixLibrary;
use std::ffi::{CString, c_void};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// The properties of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// Its name, as the driver says it.
    pub name: String,
    /// Its architecture.
    pub architecture: Architecture,
    /// All of its memory, in bytes.
    pub memory: u64,
}

impl fmt::Display for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gibibytes = self.memory as f64 / f64::from(1 << 30);
        write!(
            f,
            "{}, {}, {gibibytes:.1} GiB",
            self.name, self.architecture
        )
    }
}

/// A GPU of this machine.
#[derive(Debug)]
pub struct Nvidia {
    number: usize,
    properties: Properties,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    matrices: OnceLock<Result<MatrixLibrary, String>>,
}

/// Functions in a GPU's memory, where they stay as long as the process.
#[derive(Debug)]
pub struct Loaded {
    functions: Vec<Function>,
}

/// A call of the driver that failed: what was asked of it, and its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The call.
    pub call: &'static str,
    /// The driver's words.
    pub words: String,
}

#[derive(Clone, Copy, Debug)]
struct Function(sys::CUfunction);

// SAFETY: handles of the driver may be used by any thread that its context is bound to, which every call sees to.
unsafe impl Send for Function {}
// SAFETY: see above.
unsafe impl Sync for Function {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.call, self.words)
    }
}

/// Names the call that a result of the driver is of.
fn told<T>(call: &'static str, result: Result<T, DriverError>) -> Result<T, Failure> {
    result.map_err(|error| {
        let name = error.error_name().map(|name| name.to_string_lossy());
        let words = error.error_string().map(|words| words.to_string_lossy());
        Failure {
            call,
            words: match (name, words) {
                (Ok(name), Ok(words)) => format!("{words} ({name})"),
                _ => format!("error {}", error.0 as u32),
            },
        }
    })
}

/// Returns the properties of all GPUs that this process may use, in the driver's order.
///
/// # Errors
/// There is no driver, or it says why it does not work.
pub fn list() -> Result<Vec<Properties>, String> {
    // SAFETY: it opens the library and closes it; the driver runs nothing of ours then.
    if !unsafe { sys::is_culib_present() } {
        return Err("the CUDA driver (libcuda.so.1) is not installed".into());
    }
    for name in ["cuMemAllocAsync", "cuMemPoolTrimTo"] {
        // SAFETY: it looks the function up, and does not call it.
        let known = unsafe { sys::culib().get::<unsafe extern "C" fn()>(name.as_bytes()) };
        if known.is_err() {
            return Err(format!(
                "the CUDA driver is too old: it has no {name} (CUDA 11.3)"
            ));
        }
    }
    let words = |failure: Failure| format!("the CUDA driver does not work: {failure}");
    match result::init() {
        Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => return Ok(vec![]),
        started => told("cuInit", started).map_err(words)?,
    }
    let count = told("cuDeviceGetCount", result::device::get_count()).map_err(words)?;
    (0..count)
        .map(|number| properties(number).map_err(words))
        .collect()
}

/// Returns the libraries that a GPU needs besides its driver and that are missing, in words.
pub fn missing() -> Vec<String> {
    let all = [compiler::present(), matrices::present()];
    all.into_iter().filter_map(Result::err).collect()
}

fn properties(number: i32) -> Result<Properties, Failure> {
    use sys::CUdevice_attribute_enum as Attribute;
    let device = told("cuDeviceGet", result::device::get(number))?;
    let attribute = |attribute| {
        // SAFETY: the device was given by the driver.
        let value = unsafe { result::device::get_attribute(device, attribute) };
        told("cuDeviceGetAttribute", value).map(|value| value.unsigned_abs())
    };
    // SAFETY: the device was given by the driver.
    let memory = unsafe { result::device::total_mem(device) };
    Ok(Properties {
        name: told("cuDeviceGetName", result::device::get_name(device))?,
        architecture: Architecture {
            major: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            minor: attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        },
        memory: told("cuDeviceTotalMem", memory)? as u64,
    })
}

impl Nvidia {
    /// Opens a GPU, by its number in [`list`].
    ///
    /// # Errors
    /// There is no such GPU, or it cannot be used: the reason.
    pub fn open(number: usize) -> Result<Nvidia, String> {
        let all = list()?;
        let count = all.len();
        let properties = all.into_iter().nth(number);
        let properties = properties.ok_or_else(|| match count {
            0 => "the CUDA driver finds no GPU (CUDA_VISIBLE_DEVICES may hide it)".to_owned(),
            _ => format!("the CUDA driver finds {count} GPUs, and none of number {number}"),
        })?;
        let name = properties.name.clone();
        let words = |failure: Failure| format!("the GPU {name} cannot be used: {failure}");
        let context = told("cuDevicePrimaryCtxRetain", CudaContext::new(number)).map_err(words)?;
        if !context.has_async_alloc() {
            return Err(format!(
                "the GPU {name} has no pools of memory (cuMemAllocAsync), which einc needs"
            ));
        }
        let stream = told("cuStreamCreate", context.new_stream()).map_err(words)?;
        let gpu = Nvidia {
            number,
            properties,
            context,
            stream,
            matrices: OnceLock::new(),
        };
        gpu.keep_memory().map_err(words)?;
        Ok(gpu)
    }

    /// Keeps memory that is given back in the pool, for the next who asks.
    fn keep_memory(&self) -> Result<(), Failure> {
        let pool = self.pool()?;
        let mut all = u64::MAX;
        let threshold = sys::CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: the pool is the device's own, and this attribute is a number of 64 bits.
        let set =
            unsafe { result::mem_pool::set_attribute(pool, threshold, (&raw mut all).cast()) };
        told("cuMemPoolSetAttribute", set)
    }

    fn pool(&self) -> Result<sys::CUmemoryPool, Failure> {
        // SAFETY: the device is that of an open context.
        let pool = unsafe { result::device::get_default_mem_pool(self.context.cu_device()) };
        told("cuDeviceGetDefaultMemPool", pool)
    }

    /// Its number.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Its properties.
    pub fn properties(&self) -> &Properties {
        &self.properties
    }

    fn bound(&self) -> Result<sys::CUstream, Failure> {
        told("cuCtxSetCurrent", self.context.bind_to_thread())?;
        Ok(self.stream.cu_stream())
    }

    /// Memory for so many bytes, at least one, with any values; `None` if there is not so much.
    ///
    /// # Errors
    /// The driver's, if it is another one.
    pub fn allocate(&self, bytes: usize) -> Result<Option<u64>, Failure> {
        let stream = self.bound()?;
        // SAFETY: the stream is open; nobody reads the memory before it is written in the stream's order.
        let ask = || unsafe { result::malloc_async(stream, bytes) };
        let refused = DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        match ask() {
            Err(error) if error == refused => {
                // Memory that is given back already may be free once the stream has come so far.
                self.synchronize()?;
                let pool = self.pool()?;
                // SAFETY: the pool is the device's own.
                told("cuMemPoolTrimTo", unsafe {
                    result::mem_pool::trim_to(pool, 0)
                })?;
                match ask() {
                    Err(error) if error == refused => Ok(None),
                    asked => told("cuMemAllocAsync", asked).map(Some),
                }
            }
            asked => told("cuMemAllocAsync", asked).map(Some),
        }
    }

    /// Bytes that are free, and all of them. What the pool keeps is not free to others, but is to this process.
    ///
    /// # Errors
    /// The driver's.
    pub fn free_memory(&self) -> Result<(u64, u64), Failure> {
        let told = told("cuMemGetInfo", self.context.mem_get_info());
        told.map(|(free, all)| (free as u64, all as u64))
    }

    /// Gives memory back.
    ///
    /// # Errors
    /// The driver's.
    pub fn free(&self, address: u64) -> Result<(), Failure> {
        let stream = self.bound()?;
        // SAFETY: whoever gives the address back has got it from `allocate`; launches before this one are done in the stream's order.
        told("cuMemFreeAsync", unsafe {
            result::free_async(address, stream)
        })
    }

    /// Fills so many bytes with zeros.
    ///
    /// # Errors
    /// The driver's.
    pub fn clear(&self, address: u64, bytes: usize) -> Result<(), Failure> {
        if bytes == 0 {
            return Ok(());
        }
        let stream = self.bound()?;
        // SAFETY: the driver refuses addresses that it has not given out.
        told("cuMemsetD8Async", unsafe {
            result::memset_d8_async(address, 0, bytes, stream)
        })
    }

    /// Copies bytes to the GPU; they are the caller's again when this returns.
    ///
    /// # Errors
    /// The driver's.
    pub fn write(&self, to: u64, from: &[u8]) -> Result<(), Failure> {
        if from.is_empty() {
            return Ok(());
        }
        let stream = self.bound()?;
        // SAFETY: the bytes stay where they are till the stream has come so far, which is awaited.
        told("cuMemcpyHtoDAsync", unsafe {
            result::memcpy_htod_async(to, from, stream)
        })?;
        self.synchronize()
    }

    /// Copies bytes from the GPU, when all that was asked for before is done.
    ///
    /// # Errors
    /// The driver's; also of what was asked for before.
    pub fn read(&self, from: u64, to: &mut [u8]) -> Result<(), Failure> {
        if to.is_empty() {
            return self.synchronize();
        }
        let stream = self.bound()?;
        // SAFETY: the bytes stay where they are till the stream has come so far, which is awaited.
        told("cuMemcpyDtoHAsync", unsafe {
            result::memcpy_dtoh_async(to, from, stream)
        })?;
        self.synchronize()
    }

    /// Copies bytes within the GPU.
    ///
    /// # Errors
    /// The driver's.
    pub fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), Failure> {
        if bytes == 0 {
            return Ok(());
        }
        let stream = self.bound()?;
        // SAFETY: the driver refuses addresses that it has not given out.
        told("cuMemcpyDtoDAsync", unsafe {
            result::memcpy_dtod_async(to, from, bytes, stream)
        })
    }

    /// Returns when all that was asked for is done.
    ///
    /// # Errors
    /// The driver's, of anything that was asked for before.
    pub fn synchronize(&self) -> Result<(), Failure> {
        told("cuStreamSynchronize", self.stream.synchronize())
    }

    /// Brings compiled functions into the GPU's memory, by their names.
    ///
    /// # Errors
    /// The driver's.
    pub fn load(&self, image: &Image, names: &[String]) -> Result<Loaded, Failure> {
        self.bound()?;
        // SAFETY: the image was made by the compiler, and ends with a zero.
        let module = unsafe { result::module::load_data(image.bytes().as_ptr().cast()) };
        let module = told("cuModuleLoadData", module)?;
        let functions = names.iter().map(|name| {
            let name = CString::new(name.as_str()).unwrap_or_default();
            // SAFETY: the module is loaded.
            let function = unsafe { result::module::get_function(module, name) };
            told("cuModuleGetFunction", function).map(Function)
        });
        Ok(Loaded {
            functions: functions.collect::<Result<_, _>>()?,
        })
    }

    /// Launches a function for so many blocks of threads. `words` are its parameters in order, all of 64 bits.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Panics
    /// If there is no function of that number.
    pub fn launch(
        &self,
        loaded: &Loaded,
        function: usize,
        (blocks, threads): (u32, u32),
        words: &[u64],
    ) -> Result<(), Failure> {
        let stream = self.bound()?;
        let function = loaded.functions[function].0;
        let pointers = words
            .iter()
            .map(|word| (&raw const *word).cast_mut().cast());
        let mut pointers: Vec<*mut c_void> = pointers.collect();
        // SAFETY: the words are the function's parameters, and are copied by this call. What it does with memory is its writer's to answer for.
        let launched = unsafe {
            result::launch_kernel(
                function,
                (blocks, 1, 1),
                (threads, 1, 1),
                0,
                stream,
                &mut pointers,
            )
        };
        told("cuLaunchKernel", launched)
    }

    /// The matrix library, opened when it is first asked for; why there is none.
    ///
    /// # Errors
    /// The library is missing, or does not work.
    pub fn has_matrices(&self) -> Result<(), String> {
        self.matrix_library().map(|_| ())
    }

    fn matrix_library(&self) -> Result<&MatrixLibrary, String> {
        let opened = self.matrices.get_or_init(|| {
            let stream = self.bound().map_err(|failure| failure.to_string())?;
            MatrixLibrary::open(stream)
        });
        opened.as_ref().map_err(Clone::clone)
    }

    /// Multiplies matrices: of each batch, `result = scale · left · right`.
    ///
    /// # Errors
    /// Those of [`Nvidia::has_matrices`], and the library's own.
    pub fn multiply(&self, matrices: &Matrices) -> Result<(), String> {
        let library = self.matrix_library()?;
        self.bound().map_err(|failure| failure.to_string())?;
        library.multiply(matrices)
    }
}
