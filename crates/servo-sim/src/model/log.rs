//! The log as JSON says it: batches of events, their payloads unread.

use serde_json::Value;
use servo_core::{EventId, Timestamp};

/// One event.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Event {
    pub id: EventId,
    pub at: Timestamp,
    pub kind: String,
    pub version: u64,
    pub key: String,
    pub tenant: String,
    pub workspace: String,
    pub payload: Value,
}

/// One batch of the log.
#[derive(Debug, Clone)]
#[allow(missing_docs)]
pub struct Batch {
    pub seq: u64,
    pub epoch: u64,
    pub events: Vec<Event>,
}

/// A whole log, read once.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// Its batches, in order.
    pub batches: Vec<Batch>,
}

impl Log {
    /// Reads batches: number, epoch and a JSON array of events.
    pub fn read<'a>(batches: impl IntoIterator<Item = (u64, u64, &'a [u8])>) -> Result<Self, String> {
        let read = batches.into_iter().map(|(seq, epoch, payload)| {
            let events = read_events(payload).map_err(|problem| format!("batch {seq}: {problem}"))?;
            Ok(Batch { seq, epoch, events })
        });
        Ok(Self { batches: read.collect::<Result<_, String>>()? })
    }

    /// The batches up to one, that one included.
    pub fn through(&self, seq: u64) -> &[Batch] {
        &self.batches[..self.batches.partition_point(|batch| batch.seq <= seq)]
    }
}

fn read_events(payload: &[u8]) -> Result<Vec<Event>, String> {
    let values: Vec<Value> = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
    let mut events: Vec<Event> = Vec::with_capacity(values.len());
    for mut value in values {
        // What is not written is as in the event before.
        let inherited = |name: &str, before: Option<&String>| match text(&value, name) {
            Ok(written) => Ok(written.to_owned()),
            Err(problem) => before.cloned().ok_or(problem),
        };
        let tenant = inherited("tenant_id", events.last().map(|event| &event.tenant))?;
        let workspace = inherited("workspace_id", events.last().map(|event| &event.workspace))?;
        events.push(Event {
            id: text(&value, "event_id")?.parse().map_err(|error| format!("{error}"))?,
            at: time(&value, "timestamp")?,
            kind: text(&value, "event_type")?.to_owned(),
            version: number(&value, "event_version")?,
            key: text(&value, "idempotency_key")?.to_owned(),
            tenant,
            workspace,
            payload: value.get_mut("payload").map(Value::take).ok_or("an event has no payload")?,
        });
    }
    Ok(events)
}

/// A field that is a text.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    value.get(name).and_then(Value::as_str).ok_or_else(|| format!("{name} is no text in {value}"))
}

/// A field that is a number.
pub(super) fn number(value: &Value, name: &str) -> Result<u64, String> {
    value.get(name).and_then(Value::as_u64).ok_or_else(|| format!("{name} is no number in {value}"))
}

/// A field that is a time.
pub(super) fn time(value: &Value, name: &str) -> Result<Timestamp, String> {
    text(value, name)?.parse().map_err(|error| format!("{name}: {error}"))
}

/// A field that is a list; none written is an empty one.
pub(super) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A field that is a list of texts.
pub(super) fn texts<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a str> {
    list(value, name).iter().filter_map(Value::as_str)
}
