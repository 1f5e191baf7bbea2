//! Seeds that every change must survive.
#![allow(clippy::unwrap_used)]

use servo_sim::audit::Batch;
use servo_sim::campaign::campaign;
use servo_sim::scenario::{Scenario, WorkerCode, WorkerKind};
use servo_sim::seed::{How, run};
use servo_sim::shrink::shrink;

/// `make sim SEEDS=…` runs more.
const SEEDS: u64 = 700;

#[test]
fn whatever_goes_wrong_nothing_is_lost_doubled_or_stuck() {
    let report = campaign(0..SEEDS, 2, 3, &|_| {});
    for outcome in &report.failed {
        let (cut, least) = shrink(outcome, 100);
        println!("seed {}: {:?}", outcome.seed, outcome.wrong);
        println!("cut down to {} steps: {:?}", least.steps, least.wrong);
        println!("{}", outcome.command(&cut));
    }
    assert!(report.failed.is_empty(), "{} of {} seeds failed", report.failed.len(), report.seeds);
    assert_eq!(report.seeds, SEEDS);
    assert_eq!(report.unused_faults(), [], "a fault that never took effect proves nothing");
    assert!(report.twice >= SEEDS / 100 && report.beside >= SEEDS / 100, "some were run once more");
}

/// Seeds that found something, under the generator of their day: what they found, and that it is gone.
#[test]
fn seeds_that_found_something_find_nothing_any_more() {
    for (seed, found) in [
        (47, "the name of a new directory was not durable, and a loss of power took the log"),
        (266, "the same, seen by somebody whose acknowledged run was gone"),
        (121, "a node asked a store that did not answer fifty times a second, for hours"),
        (2053, "the engine looked a hundred times a second whether a flush had ended"),
        (796, "a node that was behind pointed back at older data"),
        (1693, "two nodes that flushed at once left the older pointer"),
        (2301, "files of tables were deleted when the answer to their manifest was lost"),
        (236, "two nodes without a lease fenced each other off, and the tables stood still"),
        (2309, "the same"),
        (34_400, "a node that lost its lease while it loaded wrote under a higher epoch than its successor"),
        (65_876, "the same"),
        (138_460, "a node that had read the tables before the other wrote them turned them back"),
        (39_333, "a node that slept created a manifest whose number had been deleted"),
        (574, "two heartbeats of one moment had two effects under one key"),
        (72, "tables that were replaced while somebody read them were taken for damaged"),
        (409_011, "a node that took over and had nothing to do did not see what the other still wrote"),
        (410_761, "the same"),
        (403_350, "the newest lease was looked for while it was renewed, and an old one found: two held it"),
        (406_839, "a reader was given a deleted number that a node which had slept was about to take back"),
    ] {
        let outcome = run(&Scenario::of(seed), How { twice: true, ..How::default() });
        assert!(outcome.wrong.is_empty(), "seed {seed} ({found}): {:?}", outcome.wrong);
    }
}

#[test]
fn workers_of_every_kind_end_tasks_and_do_it_twice_in_the_same_way() {
    for (kind, code) in [
        (WorkerKind::Local, WorkerCode::Scripted),
        (WorkerKind::Local, WorkerCode::Executor),
        (WorkerKind::Remote, WorkerCode::Scripted),
        (WorkerKind::Remote, WorkerCode::Executor),
        (WorkerKind::Remote, WorkerCode::OverHttp),
    ] {
        let is_of = |scenario: &Scenario| scenario.worker_kind == kind && scenario.worker_code == code;
        let scenarios = (0..).map(Scenario::of).filter(is_of);
        let mut ended = 0;
        for scenario in scenarios.take(5) {
            let outcome = run(&scenario, How { twice: true, ..How::default() });
            assert_eq!(outcome.wrong, Vec::<String>::new(), "seed {}: {kind:?} {code:?}", scenario.seed);
            let says = |batch: &&Batch| String::from_utf8_lossy(&batch.payload).contains("\"TaskFinished\"");
            ended += outcome.log.iter().filter(says).count();
        }
        assert!(ended > 5, "{kind:?} {code:?} ended {ended} tasks");
    }
}

#[test]
fn a_killed_process_ends_in_the_same_order_with_a_neighbour() {
    let outcome = run(&Scenario::of(3_001), How { neighbour: true, ..How::default() });
    assert_eq!(outcome.wrong, Vec::<String>::new());
}

#[test]
fn what_is_cut_out_of_a_scenario_does_not_happen() {
    let whole = Scenario::of(3);
    let cut = servo_sim::shrink::Cut { requests: (1..whole.requests.len()).collect(), ..Default::default() };
    let least = run(&cut.of(&whole), How { traced: true, ..How::default() });
    assert_eq!(least.wrong, Vec::<String>::new());
    let requests = least.trace.iter().filter(|line| line.contains(" request ")).count();
    assert_eq!(requests, 1, "the first deployment is left");
}
