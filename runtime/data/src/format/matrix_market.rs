//! The Matrix Market format: a banner, the sizes, one element a line.
//!
//! `coordinate` files list some elements (an element that stands twice is the sum), `array` files all of them, column by column. Symmetric and
//! skew-symmetric files list one triangle. Numbers have the element type that the program declares; a pattern has ones. Must not know boxes or
//! other formats.
//!
//! ```text
//! %%MatrixMarket matrix coordinate real general
//! 3 4 2
//! 1 2 2.5
//! 2 3 -1
//! ```

use crate::error::{DAMAGED, DataError, NO_KEY, Place, WRONG_TYPE};
use crate::format::{Opened, Wanted, npy};
use crate::header::Header;
use crate::lines::Lines;
use crate::listed::{Listed, Unread, in_matrix};
use crate::number::{push, push_again, push_negated, shorten};
use ein_array::Data;
use ein_plan::{DType, Scalar};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Seek, Write};

/// Room for so many elements is made before they are read, whatever a file promises.
const EXPECTED: u64 = 1 << 20;

/// The banner: what stands in the lines behind the sizes.
#[derive(Clone, Copy, Debug)]
struct Banner {
    listed: bool,
    field: Field,
    symmetry: Symmetry,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    Real,
    Integer,
    Pattern,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
}

/// Rows, columns and, of a `coordinate` file, the number of lines that follow.
type Sizes = (u64, u64, u64);

/// Finds the matrix of a file.
pub(crate) fn open(
    file: &File,
    _: u64,
    wanted: &Wanted<'_>,
    place: &mut Place,
) -> Result<Opened, DataError> {
    open_as(file, wanted, place, false)
}

/// Finds the matrix of a file that is compressed by gzip.
pub(crate) fn open_compressed(
    file: &File,
    _: u64,
    wanted: &Wanted<'_>,
    place: &mut Place,
) -> Result<Opened, DataError> {
    open_as(file, wanted, place, true)
}

fn open_as(
    file: &File,
    wanted: &Wanted<'_>,
    place: &mut Place,
    compressed: bool,
) -> Result<Opened, DataError> {
    if let Some(key) = wanted.key {
        let what = format_args!("a .mtx file holds one matrix and no keys, so there is no `{key}`");
        return Err(place.error(NO_KEY, what).help("leave the key out"));
    }
    let mut input = text(file, compressed, place)?;
    let mut lines = Lines::of(&mut *input, place);
    let banner = banner(&mut lines)?;
    let (rows, columns, _) = sizes(&mut lines, banner)?;
    let natural = match banner.field {
        Field::Integer => DType::I64,
        Field::Real | Field::Pattern => DType::F64,
    };
    let header = Header {
        dtype: wanted.dtype.unwrap_or(natural),
        shape: vec![rows, columns],
    };
    header.fits(place)?;
    let of = header.clone();
    let load = move |file: &File, place: &Place| load(file, compressed, &of, place);
    Ok(Opened::Listed(Unread {
        header,
        at_least: false,
        load: Box::new(load),
    }))
}

/// The text of a file, from its beginning.
fn text<'a>(
    file: &'a File,
    compressed: bool,
    place: &Place,
) -> Result<Box<dyn BufRead + 'a>, DataError> {
    let mut input = file;
    input.rewind().map_err(|error| place.read_failed(&error))?;
    let plain = BufReader::with_capacity(1 << 18, input);
    Ok(match compressed {
        false => Box::new(plain),
        true => Box::new(BufReader::with_capacity(
            1 << 18,
            MultiGzDecoder::new(plain),
        )),
    })
}

fn banner(lines: &mut Lines<'_>) -> Result<Banner, DataError> {
    let line = lines.next()?.unwrap_or("").to_ascii_lowercase();
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let ["%%matrixmarket", "matrix", form, field, symmetry] = words[..] else {
        let what = "a Matrix Market file begins with `%%MatrixMarket matrix coordinate real general` or such";
        return Err(lines.wrong(what));
    };
    let listed = match form {
        "coordinate" => true,
        "array" => false,
        other => {
            return Err(lines.wrong(format_args!(
                "`{}` is neither `coordinate` nor `array`",
                shorten(other)
            )));
        }
    };
    let field = match field {
        "real" | "double" => Field::Real,
        "integer" | "unsigned-integer" => Field::Integer,
        "pattern" if listed => Field::Pattern,
        "complex" => {
            let error = lines.wrong("Matrix Market files of complex numbers are not read");
            let error = DataError {
                code: WRONG_TYPE,
                ..error
            };
            return Err(error.help("write the real and the imaginary part as two files"));
        }
        other => {
            let what = format_args!(
                "`{}` is none of `real`, `integer` and `pattern`",
                shorten(other)
            );
            return Err(lines.wrong(what));
        }
    };
    let symmetry = match symmetry {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" if field != Field::Pattern => Symmetry::Skew,
        other => {
            let what = format_args!(
                "`{}` is none of `general`, `symmetric` and `skew-symmetric`",
                shorten(other)
            );
            return Err(lines.wrong(what));
        }
    };
    Ok(Banner {
        listed,
        field,
        symmetry,
    })
}

fn sizes(lines: &mut Lines<'_>, banner: Banner) -> Result<Sizes, DataError> {
    let wanted = if banner.listed { 3 } else { 2 };
    loop {
        let Some(line) = lines.next()? else {
            return Err(lines.wrong("the file ends before its sizes do"));
        };
        if line.starts_with('%') || line.trim().is_empty() {
            continue;
        }
        let numbers: Option<Vec<u64>> =
            (line.split_ascii_whitespace().map(|word| word.parse().ok())).collect();
        let numbers = numbers.filter(|numbers| numbers.len() == wanted);
        let Some(numbers) = numbers else {
            let what = match banner.listed {
                true => "rows, columns and number of elements are expected here",
                false => "rows and columns are expected here",
            };
            return Err(lines.wrong(what));
        };
        let count = numbers.get(2).copied().unwrap_or(0);
        if banner.symmetry != Symmetry::General && numbers[0] != numbers[1] {
            let what = "a symmetric matrix has as many rows as columns";
            return Err(lines.wrong(what));
        }
        return Ok((numbers[0], numbers[1], count));
    }
}

/// Reads all elements.
fn load(
    file: &File,
    compressed: bool,
    header: &Header,
    place: &Place,
) -> Result<Listed, DataError> {
    let mut input = text(file, compressed, place)?;
    let mut lines = Lines::of(&mut *input, place);
    let banner = banner(&mut lines)?;
    let (rows, columns, count) = sizes(&mut lines, banner)?;
    if header.shape != [rows, columns] {
        return Err(place.error(DAMAGED, "was changed while it was read"));
    }
    let mut list = List {
        banner,
        rows,
        columns,
        places: Vec::with_capacity(count.min(EXPECTED) as usize),
        values: Data::zeros(header.dtype, 0),
    };
    let count = match banner.listed {
        true => count,
        false => list.cells(),
    };
    let (mut read, mut cell) = (0, (0, 0));
    while let Some(line) = lines.next()? {
        let line = line.trim();
        if line.is_empty() || line.starts_with('%') {
            continue;
        }
        if read == count {
            return Err(lines.wrong(format_args!(
                "an element too many: the file promises {count}"
            )));
        }
        read += 1;
        let taken = match banner.listed {
            true => list.take_listed(line),
            false => {
                let at = list.next_cell(&mut cell);
                list.take(at, line)
            }
        };
        taken.map_err(|why| lines.wrong(why))?;
    }
    if read < count {
        let what = format_args!("is truncated: it promises {count} elements and has {read}");
        return Err(place.error(DAMAGED, what));
    }
    Ok(Listed::new(header.clone(), list.places, list.values))
}

/// The elements that were read.
struct List {
    banner: Banner,
    rows: u64,
    columns: u64,
    places: Vec<u64>,
    values: Data,
}

impl List {
    /// Number of elements of an `array` file.
    fn cells(&self) -> u64 {
        let below = u64::from(self.banner.symmetry == Symmetry::Skew);
        let triangle = |n: u64| n.saturating_sub(below).saturating_mul(n + 1 - below) / 2;
        match self.banner.symmetry {
            Symmetry::General => self.rows.saturating_mul(self.columns),
            Symmetry::Symmetric | Symmetry::Skew => triangle(self.rows),
        }
    }

    /// The place of the next element of an `array` file, column by column.
    fn next_cell(&self, (row, column): &mut (u64, u64)) -> (u64, u64) {
        let begin = |column: u64| match self.banner.symmetry {
            Symmetry::General => 0,
            Symmetry::Symmetric => column,
            Symmetry::Skew => column + 1,
        };
        *row = (*row).max(begin(*column));
        if *row >= self.rows {
            *column += 1;
            *row = begin(*column);
        }
        let at = (*row, *column);
        *row += 1;
        at
    }

    /// Takes a line `row column value`.
    fn take_listed(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_ascii_whitespace();
        let mut number = |name: &str, most: u64| {
            let word = words.next().unwrap_or("");
            match word.parse::<u64>() {
                Ok(at) if (1..=most).contains(&at) => Ok(at - 1),
                Ok(at) => Err(format!("{name} {at} is not in 1 to {most}")),
                Err(_) => Err(format!("`{}` is no {name}", shorten(word))),
            }
        };
        let at = (number("row", self.rows)?, number("column", self.columns)?);
        let value = match self.banner.field {
            Field::Pattern => "1",
            Field::Real | Field::Integer => words.next().ok_or("the value is missing")?,
        };
        match words.next() {
            Some(word) => Err(format!("`{}` stands behind the element", shorten(word))),
            None => self.take(at, value),
        }
    }

    /// Takes an element, and its mirror image.
    fn take(&mut self, (row, column): (u64, u64), value: &str) -> Result<(), String> {
        push(&mut self.values, value)?;
        let is_zero = match self.values.get(self.values.len() - 1) {
            Scalar::Float(x) => x == 0.0,
            Scalar::Int(x) => x == 0,
            Scalar::Bool(x) => !x,
        };
        if self.banner.symmetry == Symmetry::Skew && row == column && !is_zero {
            let at = row + 1;
            return Err(format!(
                "a skew-symmetric matrix has zeros on its diagonal, and {} at row {at}",
                shorten(value)
            ));
        }
        self.places.push(in_matrix(row, column, self.columns));
        if self.banner.symmetry == Symmetry::General || row == column {
            return Ok(());
        }
        self.places.push(in_matrix(column, row, self.columns));
        match self.banner.symmetry {
            Symmetry::Skew if !push_negated(&mut self.values) => {
                let dtype = self.values.dtype();
                return Err(format!(
                    "a skew-symmetric matrix has negative numbers, and {dtype} has none"
                ));
            }
            Symmetry::Skew => {}
            Symmetry::General | Symmetry::Symmetric => push_again(&mut self.values),
        }
        Ok(())
    }
}

/// The head of the file from which [`pack`] makes a matrix: that of a .npy file.
pub(crate) fn head(header: &Header, place: &Place) -> Result<Vec<u8>, DataError> {
    super::expect_matrix(header, ".mtx", place)?;
    npy::head(header, place)
}

/// Writes the elements that are not 0 of a complete .npy file.
pub(crate) fn pack(from: &File, to: &File, _: &str, size: u64) -> io::Result<()> {
    let mut count = 0u64;
    let header = npy::for_each_element(from, size, |_, _, _| {
        count += 1;
        Ok(())
    })?;
    let field = match header.dtype {
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => "real",
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => "integer",
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => "integer",
        DType::Bool => "pattern",
        DType::C64 | DType::C128 => return Err(io::Error::other("complex numbers")),
    };
    let mut target = to;
    target.rewind()?;
    let mut output = BufWriter::with_capacity(1 << 20, target);
    let (rows, columns) = (header.shape[0], header.shape[1]);
    writeln!(output, "%%MatrixMarket matrix coordinate {field} general")?;
    writeln!(output, "{rows} {columns} {count}")?;
    npy::for_each_element(from, size, |at, part, number| {
        let (row, column) = (at / columns + 1, at % columns + 1);
        match part.get(number) {
            // The shortest text of a double that stands for a narrower number, too, is read back as that number.
            Scalar::Float(x) => writeln!(output, "{row} {column} {x:?}"),
            Scalar::Int(x) if part.dtype() == DType::U64 => {
                writeln!(output, "{row} {column} {}", x as u64)
            }
            Scalar::Int(x) => writeln!(output, "{row} {column} {x}"),
            Scalar::Bool(_) => writeln!(output, "{row} {column}"),
        }
    })?;
    output.flush()?;
    drop(output);
    let end = target.stream_position()?;
    to.set_len(end)
}
