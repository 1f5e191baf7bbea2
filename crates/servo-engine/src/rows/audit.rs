//! Table `audit`.

use servo_core::{EventId, RunId, Timestamp};

use super::table::table;
use crate::lifecycle::AuditOutcome;
use crate::principal::Principal;

table! {
    /// One row per change that somebody asked for, allowed or refused.
    "audit" => AuditRow {
        key (event_id: EventId),
        sorted by row_version,
        at |row| row.occurred_at,
        read in pages,
    }
    columns {
        /// The event that recorded it.
        event_id: EventId, unique;
        occurred_at: Timestamp, unique;
        /// Who asked.
        principal: Principal;
        principal_kind: String;
        /// What was asked for, such as `run.cancel`.
        action: String;
        /// To what it was done: a run, a project, a name of dynamic partitions, an asset.
        subject: String;
        outcome: AuditOutcome;
        run_id: Option<RunId>;
        /// The caller's own id of the request.
        request_id: Option<String>;
        /// A few words more: the selection, the reason that the caller gave.
        detail: Option<String>;
        /// Why it was refused, for programs.
        refusal: Option<String>;
        /// Why it was refused, for people.
        message: Option<String>;
        /// Refusals before this one that were not recorded, because there were too many.
        omitted: u64;
        row_version: EventId, unique;
    }
}
