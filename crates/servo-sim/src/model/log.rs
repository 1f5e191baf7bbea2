//! The log as JSON says it: batches of events, their payloads unread.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
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
    pub tenant: Arc<str>,
    pub workspace: Arc<str>,
    /// Who is responsible; none if the payload says it.
    pub principal: Option<String>,
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

/// The fields of an event, unread.
type Envelope<'a> = BTreeMap<&'a str, &'a RawValue>;

fn read_events(payload: &[u8]) -> Result<Vec<Event>, String> {
    let envelopes: Vec<Envelope<'_>> = serde_json::from_slice(payload).map_err(|error| error.to_string())?;
    let mut events: Vec<Event> = Vec::with_capacity(envelopes.len());
    for envelope in &envelopes {
        // What is not written is as in the event before.
        let inherited = |name: &str, before: Option<&Arc<str>>| match before {
            Some(before) if !envelope.contains_key(name) => Ok(before.clone()),
            Some(_) | None => words(envelope, name).map(Arc::from),
        };
        let tenant = inherited("tenant_id", events.last().map(|event| &event.tenant))?;
        let workspace = inherited("workspace_id", events.last().map(|event| &event.workspace))?;
        events.push(Event {
            id: words(envelope, "event_id")?.parse().map_err(|error| format!("{error}"))?,
            at: words(envelope, "timestamp")?.parse().map_err(|error| format!("{error}"))?,
            kind: words(envelope, "event_type")?,
            version: field(envelope, "event_version")?.parse().map_err(|error| format!("{error}"))?,
            key: words(envelope, "idempotency_key")?,
            tenant,
            workspace,
            principal: envelope.get("principal").map(|_| words(envelope, "principal")).transpose()?,
            payload: serde_json::from_str(field(envelope, "payload")?).map_err(|error| error.to_string())?,
        });
    }
    Ok(events)
}

fn field<'a>(envelope: &Envelope<'a>, name: &str) -> Result<&'a str, String> {
    envelope.get(name).map(|raw| raw.get()).ok_or_else(|| format!("an event has no {name}"))
}

fn words(envelope: &Envelope<'_>, name: &str) -> Result<String, String> {
    serde_json::from_str(field(envelope, name)?).map_err(|error| format!("{name}: {error}"))
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
