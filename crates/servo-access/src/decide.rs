//! Decides requests about keys, tenants, workspaces and quotas. Pure: what was decided is folded when it is durable.

use std::collections::BTreeMap;

use servo_core::selection::Selection;
use servo_core::{TenantId, Timestamp, WorkspaceId};
use servo_engine::Principal;

use crate::event::{
    AddressLockedOut, ControlData, KeyCreated, KeyRevoked, KeyUsed, QuotaSet, RequestDenied, SessionEnded,
    SessionStarted, SessionsEnded, TenantChanged, TenantCreated, TenantRemoved, WorkspaceChanged,
    WorkspaceCreated, WorkspaceRemoved,
};
use crate::grant::{Grant, Scope};
use crate::key::{KeyHash, KeyId};
use crate::quotas::Quota;
use crate::session::{Session, SessionId, SessionOf};
use crate::state::ControlState;

/// Longest name of a key, in characters.
const MAX_NAME_CHARS: usize = 100;
/// Keys that a server keeps, revoked ones included.
const MOST_KEYS: usize = 100_000;
/// Tenants of a server, and workspaces of a tenant.
const MOST_TENANTS: usize = 10_000;

/// Sessions of one user; the oldest is ended when another one begins.
const MOST_SESSIONS_EACH: usize = 50;
/// Sessions of a server.
const MOST_SESSIONS: usize = 50_000;

/// A key to be made.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// Its id.
    pub id: KeyId,
    /// The hash of its secret.
    pub hash: KeyHash,
    /// Purpose, as stated by its creator.
    pub name: String,
    /// Grants that the key carries.
    pub grant: Grant,
    /// Whether a program uses it.
    pub service: bool,
    /// From then on it is refused.
    pub expires_at: Option<Timestamp>,
}

/// A request to change what a server has.
#[derive(Debug, Clone)]
pub enum ControlCommand {
    /// Make a key.
    CreateKey(NewKey),
    /// Refuse a key from now on.
    RevokeKey(KeyId),
    /// Record when keys were last used.
    RecordUse(BTreeMap<KeyId, Timestamp>),
    /// Make a tenant.
    CreateTenant(TenantId),
    /// Switch a tenant off or on.
    ChangeTenant {
        /// Which.
        tenant: TenantId,
        /// Whether it is off.
        disabled: bool,
    },
    /// Forget a tenant that is switched off, or has no workspaces.
    RemoveTenant(TenantId),
    /// Make a workspace.
    CreateWorkspace(TenantId, WorkspaceId),
    /// Switch a workspace off or on.
    ChangeWorkspace {
        /// Its tenant.
        tenant: TenantId,
        /// Which.
        workspace: WorkspaceId,
        /// Whether it is off.
        disabled: bool,
    },
    /// Forget a workspace that is switched off.
    RemoveWorkspace(TenantId, WorkspaceId),
    /// Change limits of a tenant.
    SetQuotas {
        /// Which.
        tenant: TenantId,
        /// New values by name; none is no limit.
        set: BTreeMap<String, Option<u64>>,
        /// Those that have their defaults again.
        unset: Vec<String>,
    },
    /// Begin a session of whoever asks.
    StartSession {
        /// Its id.
        id: SessionId,
        /// Whose it is.
        holder: SessionOf,
        /// From then on it is refused.
        expires_at: Timestamp,
    },
    /// Refuse a session from now on.
    EndSession(SessionId),
    /// Refuse everything that somebody logged in with before now.
    EndSessionsOf(Principal),
    /// Record that whoever asks was refused.
    RecordDenial(RequestDenied),
    /// Record that an address was locked out.
    RecordLockout(AddressLockedOut),
}

/// Why a request is refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum ControlRefusal {
    #[error("there is no key {id}; servo admin api-keys list shows what there is")]
    UnknownKey { id: KeyId },
    #[error("there is no session {id}; servo admin sessions list shows what there is")]
    UnknownSession { id: SessionId },
    #[error("there is no tenant {tenant}; servo admin tenants list shows what there is")]
    UnknownTenant { tenant: TenantId },
    #[error("there is no workspace {tenant}/{workspace}; servo admin workspaces list shows what there is")]
    UnknownWorkspace { tenant: TenantId, workspace: WorkspaceId },
    #[error("there is a tenant {tenant} already")]
    TenantExists { tenant: TenantId },
    #[error("there is a workspace {tenant}/{workspace} already")]
    WorkspaceExists { tenant: TenantId, workspace: WorkspaceId },
    #[error("{what} is switched on; switch it off first: servo admin {command} disable {what}")]
    StillOn { what: String, command: &'static str },
    #[error("{field}: {problem}")]
    Invalid { field: &'static str, problem: String },
    #[error("a server has at most {limit} {what}")]
    TooMany { what: &'static str, limit: usize },
}

/// The events of a request by somebody; none if it is so already.
pub fn decide(
    state: &ControlState,
    principal: &Principal,
    command: &ControlCommand,
    now: Timestamp,
) -> Result<Vec<ControlData>, ControlRefusal> {
    match command {
        ControlCommand::CreateKey(new) => create_key(state, new, now),
        ControlCommand::RevokeKey(id) => {
            let key = state.key(id).ok_or_else(|| ControlRefusal::UnknownKey { id: id.clone() })?;
            let revoked = ControlData::KeyRevoked(KeyRevoked { id: id.clone() });
            Ok(if key.revoked_at.is_some() { Vec::new() } else { vec![revoked] })
        }
        ControlCommand::RecordUse(uses) => {
            let is_news = |id: &KeyId, at: Timestamp| {
                state.key(id).is_some_and(|key| key.last_used_at.is_none_or(|before| before < at))
            };
            let news = uses.iter().filter(|(id, at)| is_news(id, **at));
            Ok(news.map(|(id, at)| ControlData::KeyUsed(KeyUsed { id: id.clone(), used_at: *at })).collect())
        }
        ControlCommand::CreateTenant(tenant) => {
            if state.tenant(tenant).is_some() {
                return Err(ControlRefusal::TenantExists { tenant: tenant.clone() });
            }
            limited("tenants", state.tenants().count())?;
            Ok(vec![ControlData::TenantCreated(TenantCreated { tenant: tenant.clone() })])
        }
        ControlCommand::ChangeTenant { tenant, disabled } => {
            let found = known(state, tenant)?;
            let changed = TenantChanged { tenant: tenant.clone(), disabled: *disabled };
            let is_so = found.disabled == *disabled;
            Ok(if is_so { Vec::new() } else { vec![ControlData::TenantChanged(changed)] })
        }
        ControlCommand::RemoveTenant(tenant) => {
            let found = known(state, tenant)?;
            if !found.disabled && !found.workspaces.is_empty() {
                return Err(ControlRefusal::StillOn { what: tenant.to_string(), command: "tenants" });
            }
            Ok(vec![ControlData::TenantRemoved(TenantRemoved { tenant: tenant.clone() })])
        }
        ControlCommand::CreateWorkspace(tenant, workspace) => {
            let found = known(state, tenant)?;
            let (tenant, workspace) = (tenant.clone(), workspace.clone());
            if found.workspaces.contains_key(&workspace) {
                return Err(ControlRefusal::WorkspaceExists { tenant, workspace });
            }
            limited("workspaces of a tenant", found.workspaces.len())?;
            Ok(vec![ControlData::WorkspaceCreated(WorkspaceCreated { tenant, workspace })])
        }
        ControlCommand::ChangeWorkspace { tenant, workspace, disabled } => {
            let is_so = found(state, tenant, workspace)? == *disabled;
            let (tenant, workspace, disabled) = (tenant.clone(), workspace.clone(), *disabled);
            let changed = ControlData::WorkspaceChanged(WorkspaceChanged { tenant, workspace, disabled });
            Ok(if is_so { Vec::new() } else { vec![changed] })
        }
        ControlCommand::RemoveWorkspace(tenant, workspace) => {
            if !found(state, tenant, workspace)? {
                let what = format!("{tenant}/{workspace}");
                return Err(ControlRefusal::StillOn { what, command: "workspaces" });
            }
            let (tenant, workspace) = (tenant.clone(), workspace.clone());
            Ok(vec![ControlData::WorkspaceRemoved(WorkspaceRemoved { tenant, workspace })])
        }
        ControlCommand::SetQuotas { tenant, set, unset } => set_quotas(state, tenant, set, unset),
        ControlCommand::StartSession { id, holder, expires_at } => {
            let started = SessionStarted { id: id.clone(), holder: holder.clone(), expires_at: *expires_at };
            start_session(state, principal, started, now)
        }
        ControlCommand::EndSession(id) => match state.session(id, now) {
            Some(_) => Ok(vec![ControlData::SessionEnded(SessionEnded { id: id.clone() })]),
            None => Err(ControlRefusal::UnknownSession { id: id.clone() }),
        },
        ControlCommand::EndSessionsOf(of) => {
            Ok(vec![ControlData::SessionsEnded(SessionsEnded { of: of.clone() })])
        }
        ControlCommand::RecordDenial(denied) => Ok(vec![ControlData::RequestDenied(denied.clone())]),
        ControlCommand::RecordLockout(locked) => Ok(vec![ControlData::AddressLockedOut(locked.clone())]),
    }
}

/// Somebody who begins session after session ends their own, and nobody else's.
fn start_session(
    state: &ControlState,
    principal: &Principal,
    started: SessionStarted,
    now: Timestamp,
) -> Result<Vec<ControlData>, ControlRefusal> {
    if state.sessions(now).any(|session| session.id == started.id) {
        return Err(ControlRefusal::Invalid { field: "id", problem: "is taken; ask again".to_owned() });
    }
    let mut own: Vec<&Session> =
        state.sessions(now).filter(|session| session.principal == *principal).collect();
    own.sort_by_key(|session| (session.started_at, session.id.clone()));
    let too_many = (own.len() + 1).saturating_sub(MOST_SESSIONS_EACH);
    if too_many == 0 && state.sessions(now).count() >= MOST_SESSIONS {
        return Err(ControlRefusal::TooMany { what: "sessions", limit: MOST_SESSIONS });
    }
    let ended = own.into_iter().take(too_many);
    let mut events: Vec<ControlData> =
        ended.map(|session| ControlData::SessionEnded(SessionEnded { id: session.id.clone() })).collect();
    events.push(ControlData::SessionStarted(started));
    Ok(events)
}

fn create_key(
    state: &ControlState,
    new: &NewKey,
    now: Timestamp,
) -> Result<Vec<ControlData>, ControlRefusal> {
    let invalid = |field, problem: String| Err(ControlRefusal::Invalid { field, problem });
    let count = new.name.chars().count();
    if !(1..=MAX_NAME_CHARS).contains(&count) || new.name.chars().any(char::is_control) {
        return invalid("name", format!("is 1 to {MAX_NAME_CHARS} characters on one line"));
    }
    if let Some(at) = new.expires_at
        && at <= now
    {
        return invalid("expires_at", format!("{at} is over"));
    }
    if let Some(assets) = &new.grant.assets
        && let Err(error) = Selection::parse(assets)
    {
        return invalid("assets", error.to_string());
    }
    match &new.grant.scope {
        Scope::Server => {}
        Scope::Tenant(tenant) => drop(known(state, tenant)?),
        Scope::Workspace(tenant, workspace) => drop(found(state, tenant, workspace)?),
    }
    if state.keys().count() >= MOST_KEYS {
        return Err(ControlRefusal::TooMany { what: "keys", limit: MOST_KEYS });
    }
    if state.key(&new.id).is_some() {
        return invalid("id", "is taken; ask again".to_owned());
    }
    let NewKey { id, hash, name, grant, service, expires_at } = new.clone();
    Ok(vec![ControlData::KeyCreated(KeyCreated { id, name, hash, grant, service, expires_at })])
}

fn set_quotas(
    state: &ControlState,
    tenant: &TenantId,
    set: &BTreeMap<String, Option<u64>>,
    unset: &[String],
) -> Result<Vec<ControlData>, ControlRefusal> {
    let quotas = &known(state, tenant)?.quotas;
    let invalid = |problem: String| ControlRefusal::Invalid { field: "quotas", problem };
    let named = |name: &str| {
        let names: Vec<&str> = Quota::ALL.iter().map(|quota| quota.name()).collect();
        let unknown = || invalid(format!("there is no quota {name:?}; there are {}", names.join(", ")));
        Quota::find(name).ok_or_else(unknown)
    };
    for (name, value) in set {
        let quota = named(name)?;
        let (least, most) = quota.range();
        match value {
            Some(value) if !(least..=most).contains(value) => {
                return Err(invalid(format!("{name} is {least} to {most}, not {value}")));
            }
            None if quota == Quota::FairnessWeight => {
                return Err(invalid(format!(
                    "{name} is {least} to {most}: a weight cannot be without a limit"
                )));
            }
            Some(_) | None => {}
        }
        if unset.contains(name) {
            return Err(invalid(format!("{name} is to be set and unset; ask for one of the two")));
        }
    }
    let mut is_change = set.iter().any(|(name, value)| {
        Quota::find(name).is_some_and(|quota| !quotas.is_set(quota) || quotas.get(quota) != *value)
    });
    for name in unset {
        is_change |= quotas.is_set(named(name)?);
    }
    let change = QuotaSet { tenant: tenant.clone(), set: set.clone(), unset: unset.to_vec() };
    Ok(if is_change { vec![ControlData::QuotaSet(change)] } else { Vec::new() })
}

fn known<'s>(state: &'s ControlState, tenant: &TenantId) -> Result<&'s crate::state::Tenant, ControlRefusal> {
    state.tenant(tenant).ok_or_else(|| ControlRefusal::UnknownTenant { tenant: tenant.clone() })
}

/// Whether a workspace that must exist is switched off.
fn found(state: &ControlState, tenant: &TenantId, workspace: &WorkspaceId) -> Result<bool, ControlRefusal> {
    let found = state.workspace(tenant, workspace).map(|entry| entry.disabled);
    found.ok_or_else(|| ControlRefusal::UnknownWorkspace {
        tenant: tenant.clone(),
        workspace: workspace.clone(),
    })
}

fn limited(what: &'static str, count: usize) -> Result<(), ControlRefusal> {
    match count < MOST_TENANTS {
        true => Ok(()),
        false => Err(ControlRefusal::TooMany { what, limit: MOST_TENANTS }),
    }
}
