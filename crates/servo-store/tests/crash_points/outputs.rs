//! Outputs that become materializations.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::executor::block_on;
use servo_store::conformance::layout;
use servo_store::testing::{MemoryFiles, OperationKind, Verdict};
use servo_store::{DataRoot, FileSystem, Output, OutputFiles};

use crate::crashes::{Client, Crash, CrashFreeRun, survive_all};

const OUTPUTS: usize = 6;

/// The data of an output; those of small ones are handed over, those of others are staged.
fn data(number: usize) -> Vec<(&'static str, Vec<u8>)> {
    match number {
        0 | 3 => vec![("data.json", vec![b'7'; 10])],
        1 => vec![("data.parquet", vec![b'x'; 5000])],
        2 => vec![("part/0.csv", vec![b'a'; 30]), ("part/deep/1.csv", vec![b'b'; 5])],
        4 => vec![],
        _ => vec![("data.bin", vec![])],
    }
}

fn output(number: usize) -> Output {
    let files = data(number);
    let quarantined = number == 3;
    let kind = if quarantined { "quarantine" } else { "materializations" };
    let files = match files.first() {
        None => OutputFiles::None,
        Some((name, bytes)) if matches!(number, 0 | 3 | 5) => {
            OutputFiles::Content { name: (*name).to_owned(), bytes: bytes.clone().into() }
        }
        Some((name, bytes)) => OutputFiles::Staged {
            directory: staging(number),
            expected: (number == 1).then(|| ((*name).to_owned(), bytes.len() as u64)),
        },
    };
    Output {
        directory: format!("assets/t/a{}/{kind}/{number}", number % 2),
        files,
        marker: if quarantined { "_reason.json" } else { "_commit.json" },
        record: format!(r#"{{"attempt":{number}}}"#).into(),
    }
}

fn staging(number: usize) -> String {
    format!("staging/run/{number}/attempt=1/t/a")
}

fn home() -> PathBuf {
    Path::new("/state").join(layout().prefix())
}

/// Stages as a runner does: without syncing anything.
fn stage(files: &MemoryFiles, number: usize) -> std::io::Result<()> {
    if !matches!(output(number).files, OutputFiles::Staged { .. }) {
        return Ok(());
    }
    for (name, bytes) in data(number) {
        let path = home().join(staging(number)).join(name);
        let above: Vec<&Path> = path.ancestors().skip(1).filter(|dir| *dir != Path::new("/")).collect();
        for dir in above.into_iter().rev() {
            files.create_dir(dir)?;
        }
        if files.len(&path).is_ok() {
            files.remove(&path)?;
        }
        files.create_new(&path)?.append(&bytes)?;
    }
    Ok(())
}

/// A worker that commits outputs, each when the one before is acknowledged.
#[derive(Default)]
struct OutputClient {
    done: usize,
}

impl Client for OutputClient {
    fn run(&mut self, files: &MemoryFiles) -> Result<(), Box<dyn Error>> {
        let root = DataRoot::with_files(Arc::new(files.clone()), Path::new("/state"), &layout())?;
        for number in 0..self.done {
            assert_is_whole(files, number);
        }
        while self.done < OUTPUTS {
            stage(files, self.done)?;
            block_on(root.commit(output(self.done)))?;
            self.done += 1;
        }
        Ok(())
    }
}

fn assert_is_whole(files: &MemoryFiles, number: usize) {
    let output = output(number);
    let directory = home().join(&output.directory);
    let read =
        |name: &str| files.read_range(&directory.join(name), 0..u64::MAX).expect("it was acknowledged");
    assert_eq!(read(output.marker), output.record, "output {number}");
    for (name, bytes) in data(number) {
        assert!(read(name) == bytes, "{name} of output {number}");
    }
}

/// Without staging, which does not count.
fn kept(mut files: BTreeMap<PathBuf, Vec<u8>>) -> BTreeMap<PathBuf, Vec<u8>> {
    files.retain(|path, _| !path.starts_with(home().join("staging")));
    files
}

fn survive(cases: impl Fn(&CrashFreeRun) -> Vec<Vec<Crash>>) -> usize {
    let undisturbed = CrashFreeRun::run::<OutputClient>();
    let expected = kept(undisturbed.disk.durable());
    assert_eq!(expected.len(), OUTPUTS + (0..OUTPUTS).map(|number| data(number).len()).sum::<usize>());
    survive_all::<OutputClient>(cases(&undisturbed), |disk| {
        assert!(kept(disk.durable()) == expected, "other data is left than without dying");
    })
}

#[test]
fn a_process_dies_at_every_write() {
    let points = survive(CrashFreeRun::once) + survive(CrashFreeRun::twice);
    eprintln!("outputs: {points} deaths and pairs of deaths");
    assert!(points >= 500, "{points}");
}

#[test]
fn the_power_goes_at_every_write() {
    let points =
        survive(|undisturbed| undisturbed.once_with_power(6)) + survive(CrashFreeRun::twice_with_power);
    eprintln!("outputs: {points} losses of power");
    assert!(points >= 1_000, "{points}");
}

#[test]
fn files_that_are_synced_one_by_one_survive_a_loss_of_power_too() {
    let disk = servo_store::testing::MemoryDisk::new();
    disk.on_write(Box::new(|operation| match operation.kind == OperationKind::SyncFileSystem {
        true => Verdict::Fail(std::io::ErrorKind::Unsupported),
        false => Verdict::Go,
    }));
    OutputClient::default().run(&disk.process()).unwrap();
    disk.power_loss(&mut |_| 0);
    let files = disk.process();
    (0..OUTPUTS).for_each(|number| assert_is_whole(&files, number));
}
