//! What a session gives a plan: rows of the data, what is carried, and the numbers of the step.
//!
//! A site reads the rows and boxes that the placement gives it, from the data themselves; nothing is moved. Must not know what a plan
//! does with them.
//!
//! ```text
//! X {n: 64/2} @ PART(n), site 1 of 2, rows 17 3 60 …   ->   reads rows 32.. of the list, each by its own place in the file
//! ```

use super::resident::Residents;
use crate::Options;
use crate::error::{ErrorKind, RunError};
use crate::store::Tuples;
use ein_array::Array;
use ein_comm::Communicator;
use ein_data::Reader;
use ein_device::{Device, Draw, MappedFile};
use ein_plan::source::fed::{EPOCH, ROWS, SHARE, STEP, UPDATE};
use ein_plan::training::BatchInput;
use ein_plan::{DType, FileRef, Format, ListColumn, Mesh, RelationType, Source};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What a step, or a part of one, is given.
#[derive(Clone)]
pub(crate) struct Batch<'a> {
    /// The step of the block, from 0.
    pub step: u64,
    /// The epoch, from 0.
    pub epoch: u64,
    /// How many updates the optimizer's states have seen.
    pub update: u64,
    /// The part's share of the batch.
    pub share: f64,
    /// Numbers of its rows.
    pub rows: Vec<u64>,
    /// What tells its random numbers from those of others.
    pub round: String,
    /// The data.
    pub inputs: &'a [BatchInput],
}

impl Batch<'_> {
    /// Whether a step is given the batch's rows of this tensor, not all of it.
    pub fn reads_rows_of(&self, name: &str) -> bool {
        self.inputs.iter().any(|input| input.name == name)
    }
}

/// Data of at most so many bytes are read in one go when they are opened: the rows of a batch are then copied, not read one by one.
const SMALL: u64 = 4 << 20;

/// Data that rows are read of.
enum Rows {
    File(Reader),
    /// A file in memory, and where the rows begin in it.
    Mapped(Reader, Box<dyn MappedFile>, usize),
    Made(Source),
    Whole(Arc<Array>),
    /// A column of the list of a sparse tensor.
    Listed(Reader, ListColumn),
}

/// All data of a session, opened once.
#[derive(Default)]
pub(crate) struct Data(BTreeMap<String, Rows>);

impl Data {
    /// Opens the files that a batch reads and that are not open yet.
    pub fn open(&mut self, batch: &Batch<'_>, options: &Options) -> Result<(), RunError> {
        for input in batch.inputs {
            if !input.constant && !self.0.contains_key(&input.name) {
                let rows = opened(input, options)?;
                self.0.insert(input.name.clone(), rows);
            }
        }
        Ok(())
    }

    /// Brings the constants that a batch reads by rows to every site. All sites call it.
    pub fn gather(
        &mut self,
        batch: &Batch<'_>,
        residents: &Residents,
        places: (&dyn Communicator, &dyn Device),
    ) -> Result<(), RunError> {
        for input in batch.inputs {
            if input.constant && !self.0.contains_key(&input.name) {
                let whole = residents.whole(&input.name, places)?;
                let whole = whole.ok_or_else(|| {
                    RunError::internal(format!("`{}` has not been computed", input.name))
                })?;
                self.0
                    .insert(input.name.clone(), Rows::Whole(whole.to_host()));
            }
        }
        Ok(())
    }
}

fn opened(input: &BatchInput, options: &Options) -> Result<Rows, RunError> {
    if let Source::Listed {
        tensor,
        file,
        dtype,
        column,
        ..
    } = &input.source
    {
        let reader = crate::source::opened_list(tensor, file.as_ref(), *dtype, options)?;
        return Ok(Rows::Listed(reader, *column));
    }
    let file = match (options.inputs.get(&input.name), &input.source) {
        (Some(file), _) => file.clone(),
        (None, Source::Load(file)) => FileRef {
            path: crate::source::join(&options.base, &file.path),
            key: file.key.clone(),
        },
        (None, Source::Unbound | Source::Fed | Source::Kept) => {
            return Err(RunError::new(
                "E0710",
                ErrorKind::Data,
                format!("the input `{}` has no data", input.name),
            )
            .help(format!("name a file: --input {0}={0}.npy", input.name)));
        }
        (None, made) => return Ok(Rows::Made(made.clone())),
    };
    let failed = |error| RunError::data(ErrorKind::Data, error);
    let reader = Reader::open_for(&file, input.dtype, &input.shape).map_err(failed)?;
    let extents: Vec<Option<u64>> = input.shape.iter().copied().map(Some).collect();
    let header = reader.header();
    header
        .expect(&file.path, input.dtype, &extents)
        .map_err(failed)?;
    let bytes = Format::default().bytes_of(input.dtype, &input.shape);
    if bytes > SMALL {
        let plain = reader.plain().map_err(failed)?;
        let mapped = plain
            .and_then(|(file, offset)| Some((options.device.map_file(file)?, offset as usize)));
        return Ok(match mapped {
            Some((mapped, offset)) if input.axis == 0 => Rows::Mapped(reader, mapped, offset),
            _ => Rows::File(reader),
        });
    }
    let all: Vec<(u64, u64)> = input.shape.iter().map(|extent| (0, *extent)).collect();
    Ok(Rows::Whole(Arc::new(reader.read(&all).map_err(failed)?)))
}

/// Everything that a plan may ask for.
pub(crate) struct Feed<'a> {
    /// What is carried.
    pub residents: &'a Residents,
    /// What of it the plan may write over: given once, for good.
    pub handed: Mutex<BTreeMap<String, Tuples>>,
    /// The data.
    pub data: &'a Data,
    /// The rows and numbers, in a step.
    pub batch: Option<&'a Batch<'a>>,
}

impl Feed<'_> {
    /// The stream of a random source that is drawn anew in every step.
    pub fn stream(&self, name: &str) -> Option<String> {
        self.batch.map(|batch| format!("{name}@{}", batch.round))
    }

    /// The tuples of a source at a site.
    pub fn tuples(
        &self,
        name: &str,
        kind: &RelationType,
        (site, mesh): (u32, &Mesh),
        options: &Options,
    ) -> Result<Tuples, RunError> {
        let mut handed = self.handed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tuples) = handed.remove(name) {
            return Ok(tuples);
        }
        drop(handed);
        if let Some(resident) = self.residents.get(name)
            && !self.is_batched(name)
        {
            return Ok(resident.tuples.clone());
        }
        let missing = || RunError::internal(format!("the session has no `{name}`"));
        let batch = self.batch.ok_or_else(missing)?;
        let mut tuples = Tuples::new();
        for key in kind.keys_at(site, mesh) {
            let ranges = kind.ranges(&key);
            let array = match batch.inputs.iter().find(|input| input.name == name) {
                Some(input) => match self.data.0.get(&input.name) {
                    Some(Rows::Listed(reader, column)) => {
                        listed((reader, *column), batch, kind, &ranges)?
                    }
                    _ => self.rows(input, batch, &ranges, options)?,
                },
                None => number(name, batch, &ranges).ok_or_else(missing)?,
            };
            tuples.insert(key, vec![options.device.adopt(array.into())]);
        }
        Ok(tuples)
    }

    fn is_batched(&self, name: &str) -> bool {
        self.batch.is_some_and(|batch| batch.reads_rows_of(name))
    }

    /// The rows of a batch's range, neighbours in the data read together.
    fn rows(
        &self,
        input: &BatchInput,
        batch: &Batch<'_>,
        ranges: &[(u64, u64)],
        options: &Options,
    ) -> Result<Array, RunError> {
        let shape: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        let mut array = options.device.staging(input.dtype, &shape);
        let data = self.data.0.get(&input.name);
        let data = data.ok_or_else(|| RunError::internal("the data are not open"))?;
        let (first, count) = ranges[input.axis];
        let wanted = &batch.rows[first as usize..(first + count) as usize];
        let whole = ranges[1..].iter().zip(input.shape.iter().skip(1));
        if input.axis == 0 && whole.into_iter().all(|(range, extent)| range.1 == *extent) {
            match data {
                Rows::Whole(whole) => {
                    lines(&mut array, whole.data().bytes(), wanted);
                    return Ok(array);
                }
                Rows::Mapped(reader, mapped, offset) => {
                    let failed = |error| RunError::data(ErrorKind::Data, reader.unreadable(&error));
                    let bytes = mapped.bytes().map_err(failed)?;
                    lines(&mut array, &bytes[*offset..], wanted);
                    return Ok(array);
                }
                Rows::File(_) | Rows::Made(_) | Rows::Listed(..) => {}
            }
        }
        let mut done = 0;
        while done < wanted.len() {
            let mut run = 1;
            while done + run < wanted.len() && wanted[done + run] == wanted[done] + run as u64 {
                run += 1;
            }
            let mut part = ranges.to_vec();
            part[input.axis] = (wanted[done], run as u64);
            let mut at = vec![0; shape.len()];
            at[input.axis] = done;
            let mut extents = shape.clone();
            extents[input.axis] = run;
            let failed = |error| RunError::data(ErrorKind::Data, error);
            match data {
                // Whole rows stand together.
                Rows::File(reader) | Rows::Mapped(reader, ..) if input.axis == 0 => {
                    let bytes = array.data_mut().bytes_mut();
                    let row = bytes.len() / wanted.len();
                    let own = &mut bytes[done * row..(done + run) * row];
                    reader.read_into(&part, own).map_err(failed)?;
                }
                Rows::File(reader) | Rows::Mapped(reader, ..) => {
                    let read = reader.read(&part).map_err(failed)?;
                    array.copy_box(&at, &read, &vec![0; at.len()], &extents);
                }
                Rows::Made(source) => {
                    let draw = Draw {
                        source,
                        dtype: input.dtype,
                        stream: &input.name,
                        seed: options.seed,
                        rounds: &[],
                        shape: &input.shape,
                    };
                    let made = options.device.generate(&draw, &part).to_host();
                    array.copy_box(&at, &made, &vec![0; at.len()], &extents);
                }
                Rows::Listed(..) => return Err(RunError::internal("a list is read as one")),
                Rows::Whole(whole) => {
                    let from: Vec<usize> = part.iter().map(|(start, _)| *start as usize).collect();
                    array.copy_box(&at, whole, &from, &extents);
                }
            }
            done += run;
        }
        Ok(array)
    }
}

/// A range of a column of the list of the batch's rows.
fn listed(
    (reader, column): (&Reader, ListColumn),
    batch: &Batch<'_>,
    kind: &RelationType,
    ranges: &[(u64, u64)],
) -> Result<Array, RunError> {
    let failed = |error| RunError::data(ErrorKind::Data, error);
    let room = kind.array.dims.first().map_or(0, |dim| dim.extent) as usize;
    let dtype = kind.array.columns[0];
    let column = reader.read_column_of_rows((column, dtype), &batch.rows, room);
    let column = column.map_err(failed)?;
    match ranges {
        [(0, all)] if *all as usize == room => Ok(column),
        [(first, count)] => {
            let mut part = Array::zeros(column.dtype(), &[*count as usize]);
            part.copy_box(&[0], &column, &[*first as usize], &[*count as usize]);
            Ok(part)
        }
        _ => Err(RunError::internal("a column has one dimension")),
    }
}

/// Copies rows to an array, by their numbers; `from` are the bytes of all rows.
fn lines(to: &mut Array, from: &[u8], wanted: &[u64]) {
    let bytes = to.data_mut().bytes_mut();
    let line = bytes.len() / wanted.len().max(1);
    if line == 0 {
        return;
    }
    for (to, row) in bytes.chunks_exact_mut(line).zip(wanted) {
        let at = *row as usize * line;
        to.copy_from_slice(&from[at..at + line]);
    }
}

/// A number of the step, or the numbers of the batch's rows.
fn number(name: &str, batch: &Batch<'_>, ranges: &[(u64, u64)]) -> Option<Array> {
    use ein_array::Data as Values;
    let whole = |value: u64| Values::I64(vec![value as i64]);
    let data = match name {
        STEP => whole(batch.step),
        EPOCH => whole(batch.epoch),
        UPDATE => whole(batch.update),
        SHARE => Values::F64(vec![batch.share]),
        ROWS => {
            let (first, count) = *ranges.first()?;
            let rows = &batch.rows[first as usize..(first + count) as usize];
            Values::I64(rows.iter().map(|row| *row as i64).collect())
        }
        _ => return None,
    };
    debug_assert!(matches!(data.dtype(), DType::I64 | DType::F64));
    Array::new(ranges.iter().map(|(_, n)| *n as usize).collect(), data)
}
