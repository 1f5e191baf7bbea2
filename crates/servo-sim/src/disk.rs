//! The simulated disk of one machine, and its faults.

use std::io::ErrorKind;
use std::sync::Arc;

use futures::{FutureExt, StreamExt};
use servo_store::testing::{MemoryDisk, MemoryFiles, OperationKind, Verdict};
use servo_store::{FileLog, FileLogOptions, Layout, Log, OpenError};

use crate::audit::Batch;
use crate::booked_log::BookedLog;
use crate::faults::Fault;
use crate::site::Site;

/// Directory of all workspaces on the disk.
pub const ROOT: &str = "/data";

/// Makes the disk of a cluster fail now and then: a torn write, a full disk, a crash between two writes.
pub fn haunt(site: &Site, disk: &MemoryDisk) {
    let site = site.clone();
    disk.on_write(Box::new(move |operation| {
        let lane = site.lane;
        if site.bucket.is_stormy(lane)
            && operation.kind == OperationKind::Append
            && site.world.roll(lane, |dice| dice.chance(300))
        {
            site.faults.count(Fault::Storm);
            return Verdict::Fail(ErrorKind::StorageFull);
        }
        let dies = if operation.kind == OperationKind::Append && site.faults.strikes(lane, Fault::TornTail, 4)
        {
            Verdict::Tear(site.world.roll(lane, |dice| dice.below(operation.len.max(1))))
        } else if site.faults.strikes(lane, Fault::Crash, 2) {
            if site.world.roll(lane, |dice| dice.chance(500)) {
                Verdict::DieBefore
            } else {
                Verdict::DieAfter
            }
        } else {
            return Verdict::Go;
        };
        let victim = site.clone();
        site.world.after(lane, 0, move |_| victim.crash(0, 1_000));
        dies
    }));
}

/// Stops injecting faults into the disk.
pub fn leave_alone(disk: &MemoryDisk) {
    disk.on_write(Box::new(|_| Verdict::Go));
}

/// Opens the log of a machine and compares it with the audit.
pub fn open(site: &Site, files: &MemoryFiles, layout: &Layout) -> Result<Arc<dyn Log>, OpenError> {
    let options = FileLogOptions { segment_bytes: 4_000 };
    let log = FileLog::open_with(Arc::new(files.clone()), ROOT, layout, options)?;
    let prefix = site.prefix();
    let begin = log.boundary().now_or_never().transpose()?.unwrap_or(1);
    let mut last = begin - 1;
    let mut all = log.read(begin);
    // A log of files never waits.
    while let Some(Some(Ok(record))) = all.next().now_or_never() {
        last = record.seq;
        site.audit.appended(&prefix, Batch::of(&record));
    }
    drop(all);
    site.audit.ends_at(&prefix, last);
    site.audit.reread(&prefix, &site.files());
    Ok(Arc::new(BookedLog::new(Arc::new(log), site, true)))
}
