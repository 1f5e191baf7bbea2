//! Sets of dependencies mean what edges between all pairs mean, in plans, in the fold and after a restart.

use proptest::prelude::*;
use servo_engine::testing::invariants;
use servo_engine::{
    DepSet, ErrorCode, Plan, PlanError, Positions, Report, RunState, State, TaskError, TaskOptions,
    TaskRequest, TaskState,
};

use crate::support::{World, key, task, tenant, user_error, workspace};

/// Names of layers that sort by layer, then by number.
fn name(layer: usize, number: usize) -> String {
    format!("l{layer}n{number:02}")
}

/// Layers of so many tasks; every task waits for the whole layer before it: by pairs, or by a set.
fn layers(sizes: &[usize], previous: bool, by_sets: bool) -> Plan {
    let (mut tasks, mut sets, mut begin) = (Vec::<TaskRequest>::new(), Vec::new(), 0u32);
    for (layer, size) in sizes.iter().enumerate() {
        let before: Vec<String> = match layer {
            0 => Vec::new(),
            _ => (0..sizes[layer - 1]).map(|number| name(layer - 1, number)).collect(),
        };
        let upstream: Vec<&str> = before.iter().map(String::as_str).collect();
        let assets = before.iter().map(|name| servo_core::AssetKey::new("t", name).expect("a key"));
        let options = TaskOptions {
            previous: if previous { assets.collect() } else { Vec::new() },
            ..TaskOptions::default()
        };
        for number in 0..*size {
            let edges: &[&str] = if by_sets { &[] } else { &upstream };
            tasks.push(task(&name(layer, number), edges, options.clone()));
        }
        let end = begin + *size as u32;
        if layer > 0 && by_sets {
            let start = begin - sizes[layer - 1] as u32;
            sets.push(DepSet {
                upstream: Positions::of(start..begin),
                downstream: Positions::of(begin..end),
            });
        }
        begin = end;
    }
    Plan::build_with_sets(&tenant(), &workspace(), tasks, sets, 10_000).expect("a plan")
}

/// How a task of a story ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Well,
    Failed,
    Blocked,
}

fn ends() -> impl Strategy<Value = (Vec<usize>, bool, Vec<(prop::sample::Index, End)>)> {
    let end = prop_oneof![6 => Just(End::Well), 1 => Just(End::Failed), 1 => Just(End::Blocked)];
    let sizes = prop::collection::vec(1usize..5, 2..4);
    (sizes, any::<bool>(), prop::collection::vec((any::<prop::sample::Index>(), end), 1..16))
}

/// The observable state of a run, whichever kind of edges it has.
fn seen(world: &World) -> Vec<String> {
    let run = world.run();
    let tasks = run.tasks.iter().map(|task| {
        let cause = task.caused_by.map(|cause| run.tasks[cause as usize].key.to_string());
        format!(
            "{} {} {} {cause:?} {:?} {:?} {}",
            task.key, task.state, task.reason, task.finished_at, task.ready_at, task.deps_total
        )
    });
    tasks.chain([format!("{} {:?}", run.state, run.counts)]).collect()
}

fn end(world: &mut World, at: &prop::sample::Index, end: End) {
    let open: Vec<String> = world
        .run()
        .tasks
        .iter()
        .filter(|task| task.has_open_attempt())
        .map(|task| task.key.asset_str().trim_start_matches("t/").to_owned())
        .collect();
    if open.is_empty() {
        return;
    }
    let name = at.get(&open).clone();
    world.wait(1);
    let report = match end {
        End::Well => Report::succeeded(),
        End::Failed => user_error(),
        End::Blocked => Report::failed(TaskError::new(ErrorCode::CheckFailed, "few")),
    };
    world.play(&name, report);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_set_is_followed_as_all_pairs_are((sizes, previous, story) in ends()) {
        let mut paired = World::with(layers(&sizes, previous, false));
        let mut together = World::with(layers(&sizes, previous, true));
        prop_assert_eq!(together.run().edges.len(), 0);
        for (at, how) in &story {
            end(&mut paired, at, *how);
            end(&mut together, at, *how);
            prop_assert_eq!(seen(&together), seen(&paired));
            prop_assert_eq!(invariants::check(together.state()), Ok(()));
            // A restart in the middle changes nothing.
            let rows = together.state().rows();
            let restored = State::from_rows(tenant(), workspace(), rows.clone()).unwrap();
            prop_assert_eq!(&restored.rows(), &rows);
            let (old, new) = (together.run(), restored.run(together.run).unwrap());
            prop_assert_eq!(&old.sets, &new.sets);
        }
        for (paired, together) in paired.run().tasks.iter().zip(&together.run().tasks) {
            if together.deps_satisfied == together.deps_total {
                prop_assert_eq!(paired.deps_satisfied, together.deps_satisfied);
            }
        }
    }
}

#[test]
fn the_first_failure_of_a_set_skips_all_that_wait_and_later_ones_change_nothing() {
    let mut world = World::with(layers(&[4, 4, 2], false, true));
    world.play(&name(0, 2), user_error());
    let skipped = seen(&world);
    assert_eq!(world.task(&name(2, 1)).state, TaskState::Skipped);
    for number in [3, 0, 1] {
        world.play(&name(0, number), user_error());
    }
    let run = world.run();
    for task in run.tasks.iter().filter(|task| task.state == TaskState::Skipped) {
        assert_eq!(task.caused_by.map(|cause| &run.tasks[cause as usize].key), Some(&key(&name(0, 2))));
    }
    assert_eq!(seen(&world)[4..10], skipped[4..10]);
    assert_eq!(run.state, RunState::Failed);
}

#[test]
fn a_set_that_does_not_fit_its_plan_is_refused() {
    let task = |name: &str| task(name, &[], TaskOptions::default());
    let of = |upstream: &[u32], downstream: &[u32]| {
        let set = DepSet {
            upstream: Positions::of(upstream.iter().copied()),
            downstream: Positions::of(downstream.iter().copied()),
        };
        Plan::build_with_sets(&tenant(), &workspace(), vec![task("a"), task("b"), task("c")], vec![set], 10)
    };
    assert!(of(&[0], &[1, 2]).is_ok());
    for (upstream, downstream) in [(&[0u32][..], &[3u32][..]), (&[0, 1], &[1, 2]), (&[], &[1])] {
        assert!(matches!(of(upstream, downstream), Err(PlanError::WrongSet { .. })));
    }
    let there = DepSet { upstream: Positions::of([0]), downstream: Positions::of([1]) };
    let back = DepSet { upstream: Positions::of([1]), downstream: Positions::of([0]) };
    let tasks = vec![task("a"), task("b")];
    let cycle = Plan::build_with_sets(&tenant(), &workspace(), tasks, vec![there, back], 10).unwrap_err();
    assert!(cycle.to_string().contains("tasks wait for each other: t/a:materialize → t/b"), "{cycle}");
}
