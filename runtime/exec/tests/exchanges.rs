//! Movements that go together or beside steps, and relations that rest on disk, give what the same plan gives without them.
#![allow(clippy::unwrap_used)]

mod plans;

use ein_exec::{ErrorKind, Options, run_in_process};
use ein_plan::{Exchange, RelationId, Spill, memory, verify};
use plans::*;

#[test]
fn results_and_figures_are_those_of_single_movements() {
    for sites in 1..=5 {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            threads: 4,
            spill: folder.path().into(),
            ..Options::on(ein_device_cpu::device())
        };
        let (single, together) = (meetings(sites, false), meetings(sites, true));
        let expected = run_in_process(&single, &options).unwrap();
        let found = run_in_process(&together, &options).unwrap();
        assert_eq!(found.printed, expected.printed);
        assert_eq!(found.traffic, expected.traffic);
        assert!(expected.spilled.is_empty());
        for (peak, held) in memory::peaks(&together).iter().zip(&found.peak_bytes) {
            assert!(*held <= peak.bytes, "{held} held, {} stated", peak.bytes);
        }
        // r1, r2 once, r4, r5 in each of three rounds; r4 is written once a round and read twice.
        let sum =
            |of: &dyn Fn(&ein_exec::Spilled) -> u64| found.spilled.iter().map(of).sum::<u64>();
        assert_eq!(sum(&|site| site.written), 72 * (2 + 2 * 3));
        assert_eq!(sum(&|site| site.read), 72 * (2 + 3 * 3));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        // Two movements a round and one behind meet four times, not seven.
        assert_eq!(single.expected_meetings(), 7);
        assert_eq!(together.expected_meetings(), 4);
    }
}

#[test]
fn a_folder_that_cannot_be_written_ends_the_run_at_all_sites() {
    for sites in [1, 3] {
        let options = Options {
            threads: 2,
            spill: "/no/such/folder".into(),
            ..Options::on(ein_device_cpu::device())
        };
        let error = run_in_process(&meetings(sites, true), &options).unwrap_err();
        assert_eq!((error.code, error.kind), ("E0705", ErrorKind::Output));
        assert!(error.message.contains("/no/such/folder"), "{error:?}");
    }
}

#[test]
fn plans_that_use_what_is_not_there_are_refused() {
    let refused = |change: &dyn Fn(&mut ein_plan::Plan)| {
        let mut plan = meetings(3, true);
        change(&mut plan);
        verify::verify(&plan).unwrap_err().to_string()
    };
    let exchange = |members: &[u32], until: u32| Exchange {
        members: members.iter().map(|m| RelationId(*m)).collect(),
        until: RelationId(until),
    };
    let with = |at: usize, other: Exchange| refused(&|plan| plan.exchanges[at] = other.clone());
    let message = with(0, exchange(&[6, 7], 9));
    assert_eq!(
        message,
        "exchanges: r9 reads r6 before the exchange of r6 has come"
    );
    let message = with(0, exchange(&[6], 6));
    assert_eq!(
        message,
        "exchanges: the exchange of r6 is nothing but a step"
    );
    assert_eq!(with(0, exchange(&[7, 8], 8)), "exchanges: r8 moves nothing");
    assert!(with(0, exchange(&[6, 7], 12)).contains("a loop begins or ends"));
    assert!(with(1, exchange(&[7], 8)).contains("shares members"));
    // What is sent is not freed, and does not rest, before it has gone.
    let early = refused(&|plan| plan.exchanges[1].until = RelationId(14));
    assert!(early.contains("nothing but a step"), "{early}");
    let spill = |relation, before, until| Spill {
        relation: RelationId(relation),
        before: RelationId(before),
        until: RelationId(until),
    };
    for wrong in [
        spill(1, 2, 17),
        spill(3, 4, 6),
        spill(13, 15, 17),
        spill(0, 1, 2),
    ] {
        let message = refused(&|plan| plan.spills = vec![wrong]);
        assert!(message.starts_with("spills: r"), "{message}");
    }
}

/// Products, a reduction and a loop over tuples on disk: each site has its own.
fn tuples(sites: u32, streams: &str) -> ein_plan::Plan {
    let text = format!(
        "plan for {sites} sites
kernel k0 (f64[9, 4], f64[4, 6]) [i: 9, j: 6 | k: 4] f64 = partial sum a0[i, k] * a1[k, j]
kernel k1 (f64[9, 6]) [i: 9 | j: 6] f64 = partial max a0[i, j]
kernel k2 (f64[9, 6], f64[9]) [i: 9, j: 6] f64 = a0[i, j] - a1[i] * 0.5_f64
kernel k3 (f64[9], f64[9, 6]) [i: 9 | j: 6] f64 = partial sum a0[i] * a1[i, j] * 0.01_f64
r0 A: {{i: 9/4, k: 4/2@_}} f64[i, k] @ PART(i) = source A from uniform(-1.0, 1.0)
r1 B: {{k: 4/2@_, j: 6/3@_}} f64[k, j] @ ALL = source B from uniform(-1.0, 1.0)
r2 C: {{i: 9/4, j: 6/3@_}} f64[i, j] @ PART(i) = fold {{i: 9/4, j: 6/3@_, k: 4/2@_}} keep {{i, j}} k0(r0{{i, k}}, r1{{k, j}}) over [i, j, k]; free r0, r1
r3 m: {{i: 9/4}} f64[i] @ PART(i) = fold {{i: 9/4, j: 6/3@_}} keep {{i}} k1(r2{{i, j}}) over [i, j]
r4 D: {{i: 9/4, j: 6/3@_}} f64[i, j] @ PART(i) = join k2(r2{{i, j}}, r3{{i}}) over [i, j]; free r2
repeat b0 t < 3; state r3 next r6; free r3
  r5 x: {{i: 9/4}} f64[i] @ PART(i) = loop state b0.0
  r6 x: {{i: 9/4}} f64[i] @ PART(i) = fold {{i: 9/4, j: 6/3@_}} keep {{i}} k3(r5{{i}}, r4{{i, j}}) over [i, j]; free r5
end b0
r7 x: {{i: 9/4}} f64[i] @ PART(i) = loop last b0.0
{streams}output D = r4: f64[9, 6]
output x = r7: f64[9]
"
    );
    let plan: ein_plan::Plan = text.parse().unwrap();
    assert_eq!(plan.to_string(), text);
    verify::verify(&plan).unwrap();
    plan
}

#[test]
fn tuples_on_disk_give_what_held_ones_do() {
    for sites in 1..=5 {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            threads: 3,
            spill: folder.path().into(),
            ..Options::on(ein_device_cpu::device())
        };
        let expected = run_in_process(&tuples(sites, ""), &options).unwrap();
        for streams in ["stream r0, r1, r2, r4\n", "stream r1\n", "stream r2, r4\n"] {
            let plan = tuples(sites, streams);
            let found = run_in_process(&plan, &options).unwrap();
            assert_eq!(found.printed, expected.printed);
            assert_eq!(found.traffic, expected.traffic);
            let volume = plan.spilled();
            let most = |of: &dyn Fn(&ein_exec::Spilled) -> u64| found.spilled.iter().map(of).max();
            assert_eq!(most(&|site| site.written), Some(volume.written), "{sites}");
            assert_eq!(most(&|site| site.read), Some(volume.read), "{sites}");
            for (peak, held) in memory::peaks(&plan).iter().zip(&found.peak_bytes) {
                assert!(*held <= peak.bytes, "{held} held, {} stated", peak.bytes);
            }
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
        let peak = |streams: &str| memory::peaks(&tuples(sites, streams))[0].bytes;
        assert!(2 * peak("stream r0, r1, r2, r4\n") < peak(""));
        let nowhere = Options {
            spill: "/no/such/folder".into(),
            ..options
        };
        let error = run_in_process(&tuples(sites, "stream r2\n"), &nowhere).unwrap_err();
        assert_eq!((error.code, error.kind), ("E0705", ErrorKind::Output));
    }
}
