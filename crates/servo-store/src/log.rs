//! The contract that every log keeps, whatever it stores its batches in.

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use servo_core::PutId;
use servo_core::planted::{self, Mistake};

use crate::{AppendError, ReadError};

/// Number of a batch. The first is 1 and there are no holes.
pub type Seq = u64;

/// One batch as it is stored: the unit of atomicity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub seq: Seq,
    /// Epoch of the writer, from its lease; tells a deposed writer that it is one.
    pub epoch: u64,
    /// Unique for each attempt to write a batch: tells this writer's record from another's.
    pub put_id: PutId,
    /// One JSON array of events, without a line break.
    pub payload: Bytes,
}

/// An append-only sequence of batches. Every append is a compare-and-swap on the end of the log.
#[async_trait]
pub trait Log: Send + Sync + 'static {
    /// Creates batch `record.seq`. `Ok` means that it is durable, and that it is this very record.
    ///
    /// Safe to call again with the same record after any error: if it had landed, the answer is `Ok`.
    /// [`FileLog`](crate::FileLog) does blocking I/O in here; call it from a thread that may block.
    async fn append(&self, record: Record) -> Result<(), AppendError>;

    /// Batches from `from` on, in order and without holes, up to the end of the log as it is now.
    fn read(&self, from: Seq) -> BoxStream<'_, Result<Record, ReadError>>;

    /// The number that the next append must carry.
    async fn next_seq(&self) -> Result<Seq, ReadError>;

    /// The lowest number that may still be read; 1 at first.
    async fn boundary(&self) -> Result<Seq, ReadError>;

    /// Durably moves the boundary up to `seq`, then deletes what lies below it, as far as whole files or
    /// objects lie below it. Moving it down does nothing.
    async fn truncate_before(&self, seq: Seq) -> Result<(), AppendError>;

    /// Whether this writer has lost the log for good: it can be read, and never again be appended to.
    fn is_lost(&self) -> bool {
        false
    }

    /// Where this log is, for messages.
    fn describe(&self) -> String;
}

/// Decides what a number that is taken means for the record that wanted it.
pub(crate) fn resolve_append(
    mine: &Record,
    existing: Option<&Record>,
    location: String,
) -> Result<(), AppendError> {
    let seq = mine.seq;
    match existing {
        Some(record)
            if record.put_id == mine.put_id
                && record.epoch == mine.epoch
                && !planted::has(Mistake::LostAnswerTakenForConflict) =>
        {
            Ok(())
        }
        Some(record) if record.epoch > mine.epoch => {
            let reason =
                format!("a writer of epoch {} has it, this one is of epoch {}", record.epoch, mine.epoch);
            Err(AppendError::Fenced { seq, location, reason })
        }
        Some(record) => {
            let reason = format!("it is taken by put {} of epoch {}", record.put_id, record.epoch);
            Err(AppendError::Conflict { seq, location, reason })
        }
        None => {
            let reason = "the number is taken, and could not be read back".to_owned();
            Err(AppendError::Conflict { seq, location, reason })
        }
    }
}
