//! Acts by page: a few row groups, whatever the history.

use servo_core::{EventId, Timestamp};
use servo_engine::AuditOutcome;
use servo_engine::rows::{AuditRow, ReadFrom, Row};

use crate::batch::Batch;
use crate::error::Error;
use crate::projection::Projection;

/// Which acts to list. Every part that is given must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// By this principal: `user:local`, or its name among those of its kind.
    pub principal: Option<String>,
    /// This action, or all of its family: `run` stands for `run.trigger`, `run.cancel` and so on.
    pub action: Option<String>,
    /// About a subject whose text begins so.
    pub subject: Option<String>,
    /// Allowed or refused.
    pub outcome: Option<AuditOutcome>,
    /// At this time or later.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
}

impl AuditFilter {
    /// Whether an act is wanted.
    pub fn accepts(&self, row: &AuditRow) -> bool {
        let is_by = |wanted: &String| {
            row.principal.subject() == wanted.as_str() || row.principal.to_string() == *wanted
        };
        let is_action = |wanted: &String| {
            let rest = row.action.strip_prefix(wanted.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.principal.as_ref().is_none_or(is_by)
            && self.action.as_ref().is_none_or(is_action)
            && self.subject.as_ref().is_none_or(|wanted| row.subject.starts_with(wanted.as_str()))
            && self.outcome.is_none_or(|wanted| row.outcome == wanted)
            && self.since.is_none_or(|since| row.occurred_at >= since)
            && self.until.is_none_or(|until| row.occurred_at < until)
    }
}

impl Projection {
    /// Acts in the tables, the newest first, beginning before `before`.
    pub async fn audit_before(
        &self,
        before: Option<EventId>,
        limit: usize,
        filter: &AuditFilter,
    ) -> Result<Vec<AuditRow>, Error> {
        let mut page = Vec::new();
        for file in self.manifest.immutable(AuditRow::TABLE).iter().rev() {
            if page.len() >= limit {
                break;
            }
            let is_newer = before.is_some_and(|before| file.min_key.is_some_and(|first| first >= before));
            let is_early =
                filter.since.is_some_and(|since| file.max_at.is_some_and(|at| at < since.as_millis()));
            let is_late =
                filter.until.is_some_and(|until| file.min_at.is_some_and(|at| at >= until.as_millis()));
            if is_newer || is_early || is_late {
                continue;
            }
            let open = self.files.open(file).await?;
            for group in (0..open.groups()).rev() {
                let is_newer = |before| open.bounds(group).is_some_and(|(first, _)| first >= before);
                if page.len() >= limit || before.is_some_and(is_newer) {
                    continue;
                }
                let rows = self.files.group(&open, group, None).await?;
                let batch =
                    Batch { rows: &rows, file: &open.name, first_row: open.first_row(group), chosen: None };
                let mut rows = AuditRow::read_rows(&batch, 0..batch.len())?;
                rows.retain(|row| before.is_none_or(|before| row.event_id < before) && filter.accepts(row));
                rows.sort_by_key(|row| std::cmp::Reverse(row.event_id));
                page.extend(rows);
            }
        }
        page.truncate(limit);
        Ok(page)
    }
}
