//! Plans and requests are the same everywhere if they say the same; what is not a plan is refused with a reason.

use std::collections::BTreeMap;

use proptest::prelude::*;
use servo_core::{Millis, TenantId, WorkspaceId};
use servo_engine::{
    Caller, Plan, PlanError, RetryPolicy, RunRequest, RunSource, TaskOptions, TaskRequest, TriggerRun,
};

use crate::support::{key, plan_of, task, tenant, workspace};

fn build(tasks: Vec<TaskRequest>) -> Result<Plan, PlanError> {
    Plan::build(&tenant(), &workspace(), tasks, 10_000)
}

/// A plan with every option set somewhere.
fn rich() -> Vec<TaskRequest> {
    let retry = RetryPolicy {
        max_attempts: 5,
        initial_delay_ms: Millis::from_secs(30),
        jitter_ppm: 100_000,
        retry_on: vec!["Flaky".to_owned()],
        no_retry_on: vec!["Fatal".to_owned()],
        ..RetryPolicy::default()
    };
    let options = TaskOptions {
        priority: -3,
        retry: Some(retry),
        timeout_ms: Some(Millis::from_minutes(10)),
        heartbeat_timeout_ms: Some(Millis::from_minutes(2)),
        worker_queue: Some("größe".into()),
        pool: None,
        compute: None,
        outputs: vec![],
        previous: Vec::new(),
        config: BTreeMap::new(),
        single_call: false,
    };
    vec![
        task("extract", &[], options),
        task("clean", &["extract"], TaskOptions::default()),
        task("report", &["clean", "extract"], TaskOptions { priority: 1, ..TaskOptions::default() }),
    ]
}

fn request(plan: Plan, priority: i32, labels: &[(&str, &str)], timeout: Option<Millis>) -> TriggerRun {
    let labels: BTreeMap<String, String> =
        labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    TriggerRun::of_tasks(
        "k",
        plan,
        RunRequest { priority, labels, timeout, caller: Caller::user("me"), ..RunRequest::default() },
    )
}

// Both were computed with Python as well: sha256 of json.dumps(…, sort_keys=True, separators=(',', ':'),
// ensure_ascii=False) of the normalized plan, and of the normalized request with the fingerprint of its tasks.

#[test]
fn a_plan_has_the_same_fingerprint_in_every_process_for_ever() {
    assert_eq!(
        plan_of(rich()).fingerprint().as_str(),
        "v1:sha256:bf4b6a9891323550799e23eb483f2eacc1555097aa884d3b685b2d783219b0b0"
    );
}

#[test]
fn a_request_has_the_same_fingerprint_in_every_process_for_ever() {
    let request =
        request(plan_of(rich()), 2, &[("team", "ops"), ("env", "prod")], Some(Millis::from_hours(1)));
    assert_eq!(
        request.fingerprint().as_str(),
        "v1:sha256:16c29deed4c525f3eea83d527a454c2cda604892e1ef1cd570e98bf3ef9f13d5"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_tasks_and_of_upstreams_does_not_matter(
        order in Just((0..8usize).collect::<Vec<_>>()).prop_shuffle(),
        flip in any::<bool>(),
    ) {
        let all: Vec<TaskRequest> = (0..8)
            .map(|i| {
                let mut upstream: Vec<String> = (0..i).filter(|j| (i + j) % 2 == 0).map(|j| format!("n{j}")).collect();
                if flip {
                    upstream.reverse();
                }
                let upstream: Vec<&str> = upstream.iter().map(String::as_str).collect();
                task(&format!("n{i}"), &upstream, TaskOptions::default())
            })
            .collect();
        let shuffled: Vec<TaskRequest> = order.iter().map(|i| all[*i].clone()).collect();
        let (first, second) = (plan_of(all), plan_of(shuffled));
        prop_assert_eq!(&first, &second);
        prop_assert_eq!(first.fingerprint(), second.fingerprint());
    }
}

#[test]
fn naming_an_upstream_twice_is_naming_it_once() {
    let twice =
        plan_of(vec![task("a", &[], TaskOptions::default()), task("b", &["a", "a"], TaskOptions::default())]);
    let once =
        plan_of(vec![task("a", &[], TaskOptions::default()), task("b", &["a"], TaskOptions::default())]);
    assert_eq!(twice, once);
}

#[test]
fn every_part_of_a_plan_changes_its_fingerprint() {
    let base = plan_of(rich()).fingerprint().clone();
    let changes: Vec<fn(&mut Vec<TaskRequest>)> = vec![
        |tasks| tasks[0].options.priority = 4,
        |tasks| tasks[0].options.retry = None,
        |tasks| tasks[0].options.timeout_ms = None,
        |tasks| tasks[0].options.heartbeat_timeout_ms = None,
        |tasks| tasks[0].options.worker_queue = None,
        |tasks| tasks[2].upstream.truncate(1),
        |tasks| tasks[2].key = key("other"),
        |tasks| tasks.truncate(2),
    ];
    for (i, change) in changes.iter().enumerate() {
        let mut tasks = rich();
        change(&mut tasks);
        assert_ne!(*plan_of(tasks).fingerprint(), base, "change {i}");
    }
    for (tenant, workspace) in [("other", "prod"), ("acme", "other")] {
        let tenant = TenantId::parse(tenant).expect("a tenant");
        let workspace = WorkspaceId::parse(workspace).expect("a workspace");
        let elsewhere = Plan::build(&tenant, &workspace, rich(), 10).expect("a plan");
        assert_ne!(*elsewhere.fingerprint(), base);
    }
}

#[test]
fn a_request_is_its_plan_priority_labels_and_limit_and_not_who_asked() {
    let base = request(plan_of(rich()), 0, &[("a", "1"), ("b", "2")], None);
    let reordered = request(plan_of(rich()), 0, &[("b", "2"), ("a", "1")], None);
    assert_eq!(base.fingerprint(), reordered.fingerprint());
    let by_another = TriggerRun::of_tasks(
        "another key",
        plan_of(rich()),
        RunRequest {
            source: RunSource::Api,
            caller: Caller { request_id: Some("1".into()), ..Caller::user("somebody else") },
            ..base.request.clone()
        },
    );
    assert_eq!(base.fingerprint(), by_another.fingerprint());
    for other in [
        request(plan_of(rich()), 1, &[("a", "1"), ("b", "2")], None),
        request(plan_of(rich()), 0, &[("a", "1")], None),
        request(plan_of(rich()), 0, &[("a", "1"), ("b", "3")], None),
        request(plan_of(rich()), 0, &[("a", "1"), ("b", "2")], Some(Millis::from_secs(1))),
        request(plan_of(rich()[..2].to_vec()), 0, &[("a", "1"), ("b", "2")], None),
    ] {
        assert_ne!(base.fingerprint(), other.fingerprint());
    }
}

#[test]
fn a_plan_is_sorted_by_key_and_its_edges_are_positions() {
    let plan = plan_of(rich());
    let keys: Vec<_> = plan.tasks().iter().map(|spec| spec.task_key.clone()).collect();
    assert_eq!(keys, [key("clean"), key("extract"), key("report")]);
    let upstream: Vec<_> = plan.tasks().iter().map(|spec| spec.upstream.clone()).collect();
    assert_eq!(upstream, [vec![1], vec![], vec![0, 1]]);
}

#[test]
fn an_empty_plan_is_refused() {
    let error = build(vec![]).expect_err("nothing to do");
    assert_eq!(error, PlanError::Empty);
    assert_eq!(error.to_string(), "the plan has no tasks; select at least one");
}

#[test]
fn too_many_tasks_are_refused_with_the_figures() {
    let error = Plan::build(&tenant(), &workspace(), rich(), 2).expect_err("three of two");
    assert_eq!(error, PlanError::TooManyTasks { count: 3, limit: 2 });
    let text = error.to_string();
    assert!(text.contains("3 tasks") && text.contains("may have 2"), "{text}");
    assert!(Plan::build(&tenant(), &workspace(), rich(), 3).is_ok(), "the limit itself is allowed");
}

#[test]
fn a_task_named_twice_is_refused() {
    let twice = vec![task("a", &[], TaskOptions::default()), task("a", &[], TaskOptions::default())];
    let error = build(twice).expect_err("twice");
    assert_eq!(error, PlanError::Duplicate { task: key("a") });
    assert_eq!(error.to_string(), "task t/a:materialize is in the plan twice");
}

#[test]
fn an_upstream_that_is_not_in_the_plan_is_refused() {
    let error = build(vec![task("a", &["ghost"], TaskOptions::default())]).expect_err("no ghost");
    assert_eq!(error, PlanError::UnknownUpstream { task: key("a"), upstream: key("ghost") });
    assert_eq!(
        error.to_string(),
        "task t/a:materialize waits for t/ghost:materialize, which is not in the plan"
    );
}

#[test]
fn a_cycle_is_shown_all_the_way_round() {
    let none = TaskOptions::default;
    let error = build(vec![
        task("lead_in", &[], none()),
        task("a", &["lead_in", "c"], none()),
        task("b", &["a"], none()),
        task("c", &["b"], none()),
        task("behind", &["c"], none()),
    ])
    .expect_err("a cycle");
    let PlanError::Cycle { cycle } = &error else { panic!("{error}") };
    assert_eq!(cycle.len(), 4, "the three tasks of the cycle and nothing else");
    assert_eq!(cycle.first(), cycle.last());
    // Each waits for the one before it, so the arrows are the way the data would flow.
    for pair in cycle.windows(2) {
        let edges = [("a", "b"), ("b", "c"), ("c", "a")];
        assert!(edges.iter().any(|(from, to)| pair == [key(from), key(to)]), "{pair:?}");
    }
    assert_eq!(error.to_string().matches(" → ").count(), 3);
    let own = build(vec![task("a", &["a"], none())]).expect_err("waits for itself");
    assert_eq!(own, PlanError::Cycle { cycle: vec![key("a"), key("a")] });
}

#[test]
fn a_chain_of_ten_thousand_tasks_is_a_plan() {
    let names: Vec<String> = (0..10_000).map(|i| format!("n{i:05}")).collect();
    let tasks = (0..names.len())
        .map(|i| {
            let upstream = if i == 0 { vec![] } else { vec![names[i - 1].as_str()] };
            task(&names[i], &upstream, TaskOptions::default())
        })
        .collect();
    assert_eq!(plan_of(tasks).tasks().len(), 10_000);
}
