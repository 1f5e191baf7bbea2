//! The in-memory disk: processes that die, and its hook.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex};

use futures::executor::block_on;
use servo_store::conformance::layout;
use servo_store::testing::{MemoryDisk, MemoryFiles, OperationKind, Verdict};
use servo_store::{Blobs, FileBlobs, FileSystem, LockOutcome, OpenFile, PutOutcome};

fn path(path: &str) -> &Path {
    Path::new(path)
}

/// Lets the next operation of a kind end so, and no other.
fn once(disk: &MemoryDisk, kind: OperationKind, verdict: Verdict) {
    let mut waiting = true;
    disk.on_write(Box::new(move |operation| {
        if operation.kind == kind && std::mem::take(&mut waiting) { verdict } else { Verdict::Go }
    }));
}

/// A file with "old" in it, durable.
fn with_file(disk: &MemoryDisk) -> (MemoryFiles, Box<dyn OpenFile>) {
    let files = disk.process();
    let mut file = files.create_new(path("/a")).expect("nothing fails yet");
    file.append(b"old").expect("nothing fails yet");
    file.sync_data().expect("nothing fails yet");
    files.sync_dir(path("/")).expect("nothing fails yet");
    (files, file)
}

fn is_dead<T>(result: std::io::Result<T>) -> bool {
    result.is_err_and(|error| error.to_string() == "the process is dead")
}

#[test]
fn a_killed_process_can_do_nothing_and_what_it_wrote_stays() {
    let disk = MemoryDisk::new();
    let (files, mut file) = with_file(&disk);
    file.append(b" and new").unwrap();
    let LockOutcome::Acquired(lock) = files.try_lock(path("/lock"), "one").unwrap() else {
        panic!("the lock is free")
    };
    let other = disk.process();
    assert!(
        matches!(other.try_lock(path("/lock"), "two").unwrap(), LockOutcome::HeldBy(holder) if holder == "one")
    );
    let clone = files.clone();
    files.kill();
    assert!(!files.is_alive() && !clone.is_alive() && other.is_alive());
    assert!(is_dead(file.append(b"x")) && is_dead(file.sync_data()) && is_dead(file.truncate(0)));
    assert!(is_dead(clone.create_dir(path("/d"))) && is_dead(clone.create_new(path("/b"))));
    assert!(is_dead(clone.open_append(path("/a"))) && is_dead(clone.read_range(path("/a"), 0..1)));
    assert!(is_dead(clone.len(path("/a"))) && is_dead(clone.list_dir(path("/"))));
    assert!(
        is_dead(clone.rename(path("/a"), path("/b"))) && is_dead(clone.hard_link(path("/a"), path("/b")))
    );
    assert!(is_dead(clone.remove(path("/a"))) && is_dead(clone.sync_dir(path("/"))));
    assert!(is_dead(clone.try_lock(path("/other"), "x")));

    let LockOutcome::Acquired(_second) = other.try_lock(path("/lock"), "two").unwrap() else {
        panic!("the dead hold no locks")
    };
    drop(lock);
    assert!(
        matches!(disk.process().try_lock(path("/lock"), "three").unwrap(), LockOutcome::HeldBy(holder) if holder == "two"),
        "a lock of the dead that is dropped late frees nobody else's"
    );
    assert_eq!(disk.read("/a").unwrap(), b"old and new");
}

#[test]
fn without_power_everybody_is_dead_and_what_was_not_synced_is_gone() {
    let disk = MemoryDisk::new();
    let (files, mut file) = with_file(&disk);
    file.append(b" and new").unwrap();
    files.create_new(path("/b")).unwrap();
    let _lock = files.try_lock(path("/lock"), "one").unwrap();
    let worst = disk.snapshot();
    worst.power_loss(&mut |_| 0);
    assert_eq!(worst.dump(), disk.durable());
    assert_eq!(worst.dump().into_values().collect::<Vec<_>>(), [b"old"]);
    let best = disk.snapshot();
    best.power_loss(&mut |choices| choices - 1);
    assert_eq!(best.dump(), disk.dump());
    assert!(files.is_alive(), "this disk still has power");

    disk.power_loss(&mut |choices| choices - 1);
    assert!(is_dead(file.sync_data()) && is_dead(files.len(path("/a"))));
    assert!(matches!(disk.process().try_lock(path("/lock"), "two").unwrap(), LockOutcome::Acquired(_)));
}

#[test]
fn a_snapshot_is_another_disk() {
    let disk = MemoryDisk::new();
    let (files, mut file) = with_file(&disk);
    files.hard_link(path("/a"), path("/b")).unwrap();
    let _lock = files.try_lock(path("/lock"), "one").unwrap();
    let copy = disk.snapshot();
    assert_eq!(copy.dump(), disk.dump());
    assert_eq!(copy.writes(), disk.writes());
    file.append(b"er").unwrap();
    assert_eq!(copy.read("/a").unwrap(), b"old");
    let there = copy.process();
    there.open_append(path("/b")).unwrap().append(b"est").unwrap();
    assert_eq!(copy.read("/a").unwrap(), b"oldest", "two names of one file");
    assert_eq!(disk.read("/a").unwrap(), b"older");
    assert!(
        matches!(there.try_lock(path("/lock"), "two").unwrap(), LockOutcome::Acquired(_)),
        "nobody has it open"
    );
}

#[test]
fn the_hook_sees_every_change_with_its_number() {
    let disk = MemoryDisk::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&seen);
    disk.on_write(Box::new(move |operation| {
        let text = format!(
            "{} {:?} {} {}",
            operation.number,
            operation.kind,
            operation.path.display(),
            operation.len
        );
        list.lock().unwrap().push(text);
        Verdict::Go
    }));
    let files = disk.process();
    files.create_dir(path("d")).unwrap();
    let mut file = files.create_new(path("d/a")).unwrap();
    file.append(b"abc").unwrap();
    file.truncate(1).unwrap();
    file.sync_data().unwrap();
    files.hard_link(path("d/a"), path("d/b")).unwrap();
    files.rename(path("d/a"), path("d/c")).unwrap();
    files.remove(path("d/b")).unwrap();
    files.sync_dir(path("d")).unwrap();
    let _lock = files.try_lock(path("d/.lock"), "me").unwrap();
    files.try_lock(path("d/.lock"), "me").unwrap();
    files.list_dir(path("d")).unwrap();
    let expected = [
        "1 CreateDir d 0",
        "2 CreateNew d/a 0",
        "3 Append d/a 3",
        "4 Truncate d/a 0",
        "5 SyncData d/a 0",
        "6 HardLink d/b 0",
        "7 Rename d/c 0",
        "8 Remove d/b 0",
        "9 SyncDir d 0",
        "10 Lock d/.lock 0",
    ];
    assert_eq!(*seen.lock().unwrap(), expected);
    assert_eq!(disk.writes(), 10);
}

#[test]
fn an_append_goes_wrong_as_the_hook_says() {
    use Verdict::{DieAfter, DieBefore, Fail, Go, Tear};
    for (verdict, left, alive) in [
        (Go, "oldnewer", true),
        (Fail(ErrorKind::StorageFull), "oldne", true),
        (Fail(ErrorKind::TimedOut), "old", true),
        (DieBefore, "old", false),
        (DieAfter, "oldnewer", false),
        (Tear(2), "oldne", false),
        (Tear(99), "oldnewer", false),
    ] {
        let disk = MemoryDisk::new();
        let (files, mut file) = with_file(&disk);
        once(&disk, OperationKind::Append, verdict);
        let result = file.append(b"newer");
        assert_eq!(disk.read("/a").unwrap(), left.as_bytes(), "{verdict:?}");
        assert_eq!(files.is_alive(), alive, "{verdict:?}");
        match verdict {
            Go => result.unwrap(),
            Fail(kind) => assert_eq!(result.unwrap_err().kind(), kind),
            DieBefore | DieAfter | Tear(_) => assert!(is_dead(result), "{verdict:?}"),
        }
    }
}

#[test]
fn a_change_of_names_is_done_or_not_when_the_process_dies() {
    for (verdict, done) in [
        (Verdict::DieBefore, false),
        (Verdict::Tear(1), false),
        (Verdict::DieAfter, true),
        (Verdict::Fail(ErrorKind::StorageFull), false),
    ] {
        let disk = MemoryDisk::new();
        let (files, _) = with_file(&disk);
        once(&disk, OperationKind::Rename, verdict);
        files.rename(path("/a"), path("/b")).unwrap_err();
        assert_eq!(disk.read("/b").is_ok(), done, "{verdict:?}");
        assert_eq!(disk.read("/a").is_ok(), !done, "{verdict:?}");
    }
}

#[test]
fn a_lock_whose_holder_dies_taking_it_is_free() {
    for verdict in [Verdict::DieBefore, Verdict::DieAfter, Verdict::Fail(ErrorKind::StorageFull)] {
        let disk = MemoryDisk::new();
        once(&disk, OperationKind::Lock, verdict);
        disk.process().try_lock(path("/lock"), "one").unwrap_err();
        let outcome = disk.process().try_lock(path("/lock"), "two").unwrap();
        assert!(matches!(outcome, LockOutcome::Acquired(_)), "{verdict:?}");
    }
}

#[test]
fn what_a_failed_sync_gave_up_is_not_written_by_the_next() {
    let disk = MemoryDisk::new();
    let (_files, mut file) = with_file(&disk);
    file.append(b"new").unwrap();
    once(&disk, OperationKind::SyncData, Verdict::Fail(ErrorKind::Other));
    file.sync_data().unwrap_err();
    file.sync_data().unwrap();
    assert_eq!(disk.durable()[path("/a")], b"old\0\0\0");
    file.truncate(3).unwrap();
    file.append(b"est").unwrap();
    file.sync_data().unwrap();
    assert_eq!(disk.durable()[path("/a")], b"oldest");
}

#[test]
fn a_hook_may_take_the_power_away() {
    let disk = MemoryDisk::new();
    let (_files, mut file) = with_file(&disk);
    let there = disk.clone();
    disk.on_write(Box::new(move |_| {
        there.power_loss(&mut |_| 0);
        Verdict::Go
    }));
    assert!(is_dead(file.append(b"new")));
    disk.heal();
    assert_eq!(disk.read("/a").unwrap(), b"old");
    disk.process().remove(path("/a")).unwrap();
}

#[test]
fn blobs_need_no_tokio() {
    assert!(tokio::runtime::Handle::try_current().is_err(), "there is none here");
    let disk = MemoryDisk::new();
    let blobs = FileBlobs::with_files(Arc::new(disk.process()), "/servo", &layout());
    block_on(async {
        assert_eq!(blobs.put_if_absent("d/a.json", "1".into()).await.unwrap(), PutOutcome::Created);
        assert_eq!(blobs.put_if_absent("d/a.json", "2".into()).await.unwrap(), PutOutcome::Exists);
        blobs.put("d/b.json", "three".into()).await.unwrap();
        assert_eq!(blobs.get("d/a.json").await.unwrap(), "1");
        assert_eq!(blobs.get_range("d/b.json", 1..3).await.unwrap(), "hr");
        assert_eq!(blobs.size("d/b.json").await.unwrap(), 5);
        blobs.delete("d/a.json").await.unwrap();
        assert_eq!(blobs.list("").await.unwrap(), [("d/b.json".to_owned(), 5)]);
    });
}

#[test]
fn unfinished_files_have_the_same_names_each_time() {
    fn names() -> Vec<std::path::PathBuf> {
        let disk = MemoryDisk::new();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&seen);
        disk.on_write(Box::new(move |operation| {
            list.lock().expect("no panic").push(operation.path.to_owned());
            Verdict::Go
        }));
        for _ in 0..2 {
            let blobs = FileBlobs::with_files(Arc::new(disk.process()), "/servo", &layout());
            block_on(blobs.put("a", "1".into())).expect("nothing fails");
        }
        std::mem::take(&mut *seen.lock().expect("no panic"))
    }
    assert_eq!(names(), names());
    let temporary: std::collections::BTreeSet<_> =
        names().into_iter().filter(|path| path.display().to_string().contains(".tmp-")).collect();
    assert_eq!(temporary.len(), 2, "and two stores never share one: {temporary:?}");
}
