//! Kernels read from standard input, timed on request: einc's side of `tests/peers`, whose scripts ask in turns with their
//! own contestants, so that ratios mean something on a busy machine. Runs the very path that a program's steps run.
//!
//! ```text
//! tensor A f32 512 512
//! tensor B f32 512 512
//! kernel C (f32[512, 512], f32[512, 512]) [i: 512, j: 512 | k: 512] f32 = sum a0[i, k] * a1[k, j] of A B
//! sweep 2 1                        the first 2 steps are taken together, their rows numbered by 1 index
//! run                              -> seconds, e.g. 0.000641
//! crate 512 512 512                -> seconds of the gemm crate alone, its output reused
//! clear
//! ```
#![allow(missing_docs, unsafe_code)]

use ein_array::{Array, Data};
use ein_kernels::{Chunk, Member, Operand, Options, fused_rows, run};
use ein_plan::{DType, Kernel};
use half::{bf16, f16};
use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::Instant;

/// One statement: its name, its kernel, the names of its operands.
struct Step {
    name: String,
    kernel: Kernel,
    operands: Vec<String>,
}

#[derive(Default)]
struct Session {
    tensors: BTreeMap<String, Array>,
    steps: Vec<Step>,
    /// How many first steps are taken together, and how many indices number their rows.
    swept: (usize, usize),
    plain: Vec<f32>,
}

fn filled(dtype: DType, shape: &[usize]) -> Array {
    let count: usize = shape.iter().product();
    let value = |e: usize| (e.wrapping_mul(2_654_435_761) >> 7 & 1023) as f32 / 512.0 - 1.0;
    let data = match dtype {
        DType::F64 => Data::F64((0..count).map(|e| f64::from(value(e))).collect()),
        DType::F16 => Data::F16((0..count).map(|e| f16::from_f32(value(e))).collect()),
        DType::BF16 => Data::BF16((0..count).map(|e| bf16::from_f32(value(e))).collect()),
        DType::I64 => Data::I64((0..count).map(|e| (e % 7) as i64).collect()),
        _ => Data::F32((0..count).map(value).collect()),
    };
    Array::new(shape.to_vec(), data).expect("as many as the shape says")
}

impl Session {
    fn tensor(&mut self, words: &str) -> Result<(), Box<dyn Error>> {
        let mut words = words.split_whitespace();
        let name = words.next().ok_or("a tensor has a name")?;
        let dtype = match words.next() {
            Some("f64") => DType::F64,
            Some("f16") => DType::F16,
            Some("bf16") => DType::BF16,
            Some("i64") => DType::I64,
            _ => DType::F32,
        };
        let shape = words.map(str::parse).collect::<Result<Vec<usize>, _>>()?;
        self.tensors.insert(name.to_owned(), filled(dtype, &shape));
        Ok(())
    }

    fn kernel(&mut self, line: &str) -> Result<(), Box<dyn Error>> {
        let (name, rest) = line.split_once(' ').ok_or("a kernel has a name")?;
        let (text, operands) = rest.rsplit_once(" of ").ok_or("a kernel has operands")?;
        self.steps.push(Step {
            name: name.to_owned(),
            kernel: text.parse()?,
            operands: operands.split_whitespace().map(str::to_owned).collect(),
        });
        Ok(())
    }

    /// The results of the steps that are taken together and that later ones read; the last one's too.
    fn sweep(&self) -> Result<BTreeMap<&str, Array>, Box<dyn Error>> {
        let (count, rows) = self.swept;
        let (first, later) = self.steps.split_at(count);
        let member = |(at, step): (usize, &'_ Step)| {
            let operand = |name: &String| match first.iter().position(|s| s.name == *name) {
                Some(made) => Ok(Operand::Made(made)),
                None => {
                    let array = self.tensors.get(name);
                    let array = array.ok_or_else(|| format!("there is no {name}"))?;
                    Ok(Operand::Given(Chunk {
                        columns: vec![array],
                        start: vec![0; array.shape().len()],
                    }))
                }
            };
            let operands = step.operands.iter().map(operand);
            Ok((operands.collect::<Result<Vec<_>, String>>()?, at))
        };
        let operands = first.iter().enumerate().map(member);
        let operands = operands.collect::<Result<Vec<_>, String>>()?;
        let read = |name: &String| later.iter().any(|s| s.operands.contains(name));
        let members: Vec<Member<'_>> = (first.iter().zip(operands))
            .map(|(step, (operands, at))| Member {
                kernel: &step.kernel,
                ranges: step.kernel.indices.iter().map(|i| (0, i.extent)).collect(),
                operands,
                kept: at + 1 == count || read(&step.name),
                memo: None,
            })
            .collect();
        let results =
            fused_rows(&members, rows, &Options::default()).map_err(|(_, error)| error)?;
        let made = first.iter().zip(results);
        let made = made.filter_map(|(step, made)| Some((step.name.as_str(), made?.remove(0))));
        Ok(made.collect())
    }

    /// All steps, each result freed after its last use: the seconds that they take.
    fn run(&self) -> Result<f64, Box<dyn Error>> {
        let began = Instant::now();
        let mut made = self.sweep()?;
        for (at, step) in self.steps.iter().enumerate().skip(self.swept.0) {
            let operand = |name: &String| {
                let array = made.get(name.as_str()).or_else(|| self.tensors.get(name));
                let array = array.ok_or_else(|| format!("there is no {name}"))?;
                Ok(Chunk {
                    columns: vec![array],
                    start: vec![0; array.shape().len()],
                })
            };
            let operands = step.operands.iter().map(operand);
            let operands = operands.collect::<Result<Vec<Chunk<'_>>, String>>()?;
            let ranges: Vec<(u64, u64)> =
                step.kernel.indices.iter().map(|i| (0, i.extent)).collect();
            let mut result = run(&step.kernel, &ranges, &operands, &Options::default())?;
            drop(operands);
            made.insert(&step.name, result.remove(0));
            let later = &self.steps[at + 1..];
            made.retain(|name, _| {
                *name == step.name || later.iter().any(|s| s.operands.iter().any(|o| o == name))
            });
        }
        drop(black_box(made));
        Ok(began.elapsed().as_secs_f64())
    }
}

/// The gemm crate called directly on row-major matrices `m` by `k` and `k` by `n`.
fn plain(session: &mut Session, words: &str) -> Result<f64, Box<dyn Error>> {
    let sizes = words
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<Vec<usize>, _>>()?;
    let &[m, n, k] = &sizes[..] else {
        return Err("a product has three sizes".into());
    };
    let slice = |name: &str| match session.tensors.get(name).map(Array::data) {
        Some(Data::F32(v)) => Ok(v),
        _ => Err(format!("{name} is no f32 tensor")),
    };
    let (a, b) = (slice("A")?, slice("B")?);
    assert!(a.len() == m * k && b.len() == k * n);
    session.plain.resize(m * n, 0.0);
    let began = Instant::now();
    // SAFETY: the sizes are those of the three slices, which are row-major, and the result is not aliased.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            session.plain.as_mut_ptr(),
            1,
            n as isize,
            false,
            a.as_ptr(),
            1,
            k as isize,
            b.as_ptr(),
            1,
            n as isize,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::Rayon(0),
        );
    }
    Ok(began.elapsed().as_secs_f64())
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Ok(wanted) = std::env::var("EIN_BLAS") {
        ein_kernels::load_blas(&wanted)?;
    }
    // As the only site of a program has them.
    let threads = std::thread::available_parallelism()?.get();
    ein_kernels::cores::begin_at(&(0..threads).collect::<Vec<_>>());
    let builder = rayon::ThreadPoolBuilder::new().use_current_thread();
    let builder = builder.start_handler(move |thread| {
        if rayon::current_num_threads() == threads {
            ein_kernels::cores::keep_to(&[thread]);
        }
    });
    builder.build_global()?;
    let mut session = Session::default();
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (word, rest) = line.split_once(' ').unwrap_or((line.as_str(), ""));
        match word {
            "tensor" => session.tensor(rest)?,
            "kernel" => session.kernel(rest)?,
            "sweep" => {
                let words = rest.split_whitespace().map(str::parse);
                let &[count, rows] = &words.collect::<Result<Vec<usize>, _>>()?[..] else {
                    return Err("a sweep has a number of steps and one of indices".into());
                };
                session.swept = (count, rows);
            }
            "clear" => session = Session::default(),
            "run" => {
                writeln!(out, "{}", session.run()?)?;
                out.flush()?;
            }
            "crate" => {
                writeln!(out, "{}", plain(&mut session, rest)?)?;
                out.flush()?;
            }
            _ => return Err(format!("what is {line:?}?").into()),
        }
    }
    Ok(())
}
