//! A GPU that is emulated on the host: texts are compiled by the system's C++ compiler against a header that stands for CUDA's own.
//!
//! Threads of a block run in turns between their barriers, and every access to memory is checked, so a function that would read or write
//! outside its arguments on a GPU is told with the element. `CXX` names another compiler than `c++`. Must not know kernels of plans.
//!
//! ```text
//! c++ -O1 -shared unit.cpp   ->   launch_k0(blocks, threads, arguments)   ->   an element outside the memory is touched: 12 of 12
//! ```

mod matrices;
mod memories;

use crate::machine::{Address, Argument, Machine, Matrices, Module, Usage};
use crate::text::{Meeting, Text, prelude};
use ein_device::MemorySpace;
use ein_unit::{Unit, Word};
use memories::Memories;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::{env, fs};

/// The emulated GPU.
#[derive(Debug)]
pub struct Emulated {
    compiler: String,
    memories: Arc<Memories>,
    usage: Usage,
}

impl Emulated {
    /// The GPU that the system's C++ compiler emulates.
    ///
    /// # Errors
    /// There is no such compiler.
    pub fn new() -> Result<Emulated, String> {
        let named = env::var("CXX").ok().filter(|name| !name.is_empty());
        let compiler = named.unwrap_or_else(|| "c++".into());
        let found = Command::new(&compiler).arg("--version").output();
        match found {
            Ok(output) if output.status.success() => Ok(Emulated {
                compiler,
                memories: Arc::default(),
                usage: Usage::default(),
            }),
            Ok(output) => Err(format!(
                "`{compiler} --version` ends with {}",
                output.status
            )),
            Err(error) => Err(format!(
                "the C++ compiler `{compiler}` cannot be started: {error}"
            )),
        }
    }

    /// Compiles a unit in a folder: the unit, which is open.
    fn compile(&self, folder: &Path, unit: &str) -> Result<Unit, String> {
        let (source, target) = (folder.join("unit.cpp"), folder.join("unit.so"));
        let told = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::write(&source, unit).map_err(told)?;
        let output = Command::new(&self.compiler)
            .args(["-std=c++17", "-O1", "-fPIC", "-shared", "-w"])
            .args([
                "-fwrapv",
                "-ffp-contract=off",
                "-fno-math-errno",
                "-fvisibility=hidden",
            ])
            .arg(&source)
            .arg("-o")
            .arg(&target)
            .arg("-lm")
            .output()
            .map_err(told)?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            fs::write(folder.join("log"), words.as_bytes()).map_err(told)?;
            let first = words.lines().find(|line| line.contains("error"));
            return Err(format!(
                "`{}` does not compile generated kernels; they and its words are kept in {}: {}",
                self.compiler,
                folder.display(),
                first.unwrap_or_default()
            ));
        }
        Unit::open(&target)
    }
}

impl Machine for Emulated {
    fn space(&self) -> MemorySpace {
        MemorySpace::Device {
            name: "emulated",
            number: 0,
        }
    }

    fn allocate(&self, bytes: usize) -> Address {
        self.memories.allocate(bytes)
    }

    fn free(&self, address: Address, _bytes: usize) {
        self.memories.free(address);
    }

    fn usage(&self) -> &Usage {
        &self.usage
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn clear(&self, address: Address, bytes: usize) {
        self.memories.with(address, bytes, |own| own.fill(0));
    }

    fn write(&self, to: Address, from: &[u8]) {
        self.memories
            .with(to, from.len(), |own| own.copy_from_slice(from));
    }

    fn read(&self, from: Address, to: &mut [u8]) {
        self.memories
            .with(from, to.len(), |own| to.copy_from_slice(own));
    }

    fn copy(&self, to: Address, from: Address, bytes: usize) {
        self.memories.copy(to, from, bytes);
    }

    fn synchronize(&self) {}

    fn multiplies(&self) -> bool {
        true
    }

    fn multiply(&self, matrices: &Matrices) {
        matrices::multiply(&self.memories, matrices);
    }

    fn load(&self, texts: &[&Text]) -> Result<Arc<dyn Module>, String> {
        let folder = tempfile::Builder::new().prefix("ein-kernels-").tempdir();
        let folder = folder.map_err(|error| format!("no folder for kernels: {error}"))?;
        match self.compile(folder.path(), &unit(texts)) {
            Ok(unit) => Ok(Arc::new(Loaded {
                unit,
                memories: Arc::clone(&self.memories),
            })),
            Err(why) => {
                let _kept = folder.keep();
                Err(why)
            }
        }
    }
}

/// A compiled unit, and the memory that its functions work on.
#[derive(Debug)]
struct Loaded {
    unit: Unit,
    memories: Arc<Memories>,
}

impl Module for Loaded {
    fn launch(
        &self,
        function: usize,
        blocks: u32,
        threads: u32,
        arguments: &[Argument],
    ) -> Result<(), String> {
        let addresses = arguments.iter().filter_map(|argument| match argument {
            Argument::Memory(address, _) => Some(address.0),
            Argument::Whole(_) => None,
        });
        self.memories.lend(addresses.collect(), |number, lent| {
            let words = arguments.iter().map(|argument| match *argument {
                Argument::Whole(number) => Word::Number(number as u64),
                Argument::Memory(address, bytes) => Word::Memory {
                    number: number(address.0),
                    bytes,
                },
            });
            let words: Vec<Word> = words.collect();
            self.unit.launch(function, (blocks, threads), &words, lent)
        })
    }
}

/// The unit of some texts: the header, the prelude, the functions, and what calls each with arguments that are words.
fn unit(texts: &[&Text]) -> String {
    let header = [include_str!("threads.hpp"), include_str!("checked.hpp")];
    let mut unit = [header[0], header[1], prelude()].join("\n");
    for (number, text) in texts.iter().enumerate() {
        let name = format!("k{number}");
        unit.push('\n');
        unit += &text.function(&name);
        let mut word = 0;
        let arguments = text.parameters.iter().map(|parameter| {
            let at = word;
            match parameter.elements() {
                Some(elements) => {
                    word += 2;
                    let kind = parameter.kind();
                    format!("{kind}{{({elements}*)a[{at}], a[{at} + 1] / sizeof({elements})}}")
                }
                None => {
                    word += 1;
                    format!("(ein::whole)a[{at}]")
                }
            }
        });
        let arguments: Vec<String> = arguments.collect();
        let meet = text.meeting != Meeting::Thread;
        let _ = writeln!(
            unit,
            "static void call_{name}(void* words) {{ const ein::bits* a = (const ein::bits*)words; {name}({}); }}\n\
             extern \"C\" EXPORTED bool launch_{name}(unsigned blocks, unsigned threads, ein::bits* words, emulated::Wrong* wrong) {{\n    \
             return emulated::launch(blocks, threads, {meet}, call_{name}, words, wrong);\n}}",
            arguments.join(", ")
        );
    }
    let _ = writeln!(
        unit,
        "extern \"C\" EXPORTED unsigned functions() {{ return {}; }}",
        texts.len()
    );
    unit
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::machine::Argument;
    use crate::text::Meaning;
    use ein_plan::DType;

    /// A text of ours, launched on memory of so many numbers.
    fn launched(body: &str, meeting: Meeting, threads: u32) -> Result<Vec<i32>, String> {
        launched_in(1, body, meeting, threads)
    }

    fn launched_in(
        blocks: u32,
        body: &str,
        meeting: Meeting,
        threads: u32,
    ) -> Result<Vec<i32>, String> {
        let machine = Emulated::new().unwrap();
        let text = Text {
            parameters: vec![
                Meaning::Number(0).alone(),
                Meaning::Result(0, DType::I32).alone(),
            ],
            body: body.into(),
            meeting,
        };
        let module = machine.load(&[&text])?;
        let memory = machine.allocate(64 * 4);
        machine.clear(memory, 64 * 4);
        let arguments = [Argument::Whole(64), Argument::Memory(memory, 64 * 4)];
        let ended = module.launch(0, blocks, threads, &arguments);
        let mut bytes = [0; 64 * 4];
        machine.read(memory, &mut bytes);
        machine.free(memory, 64 * 4);
        let numbers = bytes
            .chunks(4)
            .map(|b| i32::from_le_bytes(b.try_into().unwrap()));
        ended.map(|()| numbers.collect())
    }

    #[test]
    fn what_lies_outside_is_not_touched_and_told() {
        let body = "    to0[threadIdx.x + 3] = 1;\n";
        let error = launched(body, Meeting::Thread, 64).unwrap_err();
        assert_eq!(error, "an element outside the memory is touched: 64 of 64");
    }

    #[test]
    fn threads_see_what_others_wrote_before_a_barrier() {
        let body = "    __shared__ int all[64];\n    \
                    all[threadIdx.x] = threadIdx.x * 10;\n    \
                    __syncthreads();\n    \
                    to0[threadIdx.x] = all[63 - threadIdx.x];\n";
        let numbers = launched(body, Meeting::Block, 64).unwrap();
        let wanted: Vec<i32> = (0..64).map(|thread| (63 - thread) * 10).collect();
        assert_eq!(numbers, wanted);
    }

    #[test]
    fn a_barrier_that_is_missing_shows() {
        let body = "    __shared__ int all[32];\n    \
                    all[threadIdx.x] = 0;\n    \
                    __syncthreads();\n    \
                    all[threadIdx.x] = threadIdx.x + 1;\n    \
                    to0[blockIdx.x * 32 + threadIdx.x] = all[31 - threadIdx.x];\n";
        let numbers = launched_in(2, body, Meeting::Block, 32).unwrap();
        assert_ne!(numbers[..32], numbers[32..]);
    }

    #[test]
    fn warps_shuffle_on_their_own() {
        // The second warp shuffles more often.
        let body = "    int x = threadIdx.x;\n    \
                    for (unsigned n = 0; n < 1 + threadIdx.x / 32; ++n) x = ein::down(x, 1);\n    \
                    to0[threadIdx.x] = x;\n";
        let numbers = launched(body, Meeting::Block, 64).unwrap();
        let wanted: Vec<i32> = (0..32i32).map(|lane| (lane + 1).min(31)).collect();
        assert_eq!(numbers[..32], wanted);
        let wanted: Vec<i32> = (32..64i32).map(|lane| (lane + 2).min(63)).collect();
        assert_eq!(numbers[32..], wanted);
    }

    #[test]
    fn a_barrier_that_some_do_not_come_to_is_told() {
        let body = "    if (threadIdx.x < 32) __syncthreads(); else ein::down(1, 1);\n    \
                    if (threadIdx.x >= 40) __syncthreads();\n    \
                    else ein::down(1, 1);\n";
        let error = launched(body, Meeting::Block, 64).unwrap_err();
        assert!(
            error.starts_with("threads of a block wait at different barriers"),
            "{error}"
        );
    }

    #[test]
    fn a_text_that_does_not_compile_is_kept() {
        let error = launched("    to0[0] = nothing;\n", Meeting::Thread, 1).unwrap_err();
        assert!(error.contains("nothing"), "{error}");
        let folder = error.split("are kept in ").nth(1).unwrap();
        let folder = folder.split(": ").next().unwrap();
        assert!(
            fs::read_to_string(Path::new(folder).join("unit.cpp"))
                .unwrap()
                .contains("nothing")
        );
        fs::remove_dir_all(folder).unwrap();
    }
}
