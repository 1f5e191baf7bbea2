//! Events that this version does not know (ADR-051).

use servo_core::EventId;

use crate::event::UnknownEvent;

/// An event of a newer version: its type is unknown here, or its version is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{event_type} (version {event_version}, event {event_id})")]
pub struct NewerEvent {
    /// Its type.
    pub event_type: String,
    /// Its version.
    pub event_version: u32,
    /// The event.
    pub event_id: EventId,
}

impl NewerEvent {
    pub(crate) fn of(event_id: EventId, unknown: &UnknownEvent) -> Self {
        let UnknownEvent { event_type, event_version, payload: _ } = unknown;
        Self { event_type: event_type.clone(), event_version: *event_version, event_id }
    }
}
