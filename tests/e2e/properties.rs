//! Random well-typed programs, compiled and run on 1 to 5 sites, or on random layouts over meshes of up to 8, against
//! the interpreter; in deterministic mode bit for bit the same on every number of sites.

use ein_array::{Array, Data};
use ein_data::{Reader, Writer};
use ein_device::Device;
use ein_exec::{Options, run_in_process};
use ein_plan::{DType, FileRef, Mesh, Plan, RelationId, Scalar};
use einc_core::einsum::interpret::{Values, interpret};
use einc_core::einsum::random::{Case, case};
use einc_core::einsum::{Definition, Program, Role};
use einc_core::ia::from_layout::place;
use einc_core::ia::layout::Layout;
use einc_core::ia::random;
use einc_core::lower::{lower, streamed, unswept};
use einc_core::pipeline::{self, compile};
use half::{bf16, f16};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The device that `EIN_DEVICE` names.
fn device() -> Arc<dyn Device> {
    match std::env::var("EIN_DEVICE").as_deref() {
        Err(_) | Ok("" | "cpu") => ein_device_cpu::device(),
        Ok("reference") => einc_reference::device(),
        Ok("emulated") => ein_cuda::emulated().unwrap(),
        Ok("gpu") => Arc::new(ein_cuda::nvidia(0, &Arc::default()).unwrap().0),
        Ok(other) => panic!("there is no device `{other}`"),
    }
}

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
        DType::U16 => Data::U16(values.iter().map(|v| int(v) as u16).collect()),
        DType::U32 => Data::U32(values.iter().map(|v| int(v) as u32).collect()),
        DType::U64 => Data::U64(values.iter().map(|v| int(v) as u64).collect()),
        DType::I8 => Data::I8(values.iter().map(|v| int(v) as i8).collect()),
        DType::I16 => Data::I16(values.iter().map(|v| int(v) as i16).collect()),
        DType::I32 => Data::I32(values.iter().map(|v| int(v) as i32).collect()),
        DType::I64 => Data::I64(values.iter().map(int).collect()),
        DType::Bool => Data::Bool(values.iter().map(|v| u8::from(v.as_f64() != 0.0)).collect()),
        DType::C64 | DType::C128 => unreachable!("no type of arrays"),
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

/// A case, its inputs in files, and what it gives by the interpreter.
pub(crate) struct Subject {
    case: Case,
    expected: Vec<Values>,
    folder: tempfile::TempDir,
    inputs: std::collections::BTreeMap<String, FileRef>,
    names: Vec<String>,
}

impl Subject {
    fn of(seed: u64) -> Subject {
        Subject::of_case(case(seed))
    }

    /// A case that does not stop its run.
    pub(crate) fn of_case(case: Case) -> Subject {
        let expected = interpret(&case.program, &|tensor| case.input(tensor)).unwrap();
        Subject::expecting(case, expected)
    }

    /// A program without inputs whose results are not the interpreter's to say.
    pub(crate) fn unchecked(program: Program) -> Subject {
        let case = Case {
            program,
            inputs: Default::default(),
            tolerance: vec![],
        };
        Subject::expecting(case, vec![])
    }

    fn expecting(case: Case, expected: Vec<Values>) -> Subject {
        let folder = tempfile::tempdir().unwrap();
        let inputs = write_inputs(&case, folder.path());
        let outputs = case.program.outputs.iter();
        let names = outputs.map(|output| case.program.tensor(output.tensor).name.clone());
        Subject {
            names: names.collect(),
            case,
            expected,
            folder,
            inputs,
        }
    }

    /// Runs a plan, compares what it gives and moves; `how` names the run. The bits of the outputs.
    fn run(&self, plan: &Plan, how: &str) -> Vec<Vec<u8>> {
        let place = self.folder.path().join(how);
        std::fs::create_dir(&place).unwrap();
        let file = |name: &String| -> PathBuf { place.join(format!("{name}.npy")) };
        let saves = self.names.iter().map(|name| (name.clone(), file(name)));
        let options = Options {
            seed: 0,
            threads: 2,
            base: place.clone(),
            inputs: self.inputs.clone(),
            saves: saves.collect(),
            ..Options::on(device())
        };
        let report =
            run_in_process(plan, &options).unwrap_or_else(|error| panic!("{how}: {error}\n{plan}"));
        let stated = ein_plan::traffic::by_step(plan);
        for (step, (moved, stated)) in report.traffic.steps.iter().zip(stated).enumerate() {
            let stated = (stated.floats, stated.bytes);
            assert_eq!(
                (moved.floats, moved.bytes),
                stated,
                "{how}: step {step}\n{plan}"
            );
        }
        let peaks = ein_plan::memory::peaks(plan);
        for (site, (held, peak)) in report.peak_bytes.iter().zip(peaks).enumerate() {
            let most = peak.bytes;
            assert!(
                *held <= most,
                "{how}: site {site} held {held} bytes of {most}\n{plan}"
            );
        }
        let volumes = report.spilled.iter();
        let most = volumes.fold((0, 0), |(written, read), site| {
            (site.written.max(written), site.read.max(read))
        });
        if !plan.streams.is_empty() {
            let stated = plan.spilled();
            assert_eq!(most, (stated.written, stated.read), "{how}\n{plan}");
        }
        let mut bits = vec![];
        for (number, name) in self.names.iter().enumerate() {
            let (values, bytes) = read(&file(name));
            if let Err(difference) = self.case.compare(number, &self.expected[number], &values) {
                panic!("{how}: {name}: {difference}\n{plan}");
            }
            bits.push(bytes);
        }
        bits
    }

    fn compiled(&self, sites: u32, deterministic: bool) -> pipeline::Compiled {
        let options = pipeline::Options {
            deterministic,
            ..pipeline::Options::new(sites)
        };
        let compiled = compile(&self.case.program, &options, &|| false);
        compiled.unwrap_or_else(|e| panic!("{sites} sites: {e:?}\n{}", self.case.program))
    }

    /// The rules that led to the plan for some sites.
    pub(crate) fn rules(&self, sites: u32) -> Vec<String> {
        let rewrites = self.compiled(sites, false).chosen.rewrites;
        rewrites.into_iter().map(|used| used.rule).collect()
    }

    /// What a run on some sites gives, not compared with anything.
    pub(crate) fn once(&self, sites: u32) -> Vec<Values> {
        let place = self.folder.path().join(format!("once {sites}"));
        std::fs::create_dir(&place).unwrap();
        let file = |name: &String| -> PathBuf { place.join(format!("{name}.npy")) };
        let saves = self.names.iter().map(|name| (name.clone(), file(name)));
        let options = Options {
            threads: 2,
            inputs: self.inputs.clone(),
            saves: saves.collect(),
            ..Options::on(device())
        };
        run_in_process(&self.compiled(sites, false).plan, &options).unwrap();
        self.names.iter().map(|name| read(&file(name)).0).collect()
    }

    /// Compares what a run gave with what the interpreter gives.
    pub(crate) fn compare(&self, found: &[Values], how: &str) {
        for (number, (expected, found)) in self.expected.iter().zip(found).enumerate() {
            if let Err(difference) = self.case.compare(number, expected, found) {
                panic!("{how}: {}: {difference}", self.names[number]);
            }
        }
    }

    /// Why a run on some sites stops.
    pub(crate) fn error(&self, sites: u32) -> ein_exec::RunError {
        let options = Options {
            threads: 2,
            ..Options::on(device())
        };
        run_in_process(&self.compiled(sites, false).plan, &options).unwrap_err()
    }

    /// Runs on 1 to 5 sites; in deterministic mode the bits are the same.
    pub(crate) fn on_all_sites(&self, what: &str) {
        let mut first: Option<Vec<Vec<u8>>> = None;
        for deterministic in [false, true] {
            for sites in 1..=5 {
                let how = format!("{what}, {sites} sites, deterministic {deterministic}");
                let bits = self.run(&self.compiled(sites, deterministic).plan, &how);
                if deterministic {
                    assert_eq!(first.get_or_insert_with(|| bits.clone()), &bits, "{how}");
                }
            }
        }
    }

    /// Runs on layouts that no search would choose.
    pub(crate) fn on_random_layouts(&self, seed: u64) {
        for round in 0..8 {
            let sites = 1 + round as u32 % 5;
            let layout = random::layout(&self.case.program, sites, 31 * seed + round);
            let plan = self.plan(&layout, sites, false);
            self.run(&plan, &format!("layout {round}, {sites} sites"));
        }
    }

    fn plan(&self, layout: &Layout, sites: u32, deterministic: bool) -> Plan {
        let placed = place(&self.case.program, layout, sites, deterministic).unwrap();
        let plan = lower(&placed.ia, deterministic).unwrap();
        ein_plan::verify::verify(&plan).unwrap();
        plan
    }
}

#[test]
fn random_programs_give_what_the_interpreter_gives() {
    for seed in 0..150 {
        let subject = Subject::of(seed);
        let mut first: Option<Vec<Vec<u8>>> = None;
        for deterministic in [false, true] {
            for sites in 1..=5 {
                let options = pipeline::Options {
                    criteria: pipeline::Criteria {
                        objective: match seed % 2 {
                            0 => pipeline::Objective::Transfer,
                            _ => pipeline::Objective::Bytes,
                        },
                        ..pipeline::Criteria::default()
                    },
                    sites,
                    deterministic,
                };
                let compiled =
                    compile(&subject.case.program, &options, &|| false).unwrap_or_else(|e| {
                        panic!(
                            "seed {seed}, {sites} sites: {e:?}\n{}",
                            subject.case.program
                        )
                    });
                let how = format!("seed {seed}, {sites} sites, deterministic {deterministic}");
                let bits = subject.run(&compiled.plan, &how);
                if deterministic {
                    assert_eq!(first.get_or_insert_with(|| bits.clone()), &bits, "{how}");
                }
            }
        }
    }
}

#[test]
fn random_layouts_give_what_the_interpreter_gives() {
    for seed in 0..100 {
        let subject = Subject::of(seed);
        for round in 0..5 {
            let sites = 1 + ((seed + 3 * round) % 8) as u32;
            let layout = random::layout(&subject.case.program, sites, 31 * seed + round);
            let plan = subject.plan(&layout, sites, false);
            subject.run(&plan, &format!("seed {seed}, round {round}, {sites} sites"));
        }
    }
}

/// All that may lies on disk tuple by tuple, however small it is.
#[test]
fn layouts_on_disk_give_what_the_interpreter_gives() {
    let mut moved = 0;
    for seed in 0..100 {
        let subject = Subject::of(seed);
        for round in 0..4 {
            let sites = 1 + ((seed + 3 * round) % 6) as u32;
            let layout = random::layout(&subject.case.program, sites, 31 * seed + round);
            let plan = streamed(&unswept(&subject.plan(&layout, sites, false)), 1);
            ein_plan::verify::verify(&plan).unwrap();
            let moves = |relation: &RelationId| plan.moved_in(plan.step(*relation)).is_some();
            moved += plan
                .streams
                .iter()
                .filter(|relation| moves(relation))
                .count();
            subject.run(&plan, &format!("seed {seed}, round {round}, {sites} sites"));
        }
    }
    assert!(moved > 200, "{moved}");
}

/// The same roles on meshes of different counts, idle sites beside them.
#[test]
fn deterministic_layouts_give_the_same_bits_on_every_mesh() {
    for seed in 0..60 {
        let subject = Subject::of(seed);
        let mut first: Option<Vec<Vec<u8>>> = None;
        for axes in [[1, 1], [1, 3], [2, 1], [2, 2], [2, 3], [4, 1]] {
            let mesh = Mesh { axes: axes.into() };
            let sites = mesh.sites() + u32::from(axes == [2, 2]);
            let layout = random::on_mesh(&subject.case.program, mesh, seed);
            let plan = subject.plan(&layout, sites, true);
            let how = format!("seed {seed}, mesh {axes:?}");
            let bits = subject.run(&plan, &how);
            assert_eq!(
                first.get_or_insert_with(|| bits.clone()),
                &bits,
                "{how}\n{plan}"
            );
        }
    }
}
