//! Requests that are carried out once: the same request gets the answer that it was given (ADR-090).

use crate::command::{BackfillReply, Change, Input, PartitionsReply, Reply, RunReply};
use crate::derive::request_hash;
use crate::event::RequestAnswered;
use crate::principal::Caller;
use crate::refusal::Refusal;
use crate::rows::AnswerEntry;
use crate::state::{Backfill, State};

impl State {
    /// The answer that a caller's request was given within the last day; none if it is new, or has no identity.
    ///
    /// # Errors
    /// The id belongs to another request.
    pub fn answer_to(&self, caller: &Caller) -> Result<Option<&AnswerEntry>, Refusal> {
        let (Some(id), Some(fingerprint)) = (&caller.request_id, &caller.request_fingerprint) else {
            return Ok(None);
        };
        let hash = request_hash(&caller.principal, id);
        match self.answers.get(hash, self.head.elapsed) {
            Some(known) if known.request_digest != fingerprint.digest() => {
                Err(Refusal::RequestIdReused { request_id: id.clone() })
            }
            known => Ok(known),
        }
    }

    /// The backfill that a request was answered with.
    pub fn backfill_created_by(&self, answer: &AnswerEntry) -> Option<&Backfill> {
        let event = answer.event_id?;
        self.backfills().rev().find(|backfill| backfill.created == event)
    }
}

/// The answer that an input was given before; none if it is to be decided.
pub(crate) fn known(state: &State, input: &Input) -> Option<Result<Reply, Refusal>> {
    let caller = input.caller()?;
    let known = state.answer_to(caller).transpose()?;
    Some(known.and_then(|known| {
        let is_gone = matches!(input, Input::CreateBackfill(_)) && state.backfill_created_by(known).is_none();
        match is_gone {
            // It has left memory: whoever asks finds it in the tables, and is not given another.
            true => {
                Err(Refusal::RequestIdReused { request_id: caller.request_id.clone().unwrap_or_default() })
            }
            false => Ok(given(state, known, input)),
        }
    }))
}

fn given(state: &State, known: &AnswerEntry, input: &Input) -> Reply {
    if let (Input::Trigger(_) | Input::TriggerSchedule(_), Some(run_id)) = (input, known.run_id) {
        Reply::Run(RunReply { run_id, accepted: known.event_id })
    } else if let Input::ChangePartitions(_)
    | Input::WipePartitions(_)
    | Input::MarkPartitions(_)
    | Input::RestorePartitions(_) = input
    {
        Reply::Partitions(known.partitions())
    } else if let (Input::CreateBackfill(_), Some(backfill)) = (input, state.backfill_created_by(known)) {
        Reply::Backfill(BackfillReply { backfill_id: backfill.id, accepted: known.event_id })
    } else {
        Reply::Change(known.change())
    }
}

impl AnswerEntry {
    /// The answer to a request for a change.
    pub fn change(&self) -> Change {
        Change::made_by(self.event_id)
    }

    /// The answer to a change of dynamic partitions.
    pub fn partitions(&self) -> PartitionsReply {
        PartitionsReply { change: self.change(), added: self.added, removed: self.removed }
    }
}

/// The record of the answer to a request; none if it has no identity, or its answer is not to be given again.
pub(crate) fn record(input: &Input, reply: &Reply) -> Option<RequestAnswered> {
    let caller = input.caller()?;
    let answered = RequestAnswered {
        request_id: caller.request_id.clone()?,
        request_fingerprint: caller.request_fingerprint.clone()?,
        run_id: None,
        event_id: None,
        added: 0,
        removed: 0,
    };
    match *reply {
        Reply::Run(RunReply { run_id, accepted }) => {
            Some(RequestAnswered { run_id: Some(run_id), event_id: accepted, ..answered })
        }
        // A backfill that was there already is found again by the request that it was created with.
        Reply::Backfill(BackfillReply { accepted, .. }) => {
            Some(RequestAnswered { event_id: Some(accepted?), ..answered })
        }
        Reply::Change(change) => Some(RequestAnswered { event_id: change.event_id(), ..answered }),
        Reply::Partitions(PartitionsReply { change, added, removed }) => {
            Some(RequestAnswered { event_id: change.event_id(), added, removed, ..answered })
        }
        Reply::Heartbeat(_) | Reply::Finish(_) | Reply::Done => None,
    }
}
