//! Random well-typed programs, compiled and run on 1 to 5 sites, against the interpreter; in deterministic mode
//! bit for bit the same on every number of sites.

use ein_array::{Array, Data};
use ein_data::{Reader, Writer};
use ein_exec::{Options, run_in_process};
use ein_plan::{DType, FileRef, Scalar};
use einc_core::einsum::interpret::{Values, interpret};
use einc_core::einsum::random::{Case, case};
use einc_core::einsum::{Definition, Role};
use einc_core::pipeline::{self, compile};
use half::{bf16, f16};
use std::path::{Path, PathBuf};

/// The values as they are stored.
fn stored(dtype: DType, values: &[Scalar]) -> Data {
    let float = |v: &Scalar| v.as_f64();
    let int = |v: &Scalar| match v {
        Scalar::Int(x) => *x,
        other => other.as_f64() as i64,
    };
    match dtype {
        DType::F16 => Data::F16(values.iter().map(|v| f16::from_f64(float(v))).collect()),
        DType::BF16 => Data::BF16(values.iter().map(|v| bf16::from_f64(float(v))).collect()),
        DType::F32 => Data::F32(values.iter().map(|v| float(v) as f32).collect()),
        DType::F64 => Data::F64(values.iter().map(float).collect()),
        DType::U8 => Data::U8(values.iter().map(|v| int(v) as u8).collect()),
        DType::I32 => Data::I32(values.iter().map(|v| int(v) as i32).collect()),
        DType::I64 => Data::I64(values.iter().map(int).collect()),
        DType::Bool => Data::Bool(values.iter().map(|v| u8::from(v.as_f64() != 0.0)).collect()),
    }
}

fn whole(shape: &[u64]) -> Vec<(u64, u64)> {
    shape.iter().map(|n| (0, *n)).collect()
}

fn write_inputs(case: &Case, folder: &Path) -> std::collections::BTreeMap<String, FileRef> {
    let inputs = case.program.tensors.iter().filter(|tensor| {
        tensor.role == Role::Input
            && matches!(&tensor.definition, Definition::Source(source) if !source.is_free())
    });
    inputs
        .map(|tensor| {
            let values = case.input(tensor);
            let path = folder.join(format!("{}.npy", tensor.name));
            let shape = values.shape.iter().map(|n| *n as usize).collect();
            let array = Array::new(shape, stored(tensor.dtype, &values.data)).unwrap();
            let writer = Writer::create(&path, None, tensor.dtype, &values.shape, "input").unwrap();
            writer.write(&whole(&values.shape), &array).unwrap();
            writer.finish().unwrap();
            let file = FileRef {
                path: path.to_str().unwrap().into(),
                key: None,
            };
            (tensor.name.clone(), file)
        })
        .collect()
}

fn read(path: &Path) -> (Values, Vec<u8>) {
    let file = FileRef {
        path: path.to_str().unwrap().into(),
        key: None,
    };
    let reader = Reader::open(&file).unwrap();
    let shape = reader.header().shape.clone();
    let array = reader.read(&whole(&shape)).unwrap();
    let data = (0..array.data().len())
        .map(|n| array.data().get(n))
        .collect();
    (Values { shape, data }, array.data().bytes().to_vec())
}

fn check(seed: u64) {
    let case = case(seed);
    let expected = interpret(&case.program, &|tensor| case.input(tensor)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let inputs = write_inputs(&case, folder.path());
    let names: Vec<String> = case
        .program
        .outputs
        .iter()
        .map(|output| case.program.tensor(output.tensor).name.clone())
        .collect();
    let mut first: Option<Vec<Vec<u8>>> = None;
    for deterministic in [false, true] {
        for sites in 1..=5 {
            let place = folder.path().join(format!("{deterministic}{sites}"));
            std::fs::create_dir(&place).unwrap();
            let file = |name: &String| -> PathBuf { place.join(format!("{name}.npy")) };
            let compiled = compile(
                &case.program,
                &pipeline::Options {
                    criteria: pipeline::Criteria::default(),
                    sites,
                    deterministic,
                },
            )
            .unwrap();
            let options = Options {
                seed: 0,
                threads: 2,
                base: place.clone(),
                inputs: inputs.clone(),
                saves: names
                    .iter()
                    .map(|name| (name.clone(), file(name)))
                    .collect(),
            };
            let how = format!("seed {seed}, {sites} sites, deterministic {deterministic}");
            let report = run_in_process(&compiled.plan, &options)
                .unwrap_or_else(|error| panic!("{how}: {error}\n{}", compiled.plan));
            for (step, (moved, stated)) in report
                .traffic
                .steps
                .iter()
                .zip(ein_plan::traffic::by_step(&compiled.plan))
                .enumerate()
            {
                assert_eq!(
                    (moved.floats, moved.bytes),
                    (stated.floats, stated.bytes),
                    "{how}: step {step}"
                );
            }
            let found: Vec<_> = names.iter().map(|name| read(&file(name))).collect();
            for (number, ((values, _), name)) in found.iter().zip(&names).enumerate() {
                if let Err(difference) = case.compare(number, &expected[number], values) {
                    panic!("{how}: {name}: {difference}\n{}", compiled.plan);
                }
            }
            if deterministic {
                let bits: Vec<_> = found.into_iter().map(|(_, bytes)| bytes).collect();
                assert_eq!(first.get_or_insert_with(|| bits.clone()), &bits, "{how}");
            }
        }
    }
}

#[test]
fn random_programs_give_what_the_interpreter_gives() {
    for seed in 0..150 {
        check(seed);
    }
}
