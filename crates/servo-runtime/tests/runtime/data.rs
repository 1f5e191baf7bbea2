//! Data follows the log: `latest.json`, removal of outputs that do not count, reviews; also after a crash (ADR-062).
//!
//! Tables are written when a workspace closes and not before, so that what happened since is one change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use servo_core::{AssetKey, MaterializationId, Millis, RunId};
use servo_engine::outputs::{OutputReport, materialization_of};
use servo_engine::{
    Caller, CancelRun, ChangeSettings, DataFormat, ErrorCode, OutputState, Report, Review, RunState,
    SettingOrigin, SettingValue, TaskError, TaskState, Verdict,
};
use servo_runtime::{Kept, SystemClock};

use crate::support::*;

fn a() -> AssetKey {
    AssetKey::parse("test.a").unwrap()
}

async fn open(root: &Path) -> Harness {
    let slow = |config: &mut servo_runtime::Config| config.flush_every = Duration::from_secs(3_600);
    Harness::open_with(directory(root), Arc::default(), 0, slow).await.unwrap()
}

/// The home of the data of `a`.
fn home(root: &Path) -> PathBuf {
    root.join(layout().prefix()).join(layout().data_home(&a(), None))
}

fn put(dir: &Path, name: &str) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join(name), "{}").unwrap();
}

/// Runs the one task of a run by hand: stores an output as a worker would, and reports it.
async fn made(harness: &Harness, root: &Path, key: &str, state: OutputState) -> (RunId, MaterializationId) {
    let run = harness.trigger(key, one("a")).await;
    let sealed = within(taken(&harness.queue, "default")).await;
    let envelope = keys().open(&sealed, servo_core::Clock::now(&SystemClock)).unwrap();
    harness.workspace.started(&envelope.task_token, "local-hand").await.unwrap();
    let id = materialization_of(envelope.attempt_id);
    let staging = root.join(layout().prefix()).join(layout().staging(run, &envelope.task_key, 1));
    put(&staging, "left behind");
    let output = OutputReport { format: Some(DataFormat::Json), ..OutputReport::new(a(), state) };
    let failed = || Report::failed(TaskError::new(ErrorCode::CheckFailed, "few"));
    let report = match state {
        OutputState::Committed => Report::succeeded(),
        OutputState::Quarantined | OutputState::Discarded | OutputState::Missing => failed(),
    };
    match state {
        OutputState::Quarantined => {
            let dir = home(root).join(format!("quarantine/{id}"));
            put(&dir, "data.json");
            fs::write(dir.join("_reason.json"), r#"{"format":"json","checks":[]}"#).unwrap();
        }
        OutputState::Committed | OutputState::Discarded | OutputState::Missing => {
            let dir = home(root).join(format!("materializations/{id}"));
            put(&dir, "data.json");
            put(&dir, "_commit.json");
        }
    }
    let report = Report { outputs: [output].into(), ..report };
    harness.workspace.finished(&envelope.task_token, report).await.unwrap();
    let ended = harness.ended(run).await.run.state;
    assert_eq!(ended == RunState::Succeeded, state == OutputState::Committed);
    (run, id)
}

#[tokio::test]
async fn an_output_without_its_marker_does_not_count_whatever_the_worker_says() {
    let root = tempfile::tempdir().unwrap();
    let harness = open(root.path()).await;
    let run = harness.trigger("lies", one("a")).await;
    let sealed = within(taken(&harness.queue, "default")).await;
    let envelope = keys().open(&sealed, servo_core::Clock::now(&SystemClock)).unwrap();
    harness.workspace.started(&envelope.task_token, "local-hand").await.unwrap();
    let output =
        OutputReport { format: Some(DataFormat::Json), ..OutputReport::new(a(), OutputState::Committed) };
    let report = Report { outputs: [output].into(), ..Report::succeeded() };
    harness.workspace.finished(&envelope.task_token, report).await.unwrap();
    let (state, error, latest) = harness
        .workspace
        .read(move |state| {
            let task = &state.run(run).unwrap().tasks[0];
            (task.state, task.error.clone(), state.latest(&a(), None))
        })
        .await
        .unwrap();
    assert_eq!(state, TaskState::RetryWait);
    assert_eq!(error.unwrap().code, ErrorCode::OutputMissing);
    assert_eq!(latest, None);
}

async fn review(harness: &Harness, id: MaterializationId, verdict: Verdict) {
    let (caller, reason) = (Caller::user("me"), String::new());
    harness
        .workspace
        .review(Review { asset: a(), materialization_id: id, verdict, caller, reason })
        .await
        .unwrap();
}

fn latest(root: &Path) -> Option<serde_json::Value> {
    let text = fs::read(home(root).join("latest.json")).ok()?;
    Some(serde_json::from_slice(&text).unwrap())
}

fn latest_id(root: &Path) -> Option<String> {
    Some(latest(root)?["materialization_id"].as_str().unwrap().to_owned())
}

/// Stages an output that a worker would have quarantined, had its run not been cancelled.
async fn cancelled(harness: &Harness, root: &Path, key: &str) {
    let run_id = harness.trigger(key, one("a")).await;
    let sealed = within(taken(&harness.queue, "default")).await;
    let envelope = keys().open(&sealed, servo_core::Clock::now(&SystemClock)).unwrap();
    harness.workspace.started(&envelope.task_token, "local-hand").await.unwrap();
    let (caller, reason) = (Caller::user("me"), String::new());
    harness.workspace.cancel(CancelRun { run_id, caller, reason, force: false }).await.unwrap();
    let id = materialization_of(envelope.attempt_id);
    put(&home(root).join(format!("quarantine/{id}")), "data.json");
    let output = OutputReport::new(a(), OutputState::Quarantined);
    let failed = Report::failed(TaskError::new(ErrorCode::CheckFailed, "few"));
    let report = Report { outputs: [output].into(), ..failed };
    harness.workspace.finished(&envelope.task_token, report).await.unwrap();
    assert_eq!(harness.ended(run_id).await.run.state, RunState::Cancelled);
}

/// Names in a directory of the home, sorted.
fn names(root: &Path, dir: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(home(root).join(dir)) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn staged(root: &Path) -> usize {
    fs::read_dir(root.join(layout().prefix()).join("staging")).map_or(0, Iterator::count)
}

/// A workspace with the same log and data, and no tables: what a crash before they were written leaves.
fn crashed(root: &Path) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let to = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                copy(&entry.path(), &to);
            } else {
                fs::copy(entry.path(), to).unwrap();
            }
        }
    }
    let other = tempfile::tempdir().unwrap();
    copy(root, other.path());
    other
}

#[tokio::test]
async fn latest_points_at_what_was_made_last_also_if_an_attempt_failed_since() {
    let root = tempfile::tempdir().unwrap();
    let harness = open(root.path()).await;
    made(&harness, root.path(), "first", OutputState::Committed).await;
    let (run, id) = made(&harness, root.path(), "second", OutputState::Committed).await;
    made(&harness, root.path(), "third", OutputState::Discarded).await;
    assert_eq!(latest(root.path()), None, "nothing was written yet");
    harness.close().await;
    let pointer = latest(root.path()).expect("written with the tables");
    assert_eq!(pointer["materialization_id"], id.to_string());
    assert_eq!(pointer["path"], format!("materializations/{id}"));
    assert_eq!(pointer["run_id"], run.to_string());
    assert_eq!(pointer["partition_key"], serde_json::Value::Null);
    assert_eq!(staged(root.path()), 0, "no staging is left");
}

#[tokio::test]
async fn what_a_failed_attempt_has_stored_is_removed() {
    let root = tempfile::tempdir().unwrap();
    let harness = open(root.path()).await;
    let (_, good) = made(&harness, root.path(), "good", OutputState::Committed).await;
    made(&harness, root.path(), "bad", OutputState::Discarded).await;
    assert_eq!(names(root.path(), "materializations").len(), 2);
    harness.close().await;
    assert_eq!(names(root.path(), "materializations"), [good.to_string()]);
    assert_eq!(names(root.path(), &format!("materializations/{good}")), ["_commit.json", "data.json"]);
}

/// Lets superseded data go at once.
async fn keep_nothing_old(harness: &Harness) {
    let set = [("keep_superseded", "1ms"), ("keep_superseded_versions", "0")];
    let set = set.map(|(name, value)| (name.to_owned(), SettingValue::Text(value.to_owned()))).into();
    let change =
        ChangeSettings { set, unset: vec![], origin: SettingOrigin::Api, caller: Caller::user("me") };
    harness.workspace.change_settings(change).await.unwrap();
}

#[tokio::test]
async fn superseded_data_goes_when_the_log_says_so_also_after_a_crash() {
    let root = tempfile::tempdir().unwrap();
    let harness = open(root.path()).await;
    keep_nothing_old(&harness).await;
    let (_, old) = made(&harness, root.path(), "old", OutputState::Committed).await;
    let (_, new) = made(&harness, root.path(), "new", OutputState::Committed).await;
    // The tables are what is surveyed.
    harness.close().await;
    let harness = open(root.path()).await;
    let survey = harness.workspace.survey_retention().await.unwrap();
    assert_eq!(survey.amount(Kept::Superseded).items, 1);
    assert_eq!(names(root.path(), "materializations").len(), 2, "a survey changes nothing");
    let (_, change) = harness.workspace.apply_retention(Caller::user("me")).await.unwrap();
    assert!(matches!(change, servo_engine::Change::Accepted { .. }));
    // Killed before the data went: the log has the intent, so the next start removes it.
    let other = crashed(root.path());
    put(&home(other.path()).join(format!("materializations/{old}")), "data.json");
    open(other.path()).await.close().await;
    assert_eq!(names(other.path(), "materializations"), [new.to_string()]);
    harness.close().await;
    assert_eq!(names(root.path(), "materializations"), [new.to_string()]);
    let again = open(root.path()).await;
    assert_eq!(again.workspace.survey_retention().await.unwrap().amount(Kept::Superseded).items, 0);
    again.close().await;
}

#[tokio::test]
async fn what_is_approved_is_there_and_is_the_latest() {
    let root = tempfile::tempdir().unwrap();
    let harness = open(root.path()).await;
    let (_, good) = made(&harness, root.path(), "good", OutputState::Committed).await;
    let (_, blocked) = made(&harness, root.path(), "blocked", OutputState::Quarantined).await;
    review(&harness, blocked, Verdict::Approve).await;
    harness.close().await;
    assert_eq!(latest_id(root.path()), Some(blocked.to_string()));
    assert_eq!(names(root.path(), "quarantine"), Vec::<String>::new());
    let mut both = [good.to_string(), blocked.to_string()];
    both.sort();
    assert_eq!(names(root.path(), "materializations"), both);
    let files = names(root.path(), &format!("materializations/{blocked}"));
    assert!(
        files.contains(&"_commit.json".to_owned()) && files.contains(&"data.json".to_owned()),
        "{files:?}"
    );
}

#[tokio::test]
async fn what_is_rejected_passed_over_or_cancelled_is_removed() {
    let root = tempfile::tempdir().unwrap();
    let harness = open(root.path()).await;
    let (_, good) = made(&harness, root.path(), "good", OutputState::Committed).await;
    made(&harness, root.path(), "one", OutputState::Quarantined).await;
    let (_, two) = made(&harness, root.path(), "two", OutputState::Quarantined).await;
    review(&harness, two, Verdict::Reject).await;
    let (_, three) = made(&harness, root.path(), "three", OutputState::Quarantined).await;
    cancelled(&harness, root.path(), "four").await;
    assert_eq!(names(root.path(), "quarantine").len(), 4);
    harness.close().await;
    assert_eq!(names(root.path(), "quarantine"), [three.to_string()], "it waits");
    assert_eq!(names(root.path(), "materializations"), [good.to_string()]);
    assert_eq!(latest_id(root.path()), Some(good.to_string()));
}

/// Whether something was approved whose data is not where readers look for it.
async fn is_held_up(harness: &Harness) -> bool {
    harness.workspace.read(|state| state.approved().next().is_some()).await.unwrap()
}

#[tokio::test]
async fn what_is_approved_does_not_count_before_its_data_was_moved() {
    let root = tempfile::tempdir().unwrap();
    let harness = open(root.path()).await;
    let (_, blocked) = made(&harness, root.path(), "blocked", OutputState::Quarantined).await;
    // A file is where the directory of materializations should be.
    let obstacle = home(root.path()).join("materializations");
    fs::write(&obstacle, "").unwrap();
    let (caller, reason) = (Caller::user("me"), String::new());
    let approve =
        Review { asset: a(), materialization_id: blocked, verdict: Verdict::Approve, caller, reason };
    let workspace = harness.workspace.clone();
    let review = tokio::spawn(async move { workspace.review(approve).await });
    eventually("it is approved", async || is_held_up(&harness).await).await;
    let latest = harness.workspace.read(|state| state.latest(&a(), None)).await.unwrap();
    assert_eq!(latest, None, "nobody may be sent to data that is not there");
    fs::remove_file(&obstacle).unwrap();
    review.await.unwrap().unwrap();
    assert!(!is_held_up(&harness).await, "it was tried again");
    harness.close().await;
    assert_eq!(latest_id(root.path()), Some(blocked.to_string()));
    assert_eq!(names(root.path(), "quarantine"), Vec::<String>::new());
}

#[tokio::test]
async fn a_release_that_a_crash_interrupted_is_finished_by_the_next_start() {
    for is_moved in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let harness = open(root.path()).await;
        let (_, blocked) = made(&harness, root.path(), "blocked", OutputState::Quarantined).await;
        let obstacle = home(root.path()).join("materializations");
        fs::write(&obstacle, "").unwrap();
        let (caller, reason) = (Caller::user("me"), String::new());
        let approve =
            Review { asset: a(), materialization_id: blocked, verdict: Verdict::Approve, caller, reason };
        let workspace = harness.workspace.clone();
        let review = tokio::spawn(async move { workspace.review(approve).await });
        eventually("it is approved", async || is_held_up(&harness).await).await;
        let other = crashed(root.path());
        fs::remove_file(&obstacle).unwrap();
        review.await.unwrap().unwrap();
        harness.close().await;
        let kept = home(other.path()).join("materializations");
        fs::remove_file(&kept).unwrap();
        if is_moved {
            fs::create_dir_all(&kept).unwrap();
            let from = home(other.path()).join(format!("quarantine/{blocked}"));
            fs::rename(from, kept.join(blocked.to_string())).unwrap();
        }
        let again = open(other.path()).await;
        eventually("it is released", async || !is_held_up(&again).await).await;
        again.close().await;
        assert_eq!(latest_id(other.path()), Some(blocked.to_string()));
        assert_eq!(names(other.path(), "materializations"), [blocked.to_string()]);
        assert_eq!(names(other.path(), "quarantine"), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_pointer_that_cannot_be_written_holds_back_the_tables_and_nothing_else() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::open_with(directory(root.path()), Arc::default(), 0, |_| {}).await.unwrap();
    // A directory is where the pointer should be.
    let obstacle = home(root.path()).join("latest.json");
    fs::create_dir_all(obstacle.join("inside")).unwrap();
    let (_, good) = made(&harness, root.path(), "good", OutputState::Committed).await;
    made(&harness, root.path(), "bad", OutputState::Discarded).await;
    let only_good = || names(root.path(), "materializations") == [good.to_string()];
    eventually("what does not count is removed", async || only_good()).await;
    let counts = harness.workspace.read(|state| state.latest(&a(), None).is_some()).await.unwrap();
    assert!(counts, "decisions go on");
    let watermark = |harness: &Harness| harness.workspace.manifest().map_or(0, |it| it.watermarks.last_seq);
    let head = harness.workspace.read(|state| state.head().seq).await.unwrap();
    assert!(watermark(&harness) < head, "the tables wait");
    fs::remove_dir_all(&obstacle).unwrap();
    eventually("it is pointed at", async || latest_id(root.path()) == Some(good.to_string())).await;
    eventually("the tables follow", async || watermark(&harness) >= head).await;
    harness.close().await;
}

#[tokio::test]
async fn after_a_crash_data_follows_the_log_again() {
    let root = tempfile::tempdir().unwrap();
    let harness = open(root.path()).await;
    let (_, good) = made(&harness, root.path(), "good", OutputState::Committed).await;
    made(&harness, root.path(), "bad", OutputState::Discarded).await;
    let (_, blocked) = made(&harness, root.path(), "blocked", OutputState::Quarantined).await;
    review(&harness, blocked, Verdict::Approve).await;
    let (_, waiting) = made(&harness, root.path(), "waiting", OutputState::Quarantined).await;
    let other = crashed(root.path());
    // Whatever was promoted before the crash: the tables did not say so, so all of it is done again.
    let _was_promoted = fs::remove_file(home(other.path()).join("latest.json"));
    let again = open(other.path()).await;
    again.close().await;
    harness.close().await;
    for root in [root.path(), other.path()] {
        assert_eq!(latest_id(root), Some(blocked.to_string()));
        let mut both = [good.to_string(), blocked.to_string()];
        both.sort();
        assert_eq!(names(root, "materializations"), both);
        assert_eq!(names(root, "quarantine"), [waiting.to_string()]);
        assert_eq!(staged(root), 0);
    }
}

#[tokio::test]
async fn what_a_worker_stores_after_it_was_abandoned_is_removed_by_the_next_start_and_at_the_end() {
    let root = tempfile::tempdir().unwrap();
    let hasty = |config: &mut servo_runtime::Config| {
        config
            .start_with
            .adjust(SettingOrigin::Flag, |settings| settings.heartbeat_timeout = Millis::new(10));
        config.start_with.adjust(SettingOrigin::Flag, |settings| settings.heartbeat_grace = Millis::new(0));
    };
    let harness = Harness::open_with(directory(root.path()), Arc::default(), 0, hasty).await.unwrap();
    let run = harness.trigger("silent", one("a")).await;
    let sealed = within(taken(&harness.queue, "default")).await;
    let envelope = keys().open(&sealed, servo_core::Clock::now(&SystemClock)).unwrap();
    harness.workspace.started(&envelope.task_token, "remote-1").await.unwrap();
    let abandoned = move |state: &servo_engine::State| !servo_engine::effect::abandoned(state).is_empty();
    eventually("it is abandoned", async || harness.workspace.read(abandoned).await.unwrap()).await;
    let (caller, reason) = (Caller::user("me"), String::new());
    harness.workspace.cancel(CancelRun { run_id: run, caller, reason, force: false }).await.unwrap();
    // The worker knows nothing of it, stores what it made, and dies.
    let store = || {
        let id = materialization_of(envelope.attempt_id);
        put(&home(root.path()).join(format!("materializations/{id}")), "_commit.json");
        put(&home(root.path()).join(format!("quarantine/{id}")), "_reason.json");
        let staging = layout().staging(run, &envelope.task_key, 1);
        put(&root.path().join(layout().prefix()).join(staging), "data.parquet");
    };
    let is_clean = || {
        let homes = [names(root.path(), "materializations"), names(root.path(), "quarantine")];
        homes.iter().all(Vec::is_empty) && staged(root.path()) == 0
    };
    store();
    harness.close().await;
    assert!(is_clean(), "at the end");
    store();
    let harness = open(root.path()).await;
    harness.close().await;
    assert!(is_clean(), "after a start");
}
