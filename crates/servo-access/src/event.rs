//! Events of the control ledger. Types and fields are added, never changed: an event that this version does not know is
//! kept in the log and skipped by the fold.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use servo_core::{Millis, TenantId, Timestamp, WorkspaceId};
use servo_engine::Principal;

use crate::grant::{Grant, Scope};
use crate::key::{KeyHash, KeyId};
use crate::session::{SessionId, SessionOf};

/// A fact about a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ControlEvent {
    /// When.
    pub timestamp: Timestamp,
    /// Who did it.
    pub principal: Principal,
    /// Of its payload; a newer one than this version knows is skipped.
    pub event_version: u32,
    /// The fact.
    #[serde(flatten)]
    pub data: ControlData,
}

/// The payload of an event, under its type.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event_type", content = "payload")]
#[allow(missing_docs)]
pub enum ControlData {
    KeyCreated(KeyCreated),
    KeyRevoked(KeyRevoked),
    KeyUsed(KeyUsed),
    TenantCreated(TenantCreated),
    TenantChanged(TenantChanged),
    TenantRemoved(TenantRemoved),
    WorkspaceCreated(WorkspaceCreated),
    WorkspaceChanged(WorkspaceChanged),
    WorkspaceRemoved(WorkspaceRemoved),
    QuotaSet(QuotaSet),
    SessionStarted(SessionStarted),
    SessionEnded(SessionEnded),
    SessionsEnded(SessionsEnded),
    RequestDenied(RequestDenied),
    AddressLockedOut(AddressLockedOut),
    /// A type of a newer version.
    #[serde(untagged)]
    Unknown(Value),
}

/// An API key was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyCreated {
    /// Its id.
    pub id: KeyId,
    /// Purpose, as stated by its creator.
    pub name: String,
    /// The hash of its secret.
    pub hash: KeyHash,
    /// Grants that the key carries.
    #[serde(flatten)]
    pub grant: Grant,
    /// Whether a program uses it, and not a person.
    #[serde(default)]
    pub service: bool,
    /// From then on it is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// A key is refused from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRevoked {
    /// Its id.
    pub id: KeyId,
}

/// A key was used: recorded now and then, not each time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyUsed {
    /// Its id.
    pub id: KeyId,
    /// When last.
    pub used_at: Timestamp,
}

/// There is a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantCreated {
    /// Its name.
    pub tenant: TenantId,
}

/// A tenant was switched off or on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantChanged {
    /// Its name.
    pub tenant: TenantId,
    /// Whether it is off.
    pub disabled: bool,
}

/// A tenant is no more. Its files stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantRemoved {
    /// Its name.
    pub tenant: TenantId,
}

/// There is a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceCreated {
    /// Its tenant.
    pub tenant: TenantId,
    /// Its name.
    pub workspace: WorkspaceId,
}

/// A workspace was switched off or on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceChanged {
    /// Its tenant.
    pub tenant: TenantId,
    /// Its name.
    pub workspace: WorkspaceId,
    /// Whether it is off.
    pub disabled: bool,
}

/// A workspace is no more. Its files stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceRemoved {
    /// Its tenant.
    pub tenant: TenantId,
    /// Its name.
    pub workspace: WorkspaceId,
}

/// Limits of a tenant were changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaSet {
    /// The tenant.
    pub tenant: TenantId,
    /// New values by name; none is no limit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, Option<u64>>,
    /// Names of those that have their defaults again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<String>,
}

/// A browser has logged in; the principal of the event is its user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStarted {
    /// Its id.
    pub id: SessionId,
    /// Whose it is.
    pub holder: SessionOf,
    /// From then on it is refused.
    pub expires_at: Timestamp,
}

/// A session is refused from now on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnded {
    /// Its id.
    pub id: SessionId,
}

/// Everything is refused that somebody logged in with before now: sessions, and tokens of an identity provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsEnded {
    /// Of whom.
    pub of: Principal,
}

/// Somebody asked for what they may not do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestDenied {
    /// The permission that they lack.
    pub permission: String,
    /// The least role that has it.
    pub role: String,
    /// The refused operation: `POST /api/v1/admin/tenants`.
    pub subject: String,
    /// Where whoever asked has a role.
    pub scope: Scope,
    /// Refusals before this one that were not recorded, because there were too many.
    #[serde(default)]
    pub omitted: u64,
}

/// An address has shown so many wrong keys that it has to wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressLockedOut {
    /// The address, or the network of it.
    pub address: IpAddr,
    /// Wrong keys that it has shown.
    pub wrong_keys: u32,
    /// How long it waits.
    pub wait_ms: Millis,
    /// Refusals before this one that were not recorded, because there were too many.
    #[serde(default)]
    pub omitted: u64,
}

/// The version of every payload that this version writes.
pub(crate) const VERSION: u32 = 1;

/// The text of a batch: one JSON array without line breaks.
pub fn write_batch(events: &[ControlEvent]) -> Result<String, serde_json::Error> {
    serde_json::to_string(events)
}

/// The events of a batch.
pub fn read_batch(text: &[u8]) -> Result<Vec<ControlEvent>, serde_json::Error> {
    serde_json::from_slice(text)
}
