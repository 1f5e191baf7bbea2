//! Aligned text tables for snapshots.

use servo_engine::{Change, Finish, HeartbeatReply, RunReply};

/// One line per row, columns as wide as their widest cell.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| rows.iter().filter_map(|r| r.get(i)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join(" | ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The fold's outcome in one word: the new state, `applied` where the state stays, or why it was ignored.
pub(crate) fn fold_cell<S: PartialEq + std::fmt::Display>(
    applied: servo_engine::Applied,
    before: S,
    after: S,
) -> String {
    use servo_engine::{Applied, Ignored};
    match applied {
        Applied::Yes if before == after => "applied".to_owned(),
        Applied::Yes => format!("-> {after}"),
        Applied::No(why) => {
            let why = match why {
                Ignored::Duplicate => "duplicate",
                Ignored::StaleAttempt => "stale",
                Ignored::NotInThatState => "wrong state",
                Ignored::NotDue => "not due",
                Ignored::UnknownRun => "no run",
                Ignored::UnknownTask => "no task",
                Ignored::UnknownSchedule => "no schedule",
                Ignored::UnknownSensor => "no sensor",
                Ignored::UnknownNotification => "no notification",
                Ignored::UnknownBackfill => "no backfill",
                Ignored::UnknownAsset => "no asset",
                Ignored::UnknownCondition => "no condition",
                Ignored::RunKeyConflict => "conflict",
                Ignored::UnknownEvent => "unknown",
            };
            assert!(before == after, "an ignored event changed {before} to {after}");
            why.to_owned()
        }
    }
}

/// The reply of `step` in one word.
pub(crate) fn reply_word(reply: &Result<servo_engine::Reply, servo_engine::Refusal>) -> String {
    use servo_engine::{Refusal, Reply};
    match reply {
        Ok(Reply::Run(RunReply { accepted: Some(_), .. })) => "new run".to_owned(),
        Ok(Reply::Run(RunReply { accepted: None, .. })) => "same run".to_owned(),
        Ok(Reply::Change(Change::Accepted { .. }) | Reply::Finish(Finish::Accepted { .. })) => {
            "accepted".to_owned()
        }
        Ok(Reply::Backfill(reply)) => {
            if reply.accepted.is_some() {
                "new backfill".to_owned()
            } else {
                "same backfill".to_owned()
            }
        }
        Ok(Reply::Partitions(reply)) => reply_word(&Ok(Reply::Change(reply.change))),
        Ok(Reply::Change(Change::Duplicate) | Reply::Finish(Finish::Duplicate)) => "duplicate".to_owned(),
        Ok(Reply::Heartbeat(HeartbeatReply { should_cancel: false })) => "go on".to_owned(),
        Ok(Reply::Heartbeat(HeartbeatReply { should_cancel: true })) => "should cancel".to_owned(),
        Ok(Reply::Finish(Finish::Late)) => "late".to_owned(),
        Ok(Reply::Done) => "done".to_owned(),
        Err(refusal) => {
            let what = match refusal {
                Refusal::UnknownRun { .. } => "no run",
                Refusal::UnknownTask { .. } => "no task",
                Refusal::StalePlan(_) => "stale plan",
                Refusal::RunKeyConflict { .. } => "key conflict",
                Refusal::RequestIdReused { .. } => "request id reused",
                Refusal::StaleRunKey { .. } => "stale key",
                Refusal::RunEnded { .. } => "run ended",
                Refusal::ForceTooSoon { .. } => "too soon",
                Refusal::StaleAttempt { .. } => "stale",
                Refusal::AlreadyStarted { .. } => "taken",
                Refusal::Cancelled { .. } => "cancelled",
                Refusal::AttemptEnded { .. } => "ended",
                Refusal::Forbidden { .. } => "forbidden",
                Refusal::BadAsset { .. } => "bad asset",
                Refusal::TooManyAssets { .. } => "too many assets",
                Refusal::BadPartition { .. } => "bad partition",
                Refusal::AddedAndRemoved { .. } => "added and removed",
                Refusal::TooManyPartitionChanges { .. } => "too many changes",
                Refusal::TooManyPartitions { .. } => "too many partitions",
                Refusal::NotInQuarantine { .. } => "not in quarantine",
                Refusal::BadSetting(_) => "bad setting",
                Refusal::PartitionBusy { .. } => "partition busy",
                Refusal::NothingToUndo { .. } => "nothing to undo",
                Refusal::UnknownAsset { .. } => "no asset",
                Refusal::CannotRename { .. } => "cannot rename",
                Refusal::TooManyToChange { .. } => "too many to change",
                Refusal::LongReason { .. } => "long reason",
                Refusal::UnknownSchedule { .. } => "no schedule",
                Refusal::UnknownNotification { .. } => "no notification",
                Refusal::UnknownSensor { .. } => "no sensor",
                Refusal::TakesNoMessages { .. } => "no messages",
                Refusal::BadMessageId { .. } => "bad message id",
                Refusal::TooLarge { .. } => "too large",
                Refusal::UnknownBackfill { .. } => "no backfill",
                Refusal::UnknownCondition { .. } => "no condition",
                Refusal::BackfillEnded { .. } => "backfill ended",
                Refusal::BadDefinition { .. } => "bad definition",
                Refusal::NameTaken { .. } => "name taken",
                Refusal::DefinedByCode { .. } => "defined by code",
                Refusal::StateVersion { .. } => "version conflict",
                Refusal::NothingToTrigger { .. } => "nothing to trigger",
                Refusal::CannotTrigger { .. } => "cannot trigger",
                Refusal::UnknownWorker { .. } => "unknown worker",
                Refusal::NothingDeployed { .. } => "nothing deployed",
                Refusal::OtherCode { .. } => "other code",
                Refusal::Quota { .. } | Refusal::DailyRuns { .. } => "quota",
            };
            format!("{:?}: {what}", refusal.kind())
        }
    }
}
