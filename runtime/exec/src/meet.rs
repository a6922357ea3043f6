//! What sites tell each other beside tensors: what they were started with, numbers, that one of them has failed.
//!
//! Must not know what a plan does.
//!
//! ```text
//! site 2 was started with another program than site 0
//! ```

use crate::Options;
use crate::error::{ErrorKind, RunError};
use ein_array::{Array, Data};
use ein_comm::{ArrayKind, Communicator};
use ein_plan::{DType, Plan};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Sites compare what they were started with: plans that all walk together, and those that each walks by itself. Returns a token that tells
/// this run from others.
pub(crate) fn meet(
    (plans, own): (&[&Plan], &[&Plan]),
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
        seed,
        threads: _,
        cores: _,
        base: _,
        inputs,
        saves,
        note,
        patience: _,
        spill: _,
    } = options;
    let given = hash(format!("{seed} {inputs:?} {saves:?} {note:?}").as_bytes());
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

/// Every site's numbers, by site; the lists are equally long.
///
/// # Errors
/// Another site is gone.
pub fn share_numbers(comm: &dyn Communicator, mine: Vec<i64>) -> Result<Vec<Vec<i64>>, RunError> {
    let kind = ArrayKind {
        dtype: DType::I64,
        shape: vec![mine.len()],
    };
    let array = Array::new(kind.shape.clone(), Data::I64(mine))
        .ok_or_else(|| RunError::internal("a list has as many numbers as it has"))?;
    let shared = comm.share(
        vec![Arc::new(array)],
        &vec![vec![kind]; comm.sites() as usize],
    )?;
    Ok(shared
        .iter()
        .flatten()
        .map(|array| match array.data() {
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
