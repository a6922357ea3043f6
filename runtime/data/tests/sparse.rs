//! Files of sparse matrices are read as the dense arrays that scipy makes of them, box by box; what is wrong in them is told by line or element.
#![allow(clippy::unwrap_used)]

mod support;

use ein_array::{Array, Data};
use ein_data::{Reader, Writer};
use ein_plan::source::FileRef;
use ein_plan::{DType, ListColumn};
use flate2::{Compression, write::GzEncoder};
use proptest::prelude::*;
use std::io::Write;
use std::path::Path;
use support::{cut, told, whole};

fn read_as(path: &Path, key: Option<&str>, dtype: DType) -> Result<Array, ein_data::DataError> {
    let from = FileRef {
        path: path.display().to_string(),
        key: key.map(str::to_owned),
    };
    let reader = Reader::open_as(&from, Some(dtype))?;
    let all = whole(&reader.header().shape);
    reader.read(&all)
}

/// The elements of a text file, or the error without the folder's name.
fn said(name: &str, key: Option<&str>, text: &str, dtype: DType) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    match read_as(&path, key, dtype) {
        Ok(array) => {
            let values: Vec<String> = (0..array.data().len())
                .map(|at| match array.data().get(at) {
                    ein_plan::Scalar::Float(x) => x.to_string(),
                    ein_plan::Scalar::Int(x) => x.to_string(),
                    ein_plan::Scalar::Bool(x) => u8::from(x).to_string(),
                })
                .collect();
            format!("{:?} {}", array.shape(), values.join(" "))
        }
        Err(error) => told(&error, &path),
    }
}

#[test]
fn matrix_market_forms() {
    let f32 = |text: &str| said("x.mtx", None, text, DType::F32);
    let banner = "%%MatrixMarket matrix coordinate real";
    assert_eq!(
        f32(&format!(
            "{banner} general\n% a comment\n\n2 3 3\n1 2 2.5\n2 3 -1e0\n1 2 1\n"
        )),
        "[2, 3] 0 3.5 0 0 0 -1"
    );
    assert_eq!(
        f32(&format!("{banner} symmetric\n2 2 2\n1 1 4\n2 1 3\n")),
        "[2, 2] 4 3 3 0"
    );
    assert_eq!(
        f32(&format!("{banner} skew-symmetric\n2 2 1\n2 1 3\n")),
        "[2, 2] 0 -3 3 0"
    );
    assert_eq!(
        said(
            "x.mtx",
            None,
            "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n2 1\n",
            DType::Bool
        ),
        "[2, 2] 0 0 1 0"
    );
    let array = "%%MatrixMarket matrix array";
    assert_eq!(
        said(
            "x.mtx",
            None,
            &format!("{array} integer general\n2 3\n1\n2\n3\n4\n5\n6\n"),
            DType::I64
        ),
        "[2, 3] 1 3 5 2 4 6"
    );
    assert_eq!(
        f32(&format!("{array} real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n")),
        "[3, 3] 1 2 3 2 4 5 3 5 6"
    );
    assert_eq!(
        f32(&format!("{array} real skew-symmetric\n3 3\n1\n2\n3\n")),
        "[3, 3] 0 -1 -2 1 0 -3 2 3 0"
    );
}

#[test]
fn lists_of_rows_in_another_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.mtx");
    let text = "%%MatrixMarket matrix coordinate integer general\n4 5 5\n1 2 7\n3 1 4\n3 5 5\n4 4 9\n1 5 8\n";
    std::fs::write(&path, text).unwrap();
    let from = FileRef {
        path: path.display().to_string(),
        key: None,
    };
    let reader = Reader::open_as(&from, Some(DType::I64)).unwrap();
    let listing = reader.listed().unwrap().unwrap();
    assert_eq!(listing.count, 5);
    assert_eq!(listing.of_dims, [vec![2, 4], vec![2, 3, 5]]);
    let column = |column: ListColumn, rows: &[u64], room: usize| {
        let array = reader.read_column_of_rows((column, DType::I64), rows, room);
        array.map(|array| match array.data() {
            Data::I64(numbers) => numbers.clone(),
            other => panic!("{other:?}"),
        })
    };
    let rows = [2, 1, 0];
    assert_eq!(
        column(ListColumn::Values, &rows, 6).unwrap(),
        [4, 5, 7, 8, 0, 0]
    );
    assert_eq!(
        column(ListColumn::Positions(0), &rows, 6).unwrap(),
        [0, 0, 2, 2, 2, 2]
    );
    assert_eq!(
        column(ListColumn::Positions(1), &rows, 6).unwrap(),
        [0, 4, 1, 4, 0, 0]
    );
    let starts = |by: u32, range: (u64, u64)| {
        let mut array = Array::zeros(DType::I64, &[range.1 as usize]);
        let read = reader.read_column_into(ListColumn::Starts, (by, range.0), &mut array);
        read.map(|()| array.into_data())
    };
    assert_eq!(starts(0, (0, 5)).unwrap(), Data::I64(vec![0, 2, 2, 4, 5]));
    assert_eq!(starts(1, (1, 5)).unwrap(), Data::I64(vec![1, 2, 2, 3, 5]));
    let error = starts(0, (0, 6)).unwrap_err();
    assert_eq!(
        told(&error, &path),
        "E0704 x.mtx: has 4 positions along dimension 0"
    );
    let error = column(ListColumn::Values, &rows, 3).unwrap_err();
    assert_eq!(
        told(&error, &path),
        "E0704 x.mtx: was changed after the program was planned: it lists more elements in some rows"
    );
}

#[test]
fn wrong_matrix_market() {
    let of = |text: &str| said("x.mtx", None, text, DType::I32);
    let banner = "%%MatrixMarket matrix coordinate integer general\n";
    let with = |rest: &str| of(&format!("{banner}{rest}"));
    insta::assert_snapshot!(
        [
            of(""),
            of("hello\n"),
            of("%%MatrixMarket matrix coordinate complex general\n1 1 0\n"),
            of("%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n"),
            with(""),
            with("2 3\n"),
            with("2 3 1\n3 1 5\n"),
            with("2 3 1\n0 1 5\n"),
            with("2 3 1\n1 x 5\n"),
            with("2 3 1\n1 1\n"),
            with("2 3 1\n1 1 2.5\n"),
            with("2 3 1\n1 1 2 7\n"),
            with("2 3 2\n1 1 2\n"),
            with("2 3 1\n1 1 2\n1 2 2\n"),
            with("9999999999 9999999999 18446744073709551615\n"),
            with("2 3 18446744073709551615\n1 1 1\n"),
            said("x.mtx", Some("a"), "", DType::F32),
            said("x.mtx.gz", None, "not gzip", DType::F32),
            said("x.mtx", None, "%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 3\n", DType::U8),
            said("x.mtx", None, "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 3\n1 1 0\n2 1 3\n2 2 0.5\n", DType::F32),
        ]
        .join("\n"),
        @r#"
        E0702 x.mtx: line 1: a Matrix Market file begins with `%%MatrixMarket matrix coordinate real general` or such
        E0702 x.mtx: line 1: a Matrix Market file begins with `%%MatrixMarket matrix coordinate real general` or such
        E0703 x.mtx: line 1: Matrix Market files of complex numbers are not read
        help: write the real and the imaginary part as two files
        E0702 x.mtx: line 2: a symmetric matrix has as many rows as columns
        E0702 x.mtx: line 2: the file ends before its sizes do
        E0702 x.mtx: line 2: rows, columns and number of elements are expected here
        E0702 x.mtx: line 3: row 3 is not in 1 to 2
        E0702 x.mtx: line 3: row 0 is not in 1 to 2
        E0702 x.mtx: line 3: `x` is no column
        E0702 x.mtx: line 3: the value is missing
        E0702 x.mtx: line 3: `2.5` is no i32
        E0702 x.mtx: line 3: `7` stands behind the element
        E0702 x.mtx: is truncated: it promises 2 elements and has 1
        E0702 x.mtx: line 4: an element too many: the file promises 1
        E0702 x.mtx: is not what its header says: i32[9999999999, 9999999999] is more than any file can hold
        E0702 x.mtx: is truncated: it promises 18446744073709551615 elements and has 1
        E0706 x.mtx: a .mtx file holds one matrix and no keys, so there is no `a`
        help: leave the key out
        E0702 x.mtx.gz: is damaged: unexpected end of file
        E0702 x.mtx: line 3: a skew-symmetric matrix has negative numbers, and u8 has none
        E0702 x.mtx: line 5: a skew-symmetric matrix has zeros on its diagonal, and 0.5 at row 2
        "#
    );
}

#[test]
fn features_and_labels() {
    let text = "# made by hand\n-1 1:0.5 3:2  # row 0\n1 qid:7 2:1\n\n3\n";
    assert_eq!(
        said("a.svm", Some("x"), text, DType::F32),
        "[3, 3] 0.5 0 2 0 1 0 0 0 0"
    );
    assert_eq!(said("a.svm", Some("y"), text, DType::I32), "[3] -1 1 3");
    // A feature 0 shows that features are counted from 0.
    assert_eq!(
        said("a.libsvm", Some("x"), "1 0:1 2:5\n", DType::F64),
        "[1, 3] 1 0 5"
    );
    let wrong = |key: &str, text: &str| said("a.svm", Some(key), text, DType::I32);
    insta::assert_snapshot!(
        [
            said("a.svm", None, text, DType::F32),
            wrong("z", text),
            wrong("x", "1 2:1\n1 3\n"),
            wrong("x", "1 2:1 2:3\n"),
            wrong("x", "1 -2:1\n"),
            wrong("x", "1 2:0.5\n"),
            wrong("y", "1,2 2:1\n"),
            wrong("y", "1:2\n"),
            wrong("x", "1 18446744073709551615:1\n2 0:1\n"),
        ]
        .join("\n"),
        @r#"
        E0706 a.svm: holds 2 arrays; say which: `x`, `y`
        help: load("a.svm", "x")
        E0706 a.svm: holds no array `z`; it holds `x`, `y`
        help: did you mean `x`?
        E0702 a.svm: line 2: `3` is not feature:value
        E0702 a.svm: line 1: feature 2 stands twice
        E0702 a.svm: line 1: `-2` is no number of a feature
        E0702 a.svm: line 1: `0.5` is no i32
        E0702 a.svm: line 1: `1,2` are several labels, and `y` has one a row
        E0702 a.svm: line 1: the label is missing
        E0702 a.svm: array `x`: is not what its header says: i32[2, 18446744073709551615] is more than any file can hold
        "#
    );
}

#[test]
fn compressed_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.mtx.gz");
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed
        .write_all(b"%%MatrixMarket matrix coordinate real general\n2 2 1\n2 2 7\n")
        .unwrap();
    let bytes = packed.finish().unwrap();
    std::fs::write(&path, &bytes).unwrap();
    let array = read_as(&path, None, DType::F32).unwrap();
    assert_eq!(array.data(), &Data::F32(vec![0.0, 0.0, 0.0, 7.0]));
    std::fs::write(&path, &bytes[..bytes.len() - 12]).unwrap();
    let error = read_as(&path, None, DType::F32).unwrap_err();
    assert_eq!(error.code, "E0702");
}

/// A sparse array of that type: about half its elements are 0.
fn sparse(dtype: DType, rows: u64, columns: u64, seed: u64) -> Array {
    let mut array = support::numbered(dtype, &[rows, columns]);
    let size = dtype.size();
    let mut state = seed;
    for element in array.data_mut().bytes_mut().chunks_exact_mut(size) {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        if state >> 63 == 0 {
            element.fill(0);
        }
    }
    array
}

/// A .npz file of arrays of 32-bit integers, with `format` and `data`.
fn archive(path: &Path, format: &str, data: (&str, &[f32]), arrays: &[(&str, &[i32])]) {
    let mut archive = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    let options = zip::write::SimpleFileOptions::default();
    let mut put = |name: &str, bytes: Vec<u8>| {
        archive.start_file(format!("{name}.npy"), options).unwrap();
        archive.write_all(&bytes).unwrap();
    };
    let dict = |descr: &str, shape: &str| {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")
    };
    for (name, numbers) in arrays {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        put(
            name,
            support::npy(1, &dict("<i4", &format!("({},)", numbers.len())), &bytes),
        );
    }
    let (shape, values) = data;
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    put("data", support::npy(1, &dict("<f4", shape), &bytes));
    put(
        "format",
        support::npy(1, &dict("|S3", "()"), format.as_bytes()),
    );
    archive.finish().unwrap();
}

/// The elements of such a file, or the error.
fn of_archive(format: &str, data: (&str, &[f32]), arrays: &[(&str, &[i32])]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    archive(&path, format, data, arrays);
    match read_as(&path, None, DType::F32) {
        Ok(array) => format!("{:?} {:?}", array.shape(), array.data()),
        Err(error) => told(&error, &path),
    }
}

#[test]
fn forms_of_scipy() {
    let three: (&str, &[f32]) = ("(3,)", &[1.0, 2.0, 3.0]);
    let rows = [
        ("shape", &[2, 3][..]),
        ("indices", &[2, 0, 1]),
        ("indptr", &[0, 1, 3]),
    ];
    assert_eq!(
        of_archive("csr", three, &rows),
        "[2, 3] F32([0.0, 0.0, 1.0, 2.0, 3.0, 0.0])"
    );
    let columns = [
        ("shape", &[2, 3][..]),
        ("indices", &[1, 0, 1]),
        ("indptr", &[0, 1, 1, 3]),
    ];
    assert_eq!(
        of_archive("csc", three, &columns),
        "[2, 3] F32([0.0, 0.0, 2.0, 1.0, 0.0, 3.0])"
    );
    // An element that stands twice is the sum.
    let places = [
        ("shape", &[2, 3][..]),
        ("row", &[1, 0, 1]),
        ("col", &[2, 0, 2]),
    ];
    assert_eq!(
        of_archive("coo", three, &places),
        "[2, 3] F32([2.0, 0.0, 0.0, 0.0, 0.0, 4.0])"
    );
    let blocks = [
        ("shape", &[2, 4][..]),
        ("indices", &[1, 0]),
        ("indptr", &[0, 1, 2]),
    ];
    let data = ("(2, 1, 2)", &[1.0, 2.0, 3.0, 4.0][..]);
    assert_eq!(
        of_archive("bsr", data, &blocks),
        "[2, 4] F32([0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 0.0])"
    );
    let diagonals = [("shape", &[2, 3][..]), ("offsets", &[1, -1])];
    let data = ("(2, 3)", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0][..]);
    assert_eq!(
        of_archive("dia", data, &diagonals),
        "[2, 3] F32([0.0, 2.0, 0.0, 4.0, 0.0, 3.0])"
    );
}

#[test]
fn wrong_archives() {
    let three: (&str, &[f32]) = ("(3,)", &[1.0, 2.0, 3.0]);
    let of = |form: &str, arrays: &[(&str, &[i32])]| of_archive(form, three, arrays);
    let shape = ("shape", &[2, 3][..]);
    let indices = ("indices", &[2, 0, 1][..]);
    insta::assert_snapshot!(
        [
            of("abc", &[shape]),
            of("csr", &[("shape", &[2, -3])]),
            of("csr", &[("shape", &[6])]),
            of("csr", &[shape]),
            of("csr", &[shape, indices]),
            of("csr", &[shape, ("indices", &[2, 0, 3]), ("indptr", &[0, 1, 3])]),
            of("csr", &[shape, ("indices", &[2, 0]), ("indptr", &[0, 1, 3])]),
            of("csr", &[shape, indices, ("indptr", &[0, 3])]),
            of("csr", &[shape, indices, ("indptr", &[0, 4, 3])]),
            of("csr", &[shape, indices, ("indptr", &[0, 1, 2])]),
            of("coo", &[shape, ("row", &[0, 1, 2]), ("col", &[0, 1, 2])]),
            of("bsr", &[shape, indices, ("indptr", &[0, 1, 3])]),
            of_archive("bsr", ("(1, 2, 2)", &[0.0; 4]), &[shape, ("indices", &[0]), ("indptr", &[0, 1])]),
            of_archive("dia", ("(1, 3)", &[0.0; 3]), &[shape, ("offsets", &[0, 1])]),
        ]
        .join("\n"),
        @r#"
        E0702 x.npz: array `format`: `abc` is no form of a sparse matrix
        E0702 x.npz: array `shape`: holds a negative size
        E0702 x.npz: array `shape`: has 1 sizes, not two
        E0706 x.npz: holds no array `indices`; it holds `shape`, `data`, `format`
        E0706 x.npz: holds no array `indptr`; it holds `shape`, `indices`, `data`, `format`
        E0702 x.npz: array `indices`: element 2 is 3, which is not in 0 to 3 - 1
        E0702 x.npz: array `indices`: has 2 elements, but `data` asks for 3
        E0702 x.npz: array `indptr`: has 2 elements, not 3
        E0702 x.npz: array `indptr`: element 2 is less than the one before it
        E0702 x.npz: array `indptr`: does not lead from 0 to 3, the number of places
        E0702 x.npz: array `row`: element 2 is 2, which is not in 0 to 2 - 1
        E0702 x.npz: array `data`: has 1 dimensions, not 3
        E0702 x.npz: array `data`: blocks of 2 × 2 do not fill a matrix of 2 × 3
        E0702 x.npz: array `offsets`: has 2 elements, but `data` has 1 diagonals
        "#
    );
}

/// The other way round than the tests above: scipy reads and writes.
#[test]
fn scipy_agrees() {
    let folder = tempfile::tempdir().unwrap();
    let there = std::process::Command::new("python3")
        .args(["-c", "import scipy.sparse"])
        .output();
    if !there.is_ok_and(|output| output.status.success()) {
        println!("skipped: python3 with scipy is not installed");
        return;
    }
    let program = "
import numpy as np, scipy.sparse as s, scipy.io as io
a = s.random(37, 23, 0.2, 'csr', np.float32, random_state=3)
a.data -= 0.5
for f in ['csr', 'csc', 'coo', 'bsr', 'dia']:
    s.save_npz(f, a.asformat(f))
    s.save_npz(f + '_array', s.csr_array(a).asformat(f))
io.mmwrite('m.mtx', a)
np.save('a.npy', a.toarray())
";
    assert!(support::numpy(folder.path(), program));
    let wanted = read_as(&folder.path().join("a.npy"), None, DType::F32).unwrap();
    let names = ["csr", "csc", "coo", "bsr", "dia"];
    let files =
        (names.iter()).flat_map(|name| [format!("{name}.npz"), format!("{name}_array.npz")]);
    for name in files.chain(["m.mtx".to_owned()]) {
        let read = read_as(&folder.path().join(&name), None, DType::F32).unwrap();
        assert_eq!(read.data(), wanted.data(), "{name}");
    }
    for name in ["b.csr.npz", "b.mtx"] {
        let writer = Writer::create(&folder.path().join(name), None, DType::F32, &[37, 23], "t");
        let writer = writer.unwrap();
        writer.write(&whole(&[37, 23]), &wanted).unwrap();
        writer.finish().unwrap();
    }
    let program = "
import numpy as np, scipy.sparse as s, scipy.io as io
a = np.load('a.npy')
b = s.load_npz('b.csr.npz')
assert b.dtype == np.float32 and (b.toarray() == a).all() and b.nnz == np.count_nonzero(a)
assert (io.mmread('b.mtx').toarray().astype('f4') == a).all()
";
    assert!(support::numpy(folder.path(), program));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn written_and_read_again(
        rows in 0u64..9,
        columns in 0u64..9,
        seed in any::<u64>(),
        dtype in 0usize..DType::ALL.len(),
        name in prop_oneof![Just("x.mtx"), Just("x.csr.npz")],
    ) {
        let dtype = DType::ALL[dtype];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let array = sparse(dtype, rows, columns, seed);
        let writer = Writer::create(&path, None, dtype, &[rows, columns], "t").unwrap();
        writer.write(&whole(&[rows, columns]), &array).unwrap();
        writer.finish().unwrap();
        let again = read_as(&path, None, dtype).unwrap();
        prop_assert_eq!(again.data(), array.data());
        let from = FileRef { path: path.display().to_string(), key: None };
        let reader = Reader::open_as(&from, Some(dtype)).unwrap();
        let part = [(rows / 3, rows - rows / 3), (columns / 2, columns - columns / 2)];
        let (part, wanted) = (reader.read(&part).unwrap(), cut(&array, &part));
        prop_assert_eq!(part.data(), wanted.data());
    }

    #[test]
    fn damaged_text_never_panics(text in "[0-9 :%.\n#a-]{0,80}", banner in any::<bool>()) {
        let head = "%%MatrixMarket matrix coordinate real general\n3 3 2\n";
        let text = if banner { format!("{head}{text}") } else { text };
        said("x.mtx", None, &text, DType::F32);
        said("x.svm", Some("x"), &text, DType::F32);
        said("x.svm", Some("y"), &text, DType::I64);
    }
}
