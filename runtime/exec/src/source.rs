//! Sources: each site makes or reads the tuples that the placement gives it, and nothing else.
//!
//! Must not know formats or generators.
//!
//! ```text
//! X = load("x.npy") {n: 1000/4} @ PART(n), site 1 of 2: reads rows 500..1000
//! ```

use crate::Options;
use crate::error::{ErrorKind, RunError};
use crate::store::Tuples;
use ein_data::Reader;
use ein_plan::{FileRef, Mesh, RelationType, Source};
use rayon::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// The tuples of a source at a site, in these rounds of the loops around it; random ones are those of a stream. Runs on the current thread
/// pool.
pub(crate) fn source(
    (name, stream): (&str, &str),
    source: &Source,
    kind: &RelationType,
    (site, mesh): (u32, &Mesh),
    rounds: &[u64],
    options: &Options,
) -> Result<Tuples, RunError> {
    let [dtype] = kind.array.columns.as_slice() else {
        return Err(RunError::internal("a source has one column"));
    };
    let shape: Vec<u64> = kind.array.dims.iter().map(|d| d.extent).collect();
    let keys: Vec<Vec<u32>> = kind.keys_at(site, mesh).collect();
    let file = match (options.inputs.get(name), source) {
        (Some(file), _) => Some(file.clone()),
        (None, Source::Load(file)) => Some(FileRef {
            path: join(&options.base, &file.path),
            key: file.key.clone(),
        }),
        (None, Source::Unbound) => {
            return Err(RunError::new(
                "E0710",
                ErrorKind::Data,
                format!("the input `{name}` has no data"),
            )
            .help(format!("name a file: --input {name}={name}.npy")));
        }
        (None, Source::Fed) => {
            return Err(RunError::internal(format!(
                "`{name}` is given by a session, and there is none"
            )));
        }
        _ => None,
    };
    let failed = |error| RunError::data(ErrorKind::Data, error);
    let reader = match file {
        None => None,
        Some(file) => {
            // Every site looks at the header, also one that reads nothing, so that all find the same mistake.
            let reader = Reader::open(&file).map_err(failed)?;
            let extents: Vec<Option<u64>> = shape.iter().copied().map(Some).collect();
            reader
                .header()
                .expect(&file.path, *dtype, &extents)
                .map_err(failed)?;
            Some(reader)
        }
    };
    keys.into_par_iter()
        .map(|key| {
            let ranges = kind.ranges(&key);
            let array = match &reader {
                Some(reader) => reader.read(&ranges),
                None => Ok(ein_kernels::generate_in_round(
                    source,
                    *dtype,
                    stream,
                    (options.seed, rounds),
                    &shape,
                    &ranges,
                )),
            };
            array.map(|array| (key, vec![Arc::new(array)]))
        })
        .collect::<Vec<_>>()
        .into_iter()
        .collect::<Result<_, _>>()
        .map_err(failed)
}

pub(crate) fn join(base: &Path, path: &str) -> String {
    let joined = base.join(path);
    joined
        .to_str()
        .map_or_else(|| path.to_owned(), ToOwned::to_owned)
}
