//! The log of files.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;

use futures::executor::block_on;
use servo_store::conformance::layout;
use servo_store::testing::{MemoryDisk, MemoryFiles};
use servo_store::{FileLog, FileLogOptions};

use crate::crashes::{Client, Crash, CrashFreeRun, survive_all};
use crate::script::Writer;

const ROOT: &str = "/state";
/// So small that the script fills many segments.
const SEGMENT_BYTES: u64 = 700;

impl Client for Writer {
    fn run(&mut self, files: &MemoryFiles) -> Result<(), Box<dyn Error>> {
        let reader = FileLog::open_read_only_with(Arc::new(files.clone()), ROOT, &layout());
        reader.expect("it can be read whatever happened");
        let open = || {
            let options = FileLogOptions { segment_bytes: SEGMENT_BYTES, reserve_bytes: 0 };
            Ok(FileLog::open_with(Arc::new(files.clone()), ROOT, &layout(), options)?)
        };
        block_on(self.go_on(open))
    }
}

/// The files left after a power loss, without those that do not matter.
fn durable(disk: &MemoryDisk) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = disk.durable();
    files.retain(|path, _| !path.ends_with(".lock") && path.extension() != Some("tmp".as_ref()));
    files
}

fn survive(cases: impl Fn(&CrashFreeRun) -> Vec<Vec<Crash>>) -> usize {
    let undisturbed = CrashFreeRun::run::<Writer>();
    let expected = durable(&undisturbed.disk);
    survive_all::<Writer>(cases(&undisturbed), |disk| {
        assert!(durable(disk) == expected, "other files are left than without dying");
    })
}

#[test]
fn a_process_dies_at_every_write() {
    let points = survive(CrashFreeRun::once);
    eprintln!("log of files: {points} deaths");
    assert!(points >= 400, "{points}");
}

#[test]
fn a_process_dies_at_every_write_and_the_next_one_at_every_write_of_its_recovery() {
    let points = survive(CrashFreeRun::twice);
    eprintln!("log of files: {points} pairs of deaths");
    assert!(points >= 2_400, "{points}");
}

#[test]
fn the_power_goes_at_every_write() {
    let points = survive(|undisturbed| undisturbed.once_with_power(4));
    eprintln!("log of files: {points} losses of power");
    assert!(points >= 2_400, "{points}");
}

#[test]
fn the_power_goes_while_a_process_recovers() {
    let points = survive(CrashFreeRun::twice_with_power);
    eprintln!("log of files: {points} losses of power after a death");
    assert!(points >= 2_400, "{points}");
}
