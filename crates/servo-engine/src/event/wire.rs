//! The JSON form of a batch of events.
//!
//! A batch is one JSON array. `source`, `tenant_id` and `workspace_id` are written where they differ from the
//! event before, so the first event always carries them (ADR-035). `principal` is written where it does not follow from
//! the payload, and `correlation_id` never: it is the `run_id` of the payload (ADR-078).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use servo_core::{EventId, TenantId, Timestamp, WorkspaceId};

use super::{Causation, EVENT_VERSION, Event, EventData, UnknownEvent};
use crate::principal::Principal;

/// Why a batch could not be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Not the JSON of a batch.
    #[error("the batch is not a JSON array of events: {0}")]
    Batch(#[source] serde_json::Error),
    /// A known event whose payload does not fit.
    #[error("event {index} ({event_type} {event_id}) has a payload that does not fit its type: {source}")]
    Payload {
        /// Position in the batch, from 0.
        index: usize,
        /// The event's type.
        event_type: String,
        /// The event's id.
        event_id: EventId,
        /// The problem with the payload.
        #[source]
        source: serde_json::Error,
    },
    /// The first event lacks what the others inherit.
    #[error("event {index} lacks `{field}` and there is no event before it to take it from")]
    Missing {
        /// Position in the batch, from 0.
        index: usize,
        /// The field.
        field: &'static str,
    },
}

#[derive(Serialize)]
struct WireOut<'a> {
    event_id: EventId,
    event_type: &'a str,
    event_version: u32,
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant_id: Option<&'a TenantId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace_id: Option<&'a WorkspaceId>,
    idempotency_key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<&'a Principal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    causation_id: Option<&'a Causation>,
    payload: &'a EventData,
}

#[derive(Deserialize)]
struct WireIn<'a> {
    event_id: EventId,
    event_type: std::borrow::Cow<'a, str>,
    event_version: u32,
    timestamp: Timestamp,
    source: Option<Arc<str>>,
    tenant_id: Option<TenantId>,
    workspace_id: Option<WorkspaceId>,
    idempotency_key: String,
    principal: Option<Principal>,
    causation_id: Option<Causation>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// The JSON array of a batch, appended to `out`.
///
/// # Panics
/// Never: our own types always serialize, and an unknown payload was JSON when it was read.
pub fn encode_batch(events: &[Event], out: &mut Vec<u8>) {
    out.push(b'[');
    let mut before: Option<&Event> = None;
    for event in events {
        if before.is_some() {
            out.push(b',');
        }
        let (event_type, event_version) = if let EventData::Unknown(unknown) = &event.data {
            (unknown.event_type.as_str(), unknown.event_version)
        } else {
            (event.data.kind().name(), EVENT_VERSION)
        };
        let wire = WireOut {
            event_id: event.id,
            event_type,
            event_version,
            timestamp: event.at,
            source: before.is_none_or(|b| b.source != event.source).then_some(&event.source),
            tenant_id: before.is_none_or(|b| b.tenant != event.tenant).then_some(&event.tenant),
            workspace_id: before.is_none_or(|b| b.workspace != event.workspace).then_some(&event.workspace),
            idempotency_key: &event.idempotency_key,
            principal: Some(&event.principal).filter(|principal| **principal != event.data.usual_principal()),
            causation_id: event.causation.as_ref(),
            payload: &event.data,
        };
        serde_json::to_writer(&mut *out, &wire).expect("events serialize to JSON in memory");
        before = Some(event);
    }
    out.push(b']');
}

/// Reads what [`encode_batch`] wrote, by this or any other version.
pub fn decode_batch(bytes: &[u8]) -> Result<Vec<Event>, DecodeError> {
    let wires: Vec<WireIn<'_>> = serde_json::from_slice(bytes).map_err(DecodeError::Batch)?;
    let mut events: Vec<Event> = Vec::with_capacity(wires.len());
    for (index, wire) in wires.into_iter().enumerate() {
        let missing = |field| DecodeError::Missing { index, field };
        let before = events.last();
        let source =
            wire.source.or_else(|| before.map(|b| b.source.clone())).ok_or_else(|| missing("source"))?;
        let tenant = wire
            .tenant_id
            .or_else(|| before.map(|b| b.tenant.clone()))
            .ok_or_else(|| missing("tenant_id"))?;
        let workspace = wire
            .workspace_id
            .or_else(|| before.map(|b| b.workspace.clone()))
            .ok_or_else(|| missing("workspace_id"))?;
        let known = if wire.event_version <= EVENT_VERSION {
            EventData::parse(&wire.event_type, wire.payload.get())
        } else {
            None
        };
        let data = match known {
            Some(parsed) => parsed.map_err(|source| DecodeError::Payload {
                index,
                event_type: wire.event_type.to_string(),
                event_id: wire.event_id,
                source,
            })?,
            None => EventData::Unknown(UnknownEvent {
                event_type: wire.event_type.into_owned(),
                event_version: wire.event_version,
                payload: wire.payload.get().to_owned(),
            }),
        };
        events.push(Event {
            id: wire.event_id,
            at: wire.timestamp,
            source,
            tenant,
            workspace,
            idempotency_key: wire.idempotency_key,
            principal: wire.principal.unwrap_or_else(|| data.usual_principal()),
            causation: wire.causation_id,
            data,
        });
    }
    Ok(events)
}

/// Written as the id of the event, or as `request:` and the id of the request.
impl Serialize for Causation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Causation::Event(id) => id.serialize(serializer),
            Causation::Request(id) => serializer.collect_str(&format_args!("{REQUEST}{id}")),
        }
    }
}

impl<'de> Deserialize<'de> for Causation {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        match text.strip_prefix(REQUEST) {
            Some(id) => Ok(Causation::Request(id.into())),
            None => text.parse().map(Causation::Event).map_err(serde::de::Error::custom),
        }
    }
}

const REQUEST: &str = "request:";
