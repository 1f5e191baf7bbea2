//! Grants: which role somebody has, where, and for which assets.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{TenantId, WorkspaceId};
use servo_engine::Principal;

use crate::role::{Permission, Role};

/// Where a grant holds. Its text is `*`, `acme/*` or `acme/main`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Every workspace of the server, and the server itself.
    Server,
    /// Every workspace of a tenant, and the tenant itself.
    Tenant(TenantId),
    /// One workspace.
    Workspace(TenantId, WorkspaceId),
}

impl Scope {
    /// Whether everything of another scope is in this one.
    pub fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Server, _) => true,
            (Self::Tenant(mine), Self::Tenant(tenant) | Self::Workspace(tenant, _)) => mine == tenant,
            (Self::Workspace(..), Self::Workspace(..)) => self == other,
            (Self::Tenant(_), Self::Server) | (Self::Workspace(..), Self::Server | Self::Tenant(_)) => false,
        }
    }

    /// Whether a workspace is in it.
    pub fn has(&self, tenant: &TenantId, workspace: &WorkspaceId) -> bool {
        match self {
            Self::Server => true,
            Self::Tenant(mine) => mine == tenant,
            Self::Workspace(mine, one) => mine == tenant && one == workspace,
        }
    }

    /// The tenant that it is about, unless it is about all.
    pub fn tenant(&self) -> Option<&TenantId> {
        match self {
            Self::Server => None,
            Self::Tenant(tenant) | Self::Workspace(tenant, _) => Some(tenant),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server => f.pad("*"),
            Self::Tenant(tenant) => f.pad(&format!("{tenant}/*")),
            Self::Workspace(tenant, workspace) => f.pad(&format!("{tenant}/{workspace}")),
        }
    }
}

/// A text that is no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no scope: {problem}; write tenant/workspace, tenant/* or * for the whole server")]
pub struct ScopeError {
    text: String,
    problem: String,
}

impl FromStr for Scope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        let wrong = |problem: String| ScopeError { text: text.to_owned(), problem };
        if text == "*" {
            return Ok(Self::Server);
        }
        let (tenant, workspace) = text.split_once('/').ok_or_else(|| wrong("it has no /".to_owned()))?;
        let tenant = TenantId::parse(tenant).map_err(|error| wrong(error.to_string()))?;
        if workspace == "*" {
            return Ok(Self::Tenant(tenant));
        }
        let workspace = WorkspaceId::parse(workspace).map_err(|error| wrong(error.to_string()))?;
        Ok(Self::Workspace(tenant, workspace))
    }
}

impl Serialize for Scope {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scope {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A role in a scope, perhaps for some assets only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The role.
    pub role: Role,
    /// Where.
    pub scope: Scope,
    /// A selection of assets that it is limited to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assets: Option<Arc<str>>,
}

/// Who asks, and what that one may do: what authentication yields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The principal that goes into the log.
    pub principal: Principal,
    /// Grants of the identity; their union counts.
    pub grants: Vec<Grant>,
}

/// The extent of a permission in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Allowed {
    /// All of it.
    Everything,
    /// As far as it is about assets of one of these selections.
    Assets(Vec<Arc<str>>),
    /// Nothing: no grant in this workspace has the permission.
    Nothing,
    /// Nothing, and not even that there is such a workspace may be told.
    Invisible,
}

impl Identity {
    /// Somebody who may do everything: whoever runs the server.
    pub fn owner(principal: Principal) -> Self {
        Self { principal, grants: vec![Grant { role: Role::Admin, scope: Scope::Server, assets: None }] }
    }

    /// The extent that the identity has of a permission in a workspace.
    pub fn allows(&self, permission: Permission, tenant: &TenantId, workspace: &WorkspaceId) -> Allowed {
        let mut allowed = Allowed::Invisible;
        for grant in self.grants.iter().filter(|grant| grant.scope.has(tenant, workspace)) {
            if !grant.role.allows(permission) {
                if allowed == Allowed::Invisible {
                    allowed = Allowed::Nothing;
                }
                continue;
            }
            match (&grant.assets, &mut allowed) {
                (None, _) => return Allowed::Everything,
                (Some(assets), Allowed::Assets(all)) => all.push(assets.clone()),
                (Some(assets), Allowed::Everything | Allowed::Nothing | Allowed::Invisible) => {
                    allowed = Allowed::Assets(vec![assets.clone()]);
                }
            }
        }
        allowed
    }

    /// Whether it sees a workspace at all.
    pub fn sees(&self, tenant: &TenantId, workspace: &WorkspaceId) -> bool {
        self.grants.iter().any(|grant| grant.scope.has(tenant, workspace))
    }

    /// Whether it has a permission in all of a scope, for all assets.
    pub fn has_in(&self, permission: Permission, scope: &Scope) -> bool {
        let has = |grant: &Grant| {
            grant.assets.is_none() && grant.role.allows(permission) && grant.scope.includes(scope)
        };
        self.grants.iter().any(has)
    }

    /// Whether it has a permission anywhere, for all assets.
    pub fn has_somewhere(&self, permission: Permission) -> bool {
        self.grants.iter().any(|grant| grant.assets.is_none() && grant.role.allows(permission))
    }

    /// Whether somebody with this identity may give another one a grant: nobody gives away what they do not have.
    pub fn may_give(&self, grant: &Grant) -> bool {
        let has = |mine: &Grant| {
            mine.assets.is_none()
                && mine.role.allows(Permission::KeysManage)
                && mine.role.includes(grant.role)
                && mine.scope.includes(&grant.scope)
        };
        self.grants.iter().any(has)
    }

    /// The tenant that its grants are about, or the server if that is not one.
    pub fn home(&self) -> Scope {
        crate::acts::common(&self.grants)
    }

    /// The workspace that it is about, if its grants are about one alone.
    pub fn only_workspace(&self) -> Option<(&TenantId, &WorkspaceId)> {
        let mut only = None;
        for grant in &self.grants {
            let Scope::Workspace(tenant, workspace) = &grant.scope else { return None };
            match only {
                None => only = Some((tenant, workspace)),
                Some(before) if before == (tenant, workspace) => {}
                Some(_) => return None,
            }
        }
        only
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> Scope {
        text.parse().unwrap()
    }

    fn identity(grants: &[(Role, &str, Option<&str>)]) -> Identity {
        let grant = |(role, at, assets): &(Role, &str, Option<&str>)| Grant {
            role: *role,
            scope: scope(at),
            assets: assets.map(Into::into),
        };
        Identity { principal: Principal::user("x"), grants: grants.iter().map(grant).collect() }
    }

    #[test]
    fn scopes_are_read_back_and_include_what_is_below_them() {
        let all = ["*", "acme/*", "acme/main", "acme/other", "zeta/*", "zeta/main"];
        for text in all {
            assert_eq!(scope(text).to_string(), text);
            assert_eq!(serde_json::to_string(&scope(text)).unwrap(), format!("{text:?}"));
        }
        let included = |outer: &str, inner: &str| scope(outer).includes(&scope(inner));
        for inner in all {
            assert!(included("*", inner));
            assert_eq!(included("acme/*", inner), inner.starts_with("acme/"), "{inner}");
            assert_eq!(included("acme/main", inner), inner == "acme/main", "{inner}");
        }
        for bad in ["", "acme", "/", "acme/", "*/main", "Acme/main", "acme/main/x", "acme/**"] {
            assert!(bad.parse::<Scope>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_union_of_grants_counts_and_other_tenants_are_invisible() {
        let (acme, zeta) = (TenantId::parse("acme").unwrap(), TenantId::parse("zeta").unwrap());
        let main = WorkspaceId::parse("main").unwrap();
        let mixed = identity(&[
            (Role::Viewer, "acme/*", None),
            (Role::Operator, "acme/main", Some("raw.*")),
            (Role::Operator, "acme/main", Some("tag:x")),
        ]);
        assert_eq!(mixed.allows(Permission::RunsRead, &acme, &main), Allowed::Everything);
        let both = Allowed::Assets(vec!["raw.*".into(), "tag:x".into()]);
        assert_eq!(mixed.allows(Permission::RunsTrigger, &acme, &main), both);
        assert_eq!(mixed.allows(Permission::AssetsDeploy, &acme, &main), Allowed::Nothing);
        let other = WorkspaceId::parse("other").unwrap();
        assert_eq!(mixed.allows(Permission::RunsTrigger, &acme, &other), Allowed::Nothing);
        assert_eq!(mixed.allows(Permission::RunsRead, &zeta, &main), Allowed::Invisible);
        assert!(mixed.sees(&acme, &other) && !mixed.sees(&zeta, &main));
    }

    #[test]
    fn nobody_gives_away_what_they_do_not_have() {
        let grant = |role, at: &str| Grant { role, scope: scope(at), assets: None };
        let of_tenant = identity(&[(Role::Admin, "acme/*", None)]);
        assert!(of_tenant.may_give(&grant(Role::Admin, "acme/*")));
        assert!(of_tenant.may_give(&grant(Role::Worker, "acme/main")));
        assert!(!of_tenant.may_give(&grant(Role::Viewer, "*")));
        assert!(!of_tenant.may_give(&grant(Role::Viewer, "zeta/main")));
        assert!(!identity(&[(Role::Developer, "*", None)]).may_give(&grant(Role::Viewer, "acme/main")));
        assert!(!identity(&[(Role::Admin, "*", Some("raw.*"))]).may_give(&grant(Role::Viewer, "acme/main")));
    }
}
