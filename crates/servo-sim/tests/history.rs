//! A good log passes; each way of breaking it is noticed, and named.

use serde_json::{Value, json};
use servo_core::EventId;
use servo_engine::Settings;
use servo_sim::model::{Log, Rules, history};

const RUN: &str = "run_aaaaaaaaaaaaaaaaaaaaaaaaaa";

/// A log under construction: number, epoch and events of each batch.
struct Draft {
    batches: Vec<(u64, u64, Vec<Value>)>,
    events: u32,
}

impl Draft {
    fn batch(&mut self) -> &mut Self {
        self.batches.push((self.batches.len() as u64 + 1, 1, Vec::new()));
        self
    }

    fn event(&mut self, kind: &str, key: &str, payload: Value) -> &mut Self {
        self.events += 1;
        let event = json!({
            "event_id": EventId::from_parts(1_736_899_200_000, self.events.into()).to_string(),
            "event_type": kind, "event_version": 1, "timestamp": "2025-01-15T00:00:00.000Z", "source": "engine",
            "tenant_id": "acme", "workspace_id": "prod", "idempotency_key": key, "payload": payload,
        });
        self.batches.last_mut().expect("a batch").2.push(event);
        self
    }

    fn about(&mut self, kind: &str, task: &str, attempt: u32, more: Value) -> &mut Self {
        let mut payload = json!({
            "run_id": RUN, "task_key": format!("t/{task}:materialize"), "attempt": attempt, "attempt_id": token(task, attempt),
        });
        payload.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        self.event(
            kind,
            &format!("{kind}:{task}:{attempt}:{}", more.get("outcome").unwrap_or(&Value::Null)),
            payload,
        )
    }

    fn dispatch(&mut self, task: &str, attempt: u32) -> &mut Self {
        self.about("DispatchRequested", task, attempt, json!({}))
    }

    fn start(&mut self, task: &str, attempt: u32) -> &mut Self {
        self.about("TaskStarted", task, attempt, json!({ "worker_id": "w" }))
    }

    fn finish(&mut self, task: &str, attempt: u32, outcome: &str) -> &mut Self {
        let made = json!({ "outcome": outcome, "materialization_id": token(task, attempt) });
        self.about("TaskFinished", task, attempt, made)
    }

    fn stop(&mut self) -> &mut Self {
        self.event("RunCancelRequested", "cancel", json!({ "run_id": RUN }))
    }

    fn set(&mut self, batch: usize, event: usize, field: &str, value: &str) {
        self.batches[batch].2[event][field] = json!(value);
    }

    fn problems(&self, slots: u32) -> Vec<String> {
        let bytes: Vec<_> = self
            .batches
            .iter()
            .map(|(seq, epoch, events)| (*seq, *epoch, serde_json::to_vec(events).expect("JSON")))
            .collect();
        let log = Log::read(bytes.iter().map(|(seq, epoch, bytes)| (*seq, *epoch, bytes.as_slice())))
            .expect("a log");
        let rules = Rules::of(&Settings { max_concurrent_tasks: slots, ..Settings::default() });
        history::check(
            &log.batches,
            history::Expected { tenant: "acme", workspace: "prod", rules: &rules, leased: true },
        )
    }
}

fn token(task: &str, attempt: u32) -> String {
    let task = u128::from(task.as_bytes()[0]);
    EventId::from_parts(1, task << 32 | u128::from(attempt)).to_string()
}

/// A run of `a`, `b` behind it, and `c` beside them; `a` was dispatched.
fn begun() -> Draft {
    let mut draft = Draft { batches: Vec::new(), events: 0 };
    let requested = json!({ "run_key": "k", "run_id": RUN, "request_fingerprint": "f" });
    let tasks = json!([
        { "task_key": "t/a:materialize" },
        { "task_key": "t/b:materialize", "upstream": [0] },
        { "task_key": "t/c:materialize", "outputs": ["t/a"] },
    ]);
    draft
        .batch()
        .event("RunRequested", "runreq", requested)
        .event("PlanCreated", "plan", json!({ "run_id": RUN, "plan_id": "p", "tasks": tasks }))
        .event("RunTriggered", "run", json!({ "run_id": RUN, "plan_id": "p" }))
        .dispatch("a", 1);
    draft
}

/// All of it but `c`, as it should be.
fn good() -> Draft {
    let mut draft = begun();
    draft.batch().start("a", 1);
    draft.batch().finish("a", 1, "SUCCEEDED").dispatch("b", 1);
    draft.batch().start("b", 1).finish("b", 1, "SUCCEEDED");
    draft
}

fn assert_noticed(draft: &Draft, problem: &str) {
    let found = draft.problems(2);
    assert!(found.len() == 1 && found[0].contains(problem), "{problem}: {found:?}");
}

#[test]
fn a_good_log_is_good() {
    assert_eq!(good().problems(2), Vec::<String>::new());
}

#[test]
fn numbers_have_no_holes() {
    let mut draft = good();
    draft.batches[3].0 = 5;
    assert_noticed(&draft, "batch 5 stands where 4 should");
}

#[test]
fn epochs_never_go_down() {
    let mut draft = good();
    draft.batches[0].1 = 2;
    assert_noticed(&draft, "batch 2 is of epoch 1, after epoch 2");
}

#[test]
fn a_batch_holds_something() {
    let mut draft = good();
    draft.batch();
    assert_noticed(&draft, "batch 5 is empty");
}

#[test]
fn an_epoch_begins_with_a_batch_that_holds_nothing() {
    let mut draft = good();
    draft.batch();
    draft.batches[4].1 = 2;
    assert_eq!(draft.problems(2), Vec::<String>::new());
    draft.batches[2..4].iter_mut().for_each(|batch| batch.1 = 3);
    draft.batches[4].1 = 4;
    assert_noticed(&draft, "batch 3 is not empty, and begins epoch 3");
}

#[test]
fn event_ids_go_up() {
    let mut draft = good();
    let first = draft.batches[0].2[0]["event_id"].as_str().unwrap().to_owned();
    draft.set(1, 0, "event_id", &first);
    assert_noticed(&draft, "its id is not greater than");
}

#[test]
fn nothing_of_another_workspace_is_there() {
    let mut draft = good();
    draft.set(1, 0, "workspace_id", "test");
    assert_noticed(&draft, "it is of acme/test");
}

#[test]
fn a_key_has_one_effect() {
    let mut draft = good();
    let key = draft.batches[1].2[0]["idempotency_key"].as_str().unwrap().to_owned();
    draft.set(3, 0, "idempotency_key", &key);
    assert_noticed(&draft, "has a second effect");
}

#[test]
fn a_run_key_has_one_run() {
    let mut draft = good();
    let other =
        json!({ "run_key": "k", "run_id": "run_aaaaaaaaaaaaaaaaaaaaaaaaae", "request_fingerprint": "f" });
    draft.batch().event("RunRequested", "runreq 2", other);
    assert_noticed(&draft, "run key k has a second run");
}

#[test]
fn a_request_that_is_repeated_is_not_written_again() {
    let mut draft = good();
    let again = json!({ "run_key": "k", "run_id": RUN, "request_fingerprint": "f" });
    draft.batch().event("RunRequested", "runreq", again);
    assert_noticed(&draft, "a run id is used twice");
}

#[test]
fn nothing_is_dispatched_before_what_it_waits_for() {
    let mut draft = begun();
    draft.batch().finish("a", 1, "FAILED").dispatch("b", 1);
    let found = draft.problems(2);
    assert!(found[0].contains("it begins before t/a:materialize, which is FAILED"), "{found:?}");
}

#[test]
fn nothing_is_started_before_what_it_waits_for() {
    let mut draft = begun();
    draft.batch().start("a", 1).start("b", 1);
    assert_noticed(&draft, "it begins before t/a:materialize, which is RUNNING");
}

#[test]
fn open_attempts_stay_within_the_limit() {
    let mut draft = begun();
    draft.dispatch("c", 1);
    assert_eq!(draft.problems(2), Vec::<String>::new());
    assert_eq!(draft.problems(1), ["after batch 1 2 attempts are open, 1 may be"]);
}

#[test]
fn the_second_report_of_an_attempt_has_no_effect() {
    let mut draft = good();
    draft.batch().finish("a", 1, "FAILED");
    assert_eq!(draft.problems(2), Vec::<String>::new(), "the report alone does no harm");
    draft.dispatch("a", 2);
    assert_noticed(&draft, "an attempt too many");
}

#[test]
fn a_late_report_of_a_superseded_attempt_has_no_effect() {
    let mut draft = begun();
    draft.batch().start("a", 1).finish("a", 1, "INTERRUPTED").dispatch("a", 2).finish("a", 1, "SUCCEEDED");
    assert_eq!(draft.problems(2), Vec::<String>::new(), "the report alone does no harm");
    draft.batch().start("b", 1);
    assert_noticed(&draft, "it begins before t/a:materialize, which is READY");
}

#[test]
fn a_stopped_run_begins_nothing() {
    let mut draft = good();
    draft.batch().dispatch("c", 1).stop();
    draft.batch().dispatch("c", 2);
    assert_noticed(&draft, "an attempt too many");
    let mut draft = good();
    draft.batch().dispatch("c", 1).about("DispatchEnqueued", "c", 1, json!({})).stop();
    draft.batch().start("c", 1);
    assert_noticed(&draft, "it begins in a run that was stopped");
}

#[test]
fn a_timer_does_not_fire_before_it_is_due() {
    let mut draft = begun();
    let timer = json!({ "timer_type": "HEARTBEAT_CHECK", "fire_at": "2025-01-15T00:00:00.000Z" });
    draft.batch().start("a", 1).about("TimerFired", "a", 1, timer);
    assert_noticed(&draft, "it fires before it is due");
}

#[test]
fn a_run_makes_each_partition_once() {
    let mut draft = good();
    draft.batch().dispatch("c", 1).start("c", 1).finish("c", 1, "SUCCEEDED");
    assert_noticed(&draft, "t/a None is made twice by one run");
}
