//! Rebuilds the tables from the log, and verifies them against it.
//!
//! A rebuild folds the log into shadow files beside the live ones. It saves a checkpoint every so many batches, so a
//! killed rebuild goes on where it was. At the end it compares what it wrote with what it folded, and swaps by
//! publishing the next manifest: until that moment nothing visible has changed.

pub(crate) mod checkpoint;
pub(crate) mod compare;
mod replay;
mod report;
mod sweep;
mod verify;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use servo_core::{Clock, Timestamp};
use servo_store::{Blobs, Layout, Log, PutIds};

pub use compare::TableCheck;
pub use report::{Phase, Progress, RebuildReport, TableStatus};
pub use sweep::{list, sweep};
pub use verify::{VerifyReport, verify};

use crate::error::Error;
use crate::files::{Files, MetadataCache};
use crate::limits::Limits;
use crate::manifest::Manifest;
use crate::manifests::{Manifests, PublishOutcome};
use crate::projection::Projection;
use crate::writer::Writer;
use replay::Shadow;

/// How often an online rebuild tries to swap while another writer publishes.
const SWAP_TRIES: u32 = 50;

/// Whether a writer may be running meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// No node is running: finding a new manifest at the end is an error.
    #[default]
    Offline,
    /// A live writer continues: catch up with it and try again.
    Online,
}

/// How to rebuild.
#[derive(Debug, Clone)]
pub struct RebuildOptions {
    /// Whether a writer may be running meanwhile.
    pub mode: Mode,
    /// Batches between looks at `abort` and reports of progress.
    pub batch_size: u64,
    /// Batches between checkpoints.
    pub checkpoint_every: u64,
    /// Batches that may be undecodable, per million. They are skipped, counted and reported.
    pub max_errors_ppm: u64,
    /// Resume from the checkpoint of an earlier rebuild, if there is one.
    pub resume: bool,
    /// The log was cut on purpose: tables that go further than it does are replaced.
    pub log_was_cut: bool,
    /// Set it to stop at the next opportunity, with a checkpoint.
    pub abort: Arc<AtomicBool>,
}

impl Default for RebuildOptions {
    fn default() -> Self {
        Self {
            mode: Mode::Offline,
            batch_size: 1_000,
            checkpoint_every: 10_000,
            max_errors_ppm: 0,
            resume: true,
            log_was_cut: false,
            abort: Arc::default(),
        }
    }
}

/// Where and with what a rebuild works.
#[derive(Clone)]
pub struct RebuildContext {
    /// The files.
    pub blobs: Arc<dyn Blobs>,
    /// The workspace.
    pub layout: Layout,
    /// Ids of files and manifests.
    pub put_ids: Arc<dyn PutIds>,
    /// The clock that dates manifests.
    pub clock: Arc<dyn Clock>,
}

impl RebuildContext {
    fn manifests(&self) -> Manifests {
        Manifests { blobs: Arc::clone(&self.blobs), layout: self.layout.clone() }
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn writer(&self, epoch: u64) -> Writer {
        let files = Files { blobs: Arc::clone(&self.blobs), cache: Arc::new(MetadataCache::default()) };
        Writer::new(files, self.layout.clone(), Limits::default(), Arc::clone(&self.put_ids), epoch)
    }
}

pub(crate) fn refused(reason: impl Into<String>) -> Error {
    Error::Refused { what: "rebuild", reason: reason.into() }
}

/// Replays the log into new files and swaps them in. Where old batches have been deleted, the replay begins with the
/// tables of the boundary.
pub async fn rebuild(
    log: &dyn Log,
    context: &RebuildContext,
    options: &RebuildOptions,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<RebuildReport, Error> {
    let boundary = start_of(log, context, "rebuild").await?;
    let manifests = context.manifests();
    let (old_revision, old) = manifests.newest_readable().await?;
    let shadow = Shadow::start(context, old_revision, old.as_ref(), boundary.as_ref(), options).await;
    let mut shadow = shadow.map_err(|error| without_start(error, boundary.as_ref()))?;
    let resumed_from = shadow.through();
    for swap_tries in 1..=SWAP_TRIES {
        shadow.catch_up(log, options, progress).await?;
        progress(shadow.progress(Phase::Verifying));
        shadow.verify().await?;
        let (revision, newest) = manifests.newest_readable().await?;
        let published = newest.as_ref().map_or(0, |newest| newest.watermarks.last_seq);
        if published > shadow.through() && !options.log_was_cut {
            if options.mode == Mode::Offline || log.next_seq().await? <= published {
                return Err(refused(format!(
                    "the newest manifest ends at batch {published}, after the {} of the log",
                    shadow.through()
                )));
            }
            continue;
        }
        if options.mode == Mode::Offline && revision != old_revision {
            return Err(refused(
                "somebody published a manifest meanwhile; stop the server, or rebuild online",
            ));
        }
        progress(shadow.progress(Phase::Swapping));
        let manifest = shadow.manifest_after(revision, newest.as_ref(), context.now());
        match manifests.publish(&manifest).await? {
            PublishOutcome::Won => {
                shadow.done().await?;
                let swept = sweep(context).await?;
                return Ok(shadow.report(&manifest, resumed_from, swap_tries, swept));
            }
            PublishOutcome::Lost if options.mode == Mode::Online => {}
            PublishOutcome::Lost => {
                return Err(refused(
                    "somebody published a manifest meanwhile; stop the server, or rebuild online",
                ));
            }
        }
    }
    Err(refused(format!("another writer published first {SWAP_TRIES} times; try again later")))
}

/// The tables that a replay of the log begins with; none if the log begins at its first batch.
async fn start_of(
    log: &dyn Log,
    context: &RebuildContext,
    what: &'static str,
) -> Result<Option<Manifest>, Error> {
    let boundary = log.boundary().await?;
    if boundary <= 1 {
        return Ok(None);
    }
    let tables = context.manifests().boundary_tables().await?;
    if let Some(tables) = tables.filter(|tables| tables.watermarks.last_seq + 1 >= boundary) {
        return Ok(Some(tables));
    }
    let reason = format!(
        "batches before {boundary} have been deleted from {}, so the tables cannot be made from it alone",
        log.describe()
    );
    Err(Error::Refused { what, reason })
}

/// Says of a damaged table of the boundary that it cannot be made anew: the batches that it was made from are gone.
fn without_start(error: Error, boundary: Option<&Manifest>) -> Error {
    if let (Error::Damaged { file, problem, .. }, Some(tables)) = (&error, boundary) {
        let through = tables.watermarks.last_seq;
        return refused(format!(
            "{file} is damaged: {problem}; the replay begins with it, because batches up to {through} have been \
             deleted. Bring the file back from a backup"
        ));
    }
    error
}

fn aborted(options: &RebuildOptions) -> bool {
    options.abort.load(Ordering::Relaxed)
}

fn view(writer: &Writer, manifest: &Manifest) -> Projection {
    Projection { files: writer.files.clone(), manifest: Arc::new(manifest.clone()) }
}
