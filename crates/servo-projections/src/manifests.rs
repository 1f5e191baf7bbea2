//! Where manifests are kept: finding the newest, publishing the next, dropping the oldest.

use std::sync::Arc;

use bytes::Bytes;
use servo_store::probe::{self, anchors, last_anchored, last_dense};
use servo_store::{BlobError, Blobs, Layout, PutOutcome};

use crate::error::Error;
use crate::manifest::Manifest;

/// The copy of the manifest whose tables a log without its beginning is replayed from.
const BOUNDARY_TABLES: &str = "rebuild/boundary.json";

/// No manifest of ours is near this large.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;

/// The result of [`Manifests::publish`].
pub(crate) enum PublishOutcome {
    /// It is durable and visible, now or since an earlier try.
    Won,
    /// Another writer's manifest has that number.
    Lost,
}

/// The manifests of a workspace.
#[derive(Clone)]
pub(crate) struct Manifests {
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) layout: Layout,
}

impl Manifests {
    /// The newest manifest, found without listing: from the copy on, or by the numbers alone if the copy is
    /// missing, damaged or left behind.
    pub(crate) async fn newest(&self) -> Result<Option<Manifest>, Error> {
        let start = match self.read_copy().await {
            Ok(Some(copy)) if self.is_recent(&copy).await? => Some(copy.revision),
            Ok(_) => None,
            // The copy is only a hint. One written by a newer Servo is not: its numbered twin refuses too.
            Err(Error::Damaged { file, problem, .. }) => {
                tracing::warn!(
                    file,
                    problem,
                    "the copy of the newest manifest is damaged; looking by number"
                );
                None
            }
            Err(error) => return Err(error),
        };
        let newest = match start {
            Some(known) => last_dense(known, |revision| self.exists(revision)).await?,
            None => last_anchored(|revision| self.exists(revision)).await?,
        };
        if newest == 0 { Ok(None) } else { self.read(newest).await }
    }

    /// Whether the copy is within the kept window, where numbers have no holes: from there the newest can be found. A
    /// stale writer may have put back a copy from before it, of which only anchors are left.
    async fn is_recent(&self, copy: &Manifest) -> Result<bool, Error> {
        const FEW: u64 = 8;
        if copy.revision <= FEW {
            return Ok(false);
        }
        for revision in copy.revision.saturating_sub(3).max(copy.boundary + 1)..=copy.revision {
            if !self.exists(revision).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// As [`Self::newest`], never trusting the copy: for writers.
    pub(crate) async fn newest_by_number(&self) -> Result<Option<Manifest>, Error> {
        let newest = last_anchored(|revision| self.exists(revision)).await?;
        if newest == 0 { Ok(None) } else { self.read(newest).await }
    }

    /// As [`Self::newest_by_number`] for those who can do without what a damaged manifest says: the number is known
    /// all the same.
    pub(crate) async fn newest_readable(&self) -> Result<(u64, Option<Manifest>), Error> {
        let revision = last_anchored(|revision| self.exists(revision)).await?;
        Ok((revision, if revision == 0 { None } else { self.read_undamaged(revision).await? }))
    }

    /// None also if it is damaged.
    pub(crate) async fn read_undamaged(&self, revision: u64) -> Result<Option<Manifest>, Error> {
        match self.read(revision).await {
            Err(Error::Damaged { file, problem, .. }) => {
                tracing::warn!(file, problem, "a damaged manifest is passed over");
                Ok(None)
            }
            answer => answer,
        }
    }

    async fn read_copy(&self) -> Result<Option<Manifest>, Error> {
        self.read_named(self.layout.manifest_latest()).await
    }

    pub(crate) async fn read(&self, revision: u64) -> Result<Option<Manifest>, Error> {
        let name = self.layout.manifest(revision);
        let Some(manifest) = self.read_named(&name).await? else { return Ok(None) };
        if manifest.revision != revision {
            return Err(Error::damaged(name, format!("it says that it is revision {}", manifest.revision)));
        }
        Ok(Some(manifest))
    }

    async fn read_named(&self, name: &str) -> Result<Option<Manifest>, Error> {
        let size = match self.blobs.size(name).await {
            Ok(size) => size,
            Err(BlobError::NotFound { .. }) => return Ok(None),
            Err(source) => return Err(Error::store("reading", name, source)),
        };
        if size > MAX_MANIFEST_BYTES {
            return Err(Error::damaged(
                name,
                format!("{size} bytes are more than the {MAX_MANIFEST_BYTES} allowed"),
            ));
        }
        match self.blobs.get(name).await {
            Ok(bytes) => Manifest::parse(name, &bytes).map(Some),
            Err(BlobError::NotFound { .. }) => Ok(None),
            Err(source) => Err(Error::store("reading", name, source)),
        }
    }

    async fn exists(&self, revision: u64) -> Result<bool, Error> {
        let name = self.layout.manifest(revision);
        match self.blobs.size(&name).await {
            Ok(_) => Ok(true),
            Err(BlobError::NotFound { .. }) => Ok(false),
            Err(source) => Err(Error::store("looking for", name, source)),
        }
    }

    /// Creates the numbered manifest, then the copy. Whatever happens to the copy, the manifest counts.
    pub(crate) async fn publish(&self, manifest: &Manifest) -> Result<PublishOutcome, Error> {
        let name = self.layout.manifest(manifest.revision);
        let bytes = Bytes::from(manifest.to_bytes());
        let outcome = self.blobs.put_if_absent(&name, bytes.clone()).await;
        match outcome.map_err(|source| Error::store("publishing", name.clone(), source))? {
            PutOutcome::Created => {}
            PutOutcome::Exists => {
                let existing = self.read(manifest.revision).await?;
                let existing = existing.ok_or_else(|| Error::damaged(&name, "it is there and it is not"))?;
                if existing.revision_ulid != manifest.revision_ulid {
                    return Ok(PublishOutcome::Lost);
                }
            }
        }
        // The copy cannot tell whether there is a newer one: a writer that slept may have put an old one back.
        if probe::is_overtaken(manifest.revision, |revision| self.exists(revision)).await? {
            let newest = self.newest_by_number().await?;
            // A number that was used and deleted can be created again; the boundary tells (ADR-050).
            if newest.is_some_and(|newest| manifest.revision <= newest.boundary) {
                self.delete(&name).await?;
                return Ok(PublishOutcome::Lost);
            }
            return Ok(PublishOutcome::Won);
        }
        let latest = self.layout.manifest_latest();
        if let Err(error) = self.blobs.put(latest, bytes).await {
            tracing::warn!(file = latest, %error, "the copy of the newest manifest could not be replaced");
        }
        Ok(PublishOutcome::Won)
    }

    /// Deletes the files that only manifests up to the boundary name, and those manifests themselves, except the few
    /// that [`last_anchored`] needs. By reachability, never by clock: safe to do again after a crash.
    ///
    /// `done` is through which revision this has been done already; the answer is the same afterwards.
    pub(crate) async fn prune(&self, newest: &Manifest, done: u64) -> Result<u64, Error> {
        let keep = newest.revision - newest.boundary;
        let kept_for_log = match done < newest.boundary {
            true => self.boundary_tables().await?,
            false => None,
        };
        let kept_for_log = kept_for_log.as_ref().map(Manifest::paths).unwrap_or_default();
        for revision in done + 1..=newest.boundary {
            // Files are never named again once a manifest has stopped naming them.
            let (old, next) =
                (self.read_undamaged(revision).await?, self.read_undamaged(revision + 1).await?);
            if let (Some(old), Some(next)) = (old, next) {
                let kept = next.paths();
                for path in old.paths().difference(&kept).filter(|path| !kept_for_log.contains(*path)) {
                    self.delete(path).await?;
                }
            }
            let now = revision + keep;
            for dead in anchors(now - 1, keep).difference(&anchors(now, keep)) {
                self.delete(&self.layout.manifest(*dead)).await?;
            }
        }
        Ok(newest.boundary.max(done))
    }

    /// The tables from which on the log can be replayed, if old batches have been deleted.
    pub(crate) async fn boundary_tables(&self) -> Result<Option<Manifest>, Error> {
        match self.read_named(BOUNDARY_TABLES).await {
            Err(Error::Damaged { file, problem, .. }) => {
                tracing::warn!(file, problem, "the tables of the log's boundary cannot be read");
                Ok(None)
            }
            answer => answer,
        }
    }

    /// Keeps the tables of the newest manifest for a log that begins after it, in place of those of an older one. Files
    /// that only the older one had are deleted; those that a crash leaves are orphans.
    pub(crate) async fn keep_boundary_tables(&self, newest: &Manifest) -> Result<(), Error> {
        let before = self.boundary_tables().await?;
        let stored = self.blobs.put(BOUNDARY_TABLES, Bytes::from(newest.to_bytes())).await;
        stored.map_err(|source| Error::store("writing", BOUNDARY_TABLES, source))?;
        // What manifests within the kept window name goes when they do.
        let Some(before) = before.filter(|before| before.revision <= newest.boundary) else { return Ok(()) };
        let Some(oldest) = self.read_undamaged(newest.boundary + 1).await? else { return Ok(()) };
        let kept = oldest.paths();
        for path in before.paths().into_iter().filter(|path| !kept.contains(path)) {
            self.delete(path).await?;
        }
        Ok(())
    }

    pub(crate) async fn delete(&self, name: &str) -> Result<(), Error> {
        let deleted = self.blobs.delete(name).await;
        deleted.map_err(|source| Error::store("deleting", name, source))
    }
}
