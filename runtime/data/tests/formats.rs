//! What is read is what was written, in every format, type, order and box.
#![allow(clippy::unwrap_used)]

mod support;

use ein_array::Data;
use ein_data::Writer;
use ein_plan::{DType, piece};
use std::path::Path;
use support::{cut, npy, numbered, numpy, open, put, whole};

const SHAPES: &[&[u64]] = &[
    &[],
    &[0],
    &[1],
    &[7],
    &[3, 5],
    &[0, 4],
    &[5, 0],
    &[2, 3, 4],
    &[1, 6, 1, 2],
];
const EXTENSIONS: [&str; 3] = ["npy", "npz", "safetensors"];

/// Boxes that tile the shape, cut by `pieces` along every dimension.
fn boxes(shape: &[u64], pieces: u32) -> Vec<Vec<(u64, u64)>> {
    let mut all = vec![vec![]];
    for extent in shape {
        all = all
            .into_iter()
            .flat_map(|start: Vec<(u64, u64)>| {
                (0..pieces).map(move |n| {
                    let mut next = start.clone();
                    next.push(piece(*extent, pieces, n));
                    next
                })
            })
            .collect();
    }
    all
}

/// Writes as `sites` sites do, each some of the boxes.
fn write(path: &Path, dtype: DType, shape: &[u64], pieces: u32, sites: usize) {
    let array = numbered(dtype, shape);
    let first = Writer::create(path, Some("a"), dtype, shape, "t").unwrap();
    let mut writers = vec![first];
    for _ in 1..sites {
        writers.push(Writer::attach(path, Some("a"), dtype, shape, "t").unwrap());
    }
    for (n, ranges) in boxes(shape, pieces).iter().enumerate() {
        writers[n % sites]
            .write(ranges, &cut(&array, ranges))
            .unwrap();
    }
    writers.swap_remove(0).finish().unwrap();
}

#[test]
fn every_type_and_box_returns() {
    let folder = tempfile::tempdir().unwrap();
    for extension in EXTENSIONS {
        for dtype in DType::ALL {
            for (n, shape) in SHAPES.iter().enumerate() {
                let path = folder.path().join(format!("x.{extension}"));
                write(&path, dtype, shape, 1 + n as u32 % 3, 1 + n % 4);
                let reader = open(&path, None).unwrap();
                assert_eq!(reader.header().dtype, dtype);
                assert_eq!(&reader.header().shape, shape);
                let array = numbered(dtype, shape);
                for pieces in 1..4 {
                    for ranges in boxes(shape, pieces) {
                        assert_eq!(reader.read(&ranges).unwrap(), cut(&array, &ranges));
                    }
                }
            }
        }
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 3, "no temporary file stays: {left:?}");
}

#[test]
fn both_orders_byte_orders_and_all_versions() {
    let folder = tempfile::tempdir().unwrap();
    let shape = [3u64, 4, 5];
    let strides = [20u64, 5, 1];
    for dtype in DType::ALL {
        let array = numbered(dtype, &shape);
        let size = dtype.size();
        let letter = match dtype {
            DType::F16 => "f2",
            DType::BF16 => "V2",
            DType::F32 => "f4",
            DType::F64 => "f8",
            DType::U8 => "u1",
            DType::U16 => "u2",
            DType::U32 => "u4",
            DType::U64 => "u8",
            DType::I8 => "i1",
            DType::I16 => "i2",
            DType::I32 => "i4",
            DType::I64 => "i8",
            DType::Bool => "b1",
            DType::C64 | DType::C128 => unreachable!("no type of arrays"),
        };
        for version in 1..=3 {
            for (mark, big) in [("<", false), (">", true), ("|", false)] {
                if mark == "|" && size > 1 && dtype != DType::BF16 {
                    continue;
                }
                for fortran in [false, true] {
                    let mut data = Vec::new();
                    let mut add = |n: u64| {
                        let at = n as usize * size;
                        let mut element = array.data().bytes()[at..at + size].to_vec();
                        if big {
                            element.reverse();
                        }
                        data.extend(element);
                    };
                    if fortran {
                        for k in 0..shape[2] {
                            for j in 0..shape[1] {
                                for i in 0..shape[0] {
                                    add(i * strides[0] + j * strides[1] + k * strides[2]);
                                }
                            }
                        }
                    } else {
                        (0..60).for_each(&mut add);
                    }
                    let order = if fortran { "True" } else { "False" };
                    let dict = format!(
                        "{{'descr': '{mark}{letter}', 'fortran_order': {order}, 'shape': (3, 4, 5), }}"
                    );
                    let path = put(folder.path(), "x.npy", &npy(version, &dict, &data));
                    let reader = open(&path, None).unwrap();
                    for pieces in 1..4 {
                        for ranges in boxes(&shape, pieces) {
                            assert_eq!(
                                reader.read(&ranges).unwrap(),
                                cut(&array, &ranges),
                                "{dict} {ranges:?}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn truth_values_are_0_or_1() {
    let folder = tempfile::tempdir().unwrap();
    let dict = "{'descr': '|b1', 'fortran_order': False, 'shape': (4,), }";
    let path = put(folder.path(), "x.npy", &npy(1, dict, &[0, 1, 2, 255]));
    let array = open(&path, None).unwrap().read(&[(0, 4)]).unwrap();
    assert_eq!(array.data(), &Data::Bool(vec![0, 1, 1, 1]));
}

#[test]
fn long_and_short_runs() {
    let folder = tempfile::tempdir().unwrap();
    let shape = [700u64, 900];
    let path = folder.path().join("x.npy");
    write(&path, DType::F32, &shape, 3, 2);
    let (array, reader) = (numbered(DType::F32, &shape), open(&path, None).unwrap());
    let columns = put(
        folder.path(),
        "f.npy",
        &npy(
            1,
            "{'descr': '<f4', 'fortran_order': True, 'shape': (900, 700), }",
            array.data().bytes(),
        ),
    );
    let columns = open(&columns, None).unwrap();
    for ranges in [
        whole(&shape),
        vec![(13, 500), (0, 900)],
        vec![(0, 700), (450, 30)],
        vec![(1, 699), (0, 1)],
    ] {
        let part = cut(&array, &ranges);
        assert_eq!(reader.read(&ranges).unwrap(), part);
        let turned = columns.read(&[ranges[1], ranges[0]]).unwrap();
        let (rows, width) = (part.shape()[0], part.shape()[1]);
        for i in 0..rows {
            for j in 0..width {
                assert_eq!(
                    part.data().get(i * width + j),
                    turned.data().get(j * rows + i)
                );
            }
        }
    }
}

/// The formula of `support::value`, in Python.
const FORMULA: &str = r#"
import numpy as np
types = {"f16": "f2", "f32": "f4", "f64": "f8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "bool": "b1"}
shapes = [(), (0,), (1,), (7,), (3, 5), (0, 4), (5, 0), (2, 3, 4), (1, 6, 1, 2)]
def numbered(name, shape):
    n = np.arange(int(np.prod(shape, dtype="i8"))).reshape(shape)
    v = n * 7 + 3
    v = n % 3 == 0 if name == "bool" else v % 251 if name == "u8" else v % 251 - 125 if name == "i8" else v % 1009 if name[0] == "u" else v % 1009 - 500
    return v.astype(types[name])
"#;

#[test]
fn files_of_numpy_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let program = format!(
        r#"{FORMULA}
for name in types:
    for k, shape in enumerate(shapes):
        a = numbered(name, shape)
        b = a.astype(a.dtype.newbyteorder(">"))
        np.save(f"{{name}}-{{k}}-c.npy", a)
        np.save(f"{{name}}-{{k}}-b.npy", b)
        np.save(f"{{name}}-{{k}}-f.npy", np.asfortranarray(b) if a.ndim else b)
        np.savez(f"{{name}}-{{k}}-s.npz", first=np.zeros(5), second=a)
        np.savez_compressed(f"{{name}}-{{k}}-z.npz", first=np.zeros(5), second=np.asfortranarray(b) if a.ndim else b)
"#
    );
    if !numpy(folder.path(), &program) {
        return;
    }
    for dtype in DType::ALL.into_iter().filter(|d| *d != DType::BF16) {
        for (k, shape) in SHAPES.iter().enumerate() {
            let array = numbered(dtype, shape);
            for (file, key) in [
                ("c.npy", None),
                ("b.npy", None),
                ("f.npy", None),
                ("s.npz", Some("second")),
                ("z.npz", Some("second")),
            ] {
                let path = folder.path().join(format!("{dtype}-{k}-{file}"));
                let reader = open(&path, key).unwrap();
                assert_eq!(reader.header().dtype, dtype);
                assert_eq!(&reader.header().shape, shape);
                for pieces in 1..3 {
                    for ranges in boxes(shape, pieces) {
                        assert_eq!(reader.read(&ranges).unwrap(), cut(&array, &ranges));
                    }
                }
            }
        }
    }
}

#[test]
fn numpy_reads_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for dtype in DType::ALL.into_iter().filter(|d| *d != DType::BF16) {
        for (k, shape) in SHAPES.iter().enumerate() {
            for extension in ["npy", "npz"] {
                let path = folder.path().join(format!("{dtype}-{k}.{extension}"));
                write(&path, dtype, shape, 2, 3);
            }
        }
    }
    write(&folder.path().join("half.npy"), DType::BF16, &[3], 1, 1);
    let program = format!(
        r#"{FORMULA}
import zipfile
for name in types:
    for k, shape in enumerate(shapes):
        want = numbered(name, shape)
        npz = f"{{name}}-{{k}}.npz"
        assert zipfile.ZipFile(npz).testzip() is None
        for got in [np.load(f"{{name}}-{{k}}.npy"), np.load(npz)["a"]]:
            assert got.dtype == want.dtype and got.shape == want.shape and (got == want).all(), (name, k, got)
half = np.load("half.npy")
assert half.dtype.itemsize == 2 and half.shape == (3,), half
bits = half.view("u2").astype("u4") << 16
assert (bits.view("f4") == [-47, -40, -33]).all(), bits.view("f4")
"#
    );
    numpy(folder.path(), &program);
}

#[test]
fn a_deflated_entry_is_shared_by_readers() {
    let folder = tempfile::tempdir().unwrap();
    let program = "import numpy as np; np.savez_compressed('x.npz', a=np.arange(300000.0).reshape(300, 1000))";
    if !numpy(folder.path(), program) {
        return;
    }
    let path = folder.path().join("x.npz");
    std::thread::scope(|scope| {
        for site in 0..4u64 {
            let path = &path;
            scope.spawn(move || {
                let reader = open(path, Some("a.npy")).unwrap();
                let part = reader.read(&[(75 * site, 75), (10, 2)]).unwrap();
                let Data::F64(values) = part.data() else {
                    panic!("f64")
                };
                assert_eq!(values[2], (75 * site * 1000 + 1010) as f64);
            });
        }
    });
}
