//! A disk that is really full: a small tmpfs, or, where mounting is not permitted, file operations that say so.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use servo_engine::{RunState, SettingOrigin, TriggerRun};
use servo_projections::RunFilter;
use servo_runtime::{Error, Stores};
use servo_store::testing::{Fault, FaultyFiles};
use servo_store::{AppendError, FileBlobs, FileLog, FileLogOptions, OsFiles};

use crate::support::*;

/// A disk that can be filled and emptied.
enum Disk {
    Tmpfs(Mounted),
    Pretended(tempfile::TempDir, FaultyFiles),
}

/// Unmounts, whatever happens.
struct Mounted(tempfile::TempDir);

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(error) = unmount(self.0.path(), UnmountFlags::DETACH) {
            eprintln!("{} could not be unmounted: {error}", self.0.path().display());
        }
    }
}

impl Disk {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        match mount("tmpfs", directory.path(), "tmpfs", MountFlags::empty(), c"size=2m") {
            Ok(()) => Disk::Tmpfs(Mounted(directory)),
            Err(error) => {
                eprintln!("NOT a real full disk: mounting a tmpfs failed ({error}), pretending one instead");
                Disk::Pretended(directory, FaultyFiles::new(Arc::new(OsFiles)))
            }
        }
    }

    fn root(&self) -> &Path {
        match self {
            Disk::Tmpfs(mounted) => mounted.0.path(),
            Disk::Pretended(directory, _) => directory.path(),
        }
    }

    fn stores(&self) -> Stores {
        match self {
            Disk::Tmpfs(_) => directory(self.root()),
            Disk::Pretended(directory, files) => {
                let files = Arc::new(files.clone());
                let options = FileLogOptions::default();
                let log = FileLog::open_with(files.clone(), directory.path(), &layout(), options).unwrap();
                let blobs = FileBlobs::with_files(files, directory.path(), &layout());
                Stores { log: Arc::new(log), blobs: Arc::new(blobs), layout: layout(), data: None }
            }
        }
    }

    fn filler(&self) -> PathBuf {
        self.root().join("filler")
    }

    /// Fills the disk until not another byte fits.
    fn fill(&self) {
        if let Disk::Pretended(_, files) = self {
            files.fail_all(&["append", "create_new", "create_dir", "hard_link"], Fault::NoSpace);
            return;
        }
        let mut file = fs::OpenOptions::new().create(true).append(true).open(self.filler()).unwrap();
        let mut piece = 64 << 10;
        loop {
            match file.write(&vec![0; piece]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull && piece > 1 => piece /= 2,
                Err(error) if error.kind() == ErrorKind::StorageFull => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn empty(&self) {
        if let Disk::Pretended(_, files) = self {
            files.heal();
            return;
        }
        fs::remove_file(self.filler()).unwrap();
    }
}

/// Requests runs until one is refused: what is left of the last block may still take a batch or two, and space comes free
/// while old tables are deleted.
async fn refusal_of_a_full_disk(disk: &Disk, harness: &Harness, runs: &mut usize) -> Error {
    loop {
        disk.fill();
        let request = TriggerRun::new(format!("full {runs}"), one("a"), "test");
        match within(harness.workspace.trigger(request)).await {
            Ok(reply) => {
                harness.acknowledged.add(reply.accepted.unwrap());
                *runs += 1;
            }
            Err(Error::Recovering) => {}
            Err(error) => return error,
        }
        assert!(*runs < 100, "the disk takes no end of batches");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_said_plainly_loses_nothing_and_work_goes_on_when_there_is_space() {
    let disk = Disk::new();
    let script: Arc<Script> = Arc::default();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    script.let_task("gated", Behaviour::Gate(gate.clone()));
    let harness = Harness::open_with(disk.stores(), script.clone(), 2, |config| {
        config.start_with.adjust(SettingOrigin::Flag, |settings| settings.recent_runs = 2);
        config.flush_every = Duration::from_millis(50);
    })
    .await
    .unwrap();
    for i in 0..4 {
        harness.run(&format!("before {i}"), diamond()).await;
    }
    let at_work = harness.trigger("at work", plan(&[("gated", &[]), ("after", &["gated"])])).await;
    eventually("it is at work", async || script.begun().contains(&"gated".to_owned())).await;
    let mut runs = 5;

    let error = refusal_of_a_full_disk(&disk, &harness, &mut runs).await;
    let text = error.to_string();
    assert!(text.contains("no space left") && text.contains("free some space"), "{text}");
    assert!(text.contains(&disk.root().display().to_string()), "names the place: {text}");
    assert!(
        matches!(&error, Error::NotDurable(cause) if matches!(**cause, AppendError::Full { .. })),
        "{error}"
    );
    assert!(error.is_transient());

    // The task ends while its result cannot be written; the worker insists. Reads go on.
    gate.add_permits(1);
    let shown = loop {
        match within(harness.workspace.runs(None, 100, RunFilter::default())).await {
            Ok(shown) => break shown,
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    };
    assert!(shown.len() >= 5);
    harness.assert_acknowledged_is_in_the_log().await;
    for _ in 0..2 {
        let again = refusal_of_a_full_disk(&disk, &harness, &mut runs).await;
        assert!(again.is_transient(), "{again}");
    }

    disk.empty();
    let run = loop {
        match within(harness.workspace.trigger(TriggerRun::new("space again", diamond(), "test"))).await {
            Ok(reply) => break reply.run_id,
            Err(error) => assert!(error.is_transient(), "{error}"),
        }
    };
    runs += 1;
    assert_eq!(harness.ended(run).await.run.state, RunState::Succeeded);
    assert_eq!(harness.ended(at_work).await.run.state, RunState::Succeeded, "its result was not lost");
    assert_eq!(script.begun().iter().filter(|name| *name == "gated").count(), 1, "and it did not run again");
    let all = harness.workspace.runs(None, 200, RunFilter::default()).await.unwrap();
    assert_eq!(all.len(), runs);
    for run in &all {
        assert_eq!(harness.ended(run.run_id).await.run.state, RunState::Succeeded, "{}", run.run_key);
    }
    script.assert_no_attempt_ran_twice();
    harness.assert_acknowledged_is_in_the_log().await;
    harness.assert_replay_is_live().await;
    let stores = harness.stores.clone();
    harness.close().await;
    let report = assert_tables_verify(&stores).await;
    assert_eq!(report.through + 1, stores.log.next_seq().await.unwrap(), "the tables are complete");
    drop(stores);
    let harness = Harness::open_with(disk.stores(), script, 2, |_| {}).await.unwrap();
    assert_eq!(harness.run("afterwards", diamond()).await.run.state, RunState::Succeeded);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flush_that_fails_for_a_while_is_written_once_when_it_succeeds() {
    let root = tempfile::tempdir().unwrap();
    let files = FaultyFiles::new(Arc::new(OsFiles));
    let blobs = FileBlobs::with_files(Arc::new(files.clone()), root.path(), &layout());
    let stores = Stores { blobs: Arc::new(blobs), ..directory(root.path()) };
    let harness = Harness::open(stores, |config| {
        config.start_with.adjust(SettingOrigin::Flag, |settings| settings.recent_runs = 1);
        config.flush_every = Duration::from_millis(1);
    })
    .await
    .unwrap();
    for i in 0..3 {
        harness.run(&format!("before {i}"), one("a")).await;
    }
    files.fail_all(&["create_new"], Fault::NoSpace);
    for i in 0..5 {
        harness.run(&format!("run {i}"), one("a")).await;
    }
    let tries = files.calls();
    eventually("it was tried a few times", async || files.calls() > tries + 3).await;
    let shown = harness.workspace.runs(None, 100, RunFilter::default()).await.unwrap();
    assert_eq!(shown.len(), 8, "readers do not notice");
    files.heal();
    let log = harness.stores.log.clone();
    eventually("the tables have caught up", async || {
        let next = log.next_seq().await.unwrap();
        harness.workspace.manifest().is_some_and(|manifest| manifest.watermarks.last_seq + 1 == next)
    })
    .await;
    let manifest = harness.workspace.manifest().unwrap();
    let rows = |table: &str| manifest.history[table].iter().map(|file| file.rows).sum::<u64>();
    assert_eq!(rows("runs"), 7, "all but the newest, each once");
    assert_eq!(rows("run_key_index"), 8);
    let stores = harness.stores.clone();
    harness.close().await;
    assert_tables_verify(&stores).await;
}
