//! Hand-built plans on 1 to 5 sites against plain loops, what they move, and how they end when a site fails.
#![allow(clippy::unwrap_used)]

mod plans;

use ein_array::Data;
use ein_comm::{CommError, Communicator, InProcess, Ticket, in_process};
use ein_device::{Buffer, BufferType};
use ein_exec::{ErrorKind, Options, Report, RunError, run_in_process, run_site};
use ein_plan::*;
use plans::*;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

fn options() -> Options {
    Options {
        threads: 4,
        ..Options::on(ein_device_cpu::device())
    }
}

/// iota[i, k] · iota[k, j]
fn reference([i, j, k]: [u64; 3]) -> Vec<f64> {
    let mut c = vec![];
    for row in 0..i {
        for column in 0..j {
            c.push(
                (0..k)
                    .map(|n| (row * k + n) as f64 * (n * j + column) as f64)
                    .sum(),
            );
        }
    }
    c
}

fn printed<'a>(report: &'a Report, name: &str) -> &'a [f64] {
    let printed = report.printed.iter().find(|p| p.name == name).unwrap();
    match printed.values.data() {
        Data::F64(values) => values,
        other => panic!("{other:?}"),
    }
}

const SIZES: [[u64; 3]; 5] = [[7, 5, 6], [1, 1, 1], [3, 4, 0], [0, 2, 3], [9, 2, 11]];

#[test]
fn products_are_right_on_any_number_of_sites() {
    for size in SIZES {
        for sites in 1..=5 {
            for pieces in [1, 2, 3, 7] {
                for plan in [
                    broadcast_product(sites, size, pieces),
                    cut_product(sites, size, pieces),
                ] {
                    let report = run_in_process(&plan, &options()).unwrap();
                    assert_eq!(
                        printed(&report, "C"),
                        reference(size),
                        "{size:?} {sites} {pieces}"
                    );
                }
            }
        }
    }
}

#[test]
fn rechunking_keeps_every_element() {
    for shape in [[6, 4], [5, 7], [1, 3], [0, 4], [4, 0]] {
        for sites in 1..=5 {
            for (rows, columns) in [(1, 1), (2, 3), (5, 2), (3, 8)] {
                let plan = rechunk(sites, shape, rows, columns);
                let report = run_in_process(&plan, &options()).unwrap();
                let [r, c] = shape;
                let expected: Vec<f64> = (0..r * c).map(|n| n as f64).collect();
                assert_eq!(printed(&report, "X"), expected);
                let width = piece(c, columns, 0).1;
                let first: Vec<f64> = (0..r)
                    .flat_map(|row| (0..width).map(move |n| (row * c + n) as f64))
                    .collect();
                assert_eq!(printed(&report, "F"), first);
            }
        }
    }
}

#[test]
fn traffic_is_what_the_plan_says() {
    let size @ [_, j, k] = [7, 5, 6];
    for sites in 1..=5u32 {
        let report = run_in_process(&broadcast_product(sites, size, 5), &options()).unwrap();
        // Every element of B goes to every other site.
        let floats = k * j * u64::from(sites - 1);
        let step = report.traffic.steps[2];
        assert_eq!((step.floats, step.bytes), (floats, 8 * floats));
        let moving = report.traffic.steps.iter().filter(|s| s.floats > 0).count();
        assert_eq!(moving, usize::from(sites > 1));

        let plan = cut_product(sites, size, 5);
        let report = run_in_process(&plan, &options()).unwrap();
        let from = plan.kind(RelationId(2));
        let to = plan.kind(RelationId(3));
        let expected: u64 = from
            .all_keys()
            .filter(|key| from.holders(key, &plan.mesh) != to.holders(key, &plan.mesh))
            .map(|key| from.tuple_bytes(&key))
            .sum();
        assert_eq!(report.traffic.steps[3].bytes, expected);
        // C goes to site 0 to be printed.
        let c = plan.kind(RelationId(4));
        let away: u64 = c
            .all_keys()
            .filter(|key| !c.holds(key, 0, &plan.mesh))
            .map(|key| c.tuple_bytes(&key))
            .sum();
        assert_eq!(report.traffic.outputs.bytes, away);
        let lines = report.traffic.by_line(&plan);
        assert_eq!(lines.get(&(0, 4)).map_or(0, |m| m.bytes), expected);
    }
}

#[test]
fn peaks_are_what_each_site_holds() {
    let [i, j, k] = [8, 4, 6];
    let report = run_in_process(&broadcast_product(2, [i, j, k], 2), &options()).unwrap();
    // Half of A, all of B (its own half is shared between the relations), half of C.
    let bytes = 8 * (i / 2 * k + k * j + i / 2 * j);
    assert_eq!(report.peak_bytes, vec![bytes, bytes]);
}

#[test]
fn a_sweep_writes_over_what_ends_with_it_and_gives_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    for sites in 1..=3 {
        let run = |sweep: &str| {
            let kind = format!("{{i: 900/{sites}}} f32");
            let text = format!(
                "plan for {sites} sites
kernel k0 (f32[900, 900]) [i: 900 | j: 900] f32 = max a0[i, j]
kernel k1 (f32[900, 900], f32[900]) [i: 900, j: 900] f32 = exp(a0[i, j] - a1[i])
kernel k2 (f32[900, 900]) [i: 900 | j: 900] f32 = sum a0[i, j]
kernel k3 (f32[900, 900], f32[900]) [i: 900, j: 900] f32 = a0[i, j] / a1[i]
r0 X: {kind}[i, 900] @ PART(i) = source X from uniform(-3.0, 3.0)
r1 top: {kind}[i] @ PART(i) = join k0(r0{{i}}) over [i, _]
r2 e: {kind}[i, 900] @ PART(i) = join k1(r0{{i}}, r1{{i}}) over [i, _]
r3 total: {kind}[i] @ PART(i) = join k2(r2{{i}}) over [i, _]
r4 y: {kind}[i, 900] @ PART(i) = join k3(r2{{i}}, r3{{i}}) over [i, _]; free r0, r1, r2, r3
{sweep}output y = r4: f32[900, 900]
"
            );
            let parsed = text.parse::<Plan>();
            let mut plan = parsed.unwrap_or_else(|error| panic!("{text}: {error}"));
            // Its steps free what the memory of results is taken of, so the parser found no plan that it could schedule.
            plan.schedule();
            let path = folder.path().join("y.npy");
            plan.outputs[0].file = Some(path.to_str().unwrap().into());
            let report = run_in_process(&plan, &options()).unwrap();
            let stated = ein_plan::memory::peaks(&plan)[0].bytes;
            (std::fs::read(path).unwrap(), report.peak_bytes[0], stated)
        };
        let (alone, together) = (run(""), run("sweep r1, r2, r3, r4 rows 1\n"));
        assert!(alone.0 == together.0, "{sites} sites");
        // X where y is in the end: nothing lies beside it, and the rest passes.
        assert_eq!(together.1, 4 * (900 / sites as u64) * 900);
        assert_eq!(together.2, together.1);
    }
}

#[test]
fn a_gather_out_of_range_names_tensor_position_and_point() {
    for sites in [1, 3, 5] {
        let error = run_in_process(&lookup(sites, 9, 7, 4), &options()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Program);
        assert_eq!(error.code, "E0720");
        assert_eq!(error.tensor.as_deref(), Some("out"));
        assert_eq!(error.step, Some(2));
        assert_eq!(
            error.message,
            "position 7 is outside `table`, whose dimension 1 has positions 0 to 6; at n = 7"
        );
    }
    let report = run_in_process(&lookup(3, 9, 9, 4), &options()).unwrap();
    assert_eq!(
        printed(&report, "out"),
        (0..9).map(f64::from).collect::<Vec<_>>()
    );
}

#[test]
fn seeds_change_random_sources_only_and_sites_change_nothing() {
    let plan = |sites| {
        let mut b = Builder::new(sites);
        let x = b.source(
            "x",
            Source::Uniform { lo: 0.0, hi: 1.0 },
            kind(
                keys(&[("n", 20, 3)]),
                &[(20, Some(0))],
                DType::F64,
                part(&[0]),
            ),
        );
        b.output("x", x, None);
        b.finish()
    };
    let run = |sites, seed| {
        let options = Options { seed, ..options() };
        run_in_process(&plan(sites), &options).unwrap().printed
    };
    assert_eq!(run(1, 7), run(4, 7));
    assert_ne!(run(1, 7), run(1, 8));
}

#[test]
fn outputs_are_written_in_place_by_all_sites() {
    let folder = tempfile::tempdir().unwrap();
    for sites in 1..=5 {
        let path = folder.path().join(format!("c{sites}.npy"));
        let mut plan = cut_product(sites, [7, 5, 6], 3);
        plan.outputs[0].file = Some(path.to_str().unwrap().into());
        let report = run_in_process(&plan, &options()).unwrap();
        assert_eq!(report.saved, vec![("C".to_owned(), path.clone())]);
        assert!(report.printed.is_empty());
        let reader = ein_data::Reader::open(&FileRef {
            path: path.to_str().unwrap().into(),
            key: None,
        })
        .unwrap();
        let array = reader.read(&[(0, 7), (0, 5)]).unwrap();
        assert_eq!(array.data(), &Data::F64(reference([7, 5, 6])));
    }
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 5);

    // And back in as an input, saved again beside being printed.
    let path = folder.path().join("c3.npy");
    let mut b = Builder::new(3);
    let x = b.source(
        "x",
        Source::Unbound,
        kind(
            keys(&[("r", 7, 4)]),
            &[(7, Some(0)), (5, None)],
            DType::F64,
            part(&[0]),
        ),
    );
    b.output("x", x, None);
    let plan = b.finish();
    let error = run_in_process(&plan, &options()).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        ("E0710", "the input `x` has no data")
    );
    let again = folder.path().join("again.npz");
    let mut options = options();
    options.inputs.insert(
        "x".into(),
        FileRef {
            path: path.to_str().unwrap().into(),
            key: None,
        },
    );
    options.saves.insert("x".into(), again.clone());
    let report = run_in_process(&plan, &options).unwrap();
    assert_eq!(printed(&report, "x"), reference([7, 5, 6]));
    assert_eq!(report.saved, vec![("x".to_owned(), again)]);
}

#[test]
fn an_output_that_cannot_be_written_leaves_everything_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("c.npy");
    std::fs::write(&target, "precious").unwrap();
    for sites in [1, 3] {
        let mut plan = cut_product(sites, [7, 5, 6], 3);
        plan.outputs[0].file = Some(target.to_str().unwrap().into());
        let mut other = plan.outputs[0].clone();
        other.name = "D".into();
        plan.outputs.push(other);
        let error = run_in_process(&plan, &options()).unwrap_err();
        assert_eq!((error.code, error.kind), ("E0723", ErrorKind::Output));
        plan.outputs[1].file = Some("/proc/nowhere/d.npy".into());
        let error = run_in_process(&plan, &options()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Output);
        assert!(error.message.contains("/proc/nowhere/d.npy"), "{error}");
        assert_eq!(error.tensor.as_deref(), Some("D"));
    }
    assert_eq!(std::fs::read(&target).unwrap(), b"precious");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn a_missing_file_is_named_by_the_lowest_site() {
    let mut plan = broadcast_product(4, [7, 5, 6], 4);
    let Operation::Source { source, .. } = &mut plan.steps[1].operation else {
        unreachable!()
    };
    *source = Source::Load(FileRef {
        path: "nowhere.npy".into(),
        key: None,
    });
    let options = Options {
        base: "/tmp/of/no/such".into(),
        ..options()
    };
    let error = run_in_process(&plan, &options).unwrap_err();
    assert_eq!((error.code, error.site), ("E0701", Some(0)));
    assert!(
        error.message.contains("/tmp/of/no/such/nowhere.npy"),
        "{error}"
    );
    assert_eq!(error.origin.unwrap().line, 2);
}

/// A communicator whose site fails at its `fatal`-th collective call, by a panic or by leaving.
struct Failing {
    inner: InProcess,
    calls: AtomicUsize,
    fatal: Option<usize>,
}

impl Failing {
    fn count(&self) {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        assert_ne!(Some(call), self.fatal, "on purpose, at call {call}");
    }
}

impl Communicator for Failing {
    fn site(&self) -> u32 {
        self.inner.site()
    }
    fn sites(&self) -> u32 {
        self.inner.sites()
    }
    fn begin(
        &self,
        outgoing: Vec<Vec<Buffer>>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Ticket, CommError> {
        self.count();
        self.inner.begin(outgoing, incoming)
    }
    fn end(&self, ticket: Ticket) -> Result<Vec<Vec<Buffer>>, CommError> {
        self.inner.end(ticket)
    }
    fn share(
        &self,
        mine: Vec<Buffer>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Vec<Vec<Buffer>>, CommError> {
        self.count();
        self.inner.share(mine, incoming)
    }
    fn barrier(&self) -> Result<(), CommError> {
        self.count();
        self.inner.barrier()
    }
    fn agree(&self, mine: Option<String>) -> Result<Option<(u32, String)>, CommError> {
        self.count();
        self.inner.agree(mine)
    }
    fn abort(&self, message: &str) {
        self.inner.abort(message);
    }
}

fn on_sites(
    plan: &Plan,
    fatal: impl Fn(u32) -> Option<usize>,
    options: impl Fn(u32) -> Options + Sync,
) -> (Vec<Result<Report, RunError>>, usize) {
    let ends: Vec<Failing> = in_process(plan.sites)
        .into_iter()
        .map(|inner| Failing {
            fatal: fatal(inner.site()),
            calls: AtomicUsize::new(0),
            inner,
        })
        .collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = ends
            .into_iter()
            .map(|end| {
                let options = &options;
                scope.spawn(move || {
                    let result = run_site(plan, &end, &options(end.site()));
                    (result, end.calls.load(Ordering::Relaxed))
                })
            })
            .collect();
        let (results, calls): (Vec<_>, Vec<_>) =
            threads.into_iter().map(|t| t.join().unwrap()).unzip();
        (results, calls.into_iter().max().unwrap())
    })
}

#[test]
fn a_site_that_panics_anywhere_ends_the_run_promptly_and_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("x.npy");
    let mut plan = rechunk(3, [6, 4], 2, 3);
    plan.outputs[0].file = Some(target.to_str().unwrap().into());
    let (results, calls) = on_sites(&plan, |_| None, |_| options());
    assert!(results.iter().all(Result::is_ok));
    std::fs::remove_file(&target).unwrap();
    assert!(calls > 10);
    let began = Instant::now();
    for victim in 0..3 {
        for call in 0..calls {
            let (results, _) = on_sites(
                &plan,
                |site| (site == victim).then_some(call),
                |_| options(),
            );
            for (site, result) in results.into_iter().enumerate() {
                // In the last call a site may have heard all that it needs before the victim dies.
                let Err(error) = result else {
                    assert!(call + 2 >= calls, "{victim} {call} {site}");
                    continue;
                };
                assert!(error.message.contains("panicked: "), "{error:?}");
                assert!(
                    error.message.contains(&format!("at call {call}")),
                    "{error:?}"
                );
                assert_eq!(error.site, Some(victim));
                let kind = if site as u32 == victim {
                    ErrorKind::Internal
                } else {
                    ErrorKind::Lost
                };
                assert_eq!(error.kind, kind);
            }
            let left: Vec<_> = std::fs::read_dir(&folder)
                .unwrap()
                .map(|e| e.unwrap().file_name())
                .collect();
            let done = call + 2 >= calls && left == ["x.npy"];
            assert!(left.is_empty() || done, "{victim} {call}: {left:?}");
            let _ = std::fs::remove_file(&target);
        }
    }
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn sites_that_were_started_differently_say_so() {
    let plan = broadcast_product(3, [7, 5, 6], 4);
    let (results, _) = on_sites(
        &plan,
        |_| None,
        |site| Options {
            seed: u64::from(site == 2),
            ..options()
        },
    );
    for result in results {
        let error = result.unwrap_err();
        assert_eq!((error.code, error.site), ("E0731", Some(2)));
        assert_eq!(
            error.message,
            "site 2 was started with other options than site 0"
        );
    }
}

#[test]
fn a_plan_for_another_number_of_sites_is_refused() {
    let mut plan = broadcast_product(3, [7, 5, 6], 4);
    let ends = in_process(1);
    let error = run_site(&plan, &ends[0], &options()).unwrap_err();
    assert_eq!(error.message, "the plan is for 3 sites, but there are 1");
    plan.sites = 1;
    plan.mesh = ein_plan::Mesh::row(1);
    assert!(run_site(&plan, &in_process(1)[0], &options()).is_ok());
}

#[test]
fn a_plan_that_breaks_its_own_placements_is_an_internal_error_not_a_hang() {
    // The aggregation's input is not where its groups are.
    let mut plan = cut_product(3, [7, 5, 6], 5);
    let Operation::LocalAggregate { input, .. } = &mut plan.steps[4].operation else {
        unreachable!()
    };
    *input = RelationId(2);
    plan.steps[3].frees.clear();
    plan.steps[4].frees.clear();
    let error = run_in_process(&plan, &options()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
    assert!(error.message.contains("tuples that make up"), "{error}");

    // The tuples of a join are at other sites.
    let mut plan = broadcast_product(2, [7, 5, 6], 4);
    let Operation::LocalJoin { inputs, .. } = &mut plan.steps[3].operation else {
        unreachable!()
    };
    inputs[1].relation = RelationId(1);
    plan.steps[2].frees.clear();
    let error = run_in_process(&plan, &options()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Internal);
    assert!(
        error.message.contains("is needed where it is not"),
        "{error}"
    );
}
