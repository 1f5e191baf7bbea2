//! Plans in which thousands of tasks wait for thousands: as many entries as tasks, not as pairs.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use servo_core::partitions::PartitionContext;
use servo_core::selection::Selection;
use servo_core::{AssetKey, MaterializationId, PartitionKey, TenantId, Timestamp, WorkspaceId};
use servo_engine::definitions::{Definitions, Manifest};
use servo_engine::planner::{
    Materializations, PartitionChoice, PlanContext, PlanRequest, Planned, PlanningError, plan,
};
use servo_engine::{Engine, Input, Report, RunState, State, TriggerRun};

struct Nothing;

impl Materializations for Nothing {
    fn of<'s>(
        &'s self,
        _: &AssetKey,
    ) -> Box<dyn Iterator<Item = (Option<PartitionKey>, MaterializationId)> + 's> {
        Box::new(std::iter::empty())
    }
}

fn partitions(count: usize) -> Value {
    let keys: Vec<String> = (0..count).map(|number| format!("k{number:04}")).collect();
    json!({ "kind": "static", "keys": keys })
}

fn asset(key: &str, partitions: &Value, deps: Value) -> Value {
    json!({
        "key": key,
        "location": { "file": "assets.py", "line": 1 },
        "function": format!("assets:{}", key.replace('/', "_")),
        "partitions": partitions,
        "deps": deps,
    })
}

fn planned(assets: &[Value], max_tasks: u32) -> Result<Planned, PlanningError> {
    let manifest: Manifest =
        serde_json::from_value(json!({ "manifest_version": 1, "project": "wide", "assets": assets }))
            .unwrap();
    let definitions = Definitions::check(manifest).unwrap_or_else(|problems| panic!("{problems}"));
    let request = PlanRequest {
        selection: Selection::parse("*").unwrap(),
        operation: servo_core::Operation::Materialize,
        partitions: PartitionChoice { missing: true, ..PartitionChoice::default() },
        config: BTreeMap::new(),
        no_retry: false,
    };
    let (tenant, workspace) = names();
    let context = PlanContext {
        tenant: &tenant,
        workspace: &workspace,
        at: PartitionContext::from(Timestamp::MAX),
        materializations: &Nothing,
        max_tasks,
    };
    plan(&definitions, &request, &context)
}

fn names() -> (TenantId, WorkspaceId) {
    (TenantId::parse("acme").unwrap(), WorkspaceId::parse("prod").unwrap())
}

#[test]
fn thousands_that_wait_for_thousands_are_one_set() {
    let many = partitions(3_000);
    let all = json!([{ "asset": "w/a", "parameter": "a", "mapping": { "kind": "all" } }]);
    let planned = planned(&[asset("w/a", &many, json!([])), asset("w/b", &many, all)], 10_000).unwrap();
    assert_eq!((planned.tasks.len(), planned.stages), (6_000, 2));
    assert!(planned.plan.tasks().iter().all(|task| task.upstream.is_empty()));
    let [set] = &planned.plan.sets()[..] else { panic!("{:?}", planned.plan.sets()) };
    assert_eq!((set.upstream.len(), set.downstream.len(), set.edges()), (3_000, 3_000, 9_000_000));
    assert!(planned.tasks[3_000..].iter().all(|task| task.stage == 1 && task.inputs[0].in_run == 3_000));
    let text = serde_json::to_string(&planned.plan.sets()[..]).unwrap();
    assert_eq!(
        text, r#"[{"upstream":[[0,3000]],"downstream":[[3000,6000]]}]"#,
        "as short as that in the log"
    );

    // The run itself: all of the first succeed, then all of the second are ready.
    let (tenant, workspace) = names();
    let mut engine = Engine::new(State::new(tenant, workspace), *b"secret");
    let now = Timestamp::from_millis(1_736_899_200_000);
    engine.step(&[Input::Trigger(TriggerRun::new("k", planned.plan, "me"))], now);
    let run = engine.state().runs().next().unwrap().id;
    let mut ended = 0;
    while engine.state().run(run).unwrap().state != RunState::Succeeded {
        let dispatched: Vec<_> = servo_engine::effect::outstanding(engine.state());
        assert!(!dispatched.is_empty());
        let reports: Vec<Input> = dispatched
            .into_iter()
            .flat_map(|dispatch| {
                let attempt = dispatch.attempt;
                [Input::Started(attempt.clone(), "w".into()), Input::Finished(attempt, Report::succeeded())]
            })
            .collect();
        ended += reports.len() / 2;
        engine.step(&reports, now);
    }
    assert_eq!(ended, 6_000);
    let run = engine.state().run(run).unwrap();
    assert_eq!((run.edges.len(), run.sets.len()), (0, 1));
    assert!(run.tasks.iter().skip(3_000).all(|task| task.deps_satisfied == 3_000));
}

#[test]
fn a_dependency_that_a_set_stands_for_is_no_edge_of_its_own() {
    let some = partitions(20);
    let both = json!([
        { "asset": "w/a", "parameter": "a", "mapping": { "kind": "all" } },
        { "asset": "w/a", "parameter": "same" },
    ]);
    let planned = planned(&[asset("w/a", &some, json!([])), asset("w/b", &some, both)], 100).unwrap();
    assert_eq!(planned.plan.sets().len(), 1);
    assert!(planned.plan.tasks().iter().all(|task| task.upstream.is_empty()));
}

#[test]
fn few_tasks_have_edges_between_pairs() {
    let few = partitions(3);
    let all = json!([{ "asset": "w/a", "parameter": "a", "mapping": { "kind": "all" } }]);
    let planned = planned(&[asset("w/a", &few, json!([])), asset("w/b", &few, all)], 100).unwrap();
    assert!(planned.plan.sets().is_empty());
    assert_eq!(planned.plan.tasks()[4].upstream, [0, 1, 2]);
}
