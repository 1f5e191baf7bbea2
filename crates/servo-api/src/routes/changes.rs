//! Changes of a workspace as a stream: pages that show it ask again for what they hold.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use futures::stream;
use servo_engine::{Event, EventData};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::Instant;

use crate::answer::{Problems, Wait};
use crate::app::Shared;
use crate::extract::{NoQuery, Query};
use crate::problem::Problem;
use crate::sse;
use crate::views::Changes;

/// Shortest interval between messages.
const PACE: Duration = Duration::from_millis(100);
/// The most runs of a message.
const MAX_RUNS: usize = 100;

/// Messages `changed` with the parts of the workspace that did, at most ten a second, from now on.
///
/// The first message comes at once and says what the newest event is. Nothing is resumed: who was away asks for
/// everything again.
#[utoipa::path(
    get, path = "/changes", operation_id = "follow_changes", tag = "server",
    params(Wait), responses((status = 200, content_type = "text/event-stream", body = Changes), Problems)
)]
pub(super) async fn follow(
    State(app): State<Shared>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Response<Body>, Problem> {
    let events = app.workspace().subscribe();
    let newest = app.workspace().read(|state| state.head().last_event).await?;
    let mut greeting = sse::RETRY.to_owned();
    sse::message(&mut greeting, "changed", None, &Changes { event_id: Some(newest), ..Changes::default() });
    let follower = Follower { app, events, last: Instant::now() };
    let rest = stream::unfold(follower, async |mut follower| {
        let text = follower.next().await?;
        Some((text, follower))
    });
    Ok(sse::response(futures::StreamExt::chain(stream::iter([greeting]), rest)))
}

struct Follower {
    app: Shared,
    events: broadcast::Receiver<Arc<[Event]>>,
    last: Instant,
}

impl Follower {
    /// The next message; none at the end.
    async fn next(&mut self) -> Option<String> {
        let app = self.app.clone();
        tokio::select! {
            text = self.message() => text,
            () = app.closed() => None,
        }
    }

    async fn message(&mut self) -> Option<String> {
        let first = match tokio::time::timeout(sse::KEEP_ALIVE, self.events.recv()).await {
            Err(_) => return Some(sse::STILL_HERE.to_owned()),
            Ok(Err(RecvError::Closed)) => return None,
            Ok(Err(RecvError::Lagged(_))) => None,
            Ok(Ok(batch)) => Some(batch),
        };
        tokio::time::sleep_until(self.last + PACE).await;
        let mut gathered = Gathered::default();
        gathered.add(first.as_deref());
        loop {
            match self.events.try_recv() {
                Ok(batch) => gathered.add(Some(&batch)),
                Err(TryRecvError::Lagged(_)) => gathered.add(None),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Closed) => return None,
            }
        }
        self.last = Instant::now();
        let mut text = String::new();
        sse::message(&mut text, "changed", None, &gathered.changes());
        Some(text)
    }
}

#[derive(Default)]
struct Gathered {
    changes: Changes,
    runs: BTreeSet<servo_core::RunId>,
    /// Whether everything may have changed.
    all: bool,
}

impl Gathered {
    /// A batch; an empty or unknown one stands for anything.
    fn add(&mut self, batch: Option<&[Event]>) {
        let Some(batch) = batch.filter(|batch| !batch.is_empty()) else {
            self.all = true;
            return;
        };
        for event in batch {
            self.changes.event_id = Some(event.id);
            self.runs.extend(event.correlation());
            let Changes { assets, automation, settings, .. } = &mut self.changes;
            match part(&event.data) {
                Part::Assets => *assets = true,
                Part::Automation => *automation = true,
                Part::Settings => *settings = true,
                Part::Runs => {}
                Part::Everything => self.all = true,
            }
        }
    }

    fn changes(mut self) -> Changes {
        self.changes.more_runs = self.runs.len() > MAX_RUNS || self.all;
        self.changes.runs = self.runs.into_iter().take(MAX_RUNS).collect();
        if self.all {
            self.changes.event_id = None;
            (self.changes.assets, self.changes.automation, self.changes.settings) = (true, true, true);
        }
        self.changes
    }
}

/// The part of the workspace that an event changes, besides its run.
enum Part {
    Runs,
    Assets,
    Automation,
    Settings,
    /// Times of whatever is at work.
    Everything,
}

fn part(data: &EventData) -> Part {
    match data {
        EventData::RunRequested(_)
        | EventData::RunKeyConflicted(_)
        | EventData::RequestAnswered(_)
        | EventData::DispatchRequested(_)
        | EventData::DispatchEnqueued(_)
        | EventData::TimerRequested(_)
        | EventData::TimerEnqueued(_)
        | EventData::TimerFired(_)
        | EventData::TaskHeartbeat(_)
        | EventData::RequestRefused(_)
        | EventData::Unknown(_) => Part::Runs,
        EventData::PlanCreated(_)
        | EventData::RunTriggered(_)
        | EventData::RunCancelRequested(_)
        | EventData::TaskStarted(_)
        | EventData::TaskFinished(_)
        | EventData::AssetsDeployed(_)
        | EventData::DynamicPartitionsChanged(_)
        | EventData::MaterializationApproved(_)
        | EventData::MaterializationRejected(_)
        | EventData::MaterializationReleased(_)
        | EventData::RetentionApplied(_)
        | EventData::PartitionsWiped(_)
        | EventData::PartitionsMarked(_)
        | EventData::PartitionsRestored(_)
        | EventData::PartitionsExpired(_)
        | EventData::AssetRenamed(_)
        | EventData::AssetMoved(_)
        | EventData::FreshnessChanged(_)
        | EventData::FreshnessObserved(_) => Part::Assets,
        EventData::ClockStepped(_) => Part::Everything,
        EventData::SettingsChanged(_)
        | EventData::PauseChanged(_)
        | EventData::WorkerRegistered(_)
        | EventData::WorkerChanged(_)
        | EventData::WorkerLeft(_)
        | EventData::WorkerLost(_) => Part::Settings,
        EventData::ScheduleDefined(_)
        | EventData::SchedulePaused(_)
        | EventData::ScheduleResumed(_)
        | EventData::ScheduleRemoved(_)
        | EventData::ScheduleTicked(_)
        | EventData::ScheduleEvaluationFailed(_)
        | EventData::ScheduleEvaluationRequested(_)
        | EventData::SensorCursorReset(_)
        | EventData::SensorMessageReceived(_)
        | EventData::SensorDefined(_)
        | EventData::SensorPaused(_)
        | EventData::SensorResumed(_)
        | EventData::SensorRemoved(_)
        | EventData::SensorEvaluationRequested(_)
        | EventData::SensorEvaluated(_)
        | EventData::BackfillCreated(_)
        | EventData::BackfillChunkPlanned(_)
        | EventData::NotificationRuleDefined(_)
        | EventData::NotificationRuleChanged(_)
        | EventData::NotificationTested(_)
        | EventData::NotificationRequested(_)
        | EventData::NotificationAttempted(_)
        | EventData::QueueServiceChanged(_)
        | EventData::BackfillStateChanged(_)
        | EventData::ConditionsEvaluated(_)
        | EventData::ConditionPauseChanged(_) => Part::Automation,
    }
}
