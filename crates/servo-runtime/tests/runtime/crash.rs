//! A real process, killed with SIGKILL at each of its first 300 writes, restarted, and compared with one that was not.
//!
//! A kill keeps what the kernel has taken: what an fsync is for is tested with the stores. What is tested here is that
//! every order of writes leaves something to go on from, and that nobody was told more than was written.

#![allow(clippy::disallowed_methods, reason = "tests wait in real time")]
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};
use servo_core::EventId;
use servo_engine::event::decode_batch;
use servo_engine::{Plan, SettingOrigin, Settings, StartWith, State};
use servo_runtime::Stores;
use servo_store::testing::{Fault, FaultyFiles};
use servo_store::{FileBlobs, FileLog, FileLogOptions, OsFiles};

use crate::support::*;

const KILLS: u64 = 300;
const CHILD_ROOT: &str = "SERVO_TEST_CRASH_ROOT";
const KILL_AT: &str = "SERVO_TEST_CRASH_AT";
const CHILD: &str = "crash::the_process_that_is_killed";

/// How the process dies at its nth write.
#[derive(Debug, Clone, Copy)]
enum Death {
    /// Before the write.
    Before,
    /// In the middle of it, if it writes bytes: some of them are written.
    Torn,
    /// A moment after it, wherever the threads are by then.
    After,
}

impl Death {
    fn at(number: u64) -> Self {
        match number % 3 {
            0 => Death::Before,
            1 => Death::Torn,
            _ => Death::After,
        }
    }
}

fn settings() -> Settings {
    Settings { recent_runs: 1, ..Settings::default() }
}

/// Waves of runs: those of a wave at once, and the tables written after each.
fn script() -> Vec<Vec<(&'static str, Plan)>> {
    let failing = plan(&[("bad", &[]), ("skipped", &["bad"]), ("apart", &[])]);
    let chain = chain("chain", 6, Some((3, quick_retries(8))));
    vec![
        vec![("diamond", diamond()), ("failing", failing)],
        vec![("chain", chain), ("wide", wide("wide", 12))],
        vec![("last", one("last"))],
    ]
}

fn die() -> ! {
    kill_process(getpid(), Signal::KILL).unwrap();
    loop {
        std::thread::park();
    }
}

/// Counts every call that changes the disk, of the log and of the tables, and dies at the given one.
fn deadly_files(kill_at: u64) -> FaultyFiles {
    let files = FaultyFiles::new(Arc::new(OsFiles));
    if kill_at == 0 {
        return files;
    }
    let mut torn = false;
    files.on_call(move |call| {
        if torn {
            die();
        }
        if call.number != kill_at {
            return None;
        }
        match Death::at(kill_at) {
            Death::Torn if call.operation == "append" => {
                torn = true;
                // The next write, whoever makes it, finds the half of this one and is not made.
                return Some(Fault::TornWrite(1 + kill_at as usize % 90));
            }
            Death::Torn | Death::Before => die(),
            Death::After => {
                let moment = Duration::from_micros(kill_at * 37 % 1_500);
                std::thread::spawn(move || {
                    let due = Instant::now() + moment;
                    while Instant::now() < due {
                        std::hint::spin_loop();
                    }
                    die()
                });
            }
        }
        None
    });
    files
}

/// Runs one plan to its end and prints acknowledged events at once.
async fn run_and_tell(harness: &Harness, key: &str, plan: Plan) {
    let request = servo_engine::TriggerRun::new(key, plan, "test");
    // A torn write is an error before it is a death: nobody is told that it was accepted.
    let Ok(servo_engine::RunReply { run_id: run, accepted }) = harness.workspace.trigger(request).await
    else {
        return;
    };
    say(&format!("run {key}"));
    if let Some(event) = accepted {
        say(&format!("event {event}"));
    }
    let detail = harness.ended(run).await;
    let tasks: Vec<String> =
        task_states(&detail).into_iter().map(|(name, state)| format!("{name}={state}")).collect();
    say(&format!("final {key}: {} {}", detail.run.state, tasks.join(" ")));
}

/// The child. Without its environment it is not one, and has nothing to do.
#[test]
fn the_process_that_is_killed() {
    let Some(root) = std::env::var_os(CHILD_ROOT).map(PathBuf::from) else { return };
    let kill_at = std::env::var(KILL_AT).map_or(0, |text| text.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let files = deadly_files(kill_at);
        let shared = Arc::new(files.clone());
        let log = FileLog::open_with(
            shared.clone(),
            &root,
            &layout(),
            FileLogOptions { segment_bytes: 8_000, reserve_bytes: 0 },
        );
        let stores = Stores {
            log: Arc::new(log.unwrap()),
            blobs: Arc::new(FileBlobs::with_files(shared, &root, &layout())),
            layout: layout(),
            data: None,
        };
        let harness = Harness::open(stores, |config| {
            config.start_with = StartWith::differing(&settings(), SettingOrigin::Flag);
            // Many small flushes where it is to be killed among them, few where it only has to come to an end.
            config.flush_every = Duration::from_millis(if kill_at == 0 { 10 } else { 2 });
        })
        .await
        .unwrap();
        harness.script.let_task("chain_3", Behaviour::Fail(2));
        harness.script.let_task("bad", Behaviour::Fail(u32::MAX));
        for wave in script() {
            let runs = wave.into_iter().map(|(key, plan)| run_and_tell(&harness, key, plan));
            futures::future::join_all(runs).await;
            eventually("the tables have it all", async || {
                let next = harness.stores.log.next_seq().await.unwrap();
                harness.workspace.manifest().is_some_and(|manifest| manifest.watermarks.last_seq + 1 == next)
            })
            .await;
        }
        harness.close().await;
        say(&format!("writes {}", files.calls()));
    });
}

/// The output of a child process before its end.
#[derive(Debug, Default)]
struct Said {
    runs: BTreeSet<String>,
    events: BTreeSet<EventId>,
    finals: BTreeMap<String, String>,
    writes: u64,
}

/// In memory where possible: a kill loses nothing that the kernel has, so syncing only costs time here.
fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn start(root: &Path, kill_at: u64) -> (Output, Said) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", CHILD, "--nocapture", "--test-threads", "1"]);
    command.env(CHILD_ROOT, root).env(KILL_AT, kill_at.to_string()).env(PRINT_ACKNOWLEDGED, "1");
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut said = Said::default();
    for line in text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')) {
        let Some(at) = line.find("@@ ") else { continue };
        let (what, rest) = line[at + 3..].split_once(' ').unwrap();
        match what {
            "run" => drop(said.runs.insert(rest.to_owned())),
            "event" => drop(said.events.insert(rest.parse().unwrap())),
            "final" => {
                let (key, state) = rest.split_once(": ").unwrap();
                said.finals.insert(key.to_owned(), state.to_owned());
            }
            "writes" => said.writes = rest.parse().unwrap(),
            other => panic!("a child said {other}"),
        }
    }
    (output, said)
}

fn finish(root: &Path) -> Said {
    let (output, said) = start(root, 0);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// States of all runs and tasks as the log has them, and the checks that hold for every workspace at rest.
async fn examine(root: &Path, acknowledged: &BTreeSet<EventId>) -> BTreeMap<String, String> {
    let stores = directory(root);
    assert_in_log(acknowledged, stores.log.as_ref()).await;
    let through = stores.log.next_seq().await.unwrap() - 1;
    let report = assert_tables_verify(&stores).await;
    assert_eq!(report.through, through, "the tables are complete");
    let describe = |run: &servo_engine::Run| {
        let tasks: Vec<String> =
            run.tasks.iter().map(|task| format!("{}={}", name_of(&task.key), task.state)).collect();
        (run.row().run_key, format!("{} {}", run.state, tasks.join(" ")))
    };
    // Runs leave memory soon after their end: each is described as it was last seen.
    let mut state = State::new(tenant(), workspace_id());
    let mut seen = BTreeMap::new();
    for record in records(stores.log.as_ref()).await {
        // One by one: of two runs that end in one batch the first has left memory after it.
        for event in decode_batch(&record.payload).unwrap() {
            state.apply(&event);
            seen.extend(state.runs().map(describe));
        }
        state.apply_batch(record.seq, &[]);
    }
    seen
}

/// Kills at one write, restarts, and compares.
async fn kill_and_compare(kill_at: u64, expected: &BTreeMap<String, String>) {
    let root = scratch();
    let (output, before) = start(root.path(), kill_at);
    let context = format!("killed {:?} write {kill_at}", Death::at(kill_at));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.signal(), Some(9), "{context}: it did not come that far: {stderr}");
    let mut acknowledged = before.events;
    if kill_at.is_multiple_of(5) {
        // Killed again while it recovers.
        let (_, again) = start(root.path(), 1 + kill_at * 7 % 90);
        acknowledged.extend(again.events);
    }
    let after = finish(root.path());
    assert_eq!(&after.finals, expected, "{context}");
    acknowledged.extend(after.events);
    let in_log = examine(root.path(), &acknowledged).await;
    assert_eq!(&in_log, expected, "{context}");
    for run in &before.runs {
        assert!(in_log.contains_key(run), "{context}: run {run} was acknowledged and is lost");
    }
}

#[test]
fn a_process_killed_at_each_of_its_first_300_writes_ends_as_if_it_had_not_been() {
    let root = scratch();
    let (_, undisturbed) = start(root.path(), u64::MAX);
    assert!(undisturbed.writes > KILLS, "the script makes only {} writes", undisturbed.writes);
    let expected = undisturbed.finals;
    assert_eq!(expected.len(), script().iter().map(Vec::len).sum::<usize>());
    assert_eq!(expected["failing"], "FAILED apart=SUCCEEDED bad=FAILED skipped=SKIPPED");
    let next = AtomicU64::new(1);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                loop {
                    let kill_at = next.fetch_add(1, Ordering::SeqCst);
                    if kill_at > KILLS {
                        return;
                    }
                    runtime.block_on(kill_and_compare(kill_at, &expected));
                }
            });
        }
    });
}
