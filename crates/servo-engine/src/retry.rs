//! Retry rules and back-off.
//!
//! Without a policy, failures of the infrastructure and timeouts are retried soon, the user's own errors are not. With a
//! policy everything is retried unless `retry_on` or `no_retry_on` narrows it (ADR-038). The wait is a pure function
//! of the policy, the number of failures and the attempt id, so every replay computes the same one.

use serde::{Deserialize, Serialize};
use servo_core::{AttemptId, Millis};

use crate::failure::{ErrorCategory, TaskError};

const MILLION: u128 = 1_000_000;

/// When and how often a failed task is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RetryPolicy {
    /// Attempts in all, the first included.
    pub max_attempts: u32,
    /// Wait after the first failure.
    pub initial_delay_ms: Millis,
    /// Longest wait.
    pub max_delay_ms: Millis,
    /// Growth of the wait per failure, in parts per million (2,000,000 doubles it).
    pub multiplier_ppm: u64,
    /// Largest part of the wait that chance may take away, in parts per million.
    pub jitter_ppm: u64,
    /// Only these exception types and those based on them are retried; empty means all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retry_on: Vec<String>,
    /// These exception types and those based on them are not retried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub no_retry_on: Vec<String>,
}

/// Three attempts, the second soon: many failures are over in a moment, and somebody waits. Chance may halve a wait, so
/// that tasks that failed together do not come back together.
impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            initial_delay_ms: Millis::from_secs(2),
            max_delay_ms: Millis::from_hours(1),
            multiplier_ppm: 2_000_000,
            jitter_ppm: 500_000,
            retry_on: Vec::new(),
            no_retry_on: Vec::new(),
        }
    }
}

impl RetryPolicy {
    /// The policy for failures of the infrastructure and timeouts of tasks that have none. It grows faster than the
    /// default, so that three attempts outlast a restart of something else.
    pub fn of_infrastructure() -> Self {
        Self { max_delay_ms: Millis::from_minutes(1), multiplier_ppm: 4_000_000, ..Self::default() }
    }

    /// The policy of tasks that are never tried again because they failed.
    pub fn never() -> Self {
        Self { max_attempts: 1, ..Self::default() }
    }

    /// How long to wait after failure number `failures` (from 1).
    pub fn delay(&self, failures: u32, attempt: AttemptId) -> Millis {
        let ceiling = u128::from(self.max_delay_ms.get());
        let mut delay = u128::from(self.initial_delay_ms.get());
        for _ in 1..failures {
            delay = delay * u128::from(self.multiplier_ppm) / MILLION;
            if delay >= ceiling {
                break;
            }
        }
        let delay = delay.min(ceiling);
        let chance = attempt.to_u128() % MILLION;
        let taken = delay * u128::from(self.jitter_ppm.min(1_000_000)) * chance / (MILLION * MILLION);
        Millis::new(u64::try_from(delay - taken).unwrap_or(u64::MAX))
    }
}

/// The wait before the next attempt, or none if the task has failed for good.
pub(crate) fn next_delay(
    policy: Option<&RetryPolicy>,
    error: Option<&TaskError>,
    fallback: ErrorCategory,
    failures: u32,
    attempt: AttemptId,
) -> Option<Millis> {
    let category = error.map_or(fallback, |e| e.code.category());
    if category == ErrorCategory::Cancelled {
        return None;
    }
    match policy {
        None => {
            let policy = RetryPolicy::of_infrastructure();
            (category.retried_by_default() && failures < policy.max_attempts)
                .then(|| policy.delay(failures, attempt))
        }
        Some(policy) => {
            let named = |types: &[String]| error.is_some_and(|error| error.is_one_of(types));
            let wanted =
                (policy.retry_on.is_empty() || category.retried_by_default() || named(&policy.retry_on))
                    && !named(&policy.no_retry_on);
            (wanted && failures < policy.max_attempts).then(|| policy.delay(failures, attempt))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::ErrorCode;

    fn steady() -> RetryPolicy {
        RetryPolicy { jitter_ppm: 0, max_attempts: 100, ..RetryPolicy::default() }
    }

    #[test]
    fn the_wait_doubles_from_two_seconds_to_an_hour() {
        let waits: Vec<u64> = (1..=13).map(|n| steady().delay(n, AttemptId::NIL).get() / 1_000).collect();
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048, 3_600, 3_600]);
    }

    #[test]
    fn jitter_only_shortens_and_is_the_same_on_every_replay() {
        let policy = RetryPolicy::default();
        for entropy in 0..1_000u128 {
            let attempt = AttemptId::from_parts(1, entropy * 7_919);
            let wait = policy.delay(1, attempt);
            assert_eq!(wait, policy.delay(1, attempt));
            assert!((1_000..=2_000).contains(&wait.get()), "{wait}");
        }
    }

    #[test]
    fn huge_failure_counts_do_not_overflow() {
        assert_eq!(steady().delay(u32::MAX, AttemptId::NIL), Millis::from_hours(1));
    }

    #[test]
    fn without_a_policy_user_errors_fail_at_once_and_crashes_retry_twice() {
        let user = TaskError::new(ErrorCode::UserCodeException, "boom");
        let crash = TaskError::new(ErrorCode::WorkerCrash, "gone");
        let ask = |error, failures| {
            next_delay(None, Some(error), ErrorCategory::UserCode, failures, AttemptId::NIL).is_some()
        };
        assert!(!ask(&user, 1));
        assert!(ask(&crash, 1) && ask(&crash, 2) && !ask(&crash, 3));
    }

    #[test]
    fn without_a_policy_the_first_retry_comes_after_a_second_or_two_and_the_second_a_little_later() {
        let crash = TaskError::new(ErrorCode::OutOfMemory, "gone");
        for entropy in 0..1_000u128 {
            let attempt = AttemptId::from_parts(1, entropy * 7_919);
            let wait = |failures| {
                next_delay(None, Some(&crash), ErrorCategory::UserCode, failures, attempt).map(Millis::get)
            };
            assert!(wait(1).is_some_and(|wait| (1_000..=2_000).contains(&wait)), "{:?}", wait(1));
            assert!(wait(2).is_some_and(|wait| (4_000..=8_000).contains(&wait)), "{:?}", wait(2));
        }
    }

    #[test]
    fn a_policy_retries_everything_unless_narrowed() {
        let mut policy = RetryPolicy::default();
        let mut error = TaskError::new(ErrorCode::UserCodeException, "boom");
        error.error_type = Some("ValueError".into());
        let ask = |p: &RetryPolicy| {
            next_delay(Some(p), Some(&error), ErrorCategory::UserCode, 1, AttemptId::NIL).is_some()
        };
        assert!(ask(&policy));
        policy.retry_on = vec!["KeyError".into()];
        assert!(!ask(&policy));
        policy.retry_on = vec!["ValueError".into()];
        assert!(ask(&policy));
        policy.no_retry_on = vec!["ValueError".into()];
        assert!(!ask(&policy));
    }

    #[test]
    fn a_type_stands_for_those_that_are_based_on_it() {
        let mut policy = RetryPolicy { retry_on: vec!["ConnectionError".into()], ..RetryPolicy::default() };
        let mut error = TaskError::new(ErrorCode::UserCodeException, "refused");
        error.error_type = Some("ConnectionRefusedError".into());
        error.error_bases = ["ConnectionError", "OSError", "Exception"].map(String::from).to_vec();
        let ask = |p: &RetryPolicy| {
            next_delay(Some(p), Some(&error), ErrorCategory::UserCode, 1, AttemptId::NIL).is_some()
        };
        assert!(ask(&policy));
        policy.no_retry_on = vec!["OSError".into()];
        assert!(!ask(&policy));
        policy = RetryPolicy { retry_on: vec!["TimeoutError".into()], ..RetryPolicy::default() };
        assert!(!ask(&policy));
    }
}
