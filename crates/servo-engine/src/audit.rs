//! Acts: changes that a principal asked for, as the table `audit` names them (ADR-092).

use servo_core::{Millis, Timestamp};

use crate::command::{BackfillChange, ChangeNamed, Input, NamedChange, ResetCursor, SendTest, Verdict};
use crate::event::{EventData, RequestRefused, RunSource};
use crate::principal::Caller;
use crate::refusal::Refusal;

/// A change that somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    /// The operation, such as `run.cancel`.
    pub action: &'static str,
    /// To what: a run, a project, a name of dynamic partitions, an asset.
    pub subject: String,
    /// A few words more: the selection, the reason that the caller gave.
    pub detail: String,
}

impl Act {
    pub(crate) const TRIGGER: &'static str = "run.trigger";
    pub(crate) const RETRY: &'static str = "run.retry";
    pub(crate) const CANCEL: &'static str = "run.cancel";
    pub(crate) const FORCE_CANCEL: &'static str = "run.force_cancel";
    pub(crate) const RETRY_NOW: &'static str = "run.retry_now";
    pub(crate) const DEPLOY: &'static str = "assets.deploy";
    pub(crate) const PARTITIONS: &'static str = "partitions.change";
    pub(crate) const WIPE_PARTITIONS: &'static str = "partitions.wipe";
    pub(crate) const MARK_PARTITIONS: &'static str = "partitions.mark";
    pub(crate) const RESTORE_PARTITIONS: &'static str = "partitions.undo";
    pub(crate) const EXPIRE_PARTITIONS: &'static str = "partitions.expire";
    pub(crate) const RENAME: &'static str = "asset.rename";
    pub(crate) const SETTINGS: &'static str = "settings.change";
    pub(crate) const PAUSE: &'static str = "dispatch.pause";
    pub(crate) const RESUME: &'static str = "dispatch.resume";
    pub(crate) const DEFINE_SCHEDULE: &'static str = "schedule.define";
    pub(crate) const PAUSE_SCHEDULE: &'static str = "schedule.pause";
    pub(crate) const RESUME_SCHEDULE: &'static str = "schedule.resume";
    pub(crate) const REMOVE_SCHEDULE: &'static str = "schedule.remove";
    pub(crate) const TRIGGER_SCHEDULE: &'static str = "schedule.trigger";
    pub(crate) const DEFINE_SENSOR: &'static str = "sensor.define";
    pub(crate) const PAUSE_SENSOR: &'static str = "sensor.pause";
    pub(crate) const RESUME_SENSOR: &'static str = "sensor.resume";
    pub(crate) const REMOVE_SENSOR: &'static str = "sensor.remove";
    pub(crate) const RESET_SENSOR: &'static str = "sensor.reset_cursor";
    pub(crate) const EVALUATE_SENSOR: &'static str = "sensor.evaluate";
    pub(crate) const PUSH_SENSOR: &'static str = "sensor.push";
    pub(crate) const CREATE_BACKFILL: &'static str = "backfill.create";
    pub(crate) const RETRY_BACKFILL: &'static str = "backfill.retry";
    pub(crate) const PAUSE_BACKFILL: &'static str = "backfill.pause";
    pub(crate) const RESUME_BACKFILL: &'static str = "backfill.resume";
    pub(crate) const CANCEL_BACKFILL: &'static str = "backfill.cancel";
    pub(crate) const PAUSE_CONDITION: &'static str = "automation.pause";
    pub(crate) const RESUME_CONDITION: &'static str = "automation.resume";
    pub(crate) const DEFINE_NOTIFICATION: &'static str = "notification.define";
    pub(crate) const PAUSE_NOTIFICATION: &'static str = "notification.pause";
    pub(crate) const RESUME_NOTIFICATION: &'static str = "notification.resume";
    pub(crate) const REMOVE_NOTIFICATION: &'static str = "notification.remove";
    pub(crate) const TEST_NOTIFICATION: &'static str = "notification.test";
    pub(crate) const APPROVE: &'static str = "quarantine.approve";
    pub(crate) const REJECT: &'static str = "quarantine.reject";
    pub(crate) const RETENTION: &'static str = "retention.apply";

    pub(crate) fn new(action: &'static str, subject: impl ToString, detail: impl Into<String>) -> Self {
        Self { action, subject: subject.to_string(), detail: detail.into() }
    }

    /// The action of a request for a run.
    pub(crate) fn run_action(source: &RunSource) -> &'static str {
        if let RunSource::Retry { .. } = source { Self::RETRY } else { Self::TRIGGER }
    }

    /// The action of a pause, or of its end.
    pub(crate) fn pause_action(paused: bool) -> &'static str {
        if paused { Self::PAUSE } else { Self::RESUME }
    }

    /// The action of a pause of an asset's automation, or of its end.
    pub(crate) fn condition_action(paused: bool) -> &'static str {
        if paused { Self::PAUSE_CONDITION } else { Self::RESUME_CONDITION }
    }

    /// The action of a cancellation.
    pub(crate) fn cancel_action(force: bool) -> &'static str {
        if force { Self::FORCE_CANCEL } else { Self::CANCEL }
    }

    /// The act that a change of something with a name asks for, and who asks.
    fn of_named<'c, D, X>(
        command: &'c ChangeNamed<NamedChange<D, X>>,
        [define, pause, resume, remove]: [&'static str; 4],
        own: impl FnOnce(&X) -> &'static str,
    ) -> (Self, &'c Caller) {
        let action = match &command.change {
            NamedChange::Create(_) | NamedChange::Redefine(_) => define,
            NamedChange::Pause => pause,
            NamedChange::Resume => resume,
            NamedChange::Remove => remove,
            NamedChange::Own(change) => own(change),
        };
        (Self::new(action, &command.name, ""), &command.caller)
    }

    /// The act that a command asks for, and who asks. Reports of workers and queues are none.
    fn of(input: &Input) -> Option<(Self, &Caller)> {
        match input {
            Input::Trigger(command) => {
                let request = &command.request;
                let action = Self::run_action(&request.source);
                Some((Self::new(action, &command.run_key, request.selection.as_str()), &request.caller))
            }
            Input::Cancel(command) => {
                let action = Self::cancel_action(command.force);
                Some((Self::new(action, command.run_id, command.reason.as_str()), &command.caller))
            }
            Input::RetryNow(command) => {
                Some((Self::new(Self::RETRY_NOW, command.run_id, ""), &command.caller))
            }
            Input::Deploy(command) => Some((Self::new(Self::DEPLOY, &command.project, ""), &command.caller)),
            Input::ChangePartitions(command) => {
                Some((Self::new(Self::PARTITIONS, &command.name, ""), &command.caller))
            }
            Input::WipePartitions(command) => {
                let action = Self::WIPE_PARTITIONS;
                Some((Self::new(action, &command.asset, command.reason.as_str()), &command.caller))
            }
            Input::MarkPartitions(command) => {
                let action = Self::MARK_PARTITIONS;
                Some((Self::new(action, &command.asset, command.reason.as_str()), &command.caller))
            }
            Input::RestorePartitions(command) => {
                Some((Self::new(Self::RESTORE_PARTITIONS, &command.asset, ""), &command.caller))
            }
            Input::RenameAsset(command) => {
                let detail = format!("to {}", command.to);
                Some((Self::new(Self::RENAME, &command.from, detail), &command.caller))
            }
            Input::Review(command) => {
                let action = match command.verdict {
                    Verdict::Approve => Self::APPROVE,
                    Verdict::Reject => Self::REJECT,
                };
                let detail = format!("{} {}", command.materialization_id, command.reason);
                Some((Self::new(action, &command.asset, detail.trim_end()), &command.caller))
            }
            Input::ChangeSettings(command) => {
                Some((Self::new(Self::SETTINGS, "settings", ""), &command.caller))
            }
            Input::Pause(command) => {
                let action = Self::pause_action(command.paused);
                Some((Self::new(action, &command.scope, command.reason.as_str()), &command.caller))
            }
            Input::ChangeSchedule(command) => Some(Self::of_named(
                command,
                [Self::DEFINE_SCHEDULE, Self::PAUSE_SCHEDULE, Self::RESUME_SCHEDULE, Self::REMOVE_SCHEDULE],
                |never| match *never {},
            )),
            Input::TriggerSchedule(command) => {
                Some((Self::new(Self::TRIGGER_SCHEDULE, &command.schedule, ""), &command.caller))
            }
            Input::ChangeSensor(command) => Some(Self::of_named(
                command,
                [Self::DEFINE_SENSOR, Self::PAUSE_SENSOR, Self::RESUME_SENSOR, Self::REMOVE_SENSOR],
                |ResetCursor(_)| Self::RESET_SENSOR,
            )),
            Input::PushMessage(command) => {
                Some((Self::new(Self::PUSH_SENSOR, &command.sensor, &*command.message_id), &command.caller))
            }
            Input::EvaluatedByHand(command) => {
                Some((Self::new(Self::EVALUATE_SENSOR, &command.sensor, ""), &command.caller))
            }
            Input::ApplyRetention(command) => {
                Some((Self::new(Self::RETENTION, "retention", ""), &command.caller))
            }
            Input::CreateBackfill(command) => {
                let action =
                    if command.parent.is_some() { Self::RETRY_BACKFILL } else { Self::CREATE_BACKFILL };
                Some((Self::new(action, &command.request.selection, ""), &command.request.caller))
            }
            Input::ChangeBackfill(command) => {
                let action = match command.change {
                    BackfillChange::Pause => Self::PAUSE_BACKFILL,
                    BackfillChange::Resume => Self::RESUME_BACKFILL,
                    BackfillChange::Cancel => Self::CANCEL_BACKFILL,
                };
                Some((Self::new(action, command.backfill, command.reason.as_str()), &command.caller))
            }
            Input::PauseCondition(command) => {
                let action = Self::condition_action(command.paused);
                Some((Self::new(action, &command.asset, command.reason.as_str()), &command.caller))
            }
            Input::ChangeNotification(command) => Some(Self::of_named(
                command,
                [
                    Self::DEFINE_NOTIFICATION,
                    Self::PAUSE_NOTIFICATION,
                    Self::RESUME_NOTIFICATION,
                    Self::REMOVE_NOTIFICATION,
                ],
                |SendTest| Self::TEST_NOTIFICATION,
            )),
            Input::Deny(command) => {
                Some((Self::new(command.permission, &command.subject, ""), &command.caller))
            }
            Input::StartWith(_)
            | Input::Notified(_)
            | Input::Evaluated(_)
            | Input::Enqueued(_)
            | Input::Released(_)
            | Input::Moved(_)
            | Input::Started(..)
            | Input::Heartbeat(..)
            | Input::Finished(..)
            | Input::RegisterWorker(_)
            | Input::WorkerLeaves(_)
            | Input::WorkersLost(_)
            | Input::MessagesLost
            | Input::ClockStepped { .. }
            | Input::Sweep => None,
        }
    }
}

/// Refusals that may be recorded at once.
const BURST: u32 = 60;
/// How long it takes until one more may be.
const REFILL: Millis = Millis::new(1_000);
/// Characters of a text of a refused request that go into the log.
const LONGEST: usize = 256;

/// Decides which refused requests are recorded: all of them, unless they come faster than one in a second for long.
/// Whoever floods a workspace with requests that are refused cannot fill its log.
#[derive(Debug, Clone)]
pub(crate) struct RefusalRecords {
    left: u32,
    refilled_at: Timestamp,
    /// Refusals since the last record that were not recorded.
    omitted: u64,
}

impl Default for RefusalRecords {
    fn default() -> Self {
        Self { left: BURST, refilled_at: Timestamp::MIN, omitted: 0 }
    }
}

impl RefusalRecords {
    /// The event that records a refusal of a command, and who was refused.
    pub(crate) fn record(
        &mut self,
        input: &Input,
        refusal: &Refusal,
        now: Timestamp,
    ) -> Option<(EventData, Caller)> {
        // Whoever is told that a plan or a key is out of date asks again in the same breath.
        if matches!(refusal, Refusal::StalePlan(_) | Refusal::StaleRunKey { .. }) {
            return None;
        }
        let (act, caller) = Act::of(input)?;
        self.refill(now);
        if self.left == 0 {
            self.omitted += 1;
            return None;
        }
        self.left -= 1;
        let refused = RequestRefused {
            action: act.action.to_owned(),
            subject: shortened(act.subject),
            detail: shortened(act.detail),
            code: refusal.code().to_owned(),
            message: shortened(refusal.to_string()),
            omitted: std::mem::take(&mut self.omitted),
            refused_at: now,
        };
        Some((EventData::RequestRefused(refused), caller.clone()))
    }

    fn refill(&mut self, now: Timestamp) {
        if now < self.refilled_at {
            // The clock was set back.
            self.refilled_at = now;
        }
        let passed = now.since(self.refilled_at).get() / REFILL.get();
        if passed == 0 {
            return;
        }
        self.left = BURST.min(self.left.saturating_add(u32::try_from(passed).unwrap_or(BURST)));
        self.refilled_at = now;
    }
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
