//! Automation conditions: what makes an asset be requested, once for each cause, and what does not. Every story is
//! compared with a naive evaluator that looks at everything, and folded again from its log.

#![allow(clippy::panic, clippy::unwrap_used)]

mod chance;
mod story;

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_core::Millis;
use servo_core::partitions::MappingDef;
use servo_engine::definitions::{Condition, Definitions, MANIFEST_VERSION, Manifest};
use servo_engine::{Attempt, Caller, Event, EventData, Input, PauseCondition, Refusal, WipePartitions};

use story::{
    Story, Unwatched, and, any_upstream, asset, at_most, days, eager, key, list, made, not, on_cron,
    on_missing, or, reads, tick,
};

#[test]
fn an_eager_chain_is_one_run_for_one_change() {
    let chain =
        vec![asset("a", &[], None), asset("b", &["a"], Some(eager())), asset("c", &["b"], Some(eager()))];
    let mut story = Story::new(chain);
    assert_eq!(story.play(&[]), Vec::<String>::new(), "nothing happens when it is deployed");
    assert_eq!(story.make("a", None), list(&["b", "c"]));
    assert_eq!(story.runs(), 1, "both in one run");
    let source = story.world.state().runs().map(|run| run.source.kind().to_owned()).collect::<Vec<_>>();
    assert!(source.contains(&"condition".to_owned()), "{source:?}");
    assert_eq!(story.wait(86_400 * 30), BTreeSet::new(), "and never again");
    assert_eq!(story.make("a", None), list(&["b", "c"]), "until the next change");
    assert_eq!(story.make("b", None), list(&["c"]));
    story.replays();
}

#[test]
fn a_failure_is_no_reason_to_request_it_again() {
    let chain =
        vec![asset("a", &[], None), asset("b", &["a"], Some(eager())), asset("c", &["b"], Some(eager()))];
    let mut story = Story::new(chain);
    story.request("a", None);
    assert_eq!(story.play(&["c"]), list(&["b", "c"]));
    assert_eq!(story.wait(86_400), BTreeSet::new());
    story.request("a", None);
    assert_eq!(story.play(&["b"]), list(&["b", "c"]), "a new change is");
    assert_eq!(story.make("b", None), list(&["c"]), "what was not made is, when its upstream is there");
    story.replays();
}

#[test]
fn updates_while_a_run_is_open_are_requested_when_it_is_over() {
    let mut story = Story::new(vec![asset("a", &[], None), asset("b", &["a"], Some(eager()))]);
    story.request("a", None);
    let first = story.open().remove(0);
    assert_eq!(story.end(first, true).len(), 1, "b is requested");
    let b = story.open().remove(0);
    story.ask(Input::Started(b.clone(), Arc::from("w")));
    story.request("a", None);
    let second = story.open().into_iter().find(|attempt| attempt.task_key != b.task_key).unwrap();
    assert_eq!(story.end(second, true), BTreeSet::new(), "b is being made, of the old data");
    let report = made(&b);
    let requested = story.ask(Input::Finished(b, report));
    assert_eq!(requested, BTreeSet::from(["b".to_owned()]));
    assert_eq!(story.play(&[]), Vec::<String>::new());
    story.replays();
}

#[test]
fn a_cron_condition_waits_for_all_upstreams_after_the_tick() {
    let assets = vec![
        asset("a", &[], None),
        asset("b", &[], None),
        asset("c", &["a", "b"], Some(on_cron("0 6 * * *"))),
    ];
    let mut story = Story::new(assets);
    assert_eq!(story.make("b", None), Vec::<String>::new());
    assert_eq!(story.make("a", None), Vec::<String>::new(), "the last tick was before the condition");
    assert_eq!(story.wait(6 * 3_600), BTreeSet::new(), "the tick alone is not enough");
    assert_eq!(story.make("a", None), Vec::<String>::new());
    assert_eq!(story.make("b", None), list(&["c"]));
    assert_eq!(story.make("a", None), Vec::<String>::new(), "once a tick");
    assert_eq!(story.make("b", None), Vec::<String>::new());
    assert_eq!(story.wait(86_400), BTreeSet::new());
    assert_eq!(story.make("a", None), Vec::<String>::new());
    assert_eq!(story.make("b", None), list(&["c"]));
    story.replays();
}

#[test]
fn a_cron_condition_without_upstreams_ticks_and_takes_the_newest_partition() {
    let mut root = asset("a", &[], Some(on_cron("0 6 * * *")));
    root.partitions = days();
    let mut story = Story::new(vec![root]);
    let requested = story.wait(6 * 3_600);
    assert_eq!(requested, BTreeSet::from(["a 2025-01-14".to_owned()]));
    story.play(&[]);
    assert_eq!(story.wait(3_600), BTreeSet::new());
    let deadline = story.world.engine.next_deadline(story.world.now);
    assert!(deadline.is_some_and(|at| at > story.world.now), "it sleeps until there is something to do");
    assert_eq!(story.wait(23 * 3_600), BTreeSet::from(["a 2025-01-15".to_owned()]));
    story.replays();
}

#[test]
fn new_partitions_are_made_and_old_ones_are_left_to_backfills() {
    let mut root = asset("a", &[], Some(on_missing()));
    root.partitions = days();
    let mut below = asset("b", &["a"], Some(eager()));
    below.partitions = days();
    let mut story = Story::new(vec![root, below]);
    assert_eq!(story.play(&[]), Vec::<String>::new(), "three partitions were missing before");
    let requested = story.wait(86_400);
    assert_eq!(requested, ["a 2025-01-15", "b 2025-01-15"].map(str::to_owned).into());
    assert_eq!(story.play(&[]), Vec::<String>::new());
    assert_eq!(
        story.make("a", Some("2025-01-13")),
        list(&["b 2025-01-13"]),
        "a change of an old one is a change"
    );
    story.replays();
}

#[test]
fn an_asset_without_partitions_that_is_missing_is_made_when_it_is_deployed() {
    let assets = vec![asset("a", &[], Some(on_missing())), asset("b", &["a"], Some(on_missing()))];
    let mut story = Story::new(Vec::new());
    assert_eq!(story.deploy(assets), ["a", "b"].map(str::to_owned).into(), "one run of both");
    story.play(&["a"]);
    assert_eq!(story.wait(86_400 * 7), BTreeSet::new(), "a failure does not start it again");
    story.replays();
}

#[test]
fn what_is_wiped_is_missing_and_made_again_without_anything_else_happening() {
    let mut story = Story::new(vec![asset("a", &[], Some(on_missing()))]);
    story.play(&[]);
    assert_eq!(story.wait(60), BTreeSet::new());
    let wipe = |keep_data| {
        Input::WipePartitions(WipePartitions {
            asset: key("a"),
            partitions: vec![None],
            keep_data,
            force: false,
            reason: String::new(),
            caller: Caller::user("zoë"),
        })
    };
    for keep_data in [true, false] {
        assert_eq!(story.ask(wipe(keep_data)), ["a".to_owned()].into(), "keep_data={keep_data}");
        story.play(&[]);
        assert_eq!(story.wait(60), BTreeSet::new(), "once");
    }
    story.replays();
}

#[test]
fn a_self_dependent_asset_goes_on_from_day_to_day() {
    let mut daily = asset("a", &[], Some(eager()));
    daily.partitions = days();
    daily.deps = vec![reads("a", Some(MappingDef::Window { from: -1, to: -1 }))];
    let mut story = Story::new(vec![daily]);
    assert_eq!(story.make("a", Some("2025-01-12")), list(&["a 2025-01-13", "a 2025-01-14"]));
    assert_eq!(story.runs(), 1);
    assert_eq!(story.wait(86_400), BTreeSet::from(["a 2025-01-15".to_owned()]));
    story.replays();
}

#[test]
fn changed_code_is_made_again_once() {
    let mut changing = asset("a", &[], Some(Condition::CodeChanged));
    let mut story = Story::new(vec![changing.clone()]);
    assert_eq!(story.make("a", None), Vec::<String>::new());
    changing.version = 2;
    assert_eq!(story.deploy(vec![changing.clone()]), BTreeSet::from(["a".to_owned()]));
    story.play(&["a"]);
    assert_eq!(story.wait(3_600), BTreeSet::new(), "it failed, and nothing has changed");
    changing.version = 3;
    assert_eq!(story.deploy(vec![changing]), BTreeSet::from(["a".to_owned()]));
    assert_eq!(story.play(&[]), Vec::<String>::new());
    story.replays();
}

#[test]
fn failures_are_tried_again_as_often_as_a_limit_allows() {
    let retry = and(vec![Condition::Failed, at_most(2, Millis::from_hours(1))]);
    let mut story = Story::new(vec![asset("a", &[], Some(retry))]);
    story.request("a", None);
    assert_eq!(story.play(&["a"]), list(&["a", "a"]));
    assert_eq!(story.wait(1_800), BTreeSet::new());
    assert_eq!(story.wait(1_801), BTreeSet::from(["a".to_owned()]), "an hour after the first");
    story.play(&[]);
    story.replays();
}

#[test]
fn a_paused_condition_requests_nothing_and_catches_up_when_it_is_resumed() {
    let mut story = Story::new(vec![asset("a", &[], None), asset("b", &["a"], Some(eager()))]);
    let change = |paused: bool| {
        Input::PauseCondition(PauseCondition {
            asset: key("b"),
            paused,
            expected_state_version: None,
            reason: "the source is down".to_owned(),
            caller: Caller::user("me"),
        })
    };
    story.ask(change(true));
    assert_eq!(story.make("a", None), Vec::<String>::new());
    assert_eq!(story.ask(change(false)), BTreeSet::from(["b".to_owned()]));
    story.play(&[]);
    let unknown = PauseCondition {
        asset: key("a"),
        paused: true,
        expected_state_version: None,
        reason: String::new(),
        caller: Caller::user("me"),
    };
    let refused = story.world.ask(Input::PauseCondition(unknown)).unwrap_err();
    assert_eq!(refused, Refusal::UnknownCondition { asset: key("a") });
    let stale = PauseCondition {
        asset: key("b"),
        paused: true,
        expected_state_version: Some(1),
        reason: String::new(),
        caller: Caller::user("me"),
    };
    let refused = story.world.ask(Input::PauseCondition(stale)).unwrap_err();
    assert!(matches!(refused, Refusal::StateVersion { expected: 1, found: 3, .. }), "{refused}");
}

#[test]
fn events_that_are_folded_again_change_nothing() {
    let mut story = Story::new(vec![asset("a", &[], None), asset("b", &["a"], Some(eager()))]);
    story.make("a", None);
    let before = story.shadow.rows();
    let again: Vec<Event> = story.log.clone();
    for event in again.iter().filter(|event| matches!(event.data, EventData::ConditionsEvaluated(_))) {
        story.shadow.apply(event);
    }
    assert_eq!(story.shadow.rows().condition_requests, before.condition_requests);
    assert_eq!(story.shadow.rows().condition_evaluations, before.condition_evaluations);
}

#[test]
fn nothing_is_evaluated_and_nothing_is_due_when_nothing_changes() {
    let story = Story::new(vec![asset("a", &[], None), asset("b", &["a"], Some(eager()))]);
    assert_eq!(story.world.engine.next_deadline(story.world.now), None);
}

#[test]
fn a_trace_says_which_part_holds_and_since_when() {
    let mut story = Story::new(vec![asset("a", &[], None), asset("b", &["a"], Some(eager()))]);
    let explained = |story: &Story| {
        servo_engine::conditions::explain(story.world.state(), &key("b"), None, story.world.now, 10)
    };
    let found = explained(&story).unwrap();
    assert_eq!((found.trace.label.as_str(), found.trace.holds, found.trace.of), ("eager()", 0, 1));
    assert_eq!(found.details[0].held_back.as_deref(), Some("the condition is false"));
    story.make("a", None);
    let found = explained(&story).unwrap();
    assert_eq!(found.trace.holds, 0);
    let row = story.world.state().recent_condition_evaluations().next().unwrap();
    let trace = &row.trace.as_ref().unwrap().0;
    assert_eq!((trace.holds, trace.of), (1, 1));
    let updated = &trace.parts[0].parts[0].parts[1].parts[0];
    assert_eq!((updated.label.as_str(), updated.holds, updated.of), ("updated()", 1, 1));
    assert!(updated.since.is_some());
    assert_eq!(
        servo_engine::conditions::explain(story.world.state(), &key("a"), None, story.world.now, 10),
        None
    );
}

#[test]
fn data_older_than_what_a_failed_attempt_has_read_is_no_reason_to_request_it_again() {
    let mut story = Story::new(vec![
        asset("a", &[], None),
        asset("b", &["a"], Some(eager())),
        asset("c", &["b"], Some(eager())),
    ]);
    story.request("a", None);
    let a = story.open().remove(0);
    assert_eq!(story.end(a, true), ["b", "c"].map(str::to_owned).into());
    story.request("c", None);
    let of = |story: &Story, name: &str| -> Vec<Attempt> {
        story.open().into_iter().filter(|it| it.task_key.asset() == key(name)).collect()
    };
    let by_hand = of(&story, "c").remove(0);
    let b = of(&story, "b").remove(0);
    story.end(b, true);
    let requested = of(&story, "c").into_iter().find(|it| it.run_id != by_hand.run_id).unwrap();
    assert_eq!(story.end(requested, false), BTreeSet::new(), "it failed with what it was requested for");
    assert_eq!(story.end(by_hand, true), BTreeSet::new(), "of older data, and the newer has failed");
    assert_eq!(story.make("b", None), list(&["c"]), "until there is something new");
    story.replays();
}

#[test]
fn a_failure_that_was_not_asked_for_is_handled_the_same_with_and_without_a_limit() {
    for limited in [false, true] {
        let limit = || at_most(9, Millis::from_hours(1));
        let condition = if limited { and(vec![eager(), limit()]) } else { eager() };
        let mut story = Story::new(vec![asset("a", &[], None), asset("b", &["a"], Some(condition))]);
        assert_eq!(story.make("a", None), list(&["b"]), "made good");
        story.request("b", None);
        let b = story.open().remove(0);
        story.request("a", None);
        let a = story.open().into_iter().find(|it| it.task_key != b.task_key).unwrap();
        assert_eq!(story.end(a, true), BTreeSet::new(), "b is being made, of the old data");
        assert_eq!(story.end(b, false), BTreeSet::from(["b".to_owned()]));
        assert_eq!(story.play(&[]), Vec::<String>::new());
        // The same of an attempt that has read the new data.
        story.request("a | t.b", None);
        let a = story.open().remove(0);
        story.end(a, true);
        let b = story.open().remove(0);
        assert_eq!(story.end(b, false), BTreeSet::from(["b".to_owned()]), "limited: {limited}");
        story.replays();
    }
}

#[test]
fn definitions_say_everything_that_is_wrong_with_a_condition() {
    let wrong = [
        ("bad cron", tick("61 * * * *"), "61"),
        (
            "unknown zone",
            Condition::CronTick { cron: "0 6 * * *".to_owned(), timezone: Some("Mars".to_owned()) },
            "Mars",
        ),
        ("no times", and(vec![eager(), at_most(0, Millis::from_hours(1))]), "at_most has 0 times"),
        ("no length", and(vec![eager(), at_most(1, Millis::new(1))]), "per of at_most"),
        ("nothing happens", not(Condition::InProgress), "nothing in it happens"),
        ("starts itself", Condition::Failed, "again and again"),
        ("again", Condition::NewlyTrue { of: not(Condition::InProgress).into() }, "again and again"),
        ("no window", and(vec![eager(), Condition::Latest { windows: 0 }]), "latest has 0 windows"),
        (
            "no time",
            and(vec![
                eager(),
                Condition::During {
                    from: "25:00".to_owned(),
                    to: "6".to_owned(),
                    days: Vec::new(),
                    timezone: None,
                },
            ]),
            "no time of a day",
        ),
        (
            "no day",
            and(vec![
                eager(),
                Condition::During {
                    from: "22:00".to_owned(),
                    to: "06:00".to_owned(),
                    days: vec!["monday".to_owned()],
                    timezone: None,
                },
            ]),
            "is no day",
        ),
        ("too deep", (0..40).fold(eager(), |inner, _| not(not(inner))), "levels deep"),
        ("nothing joined", or(vec![]), "joins nothing"),
        (
            "bad name",
            Condition::AnyUpstream {
                of: Condition::Updated.into(),
                only: vec!["A B".to_owned()],
                ignore: Vec::new(),
            },
            "names \"A B\"",
        ),
    ];
    for (what, condition, message) in wrong {
        let manifest = Manifest {
            manifest_version: MANIFEST_VERSION,
            project: "shop".to_owned(),
            assets: vec![asset("a", &[], Some(condition)).def()],
            schedules: Vec::new(),
            sensors: Vec::new(),
            notifications: Vec::new(),
            resources: Vec::new(),
        };
        let problems = Definitions::check(manifest).unwrap_err().to_string();
        assert!(problems.contains(message), "{what}: {problems}");
    }
}

#[test]
fn the_window_of_a_day_keeps_back_and_lets_go() {
    let night = Condition::During {
        from: "22:00".to_owned(),
        to: "06:00".to_owned(),
        days: Vec::new(),
        timezone: Some("Europe/Amsterdam".to_owned()),
    };
    let mut story =
        Unwatched::new(vec![asset("a", &[], None), asset("b", &["a"], Some(and(vec![eager(), night])))]);
    // The test begins at one in the morning of Amsterdam.
    story.wait(8 * 3_600);
    story.make("a");
    assert_eq!(story.requested(), 0, "it is nine in the morning");
    story.wait(12 * 3_600);
    assert_eq!(story.requested(), 0, "it is nine in the evening");
    story.wait(3_600);
    assert_eq!(story.requested(), 1, "it is ten");
}

#[test]
fn staleness_reaches_through_assets_without_conditions() {
    let mut story = Unwatched::new(vec![
        asset("a", &[], None),
        asset("b", &["a"], None),
        asset("c", &["b"], Some(and(vec![Condition::Stale, not(any_upstream(Condition::Stale))]))),
    ]);
    for name in ["a", "b", "c"] {
        story.make(name);
    }
    let before = story.requested();
    story.make("a");
    assert_eq!(story.requested(), before, "b is stale, and c waits for it");
    story.make("b");
    assert_eq!(story.requested(), before + 1);
}
