//! Checkpoints come back bit for bit on any number of sites; what is damaged or foreign is refused with its reason.
#![allow(clippy::unwrap_used)]

mod support;

use ein_data::checkpoint::{
    Checkpoint, CheckpointWriter, InUse, hold, list, newest, prepare, sweep,
};
use ein_data::{DataError, Header, Named, SetWriter};
use ein_plan::DType;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{cut, numbered, open, told, whole};

fn named(name: &str, dtype: DType, shape: &[u64]) -> Named {
    Named {
        name: name.into(),
        header: Header {
            dtype,
            shape: shape.to_vec(),
        },
    }
}

/// Every element type, sizes that nothing divides, a scalar and an empty tensor.
fn tensors() -> Vec<Named> {
    let shapes: [&[u64]; 8] = [
        &[7, 5],
        &[11],
        &[13, 3],
        &[],
        &[2, 3, 5],
        &[17],
        &[0, 4],
        &[9],
    ];
    let mut list: Vec<Named> = DType::ALL
        .into_iter()
        .zip(shapes)
        .map(|(dtype, shape)| named(&format!("t.{dtype}"), dtype, shape))
        .collect();
    list.push(named("t.f32/m", DType::F32, &[13, 3]));
    list
}

/// The rows of a tensor that a site writes: blocks of the first dimension, or all of a scalar at site 0.
fn boxes(shape: &[u64], site: u64, sites: u64) -> Option<Vec<(u64, u64)>> {
    let mut ranges = whole(shape);
    let Some(first) = ranges.first_mut() else {
        return (site == 0).then_some(ranges);
    };
    let per = first.1.div_ceil(sites);
    let start = (site * per).min(first.1);
    *first = (start, per.min(first.1 - start));
    (first.1 > 0).then_some(ranges)
}

fn counters(step: u64) -> BTreeMap<String, u64> {
    BTreeMap::from([("epoch".into(), step / 10), ("seed".into(), u64::MAX)])
}

fn facts() -> BTreeMap<String, String> {
    BTreeMap::from([
        ("batch".into(), "64".into()),
        ("optimizer".into(), "lamb(lr: 0.02)".into()),
    ])
}

/// A checkpoint written by that many sites.
fn save(root: &Path, step: u64, sites: u64, keep: Option<u64>) -> Result<PathBuf, DataError> {
    let tensors = tensors();
    let mut writers = vec![CheckpointWriter::create(root, step, &tensors, "t")?];
    for _ in 1..sites {
        writers.push(CheckpointWriter::attach(root, step, &tensors, "t")?);
    }
    for (site, writer) in writers.iter().enumerate() {
        for (number, tensor) in tensors.iter().enumerate() {
            let shape = &tensor.header.shape;
            if let Some(ranges) = boxes(shape, site as u64, sites) {
                let all = numbered(tensor.header.dtype, shape);
                writer.write(number, &ranges, &cut(&all, &ranges))?;
            }
        }
        writer.settle()?;
    }
    writers.swap_remove(0).finish(counters(step), facts(), keep)
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn written_and_read_on_any_number_of_sites() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = vec![];
    for sites in 1..=5 {
        let root = folder.path().join(format!("run {sites}/ckpt"));
        let saved = save(&root, 120, sites, None).unwrap();
        assert_eq!(saved, root.join("step-000000120"));
        assert_eq!(names(&root), ["step-000000120"]);
        assert_eq!(names(&saved), ["manifest.json", "tensors.safetensors"]);
        let found = newest(&root, &tensors(), &facts());
        assert_eq!(found.refused, []);
        let checkpoint = found.checkpoint.unwrap();
        let manifest = checkpoint.manifest();
        assert_eq!((manifest.step, &manifest.counters), (120, &counters(120)));
        assert_eq!((&manifest.facts, &manifest.tensors), (&facts(), &tensors()));
        for readers in 1..=5 {
            for tensor in &manifest.tensors {
                let reader = checkpoint.reader(&tensor.name).unwrap();
                let all = numbered(tensor.header.dtype, &tensor.header.shape);
                for site in 0..readers {
                    if let Some(ranges) = boxes(&tensor.header.shape, site, readers) {
                        assert_eq!(reader.read(&ranges).unwrap(), cut(&all, &ranges));
                    }
                }
            }
        }
        files.push((
            std::fs::read(saved.join("tensors.safetensors")).unwrap(),
            std::fs::read(saved.join("manifest.json")).unwrap(),
        ));
    }
    assert!(
        files.iter().all(|file| *file == files[0]),
        "written alike by any number of sites"
    );
    // The format's own library reads the same tensors.
    let read = safetensors::SafeTensors::deserialize(&files[0].0).unwrap();
    assert_eq!(read.len(), tensors().len());
    let bytes = read.tensor("t.f32").unwrap().data();
    assert_eq!(bytes, numbered(DType::F32, &[13, 3]).data().bytes());
}

#[test]
fn the_manifest_is_for_people_too() {
    let folder = tempfile::tempdir().unwrap();
    let tensors = [named("W1", DType::F32, &[2, 3])];
    let writer = CheckpointWriter::create(folder.path(), 7, &tensors, "t").unwrap();
    writer
        .write(0, &whole(&[2, 3]), &numbered(DType::F32, &[2, 3]))
        .unwrap();
    let saved = writer.finish(counters(7), facts(), None).unwrap();
    insta::assert_snapshot!(std::fs::read_to_string(saved.join("manifest.json")).unwrap(), @r#"
    {
      "checksum": "b2189c6f",
      "manifest": {
      "format": 1,
      "step": 7,
      "counters": {
        "epoch": 0,
        "seed": 18446744073709551615
      },
      "facts": {
        "batch": "64",
        "optimizer": "lamb(lr: 0.02)"
      },
      "fingerprint": "0fea2d70f0cf4a7e5ee0539516cbc9b7",
      "table": "08807741",
      "tensors": [
        {
          "name": "W1",
          "type": "f32",
          "shape": [
            2,
            3
          ],
          "checksum": "85112770"
        }
      ]
    }
    }
    "#);
}

/// The reason why the only checkpoint of a folder is not used.
fn refused(root: &Path, tensors: &[Named], facts: &BTreeMap<String, String>) -> String {
    let found = newest(root, tensors, facts);
    assert!(found.checkpoint.is_none(), "{:?}", found.checkpoint);
    told(&found.refused[0], &root.join("x"))
}

#[test]
fn damage_is_found_wherever_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let saved = save(root, 3, 2, None).unwrap();
    for name in names(&saved) {
        let path = saved.join(&name);
        let good = std::fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            let why = refused(root, &tensors(), &facts());
            assert!(
                why.starts_with("E070") && !why.contains("E0708"),
                "{name} byte {at}: {why}"
            );
        }
        for len in (0..good.len() - 1).step_by(17) {
            std::fs::write(&path, &good[..len]).unwrap();
            let why = refused(root, &tensors(), &facts());
            assert!(
                why.starts_with("E0702 step-000000003: "),
                "{name} of {len} bytes: {why}"
            );
        }
        let longer = [good.clone(), b"0".to_vec()].concat();
        std::fs::write(&path, &longer).unwrap();
        refused(root, &tensors(), &facts());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(
            refused(root, &tensors(), &facts()),
            format!("E0702 step-000000003: is not whole: it has no {name}")
        );
        std::fs::write(&path, &good).unwrap();
        assert!(newest(root, &tensors(), &facts()).checkpoint.is_some());
    }
}

#[test]
fn the_reasons_are_the_users() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let saved = save(root, 3, 1, None).unwrap();
    let path = saved.join("tensors.safetensors");
    let good = std::fs::read(&path).unwrap();
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    std::fs::write(&path, &bad).unwrap();
    assert_eq!(
        refused(root, &tensors(), &facts()),
        "E0702 step-000000003: the tensor `t.u8` is damaged: its checksum is f3fdac9a, not 01962f99"
    );
    std::fs::write(&path, &good[..good.len() - 4]).unwrap();
    assert!(refused(root, &tensors(), &facts()).contains("is truncated: its table says"));
    std::fs::write(&path, &good).unwrap();

    let mut others = tensors();
    others[0].header.shape = vec![7, 6];
    others[1].name = "t.new".into();
    assert_eq!(
        refused(root, &others, &facts()),
        "E0708 step-000000003: is a checkpoint of another program or of other settings: `t.f16` is f16[7, 5] there and f16[7, 6] \
         here; it has no `t.new`; it has `t.bf16`, which this one has not"
    );
    let mut other = facts();
    other.insert("batch".into(), "128".into());
    other.insert("clip".into(), "1".into());
    assert_eq!(
        refused(root, &tensors(), &other),
        "E0708 step-000000003: is a checkpoint of another program or of other settings: batch is `64` there and `128` here; clip is \
         not given there and `1` here"
    );
    let text = std::fs::read_to_string(saved.join("manifest.json")).unwrap();
    std::fs::write(
        saved.join("manifest.json"),
        text.replace("\"step\": 3", "\"step\": 4"),
    )
    .unwrap();
    assert_eq!(
        refused(root, &tensors(), &facts()),
        "E0702 step-000000003: its manifest is damaged: its checksum does not fit what it says"
    );
}

#[test]
fn the_newest_good_one_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    assert!(newest(root, &tensors(), &facts()).checkpoint.is_none());
    assert!(
        newest(&root.join("none"), &tensors(), &facts())
            .refused
            .is_empty()
    );
    for step in [10, 20, 30, 1_000_000_000] {
        save(root, step, 2, None).unwrap();
    }
    let damaged = root.join("step-1000000000/tensors.safetensors");
    let mut bytes = std::fs::read(&damaged).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 0x80;
    std::fs::write(&damaged, bytes).unwrap();
    std::fs::remove_file(root.join("step-000000030/manifest.json")).unwrap();
    let found = newest(root, &tensors(), &facts());
    assert_eq!(found.checkpoint.unwrap().manifest().step, 20);
    let reasons: Vec<_> = found.refused.iter().map(|error| error.code).collect();
    assert_eq!(reasons, ["E0702", "E0702"]);
}

#[test]
fn a_checkpoint_under_another_name_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    save(root, 7, 1, None).unwrap();
    let moved = save(root, 20, 1, None).unwrap();
    std::fs::rename(moved, root.join("step-000000025")).unwrap();
    let found = newest(root, &tensors(), &facts());
    assert_eq!(found.checkpoint.unwrap().manifest().step, 7);
    let reason = found.refused[0].to_string();
    assert!(
        reason.contains("its name is not that of the step that it holds, 20"),
        "{reason}"
    );
}

#[test]
fn a_folder_that_nothing_can_be_written_into() {
    // A folder of the system's, in which nobody makes any.
    let refused = prepare(Path::new("/proc/self"), false).unwrap_err();
    assert_eq!(refused.code, "E0705", "{refused}");
}

#[test]
fn keep_and_replace() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for step in 1..=6 {
        save(root, step, 1, Some(3)).unwrap();
    }
    assert_eq!(
        names(root),
        ["step-000000004", "step-000000005", "step-000000006"]
    );
    // The same step again, as after resuming from an older one.
    save(root, 5, 3, Some(3)).unwrap();
    assert_eq!(
        names(root),
        ["step-000000004", "step-000000005", "step-000000006"]
    );
    Checkpoint::open(&root.join("step-000000005"))
        .unwrap()
        .verify()
        .unwrap();
    // One below all that are kept stays, because it was just written.
    save(root, 1, 1, Some(2)).unwrap();
    assert_eq!(
        names(root),
        ["step-000000001", "step-000000005", "step-000000006"]
    );
    assert_eq!(
        list(root).iter().map(|(step, _)| *step).collect::<Vec<_>>(),
        [6, 5, 1]
    );
}

#[test]
fn nothing_is_left_of_what_is_not_finished() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let tensors = tensors();
    drop(CheckpointWriter::create(root, 1, &tensors, "t").unwrap());
    assert!(names(root).is_empty());
    let writer = CheckpointWriter::create(root, 1, &tensors, "t").unwrap();
    let second = CheckpointWriter::create(root, 1, &tensors, "t").unwrap_err();
    assert!(second.message.contains("is in the way"), "{second}");
    assert!(
        newest(root, &tensors, &facts()).checkpoint.is_none(),
        "not there before it is finished"
    );
    CheckpointWriter::attach(root, 1, &tensors, "t")
        .unwrap()
        .discard();
    drop(writer);
    assert!(names(root).is_empty());
    std::mem::forget(CheckpointWriter::create(root, 1, &tensors, "killed").unwrap());
    std::fs::write(root.join("notes.txt"), "mine").unwrap();
    assert_eq!(names(root).len(), 2);
    sweep(root);
    assert_eq!(names(root), ["notes.txt"]);
    save(root, 4, 1, None).unwrap();
    let deeper = root.join("run/new");
    prepare(&deeper, false).unwrap();
    prepare(root, false).unwrap();
    assert_eq!(names(root), ["notes.txt", "run", "step-000000004"]);
    prepare(root, true).unwrap();
    assert_eq!(names(root), ["notes.txt", "run"]);
    assert_eq!(
        prepare(&root.join("notes.txt/x"), true).unwrap_err().code,
        "E0705"
    );
    let error = CheckpointWriter::attach(root, 1, &tensors, "t").unwrap_err();
    assert!(error.message.contains("does not see it"), "{error}");
    let file = root.join("notes.txt");
    let error = CheckpointWriter::create(&file.join("x"), 1, &tensors, "t").unwrap_err();
    assert_eq!(error.code, "E0705", "{error}");
}

#[test]
fn a_full_disk() {
    let disk = tempfile::tempdir().unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"])
        .arg(disk.path())
        .output()
        .is_ok_and(|output| output.status.success());
    if !mounted {
        println!("skipped: a disk can be mounted by the superuser only");
        return;
    }
    let result = std::panic::catch_unwind(|| {
        let root = disk.path();
        save(root, 1, 2, None).unwrap();
        let large = [named("W", DType::F64, &[20_000])];
        let error = CheckpointWriter::create(root, 2, &large, "t").unwrap_err();
        assert_eq!(error.code, "E0707", "{error}");
        assert!(
            error
                .message
                .contains("the disk is full: a file of 1 arrays needs 160"),
            "{error}"
        );
        assert_eq!(
            names(root),
            ["step-000000001"],
            "nothing is left, and the older one is untouched"
        );
        assert!(newest(root, &tensors(), &facts()).checkpoint.is_some());
    });
    let _ = Command::new("umount").arg(disk.path()).status();
    result.unwrap();
}

#[test]
fn sets_of_arrays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let arrays = tensors();
    let error = SetWriter::create(&folder.path().join("m.npy"), &arrays, "t").unwrap_err();
    assert_eq!(
        (error.code, error.help.as_deref()),
        ("E0705", Some("end its name in .safetensors"))
    );
    std::fs::write(&path, b"old").unwrap();
    let writer = SetWriter::create(&path, &arrays, "t").unwrap();
    let other = SetWriter::attach(&path, &arrays, "t").unwrap();
    for (number, array) in arrays.iter().enumerate() {
        let shape = &array.header.shape;
        let side = if number % 2 == 0 { &writer } else { &other };
        side.write(number, &whole(shape), &numbered(array.header.dtype, shape))
            .unwrap();
    }
    assert!(writer.write(99, &[], &numbered(DType::F32, &[])).is_err());
    assert!(
        writer
            .write(1, &[(0, 12)], &numbered(DType::BF16, &[12]))
            .is_err()
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    writer.finish().unwrap();
    for array in &arrays {
        let read = open(&path, Some(&array.name))
            .unwrap()
            .read(&whole(&array.header.shape));
        assert_eq!(
            read.unwrap(),
            numbered(array.header.dtype, &array.header.shape)
        );
    }
    let mut found = ein_data::keys(&path).unwrap();
    found.sort();
    let mut wanted: Vec<String> = arrays.iter().map(|array| array.name.clone()).collect();
    wanted.sort();
    assert_eq!(found, wanted);
    let none = |path: &str| ein_data::keys(Path::new(path)).unwrap_err().to_string();
    assert_eq!(
        none("no.safetensors"),
        "no.safetensors: there is no such file"
    );
    assert!(none("x.npy").starts_with("x.npy: is no .safetensors file"));
    assert_eq!(names(folder.path()), ["model.safetensors"]);
}

#[test]
fn a_folder_is_held_by_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("ckpt");
    assert!(hold(&root).unwrap().is_none());
    prepare(&root, true).unwrap();
    let held = hold(&root).unwrap().unwrap();
    assert_eq!(hold(&root).unwrap_err(), InUse);
    let elsewhere = folder.path().join("elsewhere");
    std::os::unix::fs::symlink(&root, &elsewhere).unwrap();
    assert!(held.is(&elsewhere) && !held.is(folder.path()));
    drop(held);
    assert!(hold(&root).unwrap().is_some());
}

/// It might have no end.
#[test]
fn what_is_no_file_is_no_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("step-000000001");
    std::fs::create_dir(&inner).unwrap();
    std::os::unix::fs::symlink("/dev/zero", inner.join("manifest.json")).unwrap();
    let found = newest(folder.path(), &tensors(), &facts());
    assert!(found.checkpoint.is_none());
    let said = found.refused[0].to_string();
    assert!(
        said.ends_with("is not whole: its manifest.json is no file"),
        "{said}"
    );
}

proptest! {
    /// Whatever is in the folder, nothing panics.
    #[test]
    fn anything_may_be_there(manifest in proptest::collection::vec(any::<u8>(), 0..200), text in ".{0,80}") {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("step-1");
        std::fs::create_dir(&inner).unwrap();
        for bytes in [manifest.as_slice(), text.as_bytes()] {
            std::fs::write(inner.join("manifest.json"), bytes).unwrap();
            std::fs::write(inner.join("tensors.safetensors"), bytes).unwrap();
            prop_assert!(newest(folder.path(), &tensors(), &facts()).checkpoint.is_none());
        }
    }
}
