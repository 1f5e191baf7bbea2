//! The fold of the control ledger: keys, tenants, workspaces and quotas as they are now.

use std::collections::BTreeMap;

use servo_core::{TenantId, Timestamp, WorkspaceId};
use servo_engine::{Principal, PrincipalKind};

use crate::event::{
    ControlData, ControlEvent, KeyCreated, KeyRevoked, KeyUsed, QuotaSet, SessionEnded, SessionStarted,
    SessionsEnded, TenantChanged, TenantCreated, TenantRemoved, VERSION, WorkspaceChanged, WorkspaceCreated,
    WorkspaceRemoved,
};
use crate::grant::{Grant, Identity, Scope};
use crate::key::{KeyHash, KeyId};
use crate::quotas::Quotas;
use crate::session::{Session, SessionId};

/// An API key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Its id.
    pub id: KeyId,
    /// Purpose, as stated by its creator.
    pub name: String,
    /// The hash of its secret.
    pub hash: KeyHash,
    /// Grants that the key carries.
    pub grant: Grant,
    /// Whether a program uses it, and not a person.
    pub service: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: Principal,
    /// From then on it is refused.
    pub expires_at: Option<Timestamp>,
    /// When it was last used, as far as that is recorded.
    pub last_used_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// Whether a key is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyStatus {
    /// It is.
    Active,
    /// It was revoked.
    Revoked,
    /// Its time is over.
    Expired,
}

impl KeyStatus {
    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::Revoked => "REVOKED",
            Self::Expired => "EXPIRED",
        }
    }
}

impl ApiKey {
    /// Whether it is good at a time.
    pub fn status(&self, now: Timestamp) -> KeyStatus {
        match (self.revoked_at, self.expires_at) {
            (Some(_), _) => KeyStatus::Revoked,
            (None, Some(at)) if now >= at => KeyStatus::Expired,
            (None, Some(_) | None) => KeyStatus::Active,
        }
    }

    /// Who asks with it.
    pub fn identity(&self) -> Identity {
        let kind = if self.service { PrincipalKind::Service } else { PrincipalKind::User };
        let principal = Principal::new(kind, format!("{}#{}", self.name, self.id));
        Identity { principal, grants: vec![self.grant.clone()] }
    }
}

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tenant {
    /// Whether it is switched off.
    pub disabled: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its workspaces.
    pub workspaces: BTreeMap<WorkspaceId, WorkspaceEntry>,
    /// Its limits.
    pub quotas: Quotas,
}

/// A workspace of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceEntry {
    /// Whether it is switched off.
    pub disabled: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

/// Keys, tenants, workspaces and quotas of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ControlState {
    keys: BTreeMap<KeyId, ApiKey>,
    tenants: BTreeMap<TenantId, Tenant>,
    sessions: BTreeMap<SessionId, Session>,
    /// When everything was ended that somebody had logged in with.
    logged_out: BTreeMap<Principal, Timestamp>,
    /// Events that this version does not know.
    skipped: u64,
}

impl ControlState {
    /// Every key, by id.
    pub fn keys(&self) -> impl Iterator<Item = &ApiKey> {
        self.keys.values()
    }

    /// A key.
    pub fn key(&self, id: &KeyId) -> Option<&ApiKey> {
        self.keys.get(id)
    }

    /// The key that a secret belongs to, whatever its status. Takes as long for an unknown id as for a wrong secret.
    pub fn verified(&self, id: &KeyId, secret: &str) -> Option<&ApiKey> {
        let key = self.keys.get(id);
        let is_equal = key.map_or(&KeyHash::NONE, |key| &key.hash).matches(secret);
        key.filter(|_| is_equal)
    }

    /// Every tenant, by name.
    pub fn tenants(&self) -> impl Iterator<Item = (&TenantId, &Tenant)> {
        self.tenants.iter()
    }

    /// A tenant.
    pub fn tenant(&self, tenant: &TenantId) -> Option<&Tenant> {
        self.tenants.get(tenant)
    }

    /// A workspace.
    pub fn workspace(&self, tenant: &TenantId, workspace: &WorkspaceId) -> Option<&WorkspaceEntry> {
        self.tenants.get(tenant)?.workspaces.get(workspace)
    }

    /// Sessions that are good at a time, by id.
    pub fn sessions(&self, now: Timestamp) -> impl Iterator<Item = &Session> {
        self.sessions.values().filter(move |session| now < session.expires_at)
    }

    /// A session that is good at a time.
    pub fn session(&self, id: &SessionId, now: Timestamp) -> Option<&Session> {
        self.sessions.get(id).filter(|session| now < session.expires_at)
    }

    /// Whether what somebody was given at a time is refused since, because an admin has logged them out.
    pub fn is_logged_out(&self, principal: &Principal, given_at: Timestamp) -> bool {
        self.logged_out.get(principal).is_some_and(|at| given_at <= *at)
    }

    /// Whether a workspace exists, and neither it nor its tenant is switched off.
    pub fn is_open(&self, tenant: &TenantId, workspace: &WorkspaceId) -> bool {
        let tenant = self.tenants.get(tenant).filter(|tenant| !tenant.disabled);
        tenant.and_then(|tenant| tenant.workspaces.get(workspace)).is_some_and(|it| !it.disabled)
    }

    /// Whether a scope is about something that exists.
    pub fn knows(&self, scope: &Scope) -> bool {
        match scope {
            Scope::Server => true,
            Scope::Tenant(tenant) => self.tenants.contains_key(tenant),
            Scope::Workspace(tenant, workspace) => self.workspace(tenant, workspace).is_some(),
        }
    }

    /// Applies an event. What is about something that is not there is ignored, and a repeat changes nothing.
    pub fn apply(&mut self, event: &ControlEvent) {
        if event.event_version > VERSION {
            self.skipped += 1;
            return;
        }
        let at = event.timestamp;
        match &event.data {
            ControlData::KeyCreated(made) => self.key_created(made, at, &event.principal),
            ControlData::KeyRevoked(KeyRevoked { id }) => {
                if let Some(key) = self.keys.get_mut(id) {
                    key.revoked_at.get_or_insert(at);
                }
            }
            ControlData::KeyUsed(KeyUsed { id, used_at }) => {
                if let Some(key) = self.keys.get_mut(id) {
                    key.last_used_at = key.last_used_at.max(Some(*used_at));
                }
            }
            ControlData::TenantCreated(TenantCreated { tenant }) => {
                let new = || Tenant {
                    disabled: false,
                    created_at: at,
                    workspaces: BTreeMap::new(),
                    quotas: Quotas::default(),
                };
                self.tenants.entry(tenant.clone()).or_insert_with(new);
            }
            ControlData::TenantChanged(TenantChanged { tenant, disabled }) => {
                if let Some(tenant) = self.tenants.get_mut(tenant) {
                    tenant.disabled = *disabled;
                }
            }
            ControlData::TenantRemoved(TenantRemoved { tenant }) => {
                self.tenants.remove(tenant);
                self.revoke(at, |scope| scope.tenant() == Some(tenant));
            }
            ControlData::WorkspaceCreated(WorkspaceCreated { tenant, workspace }) => {
                if let Some(tenant) = self.tenants.get_mut(tenant) {
                    let new = || WorkspaceEntry { disabled: false, created_at: at };
                    tenant.workspaces.entry(workspace.clone()).or_insert_with(new);
                }
            }
            ControlData::WorkspaceChanged(WorkspaceChanged { tenant, workspace, disabled }) => {
                let found = self.tenants.get_mut(tenant).and_then(|it| it.workspaces.get_mut(workspace));
                if let Some(workspace) = found {
                    workspace.disabled = *disabled;
                }
            }
            ControlData::WorkspaceRemoved(WorkspaceRemoved { tenant, workspace }) => {
                if let Some(it) = self.tenants.get_mut(tenant) {
                    it.workspaces.remove(workspace);
                }
                let removed = Scope::Workspace(tenant.clone(), workspace.clone());
                self.revoke(at, |scope| *scope == removed);
            }
            ControlData::QuotaSet(QuotaSet { tenant, set, unset }) => {
                if let Some(tenant) = self.tenants.get_mut(tenant) {
                    for (name, value) in set {
                        tenant.quotas.put(name.clone(), *value);
                    }
                    unset.iter().for_each(|name| tenant.quotas.unset(name));
                }
            }
            ControlData::SessionStarted(SessionStarted { id, holder, expires_at }) => {
                // Expired sessions are forgotten.
                self.sessions.retain(|_, session| at < session.expires_at);
                let new = Session {
                    id: id.clone(),
                    of: holder.clone(),
                    principal: event.principal.clone(),
                    started_at: at,
                    expires_at: *expires_at,
                };
                self.sessions.entry(id.clone()).or_insert(new);
            }
            ControlData::SessionEnded(SessionEnded { id }) => drop(self.sessions.remove(id)),
            ControlData::SessionsEnded(SessionsEnded { of }) => {
                self.sessions.retain(|_, session| session.principal != *of);
                self.logged_out.insert(of.clone(), at);
            }
            // It is for the audit, which reads the ledger.
            ControlData::RequestDenied(_) | ControlData::AddressLockedOut(_) => {}
            ControlData::Unknown(_) => self.skipped += 1,
        }
    }

    fn key_created(&mut self, made: &KeyCreated, at: Timestamp, by: &Principal) {
        let KeyCreated { id, name, hash, grant, service, expires_at } = made.clone();
        let new = ApiKey {
            id: id.clone(),
            name,
            hash,
            grant,
            service,
            created_at: at,
            created_by: by.clone(),
            expires_at,
            last_used_at: None,
            revoked_at: None,
        };
        self.keys.entry(id).or_insert(new);
    }

    /// Keys of what is gone do not come back with a tenant or a workspace of the same name.
    fn revoke(&mut self, at: Timestamp, is_gone: impl Fn(&Scope) -> bool) {
        for key in self.keys.values_mut().filter(|key| is_gone(&key.grant.scope)) {
            key.revoked_at.get_or_insert(at);
        }
    }
}
