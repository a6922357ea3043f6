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
use ein_array::Array;
use ein_data::{DataError, Reader};
use ein_device::{Buffer, Device, Draw};
use ein_plan::{DType, FileRef, ListColumn, Mesh, Operation, RelationType, Source, Step};
use rayon::prelude::*;
use std::path::Path;

/// A tuple, or why there is none.
type Made = Result<(Vec<u32>, Vec<Buffer>), RunError>;

/// Makes the tuple with a key.
pub(crate) type Maker<'a> = Box<dyn Fn(Vec<u32>) -> Made + Sync + Send + 'a>;

/// The tuples of a source at a site, in these rounds of the loops around it; random ones are those of a stream. Runs on the current thread
/// pool.
pub(crate) fn source(
    names: (&str, &str),
    source: &Source,
    kind: &RelationType,
    (site, mesh): (u32, &Mesh),
    rounds: &[u64],
    options: &Options,
) -> Result<Tuples, RunError> {
    let keys: Vec<Vec<u32>> = kind.keys_at(site, mesh).collect();
    let made = maker(names, source, kind, rounds, options)?;
    let tuples: Vec<Made> = keys.into_par_iter().map(made).collect();
    tuples.into_iter().collect()
}

/// What makes the tuple of a source with a key, in these rounds of the loops around it; see [`source`].
pub(crate) fn maker<'a>(
    (name, stream): (&'a str, &'a str),
    source: &'a Source,
    kind: &'a RelationType,
    rounds: &'a [u64],
    options: &'a Options,
) -> Result<Maker<'a>, RunError> {
    let [dtype] = kind.array.columns.as_slice() else {
        return Err(RunError::internal("a source has one column"));
    };
    let dtype = *dtype;
    let shape: Vec<u64> = kind.array.dims.iter().map(|d| d.extent).collect();
    let made = |part: Result<Buffer, DataError>| {
        part.map_err(|error| RunError::data(ErrorKind::Data, error))
    };
    match source {
        Source::Stacked { leading, parts } => {
            let leading = *leading as usize;
            let (counts, own) = shape.split_at(leading);
            let (counts, own) = (counts.to_vec(), own.to_vec());
            // Every site looks at the headers, also one that reads nothing, so that all find the same mistake.
            let parts = (parts.iter())
                .map(|part| {
                    let stream = stream.replacen(name, &part.name, 1);
                    let origin = Origin::of(&part.name, &part.source, (dtype, &own), options)?;
                    Ok((stream, origin))
                })
                .collect::<Result<Vec<_>, RunError>>()?;
            Ok(Box::new(move |key| {
                let ranges = kind.ranges(&key);
                let extents: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
                let mut array = Array::zeros(dtype, &extents);
                let (first, inner) = ranges.split_at(leading);
                for at in places(first) {
                    let number = number_of(&at, &counts);
                    let (stream, origin) = parts.get(number as usize).ok_or_else(|| {
                        RunError::internal("as many parts as their dimensions count")
                    })?;
                    let part = made(origin.part(stream, dtype, (&own, inner), rounds, options))?;
                    put(&mut array, part.into_host(), &at, first);
                }
                Ok((key, vec![options.device.adopt(array.into())]))
            }))
        }
        plain => {
            let origin = Origin::of(name, plain, (dtype, &shape), options)?;
            Ok(Box::new(move |key| {
                let ranges = kind.ranges(&key);
                let part = made(origin.part(stream, dtype, (&shape, &ranges), rounds, options))?;
                Ok((key, vec![part]))
            }))
        }
    }
}

/// Where the values of a tensor come from.
enum Origin<'a> {
    File(Reader),
    Column(Reader, ListColumn, u32),
    Made(&'a Source),
}

/// Opens the file that lists the elements of a tensor.
pub(crate) fn opened_list(
    tensor: &str,
    file: Option<&FileRef>,
    dtype: DType,
    options: &Options,
) -> Result<Reader, RunError> {
    let file = match (options.inputs.get(tensor), file) {
        (Some(file), _) => file.clone(),
        (None, Some(file)) => beside(file, options),
        (None, None) => return Err(no_data(tensor)),
    };
    Reader::open_as(&file, Some(dtype)).map_err(|error| RunError::data(ErrorKind::Data, error))
}

/// The list that a source is a column of, which has been read, if the next step makes another column of it.
pub(crate) fn list_for(
    source: &Source,
    next: Option<&Step>,
    options: &Options,
) -> Result<Option<Reader>, RunError> {
    let Source::Listed {
        tensor,
        file,
        dtype,
        ..
    } = source
    else {
        return Ok(None);
    };
    let is_shared = next.is_some_and(|next| match &next.operation {
        Operation::Source { source, .. } => source.list() == Some(tensor),
        _ => false,
    });
    if !is_shared {
        return Ok(None);
    }
    let reader = opened_list(tensor, file.as_ref(), *dtype, options)?;
    (reader.count_listed()).map_err(|error| RunError::data(ErrorKind::Data, error))?;
    Ok(Some(reader))
}

impl<'a> Origin<'a> {
    /// Of a tensor of that name, type and shape.
    fn of(
        name: &str,
        source: &'a Source,
        (dtype, shape): (DType, &[u64]),
        options: &Options,
    ) -> Result<Origin<'a>, RunError> {
        let failed = |error| RunError::data(ErrorKind::Data, error);
        if let Source::Listed {
            tensor,
            file,
            dtype: values,
            column,
            by,
        } = source
        {
            let reader = opened_list(tensor, file.as_ref(), *values, options)?;
            let count = reader.count_listed().map_err(failed)?;
            if *column != ListColumn::Starts && count != shape.first().copied() {
                let message = format!(
                    "{}: was changed after the program was planned: it lists another number of elements",
                    reader.path()
                );
                return Err(RunError::new("E0704", ErrorKind::Data, message));
            }
            return Ok(Origin::Column(reader, *column, *by));
        }
        let file = match (options.inputs.get(name), source) {
            (Some(file), _) => file.clone(),
            (None, Source::Load(file)) => beside(file, options),
            (None, Source::Unbound) => return Err(no_data(name)),
            (None, Source::Fed | Source::Kept) => {
                return Err(RunError::internal(format!(
                    "`{name}` is given by a session, and there is none"
                )));
            }
            (None, made) => return Ok(Origin::Made(made)),
        };
        let reader = Reader::open_for(&file, dtype, shape).map_err(failed)?;
        let extents: Vec<Option<u64>> = shape.iter().copied().map(Some).collect();
        let header = reader.header();
        header.expect(&file.path, dtype, &extents).map_err(failed)?;
        Ok(Origin::File(reader))
    }

    /// A box of it.
    fn part(
        &self,
        stream: &str,
        dtype: DType,
        (shape, ranges): (&[u64], &[(u64, u64)]),
        rounds: &[u64],
        options: &Options,
    ) -> Result<Buffer, DataError> {
        match self {
            Origin::File(reader) => read(reader, ranges, &*options.device),
            Origin::Column(reader, column, by) => {
                let (first, count) = ranges.first().copied().unwrap_or((0, 1));
                let mut array = options.device.staging(dtype, &[count as usize]);
                reader.read_column_into(*column, (*by, first), &mut array)?;
                Ok(options.device.adopt(array.into()))
            }
            Origin::Made(source) => {
                let draw = Draw {
                    source,
                    dtype,
                    stream,
                    seed: options.seed,
                    rounds,
                    shape,
                };
                Ok(options.device.generate(&draw, ranges))
            }
        }
    }
}

/// A default file, found from where the run stands.
fn beside(file: &FileRef, options: &Options) -> FileRef {
    FileRef {
        path: join(&options.base, &file.path),
        key: file.key.clone(),
    }
}

fn no_data(name: &str) -> RunError {
    let message = format!("the input `{name}` has no data");
    let error = RunError::new("E0710", ErrorKind::Data, message);
    error.help(format!("name a file: --input {name}={name}.npy"))
}

/// A box of a file, in the memory of a device.
pub(crate) fn read(
    reader: &Reader,
    ranges: &[(u64, u64)],
    device: &dyn Device,
) -> Result<Buffer, DataError> {
    let shape: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
    let mut array = device.staging(reader.header().stored().dtype, &shape);
    reader.read_into(ranges, array.data_mut().bytes_mut())?;
    Ok(device.adopt(array.into()))
}

/// Puts a tensor at its place among those that are stored behind each other; `first`: the box of places that `array` holds.
pub(crate) fn put(array: &mut Array, part: Array, at: &[u64], first: &[(u64, u64)]) {
    let extent = [vec![1; at.len()].as_slice(), part.shape()].concat();
    let part = part.reshaped(extent.clone());
    let mut to = vec![0; extent.len()];
    for (to, (at, (start, _))) in to.iter_mut().zip(at.iter().zip(first)) {
        *to = (at - start) as usize;
    }
    array.copy_box(&to, &part, &vec![0; extent.len()], &extent);
}

/// The points of a box, in row-major order.
pub(crate) fn places(ranges: &[(u64, u64)]) -> Vec<Vec<u64>> {
    ranges.iter().fold(vec![vec![]], |points, (start, count)| {
        let longer = points.iter().flat_map(|point: &Vec<u64>| {
            (*start..start + count).map(move |at| [point.as_slice(), &[at]].concat())
        });
        longer.collect()
    })
}

/// Which of parts that stand behind each other, in row-major order, is at a place.
pub(crate) fn number_of(place: &[u64], counts: &[u64]) -> u64 {
    let digits = place.iter().zip(counts);
    digits.fold(0, |number, (at, count)| number * count + at)
}

pub(crate) fn join(base: &Path, path: &str) -> String {
    let joined = base.join(path);
    joined
        .to_str()
        .map_or_else(|| path.to_owned(), ToOwned::to_owned)
}
