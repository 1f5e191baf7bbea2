//! Blobs in files.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use servo_store::conformance::layout;
use servo_store::testing::MemoryFiles;
use servo_store::{BlobError, Blobs, FileBlobs, PutOutcome};

use crate::crashes::{Client, Crash, CrashFreeRun, survive_all};

#[derive(Debug, Clone, Copy)]
enum Step {
    Create(&'static str, usize),
    Replace(&'static str, usize),
    Delete(&'static str),
}

use Step::{Create, Delete, Replace};

/// Names, and lengths by which values are told apart.
const SCRIPT: [Step; 11] = [
    Create("manifests/1", 10),
    Replace("latest", 20),
    Create("manifests/2", 5000),
    Replace("latest", 6000),
    Delete("manifests/1"),
    Replace("latest", 1),
    Create("manifests/4", 30),
    Delete("manifests/2"),
    Delete("manifests/2"),
    Create("manifests/3", 0),
    Replace("manifests/3", 40),
];

/// Deleted names that a power loss may bring back.
const DELETED: [&str; 2] = ["manifests/1", "manifests/2"];

impl Step {
    fn name(self) -> &'static str {
        match self {
            Create(name, _) | Replace(name, _) | Delete(name) => name,
        }
    }

    /// The value afterwards.
    fn value(self) -> Option<Bytes> {
        match self {
            Create(_, len) | Replace(_, len) => Some(value(len)),
            Delete(_) => None,
        }
    }

    async fn take(self, blobs: &FileBlobs) -> Result<(), BlobError> {
        match self {
            Create(name, len) => match blobs.put_if_absent(name, value(len)).await? {
                PutOutcome::Created => Ok(()),
                PutOutcome::Exists => {
                    assert_eq!(blobs.get(name).await?, value(len), "mine, from before");
                    Ok(())
                }
            },
            Replace(name, len) => blobs.put(name, value(len)).await,
            Delete(name) => blobs.delete(name).await,
        }
    }
}

fn value(len: usize) -> Bytes {
    vec![b'x'; len].into()
}

/// A client that stores blobs.
#[derive(Default)]
struct BlobClient {
    /// How many steps were acknowledged.
    done: usize,
}

impl Client for BlobClient {
    fn run(&mut self, files: &MemoryFiles) -> Result<(), Box<dyn Error>> {
        let blobs = FileBlobs::with_files(Arc::new(files.clone()), "/state", &layout());
        block_on(async {
            self.check(&blobs).await;
            while let Some(step) = SCRIPT.get(self.done) {
                step.take(&blobs).await?;
                self.done += 1;
            }
            Ok(())
        })
    }
}

impl BlobClient {
    /// Every name has the value that was acknowledged last, or that of the step that was not. A power loss may have
    /// undone a deletion.
    async fn check(&self, blobs: &FileBlobs) {
        let mut possible: BTreeMap<&str, Vec<Option<Bytes>>> = BTreeMap::new();
        for (number, step) in SCRIPT.iter().enumerate().take(self.done + 1) {
            let values = possible.entry(step.name()).or_insert_with(|| vec![None]);
            if number < self.done && !matches!(step, Delete(_)) {
                values.clear();
            }
            values.push(step.value());
        }
        for (name, values) in &possible {
            let value = match blobs.get(name).await {
                Ok(value) => Some(value),
                Err(BlobError::NotFound { .. }) => None,
                Err(error) => panic!("{error}"),
            };
            assert!(values.contains(&value), "{name} is of {:?} bytes", value.map(|value| value.len()));
        }
        for (name, _) in blobs.list("").await.expect("a listing") {
            assert!(possible.contains_key(name.as_str()), "nobody has stored {name}");
        }
    }
}

fn survive(cases: impl Fn(&CrashFreeRun) -> Vec<Vec<Crash>>) -> usize {
    let undisturbed = CrashFreeRun::run::<BlobClient>();
    let expected = kept(undisturbed.disk.durable());
    let cases = cases(&undisturbed);
    let has_power = cases.iter().flatten().all(|crash| crash.power.is_none());
    survive_all::<BlobClient>(cases, |disk| {
        let mut left = kept(disk.durable());
        if !has_power {
            left.retain(|path, _| {
                expected.contains_key(path) || !DELETED.iter().any(|name| path.ends_with(name))
            });
        }
        assert!(left == expected, "other values are left than without dying");
    })
}

/// Without the unfinished files that the dead leave behind.
fn kept(mut files: BTreeMap<PathBuf, Vec<u8>>) -> BTreeMap<PathBuf, Vec<u8>> {
    files.retain(|path, _| !path.to_string_lossy().contains(".tmp-"));
    files
}

#[test]
fn a_process_dies_at_every_write() {
    let points = survive(CrashFreeRun::once) + survive(CrashFreeRun::twice);
    eprintln!("blobs: {points} deaths and pairs of deaths");
    assert!(points >= 1_000, "{points}");
}

#[test]
fn the_power_goes_at_every_write() {
    let points =
        survive(|undisturbed| undisturbed.once_with_power(6)) + survive(CrashFreeRun::twice_with_power);
    eprintln!("blobs: {points} losses of power");
    assert!(points >= 2_000, "{points}");
}
