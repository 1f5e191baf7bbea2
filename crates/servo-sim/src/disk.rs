//! The simulated disk of one machine, and its faults.

use std::io::ErrorKind;
use std::sync::Arc;

use futures::{FutureExt, StreamExt};
use servo_store::testing::{MemoryDisk, MemoryFiles, OperationKind, Verdict};
use servo_store::{FileLog, FileLogOptions, Layout, Log, OpenError};

use crate::audit::Batch;
use crate::auditing_log::AuditingLog;
use crate::cluster::Cluster;
use crate::faults::Fault;

/// Directory of all workspaces on the disk.
pub const ROOT: &str = "/data";

/// Makes the disk of a cluster fail now and then: a torn write, a full disk, a crash between two writes.
pub fn inject_disk_faults(cluster: &Cluster, disk: &MemoryDisk) {
    let cluster = cluster.clone();
    disk.on_write(Box::new(move |operation| {
        let domain = cluster.domain;
        if cluster.bucket.is_throttled(domain)
            && operation.kind == OperationKind::Append
            && cluster.world.roll(domain, |rng| rng.chance(300))
        {
            cluster.faults.count(Fault::Throttling);
            return Verdict::Fail(ErrorKind::StorageFull);
        }
        let dies = if operation.kind == OperationKind::Append
            && cluster.faults.injects(domain, Fault::TornTail, 4)
        {
            Verdict::Tear(cluster.world.roll(domain, |rng| rng.below(operation.len.max(1))))
        } else if cluster.faults.injects(domain, Fault::Crash, 2) {
            if cluster.world.roll(domain, |rng| rng.chance(500)) {
                Verdict::DieBefore
            } else {
                Verdict::DieAfter
            }
        } else {
            return Verdict::Go;
        };
        let victim = cluster.clone();
        cluster.world.after(domain, 0, move |_| victim.crash(0, 1_000));
        dies
    }));
}

/// Stops injecting faults into the disk.
pub fn stop_disk_faults(disk: &MemoryDisk) {
    disk.on_write(Box::new(|_| Verdict::Go));
}

/// Opens the log of a machine and compares it with the audit.
pub fn open(cluster: &Cluster, files: &MemoryFiles, layout: &Layout) -> Result<Arc<dyn Log>, OpenError> {
    let options = FileLogOptions { segment_bytes: 4_000, reserve_bytes: 0 };
    let log = FileLog::open_with(Arc::new(files.clone()), ROOT, layout, options)?;
    let prefix = cluster.prefix();
    let begin = log.boundary().now_or_never().transpose()?.unwrap_or(1);
    let mut last = begin - 1;
    let mut all = log.read(begin);
    // A log of files never waits.
    while let Some(Some(Ok(record))) = all.next().now_or_never() {
        last = record.seq;
        cluster.audit.appended(&prefix, Batch::of(&record));
    }
    drop(all);
    cluster.audit.ends_at(&prefix, last);
    cluster.audit.reread(&prefix, &cluster.files());
    Ok(Arc::new(AuditingLog::new(Arc::new(log), cluster, true)))
}
