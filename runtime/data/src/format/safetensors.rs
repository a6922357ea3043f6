//! The .safetensors format: the length of a JSON table, the table, the elements of all tensors.
//!
//! Must not know boxes or other formats.
//!
//! ```text
//! 64 {"w":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]}}
//! ```

use crate::error::{DAMAGED, DataError, Place, UNWRITABLE, WRONG_TYPE};
use crate::format::{Opened, Wanted, choose};
use crate::header::Header;
use crate::in_order::InOrder;
use crate::layout::Order;
use crate::region::Region;
use ein_plan::DType;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The format's own bound on its table.
const LONGEST: u64 = 100_000_000;

/// The names of a file's tensors.
pub(crate) fn keys(file: &File, total: u64, place: &Place) -> Result<Vec<String>, DataError> {
    Ok(contents(file, total, place)?.0.offset_keys())
}

/// The table, and its length.
fn contents(file: &File, total: u64, place: &Place) -> Result<(Metadata, u64), DataError> {
    if total < 8 {
        return Err(place.error(
            DAMAGED,
            format_args!("is not a .safetensors file, or is truncated: it has only {total} bytes"),
        ));
    }
    let mut length = [0; 8];
    file.read_exact_at(&mut length, 0)
        .map_err(|error| place.read_failed(&error))?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST {
        return Err(place.error(
            DAMAGED,
            format_args!("is not a .safetensors file: its table would have {length} bytes"),
        ));
    }
    if length > total - 8 {
        return Err(place.error(
            DAMAGED,
            format_args!(
                "is truncated: the file has {total} bytes and ends within its table of {length}"
            ),
        ));
    }
    let mut table = vec![0; length as usize];
    file.read_exact_at(&mut table, 8)
        .map_err(|error| place.read_failed(&error))?;
    let table: Metadata = serde_json::from_slice(&table).map_err(|error| {
        place.error(
            DAMAGED,
            format_args!("its table of tensors cannot be read: {error}"),
        )
    })?;
    let (said, have) = (table.data_len() as u64, total - 8 - length);
    if said != have {
        return Err(place.error(
            DAMAGED,
            format_args!(
                "is {}: its table says {said} bytes of data, but {have} follow",
                if have < said {
                    "truncated"
                } else {
                    "not what its table says"
                }
            ),
        ));
    }
    Ok((table, length))
}

/// Finds a tensor.
pub(crate) fn open(
    file: &File,
    total: u64,
    wanted: &Wanted<'_>,
    place: &mut Place,
) -> Result<Opened, DataError> {
    let (table, length) = contents(file, total, place)?;
    let keys = table.offset_keys();
    let at = choose(&keys, wanted.key, place)?;
    place.key = Some(keys[at].clone());
    let info = table
        .info(&keys[at])
        .expect("the key is from the table's own list");
    let dtype = match info.dtype {
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        Dtype::F32 => DType::F32,
        Dtype::F64 => DType::F64,
        Dtype::U8 => DType::U8,
        Dtype::U16 => DType::U16,
        Dtype::U32 => DType::U32,
        Dtype::U64 => DType::U64,
        Dtype::I8 => DType::I8,
        Dtype::I16 => DType::I16,
        Dtype::I32 => DType::I32,
        Dtype::I64 => DType::I64,
        Dtype::BOOL => DType::Bool,
        Dtype::C64 => DType::C64,
        other => {
            return Err(place
                .error(
                    WRONG_TYPE,
                    format_args!(
                        "holds {other:?}, which is not an element type; those are f16 bf16 f32 f64 u8 u16 u32 u64 i8 i16 i32 i64 bool c64"
                    ),
                )
                .help("convert it before saving"));
        }
    };
    let header = Header {
        dtype,
        shape: info.shape.iter().map(|extent| *extent as u64).collect(),
    };
    if header.bytes().is_none() {
        return Err(place.error(
            DAMAGED,
            format_args!("{header} is more than any file can hold"),
        ));
    }
    Ok(Opened::InOrder(InOrder::plain(Region {
        header,
        offset: 8 + length + info.data_offsets.0 as u64,
        order: Order::C,
        swapped: cfg!(target_endian = "big"),
    })))
}

/// The length and the table of a file with one tensor.
pub(crate) fn head(key: &str, header: &Header, place: &Place) -> Result<Vec<u8>, DataError> {
    Ok(table(&[(key, header)], place)?.0)
}

/// The length and the table of a file with these tensors, and where in the file each one begins. Types of more bytes come first, so
/// that every element is aligned; among equals the order is that of the names.
pub(crate) fn table(
    tensors: &[(&str, &Header)],
    place: &Place,
) -> Result<(Vec<u8>, Vec<u64>), DataError> {
    let mut order: Vec<usize> = (0..tensors.len()).collect();
    order.sort_by_key(|at| {
        let (name, header) = tensors[*at];
        (std::cmp::Reverse(header.dtype.size()), name)
    });
    let cannot = |what: &dyn std::fmt::Display, why: &dyn std::fmt::Display| {
        place.error(UNWRITABLE, format_args!("cannot hold {what}: {why}"))
    };
    let mut end = 0u64;
    let mut starts = vec![0u64; tensors.len()];
    let mut infos = Vec::with_capacity(tensors.len());
    for at in order {
        let (name, header) = tensors[at];
        starts[at] = end;
        end = header
            .bytes()
            .and_then(|bytes| end.checked_add(bytes))
            .filter(|end| i64::try_from(*end).is_ok())
            .ok_or_else(|| cannot(header, &"it is too large"))?;
        let info = TensorInfo {
            dtype: stored(header.dtype)
                .ok_or_else(|| cannot(header, &"it has no complex numbers of 128 bits"))?,
            shape: header.shape.iter().map(|extent| *extent as usize).collect(),
            data_offsets: (starts[at] as usize, end as usize),
        };
        infos.push((name.to_owned(), info));
    }
    let table = Metadata::new(None, infos).map_err(|error| cannot(&"these tensors", &error))?;
    let mut text = serde_json::to_vec(&table).map_err(|error| cannot(&"these tensors", &error))?;
    text.resize(text.len().next_multiple_of(8), b' ');
    if text.len() as u64 > LONGEST {
        return Err(cannot(&"these tensors", &"their names are too long"));
    }
    let mut head = (text.len() as u64).to_le_bytes().to_vec();
    head.append(&mut text);
    starts
        .iter_mut()
        .for_each(|start| *start += head.len() as u64);
    Ok((head, starts))
}

/// The name of an element type in such files, if it has one.
fn stored(dtype: DType) -> Option<Dtype> {
    Some(match dtype {
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
        DType::U8 => Dtype::U8,
        DType::U16 => Dtype::U16,
        DType::U32 => Dtype::U32,
        DType::U64 => Dtype::U64,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::Bool => Dtype::BOOL,
        DType::C64 => Dtype::C64,
        DType::C128 => return None,
    })
}
