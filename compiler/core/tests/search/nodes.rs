//! Machines of several nodes: the search prices what goes between nodes as the plan of its layout sends it.

use super::exact::{on_nodes, random_program};
use super::windows::PROGRAMS;
use ein_plan::relation::sender;
use ein_plan::{Operation, Plan, RelationType, traffic};
use einc_core::cost::{Machine, of_plan};
use einc_core::einsum::{Program, parse::parse};
use einc_core::ia::from_layout::place;
use einc_core::lower;
use einc_core::search::{Found, Objective, SearchOptions, layout};

/// By site: the elements of a movement that it gets from sites of other nodes.
fn from_other_nodes(plan: &Plan, from: &RelationType, to: &RelationType, sites: u32) -> Vec<u64> {
    let mesh = &plan.mesh;
    let received = (0..mesh.sites()).map(|site| {
        let keys = to.keys_at(site, mesh);
        let lacking = keys.filter(|key| !from.holds(key, site, mesh));
        let far = lacking.filter(|key| {
            let sender = sender(&from.coordinates(key, mesh), site, mesh);
            sender / sites != site / sites
        });
        // Elements of four bytes.
        far.map(|key| from.tuple_bytes(&key) / 4).sum()
    });
    received.collect()
}

/// Words that cross between nodes by a plan, each movement at its busiest site and its busiest node.
fn sent(plan: &Plan, sites: u32) -> (f64, f64) {
    let (mut of_site, mut of_node) = (0, 0);
    for step in &plan.steps {
        let (Operation::Broadcast { input } | Operation::Shuffle { input }) = &step.operation
        else {
            continue;
        };
        let received = from_other_nodes(plan, plan.kind(*input), &step.kind, sites);
        of_site += received.iter().max().unwrap();
        let nodes = received.chunks(sites as usize);
        of_node += nodes.map(|node| node.iter().sum::<u64>()).max().unwrap();
    }
    (of_site as f64, of_node as f64)
}

/// The cheapest layout by seconds, and its plan.
fn planned(program: &Program, sites: u32, objective: Objective) -> (Found, Plan, u128) {
    let found = layout(program, &SearchOptions::new(sites, objective), &|| false).unwrap();
    let placed = place(program, &found.layout, sites, false).unwrap();
    let plan = lower::lower(&placed.ia, false).unwrap();
    let cost = of_plan(&placed.ia, &plan, &Machine { sites });
    (found, plan, cost.transfer)
}

#[test]
fn what_goes_between_nodes_is_what_plans_send() {
    let mut compared = 0;
    for seed in 0..40 {
        let program = random_program(seed);
        for (sites, of_node) in [(4, 2), (6, 3), (8, 4), (8, 3), (12, 4), (12, 6)] {
            let (found, plan, transfer) = planned(&program, sites, on_nodes(of_node));
            // Where addends go to other places than those that hold them, words are those of an average site, on one level as on two.
            let received = traffic::by_step(&plan).into_iter();
            let received: u64 = received.map(|step| step.received_max.floats).sum();
            let as_planned = transfer as f64 == found.price.transfer
                && (received as f64 - found.price.words).abs() < 1e-6;
            if found.layout.mesh.sites() < sites || !as_planned {
                continue;
            }
            let far = found.price.conversions.iter().map(|c| c.moved.far);
            let priced = far.fold((0.0, 0.0), |sum, far| {
                (sum.0 + far.words, sum.1 + far.words_of_node)
            });
            let sent = sent(&plan, of_node);
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * a.max(1.0);
            assert!(
                close(priced.0, sent.0) && close(priced.1, sent.1),
                "{seed} on {sites}: {priced:?} {sent:?}\n{:?}\n{program}\n{plan}",
                found.price.conversions
            );
            compared += usize::from(sent.0 > 0.0);
        }
    }
    assert!(compared > 90, "{compared}");
}

/// Of a window, only what no site of the node has comes from elsewhere: for a shift, one edge of each node.
#[test]
fn windows_cross_nodes_at_their_edges_alone() {
    let program = parse(PROGRAMS[0].1).unwrap();
    for (sites, of_node) in [(4, 2), (6, 3), (8, 4), (8, 2)] {
        let (found, ..) = planned(&program, sites, on_nodes(of_node));
        let [shift] = &found.price.conversions[..] else {
            panic!("{:?}", found.price.conversions);
        };
        assert_eq!((shift.moved.words, shift.moved.messages), (1.0, 1.0));
        let far = shift.moved.far;
        assert_eq!(
            (far.words, far.messages, far.words_of_node),
            (1.0, 1.0, 1.0)
        );
    }
}
