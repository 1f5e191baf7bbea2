//! Requests about backfills: create, pause, resume, cancel.

use servo_core::Timestamp;

use super::{Answer, Decision};
use crate::command::{BackfillChange, BackfillReply, ChangeBackfill, CreateBackfill, Reply};
use crate::controllers::backfills::changed;
use crate::derive::backfill_id;
use crate::event::{BackfillCreated, EventData, Payload as _, RunCancelRequested};
use crate::lifecycle::BackfillState;
use crate::refusal::Refusal;
use crate::state::{Backfill, State};

const BACKFILL: &str = "backfill";

/// Backfills that may be open at once.
const MAX_OPEN: usize = 10_000;

pub(super) fn create(state: &State, command: &CreateBackfill, now: Timestamp) -> Decision {
    let (request, preview) = (&command.request, &command.preview);
    let id =
        backfill_id(state.tenant(), state.workspace(), state.head().last_event, &command.fingerprint, now);
    let created = BackfillCreated {
        backfill_id: id,
        client_request_id: request.caller.request_id.clone(),
        request_fingerprint: command.fingerprint.clone(),
        asset_selection: request.selection.clone(),
        partition_selector: request.partitions.clone(),
        as_of: command.as_of,
        targets: preview.targets.clone(),
        total_partitions: preview.total_partitions,
        total_chunks: preview.total_chunks,
        chunk_size: request.chunk_size,
        max_concurrent_runs: request.max_concurrent_runs,
        parent_backfill_id: command.parent,
        stop_on_failure: request.stop_on_failure,
        failure_threshold: request.failure_threshold,
        config: request.config.clone(),
        priority: request.priority,
        labels: request.labels.clone(),
    };
    if let Some(known) = state.backfills.requested(&created.idempotency_key()) {
        return if known.definition.request_fingerprint == command.fingerprint || command.parent.is_some() {
            Decision::reply(Reply::Backfill(BackfillReply { backfill_id: known.id, accepted: None }))
        } else {
            let request_id = request.caller.request_id.clone().unwrap_or_default();
            Decision::refuse(Refusal::RequestIdReused { request_id })
        };
    }
    if let Err(stale) = command.basis.check(state) {
        return Decision::refuse(Refusal::StalePlan(stale));
    }
    let open = state.backfills().filter(|backfill| !backfill.state.is_terminal()).count();
    if open >= MAX_OPEN {
        let (limit, used) = (MAX_OPEN as u64, open as u64);
        return Decision::refuse(Refusal::Quota { quota: "max_open_backfills", limit, used });
    }
    Decision {
        events: vec![EventData::BackfillCreated(created)],
        principal: request.caller.principal.clone(),
        answer: Answer::NewBackfill(id),
    }
}

pub(super) fn change(state: &State, command: &ChangeBackfill) -> Decision {
    match events(state, command) {
        Ok(events) if events.is_empty() => Decision::unchanged(),
        Ok(events) => {
            Decision { events, principal: command.caller.principal.clone(), answer: Answer::Change }
        }
        Err(refusal) => Decision::refuse(refusal),
    }
}

fn events(state: &State, command: &ChangeBackfill) -> Result<Vec<EventData>, Refusal> {
    let unknown = || Refusal::UnknownBackfill { backfill_id: command.backfill };
    let backfill = state.backfill(command.backfill).ok_or_else(unknown)?;
    if let Some(expected) = command.expected_state_version.filter(|it| *it != backfill.state_version) {
        return Err(Refusal::StateVersion {
            what: BACKFILL,
            name: backfill.id.to_string(),
            expected,
            found: backfill.state_version,
        });
    }
    let to = |state: BackfillState| vec![changed(backfill, state, command.reason.clone())];
    match (command.change, backfill.state) {
        (BackfillChange::Pause, BackfillState::Paused)
        | (BackfillChange::Resume, BackfillState::Running | BackfillState::Pending)
        | (BackfillChange::Cancel, BackfillState::Cancelled) => Ok(Vec::new()),
        (BackfillChange::Pause, BackfillState::Pending | BackfillState::Running) => {
            Ok(to(BackfillState::Paused))
        }
        (BackfillChange::Resume, BackfillState::Paused) => Ok(to(BackfillState::Running)),
        (BackfillChange::Cancel, BackfillState::Pending | BackfillState::Running | BackfillState::Paused) => {
            let mut events = to(BackfillState::Cancelled);
            events.extend(cancelled_runs(state, backfill));
            Ok(events)
        }
        (
            BackfillChange::Pause | BackfillChange::Resume | BackfillChange::Cancel,
            BackfillState::Succeeded | BackfillState::Failed | BackfillState::Cancelled,
        ) => Err(Refusal::BackfillEnded { backfill_id: backfill.id, state: backfill.state }),
    }
}

/// The runs of a backfill that are to stop with it.
fn cancelled_runs<'a>(state: &'a State, backfill: &'a Backfill) -> impl Iterator<Item = EventData> + 'a {
    let runs = backfill.active.keys().filter_map(|id| state.run(*id));
    let runs = runs.filter(|run| !run.state.is_terminal() && run.cancel.is_none());
    runs.map(|run| {
        EventData::RunCancelRequested(RunCancelRequested {
            run_id: run.id,
            reason: format!("backfill {} was cancelled", backfill.id),
            force: false,
            silent_since: None,
            by_system: true,
        })
    })
}
