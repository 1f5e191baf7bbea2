//! The audit of a server: what was done to its keys, sessions, tenants, workspaces and quotas, read from the ledger.

use futures::TryStreamExt;
use servo_core::{EventId, TenantId};
use servo_engine::AuditOutcome;
use servo_engine::rows::AuditRow;
use servo_store::Seq;

use crate::event::{ControlData, ControlEvent, read_batch};
use crate::grant::{Grant, Scope};
use crate::ledger::{ControlLedger, LedgerError};
use crate::session::SessionOf;
use crate::state::ControlState;

/// Batches that are read at once.
const CHUNK: Seq = 512;

/// Where an act is in the ledger: the batch, and the place in it. Its text is `12.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ActPlace(Seq, u32);

impl std::fmt::Display for ActPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

impl std::str::FromStr for ActPlace {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (seq, place) = text.split_once('.').unwrap_or((text, "0"));
        Ok(Self(seq.parse()?, place.parse()?))
    }
}

/// Something that was done to a server, or was refused.
#[derive(Debug, Clone, PartialEq)]
pub struct ControlAct {
    /// Where it is in the ledger.
    pub place: ActPlace,
    /// The scope: whoever may read the audit there may read it.
    pub scope: Scope,
    /// The act, as the audit of a workspace has its own.
    pub row: AuditRow,
}

impl ControlLedger {
    /// Acts before a place, the newest first, that are wanted: so many of them, or all that there are.
    pub async fn acts(
        &self,
        before: Option<ActPlace>,
        limit: usize,
        is_wanted: impl Fn(&ControlAct) -> bool,
    ) -> Result<Vec<ControlAct>, LedgerError> {
        let (log, state) = (self.log(), self.state());
        let (first, next) = (log.boundary().await?, log.next_seq().await?);
        // The batch of the place itself is read again, for what is before it there.
        let mut end = before.map_or(next, |before| next.min(before.0 + 1));
        let mut found = Vec::new();
        while end > first && found.len() < limit {
            let start = end.saturating_sub(CHUNK).max(first);
            let mut acts = Vec::new();
            let mut records = log.read(start);
            while let Some(record) = records.try_next().await? {
                let seq = record.seq;
                if seq >= end {
                    break;
                }
                let events =
                    read_batch(&record.payload).map_err(|source| LedgerError::Batch { seq, source })?;
                let places = (0..).map(|place| ActPlace(seq, place));
                acts.extend(places.zip(&events).filter_map(|(place, event)| act(place, event, &state)));
            }
            let is_before = |act: &ControlAct| before.is_none_or(|before| act.place < before);
            let wanted = acts.into_iter().rev().filter(|act| is_before(act) && is_wanted(act));
            found.extend(wanted.take(limit - found.len()));
            end = start;
        }
        Ok(found)
    }
}

/// The act that an event records; none if nobody did anything.
fn act(place: ActPlace, event: &ControlEvent, state: &ControlState) -> Option<ControlAct> {
    let of_key = |id| state.key(id).map_or(Scope::Server, |key| key.grant.scope.clone());
    let of_tenant = |tenant: &TenantId| Scope::Tenant(tenant.clone());
    let switched = |disabled: bool| if disabled { "disable" } else { "enable" };
    let mut outcome = (AuditOutcome::Allowed, None, None, 0);
    let (scope, action, subject, detail) = match &event.data {
        ControlData::KeyCreated(made) => {
            let detail = format!("{:?}: {}", made.name, described(&made.grant));
            (made.grant.scope.clone(), "key.create".to_owned(), made.id.to_string(), Some(detail))
        }
        ControlData::KeyRevoked(revoked) => {
            let detail =
                state.key(&revoked.id).map(|key| format!("{:?}: {}", key.name, described(&key.grant)));
            (of_key(&revoked.id), "key.revoke".to_owned(), revoked.id.to_string(), detail)
        }
        ControlData::KeyUsed(_) | ControlData::Unknown(_) => return None,
        ControlData::TenantCreated(it) => {
            (of_tenant(&it.tenant), "tenant.create".to_owned(), it.tenant.to_string(), None)
        }
        ControlData::TenantChanged(it) => {
            let action = format!("tenant.{}", switched(it.disabled));
            (of_tenant(&it.tenant), action, it.tenant.to_string(), None)
        }
        ControlData::TenantRemoved(it) => {
            (of_tenant(&it.tenant), "tenant.remove".to_owned(), it.tenant.to_string(), None)
        }
        ControlData::WorkspaceCreated(it) => {
            let subject = format!("{}/{}", it.tenant, it.workspace);
            (of_tenant(&it.tenant), "workspace.create".to_owned(), subject, None)
        }
        ControlData::WorkspaceChanged(it) => {
            let subject = format!("{}/{}", it.tenant, it.workspace);
            (of_tenant(&it.tenant), format!("workspace.{}", switched(it.disabled)), subject, None)
        }
        ControlData::WorkspaceRemoved(it) => {
            let subject = format!("{}/{}", it.tenant, it.workspace);
            (of_tenant(&it.tenant), "workspace.remove".to_owned(), subject, None)
        }
        ControlData::QuotaSet(it) => {
            let set = it.set.iter().map(|(name, value)| match value {
                Some(value) => format!("{name}={value}"),
                None => format!("{name}=none"),
            });
            let unset = it.unset.iter().map(|name| format!("{name} as by default"));
            let detail = set.chain(unset).collect::<Vec<_>>().join(", ");
            (of_tenant(&it.tenant), "quota.set".to_owned(), it.tenant.to_string(), Some(detail))
        }
        ControlData::SessionStarted(it) => {
            let scope = match &it.holder {
                SessionOf::Owner => Scope::Server,
                SessionOf::Key { id } => of_key(id),
                SessionOf::Identity(identity) => common(&identity.grants),
            };
            let detail = format!("logged in as {}, until {}", it.holder.name(), it.expires_at);
            (scope, "session.start".to_owned(), it.id.to_string(), Some(detail))
        }
        ControlData::SessionEnded(it) => (Scope::Server, "session.end".to_owned(), it.id.to_string(), None),
        ControlData::SessionsEnded(it) => {
            (Scope::Server, "session.end_all".to_owned(), it.of.to_string(), None)
        }
        ControlData::RequestDenied(it) => {
            let message =
                format!("this needs the permission {}, which the role {} has", it.permission, it.role);
            outcome = (AuditOutcome::Refused, Some("forbidden".to_owned()), Some(message), it.omitted);
            (it.scope.clone(), it.permission.clone(), it.subject.clone(), None)
        }
        ControlData::AddressLockedOut(it) => {
            let message = format!("{} wrong keys; the next is looked at after {}", it.wrong_keys, it.wait_ms);
            outcome = (AuditOutcome::Refused, Some("rate_limited".to_owned()), Some(message), it.omitted);
            (Scope::Server, "key.lock_out".to_owned(), it.address.to_string(), None)
        }
    };
    let (outcome, refusal, message, omitted) = outcome;
    let time = u64::try_from(event.timestamp.as_millis()).unwrap_or_default();
    let event_id = EventId::from_parts(time, (u128::from(place.0) << 16) | u128::from(place.1 & 0xffff));
    let row = AuditRow {
        event_id,
        occurred_at: event.timestamp,
        principal: event.principal.clone(),
        principal_kind: event.principal.kind().name().to_owned(),
        action,
        subject,
        outcome,
        run_id: None,
        request_id: None,
        detail,
        refusal,
        message,
        omitted,
        row_version: event_id,
    };
    Some(ControlAct { place, scope, row })
}

fn described(grant: &Grant) -> String {
    let Grant { role, scope, assets } = grant;
    match assets {
        Some(assets) => format!("{role} in {scope} for {assets}"),
        None => format!("{role} in {scope}"),
    }
}

/// The tenant that all grants are about, or the server.
pub(crate) fn common(grants: &[Grant]) -> Scope {
    let mut tenants = grants.iter().map(|grant| grant.scope.tenant());
    match tenants.next().flatten() {
        Some(first) if tenants.all(|other| other == Some(first)) => Scope::Tenant(first.clone()),
        Some(_) | None => Scope::Server,
    }
}
