//! Settings: what is in the log decides, whatever a process was started with (ADR-095).

use std::collections::BTreeMap;

use proptest::prelude::*;
use servo_core::{EventId, Millis};
use servo_engine::event::{NewValue, SettingsChanged};
use servo_engine::{
    Applied, Caller, ChangeSettings, Effect, Engine, Event, EventData, EventKind, Ignored, Input, Refusal,
    RefusalKind, Reply, Report, Setting, SettingError, SettingOrigin, SettingValue, Settings, StartWith,
    State, TaskOptions, TriggerRun,
};

use crate::support::{
    SECRET, START, World, after, event, key, plan, plan_of, settings_changed, task, tenant, workspace,
};

fn change(set: &[(&str, &str)], unset: &[&str]) -> Input {
    let text = |(name, value): &(&str, &str)| ((*name).to_owned(), SettingValue::Text((*value).to_owned()));
    Input::ChangeSettings(ChangeSettings {
        set: set.iter().map(text).collect(),
        unset: unset.iter().map(|name| (*name).to_owned()).collect(),
        origin: SettingOrigin::Cli,
        caller: Caller::user("me"),
    })
}

fn start(settings: &Settings) -> Input {
    Input::StartWith(StartWith::differing(settings, SettingOrigin::Flag))
}

fn row(state: &State, name: &str) -> Option<(Option<u64>, SettingOrigin, String)> {
    let row = state.setting_rows().find(|row| row.name == name)?;
    Some((row.value, row.origin, row.changed_by.to_string()))
}

#[test]
fn a_change_is_an_event_with_value_origin_and_author_and_holds_at_once() {
    let mut world = World::new(Settings::default());
    world.ask(change(&[("max_concurrent_tasks", "1"), ("heartbeat_timeout", "90s")], &[])).expect("changed");
    let settings = world.state().settings();
    assert_eq!((settings.max_concurrent_tasks, settings.heartbeat_timeout), (1, Millis::from_secs(90)));
    let expected = Some((Some(90_000), SettingOrigin::Cli, "user:me".to_owned()));
    assert_eq!(row(world.state(), "heartbeat_timeout"), expected);
    world.trigger(TriggerRun::new("first", plan(&[("a", &[]), ("b", &[])]), "me"));
    assert_eq!((world.state().outstanding(), world.state().waiting()), (1, 1), "one slot");
    world.ask(change(&[], &["max_concurrent_tasks"])).expect("unset");
    assert_eq!((world.state().outstanding(), world.state().waiting()), (2, 0), "a hundred slots again");
    let expected = Some((None, SettingOrigin::Default, "user:me".to_owned()));
    assert_eq!(row(world.state(), "max_concurrent_tasks"), expected, "who unset it stays known");
}

#[test]
fn what_changes_nothing_is_no_event_and_a_second_copy_of_a_change_is_ignored() {
    let mut world = World::new(Settings::default());
    world.ask(change(&[("recent_runs", "3")], &[])).expect("changed");
    let written = world.log.len();
    for again in [change(&[("recent_runs", "3")], &[]), change(&[], &["max_interruptions"]), change(&[], &[])]
    {
        assert_eq!(world.ask(again), Ok(Reply::Change(servo_engine::Change::Duplicate)));
    }
    assert_eq!(world.log.len(), written);
    let mut state = world.state().clone();
    let copy = event(settings_changed(1), after(1), 1);
    assert_eq!(state.apply(&copy), Applied::No(Ignored::Duplicate));
}

#[test]
fn bad_values_are_refused_with_name_value_and_bounds_and_nothing_changes() {
    let mut world = World::new(Settings::default());
    type Pairs = &'static [(&'static str, &'static str)];
    let cases: [(Pairs, &[&str], &str); 12] = [
        (
            &[("max_concurent_tasks", "1")],
            &[],
            "there is no setting \"max_concurent_tasks\"; `servo config show`",
        ),
        (&[], &["nothing"], "there is no setting \"nothing\""),
        (&[("pool.", "1")], &[], "there is no setting \"pool.\""),
        (&[("pool.a b", "1")], &[], "there is no setting \"pool.a b\""),
        (&[("max_concurrent_tasks", "0")], &[], "max_concurrent_tasks cannot be 0; it is from 1 to 1000000"),
        (&[("max_concurrent_tasks", "many")], &[], "cannot be \"many\": it is a whole number, such as 100"),
        (&[("heartbeat_timeout", "60")], &[], "heartbeat_timeout cannot be \"60\": expected a unit"),
        (&[("heartbeat_timeout", "2d")], &[], "heartbeat_timeout cannot be 2d; it is from 5s to 1d"),
        (
            &[("nano_usd_per_cpu_second", "-1")],
            &[],
            "nano_usd_per_cpu_second cannot be \"-1\": it is a whole number of billionths of a US dollar",
        ),
        (
            &[("nano_usd_per_gpu_second", "0.00035")],
            &[],
            "cannot be \"0.00035\": it is a whole number of billionths of a US dollar: 24000 is $0.000024",
        ),
        (
            &[("nano_usd_per_storage_gb", "20000000000000")],
            &[],
            "nano_usd_per_storage_gb cannot be 20000000000000; it is from 0 to 1000000000000",
        ),
        (&[("recent_runs", "1")], &["recent_runs"], "setting recent_runs is to be set and unset"),
    ];
    for (set, unset, message) in cases {
        // The good one beside it is not taken either.
        let set: Vec<_> = set.iter().copied().chain([("max_interruptions", "3")]).collect();
        let refusal = world.ask(change(&set, unset)).expect_err(message);
        assert!(refusal.to_string().contains(message), "{refusal}");
        assert_eq!(refusal.kind(), RefusalKind::Invalid);
    }
    assert_eq!(world.state().setting_rows().count(), 0);
    let is_refusal = |event: &Event| event.data.kind() == EventKind::RequestRefused;
    assert!(world.events().iter().all(is_refusal), "only the refusals are recorded");
}

#[test]
fn every_setting_is_documented_and_its_default_lies_within_its_bounds() {
    for setting in Setting::all() {
        assert!(
            setting.about.ends_with('.') && setting.about.len() > 20,
            "{}: {}",
            setting.name,
            setting.about
        );
        if let Some(default) = setting.default_value() {
            assert!((setting.least..=setting.most).contains(&default), "{}", setting.name);
            let text = SettingValue::Text(setting.unit.show(default));
            assert_eq!(setting.read(setting.name, &text), Ok(default));
        }
    }
    let unknown = Setting::find("no_such_setting").expect_err("unknown");
    assert!(matches!(unknown, SettingError::Unknown { .. }));
    let refusal: Refusal = unknown.into();
    assert_eq!(refusal.kind(), RefusalKind::Invalid);
}

#[test]
fn a_process_starts_with_what_it_is_given_and_what_people_set_wins() {
    let mut world = World::new(Settings::default());
    let slots = |slots| Settings { max_concurrent_tasks: slots, ..Settings::default() };
    world.step(&[start(&slots(4))]);
    assert_eq!(row(world.state(), "max_concurrent_tasks").map(|row| row.0), Some(Some(4)));
    let written = world.log.len();
    world.step(&[start(&slots(4))]);
    assert_eq!(world.log.len(), written, "the same start is no event");
    world.step(&[start(&Settings { recent_runs: 5, ..Settings::default() })]);
    let settings = world.state().settings();
    assert_eq!(
        (settings.max_concurrent_tasks, settings.recent_runs),
        (100, 5),
        "what is not given any more goes"
    );
    world.ask(change(&[("max_concurrent_tasks", "9")], &[])).expect("set");
    world.step(&[start(&slots(4))]);
    assert_eq!(world.state().settings().max_concurrent_tasks, 9, "somebody has set it");
    world.step(&[Input::StartWith(StartWith::default())]);
    assert_eq!(
        world.state().settings().max_concurrent_tasks,
        9,
        "a process that is given nothing changes nothing"
    );
}

#[test]
fn deadlines_and_memory_follow_a_change() {
    let mut world = World::with(plan(&[("a", &[])]));
    world.start("a").expect("starts");
    assert_eq!(world.state().next_deadline(), Some(after(90)));
    world.ask(change(&[("heartbeat_timeout", "10s"), ("heartbeat_grace", "5s")], &[])).expect("changed");
    assert_eq!(world.state().next_deadline(), Some(after(15)));
    world.finish("a", Report::succeeded()).expect("succeeds");
    assert_eq!(world.state().next_deadline(), None);
    for run in ["second", "third"] {
        world.trigger(TriggerRun::new(run, plan(&[("a", &[])]), "me"));
        world.succeed("a");
    }
    assert_eq!(world.state().runs().count(), 3);
    world.ask(change(&[("recent_runs", "1")], &[])).expect("changed");
    assert_eq!(world.state().runs().count(), 1, "what is too much leaves at once");
}

#[test]
fn an_attempt_may_run_for_an_hour_unless_its_asset_or_the_setting_says_otherwise() {
    let timeouts = |world: &World| -> Vec<Millis> {
        world.effects.iter().filter_map(Effect::dispatch).map(|dispatch| dispatch.timeout).collect()
    };
    let own = TaskOptions { timeout_ms: Some(Millis::from_secs(5)), ..TaskOptions::default() };
    let world = World::with(plan_of(vec![task("a", &[], TaskOptions::default()), task("b", &[], own)]));
    assert_eq!(timeouts(&world), [Millis::from_hours(1), Millis::from_secs(5)]);
    let mut world = World::new(Settings::default());
    world.ask(change(&[("execution_timeout", "30m")], &[])).expect("changed");
    world.trigger(TriggerRun::new("first", plan(&[("a", &[])]), "me"));
    assert_eq!(timeouts(&world), [Millis::from_minutes(30)]);
}

#[test]
fn settings_of_a_newer_version_are_kept_and_change_nothing_here() {
    let mut state = State::new(tenant(), workspace());
    let new = NewValue { value: Some(7), origin: SettingOrigin::Api };
    let changes: BTreeMap<String, NewValue> = [("moon_phases".to_owned(), new)].into();
    state.apply(&event(EventData::SettingsChanged(SettingsChanged { number: 1, changes }), START, 1));
    assert_eq!(state.settings(), &Settings::default());
    let rows = state.rows();
    let restored = State::from_rows(tenant(), workspace(), rows.clone()).expect("rows fit");
    assert_eq!(restored.rows(), rows);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// The same log on a node that was started with anything else: its own start is an event after all others.
    #[test]
    fn a_log_means_the_same_on_a_node_that_was_started_with_anything_else(
        first in settings(), second in settings(), runs in 1..6_usize,
    ) {
        let mut world = World::new(Settings::default());
        world.step(&[start(&first)]);
        for run in 0..runs {
            world.trigger(TriggerRun::new(format!("run {run}"), plan(&[("a", &[]), ("b", &["a"])]), "me"));
            if world.state().task(world.run, &key("a")).is_some_and(|task| task.has_open_attempt()) {
                world.succeed("a");
            }
            world.wait(7);
        }
        let mut other = State::new(tenant(), workspace());
        for (seq, batch) in (1u64..).zip(&world.log) {
            other.apply_batch(seq, batch);
        }
        prop_assert_eq!(other.rows(), world.state().rows());
        prop_assert_eq!(other.settings(), world.state().settings());
        prop_assert_eq!(other.next_deadline(), world.state().next_deadline());
        // It says so, and all others fold that too.
        let mut node = Engine::new(other, SECRET);
        let said = node.step(&[start(&second)], world.now);
        let mut follower = world.state().clone();
        follower.apply_batch(world.log.len() as u64 + u64::from(!said.events.is_empty()), &said.events);
        prop_assert_eq!(follower.rows(), node.state().rows());
        prop_assert_eq!(follower.settings().recent_runs, second.recent_runs);
        prop_assert!(said.events.iter().all(|event| event.id > EventId::NIL));
    }
}

fn settings() -> impl Strategy<Value = Settings> {
    (1..6_u32, 0..4_usize, 0..60_usize, 0..4_u32, 5..200_u64).prop_map(
        |(max_concurrent_tasks, recent_runs, recent_tasks, max_interruptions, seconds)| Settings {
            max_concurrent_tasks,
            recent_runs,
            recent_tasks,
            max_interruptions,
            heartbeat_timeout: Millis::from_secs(seconds),
            outbox_retry_after: Millis::from_secs(seconds),
            ..Settings::default()
        },
    )
}
