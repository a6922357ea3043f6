//! The .npy format: a magic number, a Python dict, the elements.
//!
//! Versions 1 to 3, C and Fortran order, both byte orders. bfloat16 is stored as ml_dtypes stores it, as two raw
//! bytes (`<V2`). Complex numbers are read and written as pairs. Must not know boxes or other formats.
//!
//! ```text
//! \x93NUMPY 1 0 118 {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
//! ```

use crate::error::{DAMAGED, DataError, NO_KEY, Place, WRONG_TYPE};
use crate::format::{Opened, Wanted};
use crate::header::Header;
use crate::in_order::InOrder;
use crate::layout::Order;
use crate::region::Region;
use ein_array::Data;
use ein_plan::{DType, Scalar};
use npyz::{Endianness, TypeChar, TypeStr, WriterBuilder};
use py_literal::Value;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::os::unix::fs::FileExt;

/// A longer header is not one that numpy reads without being told to.
const LONGEST: u64 = 64 << 10;
/// How deep brackets may nest; the parser's time doubles with every level.
const DEEPEST: u32 = 6;

/// Finds the array of a .npy file.
pub(crate) fn open(
    file: &File,
    total: u64,
    wanted: &Wanted<'_>,
    place: &mut Place,
) -> Result<Opened, DataError> {
    if let Some(key) = wanted.key {
        return Err(place
            .error(
                NO_KEY,
                format_args!("a .npy file holds one array and no keys, so there is no `{key}`"),
            )
            .help("leave the key out"));
    }
    let mut input = file;
    input.rewind().map_err(|error| place.read_failed(&error))?;
    let region = parse(&mut BufReader::new(input), total, place)?;
    Ok(Opened::InOrder(InOrder::plain(region)))
}

/// Reads the header at the beginning of `total` bytes and checks that the rest is as long as it says.
pub(crate) fn parse(input: &mut dyn Read, total: u64, place: &Place) -> Result<Region, DataError> {
    let damaged = |why: String| place.error(DAMAGED, why);
    let mut magic = [0; 8];
    if total < 8 {
        return Err(damaged(format!(
            "is not a .npy file, or is truncated: it has only {total} bytes"
        )));
    }
    fill(input, &mut magic, place)?;
    if &magic[..6] != b"\x93NUMPY" {
        return Err(damaged(
            "is not a .npy file: it does not begin with \"\\x93NUMPY\"".to_owned(),
        ));
    }
    let (major, minor) = (magic[6], magic[7]);
    if !(1..=3).contains(&major) || minor != 0 {
        return Err(damaged(format!(
            "is .npy version {major}.{minor}; versions 1.0, 2.0 and 3.0 are known"
        )));
    }
    let cut = || {
        damaged(format!(
            "is truncated: the file has {total} bytes and ends within its header"
        ))
    };
    let width = if major == 1 { 2 } else { 4 };
    let before = 8 + width as u64;
    if total < before {
        return Err(cut());
    }
    let mut length = [0; 4];
    fill(input, &mut length[..width], place)?;
    let length = u64::from(u32::from_le_bytes(length));
    if length > total - before {
        return Err(cut());
    }
    if length > LONGEST {
        return Err(damaged(format!(
            "has a header of {length} bytes; more than {LONGEST} is no plain array"
        )));
    }
    let mut bytes = vec![0; length as usize];
    fill(input, &mut bytes, place)?;
    let text: String = if major == 3 {
        String::from_utf8(bytes).map_err(|_| damaged("its header is not UTF-8".to_owned()))?
    } else {
        bytes.iter().map(|byte| char::from(*byte)).collect()
    };
    let (header, order, swapped) = dict(text.trim_end(), place)?;
    let region = Region {
        header,
        offset: before + length,
        order,
        swapped,
    };
    region.expect_size(total, place)?;
    Ok(region)
}

fn fill(input: &mut dyn Read, bytes: &mut [u8], place: &Place) -> Result<(), DataError> {
    input.read_exact(bytes).map_err(|error| {
        if error.kind() == io::ErrorKind::InvalidData || error.kind() == io::ErrorKind::InvalidInput
        {
            place.error(DAMAGED, format_args!("is damaged: {error}"))
        } else {
            place.read_failed(&error)
        }
    })
}

/// Element type, shape, order and whether bytes are swapped.
fn dict(text: &str, place: &Place) -> Result<(Header, Order, bool), DataError> {
    let damaged = |why: &str| {
        place.error(
            DAMAGED,
            format_args!("its header cannot be read: {why}: {}", shorten(text)),
        )
    };
    let mut depth = 0u32;
    for c in text.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err(damaged("its brackets nest too deep"));
        }
    }
    let Ok(Value::Dict(entries)) = text.parse::<Value>() else {
        return Err(damaged("it is not a Python dict"));
    };
    let get = |name: &str| {
        entries
            .iter()
            .find(|(key, _)| matches!(key, Value::String(key) if key == name))
            .map(|(_, value)| value)
    };
    let order = match get("fortran_order") {
        Some(Value::Boolean(false)) => Order::C,
        Some(Value::Boolean(true)) => Order::Fortran,
        _ => return Err(damaged("'fortran_order' is not True or False")),
    };
    let Some(Value::Tuple(extents) | Value::List(extents)) = get("shape") else {
        return Err(damaged("'shape' is not a tuple"));
    };
    let shape = extents
        .iter()
        .map(|extent| match extent {
            Value::Integer(extent) => extent.to_string().parse::<u64>().ok(),
            _ => None,
        })
        .collect::<Option<Vec<u64>>>()
        .ok_or_else(|| damaged("'shape' holds something that is not a size"))?;
    let (dtype, swapped) = match get("descr") {
        Some(Value::String(descr)) => {
            let descr: TypeStr = descr.parse().map_err(|_| {
                place
                    .error(
                        WRONG_TYPE,
                        format_args!("its element type '{}' is unknown", shorten(descr)),
                    )
                    .help("convert it with numpy: x.astype(\"float32\")")
            })?;
            element_type(&descr, place)?
        }
        Some(Value::List(fields)) => {
            let names: Vec<_> = fields
                .iter()
                .filter_map(|field| match field {
                    Value::Tuple(parts) => parts.first(),
                    _ => None,
                })
                .filter_map(|name| match name {
                    Value::String(name) => Some(format!("`{}`", shorten(name))),
                    _ => None,
                })
                .collect();
            return Err(place
                .error(
                    WRONG_TYPE,
                    format_args!("is a structured array with fields {}", names.join(", ")),
                )
                .help("save each field as an array of its own: numpy.save(\"a.npy\", x[\"a\"])"));
        }
        _ => return Err(damaged("'descr' is not an element type")),
    };
    let header = Header { dtype, shape };
    header.fits(place)?;
    let order = if header.shape.len() < 2 {
        Order::C
    } else {
        order
    };
    Ok((header, order, swapped))
}

fn element_type(descr: &TypeStr, place: &Place) -> Result<(DType, bool), DataError> {
    use TypeChar as T;
    let dtype = match (descr.type_char(), descr.size_field()) {
        (T::Bool, 1) => DType::Bool,
        (T::Uint, 1) => DType::U8,
        (T::Uint, 2) => DType::U16,
        (T::Uint, 4) => DType::U32,
        (T::Uint, 8) => DType::U64,
        (T::Int, 1) => DType::I8,
        (T::Int, 2) => DType::I16,
        (T::Int, 4) => DType::I32,
        (T::Int, 8) => DType::I64,
        (T::Float, 2) => DType::F16,
        (T::Float, 4) => DType::F32,
        (T::Float, 8) => DType::F64,
        (T::RawData, 2) => DType::BF16,
        (T::Complex, 8) => DType::C64,
        (T::Complex, 16) => DType::C128,
        (kind, size) => {
            let (what, help) = match kind {
                T::Int | T::Uint => (
                    format!("integers of {size} bytes"),
                    "convert it with numpy: x.astype(\"int64\")",
                ),
                T::Float => (
                    format!("float{}", size.saturating_mul(8)),
                    "convert it with numpy: x.astype(\"float64\")",
                ),
                T::Complex => (
                    format!("complex{}", size.saturating_mul(8)),
                    "convert it with numpy: x.astype(\"complex128\")",
                ),
                T::ByteStr | T::UnicodeStr => (
                    "strings".to_owned(),
                    "number them: numpy.unique(x, return_inverse=True)[1]",
                ),
                T::Object => (
                    "pickled Python objects".to_owned(),
                    "convert it to numbers before saving: numpy.array(x, dtype=\"float32\")",
                ),
                T::DateTime | T::TimeDelta => (
                    "dates or times".to_owned(),
                    "convert it with numpy: x.astype(\"int64\")",
                ),
                _ => (
                    format!("raw records of {size} bytes"),
                    "convert it to numbers before saving",
                ),
            };
            return Err(place
                .error(
                    WRONG_TYPE,
                    format_args!(
                        "holds {what} ('{descr}'), which is not an element type; those are f16 bf16 f32 f64 u8 u16 u32 u64 i8 i16 i32 i64 bool c64 c128"
                    ),
                )
                .help(help));
        }
    };
    let machine = if cfg!(target_endian = "big") {
        Endianness::Big
    } else {
        Endianness::Little
    };
    let order = descr.endianness();
    Ok((
        dtype,
        dtype.size() > 1 && order != Endianness::Irrelevant && order != machine,
    ))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

/// The header of an array in C order, little-endian.
pub(crate) fn head(header: &Header, place: &Place) -> Result<Vec<u8>, DataError> {
    let descr = match header.dtype {
        DType::F16 => "<f2",
        DType::BF16 => "<V2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::Bool => "|b1",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
    };
    let descr: TypeStr = descr
        .parse()
        .expect("every row of the table is a type string");
    npyz::WriteOptions::new_header_only()
        .shape(&header.shape)
        .dtype(npyz::DType::new_scalar(descr))
        .writer(Vec::new())
        .write_header_only()
        .map_err(|error| place.write_failed(&error))
}

/// Calls `f` with the number of each element that is not 0 of a complete file in C order and in the machine's byte order, and with a part of
/// the array and the element's number in it. Returns the header.
pub(crate) fn for_each_element(
    file: &File,
    total: u64,
    mut f: impl FnMut(u64, &Data, usize) -> io::Result<()>,
) -> io::Result<Header> {
    /// Elements that are read together.
    const PART: u64 = 1 << 16;
    let place = Place {
        file: String::new(),
        key: None,
    };
    let mut input = file;
    input.rewind()?;
    let region = parse(&mut BufReader::new(input), total, &place).map_err(io::Error::other)?;
    let header = region.header;
    let count: u64 = header.shape.iter().product();
    let size = header.dtype.size() as u64;
    let mut first = 0;
    while first < count {
        let mut part = Data::zeros(header.dtype, PART.min(count - first) as usize);
        file.read_exact_at(part.bytes_mut(), region.offset + first * size)?;
        for at in 0..part.len() {
            if !is_zero(&part, at) {
                f(first + at as u64, &part, at)?;
            }
        }
        first += PART;
    }
    Ok(header)
}

fn is_zero(data: &Data, at: usize) -> bool {
    match data.get(at) {
        Scalar::Float(x) => x == 0.0,
        Scalar::Int(x) => x == 0,
        Scalar::Bool(x) => !x,
    }
}

/// A complete file of a vector.
pub(crate) fn vector(data: &Data) -> io::Result<Vec<u8>> {
    let place = Place {
        file: String::new(),
        key: None,
    };
    let header = Header {
        dtype: data.dtype(),
        shape: vec![data.len() as u64],
    };
    let mut bytes = head(&header, &place).map_err(io::Error::other)?;
    bytes.extend_from_slice(data.bytes());
    Ok(bytes)
}

/// A complete file of one text of ASCII letters.
pub(crate) fn text(text: &str) -> io::Result<Vec<u8>> {
    let descr = format!("|S{}", text.len());
    let descr: TypeStr = descr.parse().map_err(io::Error::other)?;
    let mut bytes = npyz::WriteOptions::new_header_only()
        .shape(&[])
        .dtype(npyz::DType::new_scalar(descr))
        .writer(Vec::new())
        .write_header_only()?;
    bytes.extend_from_slice(text.as_bytes());
    Ok(bytes)
}
