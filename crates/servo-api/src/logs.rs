//! Logs of attempts: read in parts, and followed while the attempt is running.

use std::sync::Arc;

use futures::{Stream, stream};
use servo_engine::{Event, EventData};
use servo_worker::{LogChunk, LogName, LogState};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

use crate::app::{App, Shared};
use crate::problem::Problem;
use crate::sse;
use crate::views::{LogEnd, LogLine};

/// Bytes to read at once.
pub(crate) const PART: usize = 256 << 10;

/// The lines of a part of a log, each with the offset after it. Malformed lines are left out.
pub(crate) fn lines(chunk: &LogChunk) -> impl Iterator<Item = (u64, LogLine)> + '_ {
    let from = chunk.next - chunk.bytes.len() as u64;
    let ends = chunk.bytes.split_inclusive(|byte| *byte == b'\n').scan(from, |end, line| {
        *end += line.len() as u64;
        Some((*end, line))
    });
    ends.filter_map(|(end, line)| {
        let line: servo_worker::LogLine = serde_json::from_slice(line).ok()?;
        Some((end, line.into()))
    })
}

impl App {
    /// A part of a log.
    pub(crate) async fn read_log(&self, name: &LogName, from: u64, most: usize) -> Result<LogChunk, Problem> {
        // No file is longer.
        if i64::try_from(from).is_err() {
            return Err(Problem::invalid("offset", format!("{from} is more than any log has")));
        }
        self.api.logs.read(name, from, most).await.map_err(|error| Problem::internal(&error))
    }

    /// Whether an attempt may still be running, so that there may be more to read.
    pub(crate) async fn is_at_work(&self, name: &LogName) -> Result<bool, Problem> {
        if self.workspace().is_read_only() {
            return Ok(false);
        }
        let name = name.clone();
        let is_open = self.workspace().read(move |state| {
            let task = state.task(name.run_id, &name.task_key);
            task.is_some_and(|task| task.attempt == name.attempt && task.has_open_attempt())
        });
        Ok(is_open.await?)
    }
}

/// Follows the log of an attempt.
pub(crate) struct LogFollower {
    app: Shared,
    name: LogName,
    /// Notifies of lines.
    file: watch::Receiver<LogState>,
    /// Notifies of the end, if the worker cannot.
    events: broadcast::Receiver<Arc<[Event]>>,
    /// The offset to read from.
    offset: u64,
    ended: bool,
}

impl LogFollower {
    pub(crate) fn new(app: Shared, name: LogName, offset: u64) -> Self {
        let file = app.api.logs.watch(&name);
        let events = app.workspace().subscribe();
        Self { app, name, file, events, offset, ended: false }
    }

    pub(crate) fn stream(self) -> impl Stream<Item = String> + Send {
        let greeting = stream::iter([sse::RETRY.to_owned()]);
        let messages = stream::unfold(self, async |mut follower| {
            let text = follower.next().await?;
            Some((text, follower))
        });
        futures::StreamExt::chain(greeting, messages)
    }

    async fn next(&mut self) -> Option<String> {
        if self.ended {
            return None;
        }
        let app = self.app.clone();
        tokio::select! {
            text = self.messages() => text.ok().flatten(),
            () = app.closed() => None,
        }
    }

    /// The next lines; none if the stream breaks off.
    async fn messages(&mut self) -> Result<Option<String>, Problem> {
        loop {
            let is_over = self.file.borrow_and_update().ended;
            if let Some(text) = self.lines().await? {
                return Ok(Some(text));
            }
            if is_over || !self.app.is_at_work(&self.name).await? {
                // What was written before it was over is there by now.
                let rest = self.lines().await?;
                if rest.is_none() {
                    self.ended = true;
                }
                return Ok(Some(rest.unwrap_or_else(|| self.end())));
            }
            match tokio::time::timeout(sse::KEEP_ALIVE, self.something()).await {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(_) => return Ok(Some(sse::STILL_HERE.to_owned())),
            }
        }
    }

    async fn lines(&mut self) -> Result<Option<String>, Problem> {
        let chunk = self.app.read_log(&self.name, self.offset, PART).await?;
        if chunk.bytes.is_empty() {
            return Ok(None);
        }
        self.offset = chunk.next;
        let mut text = String::with_capacity(chunk.bytes.len() * 2);
        for (end, line) in lines(&chunk) {
            sse::message(&mut text, "log", Some(&end), &line);
        }
        Ok(Some(text))
    }

    fn end(&self) -> String {
        let mut text = String::new();
        sse::message(&mut text, "end", Some(&self.offset), &LogEnd { offset: self.offset });
        text
    }

    /// Waits until there are lines or the attempt may have ended; false if there will be nothing more.
    async fn something(&mut self) -> bool {
        loop {
            tokio::select! {
                biased;
                changed = self.file.changed() => {
                    // Closed: it has ended, or somebody else is told now.
                    if changed.is_err() && !self.file.borrow().ended {
                        self.file = self.app.api.logs.watch(&self.name);
                    }
                    return true;
                }
                batch = self.events.recv() => match batch {
                    Ok(batch) if batch.is_empty() || batch.iter().any(|event| ends(event, &self.name)) => return true,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => return true,
                    Err(RecvError::Closed) => return false,
                },
            }
        }
    }
}

/// Whether an event may end an attempt.
fn ends(event: &Event, name: &LogName) -> bool {
    let data = &event.data;
    let may_end = matches!(
        data,
        EventData::TaskFinished(_) | EventData::TimerFired(_) | EventData::RunCancelRequested(_)
    );
    may_end && data.run_id() == Some(name.run_id) && data.task_key().is_none_or(|key| *key == name.task_key)
}
