//! Ids of what is put on queues: readable ones with colons, and the short ones that every queue accepts as a name.

use sha2::{Digest, Sha256};

use crate::base32;
use crate::run_id::RunId;
use crate::task_key::TaskKey;
use crate::time::Timestamp;

/// The internal id of the dispatch of one attempt: `dispatch:{run}:{task}:{attempt}`.
///
/// ```
/// use servo_core::{RunId, TaskKey, dispatch_id};
/// let task = TaskKey::parse("raw/flights:materialize")?;
/// assert_eq!(
///     dispatch_id(RunId::from_u128(0), &task, 1),
///     "dispatch:run_aaaaaaaaaaaaaaaaaaaaaaaaaa:raw/flights:materialize:1"
/// );
/// # Ok::<(), servo_core::ParseError>(())
/// ```
pub fn dispatch_id(run: RunId, task: &TaskKey, attempt: u32) -> String {
    format!("dispatch:{run}:{task}:{attempt}")
}

/// The internal id of a timer: `timer:{kind}:{run or -}:{task or -}:{attempt}:{seconds since the epoch}`.
///
/// The seconds are rounded up, so that a queue that fires at whole seconds never fires early.
pub fn timer_id(
    kind: &str,
    run: Option<RunId>,
    task: Option<&TaskKey>,
    attempt: u32,
    fire_at: Timestamp,
) -> String {
    let run = run.map_or_else(|| "-".to_owned(), |run| run.to_string());
    let task = task.map_or("-", TaskKey::as_str);
    let millis = fire_at.as_millis();
    let seconds = millis.div_euclid(1_000) + i64::from(millis.rem_euclid(1_000) > 0);
    format!("timer:{kind}:{run}:{task}:{attempt}:{seconds}")
}

/// The name of an internal id on a queue that forbids colons and long names: `prefix` (`d` for a dispatch, `t` for a
/// timer), `_`, and 26 characters of lower-case base32 of its SHA-256.
pub fn cloud_task_id(prefix: char, internal: &str) -> String {
    let digest = Sha256::digest(internal.as_bytes());
    format!("{prefix}_{}", base32::write_prefix(&digest, &mut [0; 26]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_never_fires_early() {
        for (millis, seconds) in [(0, "0"), (1, "1"), (1_000, "1"), (1_001, "2"), (-1, "0"), (-1_000, "-1")] {
            let id = timer_id("retry", None, None, 0, Timestamp::from_millis(millis));
            assert_eq!(id, format!("timer:retry:-:-:0:{seconds}"));
        }
    }
}
