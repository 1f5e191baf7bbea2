//! Run keys, quotas, and what is remembered of requests (ADR-034).

mod support;

use servo_core::{Millis, RunId};
use servo_engine::{
    Caller, Input, Plan, Refusal, RefusalKind, Reply, RunReply, RunRequest, RunState, Settings, TriggerRun,
};
use support::{SECRET, World, fold, plan, tenant, workspace};

fn one() -> Plan {
    plan(&[("a", &[])])
}

fn other_request(run_key: &str, priority: i32) -> TriggerRun {
    TriggerRun::of_tasks(
        run_key,
        one(),
        RunRequest { priority, caller: Caller::user("me"), ..RunRequest::default() },
    )
}

fn ask(world: &mut World, command: TriggerRun) -> Result<Reply, Refusal> {
    world.ask(Input::Trigger(command))
}

#[test]
fn the_run_id_follows_from_the_key() {
    let mut world = World::new(Settings::default());
    let run = world.trigger(TriggerRun::new("daily:2025-01-15", one(), "me"));
    assert_eq!(run, RunId::derive(SECRET, &tenant(), &workspace(), "daily:2025-01-15"));
}

#[test]
fn the_same_request_under_the_same_key_is_the_same_run() {
    let mut world = World::new(Settings::default());
    let run_id = world.trigger(TriggerRun::new("k", one(), "me"));
    let written = world.events().len();
    let again = ask(&mut world, TriggerRun::new("k", one(), "somebody else"));
    assert_eq!(again, Ok(Reply::Run(RunReply { run_id, accepted: None })), "whoever asks");
    assert_eq!(world.events().len(), written);
    world.succeed("a");
    let after_the_end = ask(&mut world, TriggerRun::new("k", one(), "me"));
    assert_eq!(after_the_end, Ok(Reply::Run(RunReply { run_id, accepted: None })));
}

#[test]
fn the_same_request_twice_in_one_batch_is_one_run() {
    let mut world = World::new(Settings::default());
    let step = world.step(&[
        Input::Trigger(TriggerRun::new("k", one(), "me")),
        Input::Trigger(TriggerRun::new("k", one(), "me")),
    ]);
    assert!(matches!(step.replies[0], Ok(Reply::Run(RunReply { accepted: Some(_), .. }))));
    assert!(matches!(step.replies[1], Ok(Reply::Run(RunReply { accepted: None, .. }))));
    assert_eq!(world.state().runs().count(), 1);
}

#[test]
fn the_same_request_is_recognized_after_its_run_left_memory() {
    let mut world = World::new(Settings { recent_runs: 1, ..Settings::default() });
    let run_id = world.trigger(TriggerRun::new("k", one(), "me"));
    world.succeed("a");
    world.trigger(TriggerRun::new("next", one(), "me"));
    world.succeed("a");
    assert!(world.state().run(run_id).is_none());
    assert_eq!(
        ask(&mut world, TriggerRun::new("k", one(), "me")),
        Ok(Reply::Run(RunReply { run_id, accepted: None }))
    );
}

#[test]
fn another_request_under_the_same_key_is_refused_and_recorded_once() {
    let mut world = World::new(Settings::default());
    let first = TriggerRun::new("k", one(), "me");
    let existing = first.fingerprint().clone();
    let run_id = world.trigger(first);
    world.engine.state_mut().take_delta();
    let refused = ask(&mut world, other_request("k", 1)).expect_err("a conflict");
    assert_eq!(refused, Refusal::RunKeyConflict { run_key: "k".into(), run_id });
    assert_eq!(refused.kind(), RefusalKind::Conflict);
    let written = world.events().len();
    assert_eq!(ask(&mut world, other_request("k", 1)), Err(refused), "the same answer again");
    assert_eq!(world.events().len(), written, "without another record");
    let delta = world.engine.state_mut().take_delta();
    let [conflict] = delta.appended.run_key_conflicts.as_slice() else {
        panic!("{:?}", delta.appended.run_key_conflicts)
    };
    assert_eq!((conflict.run_id, conflict.existing_fingerprint.clone()), (run_id, existing));
    assert_eq!(conflict.conflicting_fingerprint, *other_request("k", 1).fingerprint());
    assert_eq!(conflict.conflicting_event_id, world.events()[written - 1].id);
    assert!(ask(&mut world, other_request("k", 2)).is_err());
    assert_eq!(world.events().len(), written + 1, "a third request is a conflict of its own");
    assert_eq!(world.run().priority, 0, "the run is the one that was asked for first");
    assert_eq!(world.run().tasks.len(), 1);
}

#[test]
fn a_conflict_folds_to_nothing_but_a_memory_of_it() {
    let mut world = World::new(Settings::default());
    world.trigger(TriggerRun::new("k", one(), "me"));
    let before = world.state().rows();
    ask(&mut world, other_request("k", 1)).expect_err("a conflict");
    let mut after = fold(&Settings::default(), &world.events()).rows();
    assert_eq!(after.idempotency.len(), 1);
    after.idempotency.clear();
    after.head = before.head;
    assert_eq!(after, before);
}

#[test]
fn the_quota_says_which_how_many_and_of_how_many() {
    let mut world = World::new(Settings { max_concurrent_runs: 2, ..Settings::default() });
    world.trigger(TriggerRun::new("k1", one(), "me"));
    world.trigger(TriggerRun::new("k2", one(), "me"));
    let refused = ask(&mut world, TriggerRun::new("k3", one(), "me")).expect_err("over quota");
    assert_eq!(refused, Refusal::Quota { quota: "max_concurrent_runs", limit: 2, used: 2 });
    assert_eq!(refused.kind(), RefusalKind::Quota);
    assert_eq!(refused.to_string(), "quota max_concurrent_runs is used up: 2 of 2");
    assert_eq!(world.state().runs().count(), 2, "a refusal leaves no trace");
    // A request that is known already needs no room, and a run that ends makes some.
    assert!(matches!(
        ask(&mut world, TriggerRun::new("k1", one(), "me")),
        Ok(Reply::Run(RunReply { accepted: None, .. }))
    ));
    world.succeed("a");
    assert!(matches!(
        ask(&mut world, TriggerRun::new("k3", one(), "me")),
        Ok(Reply::Run(RunReply { accepted: Some(_), .. }))
    ));
}

#[test]
fn a_plan_made_under_other_limits_is_held_to_those_of_the_workspace() {
    let mut world = World::new(Settings { max_tasks_per_run: 1, ..Settings::default() });
    let two = plan(&[("a", &[]), ("b", &[])]);
    let refused = ask(&mut world, TriggerRun::new("k", two, "me")).expect_err("too large");
    assert_eq!(refused, Refusal::Quota { quota: "max_tasks_per_run", limit: 1, used: 2 });
    assert!(world.events().is_empty());
}

#[test]
fn the_quota_counts_within_a_batch() {
    let mut world = World::new(Settings { max_concurrent_runs: 2, ..Settings::default() });
    let inputs: Vec<Input> =
        (0..4).map(|i| Input::Trigger(TriggerRun::new(format!("k{i}"), one(), "me"))).collect();
    let refused = world.step(&inputs).replies.iter().filter(|r| r.is_err()).count();
    assert_eq!(refused, 2);
}

/// Ends `run` and pushes it out of memory, so that only the indexes could still know it.
fn leave(world: &mut World, filler: &str) {
    world.succeed("a");
    world.trigger(TriggerRun::new(filler.to_owned(), one(), "me"));
    world.succeed("a");
}

#[test]
fn keys_are_forgotten_when_they_are_older_than_the_window_by_event_time() {
    let settings = Settings { recent_runs: 1, dedup_window: Millis::from_hours(1), ..Settings::default() };
    let mut world = World::new(settings);
    world.trigger(TriggerRun::new("k", one(), "me"));
    leave(&mut world, "filler");
    world.wait(3_600);
    world.trigger(TriggerRun::new("at-the-edge", one(), "me"));
    assert!(matches!(
        ask(&mut world, TriggerRun::new("k", one(), "me")),
        Ok(Reply::Run(RunReply { accepted: None, .. }))
    ));
    world.wait(1);
    // No clock forgets anything: it takes an event of that time.
    assert!(matches!(
        ask(&mut world, TriggerRun::new("k", one(), "me")),
        Ok(Reply::Run(RunReply { accepted: None, .. }))
    ));
    world.trigger(TriggerRun::new("past-the-edge", one(), "me"));
    let again = ask(&mut world, TriggerRun::new("k", one(), "me"));
    assert!(matches!(again, Ok(Reply::Run(RunReply { accepted: Some(_), .. }))), "{again:?}");
}

#[test]
fn keys_are_forgotten_when_there_are_too_many_oldest_first() {
    let settings = Settings { recent_runs: 1, dedup_entries: 3, ..Settings::default() };
    let mut world = World::new(settings.clone());
    for i in 0..5 {
        world.wait(1);
        world.trigger(TriggerRun::new(format!("k{i}"), one(), "me"));
        world.succeed("a");
    }
    let rows = world.state().rows();
    let expected: Vec<RunId> =
        (2..5).map(|i| RunId::derive(SECRET, &tenant(), &workspace(), &format!("k{i}"))).collect();
    assert_eq!(rows.run_keys.iter().map(|e| e.run_id).collect::<Vec<_>>(), expected);
    let known = |world: &mut World, key: &str| {
        matches!(
            ask(world, TriggerRun::new(key.to_owned(), one(), "me")),
            Ok(Reply::Run(RunReply { accepted: None, .. }))
        )
    };
    assert!(known(&mut world, "k2"));
    assert!(!known(&mut world, "k0"), "taken as new");
    let mut replayed = fold(&settings, &world.events()).rows();
    replayed.head.seq = world.state().head().seq;
    assert_eq!(replayed, world.state().rows(), "a replay forgets the same");
}

#[test]
fn conflicts_are_forgotten_with_the_window_too() {
    let settings = Settings { dedup_window: Millis::from_hours(1), ..Settings::default() };
    let mut world = World::new(settings);
    world.trigger(TriggerRun::new("k", one(), "me"));
    ask(&mut world, other_request("k", 1)).expect_err("a conflict");
    assert_eq!(world.state().rows().idempotency.len(), 1);
    world.wait(3_601);
    world.trigger(TriggerRun::new("next", one(), "me"));
    assert!(world.state().rows().idempotency.is_empty());
}

#[test]
fn a_run_in_memory_answers_for_its_key_even_when_the_index_has_forgotten_it() {
    let settings = Settings { dedup_entries: 1, ..Settings::default() };
    let mut world = World::new(settings.clone());
    let run_id = world.trigger(TriggerRun::new("k", one(), "me"));
    world.start("a").expect("starts");
    world.wait(1);
    world.trigger(TriggerRun::new("pushes-k-out", one(), "me"));
    assert_eq!(world.state().rows().run_keys.len(), 1);
    // The run is at work: asking for it again must neither start it anew nor lose its tasks.
    assert_eq!(
        ask(&mut world, TriggerRun::new("k", one(), "me")),
        Ok(Reply::Run(RunReply { run_id, accepted: None }))
    );
    assert!(ask(&mut world, other_request("k", 1)).is_err());
    let run = world.state().run(run_id).expect("still there");
    assert_eq!((run.state, run.tasks.len()), (RunState::Running, 1));
    assert_eq!((world.state().active_runs(), world.state().outstanding()), (2, 2));
    // The same holds for the fold, should the event be in the log twice.
    let mut state = fold(&settings, &world.events());
    let before = state.rows();
    state.apply(&world.events()[0]);
    assert_eq!(state.rows(), before);
    // And for a run that has ended but is still in memory.
    world.run = run_id;
    world.finish("a", servo_engine::Report::succeeded()).expect("finishes");
    assert_eq!(
        ask(&mut world, TriggerRun::new("k", one(), "me")),
        Ok(Reply::Run(RunReply { run_id, accepted: None }))
    );
    assert_eq!(world.state().active_runs(), 1);
}

#[test]
fn each_new_key_is_written_once_for_the_tables() {
    let mut world = World::new(Settings::default());
    let request = TriggerRun::new("k", one(), "me");
    let run_id = world.trigger(request.clone());
    ask(&mut world, request.clone()).expect("the same run");
    let delta = world.engine.state_mut().take_delta();
    let [row] = delta.appended.run_keys.as_slice() else { panic!("{:?}", delta.appended.run_keys) };
    assert_eq!((row.run_id, row.run_key.as_str()), (run_id, "k"));
    assert_eq!(row.request_fingerprint, *request.fingerprint());
    assert_eq!(row.row_version, world.events()[0].id);
}
