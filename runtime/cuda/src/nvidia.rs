//! An NVIDIA GPU as a machine: its driver, its compiler and its matrix library do what the device asks for.
//!
//! Must not know kernels of plans.
//!
//! ```text
//! load [k0, k1] -> one text behind `cuda.cuh`, compiled for sm_90; launch k1 -> cuLaunchKernel
//! ```

use crate::cache::{Cache, Unit};
use crate::machine::{Address, Argument, Machine, Matrices, Module};
use crate::text::{Text, prelude};
use ein_device::{DeviceFault, MemorySpace};
use ein_nvidia::{CompileError, Failure, Image, Loaded, Nvidia, compile, compiler};
use std::fmt::Write;
use std::fs;
use std::panic::resume_unwind;
use std::sync::Arc;

/// A GPU of this machine.
#[derive(Debug)]
pub(crate) struct Driven {
    gpu: Arc<Nvidia>,
    cache: Option<Cache>,
}

impl Driven {
    /// Opens a GPU, by its number among those that the driver finds.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn open(number: usize) -> Result<Driven, String> {
        Ok(Driven {
            gpu: Arc::new(Nvidia::open(number)?),
            cache: Cache::of_user(),
        })
    }

    /// The library that it works without, if one is missing.
    pub fn lacks(&self) -> Option<String> {
        self.gpu.has_matrices().err()
    }

    /// Returns the driver's result; where the driver fails, the run ends with its words.
    fn done<T>(&self, result: Result<T, Failure>) -> T {
        result.unwrap_or_else(|failure| self.stops(&failure.to_string()))
    }

    /// The functions of a unit: an image that is kept, if the driver takes it, or a new one.
    fn loaded(&self, text: &str, names: &[String]) -> Result<Loaded, String> {
        let architecture = self.gpu.properties().architecture;
        let told = |error: CompileError| match error {
            CompileError::Compiler(why) => self.stops(&why),
            CompileError::Text(log) => kept(text, &log),
        };
        let compiler = compiler(architecture).map_err(told)?;
        let unit = Unit {
            compiler: &compiler,
            text,
        };
        let known = self.cache.as_ref().and_then(|cache| cache.get(unit));
        let known = known.and_then(|bytes| self.gpu.load(&Image::of(bytes), names).ok());
        if let Some(loaded) = known {
            return Ok(loaded);
        }
        let image = compile(text, architecture).map_err(told)?;
        let loaded = self.done(self.gpu.load(&image, names));
        if let Some(cache) = &self.cache {
            cache.put(unit, image.bytes());
        }
        Ok(loaded)
    }

    fn stops(&self, why: &str) -> ! {
        stops(&self.gpu, why)
    }
}

/// Ends the run, since a GPU cannot go on.
fn stops(gpu: &Nvidia, why: &str) -> ! {
    let name = &gpu.properties().name;
    resume_unwind(Box::new(DeviceFault::Stopped(format!("{name}: {why}"))))
}

impl Machine for Driven {
    fn space(&self) -> MemorySpace {
        MemorySpace::Device {
            name: "gpu",
            number: self.gpu.number() as u32,
        }
    }

    fn allocate(&self, bytes: usize) -> Address {
        // The driver gives no memory of no bytes.
        match self.done(self.gpu.allocate(bytes.max(1))) {
            Some(address) => Address(address),
            None => {
                let (free, all) = self.done(self.gpu.free_memory());
                resume_unwind(Box::new(DeviceFault::NoMemory { bytes, free, all }))
            }
        }
    }

    fn free(&self, address: Address, _bytes: usize) {
        // After a fault nothing is given back, and the fault has been told.
        let _ = self.gpu.free(address.0);
    }

    fn clear(&self, address: Address, bytes: usize) {
        self.done(self.gpu.clear(address.0, bytes));
    }

    fn write(&self, to: Address, from: &[u8]) {
        self.done(self.gpu.write(to.0, from));
    }

    fn read(&self, from: Address, to: &mut [u8]) {
        self.done(self.gpu.read(from.0, to));
    }

    fn copy(&self, to: Address, from: Address, bytes: usize) {
        self.done(self.gpu.copy(to.0, from.0, bytes));
    }

    fn synchronize(&self) {
        self.done(self.gpu.synchronize());
    }

    fn multiplies(&self) -> bool {
        self.gpu.has_matrices().is_ok()
    }

    fn multiply(&self, matrices: &Matrices) {
        if let Err(why) = self.gpu.multiply(matrices) {
            self.stops(&why);
        }
    }

    fn load(&self, texts: &[&Text]) -> Result<Arc<dyn Module>, String> {
        let names: Vec<String> = (0..texts.len())
            .map(|number| format!("k{number}"))
            .collect();
        let unit = unit(texts);
        let loaded = self.loaded(&unit, &names)?;
        Ok(Arc::new(Functions {
            gpu: Arc::clone(&self.gpu),
            loaded,
        }))
    }
}

/// Functions that are in a GPU's memory.
#[derive(Debug)]
struct Functions {
    gpu: Arc<Nvidia>,
    loaded: Loaded,
}

impl Module for Functions {
    fn launch(
        &self,
        function: usize,
        blocks: u32,
        threads: u32,
        arguments: &[Argument],
    ) -> Result<(), String> {
        let words = arguments.iter().map(|argument| match *argument {
            Argument::Whole(number) => number as u64,
            Argument::Memory(address, _) => address.0,
        });
        let words: Vec<u64> = words.collect();
        let launched = self
            .gpu
            .launch(&self.loaded, function, (blocks, threads), &words);
        launched.or_else(|failure| stops(&self.gpu, &failure.to_string()))
    }
}

/// The unit of some texts.
fn unit(texts: &[&Text]) -> String {
    let mut unit = [include_str!("cuda.cuh"), prelude()].join("\n");
    for (number, text) in texts.iter().enumerate() {
        let _ = write!(unit, "\n{}", text.function(&format!("k{number}")));
    }
    unit
}

/// Keeps a unit that does not compile, with the compiler's words, and says where.
fn kept(unit: &str, log: &str) -> String {
    let first = log
        .lines()
        .find(|line| line.contains("error"))
        .unwrap_or(log);
    let folder = tempfile::Builder::new().prefix("ein-kernels-").tempdir();
    let written = folder.and_then(|folder| {
        fs::write(folder.path().join("unit.cu"), unit)?;
        fs::write(folder.path().join("log"), log)?;
        Ok(folder.keep())
    });
    let place = match written {
        Ok(folder) => format!("they and its words are kept in {}", folder.display()),
        Err(error) => format!("they cannot be kept: {error}"),
    };
    format!("the CUDA compiler does not compile generated kernels; {place}: {first}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_text_that_does_not_compile_is_kept() {
        let error = kept(
            "void f() { nothing; }",
            "kernels.cu(1): error: \"nothing\" is undefined\n",
        );
        assert!(
            error.ends_with(": kernels.cu(1): error: \"nothing\" is undefined"),
            "{error}"
        );
        let folder = error.split("are kept in ").nth(1).unwrap();
        let folder = std::path::Path::new(folder.split(": ").next().unwrap());
        assert_eq!(
            fs::read_to_string(folder.join("unit.cu")).unwrap(),
            "void f() { nothing; }"
        );
        fs::remove_dir_all(folder).unwrap();
    }
}
