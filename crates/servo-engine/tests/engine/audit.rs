//! The audit: every change that somebody asks for leaves a row, allowed or refused (ADR-092).

use servo_core::RunId;
use servo_engine::event::EventKind;
use servo_engine::rows::AuditRow;
use servo_engine::{
    AuditOutcome, Caller, CancelRun, ChangePartitions, DenyRequest, EventData, Input, Principal, RunRequest,
    RunSource, Settings, State, TriggerRun,
};

use crate::support;
use crate::support::{World, empty_state, plan, workspace};

fn caller(who: &str, request: &str) -> Caller {
    Caller {
        principal: Principal::user(who.to_owned()),
        request_id: Some(request.into()),
        request_fingerprint: None,
    }
}

fn cancel(run_id: RunId, request: &str) -> Input {
    Input::Cancel(CancelRun {
        run_id,
        caller: caller("zoë", request),
        reason: "wrong day".to_owned(),
        force: false,
    })
}

fn rows(world: &mut World) -> Vec<AuditRow> {
    world.engine.state_mut().take_delta().appended.audit
}

fn told(row: &AuditRow) -> (String, &str, &str, Option<&str>) {
    (row.principal.to_string(), row.action.as_str(), row.outcome.name(), row.request_id.as_deref())
}

#[test]
fn who_asked_for_a_run_and_who_stopped_it_is_recorded() {
    let mut world = World::new(Settings::default());
    let request =
        RunRequest { caller: caller("ann", "r1"), selection: "t.a".into(), ..RunRequest::default() };
    let run = world.trigger(TriggerRun::of_tasks("first", plan(&[("a", &[])]), request));
    world.ask(cancel(run, "r2")).expect("cancelled");
    let found = rows(&mut world);
    let expected = [
        ("user:ann".to_owned(), "run.trigger", "ALLOWED", Some("r1")),
        ("user:zoë".to_owned(), "run.cancel", "ALLOWED", Some("r2")),
    ];
    assert_eq!(found.iter().map(told).collect::<Vec<_>>(), expected);
    assert_eq!((found[0].subject.as_str(), found[0].run_id), (run.to_string().as_str(), Some(run)));
    assert_eq!((found[0].detail.as_deref(), found[1].detail.as_deref()), (Some("t.a"), Some("wrong day")));
}

#[test]
fn a_retry_is_an_act_of_its_own_kind() {
    let mut world = World::new(Settings::default());
    let source = RunSource::Retry { of: RunId::from_u128(1), from_failure: true };
    let request = RunRequest { source, ..RunRequest::default() };
    world.trigger(TriggerRun::of_tasks("again", plan(&[("a", &[])]), request));
    assert_eq!(rows(&mut world)[0].action, "run.retry");
}

#[test]
fn a_refused_request_is_recorded_with_the_reason() {
    let mut world = World::with(plan(&[("a", &[])]));
    let nowhere = RunId::from_u128(7);
    assert!(world.ask(cancel(nowhere, "r3")).is_err());
    let found = rows(&mut world);
    let refused = found.last().expect("a row");
    assert_eq!(told(refused), ("user:zoë".to_owned(), "run.cancel", "REFUSED", Some("r3")));
    assert_eq!(refused.refusal.as_deref(), Some("unknown_run"));
    assert!(refused.message.as_ref().is_some_and(|message| message.contains("there is no run")));
}

#[test]
fn a_run_key_that_was_used_for_something_else_is_recorded_as_refused() {
    let mut world = World::with(plan(&[("a", &[])]));
    let again = Input::Trigger(TriggerRun::new("first", plan(&[("b", &[])]), "eve"));
    assert!(world.ask(again.clone()).is_err());
    world.wait(1);
    assert!(world.ask(again).is_err());
    let found = rows(&mut world);
    let refused: Vec<_> = found.iter().filter(|row| row.outcome == AuditOutcome::Refused).collect();
    assert_eq!(refused.len(), 2);
    assert!(refused.iter().all(|row| row.refusal.as_deref() == Some("run_key_conflict")));
}

#[test]
fn what_was_so_already_and_what_workers_report_is_no_act() {
    let mut world = World::with(plan(&[("a", &[])]));
    let _repeat = world.ask(Input::Trigger(TriggerRun::new("first", plan(&[("a", &[])]), "me")));
    let change = ChangePartitions {
        name: "customers".to_owned(),
        add: vec!["acme".to_owned()],
        remove: vec![],
        caller: Caller::user("me"),
    };
    world.ask(Input::ChangePartitions(change.clone())).expect("added");
    world.ask(Input::ChangePartitions(change)).expect("so already");
    world.succeed("a");
    assert!(world.start("a").is_err(), "an attempt that has ended");
    let actions: Vec<String> = rows(&mut world).into_iter().map(|row| row.action).collect();
    assert_eq!(actions, ["run.trigger", "partitions.change"]);
}

#[test]
fn a_flood_of_refused_requests_does_not_fill_the_log() {
    let mut world = World::with(plan(&[("a", &[])]));
    for second in 0..100 {
        for number in 0..50u128 {
            let _refused = world.ask(cancel(RunId::from_u128(second * 100 + number), "flood"));
        }
        world.wait(1);
    }
    let recorded: Vec<u64> = world
        .events()
        .into_iter()
        .filter_map(
            |event| if let EventData::RequestRefused(data) = event.data { Some(data.omitted) } else { None },
        )
        .collect();
    assert!((60..=165).contains(&recorded.len()), "{}", recorded.len());
    let omitted: u64 = recorded.iter().sum();
    assert!(recorded.len() as u64 + omitted > 4_900, "those that are not recorded are counted: {omitted}");
    world.wait(3_600);
    assert!(world.ask(cancel(RunId::from_u128(1), "late")).is_err());
    assert_eq!(rows(&mut world).last().and_then(|row| row.request_id.clone()).as_deref(), Some("late"));
}

#[test]
fn replay_gives_the_same_rows_and_a_second_copy_of_an_event_none() {
    let mut world = World::with(plan(&[("a", &[])]));
    let _refused = world.ask(cancel(RunId::from_u128(9), "r"));
    let run = world.run;
    world.ask(cancel(run, "r2")).expect("cancelled");
    let events = world.events();
    let fold = |copies: usize| {
        let mut state: State = empty_state(&Settings::default());
        for event in &events {
            (0..copies).for_each(|_| {
                state.apply(event);
            });
        }
        state.take_delta().appended.audit
    };
    let found = rows(&mut world);
    assert_eq!((fold(1), fold(2)), (found.clone(), found));
    assert!(events.iter().any(|event| event.data.kind() == EventKind::RequestRefused));
    assert_eq!(events[0].workspace, workspace());
}

#[test]
fn what_is_only_supposed_is_no_act() {
    let mut state = empty_state(&Settings::default());
    state.suppose(&[support::event(support::deployed(1), support::START, 1)]);
    assert!(state.deployment().is_some());
    assert_eq!(state.unwritten_audit().count(), 0);
}

#[test]
fn whoever_has_not_the_permission_is_recorded_with_what_was_asked_for() {
    let mut world = World::new(Settings::default());
    let (permission, role) = ("runs.trigger", "operator");
    let denied = DenyRequest {
        permission,
        role,
        subject: "POST /api/v1/runs".to_owned(),
        caller: caller("eve", "r1"),
    };
    let refused = world.ask(Input::Deny(denied)).expect_err("denied");
    assert_eq!(refused.to_string(), "this needs the permission runs.trigger, which the role operator has");
    let found = rows(&mut world);
    assert_eq!(
        found.iter().map(told).collect::<Vec<_>>(),
        [("user:eve".to_owned(), permission, "REFUSED", Some("r1"))]
    );
    assert_eq!(found[0].subject, "POST /api/v1/runs");
}
