//! Audits everything that is ever stored, and reports violations at the moment they happen.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Value;
use servo_store::Record;

/// A stored batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Its number.
    pub seq: u64,
    /// Epoch of its writer.
    pub epoch: u64,
    /// The put id of its write.
    pub put_id: String,
    /// A JSON array of events.
    pub payload: Bytes,
}

impl Batch {
    /// The facts kept of a record.
    pub fn of(record: &Record) -> Self {
        let Record { seq, epoch, put_id, payload } = record;
        Self { seq: *seq, epoch: *epoch, put_id: put_id.to_string(), payload: payload.clone() }
    }
}

/// The audited facts of one workspace.
#[derive(Debug, Default, Clone)]
pub struct WorkspaceAudit {
    /// Every batch that was ever stored, from the first.
    pub batches: Vec<Batch>,
    /// Ids of the events in them.
    events: BTreeSet<String>,
    /// Attempts that they mention.
    attempts: BTreeSet<String>,
    /// Batches below this may be gone.
    pub boundary: u64,
    tables: Tables,
    /// Last batch of the tables that a caller was told are durable.
    published: u64,
    files: BTreeSet<String>,
}

/// The newest manifest.
#[derive(Debug, Default, Clone)]
struct Tables {
    revision: u64,
    epoch: u64,
    last_seq: u64,
    paths: BTreeSet<String>,
}

/// Observes everything that is stored and deleted. Cheap to clone.
#[derive(Clone, Default)]
pub struct Audit {
    workspaces: Arc<Mutex<BTreeMap<String, WorkspaceAudit>>>,
    violations: Arc<Mutex<Vec<String>>>,
    complained: Arc<AtomicBool>,
}

impl Audit {
    /// Starts the audit of a workspace with this prefix.
    pub fn open(&self, prefix: &str) {
        lock(&self.workspaces)
            .insert(prefix.to_owned(), WorkspaceAudit { boundary: 1, ..WorkspaceAudit::default() });
    }

    /// The audited facts of a workspace.
    pub fn workspace(&self, prefix: &str) -> WorkspaceAudit {
        lock(&self.workspaces).get(prefix).cloned().unwrap_or_default()
    }

    /// Records a violation.
    pub fn report(&self, what: impl Into<String>) {
        lock(&self.violations).push(what.into());
        self.complained.store(true, Ordering::Relaxed);
    }

    /// Whether there are violations.
    pub fn has_violations(&self) -> bool {
        self.complained.load(Ordering::Relaxed)
    }

    /// The violations found.
    pub fn violations(&self) -> Vec<String> {
        lock(&self.violations).clone()
    }

    /// An object was stored.
    pub fn stored(&self, path: &str, bytes: &Bytes) {
        self.about(path, |audited, name| audited.stored(name, bytes));
    }

    /// An object was deleted.
    pub fn deleted(&self, path: &str) {
        self.about(path, |audited, name| audited.deleted(name));
    }

    /// Records that a batch became durable in a file log.
    pub fn appended(&self, prefix: &str, batch: Batch) {
        let violation =
            lock(&self.workspaces).get_mut(prefix).and_then(|audited| audited.landed(batch).err());
        self.report_about(violation);
    }

    /// Compares with the content of a disk: a crashed writer may have written a batch or not.
    pub fn reread(&self, prefix: &str, files: &BTreeMap<String, Bytes>) {
        let violation =
            lock(&self.workspaces).get_mut(prefix).and_then(|audited| audited.reread(files).err());
        self.report_about(violation);
    }

    /// Records that a file log is about to delete the batches before this one.
    pub fn truncated(&self, prefix: &str, boundary: u64) {
        let violation =
            lock(&self.workspaces).get_mut(prefix).and_then(|audited| audited.boundary_moved(boundary).err());
        self.report_about(violation);
    }

    /// Checks the last batch of a file log that was opened.
    pub fn ends_at(&self, prefix: &str, last: u64) {
        let known = lock(&self.workspaces).get(prefix).map_or(0, |audited| audited.batches.len() as u64);
        if last < known {
            self.report(format!("batch {known} was durable, and the log ends at {last}"));
        }
    }

    /// Records that a caller was told this batch is durable.
    pub fn must_be_there(&self, prefix: &str, batch: &Batch) {
        if self.holds(prefix, batch) != Some(true) {
            self.report(format!("batch {} was acknowledged and is not in the log", batch.seq));
        }
    }

    /// Records that a caller was told another batch has this number.
    pub fn must_not_be_there(&self, prefix: &str, batch: &Batch) {
        // One that was deleted meanwhile looks like a name of long ago: whoever wrote it reads the log again.
        let is_gone = batch.seq < lock(&self.workspaces).get(prefix).map_or(0, |audited| audited.boundary);
        if !is_gone && self.holds(prefix, batch) == Some(true) {
            self.report(format!("batch {} was refused and is in the log", batch.seq));
        }
    }

    fn holds(&self, prefix: &str, batch: &Batch) -> Option<bool> {
        let workspaces = lock(&self.workspaces);
        let found = workspaces.get(prefix)?.batches.get(usize::try_from(batch.seq).ok()?.checked_sub(1)?)?;
        Some(found == batch)
    }

    /// Records that a caller was told this event is durable.
    pub fn acknowledged(&self, prefix: &str, event: &str) {
        let known = lock(&self.workspaces).get(prefix).is_some_and(|audited| audited.events.contains(event));
        if !known {
            self.report(format!("event {event} was acknowledged and is not in the log"));
        }
    }

    /// Records that a queue was given this attempt.
    pub fn enqueued(&self, prefix: &str, attempt: &str) {
        let known =
            lock(&self.workspaces).get(prefix).is_some_and(|audited| audited.attempts.contains(attempt));
        if !known {
            self.report(format!("attempt {attempt} was handed to a queue before it was in the log"));
        }
    }

    fn about(&self, path: &str, tell: impl FnOnce(&mut WorkspaceAudit, &str) -> Result<(), String>) {
        let violation = {
            let mut workspaces = lock(&self.workspaces);
            let found = workspaces.iter_mut().find_map(|(prefix, audited)| {
                let name = path.strip_prefix(prefix.as_str())?.strip_prefix('/')?;
                Some((audited, name))
            });
            found.and_then(|(audited, name)| tell(audited, name).err())
        };
        self.report_about(violation);
    }

    fn report_about(&self, violation: Option<String>) {
        if let Some(violation) = violation {
            self.report(violation);
        }
    }
}

impl WorkspaceAudit {
    fn stored(&mut self, name: &str, bytes: &Bytes) -> Result<(), String> {
        if let Some(seq) = numbered(name, "ledger/orchestration/", ".jsonl") {
            return self.batch_stored(seq, bytes);
        }
        if name.starts_with("ledger/") {
            let text = String::from_utf8_lossy(bytes);
            let boundary = text.split(|c: char| !c.is_ascii_digit()).find_map(|word| word.parse().ok());
            return self.boundary_moved(boundary.unwrap_or(0));
        }
        if let Some(revision) = numbered(name, "manifests/orchestration/", ".json") {
            return self.published(revision, bytes);
        }
        if name.starts_with("state/") {
            self.files.insert(name.to_owned());
        }
        Ok(())
    }

    fn deleted(&mut self, name: &str) -> Result<(), String> {
        self.files.remove(name);
        if self.tables.paths.contains(name) {
            return Err(format!("{name} was deleted, and revision {} names it", self.tables.revision));
        }
        match numbered(name, "ledger/orchestration/", ".jsonl") {
            Some(seq) if seq >= self.boundary => {
                Err(format!("batch {seq} was deleted, and the log begins at {}", self.boundary))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn reread(&mut self, files: &BTreeMap<String, Bytes>) -> Result<(), String> {
        self.files = files.keys().filter(|name| name.starts_with("state/")).cloned().collect();
        let manifests = files.iter().filter_map(|(name, bytes)| {
            Tables::read(numbered(name, "manifests/orchestration/", ".json")?, bytes).ok()
        });
        self.tables = manifests.max_by_key(|tables| tables.revision).unwrap_or_default();
        if self.tables.last_seq < self.published {
            let (ends, published) = (self.tables.last_seq, self.published);
            return Err(format!(
                "tables up to batch {published} were durable, and those on the disk end at {ends}"
            ));
        }
        Ok(())
    }

    fn batch_stored(&mut self, seq: u64, bytes: &Bytes) -> Result<(), String> {
        if seq <= self.batches.len() as u64 {
            // The name was free because it was deleted; nobody reads it down there.
            return if seq < self.boundary { Ok(()) } else { Err(format!("batch {seq} was written twice")) };
        }
        let line: Value = serde_json::from_slice(bytes).map_err(|error| format!("batch {seq}: {error}"))?;
        let epoch = line["epoch"].as_u64().unwrap_or(0);
        let put_id = line["put_id"].as_str().unwrap_or_default().to_owned();
        let events = find(bytes, b"\"events\":").ok_or_else(|| format!("batch {seq} has no events"))?;
        let end = bytes.len().saturating_sub(2);
        self.landed(Batch { seq, epoch, put_id, payload: bytes.slice(events + 9..end) })
    }

    fn landed(&mut self, batch: Batch) -> Result<(), String> {
        let expected = self.batches.len() as u64 + 1;
        if batch.seq < expected && self.batches.get(batch.seq as usize - 1) == Some(&batch) {
            return Ok(());
        }
        if batch.seq != expected {
            return Err(format!("batch {} landed where {expected} was due", batch.seq));
        }
        self.events.extend(values(&batch.payload, b"\"event_id\":\"").map(str::to_owned));
        self.attempts.extend(values(&batch.payload, b"\"attempt_id\":\"").map(str::to_owned));
        self.batches.push(batch);
        Ok(())
    }

    fn boundary_moved(&mut self, boundary: u64) -> Result<(), String> {
        self.boundary = self.boundary.max(boundary);
        if boundary > self.tables.last_seq + 1 {
            let tables = self.tables.last_seq;
            return Err(format!("the log begins at {boundary}, and the tables end at {tables}"));
        }
        Ok(())
    }

    fn published(&mut self, revision: u64, bytes: &Bytes) -> Result<(), String> {
        if revision <= self.tables.revision {
            // A name of long ago, created again: behind the newest, where nobody looks.
            return Ok(());
        }
        let next = Tables::read(revision, bytes)?;
        self.published = next.last_seq;
        let before = std::mem::replace(&mut self.tables, next);
        let Tables { epoch, last_seq, paths, .. } = &self.tables;
        if *last_seq > self.batches.len() as u64 {
            let end = self.batches.len();
            return Err(format!("revision {revision} shows batch {last_seq}, and the log ends at {end}"));
        }
        if *last_seq < before.last_seq {
            return Err(format!(
                "revision {revision} ends at {last_seq}, the one before at {}",
                before.last_seq
            ));
        }
        if *epoch < before.epoch {
            return Err(format!(
                "revision {revision} of epoch {epoch} came after one of epoch {}",
                before.epoch
            ));
        }
        let said_something = |batch: &Batch| batch.payload.as_ref() != b"[]";
        if paths.is_empty() && self.batches[..*last_seq as usize].iter().any(said_something) {
            return Err(format!("revision {revision} names no files"));
        }
        match paths.iter().find(|path| !self.files.contains(*path)) {
            Some(missing) => Err(format!("revision {revision} names {missing}, which is not there")),
            None => Ok(()),
        }
    }
}

impl Tables {
    fn read(revision: u64, bytes: &Bytes) -> Result<Self, String> {
        let manifest: Value =
            serde_json::from_slice(bytes).map_err(|error| format!("revision {revision}: {error}"))?;
        Ok(Self {
            revision,
            epoch: manifest["epoch"].as_u64().unwrap_or(0),
            last_seq: manifest["watermarks"]["last_seq"].as_u64().unwrap_or(0),
            paths: paths(&manifest),
        })
    }
}

/// Every file that a manifest names.
fn paths(value: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut todo = vec![value];
    while let Some(next) = todo.pop() {
        match next {
            Value::Object(fields) => {
                found.extend(fields.get("path").and_then(Value::as_str).map(str::to_owned));
                todo.extend(fields.values());
            }
            Value::Array(items) => todo.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn numbered(name: &str, dir: &str, end: &str) -> Option<u64> {
    name.strip_prefix(dir)?.strip_suffix(end)?.parse().ok()
}

fn find(bytes: &[u8], word: &[u8]) -> Option<usize> {
    bytes.windows(word.len()).position(|window| window == word)
}

/// The texts between each `opening` and the next quotation mark.
fn values<'a>(bytes: &'a [u8], opening: &'a [u8]) -> impl Iterator<Item = &'a str> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let at = find(rest, opening)? + opening.len();
        let text = &rest[at..];
        let end = text.iter().position(|byte| *byte == b'"')?;
        rest = &text[end..];
        std::str::from_utf8(&text[..end]).ok()
    })
}
