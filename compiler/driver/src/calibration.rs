//! The figures of this machine: measured, and found again.
//!
//! A linear model as in luo2021, section 7: seconds a message, a byte received, an operation of a product and another, a byte touched, a tuple, a place. Two sites of one
//! process tell what a node's own links take; what lies between nodes cannot be measured here. Must not know plans.
//!
//! ```text
//! message 8.1e-6, byte 2.0e-10, operation 1.4e-11, touched 1.1e-10, tuple 3.0e-6, element 1.2e-10, place 2.0e-9; in ~/.config/einc/machine.toml
//! ```

use crate::machine_file::{self, Figures, GpuFigures, missing};
use ein_array::{Array, Data};
use ein_comm::{Communicator, in_process};
use ein_device::{Buffer, BufferType, Device, Launch, Operand};
use ein_device_cpu::Cpu;
use ein_plan::{DType, Kernel, LoopKernel};
use einc_core::cost::Rates;
use einc_core::search::{Link, TimeModel};
use einc_diag::Diagnostic;
use std::{
    env, fs, io,
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

/// Times that each figure is taken; the least counts, since what disturbs only adds.
const ROUNDS: usize = 7;

/// Seconds from which a kernel is long enough to be measured.
const LONG: f64 = 1e-3;

/// Rows of the largest matrices.
const LARGEST: usize = 4096;

/// Seconds below which a kernel is run several times in a row, and how often.
const SHORT: f64 = 1e-4;
const IN_A_ROW: usize = 50;

/// Places that are looked up, in an order in which neighbours lie far apart.
const PLACES: usize = 1 << 20;

/// The file that a machine's figures are written to if none is named.
pub fn usual_place() -> Option<PathBuf> {
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".config"));
    let config = env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty());
    let config = config.map(PathBuf::from).or_else(home)?;
    Some(config.join("einc").join("machine.toml"))
}

/// The figures in a file, or in that of the usual place, where one of one level (`machine.json`) will do.
///
/// # Errors
/// There is no such file, or it is none of a machine (E0193).
pub fn read(path: Option<&Path>) -> Result<Figures, Diagnostic> {
    let usual = usual_place().map(|usual| match usual.with_extension("json") {
        older if older.is_file() && !usual.is_file() => older,
        _ => usual,
    });
    let Some(path) = path.or(usual.as_deref()) else {
        return Err(missing("there is no home folder"));
    };
    match fs::read_to_string(path) {
        Ok(text) => machine_file::parse(path, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(missing(format!("{} is not there", path.display())))
        }
        Err(error) => Err(missing(format!("cannot read {}: {error}", path.display()))),
    }
}

/// Measures the cores of this machine with one thread a site, two sites that exchange. Takes about two seconds.
pub fn measure() -> TimeModel {
    let (message, byte) = exchange();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.expect("a thread can be started");
    TimeModel {
        compute: pool.install(|| rates(&Cpu)),
        node: Link { message, byte },
        network: None,
    }
}

/// Measures a device with memory of its own, and the link to it.
pub fn measure_device(device: &dyn Device) -> GpuFigures {
    const MANY: usize = 4 << 20;
    let array = Buffer::from(zeros(&[MANY]));
    let there = least(|| {
        device.adopt(array.clone());
        device.synchronize();
    });
    let own = device.adopt(array);
    let back = least(|| drop(own.to_host()));
    GpuFigures {
        compute: rates(device),
        byte: (there + back) / (2.0 * 4.0 * MANY as f64),
    }
}

fn zeros(shape: &[usize]) -> Array {
    Array::zeros(DType::F32, shape)
}

/// The rates of a device. Operands grow until a kernel over them takes long enough to be measured.
fn rates(device: &dyn Device) -> Rates {
    let of_squares = |size: usize, text: &str| {
        let text = text.replace('N', &size.to_string());
        let matrix = zeros(&[size, size]);
        kernel_time(device, &text, &[&matrix, &matrix])
    };
    let large = |first: usize, text: &str| {
        let sizes = (0..4).map(|doubled| first << doubled);
        let times = sizes.map(|size| (size as f64, of_squares(size, text)));
        let mut times = times.skip_while(|(size, time)| *time < LONG && (*size as usize) < LARGEST);
        times.next().expect("the largest is long enough")
    };
    let (size, time) = large(
        512,
        "(f32[N, N], f32[N, N]) [i: N, j: N | k: N] f32 = sum a0[i, k] * a1[k, j]",
    );
    let operation = time / (2.0 * size.powi(3));
    let (size, time) = large(
        2048,
        "(f32[N, N], f32[N, N]) [i: N, j: N] f32 = a0[i, j] + a1[i, j]",
    );
    let touched = time / (3.0 * 4.0 * size.powi(2));
    let (size, time) = large(
        1024,
        "(f32[N, N], f32[N, N]) [i: N | k: N] f32 = max a0[i, k] * a1[i, k]",
    );
    // Of two operations at a point, for which eight bytes are read.
    let point = time / size.powi(2);
    let places = u32::try_from(PLACES).expect("there are fewer places than that");
    let numbers = (0..places).map(|at| at.wrapping_mul(2_654_435_761) % places);
    let places = Array::new(vec![PLACES], Data::U32(numbers.collect()));
    let places = places.expect("there are as many numbers as places");
    let looked_up = kernel_time(
        device,
        &format!("(f32[{PLACES}], u32[{PLACES}]) [i: {PLACES}] f32 = a0[a1[i]]"),
        &[&zeros(&[PLACES]), &places],
    );
    Rates {
        operation,
        touched,
        tuple: of_squares(
            2,
            "(f32[N, N], f32[N, N]) [i: N, j: N] f32 = a0[i, j] + a1[i, j]",
        ),
        element: (point - 8.0 * touched).max(0.0) / 2.0,
        place: looked_up / PLACES as f64,
    }
}

fn least(mut once: impl FnMut()) -> f64 {
    once();
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        once();
        start.elapsed().as_secs_f64()
    });
    rounds.fold(f64::INFINITY, f64::min)
}

/// Seconds of a kernel on a device, of several in a row where it is short: a device may begin one before another has ended.
fn kernel_time(device: &dyn Device, text: &str, operands: &[&Array]) -> f64 {
    let kernel: Kernel = text.parse().expect("the text is that of a kernel");
    let prepared = device.prepare(&kernel, &LoopKernel::of_whole(&kernel), false);
    let columns = operands.iter().map(|array| {
        let array = Array::clone(array);
        [device.adopt(array.into())]
    });
    let columns: Vec<[Buffer; 1]> = columns.collect();
    let operands = columns.iter().map(|columns| Operand {
        columns,
        start: vec![0; columns[0].shape().len()],
    });
    let launch = Launch {
        kernel: &*prepared,
        ranges: kernel.indices.iter().map(|i| (0, i.extent)).collect(),
        operands: operands.collect(),
    };
    let run = |times: usize| {
        least(|| {
            for _ in 0..times {
                let made = device.run(&launch);
                assert!(made.is_ok(), "a kernel over zeros has no faults");
            }
            device.synchronize();
        })
    };
    match run(1) {
        short if short < SHORT => run(IN_A_ROW) / IN_A_ROW as f64,
        long => long,
    }
}

/// Seconds a message and seconds a byte between two sites of this process.
fn exchange() -> (f64, f64) {
    const MANY: usize = 4 << 20;
    let time = |count: usize| {
        let ends = in_process(2);
        let kinds = vec![BufferType::dense(DType::F32, vec![count])];
        let incoming = [kinds.clone(), kinds];
        let swap = |end: &dyn Communicator| {
            // What is sent is new every time, as in a run.
            let parcel = || vec![Buffer::from(Array::zeros(DType::F32, &[count]))];
            let got = end.exchange(vec![parcel(), parcel()], &incoming);
            assert!(got.is_ok(), "two sites of one process exchange");
        };
        thread::scope(|scope| {
            let mut ends = ends.into_iter();
            let (first, second) = (ends.next(), ends.next());
            let (Some(first), Some(second)) = (first, second) else {
                return f64::INFINITY;
            };
            scope.spawn(move || (0..=ROUNDS).for_each(|_| swap(&second)));
            least(|| swap(&first))
        })
    };
    let (small, large) = (time(1), time(MANY));
    (small, (large - small).max(0.0) / (4.0 * MANY as f64))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_measured_and_written_is_read() {
        let folder = env::temp_dir().join(format!("einc-calibration-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("machine.toml");
        let model = measure();
        let figures = Figures {
            cores: model,
            gpu: Some(measure_device(&Cpu)),
        };
        fs::write(&path, machine_file::text(&figures)).unwrap();
        let found = read(Some(&path)).unwrap();
        assert!(found.gpu.unwrap().compute.operation > 0.0, "{found:?}");
        let found = found.cores;
        let close = |read: f64, written: f64| (read - written).abs() <= 1e-3 * written;
        assert!(close(found.node.byte, model.node.byte), "{found:?}");
        assert!(close(found.compute.tuple, model.compute.tuple), "{found:?}");
        for wrong in ["", "{}", "{\"format\": \"other\"}", "format = 3"] {
            fs::write(&path, wrong).unwrap();
            assert_eq!(read(Some(&path)).unwrap_err().code, "E0193", "{wrong}");
        }
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(read(Some(&path)).unwrap_err().code, "E0193");
    }
}
