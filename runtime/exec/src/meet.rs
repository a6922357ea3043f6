//! What sites tell each other beside tensors: what they were started with, numbers, that one of them has failed.
//!
//! Must not know what a plan does.
//!
//! ```text
//! site 2 was started with another program than site 0
//! ```

use crate::Options;
use crate::error::{ErrorKind, RunError};
use crate::source::join;
use ein_array::{Array, Data};
use ein_comm::Communicator;
use ein_device::BufferType;
use ein_plan::{DType, Operation, Plan, Source};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Sites compare what they were started with: plans that all walk together, and those that each walks by itself; `fed` are the sources of
/// what a session feeds them. Returns a token that tells this run from others.
pub(crate) fn meet(
    (plans, own): (&[&Plan], &[&Plan]),
    fed: &[&Source],
    comm: &dyn Communicator,
    options: &Options,
) -> Result<String, RunError> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_nanos() as u64);
    let token = now ^ (u64::from(std::process::id()) << 32);
    let fingerprint = match postcard::to_stdvec(&(plans, own)) {
        Ok(bytes) => hash(&bytes),
        Err(error) => {
            return Err(RunError::internal(format!(
                "the plan cannot be encoded: {error}"
            )));
        }
    };
    let Options {
        device,
        further: _,
        seed,
        threads: _,
        cores: _,
        base: _,
        inputs,
        saves,
        archive,
        check_nan,
        note,
        patience: _,
        spill: _,
        keeping: _,
    } = options;
    let device = device.name();
    let given = format!("{device} {seed} {inputs:?} {saves:?} {archive:?} {check_nan} {note:?}");
    let given = hash(given.as_bytes());
    let mine = vec![fingerprint as i64, given as i64, token as i64];
    let all = share_numbers(comm, mine)?;
    let differs = |what: usize| all.iter().position(|site| site[what] != all[0][what]);
    let different = |site: usize, what: &str| {
        Err(RunError::new(
            "E0731",
            ErrorKind::Setup,
            format!("site {site} was started with {what} than site 0"),
        )
        .at(site as u32)
        .help("start the same program with the same arguments and the same data on every rank"))
    };
    if let Some(site) = differs(0) {
        return different(site, "another program");
    }
    if let Some(site) = differs(1) {
        return different(site, "other options");
    }
    if !comm.is_one_process() {
        same_files(plans, fed, comm, options)?;
    }
    if let Some(plan) = plans.iter().find(|plan| plan.sites != comm.sites()) {
        return Err(RunError::new(
            "E0731",
            ErrorKind::Setup,
            format!(
                "the plan is for {} sites, but there are {}",
                plan.sites,
                comm.sites()
            ),
        ));
    }
    Ok(format!("{:x}", all[0][2]))
}

/// Compares the files that plans read, between all sites: the length of each file and samples of its bytes. A file that cannot be
/// read is no difference; the step that reads it reports it.
fn same_files(
    plans: &[&Plan],
    fed: &[&Source],
    comm: &dyn Communicator,
    options: &Options,
) -> Result<(), RunError> {
    let mut files: BTreeSet<PathBuf> = BTreeSet::new();
    files.extend(options.inputs.values().map(|file| file.path.clone().into()));
    let steps = plans.iter().flat_map(|plan| &plan.steps);
    let sources = steps.filter_map(|step| match &step.operation {
        Operation::Source { source, .. } => Some(source),
        _ => None,
    });
    let of = |source: &Source| match source {
        Source::Load(file)
        | Source::Listed {
            file: Some(file), ..
        } => Some(PathBuf::from(join(&options.base, &file.path))),
        _ => None,
    };
    for source in sources.chain(fed.iter().copied()) {
        files.extend(of(source));
        if let Source::Stacked { parts, .. } = source {
            files.extend(parts.iter().filter_map(|part| of(&part.source)));
        }
    }
    let mine = files.iter().map(|file| sampled(file).unwrap_or(0) as i64);
    let all = share_numbers(comm, mine.collect())?;
    for (at, file) in files.iter().enumerate() {
        let differs = |site: &Vec<i64>| site[at] != 0 && all[0][at] != 0 && site[at] != all[0][at];
        if let Some(site) = all.iter().position(differs) {
            let message = format!(
                "site {site} has another file `{}` than site 0: their bytes differ",
                file.display()
            );
            return Err(RunError::new("E0731", ErrorKind::Setup, message)
                .at(site as u32)
                .help(
                    "copy the same file to every machine, or keep it where all machines see it",
                ));
        }
    }
    Ok(())
}

/// Length of a sample, in bytes.
const SAMPLE: u64 = 4096;
/// Number of samples of a file, at equal distances from its beginning to its end.
const SAMPLES: u64 = 64;

/// Returns a checksum of a file's length and samples. Files that differ only between the samples have the same one.
fn sampled(path: &Path) -> std::io::Result<u64> {
    // Opening a pipe would wait for its writer, and take what it writes.
    if !std::fs::metadata(path)?.is_file() {
        return Ok(0);
    }
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let last = length.saturating_sub(SAMPLE);
    let mut sum = hash(&length.to_le_bytes());
    for number in 0..SAMPLES {
        let start = (u128::from(last) * u128::from(number) / u128::from(SAMPLES - 1)) as u64;
        let mut bytes = vec![];
        file.seek(SeekFrom::Start(start))?;
        (&mut file).take(SAMPLE).read_to_end(&mut bytes)?;
        sum = (sum.rotate_left(5) ^ hash(&bytes)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    Ok(sum.max(1))
}

/// Raises each site's figure to its own, at every site.
pub(crate) fn raise(
    figures: &mut Vec<u64>,
    own: u64,
    comm: &dyn Communicator,
) -> Result<(), RunError> {
    let all = share_numbers(comm, vec![own as i64])?;
    figures.resize(all.len(), 0);
    for (figure, own) in figures.iter_mut().zip(all) {
        *figure = (*figure).max(own[0] as u64);
    }
    Ok(())
}

/// By site, known at every site: the most bytes that arrays took of its device's own memory; empty if it has none.
pub(crate) fn device_bytes(
    comm: &dyn Communicator,
    options: &Options,
) -> Result<Vec<u64>, RunError> {
    let Some(memory) = options.device.own_memory() else {
        return Ok(vec![]);
    };
    let all = share_numbers(comm, vec![memory.most as i64])?;
    Ok(all.into_iter().map(|site| site[0] as u64).collect())
}

/// Every site's numbers, by site; the lists are equally long.
///
/// # Errors
/// Another site is gone.
pub fn share_numbers(comm: &dyn Communicator, mine: Vec<i64>) -> Result<Vec<Vec<i64>>, RunError> {
    let kind = BufferType::dense(DType::I64, vec![mine.len()]);
    let array = Array::new(kind.shape.clone(), Data::I64(mine))
        .ok_or_else(|| RunError::internal("a list has as many numbers as it has"))?;
    let shared = comm.share(vec![array.into()], &vec![vec![kind]; comm.sites() as usize])?;
    Ok(shared
        .iter()
        .flatten()
        .map(|buffer| match buffer.to_host().data() {
            Data::I64(numbers) => numbers.clone(),
            _ => vec![],
        })
        .collect())
}

/// Ends the run at every site if one of them has failed.
pub(crate) fn agree(comm: &dyn Communicator, mine: Option<RunError>) -> Result<(), RunError> {
    match comm.agree(mine.map(|error| error.encode()))? {
        None => Ok(()),
        Some((site, text)) => Err(RunError::decode(site, &text)),
    }
}

/// FNV-1a: the same on every machine and in every build.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
