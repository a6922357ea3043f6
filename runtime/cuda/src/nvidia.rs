//! An NVIDIA GPU as a machine: its driver, its compiler and its matrix library do what the device asks for.
//!
//! Must not know kernels of plans.
//!
//! ```text
//! load [k0, k1] -> k0 from an image that was made ahead, k1 behind `cuda.cuh`, compiled for sm_90; launch k1 -> cuLaunchKernel
//! ```

use crate::cache::{Cache, Unit};
use crate::images::Images;
use crate::machine::{Address, Argument, Machine, Matrices, Module, Usage};
use crate::text::Text;
use crate::unit::{kept, names, unit};
use ein_device::{DeviceFault, MemorySpace};
use ein_nvidia::{CompileError, Failure, Image, Loaded, Nvidia, compile, compiler, present};
use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::{Arc, OnceLock};

/// A GPU of this machine.
#[derive(Debug)]
pub(crate) struct Driven {
    gpu: Arc<Nvidia>,
    usage: Usage,
    cache: Option<Cache>,
    images: Arc<Images>,
    /// By its text, the unit of a function that has an image, and its number there.
    places: HashMap<String, (usize, usize)>,
    /// By unit of the images, what the GPU has taken of it; none if it takes nothing.
    units: Vec<OnceLock<Option<Arc<Loaded>>>>,
}

impl Driven {
    /// Opens a GPU, by its number among those that the driver finds. The compiler may be missing where there are images.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn open(number: usize, images: &Arc<Images>) -> Result<Driven, String> {
        let gpu = Arc::new(Nvidia::open(number)?);
        if images.is_empty() {
            present()?;
        }
        let places = images.places().into_iter();
        Ok(Driven {
            gpu,
            usage: Usage::default(),
            cache: Cache::of_user(),
            places: places
                .map(|(text, place)| (text.to_owned(), place))
                .collect(),
            units: (0..images.units()).map(|_| OnceLock::new()).collect(),
            images: Arc::clone(images),
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

    /// The function of a text that was compiled ahead, if the driver takes one of its images: its unit, and its number there.
    fn ahead(&self, text: &str) -> Option<(Arc<Loaded>, usize)> {
        let (unit, number) = *self.places.get(text)?;
        let loaded = self.units[unit].get_or_init(|| {
            let architecture = self.gpu.properties().architecture;
            let (functions, images) = self.images.fitting(unit, architecture);
            let taken = images
                .into_iter()
                .find_map(|image| self.gpu.load(image, &names(functions)).ok());
            taken.map(Arc::new)
        });
        Some((loaded.clone()?, number))
    }

    /// The functions of a unit: an image that is kept, if the driver takes it, or a new one.
    fn loaded(&self, text: &str, names: &[String]) -> Result<Loaded, String> {
        let architecture = self.gpu.properties().architecture;
        let told = |error: CompileError| match error {
            CompileError::Compiler(why) if self.images.is_empty() => self.stops(&why),
            CompileError::Compiler(why) => {
                let images = format!("the program brings no image of a kernel for {architecture}");
                let help = "build it for this architecture and these sites and sizes";
                self.stops(&format!("{why}, and {images}: {help}"))
            }
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

    fn usage(&self) -> &Usage {
        &self.usage
    }

    fn free_bytes(&self) -> Option<u64> {
        self.gpu.free_memory().ok().map(|(free, _)| free)
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
        let ahead = texts.iter().map(|text| self.ahead(&text.function("k")));
        let ahead: Vec<Option<(Arc<Loaded>, usize)>> = ahead.collect();
        let others = texts.iter().zip(&ahead);
        let others = others.filter_map(|(text, ahead)| ahead.is_none().then_some(*text));
        let others: Vec<&Text> = others.collect();
        let mut compiled = vec![];
        if !others.is_empty() {
            let loaded = Arc::new(self.loaded(&unit(&others), &names(others.len()))?);
            compiled.extend((0..others.len()).map(|number| (Arc::clone(&loaded), number)));
        }
        let mut compiled = compiled.into_iter();
        let functions = ahead
            .into_iter()
            .filter_map(|ahead| ahead.or_else(|| compiled.next()));
        Ok(Arc::new(Functions {
            gpu: Arc::clone(&self.gpu),
            functions: functions.collect(),
        }))
    }
}

/// Functions that are in a GPU's memory.
#[derive(Debug)]
struct Functions {
    gpu: Arc<Nvidia>,
    /// By number, the unit that a function is in, and its number there.
    functions: Vec<(Arc<Loaded>, usize)>,
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
        let (loaded, number) = &self.functions[function];
        let launched = self.gpu.launch(loaded, *number, (blocks, threads), &words);
        launched.or_else(|failure| stops(&self.gpu, &failure.to_string()))
    }
}
