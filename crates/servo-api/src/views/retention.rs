//! Data, logs and rows that the rules of retention do not keep any more.

use serde::{Deserialize, Serialize};
use servo_core::Timestamp;
use servo_runtime::{Kept, Survey};
use utoipa::ToSchema;

use super::Accepted;

/// The removals of retention, applied or previewed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Retention {
    /// When it was looked at.
    #[schema(value_type = String, format = DateTime)]
    pub surveyed_at: Timestamp,
    /// Each kind of what is kept for a time.
    pub kinds: Vec<RetentionKind>,
}

/// One kind of what is kept for a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetentionKind {
    /// `logs`, `superseded`, `quarantined`, `history` or `ledger`.
    pub kind: String,
    /// The settings that say how long, with their values.
    pub rules: Vec<RetentionRule>,
    /// How many go.
    pub items: u64,
    /// How many bytes that frees, as far as it is known.
    pub bytes: u64,
}

/// A setting of retention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct RetentionRule {
    pub name: String,
    /// As `servo config show` has it; `0s` and `0` keep everything, except as a number of versions.
    pub value: String,
}

/// Retention was applied: this goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetentionApplied {
    /// The removals, by kind.
    #[serde(flatten)]
    pub retention: Retention,
    /// The event; absent if there was nothing to remove.
    #[serde(flatten)]
    pub accepted: Accepted,
}

impl Retention {
    pub(crate) fn of(survey: &Survey, settings: &servo_engine::Settings) -> Self {
        let rule = |name: &&str| {
            let unit = servo_engine::Setting::find(name).map(|setting| setting.unit);
            let value = settings.get(name).unwrap_or_default();
            RetentionRule {
                name: (*name).to_owned(),
                value: unit.map_or_else(|_| value.to_string(), |unit| unit.show(value)),
            }
        };
        let kind = |kind: &Kept| RetentionKind {
            kind: kind.name().to_owned(),
            rules: kind.settings().iter().map(rule).collect(),
            items: survey.amount(*kind).items,
            bytes: survey.amount(*kind).bytes,
        };
        Self { surveyed_at: survey.at, kinds: Kept::ALL.iter().map(kind).collect() }
    }
}

/// Options of applying retention.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyRetentionBody {
    /// The idempotency key, as an alternative to the header.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}
