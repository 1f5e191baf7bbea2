//! Notifications: told once, tried again, given up, left out when there are too many, and told when all is well again.

use std::sync::Arc;

use servo_core::{RuleId, Timestamp};
use servo_engine::controllers::notifications::{self, Notifying};
use servo_engine::definitions::{AssetDef, CheckKind, NotificationDef, Severity};
use servo_engine::notification::{Delivery, MAX_ATTEMPTS, Notified, SendFailure};
use servo_engine::outputs::{CheckReport, OutputReport};
use servo_engine::rows::NotificationRow;
use servo_engine::{
    AutomationStatus, Caller, Change, ChangeNotification, ChangeSettings, Deploy, Effect, EventData, Input,
    NotificationChange, NotificationStatus, NotificationTrigger, Outcome, OutputState, Refusal, Reply,
    Report, SendTest, SettingOrigin, SettingValue, Settings, State, TriggerRun, effect,
};

use crate::support;
use crate::support::{World, definition, ended_as, plan, tenant, user_error, workspace};

fn rule_of(text: &str) -> NotificationDef {
    let whole = format!(r#"{{"name":"oncall","location":{{"file":"jobs.py","line":3}},{text}}}"#);
    serde_json::from_str(&whole).expect("a notification rule")
}

/// A rule that is created over the API: to a webhook.
fn rule(when: &str, more: &str) -> NotificationDef {
    rule_of(&format!(r#""when":[{when}],"to":[{{"type":"webhook","url":"https://example.org/hook"}}]{more}"#))
}

fn deploy(digest: &str, rules: Vec<NotificationDef>) -> Input {
    let owned =
        AssetDef { owners: vec!["ops@example.org".to_owned()], ..AssetDef::clone(&definition("a", "1")) };
    Input::Deploy(Deploy {
        time_zones: "2026e".into(),
        digest: digest.into(),
        project: "shop".to_owned(),
        assets: vec![Arc::new(owned), definition("b", "1"), definition("c", "1")],
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: rules.into_iter().map(Arc::new).collect(),
        caller: Caller::user("me"),
    })
}

/// A workspace with a rule that code declares.
fn world(rule: NotificationDef) -> World {
    let mut world = World::new(Settings::default());
    world.engine.set_notifying(Notifying::Everything);
    world.ask(deploy("d1", vec![rule])).expect("deployed");
    world
}

fn run(world: &mut World, key: &str, tasks: &[&str]) {
    let tasks: Vec<(&str, &[&str])> = tasks.iter().map(|task| (*task, &[][..])).collect();
    world.trigger(TriggerRun::new(key, plan(&tasks), "me"));
}

/// The sends requested since the last call.
fn asked(world: &mut World) -> Vec<Delivery> {
    let effects = std::mem::take(&mut world.effects).into_iter();
    effects
        .filter_map(|effect| if let Effect::Notify(delivery) = effect { Some(*delivery) } else { None })
        .collect()
}

fn rows(world: &World) -> Vec<NotificationRow> {
    let mut rows: Vec<_> = world.state().recent_notifications().into_iter().cloned().collect();
    rows.sort_by_key(|row| row.created_event_id);
    rows
}

fn answer(world: &mut World, delivery: &Delivery, failure: Option<(&str, bool)>) {
    let failure = failure.map(|(message, retry)| SendFailure { message: message.to_owned(), retry });
    let (notification_id, attempt) = (delivery.notification_id.clone(), delivery.attempt);
    world.step(&[Input::Notified(Notified { notification_id, attempt, failure })]);
}

fn change(change: NotificationChange) -> Input {
    let (name, caller) = ("oncall".to_owned(), Caller::user("me"));
    Input::ChangeNotification(ChangeNotification { name, expected_state_version: None, change, caller })
}

/// State and history are the same after a restart from rows, and after a replay of the log.
fn survives(world: &World) {
    let state = world.state();
    let restored = State::from_rows(tenant(), workspace(), state.rows()).expect("its own rows fit");
    assert_eq!(restored.rows(), state.rows());
    let replayed = support::fold(&Settings::default(), &world.events());
    assert_eq!(replayed.rows().notifications, state.rows().notifications);
    assert_eq!(replayed.rows().notification_rules, state.rows().notification_rules);
    let now = world.now;
    assert_eq!(
        notifications::reconcile(&restored, Notifying::Everything, now),
        notifications::reconcile(state, Notifying::Everything, now)
    );
    assert!(
        notifications::reconcile(state, Notifying::Everything, now).is_empty(),
        "a second look adds nothing"
    );
}

#[test]
fn a_failed_run_is_told_once_with_its_asset_its_owner_and_its_error() {
    let mut world = world(rule(r#""run_failed""#, ""));
    run(&mut world, "r1", &["a", "b"]);
    world.play("a", user_error());
    assert!(asked(&mut world).is_empty(), "the run goes on");
    world.succeed("b");
    let told = asked(&mut world);
    assert_eq!(told.len(), 1);
    let facts = &told[0].facts;
    assert_eq!((facts.run_id, facts.assets.as_slice()), (Some(world.run), &["t.a".to_owned()][..]));
    assert_eq!(facts.owners, ["ops@example.org"]);
    assert!(facts.error.as_deref().is_some_and(|error| error.contains("boom")), "{facts:?}");
    assert_eq!((told[0].attempt, told[0].trigger), (1, NotificationTrigger::RunFailed));
    survives(&world);
    // After a crash it is asked for again: nobody knows whether it was sent.
    let again = effect::unfinished(world.state());
    assert!(again.iter().any(|effect| matches!(effect, Effect::Notify(it) if **it == told[0])));
    answer(&mut world, &told[0], None);
    assert_eq!(rows(&world)[0].status, NotificationStatus::Sent);
    assert!(rows(&world)[0].finished_at.is_some());
    // A second answer changes nothing.
    let events = world.events().len();
    answer(&mut world, &told[0], Some(("late", true)));
    assert_eq!(world.events().len(), events);
    survives(&world);
}

#[test]
fn a_try_that_fails_is_made_again_later_each_time_and_given_up_in_the_end() {
    let mut world = world(rule(r#""run_failed""#, ""));
    run(&mut world, "r1", &["a"]);
    world.play("a", user_error());
    let mut waits = Vec::new();
    for attempt in 1..=MAX_ATTEMPTS {
        let told = asked(&mut world);
        assert_eq!(told.iter().map(|it| it.attempt).collect::<Vec<_>>(), [attempt]);
        answer(&mut world, &told[0], Some(("the webhook answered 503", true)));
        survives(&world);
        let row = &rows(&world)[0];
        assert_eq!(row.last_error.as_deref(), Some("the webhook answered 503"));
        let Some(next) = row.next_attempt_at else { break };
        assert!(asked(&mut world).is_empty(), "not before its time");
        waits.push(next.since(world.now).get());
        assert_eq!(world.engine.next_deadline(world.now), Some(next));
        world.now = next;
        world.step(&[]);
    }
    assert!(waits.is_sorted() && waits.len() == MAX_ATTEMPTS as usize - 1, "{waits:?}");
    assert_eq!(rows(&world)[0].status, NotificationStatus::Failed);
    let rule = world.state().notification_rule("oncall").expect("the rule");
    assert_eq!(rule.status(), AutomationStatus::Error);
    // What another try would not mend is not tried again.
    run(&mut world, "r2", &["b"]);
    world.play("b", user_error());
    let told = asked(&mut world);
    answer(&mut world, &told[0], Some(("the webhook answered 404", false)));
    assert_eq!(rows(&world)[1].status, NotificationStatus::Failed);
}

#[test]
fn what_is_well_again_is_told_to_those_who_were_told_of_it_and_want_to_know() {
    let mut world = world(rule(r#""retries_exhausted","recovered""#, ""));
    run(&mut world, "r1", &["a", "b"]);
    world.play("a", user_error());
    let told = asked(&mut world);
    assert_eq!(told.len(), 1, "at once, while the run goes on");
    world.succeed("b");
    assert!(asked(&mut world).is_empty(), "b was never told of");
    run(&mut world, "r2", &["a"]);
    world.succeed("a");
    let told = asked(&mut world);
    assert_eq!(told[0].trigger, NotificationTrigger::Recovered);
    assert_eq!((told[0].facts.assets.as_slice(), told[0].facts.owners.len()), (&["t.a".to_owned()][..], 1));
    run(&mut world, "r3", &["a"]);
    world.succeed("a");
    assert!(asked(&mut world).is_empty(), "it is told once");
    survives(&world);
}

#[test]
fn a_rule_tells_of_the_assets_that_it_selects() {
    let mut world = world(rule(r#""run_failed""#, r#","selection":"t.b""#));
    run(&mut world, "r1", &["a"]);
    world.play("a", user_error());
    assert!(asked(&mut world).is_empty());
    run(&mut world, "r2", &["a", "b"]);
    world.play("a", user_error());
    world.play("b", user_error());
    let told = asked(&mut world);
    assert_eq!(told[0].facts.assets, ["t.b"]);
}

#[test]
fn cancelled_runs_are_not_told_and_those_that_take_too_long_are() {
    let mut world = world(rule(r#""run_failed""#, ""));
    run(&mut world, "r1", &["a"]);
    world.start("a").expect("it starts");
    world.cancel(false).expect("cancelled");
    world.finish("a", ended_as(Outcome::Cancelled)).expect("it ends");
    assert!(asked(&mut world).is_empty());
}

#[test]
fn failed_checks_are_told_by_what_they_do_and_told_when_they_pass_again() {
    let mut world = world(rule(r#""check_failed","check_blocked","recovered""#, ""));
    let report = |passed: bool, severity: Severity| {
        let check = CheckReport {
            name: "enough".to_owned(),
            kind: CheckKind::RowCount,
            passed,
            severity,
            blocking: None,
            message: Some("3 rows, at least 5 are wanted".to_owned()),
            error: None,
            metadata: Default::default(),
            duration_ms: 1,
        };
        let asset = "t.a".parse().expect("an asset");
        let output = OutputReport { checks: vec![check], ..OutputReport::new(asset, OutputState::Committed) };
        Report { outputs: [output].into(), ..Report::succeeded() }
    };
    run(&mut world, "r1", &["a"]);
    world.play("a", report(false, Severity::Error));
    let told = asked(&mut world);
    assert_eq!((told.len(), told[0].trigger), (1, NotificationTrigger::CheckFailed));
    assert_eq!(told[0].facts.check.as_deref(), Some("enough"));
    assert_eq!(told[0].facts.error.as_deref(), Some("3 rows, at least 5 are wanted"));
    run(&mut world, "r2", &["a"]);
    world.play("a", report(true, Severity::Error));
    let told = asked(&mut world);
    assert_eq!((told.len(), told[0].trigger), (1, NotificationTrigger::Recovered));
    run(&mut world, "r3", &["a"]);
    world.play("a", report(false, Severity::Critical));
    let told = asked(&mut world);
    assert_eq!((told.len(), told[0].trigger), (1, NotificationTrigger::CheckBlocked));
    survives(&world);
}

#[test]
fn what_is_too_much_for_an_hour_is_left_out_and_counted() {
    let mut world = world(rule(r#""run_failed""#, r#","max_per_hour":2"#));
    for number in 0..5 {
        run(&mut world, &format!("r{number}"), &["a"]);
        world.play("a", user_error());
    }
    assert_eq!(asked(&mut world).len(), 2);
    assert_eq!(world.state().notification_rule("oncall").expect("the rule").left_out, 3);
    world.now = Timestamp::from_millis(world.now.as_millis() + 3_600_000);
    run(&mut world, "later", &["a"]);
    world.play("a", user_error());
    let told = asked(&mut world);
    assert_eq!((told.len(), told[0].facts.left_out), (1, 3));
    survives(&world);
}

#[test]
fn a_test_goes_to_every_destination_and_is_tried_once() {
    let two = r#""when":["run_failed"],"to":[{"type":"webhook","url":"https://example.org/1"},
        {"type":"email","host":"smtp.example.org","from":"a@example.org","to":["b@example.org"]}]"#;
    let mut world = world(rule_of(two));
    world.engine.set_notifying(Notifying::Tests);
    run(&mut world, "r1", &["a"]);
    world.play("a", user_error());
    assert!(
        asked(&mut world).is_empty(),
        "a command that has the workspace for a moment leaves it to others"
    );
    world.ask(change(NotificationChange::Own(SendTest))).expect("accepted");
    let told = asked(&mut world);
    assert_eq!(told.iter().map(|it| it.destination).collect::<Vec<_>>(), [0, 1]);
    assert!(told.iter().all(|it| it.trigger == NotificationTrigger::Test));
    answer(&mut world, &told[0], Some(("no", true)));
    let tests = rows(&world).into_iter().filter(|row| row.trigger == NotificationTrigger::Test);
    let states: Vec<_> = tests.map(|row| row.status).collect();
    assert!(states.contains(&NotificationStatus::Failed), "{states:?}");
    // Whoever stays sends the rest.
    world.engine.set_notifying(Notifying::Everything);
    world.step(&[]);
    assert_eq!(asked(&mut world).len(), 2);
}

#[test]
fn a_paused_rule_tells_nothing_and_what_waits_is_dropped() {
    let mut world = world(rule(r#""run_failed""#, ""));
    run(&mut world, "r1", &["a"]);
    world.play("a", user_error());
    let told = asked(&mut world);
    answer(&mut world, &told[0], Some(("no", true)));
    world.ask(change(NotificationChange::Pause)).expect("paused");
    assert_eq!(world.ask(change(NotificationChange::Pause)), Ok(Reply::Change(Change::Duplicate)));
    run(&mut world, "r2", &["a"]);
    world.play("a", user_error());
    world.pass(3_600);
    assert!(asked(&mut world).is_empty());
    let row = &rows(&world)[0];
    assert_eq!(
        (row.status, row.last_error.as_deref()),
        (NotificationStatus::Dropped, Some("its rule is paused"))
    );
    world.ask(change(NotificationChange::Resume)).expect("resumed");
    run(&mut world, "r3", &["a"]);
    world.play("a", user_error());
    assert_eq!(asked(&mut world).len(), 1);
    survives(&world);
}

#[test]
fn a_queue_without_a_worker_is_told_after_a_while_and_when_it_has_one_again() {
    let mut world = world(rule(r#""queue_without_worker","recovered""#, ""));
    let set = [("push_limit".to_owned(), SettingValue::Text("0".to_owned()))].into();
    world
        .ask(Input::ChangeSettings(ChangeSettings {
            set,
            unset: Vec::new(),
            origin: SettingOrigin::Api,
            caller: Caller::user("me"),
        }))
        .expect("changed");
    run(&mut world, "r1", &["a"]);
    assert!(asked(&mut world).is_empty(), "not at once");
    let due = world.engine.next_deadline(world.now).expect("a deadline");
    world.now = due;
    world.step(&[]);
    let told = asked(&mut world);
    assert_eq!((told.len(), told[0].trigger), (1, NotificationTrigger::QueueWithoutWorker));
    assert_eq!(told[0].facts.queue.as_deref(), Some("default"));
    world.pass(600);
    assert!(asked(&mut world).is_empty(), "once");
    survives(&world);
    world.cancel(false).expect("cancelled");
    let told = asked(&mut world);
    assert_eq!((told.len(), told[0].trigger), (1, NotificationTrigger::Recovered));
    survives(&world);
}

#[test]
fn rules_over_the_api_run_no_programs_and_read_no_secrets_of_others() {
    let mut world = world(rule(r#""run_failed""#, ""));
    let create = |text: &str| {
        let definition = NotificationDef { name: "mine".into(), ..rule_of(text) };
        change(NotificationChange::Create(Arc::new(definition)))
    };
    let command = r#""when":["run_failed"],"to":[{"type":"command","command":["true"]}]"#;
    let secret = |path: &str| {
        format!(
            r#""when":["run_failed"],"to":[{{"type":"slack","url":{{"name":"url","provider":"env","path":"{path}"}}}}]"#
        )
    };
    let refused = |answer: Result<Reply, Refusal>| match answer {
        Err(Refusal::BadDefinition { problem, .. }) => problem,
        other => panic!("{other:?}"),
    };
    assert!(refused(world.ask(create(command))).contains("belongs into a project"));
    assert!(refused(world.ask(create(&secret("AWS_SECRET_ACCESS_KEY")))).contains("SERVO_NOTIFY_"));
    let hidden = r#""when":["run_failed"],"to":[{"type":"webhook","url":"https://example.org",
        "json":{"a":[{"$secret":{"provider":"env","path":"HOME"}}]}}]"#;
    assert!(refused(world.ask(create(hidden))).contains("SERVO_NOTIFY_"));
    world.ask(create(&secret("SERVO_NOTIFY_SLACK"))).expect("created");
    let again = world.ask(create(&secret("SERVO_NOTIFY_SLACK")));
    assert!(matches!(again, Err(Refusal::NameTaken { .. })), "{again:?}");
    // What code declares is changed by code, and a name belongs to one of them.
    let of_code = world.ask(change(NotificationChange::Remove));
    assert!(matches!(of_code, Err(Refusal::DefinedByCode { .. })), "{of_code:?}");
    let mine = NotificationDef { name: "mine".into(), ..rule(r#""run_failed""#, "") };
    let taken = world.ask(deploy("d2", vec![mine]));
    assert!(matches!(taken, Err(Refusal::NameTaken { .. })), "{taken:?}");
    // Deploying removes what code no longer declares, and keeps what others have created.
    world.ask(deploy("d3", Vec::new())).expect("deployed");
    let names: Vec<String> = world.state().notification_rules().map(|rule| rule.name.to_string()).collect();
    assert_eq!(names, ["mine"]);
}

#[test]
fn definitions_that_make_no_sense_are_refused_with_what_to_do() {
    let mut world = world(rule(r#""run_failed""#, ""));
    let bad = [
        (r#""when":[],"to":[{"type":"webhook","url":"https://a"}]"#, "never sent"),
        (r#""when":["recovered"],"to":[{"type":"webhook","url":"https://a"}]"#, "recoveries of nothing"),
        (r#""when":["test"],"to":[{"type":"webhook","url":"https://a"}]"#, "waits for a test"),
        (r#""when":["run_failed"],"to":[]"#, "0 destinations"),
        (r#""when":["run_failed"],"to":[{"type":"webhook","url":"ftp://a"}]"#, "neither of http"),
        (r#""when":["run_failed"],"to":[{"type":"webhook","url":"https://me:secret@a"}]"#, "has a password"),
        (
            r#""when":["run_failed"],"to":[{"type":"webhook","url":"https://a","headers":{"A B":"c"}}]"#,
            "no header",
        ),
        (
            r#""when":["run_failed"],"to":[{"type":"email","host":"h","from":"a@b","to":["c@d\r\nBcc: e@f"]}]"#,
            "no address",
        ),
        (
            r#""when":["run_failed"],"title":"{password}","to":[{"type":"webhook","url":"https://a"}]"#,
            "{password}",
        ),
        (
            r#""when":["run_failed"],"selection":"t.nothing","to":[{"type":"webhook","url":"https://a"}]"#,
            "t.nothing",
        ),
        (
            r#""when":["run_failed"],"max_per_hour":0,"to":[{"type":"webhook","url":"https://a"}]"#,
            "max_per_hour",
        ),
    ];
    for (text, expected) in bad {
        let definition = NotificationDef { name: "mine".into(), ..rule_of(text) };
        let events = world.events().len();
        let answer = world.ask(change(NotificationChange::Create(Arc::new(definition))));
        let Err(Refusal::BadDefinition { problem, .. }) = answer else { panic!("{text}: {answer:?}") };
        assert!(problem.contains(expected), "{text}: {problem}");
        let new: Vec<_> = world.events().drain(events..).map(|event| event.data).collect();
        assert!(new.iter().all(|data| matches!(data, EventData::RequestRefused(_))), "{new:?}");
    }
    assert_eq!(world.state().notification_rules().count(), 1);
    let _id: RuleId = world.state().notification_rule_id("oncall").expect("an id");
}
