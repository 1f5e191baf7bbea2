//! A log whose appends are audited.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use servo_store::{AppendError, ErrorKind, Log, ReadError, Record, Seq};

use crate::audit::{Audit, Batch};
use crate::cluster::Cluster;
use crate::faults::{Fault, Faults};

/// A log that reports to the audit which batches became durable, and which appends were refused.
pub struct AuditingLog {
    inner: Arc<dyn Log>,
    audit: Audit,
    faults: Faults,
    prefix: String,
    records: bool,
}

impl AuditingLog {
    /// Wraps a log. `records` says whether the audit learns of batches from here only.
    pub fn new(inner: Arc<dyn Log>, cluster: &Cluster, records: bool) -> Self {
        Self {
            inner,
            audit: cluster.audit.clone(),
            faults: cluster.faults.clone(),
            prefix: cluster.prefix(),
            records,
        }
    }
}

#[async_trait]
impl Log for AuditingLog {
    async fn append(&self, record: Record) -> Result<(), AppendError> {
        let outcome = self.inner.append(record.clone()).await;
        match &outcome {
            Ok(()) if self.records => self.audit.appended(&self.prefix, Batch::of(&record)),
            Ok(()) => self.audit.must_be_there(&self.prefix, &Batch::of(&record)),
            Err(error) if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Fenced) => {
                self.audit.must_not_be_there(&self.prefix, &Batch::of(&record));
                if self.faults.may(Fault::SecondNode) {
                    self.faults.count(Fault::SecondNode);
                }
            }
            Err(_) => {}
        }
        outcome
    }

    fn read(&self, from: Seq) -> BoxStream<'_, Result<Record, ReadError>> {
        self.inner.read(from)
    }

    async fn next_seq(&self) -> Result<Seq, ReadError> {
        self.inner.next_seq().await
    }

    async fn boundary(&self) -> Result<Seq, ReadError> {
        self.inner.boundary().await
    }

    async fn truncate_before(&self, seq: Seq) -> Result<(), AppendError> {
        if self.records {
            self.audit.truncated(&self.prefix, seq);
        }
        self.inner.truncate_before(seq).await
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }
}
