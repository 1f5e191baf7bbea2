//! Every change that somebody asked for leaves a row in `audit`, allowed or refused (ADR-092).

use servo_core::planted::{self, Mistake};

use super::{Applied, At, Ignored, retention};
use crate::audit::Act;
use crate::event::{Causation, Event, RequestRefused};
use crate::lifecycle::AuditOutcome;
use crate::rows::AuditRow;
use crate::state::State;

/// Notes what was asked for by an event that has been folded.
pub(super) fn record(state: &mut State, at: At, event: &Event, applied: Applied) {
    let outcome = match applied {
        Applied::Yes => AuditOutcome::Allowed,
        Applied::No(Ignored::RunKeyConflict) => AuditOutcome::Refused,
        Applied::No(
            Ignored::Duplicate
            | Ignored::StaleAttempt
            | Ignored::NotInThatState
            | Ignored::NotDue
            | Ignored::UnknownRun
            | Ignored::UnknownTask
            | Ignored::UnknownSchedule
            | Ignored::UnknownSensor
            | Ignored::UnknownNotification
            | Ignored::UnknownBackfill
            | Ignored::UnknownCondition
            | Ignored::UnknownEvent,
        ) => return,
    };
    let Some(Act { action, subject, detail }) = event.data.act() else { return };
    if planted::has(Mistake::AuditRowLost) && action == Act::CANCEL {
        return;
    }
    let refusal = (outcome == AuditOutcome::Refused).then(|| {
        ("run_key_conflict".to_owned(), "the run key was used before for another request".to_owned())
    });
    let row = row(at, event, action, &subject, &detail, refusal);
    state.changes.audit.push(AuditRow { outcome, ..row });
}

/// A request that was refused.
pub(super) fn refused(state: &mut State, at: At, event: &Event, payload: &RequestRefused) -> Applied {
    if !retention::remember(state, at, &event.idempotency_key) {
        return Applied::No(Ignored::Duplicate);
    }
    let refusal = Some((payload.code.clone(), payload.message.clone()));
    let row = row(at, event, &payload.action, &payload.subject, &payload.detail, refusal);
    state.changes.audit.push(AuditRow { omitted: payload.omitted, ..row });
    Applied::Yes
}

fn row(
    at: At,
    event: &Event,
    action: &str,
    subject: &str,
    detail: &str,
    refusal: Option<(String, String)>,
) -> AuditRow {
    let (refusal, message) = refusal.unzip();
    AuditRow {
        event_id: at.id,
        occurred_at: at.time,
        principal: event.principal.clone(),
        principal_kind: event.principal.kind().name().to_owned(),
        action: action.to_owned(),
        subject: subject.to_owned(),
        outcome: AuditOutcome::Refused,
        run_id: event.data.run_id(),
        request_id: match &event.causation {
            Some(Causation::Request(id)) => Some(id.to_string()),
            Some(Causation::Event(_)) | None => None,
        },
        detail: (!detail.is_empty()).then(|| detail.to_owned()),
        refusal,
        message,
        omitted: 0,
        row_version: at.id,
    }
}
