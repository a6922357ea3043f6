//! Sparse matrices as `scipy.sparse.save_npz` writes them: a .npz archive with `format`, `shape`, `data` and arrays of places.
//!
//! All its forms are read: `csr`, `csc`, `coo` (also with more dimensions), `bsr`, `dia`. `csr` is written. Must not know boxes.
//!
//! ```text
//! format csr, shape 3 4, data 2.5 -1, indices 1 2, indptr 0 1 2 2   ->   f32[3, 4], elements 1: 2.5 and 6: -1
//! ```

use crate::archive::{archive, entry_options, first_bytes};
use crate::error::{DAMAGED, DataError, Place, WRONG_TYPE};
use crate::format::{Opened, Wanted, npy, npz};
use crate::header::Header;
use crate::in_order::InOrder;
use crate::listed::{Listed, Unread, in_matrix};
use crate::number::shorten;
use ein_array::{Array, Data};
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use zip::ZipWriter;

/// A longer entry `format` is none.
const LONGEST_NAME: u64 = 4096;

/// The forms of a sparse matrix.
#[derive(Clone, Copy, Debug)]
enum Form {
    CompressedRows,
    CompressedColumns,
    Coordinates,
    BlockRows,
    Diagonals,
}

/// Finds an array of an archive by its key, or without one the sparse matrix that the archive is.
pub(crate) fn open(
    file: &File,
    total: u64,
    wanted: &Wanted<'_>,
    place: &mut Place,
) -> Result<Opened, DataError> {
    if wanted.key.is_none()
        && let Some(matrix) = matrix(file, total, place)?
    {
        return Ok(Opened::Listed(matrix));
    }
    npz::open(file, total, wanted, place)
}

/// The matrix of an archive; `None` if it holds none.
fn matrix(file: &File, total: u64, place: &Place) -> Result<Option<Unread>, DataError> {
    let (keys, _) = npz::arrays(&archive(file, place)?);
    let has = |name: &str| keys.iter().any(|key| key == name);
    if !["format", "shape", "data"].into_iter().all(has) {
        return Ok(None);
    }
    let Some(form) = form(file, place)? else {
        return Ok(None);
    };
    let arrays = Arrays { file, total, place };
    let shape = arrays.numbers("shape")?;
    let header = Header {
        dtype: arrays.array("data")?.header().dtype,
        shape: (shape
            .iter()
            .map(|n| u64::try_from(*n))
            .collect::<Result<_, _>>())
        .map_err(|_| place.error(DAMAGED, "array `shape`: holds a negative size"))?,
    };
    header.fits(place)?;
    if header.dtype.is_complex() {
        let what = format_args!("holds {header}: sparse matrices of complex numbers are not read");
        return Err(place
            .error(WRONG_TYPE, what)
            .help("write it as .npy: numpy.save(\"x.npy\", a.toarray())"));
    }
    if header.shape.len() != 2 && !matches!(form, Form::Coordinates) {
        let what = format_args!("array `shape`: has {} sizes, not two", header.shape.len());
        return Err(place.error(DAMAGED, what));
    }
    let (of, coordinates) = (header.clone(), has("coords"));
    let load = move |file: &File, place: &Place| {
        let arrays = Arrays { file, total, place };
        load(form, &of, coordinates, &arrays)
    };
    Ok(Some(Unread {
        header,
        at_least: false,
        load: Box::new(load),
    }))
}

/// The form that an archive says; `None` if its array `format` is something else.
fn form(file: &File, place: &Place) -> Result<Option<Form>, DataError> {
    let bytes = first_bytes(file, "format.npy", LONGEST_NAME, place)?;
    let Some(head) = bytes.iter().position(|byte| *byte == b'\n') else {
        return Ok(None);
    };
    // Text of one or four bytes a letter.
    let name: Vec<u8> = bytes[head + 1..]
        .iter()
        .copied()
        .filter(|byte| *byte != 0)
        .collect();
    Ok(Some(match name.as_slice() {
        b"csr" => Form::CompressedRows,
        b"csc" => Form::CompressedColumns,
        b"coo" => Form::Coordinates,
        b"bsr" => Form::BlockRows,
        b"dia" => Form::Diagonals,
        other => {
            let name = String::from_utf8_lossy(other);
            let what = format_args!(
                "array `format`: `{}` is no form of a sparse matrix",
                shorten(&name)
            );
            return Err(place.error(DAMAGED, what));
        }
    }))
}

/// The arrays of an archive.
struct Arrays<'a> {
    file: &'a File,
    /// Bytes of the file.
    total: u64,
    place: &'a Place,
}

impl Arrays<'_> {
    fn array(&self, key: &str) -> Result<InOrder, DataError> {
        let wanted = Wanted {
            key: Some(key),
            dtype: None,
            shape: None,
        };
        match npz::open(self.file, self.total, &wanted, &mut self.place.clone())? {
            Opened::InOrder(array) => Ok(array),
            Opened::Listed(_) => Err(self.wrong(key, "is no array")),
        }
    }

    fn whole(&self, key: &str) -> Result<Array, DataError> {
        let stored = self.array(key)?;
        let Header { dtype, shape } = stored.header();
        let all: Vec<(u64, u64)> = shape.iter().map(|n| (0, *n)).collect();
        let extents: Vec<usize> = shape.iter().map(|n| *n as usize).collect();
        let mut array = Array::room(*dtype, &extents);
        let place = Place {
            key: Some(key.to_owned()),
            ..self.place.clone()
        };
        stored.read_into(self.file, &all, array.data_mut().bytes_mut(), &place)?;
        Ok(array)
    }

    /// The elements of an array of integers.
    fn numbers(&self, key: &str) -> Result<Vec<i64>, DataError> {
        let array = self.whole(key)?;
        match array.data() {
            Data::I64(v) => Ok(v.clone()),
            Data::I32(v) => Ok(v.iter().map(|n| i64::from(*n)).collect()),
            other => Err(self.wrong(key, format_args!("holds {}, not integers", other.dtype()))),
        }
    }

    /// As many numbers from 0 to below `extent`.
    fn places(&self, key: &str, count: usize, extent: u64) -> Result<Vec<u64>, DataError> {
        let numbers = self.numbers(key)?;
        if numbers.len() != count {
            let what = format_args!(
                "has {} elements, but `data` asks for {count}",
                numbers.len()
            );
            return Err(self.wrong(key, what));
        }
        let outside = |number: &i64| u64::try_from(*number).map_or(true, |n| n >= extent);
        if let Some(at) = numbers.iter().position(outside) {
            let number = numbers[at];
            let what = format_args!("element {at} is {number}, which is not in 0 to {extent} - 1");
            return Err(self.wrong(key, what));
        }
        Ok(numbers.into_iter().map(|number| number as u64).collect())
    }

    /// The ranges of `groups` groups of `count` elements, of an array of their ends.
    fn groups(&self, groups: u64, count: usize) -> Result<Vec<std::ops::Range<usize>>, DataError> {
        let key = "indptr";
        let ends = self.numbers(key)?;
        if ends.len() as u64 != groups + 1 {
            let what = format_args!("has {} elements, not {}", ends.len(), groups + 1);
            return Err(self.wrong(key, what));
        }
        if ends.first() != Some(&0) || ends.last() != Some(&(count as i64)) {
            let what = format_args!("does not lead from 0 to {count}, the number of places");
            return Err(self.wrong(key, what));
        }
        if let Some(at) = ends.windows(2).position(|pair| pair[0] > pair[1]) {
            let what = format_args!("element {} is less than the one before it", at + 1);
            return Err(self.wrong(key, what));
        }
        Ok(ends
            .windows(2)
            .map(|pair| pair[0] as usize..pair[1] as usize)
            .collect())
    }

    fn wrong(&self, key: &str, what: impl std::fmt::Display) -> DataError {
        self.place
            .error(DAMAGED, format_args!("array `{key}`: {what}"))
    }
}

/// Reads all elements.
fn load(
    form: Form,
    header: &Header,
    coordinates: bool,
    arrays: &Arrays<'_>,
) -> Result<Listed, DataError> {
    let data = arrays.whole("data")?;
    let shape = &header.shape;
    if data.dtype() != header.dtype {
        let place = arrays.place;
        return Err(place.error(DAMAGED, "was changed while it was read"));
    }
    let flat = |rank: usize| match data.shape().len() == rank {
        true => Ok(()),
        false => {
            let what = format_args!("has {} dimensions, not {rank}", data.shape().len());
            Err(arrays.wrong("data", what))
        }
    };
    let count = data.data().len();
    let places = match form {
        Form::CompressedRows | Form::CompressedColumns => {
            flat(1)?;
            let by_row = matches!(form, Form::CompressedRows);
            let (outer, inner) = if by_row {
                (shape[0], shape[1])
            } else {
                (shape[1], shape[0])
            };
            let inner = arrays.places("indices", count, inner)?;
            let groups = arrays.groups(outer, count)?;
            let mut places = Vec::with_capacity(count);
            for (outer, group) in (0u64..).zip(groups) {
                places.extend(inner[group].iter().map(|inner| match by_row {
                    true => in_matrix(outer, *inner, shape[1]),
                    false => in_matrix(*inner, outer, shape[1]),
                }));
            }
            places
        }
        Form::Coordinates => {
            flat(1)?;
            by_coordinates(arrays, shape, count, coordinates)?
        }
        Form::BlockRows => {
            flat(3)?;
            in_blocks(arrays, shape, data.shape())?
        }
        Form::Diagonals => {
            flat(2)?;
            return on_diagonals(arrays, header, &data);
        }
    };
    Ok(Listed::new(header.clone(), places, data.into_data()))
}

/// The places of a list with an array for each dimension, or with one array of all.
fn by_coordinates(
    arrays: &Arrays<'_>,
    shape: &[u64],
    count: usize,
    together: bool,
) -> Result<Vec<u64>, DataError> {
    let mut places = vec![0; count];
    let mut take = |extent: u64, coordinates: &[u64]| {
        for (place, coordinate) in places.iter_mut().zip(coordinates) {
            *place = *place * extent + coordinate;
        }
    };
    if together {
        let key = "coords";
        let all = arrays.numbers(key)?;
        if all.len() != count * shape.len() {
            let what = format_args!("has {} elements, not {}", all.len(), count * shape.len());
            return Err(arrays.wrong(key, what));
        }
        for (extent, coordinates) in shape.iter().zip(all.chunks_exact(count.max(1))) {
            let coordinates = coordinates.iter().map(|at| {
                let inside = u64::try_from(*at).ok().filter(|at| at < extent);
                inside.ok_or_else(|| {
                    let what = format_args!("{at} is not in 0 to {extent} - 1");
                    arrays.wrong(key, what)
                })
            });
            take(*extent, &coordinates.collect::<Result<Vec<_>, _>>()?);
        }
        return Ok(places);
    }
    if shape.len() != 2 {
        let what = format_args!("has {} sizes, but there is no array `coords`", shape.len());
        return Err(arrays.wrong("shape", what));
    }
    take(shape[0], &arrays.places("row", count, shape[0])?);
    take(shape[1], &arrays.places("col", count, shape[1])?);
    Ok(places)
}

/// The places of a list of blocks by block rows.
fn in_blocks(arrays: &Arrays<'_>, shape: &[u64], blocks: &[usize]) -> Result<Vec<u64>, DataError> {
    let (count, height, width) = (blocks[0], blocks[1] as u64, blocks[2] as u64);
    let divides = height > 0 && width > 0;
    if !divides || !shape[0].is_multiple_of(height) || !shape[1].is_multiple_of(width) {
        let what = format_args!(
            "blocks of {height} × {width} do not fill a matrix of {} × {}",
            shape[0], shape[1]
        );
        return Err(arrays.wrong("data", what));
    }
    let columns = arrays.places("indices", count, shape[1] / width)?;
    let groups = arrays.groups(shape[0] / height, count)?;
    let mut places = Vec::with_capacity(count * blocks[1] * blocks[2]);
    for (row, group) in (0u64..).zip(groups) {
        for column in &columns[group] {
            for y in 0..height {
                let first = in_matrix(row * height + y, column * width, shape[1]);
                places.extend(first..first + width);
            }
        }
    }
    Ok(places)
}

/// The elements of diagonals: column `j` of a row of `data` belongs to column `j` of the matrix.
fn on_diagonals(arrays: &Arrays<'_>, header: &Header, data: &Array) -> Result<Listed, DataError> {
    let (rows, columns) = (header.shape[0], header.shape[1]);
    let offsets = arrays.numbers("offsets")?;
    if offsets.len() != data.shape()[0] {
        let what = format_args!(
            "has {} elements, but `data` has {} diagonals",
            offsets.len(),
            data.shape()[0]
        );
        return Err(arrays.wrong("offsets", what));
    }
    let length = data.shape()[1];
    let (mut places, mut from) = (Vec::new(), Vec::new());
    for (number, offset) in offsets.iter().enumerate() {
        for column in 0..columns.min(length as u64) {
            let row = (column as i64)
                .checked_sub(*offset)
                .and_then(|row| u64::try_from(row).ok());
            if let Some(row) = row.filter(|row| *row < rows) {
                places.push(in_matrix(row, column, columns));
                from.push(number * length + column as usize);
            }
        }
    }
    let values = gathered(data.data(), &from);
    Ok(Listed::new(header.clone(), places, values))
}

/// The elements with these numbers.
fn gathered(data: &Data, from: &[usize]) -> Data {
    let mut values = Data::zeros(data.dtype(), from.len());
    let size = data.dtype().size();
    let bytes = data.bytes();
    for (to, from) in values.bytes_mut().chunks_exact_mut(size).zip(from) {
        to.copy_from_slice(&bytes[from * size..(from + 1) * size]);
    }
    values
}

/// The head of the file from which [`pack`] makes a matrix: that of a .npy file.
pub(crate) fn head(header: &Header, place: &Place) -> Result<Vec<u8>, DataError> {
    super::expect_matrix(header, ".csr.npz", place)?;
    npy::head(header, place)
}

/// Writes the elements that are not 0 of a complete .npy file, by rows.
pub(crate) fn pack(from: &File, to: &File, _: &str, size: u64) -> io::Result<()> {
    let (mut places, mut bytes) = (Vec::new(), Vec::new());
    let header = npy::for_each_element(from, size, |at, part, number| {
        let size = part.dtype().size();
        places.push(at);
        bytes.extend_from_slice(&part.bytes()[number * size..][..size]);
        Ok(())
    })?;
    let (rows, columns) = (header.shape[0], header.shape[1]);
    let mut data = Data::zeros(header.dtype, places.len());
    data.bytes_mut().copy_from_slice(&bytes);
    let mut ends = vec![0u64; rows as usize + 1];
    for place in &places {
        ends[(place / columns.max(1)) as usize + 1] += 1;
    }
    for row in 0..rows as usize {
        ends[row + 1] += ends[row];
    }
    let indices: Vec<u64> = places.iter().map(|place| place % columns.max(1)).collect();
    // scipy takes 32 bits where they are enough.
    let narrow = i32::try_from(columns.max(places.len() as u64)).is_ok();
    let integers = |numbers: &[u64]| match narrow {
        true => Data::I32(numbers.iter().map(|n| *n as i32).collect()),
        false => Data::I64(numbers.iter().map(|n| *n as i64).collect()),
    };
    let mut target = to;
    target.rewind()?;
    let mut archive = ZipWriter::new(BufWriter::with_capacity(1 << 20, target));
    let mut put = |key: &str, data: &Data| -> io::Result<()> {
        archive.start_file(
            format!("{key}.npy"),
            entry_options(data.bytes().len() as u64),
        )?;
        archive.write_all(&npy::vector(data)?)
    };
    put("indices", &integers(&indices))?;
    put("indptr", &integers(&ends))?;
    put("shape", &Data::I64(vec![rows as i64, columns as i64]))?;
    put("data", &data)?;
    archive.start_file("format.npy", entry_options(0))?;
    archive.write_all(&npy::text("csr")?)?;
    let mut output = archive.finish()?;
    output.flush()?;
    let end = output.stream_position()?;
    to.set_len(end)
}
