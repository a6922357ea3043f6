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
            ..Options::default()
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
            ..Options::default()
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
