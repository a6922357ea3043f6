//! What a run gives out: files that all sites write in place, and small outputs or corners printed at site 0.
//!
//! No site ever holds a whole distributed output. Files replace their targets only when every site has
//! written all of them; after a failure anywhere the targets are as they were. Outputs with one `.npz` file as their target are
//! its arrays. Before anything is given out, all assertions have to hold. Must not know formats.
//!
//! ```text
//! C -> c.npy {i: 9/3} @ PART(i): site 0 makes the temporary; 0 writes rows 0..6, 1 rows 6..9; agree; rename
//! ```

use crate::Options;
use crate::corner::Corner;
use crate::error::{ErrorKind, RunError};
use crate::meet::agree;
use crate::print::Printed;
use crate::resting::AtRest;
use crate::store::Store;
use ein_array::Array;
use ein_comm::Communicator;
use ein_data::{DataError, Writer};
use ein_device::{Buffer, BufferType};
use ein_plan::relation::sender;
use ein_plan::{Output, Plan, Scalar};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What is there at a site.
#[derive(Clone, Copy)]
pub(crate) struct Held<'a> {
    pub store: &'a Store,
    pub at_rest: &'a AtRest,
}

/// What was printed, and what was saved where.
type Given = (Vec<Printed>, Vec<(String, PathBuf)>);

/// Looks, before anything is computed, whether the outputs can be written: site 0 makes room for all of
/// them at once and gives it back.
pub(crate) fn check(plan: &Plan, options: &Options, token: &str) -> Result<(), RunError> {
    let mut targets: BTreeMap<PathBuf, &str> = BTreeMap::new();
    let mut writers = vec![];
    for (number, output) in plan.outputs.iter().enumerate() {
        let Some(path) = target(output, options) else {
            continue;
        };
        if let Some(other) = targets.insert(absolute(&path), &output.name)
            && !Writer::holds_several(&path)
        {
            return Err(RunError::new(
                "E0723",
                ErrorKind::Output,
                format!(
                    "`{other}` and `{}` are both to be written to {}",
                    output.name,
                    path.display()
                ),
            )
            .in_output(plan, number));
        }
        let made = open(
            Writer::create,
            output,
            &path,
            &own_token(token, number, &path),
        );
        writers.push(made.map_err(|error| write_error(error).in_output(plan, number))?);
    }
    writers.into_iter().for_each(Writer::discard);
    Ok(())
}

/// Writes and prints the outputs; every site calls it when all relations are there.
pub(crate) fn outputs(
    plan: &Plan,
    comm: &dyn Communicator,
    options: &Options,
    held: Held<'_>,
    token: &str,
) -> Result<Given, RunError> {
    asserted(plan, comm, held)?;
    let mut printed = vec![];
    for output in given(plan).filter(|output| output.file.is_none()) {
        printed.extend(print(plan, comm, held, output)?);
    }
    let files: Vec<(usize, &Output, PathBuf)> = plan
        .outputs
        .iter()
        .enumerate()
        .filter_map(|(number, output)| Some((number, output, target(output, options)?)))
        .collect();
    if !files.is_empty() {
        save(plan, comm, held, &files, token)?;
    }
    let saved = files
        .into_iter()
        .map(|(_, output, path)| (output.name.clone(), path))
        .collect();
    Ok((printed, saved))
}

/// The outputs that are printed or written.
fn given(plan: &Plan) -> impl Iterator<Item = &Output> {
    plan.outputs
        .iter()
        .filter(|output| output.asserts.is_none())
}

/// Stops the run if an assertion does not hold; all sites agree on the first one.
fn asserted(plan: &Plan, comm: &dyn Communicator, held: Held<'_>) -> Result<(), RunError> {
    for (number, output) in plan.outputs.iter().enumerate() {
        let Some(message) = &output.asserts else {
            continue;
        };
        let printed = print(plan, comm, held, output)?;
        let holds =
            printed.is_none_or(|printed| printed.values.data().get(0) == Scalar::Bool(true));
        let failure = (!holds).then(|| {
            RunError::new("E0727", ErrorKind::Program, message.clone()).in_output(plan, number)
        });
        agree(comm, failure)?;
    }
    Ok(())
}

/// The file that an output is written to.
fn target(output: &Output, options: &Options) -> Option<PathBuf> {
    if output.asserts.is_some() {
        return None;
    }
    let named = options.saves.get(&output.name).cloned();
    let own = named.or_else(|| output.file.as_ref().map(PathBuf::from));
    own.or_else(|| options.archive.clone())
}

/// The token of an output's temporary: outputs of one archive are written to a temporary each.
fn own_token(token: &str, number: usize, path: &Path) -> String {
    match Writer::holds_several(path) {
        true => format!("{token}-{number}"),
        false => token.to_owned(),
    }
}

/// The same path for the same file, as far as that can be told.
fn absolute(path: &Path) -> PathBuf {
    std::fs::canonicalize(path)
        .or_else(|_| std::path::absolute(path))
        .unwrap_or_else(|_| path.to_owned())
}

/// [`Writer::create`] or [`Writer::attach`].
type Opening = fn(&Path, Option<&str>, ein_plan::DType, &[u64], &str) -> Result<Writer, DataError>;

fn open(opening: Opening, output: &Output, path: &Path, token: &str) -> Result<Writer, DataError> {
    let single = path
        .extension()
        .is_none_or(|extension| extension.eq_ignore_ascii_case("npy"));
    let key = (!single).then_some(output.name.as_str());
    let (dtype, shape) = match (output.complex, output.dtype.complex()) {
        (true, Some(dtype)) => (dtype, &output.shape[..output.shape.len() - 1]),
        _ => (output.dtype, &output.shape[..]),
    };
    opening(path, key, dtype, shape, token)
}

fn write_error(error: DataError) -> RunError {
    RunError::data(ErrorKind::Output, error)
}

/// All sites write all files, agree that all could, and site 0 puts them in place.
fn save(
    plan: &Plan,
    comm: &dyn Communicator,
    held: Held<'_>,
    files: &[(usize, &Output, PathBuf)],
    token: &str,
) -> Result<(), RunError> {
    let first = comm.site() == 0;
    let mut writers = vec![];
    let mut opened = |opening: Opening| -> Option<RunError> {
        for (number, output, path) in files {
            match open(opening, output, path, &own_token(token, *number, path)) {
                Ok(writer) => writers.push(writer),
                Err(error) => return Some(write_error(error).in_output(plan, *number)),
            }
        }
        None
    };
    // The temporaries must be there before the others look for them. A site that returns drops its
    // writers, and with them the temporaries that it made.
    let failure = if first { opened(Writer::create) } else { None };
    agree(comm, failure)?;
    let failure = if first { None } else { opened(Writer::attach) };
    agree(comm, failure)?;
    let mut failure = None;
    for ((number, output, _), writer) in files.iter().zip(&writers) {
        if let Err(error) = write_boxes(plan, comm, held, output, writer) {
            failure = Some(error.in_output(plan, *number));
            break;
        }
    }
    if let Err(error) = agree(comm, failure) {
        if error.kind == ErrorKind::Lost {
            // It may be site 0 that is lost, so whoever is left cleans up.
            writers.into_iter().for_each(Writer::discard);
        }
        return Err(error);
    }
    let mut failure = None;
    if first {
        let mut together: Vec<(usize, PathBuf, Vec<Writer>)> = vec![];
        for ((number, _, path), writer) in files.iter().zip(writers) {
            let path = absolute(path);
            match together.iter_mut().find(|(_, of, _)| *of == path) {
                Some((.., writers)) => writers.push(writer),
                None => together.push((*number, path, vec![writer])),
            }
        }
        for (number, _, writers) in together {
            if let Err(error) = Writer::finish_together(writers) {
                failure = Some(write_error(error).in_output(plan, number));
                break;
            }
        }
    }
    agree(comm, failure)
}

/// This site's part of an output: its tuples, or, where several sites hold the same, its share of them.
fn write_boxes(
    plan: &Plan,
    comm: &dyn Communicator,
    held: Held<'_>,
    output: &Output,
    writer: &Writer,
) -> Result<(), RunError> {
    let kind = plan.kind(output.relation);
    for (number, key) in kind.all_keys().enumerate() {
        let holders = kind.holders(&key, &plan.mesh);
        if holders[number % holders.len()] == comm.site() {
            let buffer = column(plan, held, output, &key)?;
            writer
                .write(&kind.ranges(&key), &buffer.to_host())
                .map_err(write_error)?;
        }
    }
    Ok(())
}

fn column(plan: &Plan, held: Held<'_>, output: &Output, key: &[u32]) -> Result<Buffer, RunError> {
    let relation = output.relation;
    let tuple = match plan.is_streamed(relation) {
        true => Some(held.at_rest.tuple(relation, plan.kind(relation), key)?),
        false => held
            .store
            .get(relation)
            .and_then(|tuples| tuples.get(key))
            .cloned(),
    };
    tuple
        .and_then(|tuple| tuple.into_iter().next())
        .ok_or_else(|| {
            RunError::internal(format!(
                "the tuple {key:?} of the output `{}` is not where its placement says",
                output.name
            ))
        })
}

/// Gathers what is printed of an output at site 0; `None` at the other sites.
pub(crate) fn print(
    plan: &Plan,
    comm: &dyn Communicator,
    held: Held<'_>,
    output: &Output,
) -> Result<Option<Printed>, RunError> {
    let (me, sites) = (comm.site(), comm.sites());
    let kind = plan.kind(output.relation);
    let corner = Corner::of(&output.shape, output.complex);
    let mut incoming: Vec<Vec<BufferType>> = vec![vec![]; sites as usize];
    let mut starts: Vec<Vec<Vec<usize>>> = vec![vec![]; sites as usize];
    let mut mine = vec![];
    let mut failure = None;
    for site in 0..sites {
        // Site 0 takes what it holds itself, and only it has to know what the others send.
        if me != 0 && site != me {
            continue;
        }
        for key in kind.keys_at(site, &plan.mesh) {
            if sender(&kind.coordinates(&key, &plan.mesh), 0, &plan.mesh) != site {
                continue;
            }
            let ranges = kind.ranges(&key);
            let (start, shape) = corner.part(&ranges);
            if shape.contains(&0) {
                continue;
            }
            if site == me {
                match column(plan, held, output, &key) {
                    Ok(buffer) => mine.push(corner.cut(&buffer.to_host(), &ranges).into()),
                    Err(error) => failure = Some(error),
                }
            }
            if me == 0 {
                starts[site as usize].push(start);
                incoming[site as usize].push(BufferType::dense(output.dtype, shape));
            }
        }
    }
    agree(comm, failure)?;
    let mut outgoing = vec![vec![]; sites as usize];
    outgoing[0] = mine;
    let arrived = comm.exchange(outgoing, &incoming)?;
    if me != 0 {
        return Ok(None);
    }
    let mut values = Array::zeros(output.dtype, &corner.shape());
    for (start, part) in starts.iter().flatten().zip(arrived.iter().flatten()) {
        let origin = vec![0; start.len()];
        values.copy_box(start, &part.to_host(), &origin, part.shape());
    }
    Ok(Some(Printed {
        name: output.name.clone(),
        shape: output.shape.clone(),
        complex: output.complex,
        edge: corner.edge(),
        values,
    }))
}
