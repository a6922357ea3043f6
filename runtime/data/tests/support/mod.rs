//! What the tests of this crate share: numbered arrays, files from bytes, running numpy.
#![allow(dead_code, clippy::unwrap_used)]

use ein_array::{Array, Data};
use ein_data::{DataError, Reader};
use ein_plan::DType;
use ein_plan::source::FileRef;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Element number `n` of every array of the tests: exact in all types.
pub fn value(dtype: DType, n: u64) -> i64 {
    match dtype {
        DType::Bool => i64::from(n.is_multiple_of(3)),
        DType::U8 => ((n * 7 + 3) % 251) as i64,
        DType::U16 | DType::U32 | DType::U64 => ((n * 7 + 3) % 1009) as i64,
        DType::I8 => ((n * 7 + 3) % 251) as i64 - 125,
        DType::BF16 => ((n * 7 + 3) % 101) as i64 - 50,
        _ => ((n * 7 + 3) % 1009) as i64 - 500,
    }
}

/// An array of which element n (row-major) is `value(n)`.
pub fn numbered(dtype: DType, shape: &[u64]) -> Array {
    let count: u64 = shape.iter().product();
    let values = (0..count).map(|n| value(dtype, n));
    let mut data = Data::zeros(dtype, 0);
    match &mut data {
        Data::F16(v) => v.extend(values.map(|x| half(x as f32))),
        Data::BF16(v) => v.extend(values.map(|x| bhalf(x as f32))),
        Data::F32(v) => v.extend(values.map(|x| x as f32)),
        Data::F64(v) => v.extend(values.map(|x| x as f64)),
        Data::U8(v) => v.extend(values.map(|x| x as u8)),
        Data::U16(v) => v.extend(values.map(|x| x as u16)),
        Data::U32(v) => v.extend(values.map(|x| x as u32)),
        Data::U64(v) => v.extend(values.map(|x| x as u64)),
        Data::I8(v) => v.extend(values.map(|x| x as i8)),
        Data::I16(v) => v.extend(values.map(|x| x as i16)),
        Data::I32(v) => v.extend(values.map(|x| x as i32)),
        Data::I64(v) => v.extend(values),
        Data::Bool(v) => v.extend(values.map(|x| x as u8)),
    }
    Array::new(shape.iter().map(|n| *n as usize).collect(), data).unwrap()
}

fn half(x: f32) -> half::f16 {
    half::f16::from_f32(x)
}

fn bhalf(x: f32) -> half::bf16 {
    half::bf16::from_f32(x)
}

/// The box of an array, by the array's own copy.
pub fn cut(array: &Array, ranges: &[(u64, u64)]) -> Array {
    let extent: Vec<usize> = ranges.iter().map(|(_, len)| *len as usize).collect();
    let start: Vec<usize> = ranges.iter().map(|(start, _)| *start as usize).collect();
    let mut part = Array::zeros(array.dtype(), &extent);
    part.copy_box(&vec![0; extent.len()], array, &start, &extent);
    part
}

/// The whole of a shape as a box.
pub fn whole(shape: &[u64]) -> Vec<(u64, u64)> {
    shape.iter().map(|n| (0, *n)).collect()
}

/// Opens a file.
pub fn open(path: &Path, key: Option<&str>) -> Result<Reader, DataError> {
    Reader::open(&FileRef {
        path: path.display().to_string(),
        key: key.map(str::to_owned),
    })
}

/// The error of opening, with the folder cut out of it.
pub fn refused(path: &Path, key: Option<&str>) -> String {
    match open(path, key) {
        Ok(reader) => panic!("{} was read: {}", path.display(), reader.header()),
        Err(error) => told(&error, path),
    }
}

/// Code and text of an error, with the folder cut out.
pub fn told(error: &DataError, path: &Path) -> String {
    let folder = path.parent().unwrap().display().to_string();
    format!("{} {error}", error.code)
        .replace(&format!("{folder}/"), "")
        .replace(&folder, "FOLDER")
}

/// A .npy file of that version from its dict and data.
pub fn npy(version: u8, dict: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x93, b'N', b'U', b'M', b'P', b'Y', version, 0];
    let before = if version == 1 { 10 } else { 12 };
    let mut text = dict.as_bytes().to_vec();
    while !(before + text.len() + 1).is_multiple_of(64) {
        text.push(b' ');
    }
    text.push(b'\n');
    if version == 1 {
        bytes.extend((text.len() as u16).to_le_bytes());
    } else {
        bytes.extend((text.len() as u32).to_le_bytes());
    }
    bytes.extend(text);
    bytes.extend(data);
    bytes
}

/// A file in the folder.
pub fn put(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Runs a Python program with numpy in the folder; `false`, with the reason printed, where there is none.
pub fn numpy(folder: &Path, program: &str) -> bool {
    let there = Command::new("python3")
        .args(["-c", "import numpy"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !there {
        println!("skipped: python3 with numpy is not installed");
        return false;
    }
    let output = Command::new("python3")
        .args(["-c", program])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    true
}
