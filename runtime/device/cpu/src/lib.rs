//! The processor as a device: the loops of `ein-kernels` on arrays in the host's memory.
//!
//! Every call computes what it is asked for before it returns, on the rayon pool that it is made in. Handing an array to this device, and
//! asking for it back, copies nothing. Must not know plans, keys or sites; how a kernel runs is `ein-kernels`' affair.
//!
//! ```text
//! cpu   host   run [i: 2 | k: 3] f32 = sum a0[i, k] * a1[k]   ->   f32[2] in the host's memory
//! ```

use ein_array::Array;
use ein_device::{
    Buffer, BufferType, Change, Device, Draw, Launch, Launched, MappedFile, Member, MemberOperand,
    MemorySpace, Operand, Prepared, PreparedRounds, Span, Workers, pool, prepared_as,
};
use ein_kernels::{Chunk, CompiledRounds, KernelError, Mapped, Memo, Options, Scheduled};
use ein_plan::small_rounds::{RoundsMade, SmallRounds};
use ein_plan::{DType, Format, Kernel, LoopKernel, Reduction, Update};
use rayon::{ThreadPool, ThreadPoolBuildError};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::Arc;

/// The processor that this process runs on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu;

/// The processor, as what walks plans takes it.
pub fn device() -> Arc<dyn Device> {
    Arc::new(Cpu)
}

/// A kernel, and the programs that were made for it.
#[derive(Debug)]
struct CpuKernel {
    kernel: Kernel,
    loops: LoopKernel,
    options: Options,
    memo: Memo,
}

impl Prepared for CpuKernel {}

impl CpuKernel {
    fn scheduled(&self) -> Scheduled<'_> {
        Scheduled {
            kernel: &self.kernel,
            loops: &self.loops,
        }
    }
}

#[derive(Debug)]
struct CpuRounds(CompiledRounds);

impl PreparedRounds for CpuRounds {
    fn run(
        &self,
        given: &[&Buffer],
        states: &mut [Buffer],
        collected: &mut [Buffer],
        span: Span,
    ) -> RoundsMade {
        let given: Vec<&Array> = given.iter().map(|buffer| host(buffer)).collect();
        let mut states: Vec<&mut Array> = states.iter_mut().map(host_mut).collect();
        let mut collected: Vec<&mut Array> = collected.iter_mut().map(host_mut).collect();
        self.0.run(&given, (&mut states, &mut collected), span)
    }
}

#[derive(Debug)]
struct CpuFile(Mapped);

impl MappedFile for CpuFile {
    fn bytes(&self) -> io::Result<&[u8]> {
        self.0.bytes()
    }
}

impl Device for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn space(&self) -> MemorySpace {
        MemorySpace::Host
    }

    fn workers(&self, workers: &Workers<'_>) -> Result<ThreadPool, ThreadPoolBuildError> {
        let cores = workers.cores.to_vec();
        // A thread that waits while its pool computes may be where that is; so may one of the pool that also does what is done alone.
        if cores.len() == workers.threads {
            ein_kernels::cores::keep_to(&cores);
        }
        if cores.len() == workers.threads && workers.alone {
            ein_kernels::cores::begin_at(&cores);
        }
        pool(workers, move |thread| {
            if let Some(core) = cores.get(thread) {
                ein_kernels::cores::keep_to(&[*core]);
            }
        })
    }

    fn allocate(&self, wanted: &BufferType) -> Buffer {
        match wanted.format {
            Format::Dense => self.staging(wanted.dtype, &wanted.shape).into(),
        }
    }

    fn zeros(&self, wanted: &BufferType) -> Buffer {
        match wanted.format {
            Format::Dense => Array::zeros(wanted.dtype, &wanted.shape).into(),
        }
    }

    fn staging(&self, dtype: DType, shape: &[usize]) -> Array {
        ein_kernels::room(dtype, shape)
    }

    fn adopt(&self, buffer: Buffer) -> Buffer {
        match buffer.space() {
            MemorySpace::Host => buffer,
            MemorySpace::Device { .. } => buffer.to_host().into(),
        }
    }

    fn unshare(&self, buffer: &mut Buffer) {
        host_mut(buffer);
    }

    fn copy_box(
        &self,
        to: &mut Buffer,
        start: &[usize],
        from: &Buffer,
        from_start: &[usize],
        extent: &[usize],
    ) {
        host_mut(to).copy_box(start, host(from), from_start, extent);
    }

    fn copy_slice(&self, to: &mut Buffer, dim: usize, at: usize, from: &Buffer) {
        host_mut(to).copy_slice(dim, at, host(from));
    }

    fn prepare(
        &self,
        kernel: &Kernel,
        loops: &LoopKernel,
        deterministic: bool,
    ) -> Box<dyn Prepared> {
        Box::new(CpuKernel {
            kernel: kernel.clone(),
            loops: loops.clone(),
            options: Options {
                deterministic,
                ..Options::default()
            },
            memo: Memo::default(),
        })
    }

    fn prepare_rounds(&self, rounds: &SmallRounds) -> Option<Box<dyn PreparedRounds>> {
        let compiled = CompiledRounds::compile(rounds)?;
        Some(Box::new(CpuRounds(compiled)))
    }

    fn run(&self, launch: &Launch<'_>) -> Launched {
        let own: &CpuKernel = prepared_as(launch.kernel);
        run(own, &launch.ranges, &chunks(&launch.operands)).map(buffers)
    }

    fn run_over(&self, launch: Launch<'_>, (operand, old): (usize, Buffer)) -> Launched {
        let own: &CpuKernel = prepared_as(launch.kernel);
        let mut operands = chunks(&launch.operands);
        let made = match old.into_unshared_host() {
            Ok(old) => ein_kernels::run_over(
                own.scheduled(),
                &launch.ranges,
                &operands,
                (operand, old),
                &own.options,
                Some(&own.memo),
            ),
            Err(shared) => {
                operands[operand].columns = vec![host(&shared)];
                run(own, &launch.ranges, &operands)
            }
        };
        made.map(buffers)
    }

    fn accumulate(&self, launch: &Launch<'_>, reduction: Reduction, sum: Vec<Buffer>) -> Launched {
        let own: &CpuKernel = prepared_as(launch.kernel);
        let (ranges, operands) = (&launch.ranges, chunks(&launch.operands));
        let mut sum = arrays(sum);
        let is_added = match sum.as_mut_slice() {
            [sum] if reduction == Reduction::Sum => {
                ein_kernels::add(own.scheduled(), ranges, &operands, sum, &own.options)
            }
            _ => false,
        };
        if !is_added {
            let next = run(own, ranges, &operands)?;
            ein_kernels::combine(reduction, &mut sum, &next);
        }
        Ok(buffers(sum))
    }

    fn changes(&self, launch: &Launch<'_>, update: &Update) -> Result<Vec<Change>, KernelError> {
        let own: &CpuKernel = prepared_as(launch.kernel);
        let operands = chunks(&launch.operands);
        let boxes = ein_kernels::update(
            own.scheduled(),
            update,
            &launch.ranges,
            &operands,
            &own.options,
            Some(&own.memo),
        )?;
        let boxes = boxes.into_iter();
        Ok(boxes.map(|(start, part)| (start, part.into())).collect())
    }

    fn run_group(
        &self,
        members: &[Member<'_>],
        rows: usize,
        over: BTreeMap<usize, Buffer>,
    ) -> Result<Vec<Option<Vec<Buffer>>>, (usize, KernelError)> {
        let (mut replaced, mut shared) = (BTreeMap::new(), BTreeMap::new());
        for (member, old) in over {
            match old.into_unshared_host() {
                Ok(array) => drop(replaced.insert(member, array)),
                Err(buffer) => drop(shared.insert(member, buffer)),
            }
        }
        let first = members.first().map(|member| prepared_as(member.kernel));
        let options = first.map_or(Options::default(), |own: &CpuKernel| own.options);
        let group: Vec<ein_kernels::Member<'_>> = (members.iter())
            .map(|member| {
                let own: &CpuKernel = prepared_as(member.kernel);
                ein_kernels::Member {
                    kernel: &own.kernel,
                    ranges: member.ranges.clone(),
                    operands: (member.operands.iter())
                        .map(|operand| member_operand(operand, members, &shared))
                        .collect(),
                    kept: member.kept,
                    memo: Some(&own.memo),
                }
            })
            .collect();
        let loops: Vec<&LoopKernel> = (members.iter())
            .map(|member| &prepared_as::<CpuKernel>(member.kernel).loops)
            .collect();
        let made = ein_kernels::execute_rows((&group, &loops), rows, replaced, &options)?;
        Ok(made.into_iter().map(|made| made.map(buffers)).collect())
    }

    fn combine(&self, reduction: Reduction, sum: Vec<Buffer>, next: Vec<Buffer>) -> Vec<Buffer> {
        let mut sum = arrays(sum);
        ein_kernels::combine(reduction, &mut sum, &arrays(next));
        buffers(sum)
    }

    fn generate(&self, draw: &Draw<'_>, ranges: &[Span]) -> Buffer {
        let drawn = (draw.seed, draw.rounds);
        ein_kernels::generate_in_round(
            draw.source,
            draw.dtype,
            draw.stream,
            drawn,
            draw.shape,
            ranges,
        )
        .into()
    }

    fn map_file(&self, file: &File) -> Option<Box<dyn MappedFile>> {
        Some(Box::new(CpuFile(Mapped::of(file)?)))
    }
}

fn run(
    own: &CpuKernel,
    ranges: &[Span],
    operands: &[Chunk<'_>],
) -> Result<Vec<Array>, KernelError> {
    ein_kernels::execute(
        own.scheduled(),
        ranges,
        operands,
        &own.options,
        Some(&own.memo),
    )
}

fn host(buffer: &Buffer) -> &Array {
    buffer.host().expect(ADOPTED)
}

fn host_mut(buffer: &mut Buffer) -> &mut Array {
    buffer.host_mut().expect(ADOPTED)
}

const ADOPTED: &str = "a buffer is given to the device whose memory it lies in";

fn chunk<'a>(operand: &Operand<'a>) -> Chunk<'a> {
    Chunk {
        columns: operand.columns.iter().map(host).collect(),
        start: operand.start.clone(),
    }
}

fn chunks<'a>(operands: &[Operand<'a>]) -> Vec<Chunk<'a>> {
    operands.iter().map(chunk).collect()
}

/// An operand of a member; `shared` are the arrays, by member, that are not written over because somebody else holds them too.
fn member_operand<'a>(
    operand: &MemberOperand<'a>,
    members: &[Member<'_>],
    shared: &'a BTreeMap<usize, Buffer>,
) -> ein_kernels::Operand<'a> {
    match operand {
        MemberOperand::Given(operand) => ein_kernels::Operand::Given(chunk(operand)),
        MemberOperand::Made(member) => ein_kernels::Operand::Made(*member),
        MemberOperand::Replaced(member) => match shared.get(member) {
            None => ein_kernels::Operand::Old(*member),
            // It lies as the result does, which begins where the member's output indices do.
            Some(buffer) => ein_kernels::Operand::Given(Chunk {
                columns: vec![host(buffer)],
                start: (members[*member].ranges.iter())
                    .take(buffer.shape().len())
                    .map(|(start, _)| *start)
                    .collect(),
            }),
        },
    }
}

/// The arrays, for good: one that nobody else holds is moved, not copied.
fn arrays(buffers: Vec<Buffer>) -> Vec<Array> {
    buffers.into_iter().map(Buffer::into_host).collect()
}

fn buffers(arrays: Vec<Array>) -> Vec<Buffer> {
    arrays.into_iter().map(Buffer::from).collect()
}
