//! A log that misbehaves, and nodes that meet on it: nothing acknowledged is lost, no attempt runs twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use servo_core::{ManualClock, Millis, RunId, Timestamp};
use servo_engine::{EventData, Plan, RunReply, RunState, SettingOrigin, State, TriggerRun};
use servo_projections::RunFilter;
use servo_runtime::{Config, Error, Ownership, Workspace};
use servo_store::{AppendError, Log, MemoryFault};

use crate::support::*;

/// Retries until it is accepted, as a client would: every transient error is safe to repeat.
async fn retry_until_acked(harness: &Harness, key: &str, plan: Plan) -> RunId {
    loop {
        match within(harness.workspace.trigger(TriggerRun::new(key, plan.clone(), "test"))).await {
            Ok(RunReply { run_id: run, accepted }) => {
                if let Some(event) = accepted {
                    harness.acknowledged.add(event);
                }
                return run;
            }
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    }
}

/// Waits for the end of a run on a workspace that may be loading its state again and again.
async fn retry_until_ended(harness: &Harness, run: RunId) -> RunState {
    within(harness.workspace.wait(run)).await.unwrap();
    loop {
        match within(harness.workspace.run(run)).await {
            Ok(detail) => return detail.expect("it was acknowledged").run.state,
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    }
}

async fn workload(harness: &Harness, runs: usize) {
    harness.script.let_task("flaky_1", Behaviour::Fail(2));
    let work = (0..runs).map(|i| async move {
        let plan = match i % 3 {
            0 => diamond(),
            1 => chain("flaky", 3, Some((1, quick_retries(6)))),
            _ => wide("wide", 6),
        };
        let run = retry_until_acked(harness, &format!("run {i}"), plan).await;
        assert_eq!(retry_until_ended(harness, run).await, RunState::Succeeded);
        run
    });
    let ids: BTreeSet<RunId> = futures::future::join_all(work).await.into_iter().collect();
    assert_eq!(ids.len(), runs);
}

fn quick(config: &mut Config) {
    config.start_with.adjust(SettingOrigin::Flag, |settings| settings.recent_runs = 4);
    config.flush_every = Duration::from_millis(5);
}

/// Runs a workload while every so many appends go wrong in one of these ways.
async fn survives(faults: &'static [MemoryFault], one_in: u64) {
    let (log, stores) = memory();
    let mut chance: u64 = 42;
    let injected = Arc::new(AtomicU64::new(0));
    let count = injected.clone();
    log.choose(move |_| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let roll = chance >> 33;
        roll.is_multiple_of(one_in).then(|| {
            count.fetch_add(1, Ordering::SeqCst);
            faults[(roll / one_in) as usize % faults.len()]
        })
    });
    let harness = Harness::open(stores, quick).await.unwrap();
    workload(&harness, 24).await;
    log.choose(|_| None);
    assert!(injected.load(Ordering::SeqCst) >= 5, "something did go wrong");
    harness.script.assert_no_attempt_ran_twice();
    // A round trip, so that whatever was still under way has settled.
    retry_until_acked(&harness, "last", one("last")).await;
    harness.assert_acknowledged_is_in_the_log().await;
    harness.assert_replay_is_live().await;
    let stores = harness.stores.clone();
    harness.close().await;
    assert_tables_verify(&stores).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_answers_are_told_from_lost_batches() {
    survives(&[MemoryFault::LostAnswer], 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_of_somebody_else_is_folded_and_the_rest_decided_again() {
    survives(&[MemoryFault::TakenBySomebodyElse], 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_asks_for_another_try_gets_one() {
    survives(&[MemoryFault::NothingLanded], 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_waited_for() {
    survives(&[MemoryFault::Unavailable], 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_log_refuses_and_loses_nothing() {
    survives(&[MemoryFault::Full], 8).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_faults_together_change_no_outcome() {
    use MemoryFault::{Full, LostAnswer, NothingLanded, TakenBySomebodyElse, Unavailable};
    survives(&[LostAnswer, TakenBySomebodyElse, NothingLanded, Unavailable, Full], 6).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_lost_for_good_leaves_a_run_that_is_found_again() {
    let (log, stores) = memory();
    let harness = Harness::open(stores, |_| {}).await.unwrap();
    harness.run("before", one("a")).await;
    eventually("nothing is under way", async || harness.queue.is_empty()).await;
    // It lands at the first try; every answer is lost, as often as it is tried.
    log.choose(|record| {
        let requested = record.payload.windows(12).any(|text| text == b"RunRequested");
        requested.then_some(MemoryFault::LostAnswer)
    });
    let error =
        within(harness.workspace.trigger(TriggerRun::new("lost", one("a"), "test"))).await.unwrap_err();
    assert!(error.is_transient() && matches!(error, Error::NotDurable(_)), "{error}");
    log.choose(|_| None);
    let run = retry_until_acked(&harness, "lost", one("a")).await;
    assert_eq!(retry_until_ended(&harness, run).await, RunState::Succeeded);
    assert_eq!(harness.script.begun().len(), 2, "one run each");
    harness.close().await;
}

/// Two nodes that know nothing of each other but the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_without_leases_make_one_history() {
    let (log, stores) = memory();
    let script: Arc<Script> = Arc::default();
    script.let_task("flaky_1", Behaviour::Fail(1));
    let node = |name: &'static str| {
        let (stores, script) = (stores.clone(), script.clone());
        async move {
            Harness::open_with(stores, script, 3, |config| {
                quick(config);
                config.local_workers = name.into();
            })
            .await
            .unwrap()
        }
    };
    let (left, right) = (node("left-").await, node("right-").await);
    let work = |harness: &Harness, name: &'static str| {
        let plans = [diamond(), chain("flaky", 3, Some((1, quick_retries(9)))), wide("wide", 6)];
        let requests: Vec<_> = (0..8).map(|i| (format!("{name} {i}"), plans[i % 3].clone())).collect();
        let stage_of = harness.workspace.clone();
        let acknowledged = harness.acknowledged.clone();
        tokio::spawn(async move {
            let mut runs = BTreeSet::new();
            for (key, plan) in requests {
                loop {
                    match within(stage_of.trigger(TriggerRun::new(key.clone(), plan.clone(), "test"))).await {
                        Ok(RunReply { run_id: run, accepted }) => {
                            accepted.into_iter().for_each(|event| acknowledged.add(event));
                            runs.insert(run);
                            break;
                        }
                        Err(error) => assert!(error.is_transient(), "{error}"),
                    }
                }
            }
            runs
        })
    };
    let (of_left, of_right) = (work(&left, "left"), work(&right, "right"));
    let mut runs = within(of_left).await.unwrap();
    runs.extend(within(of_right).await.unwrap());
    assert_eq!(runs.len(), 16);
    // A node learns of the other's work when it writes itself; the log knows at once.
    eventually("all runs have ended", async || {
        // With room for all of them: without the setting that lets few stay in memory.
        let mut state = State::new(tenant(), workspace_id());
        for event in events(&log).await {
            if !matches!(event.data, EventData::SettingsChanged(_)) {
                state.apply(&event);
            }
        }
        runs.iter().all(|run| state.run(*run).is_some_and(|run| run.state == RunState::Succeeded))
    })
    .await;
    script.assert_no_attempt_ran_twice();
    left.assert_acknowledged_is_in_the_log().await;
    right.assert_acknowledged_is_in_the_log().await;
    left.assert_replay_is_live().await;
    right.assert_replay_is_live().await;
    let ids: Vec<_> = events(&log).await.iter().map(|event| event.id).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "one history, in one order");
    left.close().await;
    right.close().await;
    let after = node("after-").await;
    let shown = after.workspace.runs(None, 100, RunFilter::default()).await.unwrap();
    assert_eq!(shown.iter().map(|run| run.run_id).collect::<BTreeSet<_>>(), runs);
    after.assert_replay_is_live().await;
    after.close().await;
    assert_tables_verify(&stores).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_shows_what_the_other_has_moved_to_history() {
    let (_, stores) = memory();
    let forgetful = |name: &'static str| {
        move |config: &mut Config| {
            config.start_with.adjust(SettingOrigin::Flag, |settings| settings.recent_runs = 1);
            config.flush_every = Duration::from_millis(1);
            config.local_workers = name.into();
        }
    };
    let left = Harness::open(stores.clone(), forgetful("left-")).await.unwrap();
    let right = Harness::open(stores, forgetful("right-")).await.unwrap();
    let mut runs = BTreeSet::new();
    for i in 0..10 {
        runs.insert(right.run(&format!("run {i}"), one("a")).await.run.run_id);
    }
    eventually("the other node's tables have them", async || {
        right.workspace.manifest().is_some_and(|m| {
            m.history.get("runs").is_some_and(|files| files.iter().map(|file| file.rows).sum::<u64>() >= 9)
        })
    })
    .await;
    // Writing makes this node find out how far the log has come.
    let run = retry_until_acked(&left, "mine", one("a")).await;
    runs.insert(run);
    assert_eq!(retry_until_ended(&left, run).await, RunState::Succeeded);
    let shown = left.workspace.runs(None, 100, RunFilter::default()).await.unwrap();
    assert_eq!(shown.iter().map(|run| run.run_id).collect::<BTreeSet<_>>(), runs);
    left.close().await;
    right.close().await;
}

fn leased(name: &'static str, clock: &Arc<ManualClock>, ttl: Millis) -> impl FnOnce(&mut Config) {
    let clock = clock.clone();
    move |config: &mut Config| {
        config.clock = clock;
        config.local_workers = format!("{name}-").into();
        config.ownership = Ownership::ByLease { node: name.to_owned(), ttl };
    }
}

async fn is_stopped(workspace: &Workspace) -> bool {
    matches!(within(workspace.read(|_| ())).await, Err(Error::Stopped))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_node_is_refused_while_the_first_has_the_lease_and_takes_over_after_it() {
    let (log, stores) = memory();
    let (clock_a, clock_b) = (manual_clock(), manual_clock());
    let ttl = Millis::from_minutes(1);
    let first = Harness::open(stores.clone(), leased("a", &clock_a, ttl)).await.unwrap();
    first.run("of a", one("a")).await;
    let refused = Harness::open(stores.clone(), leased("b", &clock_b, ttl)).await.err().unwrap();
    assert!(matches!(refused, Error::NotLeader { .. }), "{refused}");
    assert!(refused.to_string().contains("tenant=acme/workspace=main"), "{refused}");
    // Node a falls silent: for b its lease has run out, a does not know yet.
    clock_b.advance(Millis::new(ttl.get() + 1));
    let second = Harness::open(stores.clone(), leased("b", &clock_b, ttl)).await.unwrap();
    second.run("of b", one("b")).await;
    let epochs: Vec<u64> = records(&log).await.iter().map(|record| record.epoch).collect();
    assert!(epochs.first() < epochs.last() && epochs.is_sorted(), "a higher epoch: {epochs:?}");
    let before = log.next_seq().await.unwrap();
    let stale = within(first.workspace.trigger(TriggerRun::new("late", one("a"), "test"))).await.unwrap_err();
    let Error::NotDurable(cause) = &stale else { panic!("{stale}") };
    assert!(matches!(**cause, AppendError::Fenced { .. }), "{stale}");
    for i in 0..5 {
        let again =
            within(first.workspace.trigger(TriggerRun::new(format!("later {i}"), one("a"), "test"))).await;
        assert!(again.is_err(), "a deposed node accepts nothing more");
    }
    eventually("the stale node stops", async || is_stopped(&first.workspace).await).await;
    assert_eq!(log.next_seq().await.unwrap(), before, "and has written nothing");
    let detail = second.workspace.runs(None, 10, RunFilter::default()).await.unwrap();
    let keys: Vec<&str> = detail.iter().map(|run| run.run_key.as_str()).collect();
    assert_eq!(keys, ["of b", "of a"], "nothing of a is lost, nothing of it came in late");
    second.run("more of b", diamond()).await;
    second.assert_replay_is_live().await;
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_idle_finds_out_that_it_lost_its_lease() {
    let (_, stores) = memory();
    let (clock_a, clock_b) = (manual_clock(), manual_clock());
    let ttl = Millis::new(30);
    let first = Harness::open(stores.clone(), leased("a", &clock_a, ttl)).await.unwrap();
    clock_b.advance(Millis::from_secs(1));
    let second = Harness::open(stores.clone(), leased("b", &clock_b, ttl)).await.unwrap();
    eventually("the first stops", async || is_stopped(&first.workspace).await).await;
    assert_eq!(second.run("one", one("a")).await.run.state, RunState::Succeeded);
    first.close().await;
    second.close().await;
}

/// A clock that moves on by an hour with each reading.
struct Leaping(std::sync::atomic::AtomicI64);

impl servo_core::Clock for Leaping {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_add(3_600_000, std::sync::atomic::Ordering::SeqCst))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_took_over_and_has_nothing_to_do_misses_nothing() {
    let (log, stores) = memory();
    let (clock_a, clock_b) = (manual_clock(), manual_clock());
    let ttl = Millis::from_minutes(1);
    let first = Harness::open(stores.clone(), leased("a", &clock_a, ttl)).await.unwrap();
    clock_b.advance(Millis::new(ttl.get() + 1));
    let second = Harness::open(stores.clone(), leased("b", &clock_b, ttl)).await.unwrap();
    let late = within(first.workspace.trigger(TriggerRun::new("late", one("a"), "test"))).await;
    assert!(late.is_err(), "nobody would look after it");
    eventually("the stale node stops", async || is_stopped(&first.workspace).await).await;
    let known = second.workspace.read(|state| state.head().seq).await.unwrap();
    assert_eq!(known + 1, log.next_seq().await.unwrap());
    first.close().await;
    second.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_lease_runs_out_while_it_loads_does_not_begin() {
    let (log, stores) = memory();
    let slow = Harness::open(stores.clone(), |config| {
        config.clock = Arc::new(Leaping(1_800_000_000_000.into()));
        config.ownership = Ownership::ByLease { node: "slow".to_owned(), ttl: Millis::from_minutes(1) };
    });
    let refused = slow.await.err().unwrap();
    assert!(matches!(refused, Error::NotLeader { .. }), "{refused}");
    assert_eq!(records(&log).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clean_shutdown_hands_the_lease_over_at_once() {
    let (log, stores) = memory();
    let clock = manual_clock();
    let mut last = 0;
    for name in ["a", "b", "c"] {
        let harness =
            Harness::open(stores.clone(), leased(name, &clock, Millis::from_hours(1))).await.unwrap();
        harness.run(name, one("a")).await;
        harness.close().await;
        let epoch = records(&log).await.last().unwrap().epoch;
        assert!(epoch > last);
        last = epoch;
    }
}
