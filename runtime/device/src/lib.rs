//! Devices: what computes a site's kernels and holds its arrays, behind one trait.
//!
//! The walker of a plan asks a [`Device`] for memory, hands it operands as [`Buffer`]s and gets buffers back; it never looks at elements
//! unless it asks for a copy in the host's memory. A call may return before its results are computed, as long as the device's other calls and
//! [`Buffer::to_host`] wait for them; a kernel that may fail is awaited by the call that runs it. No result depends on the device's
//! number of threads or streams. Must not know plans, keys, sites, files or transports.
//!
//! ```text
//! prepare [i: 2 | k: 3] f32 = sum a0[i, k] * a1[k]   run at i 0..2, k 0..3 on f32[2, 3], f32[3]   ->   f32[2]
//! ```

mod buffer;

pub use buffer::{Buffer, BufferIdentity, BufferType, DeviceMemory, MemorySpace};

use ein_array::Array;
use ein_plan::small_rounds::{RoundsMade, SmallRounds};
use ein_plan::{DType, Kernel, KernelError, LoopKernel, Reduction, Source, Update};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;

/// Start and length of a range of global numbers.
pub type Span = (u64, u64);

/// A kernel as a device runs it, and what the device keeps from one run to the next. A device has a type of its own for this.
pub trait Prepared: Any + fmt::Debug + Send + Sync {}

/// A loop of small steps as a device makes its rounds, all in one piece.
pub trait PreparedRounds: fmt::Debug + Send + Sync {
    /// Makes the rounds from the first of `span` on, until there are as many as its second says. `given` are the buffers from outside,
    /// `states` those of the states, which are made nobody else's, and `collected` those of all values that are collected, each in the order of
    /// the loop's. A round with a fault is not made.
    fn run(
        &self,
        given: &[&Buffer],
        states: &mut [Buffer],
        collected: &mut [Buffer],
        span: Span,
    ) -> RoundsMade;
}

/// An operand of one tuple.
#[derive(Clone, Debug)]
pub struct Operand<'a> {
    /// One buffer a column, all of one shape.
    pub columns: &'a [Buffer],
    /// Global number at which each dimension begins.
    pub start: Vec<u64>,
}

/// One run of a kernel.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// The kernel, prepared by the device that runs it.
    pub kernel: &'a dyn Prepared,
    /// Of each of its indices.
    pub ranges: Vec<Span>,
    /// The part of each operand that the ranges read. A cut dimension is read by a bare index only.
    pub operands: Vec<Operand<'a>>,
}

/// An operand of a member of a fused group.
#[derive(Clone, Debug)]
pub enum MemberOperand<'a> {
    /// It is there.
    Given(Operand<'a>),
    /// An earlier member makes it; it is read at the reader's own row, by bare indices.
    Made(usize),
    /// It is the array whose memory that member's result takes.
    Replaced(usize),
}

/// A kernel of a fused group.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// The kernel, prepared by the device that runs it. It has no guard, is no library operation, and its reduction is finished.
    pub kernel: &'a dyn Prepared,
    /// Of each of its indices.
    pub ranges: Vec<Span>,
    /// The operands that it reads.
    pub operands: Vec<MemberOperand<'a>>,
    /// True if its result is wanted.
    pub kept: bool,
}

/// A source that is made, not read ([`Source::is_free`], not stacked).
#[derive(Clone, Copy, Debug)]
pub struct Draw<'a> {
    /// The source that is drawn from.
    pub source: &'a Source,
    /// Element type.
    pub dtype: DType,
    /// The name that its random numbers depend on.
    pub stream: &'a str,
    /// The seed of the run.
    pub seed: u64,
    /// The rounds of the loops around it, the outermost first.
    pub rounds: &'a [u64],
    /// Extents of the whole tensor.
    pub shape: &'a [u64],
}

/// The threads that a site's tuples are computed by.
#[derive(Clone, Copy, Debug)]
pub struct Workers<'a> {
    /// How many.
    pub threads: usize,
    /// The cores that they keep to, thread by thread; none: the system places them.
    pub cores: &'a [usize],
    /// True if the calling thread is the only one that hands out work, and so may be one of them.
    pub alone: bool,
}

/// A file in memory, of which parts are copied again and again.
pub trait MappedFile: fmt::Debug + Send + Sync {
    /// All bytes.
    ///
    /// # Errors
    /// The file has become shorter, or cannot be asked.
    fn bytes(&self) -> io::Result<&[u8]>;
}

/// The panic of a device that cannot go on. It prints nothing; what walks plans catches it and reports the step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceFault {
    /// Its memory is full.
    NoMemory {
        /// Bytes that were asked for.
        bytes: usize,
        /// Bytes that are free.
        free: u64,
        /// All bytes of its memory.
        all: u64,
    },
    /// It has stopped, with these words.
    Stopped(String),
}

/// The result of a launch: one buffer for each output column of its kernel.
pub type Launched = Result<Vec<Buffer>, KernelError>;

/// The result of a group: by member, its columns if it is kept; or the first member that faults, and its fault.
pub type GroupLaunched = Result<Vec<Option<Vec<Buffer>>>, (usize, KernelError)>;

impl<'a> MemberOperand<'a> {
    /// The operand as a launch of its kernel alone takes it. `made`: by member, the columns of those that have been run; `over`: by member, the
    /// array whose memory its result takes.
    pub fn operand(
        &self,
        members: &[Member<'_>],
        (made, over): (&'a [Vec<Buffer>], &'a BTreeMap<usize, Buffer>),
    ) -> Operand<'a> {
        // An array of a member begins where the member's output does.
        let of_member = |columns: &'a [Buffer], member: usize| Operand {
            columns,
            start: (members[member].ranges.iter())
                .take(columns.first().map_or(0, |column| column.shape().len()))
                .map(|(start, _)| *start)
                .collect(),
        };
        match self {
            MemberOperand::Given(given) => given.clone(),
            MemberOperand::Made(member) => of_member(&made[*member], *member),
            MemberOperand::Replaced(member) => {
                of_member(std::slice::from_ref(&over[member]), *member)
            }
        }
    }
}

impl<'a> Member<'a> {
    /// The launch of its kernel alone; see [`MemberOperand::operand`].
    pub fn launch(
        &self,
        members: &[Member<'_>],
        done: (&'a [Vec<Buffer>], &'a BTreeMap<usize, Buffer>),
    ) -> Launch<'a> {
        let operands = self.operands.iter();
        Launch {
            kernel: self.kernel,
            ranges: self.ranges.clone(),
            operands: operands.map(|o| o.operand(members, done)).collect(),
        }
    }
}

/// The results of a group: of the columns that each member has made, those of the members that are kept.
pub fn kept(members: &[Member<'_>], made: Vec<Vec<Buffer>>) -> Vec<Option<Vec<Buffer>>> {
    let kept = members.iter().map(|member| member.kept);
    let results = made.into_iter().zip(kept);
    results.map(|(made, kept)| kept.then_some(made)).collect()
}

/// A device's own memory, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnMemory {
    /// The bytes that arrays can still take, if the device knows.
    pub free: Option<u64>,
    /// The most that arrays took at one time since the device was opened.
    pub most: u64,
}

/// A device computes a site's kernels and holds its arrays.
///
/// Operands lie in the device's memory ([`Device::adopt`]), and so do results.
pub trait Device: fmt::Debug + Send + Sync {
    /// Its kind, as a user names it.
    fn name(&self) -> &'static str;

    /// The memory in which it holds arrays.
    fn space(&self) -> MemorySpace;

    /// Its own memory, if it has one beside the host's.
    fn own_memory(&self) -> Option<OwnMemory> {
        None
    }

    /// Starts the threads by which tuples are computed.
    ///
    /// # Errors
    /// The system refuses a thread.
    fn workers(&self, workers: &Workers<'_>) -> Result<ThreadPool, ThreadPoolBuildError> {
        pool(workers, |_| ())
    }

    /// Room for an array, with any values, for a writer of all of them.
    ///
    /// # Panics
    /// With [`ein_array::NoMemory`] or [`DeviceFault::NoMemory`] if the memory is refused.
    fn allocate(&self, wanted: &BufferType) -> Buffer;

    /// An array of zeros.
    fn zeros(&self, wanted: &BufferType) -> Buffer;

    /// Memory of the host to be filled and then given to [`Device::adopt`], with any values.
    fn staging(&self, dtype: DType, shape: &[usize]) -> Array {
        Array::room(dtype, shape)
    }

    /// The array in this device's memory: the buffer itself if it lies there, else a copy.
    fn adopt(&self, buffer: Buffer) -> Buffer;

    /// Makes a buffer nobody else's: what somebody else holds too is copied.
    fn unshare(&self, buffer: &mut Buffer);

    /// Copies the box `from_start .. from_start + extent` of `from` to `start` in `to`, which is made nobody else's first. Both have one
    /// element type, and the boxes lie inside.
    fn copy_box(
        &self,
        to: &mut Buffer,
        start: &[usize],
        from: &Buffer,
        from_start: &[usize],
        extent: &[usize],
    );

    /// Copies `from` to position `at` of dimension `dim` of `to`, which has that dimension more and is made nobody else's first.
    fn copy_slice(&self, to: &mut Buffer, dim: usize, at: usize, from: &Buffer);

    /// Prepares a kernel that will be run, perhaps many times, by these loops. `deterministic`: results must be the same bits on any number of
    /// sites.
    fn prepare(
        &self,
        kernel: &Kernel,
        loops: &LoopKernel,
        deterministic: bool,
    ) -> Box<dyn Prepared>;

    /// Runs a kernel. The shape of its results is the lengths of its output indices. A kernel without a reduction leaves zeros where
    /// its guard fails.
    ///
    /// # Errors
    /// The first faulty point, if an untaken branch or a failed guard does not hide it.
    fn run(&self, launch: &Launch<'_>) -> Launched;

    /// Runs a kernel whose result may take the memory of an operand ([`Kernel::may_overwrite`]), which is `over`: that operand of the launch has
    /// no columns. A device may take it where nobody else holds it and the result has its shape and type; by default the result has memory of
    /// its own.
    ///
    /// # Errors
    /// Those of [`Device::run`].
    fn run_over(&self, launch: Launch<'_>, over: (usize, Buffer)) -> Launched {
        let (operand, old) = over;
        let mut launch = launch;
        launch.operands[operand].columns = std::slice::from_ref(&old);
        self.run(&launch)
    }

    /// Combines what a kernel with this reduction gives with `sum`, the carrier of earlier runs.
    ///
    /// # Errors
    /// Those of [`Device::run`].
    fn accumulate(&self, launch: &Launch<'_>, reduction: Reduction, sum: Vec<Buffer>) -> Launched {
        let next = self.run(launch)?;
        Ok(self.combine(reduction, sum, next))
    }

    /// The boxes of the result that differ from the operand that the kernel gives back but for single points, each with its first
    /// element's place in the chunk. Boxes may overlap; they agree there. By default the one box is the whole result.
    ///
    /// # Errors
    /// Those of [`Device::run`]; a device may leave out points that are not changed, which then have no faults.
    fn changes(&self, launch: &Launch<'_>, update: &Update) -> Result<Vec<Change>, KernelError> {
        let _ = update;
        let whole = self.run(launch)?.into_iter();
        Ok(whole.map(|all| (vec![0; all.shape().len()], all)).collect())
    }

    /// Runs kernels whose first `rows` output indices are the same, as far as may be block of rows by block of rows; of each that is kept,
    /// its columns. `over` has, by member, the buffer whose memory its result takes where nobody else holds it: of the result's shape and
    /// type. Such a member is kept, and has one column. By default the members are run one after another.
    ///
    /// # Errors
    /// The first member that faults, and its first faulty point.
    fn run_group(
        &self,
        members: &[Member<'_>],
        rows: usize,
        over: BTreeMap<usize, Buffer>,
    ) -> GroupLaunched {
        let _ = rows;
        let mut made: Vec<Vec<Buffer>> = vec![];
        for (number, member) in members.iter().enumerate() {
            let launch = member.launch(members, (&made, &over));
            let columns = self.run(&launch).map_err(|error| (number, error))?;
            made.push(columns);
        }
        Ok(kept(members, made))
    }

    /// Combines carriers of a reduction that was split; `sum` comes first.
    fn combine(&self, reduction: Reduction, sum: Vec<Buffer>, next: Vec<Buffer>) -> Vec<Buffer>;

    /// A box of a tensor that is made. Random values depend on the seed, the stream, the rounds and the element's number in the whole
    /// tensor alone, so that they are the same on every device.
    fn generate(&self, draw: &Draw<'_>, ranges: &[Span]) -> Buffer;

    /// Prepares a loop of small steps; `None` where the device makes no rounds in one piece, and its steps are taken one by one.
    fn prepare_rounds(&self, rounds: &SmallRounds) -> Option<Box<dyn PreparedRounds>> {
        let _ = rounds;
        None
    }

    /// Returns when everything that was asked for is done. What measures time calls it.
    fn synchronize(&self) {}

    /// A regular file that is not written to meanwhile, in the host's memory; `None` where that cannot be had, and it is read instead.
    fn map_file(&self, file: &File) -> Option<Box<dyn MappedFile>> {
        let _ = file;
        None
    }
}

/// A box of a result that differs from an operand: its first element's place in the chunk, and its elements.
pub type Change = (Vec<usize>, Buffer);

/// A pool of threads; `begins` is told the number of each that starts. The calling thread is one of them if it is alone and in no other pool.
///
/// # Errors
/// The system refuses a thread.
pub fn pool(
    workers: &Workers<'_>,
    begins: impl Fn(usize) + Clone + Send + Sync + 'static,
) -> Result<ThreadPool, ThreadPoolBuildError> {
    let builder = || {
        let builder = ThreadPoolBuilder::new().num_threads(workers.threads);
        builder.start_handler(begins.clone())
    };
    let own = (workers.alone).then(|| builder().use_current_thread().build().ok());
    // A thread that is in a pool already stays in that one.
    own.flatten().map_or_else(|| builder().build(), Ok)
}

/// The kernel that a device of this type has prepared.
///
/// # Panics
/// Another device has prepared it.
pub fn prepared_as<P: Prepared>(kernel: &dyn Prepared) -> &P {
    let kernel: &dyn Any = kernel;
    let own = kernel.downcast_ref();
    own.expect("a kernel is run by the device that has prepared it")
}
