//! Leases: who does the work for now. A lease has a time to live and an epoch.
//!
//! **Leases only save work (P7).** Two holders at once, because a clock was wrong or a process slept, waste
//! effort and break nothing: the log decides who commits, and a batch of an older epoch is fenced there.
//!
//! Every change creates the next numbered record, which works on every store that can create if absent. Old
//! records are deleted behind a small window, except the few that let a newcomer find the newest by probing.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use servo_core::{Millis, Timestamp};
use tokio::sync::Mutex;

use crate::{BlobError, Blobs, ErrorKind, PutOutcome, layout, probe};

/// How many of the newest records are kept for those who are looking at them right now.
const WINDOW: u64 = 16;
/// How often to look again when others change the lease while we look.
const TRIES: u32 = 8;

/// A lease that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Goes up each time the holder changes.
    pub epoch: u64,
    /// It must be renewed before this.
    pub expires_at: Timestamp,
}

/// Why a lease operation failed. Not having the lease is not an error.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The blob store failed.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// A record is not one.
    #[error(
        "the lease record {name} is damaged: {reason}; delete it and the lease starts over from the one before"
    )]
    Damaged {
        /// The record.
        name: String,
        /// The problem with the record.
        reason: String,
    },
    /// Others kept changing it.
    #[error("the lease {name} keeps changing hands; try again later")]
    Busy {
        /// The lease.
        name: String,
    },
}

impl LeaseError {
    /// The meaning of the error for the caller.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Blob(error) => error.kind(),
            Self::Damaged { .. } => ErrorKind::Corrupt,
            Self::Busy { .. } => ErrorKind::Unavailable,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LeaseRecord {
    epoch: u64,
    holder: String,
    acquired_at: Timestamp,
    expires_at: Timestamp,
    released: bool,
}

impl LeaseRecord {
    fn is_held(&self, now: Timestamp) -> bool {
        !self.released && now < self.expires_at
    }

    fn lease(&self) -> Lease {
        Lease { epoch: self.epoch, expires_at: self.expires_at }
    }
}

/// The newest record seen, and its number.
#[derive(Debug, Clone)]
struct Seen {
    number: u64,
    record: LeaseRecord,
}

/// One party's view of one lease.
pub struct Leases {
    blobs: Arc<dyn Blobs>,
    name: String,
    holder: String,
    ttl: Millis,
    seen: Mutex<Option<Seen>>,
}

impl std::fmt::Debug for Leases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leases")
            .field("name", &self.name)
            .field("holder", &self.holder)
            .finish_non_exhaustive()
    }
}

impl Leases {
    /// A party to the lease `name`. `holder` must be unique to this process and this start of it.
    pub fn new(
        blobs: Arc<dyn Blobs>,
        name: impl Into<String>,
        holder: impl Into<String>,
        ttl: Millis,
    ) -> Self {
        Self { blobs, name: name.into(), holder: holder.into(), ttl, seen: Mutex::new(None) }
    }

    /// Takes the lease if it is free, or renews it if it is ours; nothing if another holds it.
    pub async fn acquire(&self, now: Timestamp) -> Result<Option<Lease>, LeaseError> {
        let mut seen = self.seen.lock().await;
        for _ in 0..TRIES {
            self.catch_up(&mut seen, now).await?;
            let epoch = match seen.as_ref().map(|seen| &seen.record) {
                None => 1,
                Some(record) if record.holder == self.holder => record.epoch,
                Some(record) if record.is_held(now) => return Ok(None),
                Some(record) => record.epoch + 1,
            };
            if let Some(lease) = self.write(&mut seen, epoch, now, false).await? {
                return Ok(Some(lease));
            }
        }
        Err(LeaseError::Busy { name: self.name.clone() })
    }

    /// Renews the lease if it is still ours. Nothing if it has expired or another has it: then acquire.
    pub async fn renew(&self, now: Timestamp) -> Result<Option<Lease>, LeaseError> {
        self.raise(now, 0).await
    }

    /// As [`Self::renew`], with this epoch or a higher one. The next holder has a higher one still.
    pub async fn raise(&self, now: Timestamp, least: u64) -> Result<Option<Lease>, LeaseError> {
        let mut seen = self.seen.lock().await;
        for _ in 0..TRIES {
            let epoch = match seen.as_ref().map(|seen| &seen.record) {
                Some(record) if record.holder == self.holder && record.is_held(now) => {
                    record.epoch.max(least)
                }
                Some(_) | None => return Ok(None),
            };
            // None also if the next record is there and ours, from a try that failed after it was written.
            if let Some(lease) = self.write(&mut seen, epoch, now, false).await? {
                return Ok(Some(lease));
            }
        }
        Err(LeaseError::Busy { name: self.name.clone() })
    }

    /// Gives the lease up, so that another need not wait until it expires.
    pub async fn release(&self, now: Timestamp) -> Result<(), LeaseError> {
        let mut seen = self.seen.lock().await;
        match seen.as_ref().map(|seen| &seen.record) {
            Some(record) if record.holder == self.holder && record.is_held(now) => {
                let epoch = record.epoch;
                self.write(&mut seen, epoch, now, true).await.map(drop)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Creates the next record. None if another party did.
    async fn write(
        &self,
        seen: &mut Option<Seen>,
        epoch: u64,
        now: Timestamp,
        released: bool,
    ) -> Result<Option<Lease>, LeaseError> {
        let number = seen.as_ref().map_or(0, |seen| seen.number) + 1;
        let same = seen.as_ref().filter(|seen| seen.record.holder == self.holder && seen.record.is_held(now));
        let record = LeaseRecord {
            epoch,
            holder: self.holder.clone(),
            acquired_at: same.map_or(now, |seen| seen.record.acquired_at),
            expires_at: if released { now } else { now.saturating_add(self.ttl) },
            released,
        };
        let name = layout::lease(&self.name, number);
        let bytes = serde_json::to_vec(&record)
            .map_err(|error| LeaseError::Damaged { name: name.clone(), reason: error.to_string() })?;
        if self.blobs.put_if_absent(&name, Bytes::from(bytes)).await? == PutOutcome::Exists {
            // Mine, if the answer to an earlier try was lost on the way.
            let existing = self.load(number).await?;
            let mine = existing.as_ref() == Some(&record);
            if let Some(record) = existing {
                *seen = Some(Seen { number, record });
            }
            if !mine {
                return Ok(None);
            }
        }
        if probe::is_overtaken(number, |number| self.record_exists(number)).await? {
            self.retract(number).await?;
            *seen = None;
            return Ok(None);
        }
        let lease = record.lease();
        *seen = Some(Seen { number, record });
        self.delete_old(number).await;
        Ok(Some(lease))
    }

    /// Deletes a record that was created behind the newest, by a party that slept while its number was deleted.
    async fn retract(&self, number: u64) -> Result<(), LeaseError> {
        let newest = probe::last_anchored(|number| self.record_exists(number)).await?;
        if !probe::anchors(newest, WINDOW).contains(&number) {
            self.blobs.delete(&layout::lease(&self.name, number)).await?;
        }
        Ok(())
    }

    /// Deletes what the step to `number` made superfluous. Failing costs a few bytes.
    async fn delete_old(&self, number: u64) {
        let kept = probe::anchors(number, WINDOW);
        for dead in probe::anchors(number - 1, WINDOW).difference(&kept) {
            if let Err(error) = self.blobs.delete(&layout::lease(&self.name, *dead)).await {
                tracing::debug!(lease = %self.name, number = dead, error = %error, "could not delete an old lease record");
            }
        }
    }

    /// Finds the newest record: a step or two forward from the one we know, and a search from scratch only if
    /// we know none, or if nobody has renewed the one we know.
    async fn catch_up(&self, seen: &mut Option<Seen>, now: Timestamp) -> Result<(), LeaseError> {
        for _ in 0..WINDOW / 2 {
            let Some(number) = seen.as_ref().map(|seen| seen.number + 1) else { break };
            match self.load(number).await? {
                Some(record) => *seen = Some(Seen { number, record }),
                None => break,
            }
        }
        if seen.as_ref().is_some_and(|seen| seen.record.is_held(now)) {
            return Ok(());
        }
        for _ in 0..TRIES {
            let number = probe::last_anchored(|number| self.record_exists(number)).await?;
            if number <= seen.as_ref().map_or(0, |seen| seen.number) {
                return Ok(());
            }
            if let Some(record) = self.load(number).await? {
                *seen = Some(Seen { number, record });
                return Ok(());
            }
        }
        Err(LeaseError::Busy { name: self.name.clone() })
    }

    async fn record_exists(&self, number: u64) -> Result<bool, BlobError> {
        match self.blobs.size(&layout::lease(&self.name, number)).await {
            Ok(_) => Ok(true),
            Err(BlobError::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn load(&self, number: u64) -> Result<Option<LeaseRecord>, LeaseError> {
        let name = layout::lease(&self.name, number);
        let bytes = match self.blobs.get(&name).await {
            Ok(bytes) => bytes,
            Err(BlobError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let damaged = |reason: String| LeaseError::Damaged { name: name.clone(), reason };
        let record: LeaseRecord =
            serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        // The next holder needs a higher one.
        if record.epoch == u64::MAX {
            return Err(damaged("no epoch can follow its own".to_owned()));
        }
        Ok(Some(record))
    }
}
