//! Follows a run by its changed rows.

use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, stream};
use servo_core::{Backoff, EventId, RunId};
use servo_engine::rows::{RunRow, TaskRow};
use servo_engine::{Event, RunState, State};
use servo_runtime::{Error, RunDetail};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::Instant;

use crate::app::Shared;
use crate::sse;
use crate::views::{Run, RunEnd, Task};

/// Rows read and written at once.
const AT_ONCE: usize = 500;
/// Shortest interval between updates.
const PACE: Duration = Duration::from_millis(50);
/// Delays while a workspace loads its state.
const INITIAL_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(2);

/// A position in the order of the stream: by version, then the run before its tasks.
type StreamPosition = (EventId, u32);

enum Row {
    Run(Box<RunRow>),
    Task(Box<TaskRow>),
}

/// Rows that were not sent yet.
struct Newer {
    /// Rows with their position, and whether each is the last of its version.
    rows: Vec<(StreamPosition, bool, Row)>,
    /// Whether there are more.
    more: bool,
    state: RunState,
}

pub(crate) struct RunFollower {
    app: Shared,
    run: RunId,
    events: broadcast::Receiver<Arc<[Event]>>,
    /// The position of the last row that was sent.
    told: StreamPosition,
    /// When rows were last read.
    last: Option<Instant>,
    /// Whether an event arrived since the last read.
    stale: bool,
    ended: bool,
    backoff: Backoff,
}

impl RunFollower {
    pub(crate) fn new(app: Shared, run: RunId, seen: EventId) -> Self {
        let events = app.workspace().subscribe();
        let told = (seen, u32::MAX);
        let backoff = Backoff::new(INITIAL_DELAY, MAX_DELAY, getrandom::u64().unwrap_or_default());
        Self { app, run, events, told, last: None, stale: true, ended: false, backoff }
    }

    pub(crate) fn stream(self) -> impl Stream<Item = String> + Send {
        let greeting = stream::iter([sse::RETRY.to_owned()]);
        let messages = stream::unfold(self, async |mut follower| {
            let text = follower.next().await?;
            Some((text, follower))
        });
        futures::StreamExt::chain(greeting, messages)
    }

    /// The next events; none at the end.
    async fn next(&mut self) -> Option<String> {
        if self.ended {
            return None;
        }
        let app = self.app.clone();
        tokio::select! {
            text = self.messages() => text,
            () = app.closed() => None,
        }
    }

    async fn messages(&mut self) -> Option<String> {
        loop {
            if !self.stale {
                match tokio::time::timeout(sse::KEEP_ALIVE, self.something()).await {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(_) => return Some(sse::STILL_HERE.to_owned()),
                }
            }
            // The end is told at once: somebody waits for it.
            if let Some(last) = self.last
                && !self.has_ended().await
            {
                tokio::time::sleep_until(last + PACE).await;
            }
            // What happens while the rows are read is looked at again.
            self.stale = self.drain()?;
            let newer = match self.newer().await {
                Ok(Some(newer)) => newer,
                Ok(None) | Err(Error::Stopped) => return None,
                Err(error) => {
                    tracing::debug!(%error, "api.follow will look again");
                    tokio::time::sleep(self.backoff.next_delay()).await;
                    self.stale = true;
                    continue;
                }
            };
            self.backoff.reset();
            let text = self.render(newer);
            if !text.is_empty() {
                return Some(text);
            }
        }
    }

    fn render(&mut self, newer: Newer) -> String {
        let mut text = String::new();
        for (place, is_last, row) in newer.rows {
            self.told = place;
            let id = is_last.then_some(&place.0 as &dyn std::fmt::Display);
            match row {
                Row::Run(row) => sse::message(&mut text, "run", id, &Run::from(*row)),
                Row::Task(row) => sse::message(&mut text, "task", id, &Task::in_brief(*row)),
            }
        }
        if newer.more {
            // The rest follows at once: it is the same news.
            (self.stale, self.last) = (true, None);
        } else if newer.state.is_terminal() {
            self.ended = true;
            sse::message(&mut text, "end", None, &RunEnd { run_id: self.run, state: newer.state });
        } else {
            self.last = Some(Instant::now());
        }
        text
    }

    /// Waits for the next event of the run; false if there will be none.
    async fn something(&mut self) -> bool {
        loop {
            match self.events.recv().await {
                Ok(batch) if self.concerns(&batch) => return true,
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => return true,
                Err(RecvError::Closed) => return false,
            }
        }
    }

    /// Drops pending notifications: the rows are about to be read. None if there will be no more, otherwise false.
    fn drain(&mut self) -> Option<bool> {
        loop {
            match self.events.try_recv() {
                Ok(_) | Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty) => return Some(false),
                Err(TryRecvError::Closed) => return None,
            }
        }
    }

    /// Whether the run has ended, or left memory because it had.
    async fn has_ended(&self) -> bool {
        let run = self.run;
        let ended = move |state: &State| state.run(run).is_none_or(|run| run.state.is_terminal());
        self.app.workspace().read(ended).await.unwrap_or(true)
    }

    /// Whether a batch may concern the run. An empty batch means that the state was reloaded, and concerns every run.
    fn concerns(&self, batch: &[Event]) -> bool {
        batch.is_empty() || batch.iter().any(|event| event.correlation() == Some(self.run))
    }

    async fn newer(&self) -> Result<Option<Newer>, Error> {
        let (run, told) = (self.run, self.told);
        let hot = self.app.workspace().read(move |state| hot(state, run, told)).await?;
        if hot.is_some() {
            return Ok(hot);
        }
        let detail = self.app.workspace().run(run).await?;
        Ok(detail.map(|detail| old(detail, told)))
    }
}

fn hot(state: &State, id: RunId, told: StreamPosition) -> Option<Newer> {
    let run = state.run(id)?;
    let own = std::iter::once((run.version, 0));
    let tasks = (1u32..).zip(&run.tasks).map(|(position, task)| (task.row_version(), position));
    let mut places: Vec<StreamPosition> = own.chain(tasks).filter(|place| *place > told).collect();
    places.sort_unstable();
    let more = places.len() > AT_ONCE;
    let is_last = |at: usize| places.get(at + 1).is_none_or(|next| next.0 != places[at].0);
    let row = |position: u32| match position.checked_sub(1) {
        None => Row::Run(Box::new(run.row())),
        Some(task) => Row::Task(Box::new(run.task_row(task))),
    };
    let rows = places.iter().take(AT_ONCE).enumerate();
    let rows = rows.map(|(at, place)| (*place, is_last(at), row(place.1))).collect();
    Some(Newer { rows, more, state: run.state })
}

/// The rows of a run that left memory: it has ended, so these are all.
fn old(detail: RunDetail, told: StreamPosition) -> Newer {
    let RunDetail { run, tasks, .. } = detail;
    let state = run.state;
    let own = std::iter::once(((run.row_version, 0), Row::Run(Box::new(run))));
    let tasks =
        (1u32..).zip(tasks).map(|(position, task)| ((task.row_version, position), Row::Task(Box::new(task))));
    let mut rows: Vec<(StreamPosition, Row)> = own.chain(tasks).filter(|(place, _)| *place > told).collect();
    rows.sort_unstable_by_key(|(place, _)| *place);
    let versions: Vec<EventId> = rows.iter().map(|(place, _)| place.0).collect();
    let is_last = |at: usize| versions.get(at + 1) != Some(&versions[at]);
    let rows = rows.into_iter().enumerate().map(|(at, (place, row))| (place, is_last(at), row)).collect();
    Newer { rows, more: false, state }
}
