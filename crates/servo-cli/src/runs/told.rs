//! Runs in words: what was asked for, by whom, and how it went.

use servo_api::views::{PartitionsBody, Run};
use servo_engine::RunSource;

/// Partitions that are named one by one.
const NAMED: usize = 3;
/// Characters of an id that tell runs apart.
const SHORT_ID: usize = 12;

/// The beginning of a run's id, which every command understands.
pub(crate) fn short_id(run: &Run) -> String {
    run.run_id.to_string().chars().take(SHORT_ID).collect()
}

/// Its state, and what is not as it should be although it ended well: `SUCCEEDED, 2 checks failed`.
pub(crate) fn state(run: &Run) -> String {
    match run.checks_failed {
        0 => run.state.to_string(),
        1 => format!("{}, 1 check failed", run.state),
        failed => format!("{}, {failed} checks failed", run.state),
    }
}

/// The request in words: the selection, or which run it repeats.
pub(super) fn asked(run: &Run) -> String {
    if let RunSource::Retry { of, from_failure } = &run.source {
        let of: String = of.to_string().chars().take(SHORT_ID).collect();
        let what = if *from_failure { "what failed of " } else { "" };
        return format!("{what}{of} again");
    }
    if run.selection.is_empty() { run.run_key.clone() } else { run.selection.clone() }
}

/// Which partitions were asked for; empty if none were named.
pub(super) fn partitions(asked: &PartitionsBody) -> String {
    let latest = asked.latest.then_some("latest");
    let words: Vec<&str> = asked.keys.iter().chain(&asked.ranges).map(String::as_str).chain(latest).collect();
    match words.len() {
        0..=NAMED => words.join(", "),
        more => format!("{} and {} more", words[..NAMED].join(", "), more - NAMED),
    }
}

/// Who or what asked: `manual by local`, `schedule nightly`.
pub(super) fn source(run: &Run) -> String {
    let by = run.requested_by.split_once(':').map_or(run.requested_by.as_str(), |(_, subject)| subject);
    match &run.source {
        RunSource::Manual | RunSource::Api | RunSource::Retry { .. } => {
            format!("{} by {by}", run.source.kind())
        }
        RunSource::Schedule { id, .. } => format!("schedule {}", run.source_name.as_deref().unwrap_or(id)),
        RunSource::Sensor { id, .. } => format!("sensor {}", run.source_name.as_deref().unwrap_or(id)),
        RunSource::Backfill { id, .. } => format!("backfill {id}"),
        RunSource::Condition { asset, .. } => format!("condition of {asset}"),
        RunSource::Unknown(_) => run.source.kind().to_owned(),
    }
}
