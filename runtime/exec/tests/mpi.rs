//! The same plans on MPI's ranks as on threads, under each MPI of this machine, and how a job ends when a
//! rank fails. The program starts itself under mpirun.
//!
//! ```text
//! mpi: mpirun.openmpi -n 3: same … ok
//! ```
#![allow(clippy::unwrap_used)]

mod plans;

use ein_array::{Array, Data};
use ein_comm::Communicator;
use ein_comm::mpi::{self, Mpi, Shim};
use ein_device::{Buffer, BufferType};
use ein_exec::{Options, run_in_process, run_site};
use ein_plan::{DType, Plan};
use plans::*;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const SCENARIO: &str = "EIN_TEST_SCENARIO";
const SHIM: &str = "EIN_TEST_SHIM";

fn main() {
    match std::env::var(SCENARIO) {
        Ok(scenario) => rank(&scenario),
        Err(_) => all(),
    }
}

/// Runs every scenario under every MPI.
fn all() {
    let strict = std::env::var("EINC_TEST_MPI").is_ok_and(|v| v == "1");
    let mut shims = vec![];
    for name in ["openmpi", "mpich"] {
        match shim(name) {
            Ok(path) => shims.push((name, path)),
            Err(why) => {
                assert!(!strict, "EINC_TEST_MPI=1, but {why}");
                println!("mpi: {name} was not tested: {why}");
            }
        }
    }
    for (name, path) in &shims {
        for ranks in [1, 2, 3, 5] {
            job(name, ranks, "same", path).succeeds();
        }
        job(name, 3, "fault", path).succeeds();
        stalls(&job(name, 4, "stall", path));
        job(name, 3, "panic", path).fails_with("rank 1: panicked: on purpose");
        job(name, 3, "kernel", path).fails_with(": panicked: index out of bounds");
        job(name, 3, "leave", path).fails_with("");
        job(name, 3, "kill", path).fails_with("");
        job(name, 2, "no shim", path).succeeds();
        job(name, 2, "no library", path).succeeds();
    }
    if let [(first, of_first), (second, of_second)] = shims.as_slice() {
        job(first, 3, "wrong MPI", of_second).succeeds();
        job(second, 3, "wrong MPI", of_first).succeeds();
    }
}

/// The shim for an MPI of this machine, built where the compiler's own build puts it.
fn shim(name: &str) -> Result<PathBuf, String> {
    let (launcher, compiler) = (format!("mpirun.{name}"), format!("mpicc.{name}"));
    for program in [&launcher, &compiler] {
        if Command::new(program).arg("--version").output().is_err() {
            return Err(format!("there is no {program}"));
        }
    }
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name(format!("ein-mpi-{name}"));
    let output = Command::new(env!("CARGO"))
        .args([
            "build",
            "-p",
            "ein-mpi",
            "--release",
            "--locked",
            "--target-dir",
        ])
        .arg(&target)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../comm/mpi"))
        .env("MPICC", compiler)
        .env_remove("RUSTFLAGS")
        .output()
        .unwrap();
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("its shim does not build: {text}"));
    }
    Ok(target.join("release/libein_mpi.so"))
}

/// Each wait names the rank that was late, and no other; it is told once.
fn stalls(job: &Job) {
    job.succeeds();
    for (what, late) in [
        ("an exchange", 2),
        ("a broadcast", 2),
        ("a broadcast from its root", 1),
        ("an agreement", 2),
        ("a barrier", 2),
        ("a large message", 1),
    ] {
        let told = |line: &&str| line.ends_with(&format!(" at {what}"));
        let lines: Vec<&str> = job.text.lines().filter(told).collect();
        let expected = format!("has waited 0.4 s for site {late} at {what}");
        let right = lines.iter().all(|line| line.ends_with(&expected));
        assert!(
            right && !lines.is_empty(),
            "{what}: {lines:?}\n{}",
            job.text
        );
    }
}

struct Job {
    title: String,
    success: bool,
    text: String,
}

impl Job {
    fn succeeds(&self) {
        assert!(self.success, "{}:\n{}", self.title, self.text);
        println!("mpi: {} ... ok", self.title);
    }

    fn fails_with(&self, message: &str) {
        let right = !self.success && self.text.contains(message);
        assert!(right, "{}:\n{}", self.title, self.text);
        println!("mpi: {} ... ok", self.title);
    }
}

/// Runs a scenario under a launcher; a job that hangs is an error.
fn job(name: &str, ranks: u32, scenario: &str, shim: &Path) -> Job {
    let title = format!("mpirun.{name} -n {ranks}: {scenario}");
    let mut child = Command::new(format!("mpirun.{name}"))
        .envs([
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
            ("OMPI_MCA_mpi_yield_when_idle", "1"),
            (SCENARIO, scenario),
        ])
        .env(SHIM, shim)
        .args(["-n", &ranks.to_string()])
        .arg(std::env::current_exe().unwrap())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let read = |mut stream: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = vec![];
            let _ = stream.read_to_end(&mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let out = read(Box::new(child.stdout.take().unwrap()));
    let err = read(Box::new(child.stderr.take().unwrap()));
    let deadline = Instant::now() + Duration::from_secs(120);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("{title}: hangs");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    Job {
        title,
        success: status.success(),
        text: out.join().unwrap() + &err.join().unwrap(),
    }
}

/// What each rank does.
fn rank(scenario: &str) {
    let launcher = mpi::launched().expect("started by a launcher");
    let library = std::fs::read(std::env::var_os(SHIM).unwrap()).unwrap();
    let connect = |library: &[u8]| {
        mpi::connect(&[Shim {
            name: launcher.shim.into(),
            origin: "the test's".into(),
            library,
        }])
    };
    match scenario {
        "no shim" => {
            let error = mpi::connect(&[]).err().unwrap();
            assert!(error.message.contains("there are: none"), "{error}");
        }
        "no library" => {
            let error = connect(b"not a library").err().unwrap();
            assert!(error.message.contains("cannot be opened"), "{error}");
            assert!(error.message.contains("apt-get install"), "{error}");
        }
        "wrong MPI" => {
            let error = connect(&library).err().unwrap();
            assert!(error.message.contains("started 3 processes"), "{error}");
            assert!(error.message.contains("sees 1"), "{error}");
        }
        _ => {
            let mpi = connect(&library).unwrap();
            assert_eq!((mpi.site(), mpi.sites()), (launcher.rank, launcher.size));
            connected(scenario, mpi);
        }
    }
}

fn options() -> Options {
    Options {
        threads: 1,
        spill: std::env::temp_dir(),
        ..Options::on(ein_device_cpu::device())
    }
}

fn connected(scenario: &str, mpi: Mpi) {
    let sites = mpi.sites();
    match scenario {
        "same" => {
            same(&mpi, &broadcast_product(sites, [7, 5, 6], 4));
            same(&mpi, &cut_product(sites, [7, 5, 6], 4));
            same(&mpi, &cut_product(sites, [0, 5, 6], 2));
            same(&mpi, &rechunk(sites, [5, 7], 3, 8));
            same(&mpi, &lookup(sites, 9, 9, 4));
            same(&mpi, &meetings(sites, true));
            // One sender, and arrays that are not packed.
            same(&mpi, &broadcast_product(sites, [3, 300, 100], 1));
            same(&mpi, &cut_product(sites, [200, 90, 30], 2));
            let failure = (mpi.site() > 0).then(|| format!("α {}", mpi.site()));
            let expected = (sites > 1).then(|| (1, "α 1".to_owned()));
            assert_eq!(mpi.agree(failure).unwrap(), expected);
            // Messages in many rounds.
            let mpi = mpi.with_messages_of(1000);
            same(&mpi, &broadcast_product(sites, [3, 300, 100], 2));
            same(&mpi, &broadcast_product(sites, [3, 300, 100], 1));
            same(&mpi, &cut_product(sites, [200, 90, 30], 2));
            mpi.barrier().unwrap();
            several_at_once(&mpi.with_messages_of(100));
        }
        "fault" => {
            let plan = lookup(sites, 9, 7, 4);
            let there = run_site(&plan, &mpi, &options()).unwrap_err();
            let here = run_in_process(&plan, &options()).unwrap_err();
            assert_eq!(there, here);
        }
        "stall" => stall(&mpi),
        // In the middle of a run, at a rank that others wait for.
        "panic" => {
            let reached = mpi.agree(None).unwrap();
            assert_eq!(reached, None);
            if mpi.site() == 1 {
                let panicked = std::panic::catch_unwind(|| panic!("on purpose"));
                assert!(panicked.is_err());
                mpi.abort("panicked: on purpose");
            }
            let _ = mpi.barrier();
        }
        // A plan with a mistake that only shows when it is walked.
        "kernel" => {
            let mut plan = cut_product(sites, [7, 5, 6], 4);
            plan.kernels.clear();
            let _ = run_site(&plan, &mpi, &options());
        }
        "leave" => {
            if mpi.site() == 1 {
                std::process::exit(7);
            }
            let _ = mpi.barrier();
        }
        "kill" => {
            if mpi.site() == 1 {
                std::process::abort();
            }
            let _ = mpi.barrier();
        }
        other => panic!("no scenario {other}"),
    }
}

/// A plan's report is the same on ranks and on threads, what moved included.
fn same(mpi: &Mpi, plan: &Plan) {
    let there = run_site(plan, mpi, &options()).unwrap();
    if mpi.site() == 0 {
        let here = run_in_process(plan, &options()).unwrap();
        assert_eq!(there.printed, here.printed);
        assert_eq!(there.traffic, here.traffic);
    } else {
        assert!(there.printed.is_empty());
    }
}

fn array(values: Vec<i64>) -> Buffer {
    Array::new(vec![values.len()], Data::I64(values))
        .unwrap()
        .into()
}

fn kinds(lengths: impl IntoIterator<Item = usize>) -> Vec<BufferType> {
    let kind = |length| BufferType::dense(DType::I64, vec![length]);
    lengths.into_iter().map(kind).collect()
}

/// Exchanges that are begun together, ended in another order, with other calls between.
fn several_at_once(mpi: &Mpi) {
    let (me, sites) = (i64::from(mpi.site()), mpi.sites() as usize);
    let begin = |number: i64, length: usize| {
        let outgoing = (0..sites as i64).map(|to| vec![array(vec![number + 10 * me + to; length])]);
        let incoming = vec![kinds([length]); sites];
        mpi.begin(outgoing.collect(), &incoming).unwrap()
    };
    let first = begin(1000, 3);
    let second = begin(2000, 20_000);
    assert_eq!(mpi.agree(None).unwrap(), None);
    mpi.progress();
    for (ticket, number, length) in [(second, 2000, 20_000), (first, 1000, 3)] {
        let come = mpi.end(ticket).unwrap();
        for (from, parcel) in (0..).zip(come) {
            assert_eq!(parcel[0], array(vec![number + 10 * from + me; length]));
        }
    }
}

/// In every kind of call, one rank is late.
fn stall(mpi: &Mpi) {
    let (me, sites) = (mpi.site(), mpi.sites() as usize);
    let late = |what: &str, rank: u32| {
        // Nobody is late any more.
        mpi.doing(String::new(), None);
        mpi.barrier().unwrap();
        mpi.doing(what.into(), Some(Duration::from_millis(400)));
        if me == rank {
            std::thread::sleep(Duration::from_millis(2500));
        }
    };
    late("an exchange", 2);
    let all = vec![kinds([1]); sites];
    mpi.share(vec![array(vec![1])], &all).unwrap();
    // A tree may hand a broadcast to some before others have come.
    for (what, rank) in [("a broadcast", 2), ("a broadcast from its root", 1)] {
        late(what, rank);
        let mut one = vec![vec![]; sites];
        one[1] = kinds([5]);
        let mine = match me {
            1 => vec![array(vec![7; 5])],
            _ => vec![],
        };
        mpi.share(mine, &one).unwrap();
    }
    late("an agreement", 2);
    mpi.agree(None).unwrap();
    late("a barrier", 2);
    mpi.barrier().unwrap();
    // Rank 0 gets nothing, and waits until rank 1 takes what it sends.
    late("a large message", 1);
    let length = 4_000_000;
    let mut outgoing = vec![vec![]; sites];
    let mut incoming = vec![vec![]; sites];
    match me {
        0 => outgoing[1] = vec![array(vec![3; length])],
        1 => incoming[0] = kinds([length]),
        _ => {}
    }
    mpi.exchange(outgoing, &incoming).unwrap();
    mpi.doing(String::new(), None);
    mpi.barrier().unwrap();
}
