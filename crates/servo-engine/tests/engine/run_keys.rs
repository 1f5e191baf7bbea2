//! Run keys, quotas, and what is remembered of requests (ADR-034).

use servo_core::{EventId, Millis, RunId};
use servo_engine::{
    Caller, Event, EventData, Input, Plan, Refusal, RefusalKind, Reply, RunReply, RunRequest, RunState,
    Settings, StoredRunKey, TriggerRun,
};

use crate::support::{SECRET, World, fold, plan, tenant, workspace};

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

/// L2-INV-4: the same request under the same key is the same run.
#[test]
fn test_run_key_idempotent() {
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

/// L2-INV-4: another request under the same key is refused, and recorded once.
#[test]
fn test_run_key_conflict() {
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
    assert_eq!(world.events().len(), written + 1, "the refusal is recorded, not the request");
    let delta = world.engine.state_mut().take_delta();
    let [conflict] = delta.appended.run_key_conflicts.as_slice() else {
        panic!("{:?}", delta.appended.run_key_conflicts)
    };
    assert_eq!((conflict.run_id, conflict.existing_fingerprint.clone()), (run_id, existing));
    assert_eq!(conflict.conflicting_fingerprint, *other_request("k", 1).fingerprint());
    assert_eq!(conflict.conflicting_event_id, world.events()[written - 1].id);
    assert!(ask(&mut world, other_request("k", 2)).is_err());
    assert_eq!(world.events().len(), written + 2, "a third request is a conflict of its own");
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
    let mut world =
        World::new(Settings { max_concurrent_runs: 1, max_queued_runs: 1, ..Settings::default() });
    world.trigger(TriggerRun::new("k1", one(), "me"));
    world.trigger(TriggerRun::new("k2", one(), "me"));
    let refused = ask(&mut world, TriggerRun::new("k3", one(), "me")).expect_err("over quota");
    assert_eq!(refused, Refusal::Quota { quota: "max_queued_runs", limit: 1, used: 1 });
    assert_eq!(refused.kind(), RefusalKind::Quota);
    assert_eq!(refused.to_string(), "quota max_queued_runs is used up: 1 of 1");
    assert_eq!(world.state().runs().count(), 2, "a refusal leaves no trace");
    // A request that is known already needs no room, and a run that ends makes some.
    assert!(matches!(
        ask(&mut world, TriggerRun::new("k1", one(), "me")),
        Ok(Reply::Run(RunReply { accepted: None, .. }))
    ));
    let first = world.state().runs().find(|run| run.state == RunState::Running).map(|run| run.id);
    world.run = first.expect("k1 is at work");
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
    assert!(world.state().run(world.run).is_none());
}

#[test]
fn the_quota_counts_within_a_batch() {
    let mut world =
        World::new(Settings { max_concurrent_runs: 1, max_queued_runs: 1, ..Settings::default() });
    let inputs: Vec<Input> =
        (0..4).map(|i| Input::Trigger(TriggerRun::new(format!("k{i}"), one(), "me"))).collect();
    let refused = world.step(&inputs).replies.iter().filter(|r| r.is_err()).count();
    assert_eq!(refused, 2);
}

/// A world whose memory holds two run keys and one run, and which was asked for `count` runs.
fn forgetful(count: u32) -> World {
    let mut world = World::new(Settings { recent_runs: 1, recent_run_keys: 2, ..Settings::default() });
    for i in 0..count {
        world.wait(1);
        world.trigger(TriggerRun::new(format!("k{i}"), one(), "me"));
        world.succeed("a");
    }
    world
}

fn run_of(key: &str) -> RunId {
    RunId::derive(SECRET, &tenant(), &workspace(), key)
}

fn requested(world: &World, run: RunId) -> EventId {
    let events = world.events();
    let asked = |event: &&Event| matches!(&event.data, EventData::RunRequested(asked) if asked.run_id == run);
    events.iter().find(asked).expect("it was asked for").id
}

/// The request, with what files say about its key.
fn looked_up(key: &str, found: Option<&TriggerRun>, through: EventId) -> TriggerRun {
    let mut request = TriggerRun::new(key.to_owned(), one(), "me");
    request.stored_key =
        StoredRunKey { fingerprint: found.map(|found| found.fingerprint().clone()), through };
    request
}

#[test]
fn a_key_that_no_file_has_stays_in_memory() {
    let mut world = forgetful(5);
    let newest: Vec<RunId> = world.state().rows().run_keys.iter().map(|entry| entry.run_id).collect();
    assert_eq!(newest, [run_of("k3"), run_of("k4")], "the newest are part of the state");
    for i in 0..5 {
        let key = format!("k{i}");
        let again = ask(&mut world, TriggerRun::new(key.clone(), one(), "me"));
        assert_eq!(again, Ok(Reply::Run(RunReply { run_id: run_of(&key), accepted: None })));
        ask(&mut world, other_request(&key, 1)).expect_err("a conflict");
    }
    let settings = world.state().settings().clone();
    let mut replayed = fold(&settings, &world.events()).rows();
    replayed.head.seq = world.state().head().seq;
    assert_eq!(replayed, world.state().rows(), "a replay has the same in memory");
}

#[test]
fn what_files_say_counts_only_if_they_have_every_key_that_left_memory() {
    let mut world = forgetful(5);
    let (first, third) = (requested(&world, run_of("k0")), requested(&world, run_of("k2")));
    world.engine.state_mut().run_keys_published(third);
    let written = world.events().len();
    // Looked up before the newer files were published: the key may be in those.
    let stale = ask(&mut world, looked_up("k0", None, first));
    assert_eq!(stale, Err(Refusal::StaleRunKey { run_id: run_of("k0") }));
    assert_eq!(
        ask(&mut world, TriggerRun::new("new", one(), "me")),
        Err(Refusal::StaleRunKey { run_id: run_of("new") })
    );
    assert_eq!(world.events().len(), written, "nothing happens");
    let before = TriggerRun::new("k0", one(), "me");
    let again = ask(&mut world, looked_up("k0", Some(&before), third));
    assert_eq!(again, Ok(Reply::Run(RunReply { run_id: run_of("k0"), accepted: None })));
    assert_eq!(world.events().len(), written, "the same run, after any time");
    let fresh = ask(&mut world, looked_up("new", None, third));
    assert!(matches!(fresh, Ok(Reply::Run(RunReply { accepted: Some(_), .. }))), "{fresh:?}");
}

#[test]
fn a_conflict_with_a_key_that_only_files_know_is_recorded_with_both_fingerprints() {
    let mut world = forgetful(5);
    let newest = world.state().head().last_event;
    world.engine.state_mut().run_keys_published(newest);
    world.engine.state_mut().take_delta();
    let before = TriggerRun::new("k0", one(), "me");
    let mut other = other_request("k0", 7);
    other.stored_key = StoredRunKey { fingerprint: Some(before.fingerprint().clone()), through: newest };
    let refused = ask(&mut world, other.clone()).expect_err("a conflict");
    assert_eq!(refused, Refusal::RunKeyConflict { run_key: "k0".into(), run_id: run_of("k0") });
    let delta = world.engine.state_mut().take_delta();
    let [row] = delta.appended.run_key_conflicts.as_slice() else { panic!("{delta:?}") };
    assert_eq!(
        (&row.existing_fingerprint, &row.conflicting_fingerprint, row.run_id),
        (before.fingerprint(), other.fingerprint(), run_of("k0"))
    );
    assert!(world.state().run(run_of("k0")).is_none(), "the run id is not used again");
    let settings = world.state().settings().clone();
    let mut replayed = fold(&settings, &world.events());
    let conflicts = replayed.take_delta().appended.run_key_conflicts;
    assert_eq!(conflicts, std::slice::from_ref(row), "a replay needs no files");
}

#[test]
fn a_step_of_the_clock_forgets_nothing() {
    let mut world = World::new(Settings { dedup_window: Millis::from_hours(2), ..Settings::default() });
    world.trigger(TriggerRun::new("k", one(), "me"));
    ask(&mut world, other_request("k", 1)).expect_err("a conflict");
    world.wait(30 * 24 * 3_600);
    world.trigger(TriggerRun::new("next", one(), "me"));
    ask(&mut world, other_request("k", 2)).expect_err("a conflict");
    assert_eq!(world.state().rows().idempotency.len(), 2, "a gap counts for an hour");
    assert!(world.state().head().elapsed <= Millis::from_hours(2));
}

#[test]
fn conflicts_are_forgotten_with_the_window_too() {
    let settings = Settings { dedup_window: Millis::from_hours(1), ..Settings::default() };
    let mut world = World::new(settings);
    world.trigger(TriggerRun::new("k", one(), "me"));
    ask(&mut world, other_request("k", 1)).expect_err("a conflict");
    assert_eq!(world.state().rows().idempotency.len(), 1);
    for number in 0..3 {
        world.wait(3_600);
        world.trigger(TriggerRun::new(format!("next {number}"), one(), "me"));
    }
    ask(&mut world, other_request("k", 2)).expect_err("a conflict");
    assert_eq!(world.state().rows().idempotency.len(), 1, "the older one is forgotten");
}

#[test]
fn a_run_in_memory_answers_for_its_key_even_when_the_index_has_forgotten_it() {
    let settings = Settings { recent_run_keys: 1, ..Settings::default() };
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
