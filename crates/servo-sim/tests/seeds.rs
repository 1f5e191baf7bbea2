//! Seeds that every change must survive.
#![allow(clippy::unwrap_used)]

use servo_sim::campaign::campaign;
use servo_sim::scenario::Scenario;
use servo_sim::seed::{How, run};
use servo_sim::shrink::shrink;

/// `make sim SEEDS=…` runs more.
const SEEDS: u64 = 2_000;

#[test]
fn whatever_goes_wrong_nothing_is_lost_doubled_or_stuck() {
    let report = campaign(0..SEEDS, 2, 3, &|_| {});
    for outcome in &report.failed {
        let (cut, least) = shrink(outcome, How::default(), 100);
        println!("seed {}: {:?}", outcome.seed, outcome.wrong);
        println!("cut down to {} steps: {:?}", least.steps, least.wrong);
        println!("replay: cargo run --release -p servo-sim -- replay {}{cut}", outcome.seed);
    }
    assert!(report.failed.is_empty(), "{} of {} seeds failed", report.failed.len(), report.seeds);
    assert_eq!(report.seeds, SEEDS);
    assert_eq!(report.idle_faults(), [], "a fault that never struck proves nothing");
    assert!(report.repeated >= SEEDS / 100, "some were run twice");
}

/// Seeds that found something, under the generator of their day: what they found, and that it is gone.
#[test]
fn seeds_that_found_something_find_nothing_any_more() {
    for (seed, found) in [
        (47, "the directory of a new log was not durable, and a loss of power took everything"),
        (266, "an acknowledged run was gone after a loss of power"),
        (121, "a node asked a store that did not answer fifty times a second, for hours"),
    ] {
        let outcome = run(&Scenario::of(seed), How::default());
        assert!(outcome.wrong.is_empty(), "seed {seed} ({found}): {:?}", outcome.wrong);
    }
}

#[test]
fn what_is_cut_out_of_a_scenario_does_not_happen() {
    let whole = Scenario::of(3);
    let cut = servo_sim::shrink::Cut { wishes: (1..whole.wishes.len()).collect(), ..Default::default() };
    let least = run(&cut.of(&whole), How { traced: true, ..How::default() });
    assert_eq!(least.wrong, Vec::<String>::new());
    let wishes = least.trace.iter().filter(|line| line.contains(" wish ")).count();
    assert_eq!(wishes, 1, "the first deployment is left");
}
