//! Coefficients of the time that a plan takes on this machine: measured, written and read.
//!
//! A linear model as in luo2021, section 7: seconds a message, a byte received, an operation, a byte touched, a tuple. Must
//! not know plans.
//!
//! ```text
//! {"format": "einc-machine/1", "message": 8.1e-6, "byte": 2.0e-10, "operation": 1.4e-11, "touched": 1.1e-10, "tuple": 3.0e-6}
//! ```

use ein_array::Array;
use ein_comm::{Communicator, in_process};
use ein_device::{Buffer, BufferType};
use ein_kernels::{Chunk, Options};
use ein_plan::{DType, Kernel};
use einc_core::einsum::{Definition, parse::parse};
use einc_core::search::TimeModel;
use einc_diag::Diagnostic;
use serde::{Deserialize, Serialize};
use std::{
    env, fs, io,
    path::{Path, PathBuf},
    thread,
    time::Instant,
};

/// The value of the first field of a file.
const FORMAT: &str = "einc-machine/1";

/// Times that each figure is taken; the least counts, since what disturbs only adds.
const ROUNDS: usize = 7;

/// A machine's file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    /// Seconds a message.
    message: f64,
    /// Seconds a byte received.
    byte: f64,
    /// Seconds an operation of a matrix product.
    operation: f64,
    /// Seconds a byte that is read or written.
    touched: f64,
    /// Seconds a tuple.
    tuple: f64,
}

/// Where a machine's file is looked for if none is named.
pub fn usual_place() -> Option<PathBuf> {
    let home = || env::var_os("HOME").map(|home| Path::new(&home).join(".config"));
    let config = env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty());
    let config = config.map(PathBuf::from).or_else(home)?;
    Some(config.join("einc").join("machine.json"))
}

/// The coefficients in a file, or in that of the usual place.
///
/// # Errors
/// There is no such file, or it is none of a machine (E0193).
pub fn read(path: Option<&Path>) -> Result<TimeModel, Diagnostic> {
    let usual = usual_place();
    let Some(path) = path.or(usual.as_deref()) else {
        return Err(missing("there is no home folder".into()));
    };
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(missing(format!("{} is not there", path.display())));
        }
        Err(error) => return Err(missing(format!("cannot read {}: {error}", path.display()))),
    };
    let file: File = serde_json::from_str(&text)
        .map_err(|error| missing(format!("{} is not of a machine: {error}", path.display())))?;
    let figures = [
        file.message,
        file.byte,
        file.operation,
        file.touched,
        file.tuple,
    ];
    if file.format != FORMAT {
        let what = format!(
            "{} has format {:?}, not {FORMAT:?}",
            path.display(),
            file.format
        );
        return Err(missing(what));
    }
    if !figures
        .iter()
        .all(|figure| figure.is_finite() && *figure >= 0.0)
    {
        return Err(missing(format!(
            "{} has a figure that is negative or not finite",
            path.display()
        )));
    }
    Ok(TimeModel {
        alpha: file.message,
        beta: file.byte,
        gamma: file.operation,
        delta: file.touched,
        epsilon: file.tuple,
    })
}

fn missing(what: String) -> Diagnostic {
    Diagnostic::error(
        "E0193",
        format!("`--cost time` needs this machine's figures: {what}"),
    )
    .help("`einc calibrate` measures them; `--machine FILE` names a file that it wrote")
}

/// A machine's file.
pub fn text(model: &TimeModel) -> String {
    let file = File {
        format: FORMAT.into(),
        message: model.alpha,
        byte: model.beta,
        operation: model.gamma,
        touched: model.delta,
        tuple: model.epsilon,
    };
    let json = serde_json::to_string_pretty(&file);
    format!("{}\n", json.expect("the figures are finite numbers"))
}

/// Measures this machine with one thread a site, two sites that exchange. Takes about two seconds.
pub fn measure() -> TimeModel {
    let (message, byte) = exchange();
    let multiply = kernel(
        "C: f32[512, 512] = [i: 512, j: 512 | k: 512] sum A[i, k] * B[k, j]",
        512,
    );
    let product = kernel_time(&multiply, 512);
    let add = kernel(
        "C: f32[2048, 2048] = [i: 2048, j: 2048] A[i, j] + B[i, j]",
        2048,
    );
    let sum = kernel_time(&add, 2048);
    let tiny = kernel("C: f32[2, 2] = [i: 2, j: 2] A[i, j] + B[i, j]", 2);
    TimeModel {
        alpha: message,
        beta: byte,
        gamma: product / (2.0 * 512f64.powi(3)),
        delta: sum / (3.0 * 4.0 * 2048f64.powi(2)),
        epsilon: kernel_time(&tiny, 2),
    }
}

/// The kernel of a statement over two square matrices.
fn kernel(statement: &str, size: u64) -> Kernel {
    let text = format!(
        "input A: f32[{size}, {size}] = unbound\ninput B: f32[{size}, {size}] = unbound\n{statement}\noutput C\n"
    );
    let program = parse(&text).expect("the text is a program");
    match &program.tensors[2].definition {
        Definition::Statement { kernel, .. } => kernel.clone(),
        _ => unreachable!("the third tensor is a statement"),
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

/// Seconds of a kernel over two square matrices, on one thread.
fn kernel_time(kernel: &Kernel, size: u64) -> f64 {
    let matrix = Array::zeros(DType::F32, &[size as usize, size as usize]);
    let chunk = || Chunk {
        columns: vec![&matrix],
        start: vec![0, 0],
    };
    let operands = [chunk(), chunk()];
    let ranges: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.expect("a thread can be started");
    pool.install(|| {
        least(|| {
            let made = ein_kernels::run(kernel, &ranges, &operands, &Options::default());
            assert!(made.is_ok(), "a product of zeros has no faults");
        })
    })
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
    fn what_is_written_is_read() {
        let folder = env::temp_dir().join(format!("einc-calibration-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("machine.json");
        let model = measure();
        for figure in [
            model.alpha,
            model.beta,
            model.gamma,
            model.delta,
            model.epsilon,
        ] {
            assert!(figure.is_finite() && figure >= 0.0, "{model:?}");
        }
        fs::write(&path, text(&model)).unwrap();
        let again = read(Some(&path)).unwrap();
        let pairs = [
            (again.alpha, model.alpha),
            (again.beta, model.beta),
            (again.gamma, model.gamma),
            (again.delta, model.delta),
            (again.epsilon, model.epsilon),
        ];
        for (read, written) in pairs {
            assert!(
                (read - written).abs() <= 1e-12 * written,
                "{again:?}, not {model:?}"
            );
        }
        for wrong in [
            "",
            "{}",
            "{\"format\": \"other\"}",
            &text(&model).replace('1', "x"),
        ] {
            fs::write(&path, wrong).unwrap();
            assert_eq!(read(Some(&path)).unwrap_err().code, "E0193", "{wrong}");
        }
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(read(Some(&path)).unwrap_err().code, "E0193");
    }
}
