//! What is wrong is refused with the right words, nothing panics, and nothing is left behind.
#![allow(clippy::unwrap_used)]

mod support;

use ein_data::{DataError, Writer, supported};
use ein_plan::DType;
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{npy, numbered, numpy, open, put, refused, told, whole};

const PLAIN: &str = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";

/// One small whole file of each format.
fn samples(folder: &Path) -> Vec<PathBuf> {
    let shape = [3u64, 4];
    ["x.npy", "x.npz", "x.safetensors"]
        .into_iter()
        .map(|name| {
            let path = folder.join(name);
            let writer = Writer::create(&path, Some("a"), DType::F32, &shape, "t").unwrap();
            writer
                .write(&whole(&shape), &numbered(DType::F32, &shape))
                .unwrap();
            writer.finish().unwrap();
            path
        })
        .collect()
}

#[test]
fn unreadable_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    put(folder.path(), "train.npy", &npy(1, PLAIN, &[0; 48]));
    assert_eq!(
        refused(&at("trian.npy"), None),
        "E0701 trian.npy: there is no such file\nhelp: did you mean `train.npy`?"
    );
    assert_eq!(
        refused(&at("nothing.npy"), None),
        "E0701 nothing.npy: there is no such file"
    );
    std::fs::create_dir(at("d.npy")).unwrap();
    assert_eq!(
        refused(&at("d.npy"), None),
        "E0701 d.npy: is a directory, not a regular file"
    );
    if Command::new("mkfifo")
        .arg(at("p.npy"))
        .status()
        .is_ok_and(|status| status.success())
    {
        assert_eq!(
            refused(&at("p.npy"), None),
            "E0701 p.npy: is a pipe, not a regular file"
        );
    }
    assert!(refused(Path::new("/dev/zero"), None).contains("is a device, not a regular file"));
    put(folder.path(), "x.csv", b"1,2");
    assert_eq!(
        refused(&at("x.csv"), None),
        "E0701 x.csv: the extension .csv is not a known format\nhelp: convert it first: numpy.save(\"x.npy\", numpy.loadtxt(\"x.csv\", delimiter=\",\"))"
    );
    put(folder.path(), "x", b"");
    assert!(refused(&at("x"), None).contains("has no extension"));
    put(folder.path(), "empty.npy", b"");
    assert_eq!(
        refused(&at("empty.npy"), None),
        "E0702 empty.npy: is not a .npy file, or is truncated: it has only 0 bytes"
    );
    put(folder.path(), "text.npy", b"hello, world");
    assert_eq!(
        refused(&at("text.npy"), None),
        "E0702 text.npy: is not a .npy file: it does not begin with \"\\x93NUMPY\""
    );
}

#[test]
fn no_permission() {
    use std::os::unix::fs::PermissionsExt;
    if rustix::process::geteuid().is_root() {
        println!("skipped: the superuser may read everything");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = put(folder.path(), "x.npy", &npy(1, PLAIN, &[0; 48]));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    assert_eq!(
        refused(&path, None),
        "E0701 x.npy: cannot be read: no permission"
    );
    assert!(
        supported(&path)
            .unwrap_err()
            .message
            .contains("write-protected")
    );
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o555)).unwrap();
    let error = supported(&folder.path().join("y.npy")).unwrap_err();
    assert!(error.message.contains("no permission"), "{error}");
}

#[test]
fn lying_headers() {
    let folder = tempfile::tempdir().unwrap();
    let file = |dict: &str, bytes: usize| {
        refused(
            &put(folder.path(), "x.npy", &npy(1, dict, &vec![0; bytes])),
            None,
        )
    };
    assert_eq!(
        file(PLAIN, 20),
        "E0702 x.npy: is truncated: its header says f32[3, 4], 48 bytes of data, but only 20 follow\nhelp: write or copy the file again"
    );
    assert_eq!(
        file(PLAIN, 50),
        "E0702 x.npy: is not what its header says: f32[3, 4] is 48 bytes of data, but 50 follow"
    );
    let shaped =
        |shape: &str| format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    assert_eq!(
        file(&shaped("(4294967296, 4294967296)"), 8),
        "E0702 x.npy: is not what its header says: f64[4294967296, 4294967296] is more than any file can hold"
    );
    assert!(file(&shaped("(4611686018427387904, 4, 0)"), 0).contains("more than any file"));
    for shape in [
        "(-1,)",
        "(2.0,)",
        "(18446744073709551616,)",
        "3",
        "None",
        "('a',)",
    ] {
        assert!(file(&shaped(shape), 8).starts_with("E0702"), "{shape}");
    }
    for dict in [
        "",
        "{",
        "[1]",
        "{'descr': '<f4'}",
        "((((((((((1))))))))))",
        "{{{{{{{{{{{{",
    ] {
        assert!(file(dict, 8).starts_with("E0702"), "{dict}");
    }
    let mut unknown = npy(1, PLAIN, &[0; 48]);
    unknown[6] = 4;
    let path = put(folder.path(), "x.npy", &unknown);
    assert_eq!(
        refused(&path, None),
        "E0702 x.npy: is .npy version 4.0; versions 1.0, 2.0 and 3.0 are known"
    );
}

#[test]
fn foreign_element_types() {
    let folder = tempfile::tempdir().unwrap();
    let typed = |descr: &str| {
        let dict = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (1,), }}");
        refused(&put(folder.path(), "x.npy", &npy(1, &dict, &[0; 8])), None)
    };
    let known = "which is not an element type; those are f16 bf16 f32 f64 u8 u16 u32 u64 i8 i16 i32 i64 bool c64 c128";
    assert_eq!(
        typed("'<f16'"),
        format!(
            "E0703 x.npy: holds float128 ('<f16'), {known}\nhelp: convert it with numpy: x.astype(\"float64\")"
        )
    );
    assert_eq!(
        typed("'<c32'"),
        format!(
            "E0703 x.npy: holds complex256 ('<c32'), {known}\nhelp: convert it with numpy: x.astype(\"complex128\")"
        )
    );
    for (descr, word) in [
        ("'<f16'", "float128"),
        ("'<U5'", "strings"),
        ("'|S5'", "strings"),
        ("'|O'", "pickled"),
        ("'<M8[D]'", "dates"),
        ("'|V9'", "raw records"),
        ("'nonsense'", "unknown"),
        ("''", "unknown"),
    ] {
        let text = typed(descr);
        assert!(text.starts_with("E0703") && text.contains(word), "{text}");
    }
    assert_eq!(
        typed("[('a', '<f4'), ('b', '<i4')]"),
        "E0703 x.npy: is a structured array with fields `a`, `b`\nhelp: save each field as an array of its own: numpy.save(\"a.npy\", x[\"a\"])"
    );
}

#[test]
fn keys() {
    let folder = tempfile::tempdir().unwrap();
    let paths = samples(folder.path());
    assert_eq!(
        refused(&paths[0], Some("a")),
        "E0706 x.npy: a .npy file holds one array and no keys, so there is no `a`\nhelp: leave the key out"
    );
    assert_eq!(
        refused(&paths[1], Some("zebra")),
        "E0706 x.npz: holds no array `zebra`; it holds `a`"
    );
    let two = r#"{"train_x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"train_y":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[4,5]}}"#;
    let mut bytes = (two.len() as u64).to_le_bytes().to_vec();
    bytes.extend(two.as_bytes());
    bytes.extend([0; 5]);
    let path = put(folder.path(), "two.safetensors", &bytes);
    assert_eq!(
        refused(&path, None),
        "E0706 two.safetensors: holds 2 arrays; say which: `train_x`, `train_y`\nhelp: load(\"two.safetensors\", \"train_x\")"
    );
    assert_eq!(
        refused(&path, Some("trian_x")),
        "E0706 two.safetensors: holds no array `trian_x`; it holds `train_x`, `train_y`\nhelp: did you mean `train_x`?"
    );
    assert!(refused(&path, Some("train_y")).starts_with(
        "E0703 two.safetensors: array `train_y`: holds F8_E4M3, which is not an element type"
    ));
    assert!(open(&path, Some("train_x")).is_ok());
}

#[test]
fn declared_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let path = &samples(folder.path())[0];
    let header = open(path, None).unwrap().header().clone();
    assert!(header.expect("x.npy", DType::F32, &[Some(3), None]).is_ok());
    let error = header
        .expect("x.npy", DType::I64, &[None, None])
        .unwrap_err();
    assert_eq!(
        told(&error, path),
        "E0703 x.npy: holds f32[3, 4], but the program declares i64\nhelp: declare f32 in the program, or convert the data: x.astype(\"int64\")"
    );
    let error = header
        .expect("x.npy", DType::F32, &[None, Some(5)])
        .unwrap_err();
    assert_eq!(
        told(&error, path),
        "E0704 x.npy: holds f32[3, 4], but the program declares f32[_, 5]"
    );
}

#[test]
fn truncated_at_every_length() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = samples(folder.path());
    if numpy(
        folder.path(),
        "import numpy as np; np.savez_compressed('z.npz', a=np.ones((3, 4), 'f4'))",
    ) {
        files.push(folder.path().join("z.npz"));
    }
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        for end in 0..bytes.len() {
            std::fs::write(&path, &bytes[..end]).unwrap();
            let text = refused(&path, None);
            assert!(text.starts_with("E0702"), "{end}: {text}");
        }
        let more = [&bytes[..], &[0; 3]].concat();
        std::fs::write(&path, more).unwrap();
        if path.extension().unwrap() != "npz" {
            assert!(refused(&path, None).starts_with("E0702"));
        }
    }
}

/// A bit that has flipped anywhere in a stored entry is told before any of its values is used, in boxes or out of mapped memory.
#[test]
fn a_flipped_bit_in_a_stored_entry() {
    let folder = tempfile::tempdir().unwrap();
    let path = &samples(folder.path())[1];
    let bytes = std::fs::read(path).unwrap();
    let (_, begin) = open(path, None).unwrap().plain().unwrap().unwrap();
    for at in 0..48 {
        let mut damaged = bytes.clone();
        damaged[begin as usize + at] ^= 1 << (at % 8);
        // The same file with other bytes might not be newer by the clock of the file system.
        let path = put(folder.path(), &format!("{at}.npz"), &damaged);
        let reader = open(&path, None).unwrap();
        let expected = format!(
            "E0702 {at}.npz: array `a`: is damaged: its checksum (CRC-32) is not the one in the archive\nhelp: write or copy the file again"
        );
        for _ in 0..2 {
            let read = reader.read(&[(0, 1), (0, 1)]).unwrap_err();
            assert_eq!(told(&read, &path), expected);
            assert_eq!(told(&reader.plain().unwrap_err(), &path), expected);
        }
    }
}

/// Opens and reads; whatever happens, it must be a result.
fn try_all(path: &Path) {
    for key in [None, Some("a")] {
        if let Ok(reader) = open(path, key) {
            let shape = reader.header().shape.clone();
            let _ = reader.read(&whole(&shape));
            let _ = reader.read(&vec![(u64::MAX, 2); shape.len()]);
            let _ = reader.read(&[]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), format in 0usize..3) {
        let folder = tempfile::tempdir().unwrap();
        let name = ["x.npy", "x.npz", "x.safetensors"][format];
        try_all(&put(folder.path(), name, &bytes));
    }

    #[test]
    fn damaged_files_never_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        format in 0usize..3,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = &samples(folder.path())[format];
        let mut bytes = std::fs::read(path).unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        std::fs::write(path, &bytes).unwrap();
        try_all(path);
    }

    #[test]
    fn headers_of_brackets_and_words_never_panic(
        words in proptest::collection::vec(
            prop::sample::select(vec![
                "{", "}", "(", ")", "[", "]", ",", ":", "'descr'", "'shape'", "'fortran_order'",
                "'<f4'", "True", "False", "3", "-", "99999999999999999999", "1e5", "b'x'", "\\", "'",
            ]),
            0..40,
        ),
    ) {
        let folder = tempfile::tempdir().unwrap();
        try_all(&put(folder.path(), "x.npy", &npy(1, &words.concat(), &[0; 12])));
    }
}

/// What stands in a folder, sorted.
fn listing(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn outputs_that_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let say = |path: &Path| told(&supported(path).unwrap_err(), path);
    assert_eq!(
        told(&supported(&at("no/x.npy")).unwrap_err(), &at("x")),
        "E0705 no/x.npy: there is no folder `no`\nhelp: make it: mkdir -p no"
    );
    assert_eq!(
        say(&at("x.txt")),
        "E0705 x.txt: the extension .txt is not a known format\nhelp: the formats are .npy, .npz, .safetensors, .csr.npz and .mtx"
    );
    std::fs::create_dir(at("d.npy")).unwrap();
    assert_eq!(
        say(&at("d.npy")),
        "E0705 d.npy: is a directory, not a regular file"
    );
    put(folder.path(), "f", b"");
    assert!(say(&at("f/x.npy")).starts_with("E0705"));
    let error = Writer::create(Path::new("/sys/x.npy"), None, DType::F32, &[2], "t").unwrap_err();
    assert_eq!(error.code, "E0705", "{error}");
    let error =
        Writer::create(&at("x.npy"), None, DType::F64, &[1 << 40, 1 << 40], "t").unwrap_err();
    assert!(
        error.message.contains("more than any file can hold"),
        "{error}"
    );
    assert_eq!(listing(folder.path()), ["d.npy", "f"]);
}

#[test]
fn the_target_changes_only_at_the_end() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    for name in ["x.npy", "x.npz", "x.safetensors"] {
        let path = put(folder.path(), name, b"old");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let array = numbered(DType::I64, &[6]);
        let begin = || Writer::create(&path, None, DType::I64, &[6], "run 1/a").unwrap();
        let writer = begin();
        let second = Writer::create(&path, None, DType::I64, &[6], "run 1/a").unwrap_err();
        assert!(second.message.contains("is in the way"), "{second}");
        writer.write(&[(0, 6)], &array).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        writer.discard();
        assert_eq!(listing(folder.path()), [name]);
        drop(begin());
        assert_eq!(listing(folder.path()), [name]);
        let writer = begin();
        Writer::attach(&path, None, DType::I64, &[6], "run 1/a")
            .unwrap()
            .discard();
        let error = writer.finish().unwrap_err();
        assert_eq!(error.code, "E0705", "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        let writer = begin();
        let wrong = writer.write(&[(0, 5)], &array).unwrap_err();
        assert!(wrong.message.contains("does not fit"), "{wrong}");
        writer.write(&[(0, 6)], &array).unwrap();
        writer.finish().unwrap();
        assert_eq!(open(&path, None).unwrap().read(&[(0, 6)]).unwrap(), array);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(listing(folder.path()), [name]);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_link_stays_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (
        folder.path().join("real.npy"),
        folder.path().join("link.npy"),
    );
    std::fs::write(&real, b"old").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let writer = Writer::create(&link, None, DType::U8, &[], "t").unwrap();
    writer.write(&[], &numbered(DType::U8, &[])).unwrap();
    writer.finish().unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(open(&real, None).is_ok());
}

#[test]
fn a_site_that_sees_another_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let error = Writer::attach(&path, None, DType::F32, &[2], "t").unwrap_err();
    assert!(error.message.contains("does not see it"), "{error}");
}

/// A tiny disk that is unmounted at the end.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new() -> Option<Disk> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
            .arg(folder.path())
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then(|| Disk(folder))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk() {
    let Some(disk) = Disk::new() else {
        println!("skipped: a disk can be mounted by the superuser only");
        return;
    };
    let folder = disk.0.path();
    let create = |name: &str, elements: u64| -> Result<Writer, DataError> {
        Writer::create(&folder.join(name), None, DType::F64, &[elements], "t")
    };
    for name in ["x.npy", "x.npz", "x.safetensors"] {
        let error = create(name, 100_000).unwrap_err();
        assert_eq!(error.code, "E0707");
        assert!(
            error
                .message
                .contains("the disk is full: f64[100000] needs 800"),
            "{error}"
        );
        assert!(listing(folder).is_empty());
    }
    // 160 kB fit once; the archive, which needs them twice, does not.
    assert_eq!(create("x.npz", 20_000).unwrap_err().code, "E0707");
    assert!(listing(folder).is_empty());
    let writer = create("x.npy", 20_000).unwrap();
    writer
        .write(&[(0, 20_000)], &numbered(DType::F64, &[20_000]))
        .unwrap();
    writer.finish().unwrap();
    assert_eq!(listing(folder), ["x.npy"]);
    // The room was taken at the beginning: what fills the disk meanwhile does not hurt.
    std::fs::remove_file(folder.join("x.npy")).unwrap();
    let writer = create("x.npy", 20_000).unwrap();
    let mut filler = std::fs::File::create(folder.join("filler")).unwrap();
    while std::io::Write::write_all(&mut filler, &[0; 4096]).is_ok() {}
    writer
        .write(&[(0, 20_000)], &numbered(DType::F64, &[20_000]))
        .unwrap();
    writer.finish().unwrap();
    assert!(open(&folder.join("x.npy"), None).is_ok());
}
