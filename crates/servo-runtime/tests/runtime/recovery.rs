//! Coming back: from a clean end, from a crash, from damage. The state is always that of the log.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use servo_engine::event::{EventData, encode_batch};
use servo_engine::rows::HotRows;
use servo_engine::{RunState, SettingOrigin, State, TaskState, TriggerRun};
use servo_projections::rebuild::{RebuildOptions, rebuild};
use servo_projections::{Manifest, Projection, RunFilter};
use servo_runtime::{Config, Error, ErrorKind as RuntimeErrorKind, Stores, SystemClock, Workspace, catch_up};
use servo_store::{ErrorKind, FileBlobs, FileLog, FileLogOptions, Log, OsFiles, Record, SystemPutIds};

use crate::support::*;

fn forgetful(config: &mut Config) {
    config.start_with.adjust(SettingOrigin::Flag, |settings| settings.recent_runs = 3);
    config.flush_every = Duration::from_millis(5);
}

/// Work of every kind: success, failure, retries, a conflict, and a run that is still at it.
async fn work(harness: &Harness) {
    harness.script.let_task("bad", Behaviour::Fail(u32::MAX));
    harness.script.let_task("flaky_2", Behaviour::Fail(2));
    harness.script.let_task("stuck", Behaviour::Hang);
    for i in 0..6 {
        harness.run(&format!("diamond {i}"), diamond()).await;
    }
    harness.run("failing", plan(&[("bad", &[]), ("after", &["bad"])])).await;
    harness.run("flaky", chain("flaky", 4, Some((2, quick_retries(5))))).await;
    harness.run("wide", wide("wide", 12)).await;
    assert!(harness.workspace.trigger(TriggerRun::new("wide", one("other"), "test")).await.is_err());
    harness.trigger("stuck", plan(&[("stuck", &[]), ("after", &["stuck"])])).await;
    eventually("a task is running", async || harness.script.begun().contains(&"stuck".to_owned())).await;
}

/// Stores whose log rolls its segments every few batches.
fn with_small_segments(root: &Path) -> Stores {
    let options = FileLogOptions { segment_bytes: 4_000, reserve_bytes: 0 };
    let log = FileLog::open_with(Arc::new(OsFiles), root, &layout(), options).unwrap();
    Stores {
        log: Arc::new(log),
        blobs: Arc::new(FileBlobs::new(root, &layout())),
        layout: layout(),
        data: None,
    }
}

#[tokio::test]
async fn replay_of_the_log_is_the_live_state_byte_for_byte() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::open(directory(root.path()), forgetful).await.unwrap();
    work(&harness).await;
    harness.assert_replay_is_live().await;
    // From Parquet, and from Parquet with the tail of the log, wherever the tables are just now.
    let live = harness.rows().await;
    let projection = Projection::open_latest(harness.stores.blobs.clone(), layout()).await.unwrap().unwrap();
    let rows = projection.hot_rows().await.unwrap();
    let at_tables = replay(harness.stores.log.as_ref(), rows.head.seq).await;
    assert_same_rows(&rows, &at_tables.rows());
    let mut recovered = State::from_rows(tenant(), workspace_id(), rows).unwrap();
    for record in records(harness.stores.log.as_ref()).await {
        if record.seq > recovered.head().seq && record.seq <= live.head.seq {
            recovered.apply_batch(record.seq, &servo_engine::event::decode_batch(&record.payload).unwrap());
        }
    }
    assert_same_rows(&live, &recovered.rows());
    let stores = harness.stores.clone();
    harness.close().await;
    assert_tables_verify(&stores).await;
}

#[tokio::test]
async fn a_restart_finds_the_state_it_left() {
    let root = tempfile::tempdir().unwrap();
    let harness = Harness::open(directory(root.path()), forgetful).await.unwrap();
    for i in 0..6 {
        harness.run(&format!("diamond {i}"), diamond()).await;
    }
    harness.close().await;
    let before = rows_of(root.path()).await;
    for _ in 0..3 {
        assert_same_rows(&before, &rows_of(root.path()).await);
    }
}

/// Opens a workspace without workers, and closes it again.
async fn rows_of(root: &Path) -> HotRows {
    let harness = Harness::open_with(directory(root), Arc::default(), 0, forgetful).await.unwrap();
    let rows = harness.rows().await;
    harness.assert_replay_is_live().await;
    harness.close().await;
    rows
}

fn home(root: &Path) -> PathBuf {
    root.join(layout().prefix())
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else if let Err(error) = fs::copy(entry.path(), &target) {
            assert_eq!(
                error.kind(),
                std::io::ErrorKind::NotFound,
                "old files are deleted meanwhile: {error}"
            );
        }
    }
}

/// Copies the files as a crash would leave them: manifests, then the tables they name, then the log, which is never
/// behind either.
fn copy_alive(from: &Path, to: &Path) {
    for dir in ["manifests", "state", "ledger"].into_iter().filter(|dir| home(from).join(dir).exists()) {
        copy_tree(&home(from).join(dir), &home(to).join(dir));
    }
}

/// Every file below a directory, with its content.
fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else if !path.ends_with(".lock") {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_taken_while_it_runs_opens_and_goes_on() {
    let root = tempfile::tempdir().unwrap();
    let harness = Arc::new(Harness::open(directory(root.path()), forgetful).await.unwrap());
    let busy = tokio::spawn({
        let harness = harness.clone();
        async move {
            for i in 0..25 {
                let wide = harness.trigger(&format!("wide {i}"), wide("w", 5)).await;
                harness.run(&format!("diamond {i}"), diamond()).await;
                harness.ended(wide).await;
            }
        }
    });
    for copy in 0..5 {
        eventually("it has moved on", async || harness.script.begun().len() > copy * 40).await;
        let before = harness.workspace.runs(None, 1_000, RunFilter::default()).await.unwrap();
        let copied = tempfile::tempdir().unwrap();
        copy_alive(root.path(), copied.path());
        let again = Harness::open(directory(copied.path()), forgetful).await.unwrap();
        for run in before {
            let detail = again.ended(run.run_id).await;
            assert_eq!(detail.run.state, RunState::Succeeded);
            assert_eq!(detail.run.run_key, run.run_key);
        }
        again.assert_replay_is_live().await;
        let stores = again.stores.clone();
        again.close().await;
        assert_tables_verify(&stores).await;
    }
    within(busy).await.unwrap();
    Arc::into_inner(harness).unwrap().close().await;
}

/// A workspace that has ended cleanly, and its newest manifest.
async fn finished(root: &Path) -> (HotRows, Manifest) {
    let harness = Harness::open(directory(root), forgetful).await.unwrap();
    harness.script.let_task("bad", Behaviour::Fail(u32::MAX));
    for i in 0..5 {
        harness.run(&format!("diamond {i}"), diamond()).await;
    }
    harness.run("failing", plan(&[("bad", &[]), ("after", &["bad"])])).await;
    harness.close().await;
    let rows = rows_of(root).await;
    let projection =
        Projection::open_latest(Arc::new(FileBlobs::new(root, &layout())), layout()).await.unwrap().unwrap();
    (rows, Manifest::clone(projection.manifest()))
}

/// Files that recovery reads, each of another table or kind.
fn needed_files(manifest: &Manifest) -> Vec<String> {
    let hot = manifest.base_snapshot.iter().map(|base| &base.tables);
    let hot = hot.chain(manifest.l0_deltas.iter().map(|delta| &delta.tables)).flatten();
    let keys =
        manifest.history.iter().filter(|(table, _)| table.contains("key") && !table.contains("conflict"));
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for (table, refs) in hot.chain(keys) {
        files.insert(table, refs.last().unwrap().path.clone());
    }
    assert!(files.len() >= 5, "{files:?}");
    files.into_values().collect()
}

/// The name of a kind of damage, and the function that applies it to a file.
type Damage<'a> = (&'a str, &'a dyn Fn(&Path));

#[tokio::test]
async fn damaged_tables_are_made_again_from_the_log() {
    let root = tempfile::tempdir().unwrap();
    let (before, manifest) = finished(root.path()).await;
    let truncate = |path: &Path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    };
    let flip = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 3;
        bytes[middle] ^= 0x20;
        fs::write(path, bytes).unwrap();
    };
    let empty = |path: &Path| fs::write(path, b"").unwrap();
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    let damages: [Damage<'_>; 4] =
        [("cut off", &truncate), ("altered", &flip), ("emptied", &empty), ("missing", &remove)];
    let mut victims = needed_files(&manifest);
    victims.push(layout().manifest(manifest.revision));
    for (at, victim) in victims.iter().enumerate() {
        // Two kinds of damage for each, all four for the manifest. A numbered manifest that is gone is not damage:
        // the one before it counts, with a longer tail.
        let is_manifest = at + 1 == victims.len();
        let chosen = damages.iter().enumerate().filter(|(i, _)| is_manifest || i % 2 == at % 2);
        for (what, damage) in chosen.map(|(_, damage)| damage) {
            let copy = tempfile::tempdir().unwrap();
            copy_tree(root.path(), copy.path());
            damage(&home(copy.path()).join(victim));
            let rows = rows_of(copy.path()).await;
            assert_same_rows(&before, &rows);
            let stores = directory(copy.path());
            assert_tables_verify(&stores).await;
            drop(stores);
            if at % 3 == 0 {
                let harness = Harness::open(directory(copy.path()), forgetful).await.unwrap();
                assert_eq!(
                    harness.run("more", diamond()).await.run.state,
                    RunState::Succeeded,
                    "{victim} {what}"
                );
                harness.close().await;
            }
        }
    }
}

#[tokio::test]
async fn a_damaged_file_of_history_is_named_and_rebuilt_on_request() {
    let root = tempfile::tempdir().unwrap();
    let (before, manifest) = finished(root.path()).await;
    let victim = manifest.history["runs"][0].path.clone();
    let path = home(root.path()).join(&victim);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
    let harness = Harness::open(directory(root.path()), forgetful).await.unwrap();
    assert_same_rows(&before, &harness.rows().await);
    let error = harness.workspace.runs(None, 100, RunFilter::default()).await.unwrap_err();
    assert!(error.to_string().contains(&victim) && error.to_string().contains("rebuild"), "{error}");
    assert_eq!(harness.run("more", one("a")).await.run.state, RunState::Succeeded, "work goes on");
    let stores = harness.stores.clone();
    harness.close().await;
    rebuild(stores.log.as_ref(), &rebuild_context(&stores), &RebuildOptions::default(), &mut |_| {})
        .await
        .unwrap();
    assert_tables_verify(&stores).await;
    drop(stores);
    let harness = Harness::open(directory(root.path()), forgetful).await.unwrap();
    assert_eq!(harness.workspace.runs(None, 100, RunFilter::default()).await.unwrap().len(), 7);
    harness.close().await;
}

fn segments(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(home(root).join(layout().ledger_dir()))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    found.sort();
    found
}

/// Alters one byte of a line, counted from 1.
fn damage_line(segment: &Path, line: usize) {
    let text = fs::read_to_string(segment).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let altered = lines[line - 1].replacen("\"timestamp\":\"2", "\"timestamp\":\"3", 1);
    assert_ne!(altered, lines[line - 1]);
    lines[line - 1] = altered;
    fs::write(segment, lines.join("\n") + "\n").unwrap();
}

#[tokio::test]
async fn a_damaged_line_in_the_middle_of_the_log_is_refused_and_named() {
    let root = tempfile::tempdir().unwrap();
    finished(root.path()).await;
    let segment = segments(root.path()).pop().unwrap();
    damage_line(&segment, 4);
    let before = contents(root.path());
    let refused = Stores::open_directory(root.path(), tenant(), workspace_id()).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Corrupt);
    let text = refused.to_string();
    assert!(text.contains(&segment.display().to_string()) && text.contains("line 4"), "{text}");
    assert_eq!(contents(root.path()), before, "nothing has changed");
}

#[tokio::test]
async fn a_damaged_line_in_a_sealed_segment_is_refused_when_it_is_needed() {
    let root = tempfile::tempdir().unwrap();
    let open = || with_small_segments(root.path());
    let harness = Harness::open(open(), forgetful).await.unwrap();
    for i in 0..5 {
        harness.run(&format!("diamond {i}"), diamond()).await;
    }
    harness.close().await;
    let sealed = segments(root.path())[1].clone();
    damage_line(&sealed, 1);
    // The tables have it: nobody needs to read it, and the workspace opens without looking at history.
    let harness = Harness::open(open(), forgetful).await.unwrap();
    assert_eq!(harness.run("more", diamond()).await.run.state, RunState::Succeeded);
    harness.close().await;
    // Without tables it is needed.
    fs::remove_dir_all(home(root.path()).join("manifests")).unwrap();
    let before = contents(root.path());
    let refused = Harness::open(open(), forgetful).await.err().unwrap().to_string();
    assert!(refused.contains(&sealed.display().to_string()) && refused.contains("line 1"), "{refused}");
    assert_eq!(contents(root.path()), before, "nothing has changed");
}

#[tokio::test]
async fn a_torn_tail_was_never_acknowledged_and_is_dropped() {
    let root = tempfile::tempdir().unwrap();
    let (before, _) = finished(root.path()).await;
    let segment = segments(root.path()).pop().unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    let torn = bytes[last..bytes.len() - 20].to_vec();
    bytes.extend(torn);
    fs::write(&segment, bytes).unwrap();
    assert_same_rows(&before, &rows_of(root.path()).await);
}

#[tokio::test]
async fn a_log_that_lost_its_end_is_refused() {
    let root = tempfile::tempdir().unwrap();
    finished(root.path()).await;
    let segment = segments(root.path()).pop().unwrap();
    let text = fs::read_to_string(&segment).unwrap();
    let kept: Vec<&str> = text.lines().take(5).collect();
    fs::write(&segment, kept.join("\n") + "\n").unwrap();
    let before = contents(root.path());
    let refused = Harness::open(directory(root.path()), forgetful).await.err().unwrap();
    assert!(matches!(refused, Error::LogBehind { last: 5, .. }), "{refused}");
    assert!(!refused.is_transient());
    assert_eq!(contents(root.path()), before, "nothing has changed");
}

#[tokio::test]
async fn a_manifest_of_a_newer_servo_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let (_, manifest) = finished(root.path()).await;
    for name in [layout().manifest(manifest.revision), layout().manifest_latest().to_owned()] {
        let path = home(root.path()).join(&name);
        let mut value: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        value["schema_version"] = 999.into();
        fs::write(&path, serde_json::to_vec(&value).unwrap()).unwrap();
    }
    let before = contents(root.path());
    let refused = Harness::open(directory(root.path()), forgetful).await.err().unwrap().to_string();
    assert!(refused.contains("999") && refused.contains("newer Servo"), "{refused}");
    assert!(refused.contains("manifest"), "names the file: {refused}");
    assert_eq!(contents(root.path()), before, "nothing has changed");
}

/// Appends a batch behind the back of the workspace.
async fn append(root: &Path, payload: Vec<u8>) {
    let log = FileLog::open(root, &layout()).unwrap();
    let seq = log.next_seq().await.unwrap();
    log.append(Record { seq, epoch: 1, put_id: put_id(), payload: payload.into() }).await.unwrap();
}

async fn last_event(root: &Path) -> servo_engine::Event {
    let log = FileLog::open(root, &layout()).unwrap();
    events(&log).await.pop().unwrap()
}

fn from_the_future(like: &servo_engine::Event) -> servo_engine::Event {
    let mut event = like.clone();
    event.id = like.id.next().unwrap();
    event.idempotency_key = "teleported:1".to_owned();
    event.data = EventData::Unknown(servo_engine::event::UnknownEvent {
        event_type: "TaskTeleported".to_owned(),
        event_version: 1,
        payload: r#"{"to":["mars"]}"#.to_owned(),
    });
    event
}

#[tokio::test]
async fn a_log_with_an_unknown_event_is_read_and_never_written_to() {
    let root = tempfile::tempdir().unwrap();
    finished(root.path()).await;
    let mut payload = Vec::new();
    encode_batch(&[from_the_future(&last_event(root.path()).await)], &mut payload);
    append(root.path(), payload).await;
    let stores = directory(root.path());
    let before = records(stores.log.as_ref()).await;
    drop(stores);
    for _ in 0..2 {
        let refused = Harness::open(directory(root.path()), forgetful).await.err().expect("it is refused");
        assert!(matches!(refused, Error::NewerLog { .. }), "{refused}");
        assert_eq!(refused.kind(), RuntimeErrorKind::Fatal);
        let said = refused.to_string();
        assert!(said.contains("TaskTeleported (version 1"), "{said}");
    }
    let stores = directory(root.path());
    assert_eq!(records(stores.log.as_ref()).await, before, "nothing was written");
    let put_ids = Arc::new(SystemPutIds::default());
    let refused =
        catch_up(&stores, &SystemClock, put_ids).await.expect_err("tables cannot be written either");
    assert!(matches!(refused, Error::NewerLog { .. }), "{refused}");
    let refused =
        rebuild(stores.log.as_ref(), &rebuild_context(&stores), &RebuildOptions::default(), &mut |_| {})
            .await;
    let said = refused.expect_err("nor can they be rebuilt").to_string();
    assert!(said.contains("TaskTeleported"), "{said}");
    let config = config(&servo_queue::LocalQueue::new(1));
    let reader = Workspace::open_read_only(stores.clone(), config, None).await.unwrap();
    assert_eq!(reader.read(|state| state.head().unknown_events).await.unwrap(), 1);
    reader.shutdown().await.unwrap();
    let kept = events(stores.log.as_ref()).await.into_iter().any(|event| {
        matches!(&event.data, EventData::Unknown(unknown)
            if unknown.event_type == "TaskTeleported" && unknown.payload == r#"{"to":["mars"]}"#)
    });
    assert!(kept, "an unknown event stays in the log as it was written");
}

#[tokio::test]
async fn an_event_that_makes_no_sense_is_refused_with_its_place() {
    let root = tempfile::tempdir().unwrap();
    finished(root.path()).await;
    let mut payload = Vec::new();
    encode_batch(&[from_the_future(&last_event(root.path()).await)], &mut payload);
    let text = String::from_utf8(payload).unwrap().replace("TaskTeleported", "TaskStarted");
    append(root.path(), text.into_bytes()).await;
    let seq = FileLog::open(root.path(), &layout()).unwrap().next_seq().await.unwrap() - 1;
    let before = contents(root.path());
    let refused = Harness::open(directory(root.path()), forgetful).await.err().unwrap();
    assert!(matches!(refused, Error::Batch { seq: at, .. } if at == seq), "{refused}");
    let text = refused.to_string();
    assert!(text.contains("TaskStarted") && text.contains(&root.path().display().to_string()), "{text}");
    assert_eq!(contents(root.path()), before, "nothing has changed");
}

#[tokio::test]
async fn inv_5_work_that_was_in_the_queue_or_running_is_not_lost_by_a_restart() {
    let root = tempfile::tempdir().unwrap();
    let script: Arc<Script> = Arc::default();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    script.let_task("gated", Behaviour::Gate(gate.clone()));
    let harness = Harness::open_with(directory(root.path()), script.clone(), 2, forgetful).await.unwrap();
    let mut runs = Vec::new();
    for i in 0..10 {
        runs.push(harness.trigger(&format!("run {i}"), plan(&[("gated", &[]), ("after", &["gated"])])).await);
    }
    eventually("both slots are taken", async || script.begun().len() == 2).await;
    harness.close().await;
    gate.add_permits(1_000);
    let harness = Harness::open_with(directory(root.path()), script.clone(), 2, forgetful).await.unwrap();
    for run in runs {
        let detail = harness.ended(run).await;
        assert!(task_states(&detail).values().all(|state| *state == TaskState::Succeeded));
    }
    script.assert_no_attempt_ran_twice();
    harness.close().await;
}

#[tokio::test]
async fn a_log_that_is_cut_behind_its_tables_still_recovers() {
    let root = tempfile::tempdir().unwrap();
    let open = || with_small_segments(root.path());
    let short = |config: &mut Config| {
        forgetful(config);
        config.keep_log_batches = Some(5);
    };
    let harness = Harness::open(open(), short).await.unwrap();
    for i in 0..10 {
        harness.run(&format!("diamond {i}"), diamond()).await;
    }
    let before = harness.rows().await;
    let log = harness.stores.log.clone();
    eventually("old batches are deleted", async || log.boundary().await.unwrap() > 10).await;
    drop(log);
    harness.close().await;
    let harness = Harness::open(open(), short).await.unwrap();
    let rows = harness.rows().await;
    assert_eq!((&rows.runs, &rows.tasks, &rows.run_keys), (&before.runs, &before.tasks, &before.run_keys));
    assert_eq!(harness.run("more", diamond()).await.run.state, RunState::Succeeded);
    assert_eq!(harness.workspace.runs(None, 100, RunFilter::default()).await.unwrap().len(), 11);
    harness.close().await;
    // Damaged tables cannot be made from what is left without the tables of the boundary, and that is said.
    let projection = Projection::open_latest(open().blobs, layout()).await.unwrap().unwrap();
    let victim = needed_files(projection.manifest()).pop().unwrap();
    fs::remove_file(home(root.path()).join(&victim)).unwrap();
    fs::remove_file(home(root.path()).join("rebuild/boundary.json")).unwrap();
    let refused = Harness::open(open(), short).await.err().unwrap().to_string();
    assert!(refused.contains("have been deleted"), "{refused}");
}

#[tokio::test]
async fn what_a_killed_process_left_beside_the_tables_is_removed() {
    let root = tempfile::tempdir().unwrap();
    let (_, newest) = finished(root.path()).await;
    let unpublished = format!("l0-{:020}-01JHMVFXZV0000000000000007.parquet", newest.revision + 1);
    let runs = home(root.path()).join("state/orchestration/runs");
    let manifests = home(root.path()).join("manifests/orchestration");
    let left = [
        runs.join(unpublished),
        runs.join(".tmp-0123456789abcdef-7"),
        manifests.join(".tmp-0123456789abcdef-8"),
    ];
    for path in &left {
        fs::write(path, "x").unwrap();
    }
    let harness = Harness::open(directory(root.path()), forgetful).await.unwrap();
    harness.run("more", diamond()).await;
    harness.close().await;
    for path in left {
        assert!(!path.exists(), "{}", path.display());
    }
}
