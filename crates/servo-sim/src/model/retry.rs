//! Whether a failed task is tried again, and when (ADR-038).

use serde_json::Value;
use servo_core::{AttemptId, Millis};

use super::log::texts;

/// Failures of the infrastructure: without a policy, only these are retried.
const SOFT: [&str; 11] = [
    "NETWORK_ERROR",
    "RATE_LIMITED",
    "SERVICE_UNAVAILABLE",
    "TIMEOUT",
    "OUT_OF_MEMORY",
    "DISK_FULL",
    "WORKER_CRASH",
    "HEARTBEAT_LOST",
    "INTERRUPTED",
    "OUTPUT_MISSING",
    "INTERNAL_ERROR",
];

/// A failure: its code, and the error that a worker reported, if one did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Failure<'a> {
    pub(super) code: &'a str,
    error: Option<&'a Value>,
}

impl<'a> Failure<'a> {
    pub(super) fn code(code: &'a str) -> Self {
        Self { code, error: None }
    }

    /// The failure a worker reports; without an error it counts as a failure of the user's code.
    pub(super) fn reported(error: Option<&'a Value>) -> Self {
        let code = error.and_then(|error| error.get("code")).and_then(Value::as_str);
        Self { code: code.unwrap_or("USER_CODE_EXCEPTION"), error }
    }

    /// Whether the exception is of a type, or of one that is based on it.
    fn is_of_type(self, name: &str) -> bool {
        self.error.is_some_and(|error| {
            error.get("error_type").and_then(Value::as_str) == Some(name)
                || texts(error, "error_bases").any(|base| base == name)
        })
    }
}

/// The wait before the next attempt; none if there is none.
pub(super) fn wait(
    policy: Option<&Value>,
    failure: Failure<'_>,
    failures: u64,
    attempt: &str,
) -> Option<Millis> {
    // Failures of the infrastructure without a policy come again soon.
    let setting = |name: &str, default: u64, soon: u64| match policy {
        Some(policy) => policy.get(name).and_then(Value::as_u64).unwrap_or(default),
        None => soon,
    };
    let is_soft = SOFT.contains(&failure.code);
    let is_named = |name: &str| {
        policy.is_some_and(|policy| texts(policy, name).any(|listed| failure.is_of_type(listed)))
    };
    let is_narrowed = policy.is_some_and(|policy| texts(policy, "retry_on").next().is_some());
    let is_wanted = match policy {
        None => is_soft,
        Some(_) => (is_soft || !is_narrowed || is_named("retry_on")) && !is_named("no_retry_on"),
    };
    if failure.code == "CANCELLED" || !is_wanted || failures >= setting("max_attempts", 3, 3) {
        return None;
    }
    let (million, longest) = (1_000_000_u128, u128::from(setting("max_delay_ms", 3_600_000, 60_000)));
    let multiplier = u128::from(setting("multiplier_ppm", 2_000_000, 4_000_000));
    let mut delay = u128::from(setting("initial_delay_ms", 2_000, 2_000));
    for _ in 1..failures {
        delay = (delay * multiplier / million).min(u128::from(u64::MAX));
    }
    let delay = delay.min(longest);
    let chance = attempt.parse::<AttemptId>().map_or(0, AttemptId::to_u128) % million;
    let jitter = u128::from(setting("jitter_ppm", 500_000, 500_000).min(1_000_000));
    let taken = delay * jitter * chance / (million * million);
    Some(Millis::new(u64::try_from(delay - taken).unwrap_or(u64::MAX)))
}
