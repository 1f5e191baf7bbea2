//! The compactor: the one writer of projections in a process.

use std::sync::Arc;

use servo_core::Timestamp;
use servo_core::planted::{self, Mistake};
use servo_engine::Delta;
use servo_store::{Blobs, ErrorKind, Layout, PutIds};

use crate::error::Error;
use crate::files::{Files, MetadataCache};
use crate::limits::Limits;
use crate::manifest::Manifest;
use crate::manifests::{Manifests, PublishOutcome};
use crate::writer::Writer;

/// Writes what changed as small files, publishes manifests, and merges files when there are many.
///
/// Nothing is visible before its manifest is: a crash at any moment leaves the tables as the newest manifest says.
/// Encoding and merging run inside [`Compactor::flush`]; call it from a task that may be busy for a while.
pub struct Compactor {
    writer: Writer,
    manifests: Manifests,
    current: Option<Arc<Manifest>>,
    /// Changes handed in and not published yet, oldest first: a failed flush loses nothing.
    pending: Vec<Delta>,
    /// Batch after which the oldest pending change begins.
    flushed_seq: u64,
    /// The `pruned_through` of the next manifest.
    pruned_through: u64,
    trouble: Option<Error>,
    /// Whether another writer has published since the last call.
    lost_publish_race: bool,
}

impl Compactor {
    /// Reads the newest manifest. `epoch` comes from the writer's lease; a manifest of a newer epoch fences it.
    pub async fn open(
        blobs: Arc<dyn Blobs>,
        layout: Layout,
        epoch: u64,
        limits: Limits,
        put_ids: Arc<dyn PutIds>,
    ) -> Result<Compactor, Error> {
        Self::open_with_cache(blobs, layout, epoch, limits, put_ids, Arc::default()).await
    }

    /// As [`Compactor::open`], sharing the ends of files with the readers of this process.
    pub async fn open_with_cache(
        blobs: Arc<dyn Blobs>,
        layout: Layout,
        epoch: u64,
        limits: Limits,
        put_ids: Arc<dyn PutIds>,
        cache: Arc<MetadataCache>,
    ) -> Result<Compactor, Error> {
        let manifests = Manifests { blobs: Arc::clone(&blobs), layout: layout.clone() };
        let current = manifests.newest_by_number().await?.map(Arc::new);
        let flushed_seq = current.as_ref().map_or(0, |manifest| manifest.watermarks.last_seq);
        let writer = Writer::new(Files { blobs, cache }, layout, limits, put_ids, epoch);
        let compactor = Self {
            writer,
            manifests,
            current,
            pending: Vec::new(),
            flushed_seq,
            pruned_through: 0,
            trouble: None,
            lost_publish_race: false,
        };
        compactor.check_epoch()?;
        Ok(compactor)
    }

    /// The newest manifest known here; none before the first flush of a workspace.
    pub fn manifest(&self) -> Option<&Arc<Manifest>> {
        self.current.as_ref()
    }

    /// Whether another writer has published since the last time this was asked.
    pub fn lost_publish_race(&mut self) -> bool {
        std::mem::take(&mut self.lost_publish_race)
    }

    /// Continues under the epoch of the writer that fenced this one. For nodes without a lease, whose epochs only say
    /// which started last: each revision is written once, which keeps their order.
    pub fn adopt_epoch(&mut self) {
        let theirs = self.current.as_ref().map_or(0, |current| current.epoch);
        self.writer.epoch = self.writer.epoch.max(theirs);
    }

    /// The error of merging or deleting at the last flush. The flush itself was published; the maintenance is tried
    /// again at the next one.
    pub fn maintenance_error(&self) -> Option<&Error> {
        self.trouble.as_ref()
    }

    /// Writes the changes and publishes them, then merges what has become too many.
    ///
    /// After an error the changes are kept and go out with the next flush.
    pub async fn flush(&mut self, delta: Delta, now: Timestamp) -> Result<Arc<Manifest>, Error> {
        let newest = self.pending.last().map_or(self.flushed_seq, |last| last.head.seq);
        if !delta.is_empty() || delta.head.seq > newest || self.current.is_none() {
            self.pending.push(delta);
        }
        let published = self.publish_pending(now).await;
        if let Err(error) = published {
            self.writer.discard_written().await;
            return Err(error);
        }
        self.trouble = None;
        if let Err(error) = self.maintain(now).await {
            self.writer.discard_written().await;
            if matches!(error, Error::Fenced { .. }) {
                return Err(error);
            }
            tracing::error!(%error, "files could not be merged or deleted; trying again at the next flush");
            self.trouble = Some(error);
        }
        let missing = || Error::Gap { after: self.flushed_seq, published: 0 };
        self.current.clone().ok_or_else(missing)
    }

    /// Makes sure that tables are kept from which a log can be replayed that begins at this batch. To be called before
    /// older batches are deleted.
    pub async fn keep_tables_for_log_from(&self, seq: u64) -> Result<(), Error> {
        let saved = self.manifests.boundary_tables().await?;
        if saved.is_some_and(|saved| saved.watermarks.last_seq + 1 >= seq) {
            return Ok(());
        }
        match &self.current {
            Some(current) if current.watermarks.last_seq + 1 >= seq => {
                self.manifests.keep_boundary_tables(current).await
            }
            Some(_) | None => Err(Error::Gap { after: seq, published: self.flushed_seq }),
        }
    }

    async fn publish_pending(&mut self, now: Timestamp) -> Result<(), Error> {
        while let Some(last) = self.pending.last() {
            self.check_epoch()?;
            let through = last.head.seq;
            let published = self.current.as_ref().map_or(0, |manifest| manifest.watermarks.last_seq);
            if published < self.flushed_seq {
                return Err(Error::Gap { after: self.flushed_seq, published });
            }
            // A rebuild that was swapped in has folded the same batches, and more; so has another node that published
            // between the moment at which this one read the tables and the moment at which it began to write them.
            if published > through || (published > self.flushed_seq && published >= through) {
                self.lost_publish_race = true;
                self.mark_flushed(through);
                return Ok(());
            }
            let mut draft = self.draft(now);
            for delta in &self.pending {
                self.writer.add_delta(&mut draft, delta, now).await?;
            }
            if self.publish(draft).await? {
                self.mark_flushed(through);
            }
        }
        Ok(())
    }

    fn mark_flushed(&mut self, through: u64) {
        self.pending.clear();
        self.flushed_seq = self.flushed_seq.max(through);
    }

    fn draft(&self, now: Timestamp) -> Manifest {
        let mut draft = self.writer.draft(self.current.as_deref(), now);
        draft.pruned_through = draft.pruned_through.max(self.pruned_through);
        draft
    }

    /// False if another writer's manifest came first and was adopted as the new parent.
    async fn publish(&mut self, draft: Manifest) -> Result<bool, Error> {
        let published = match self.manifests.publish(&draft).await {
            Ok(published) => published,
            Err(error) => {
                if !self.is_surely_missing(&draft, &error).await {
                    self.writer.keep_written(&draft).await;
                }
                return Err(error);
            }
        };
        match published {
            PublishOutcome::Won => {
                self.writer.keep_written(&draft).await;
                self.current = Some(Arc::new(draft));
                Ok(true)
            }
            PublishOutcome::Lost => {
                self.lost_publish_race = true;
                self.writer.discard_written().await;
                self.current = self.manifests.newest_by_number().await?.map(Arc::new);
                self.check_epoch()?;
                Ok(false)
            }
        }
    }

    /// Whether a refused manifest will never appear. One whose response was lost may be there, or appear later, and
    /// then it names its files: they stay, and are swept if no manifest names them.
    async fn is_surely_missing(&self, draft: &Manifest, error: &Error) -> bool {
        match error.kind() {
            ErrorKind::Fenced => true,
            ErrorKind::Full => matches!(self.manifests.read(draft.revision).await, Ok(None)),
            ErrorKind::Conflict
            | ErrorKind::Unavailable
            | ErrorKind::Corrupt
            | ErrorKind::Locked
            | ErrorKind::NotFound
            | ErrorKind::Invalid
            | ErrorKind::Io => false,
        }
    }

    fn check_epoch(&self) -> Result<(), Error> {
        match &self.current {
            Some(_) if planted::has(Mistake::UnfencedManifest) => Ok(()),
            Some(current) if current.epoch > self.writer.epoch => Err(Error::Fenced {
                revision: current.revision + 1,
                reason: format!(
                    "revision {} is of epoch {}, this writer is of epoch {}",
                    current.revision, current.epoch, self.writer.epoch
                ),
            }),
            Some(_) | None => Ok(()),
        }
    }

    async fn maintain(&mut self, now: Timestamp) -> Result<(), Error> {
        let mut draft = self.draft(now);
        if self.writer.merge_due(&mut draft, now).await? {
            self.publish(draft).await?;
        }
        if let Some(current) = &self.current {
            let done = self.pruned_through.max(current.pruned_through);
            self.pruned_through = self.manifests.prune(current, done).await?;
        }
        Ok(())
    }
}
