//! Whether a running workspace is well: what the commit and compaction threads note, and what that means.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::workspace::Workspace;

/// Tables may be behind the log for so long: a flush, a merge, a slow disk.
const TABLES_MAY_LAG: Duration = Duration::from_secs(30);
/// The name of what is written to find out whether stores take anything, and how long the answer is good.
const PROBE: &str = "health/probe.json";
const PROBE_EVERY: Duration = Duration::from_secs(10);

/// Notes of the threads of a workspace about their work.
#[derive(Debug, Default)]
pub(crate) struct Vitals(Mutex<Notes>);

#[derive(Debug, Default)]
struct Notes {
    /// The last durable batch.
    durable: u64,
    /// The last batch in the tables.
    projected: u64,
    /// Since when the tables lack something.
    behind_since: Option<Duration>,
    append_error: Option<String>,
    flush_error: Option<String>,
    /// When the stores were last tried, and what they said.
    probed: Option<(Duration, Option<String>)>,
}

impl Vitals {
    pub(crate) fn appended(&self, seq: u64, now: Duration) {
        let mut notes = self.lock();
        notes.durable = seq;
        notes.append_error = None;
        notes.behind_since.get_or_insert(now);
    }

    pub(crate) fn append_failed(&self, error: String) {
        self.lock().append_error = Some(error);
    }

    pub(crate) fn flushed(&self, seq: u64, now: Duration) {
        let mut notes = self.lock();
        notes.projected = seq;
        notes.flush_error = None;
        notes.behind_since = (notes.durable > seq).then_some(now);
    }

    pub(crate) fn flush_failed(&self, error: String) {
        self.lock().flush_error = Some(error);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that a workspace needs in order to be of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vital {
    /// The engine answers.
    Engine,
    /// Definitions are deployed.
    Deployment,
    /// Batches can be appended.
    Log,
    /// Tables and manifests can be written.
    Stores,
    /// The tables are not behind the log.
    Tables,
    /// Data follows the log everywhere.
    Data,
}

/// One of them, looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which one.
    pub vital: Vital,
    /// The problem, without names of files; none if it is well.
    pub problem: Option<String>,
    /// Errors and names of files, for those who look after the workspace.
    pub details: Vec<String>,
}

impl Finding {
    fn well(vital: Vital) -> Self {
        Self { vital, problem: None, details: Vec::new() }
    }

    fn bad(vital: Vital, problem: impl Into<String>, details: impl IntoIterator<Item = String>) -> Self {
        Self { vital, problem: Some(problem.into()), details: details.into_iter().collect() }
    }

    /// Whether the workspace is of use all the same: a path that cannot be written holds up nothing else.
    pub fn is_fatal(&self) -> bool {
        self.problem.is_some() && self.vital != Vital::Data
    }
}

impl Workspace {
    /// Everything that the workspace needs, and what is wrong with it. Whether the engine answers is for the caller to
    /// find out: it waits.
    pub async fn findings(&self) -> Vec<Finding> {
        let now = self.inner.spawner.elapsed();
        let probed = self.probe(now).await;
        let (durable, projected, behind, append_error, flush_error) = {
            let notes = self.inner.vitals.lock();
            let behind = notes.behind_since.map(|since| now.saturating_sub(since));
            (notes.durable, notes.projected, behind, notes.append_error.clone(), notes.flush_error.clone())
        };
        let is_deployed = self.snapshot().state().deployment().is_some();
        let deployment = match is_deployed {
            true => Finding::well(Vital::Deployment),
            false => Finding::bad(Vital::Deployment, "nothing is deployed", []),
        };
        let log = match (self.inner.stores.log.is_lost(), append_error) {
            (true, error) => Finding::bad(Vital::Log, "another process may have the log", error),
            (false, Some(error)) => Finding::bad(Vital::Log, "the log cannot be appended to", [error]),
            (false, None) => Finding::well(Vital::Log),
        };
        let stores = match probed {
            Some(error) => Finding::bad(Vital::Stores, "the store of tables cannot be written to", [error]),
            None => Finding::well(Vital::Stores),
        };
        let lag = durable.saturating_sub(projected);
        let tables = match (self.inner.flushes.is_broken(), behind) {
            (true, _) => Finding::bad(
                Vital::Tables,
                "tables are not written any more; start the server again",
                flush_error,
            ),
            (false, Some(behind)) if behind > TABLES_MAY_LAG => {
                let problem = format!("the tables are {lag} batches behind, for {} s", behind.as_secs());
                Finding::bad(Vital::Tables, problem, flush_error)
            }
            (false, _) => Finding::well(Vital::Tables),
        };
        let stuck = self.stuck_paths();
        let data = match stuck.len() {
            0 => Finding::well(Vital::Data),
            count => {
                let problem = format!("{count} paths of data cannot be written; they are tried again");
                let details =
                    stuck.into_iter().map(|it| format!("{}: {} (since {})", it.path, it.problem, it.since));
                Finding::bad(Vital::Data, problem, details)
            }
        };
        vec![deployment, log, stores, tables, data]
    }

    /// Writes something small, if that was not done a moment ago; why it could not be.
    async fn probe(&self, now: Duration) -> Option<String> {
        if let Some((at, outcome)) = self.inner.vitals.lock().probed.clone()
            && now.saturating_sub(at) < PROBE_EVERY
        {
            return outcome;
        }
        let outcome =
            self.inner.stores.blobs.put(PROBE, "{}".into()).await.err().map(|error| error.to_string());
        self.inner.vitals.lock().probed = Some((now, outcome.clone()));
        outcome
    }
}
