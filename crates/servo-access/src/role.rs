//! Roles and permissions. The table below is the one place that says which role may do what.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A set of permissions with a name. Each but `worker` includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Takes tasks and reports on them, and nothing else.
    Worker,
    /// Reads.
    Viewer,
    /// Also triggers, retries, cancels, pauses, reviews and backfills.
    Operator,
    /// Also deploys, defines schedules and sensors, and changes partitions.
    Developer,
    /// Also keys, quotas, tenants, retention, settings and the audit.
    Admin,
}

impl Role {
    /// Every role, the least first.
    pub const ALL: [Self; 5] = [Self::Worker, Self::Viewer, Self::Operator, Self::Developer, Self::Admin];

    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Developer => "developer",
            Self::Admin => "admin",
        }
    }

    /// Whether it has a permission.
    pub fn allows(self, permission: Permission) -> bool {
        match (self, permission.least_role()) {
            (Self::Worker, least) => least == Self::Worker,
            (Self::Admin, _) => true,
            (Self::Viewer | Self::Operator | Self::Developer, Self::Worker) => false,
            (role @ (Self::Viewer | Self::Operator | Self::Developer), least) => role >= least,
        }
    }

    /// Whether it has every permission of another one.
    pub fn includes(self, other: Self) -> bool {
        Permission::ALL.iter().all(|permission| !other.allows(*permission) || self.allows(*permission))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|role| role.name()).collect();
            format!("there is no role {text:?}; there are {}", names.join(", "))
        })
    }
}

macro_rules! permissions {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $role:ident;)*) => {
        /// A permission: what a route asks of its caller.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Permission {
            $($(#[$doc])* $name,)*
        }

        impl Permission {
            /// Every permission.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name, in messages and in the audit.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The least role that has it.
            pub const fn least_role(self) -> Role {
                match self { $(Self::$name => Role::$role,)* }
            }
        }
    };
}

permissions! {
    /// Definitions, partitions, materializations, lineage and plans.
    AssetsRead = "assets.read", Viewer;
    /// Runs, tasks, logs and events.
    RunsRead = "runs.read", Viewer;
    /// Outputs that checks have blocked.
    QuarantineRead = "quarantine.read", Viewer;
    /// Settings, retention and quotas.
    SettingsRead = "settings.read", Viewer;
    /// Pauses, and how full the workspace is.
    AdmissionRead = "admission.read", Viewer;
    /// Schedules, sensors and backfills.
    AutomationRead = "automation.read", Viewer;
    /// Workers.
    WorkersRead = "workers.read", Viewer;
    /// A link that lets a browser in, with the permissions of whoever asks for it.
    LoginsCreate = "logins.create", Viewer;
    /// Runs and backfills.
    RunsTrigger = "runs.trigger", Operator;
    /// Stop runs.
    RunsCancel = "runs.cancel", Operator;
    /// Try again what failed.
    RunsRetry = "runs.retry", Operator;
    /// Approve and reject what checks have blocked.
    QuarantineReview = "quarantine.review", Operator;
    /// Pause and resume the hand-out of tasks.
    AdmissionChange = "admission.change", Operator;
    /// Pause, resume and cancel what starts runs.
    AutomationOperate = "automation.operate", Operator;
    /// Replace the definitions.
    AssetsDeploy = "assets.deploy", Developer;
    /// Add and remove keys of dynamic partitions.
    PartitionsChange = "partitions.change", Developer;
    /// Define and remove schedules and sensors.
    AutomationChange = "automation.change", Developer;
    /// Give settings other values, and apply retention.
    SettingsChange = "settings.change", Admin;
    /// Who did what.
    AuditRead = "audit.read", Admin;
    /// Queries over every table, the audit among them, and over data of assets.
    SqlRun = "sql.run", Admin;
    /// API keys.
    KeysManage = "keys.manage", Admin;
    /// Limits of a tenant.
    QuotasManage = "quotas.manage", Admin;
    /// Workspaces of a tenant.
    WorkspacesManage = "workspaces.manage", Admin;
    /// Tenants of the server.
    TenantsManage = "tenants.manage", Admin;
    /// Take tasks and report on them.
    WorkersServe = "workers.serve", Worker;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_includes_the_ones_before_it_and_workers_stand_aside() {
        let ladder = [Role::Viewer, Role::Operator, Role::Developer, Role::Admin];
        for (place, role) in ladder.into_iter().enumerate() {
            for (other_place, other) in ladder.into_iter().enumerate() {
                assert_eq!(role.includes(other), place >= other_place, "{role} {other}");
            }
            assert_eq!(role.includes(Role::Worker), role == Role::Admin, "{role}");
            assert!(!Role::Worker.includes(role));
        }
        let of_workers: Vec<_> = Permission::ALL.iter().filter(|it| Role::Worker.allows(**it)).collect();
        assert_eq!(of_workers, [&Permission::WorkersServe]);
    }

    #[test]
    fn names_are_read_back_and_unknown_ones_are_refused_with_what_there_is() {
        for role in Role::ALL {
            assert_eq!(role.name().parse(), Ok(role));
            assert_eq!(serde_json::to_string(&role).unwrap(), format!("\"{role}\""));
        }
        let refused = "root".parse::<Role>().unwrap_err();
        assert!(refused.contains("viewer, operator"), "{refused}");
    }

    #[test]
    fn names_of_permissions_differ() {
        let names: std::collections::BTreeSet<_> = Permission::ALL.iter().map(|it| it.name()).collect();
        assert_eq!(names.len(), Permission::ALL.len());
    }
}
