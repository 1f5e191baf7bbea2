//! Whether a server is of use.

use serde::{Deserialize, Serialize};
use servo_runtime::{Finding, Vital};
use utoipa::ToSchema;

/// Whether a server is of use, and what it needs for that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Readiness {
    /// `ok`; `degraded` if something is wrong that holds up nothing else; or `not_ready`.
    pub status: String,
    /// Everything that it needs.
    pub checks: Vec<ReadinessCheck>,
}

/// Something that a server needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReadinessCheck {
    /// `engine`, `deployment`, `log`, `stores`, `tables` or `data`.
    pub name: String,
    /// Whether it is well.
    pub ok: bool,
    /// The reason why it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Errors and names of files; left out for those who show no token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

impl Readiness {
    pub(crate) fn of(findings: Vec<Finding>, with_details: bool) -> Self {
        let status =
            match (findings.iter().any(Finding::is_fatal), findings.iter().any(|it| it.problem.is_some())) {
                (true, _) => "not_ready",
                (false, true) => "degraded",
                (false, false) => "ok",
            };
        let check = |finding: Finding| ReadinessCheck {
            name: name(finding.vital).to_owned(),
            ok: finding.problem.is_none(),
            reason: finding.problem,
            details: if with_details { finding.details } else { Vec::new() },
        };
        Self { status: status.to_owned(), checks: findings.into_iter().map(check).collect() }
    }

    /// Whether the server is of use.
    pub fn is_ready(&self) -> bool {
        self.status != "not_ready"
    }
}

fn name(vital: Vital) -> &'static str {
    match vital {
        Vital::Engine => "engine",
        Vital::Deployment => "deployment",
        Vital::Log => "log",
        Vital::Stores => "stores",
        Vital::Tables => "tables",
        Vital::Data => "data",
    }
}
