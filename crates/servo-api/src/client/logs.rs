//! Logs of attempts: reading them, and sending them to where they are kept.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use servo_core::RunId;
use servo_worker::{LogName, LogSink, LogTarget};

use super::streams::Stream;
use super::{Client, ClientError};
use crate::views::{LogAnswer, LogBody, LogEnd, LogLine, LogPage, Task};

/// Bytes to send at once; the last line may exceed it.
const BATCH: usize = 256 << 10;

/// An event of a log stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEvent {
    /// A line.
    Line(Box<LogLine>),
    /// The end of the log.
    End(LogEnd),
}

/// The lines of an attempt as they are written.
#[derive(Debug)]
pub struct LogTail(Stream);

impl Client {
    /// A part of the log of an attempt.
    pub async fn log(
        &self,
        run: RunId,
        task_id: &str,
        attempt: u32,
        offset: u64,
        limit: Option<usize>,
    ) -> Result<LogPage, ClientError> {
        let limit = limit.map(|limit| ("limit", limit.to_string()));
        self.part_of_log(run, task_id, attempt, offset, limit).await
    }

    /// The lines of a part of a log that have a text, whatever the case: all of it was searched when `next_offset` stays.
    pub async fn search_log(
        &self,
        run: RunId,
        task_id: &str,
        attempt: u32,
        offset: u64,
        text: &str,
    ) -> Result<LogPage, ClientError> {
        self.part_of_log(run, task_id, attempt, offset, Some(("search", text.to_owned()))).await
    }

    async fn part_of_log(
        &self,
        run: RunId,
        task_id: &str,
        attempt: u32,
        offset: u64,
        further: Option<(&'static str, String)>,
    ) -> Result<LogPage, ClientError> {
        let mut query = vec![("offset", offset.to_string())];
        query.extend(further);
        let (run, attempt) = (run.to_string(), attempt.to_string());
        self.get(&["runs", &run, "tasks", task_id, "attempts", &attempt, "logs"], &query).await
    }

    /// Follows the log of an attempt from an offset on.
    pub fn follow_log(&self, run: RunId, task_id: &str, attempt: u32, offset: u64) -> LogTail {
        let (run, attempt) = (run.to_string(), attempt.to_string());
        let url = self.url(&["runs", &run, "tasks", task_id, "attempts", &attempt, "logs", "stream"]);
        LogTail(Stream::new(self.clone(), url, Some(offset.to_string())))
    }

    /// A sink that sends lines to the server.
    pub fn log_sink(&self) -> RemoteLogs {
        RemoteLogs { client: self.clone(), sent: SentLogs::default() }
    }
}

impl LogTail {
    /// The next line; none after the end. If the connection breaks it is made again.
    pub async fn next(&mut self) -> Result<Option<LogEvent>, ClientError> {
        while let Some(message) = self.0.next().await? {
            return Ok(Some(match message.event.as_str() {
                "log" => LogEvent::Line(self.0.read(&message)?),
                "end" => LogEvent::End(self.0.read(&message)?),
                _ => continue,
            }));
        }
        Ok(None)
    }
}

/// Sends the lines of attempts to a server.
#[derive(Debug, Clone)]
pub struct RemoteLogs {
    client: Client,
    sent: SentLogs,
}

impl RemoteLogs {
    async fn send(&self, target: &LogTarget, body: LogBody) -> io::Result<LogAnswer> {
        let task = Task::id_of(&target.name.task_key);
        let token = self.client.tokens.newest(&target.task_token);
        let sent = self.client.post(&["tasks", &task, "logs"], Some(&token), &body).await;
        match sent {
            Ok(response) => self.client.read(response).await,
            Err(error) => Err(error),
        }
        .map_err(io::Error::other)
    }
}

#[async_trait]
impl LogSink for RemoteLogs {
    async fn write(&self, target: &LogTarget, lines: Vec<servo_worker::LogLine>) -> io::Result<()> {
        self.sent.write(target, lines, |body| self.send(target, body)).await
    }

    async fn end(&self, target: &LogTarget) {
        self.sent.end(target, |body| self.send(target, body)).await;
    }
}

/// Offsets of the next lines of logs that are sent: if a response is lost, the same lines are not stored twice.
#[derive(Debug, Clone, Default)]
pub(super) struct SentLogs(Arc<Mutex<BTreeMap<LogName, u64>>>);

impl SentLogs {
    /// Sends lines in batches.
    pub(super) async fn write<Sent: Future<Output = io::Result<LogAnswer>>>(
        &self,
        target: &LogTarget,
        lines: Vec<servo_worker::LogLine>,
        send: impl Fn(LogBody) -> Sent,
    ) -> io::Result<()> {
        let mut batch = Vec::new();
        let mut size = 0;
        for line in lines {
            size += line.text.len();
            batch.push(LogLine::from(line));
            if size >= BATCH {
                self.send(target, std::mem::take(&mut batch), false, &send).await?;
                size = 0;
            }
        }
        if batch.is_empty() { Ok(()) } else { self.send(target, batch, false, &send).await }
    }

    /// Sends that there will be no more lines.
    pub(super) async fn end<Sent: Future<Output = io::Result<LogAnswer>>>(
        &self,
        target: &LogTarget,
        send: impl Fn(LogBody) -> Sent,
    ) {
        if let Err(error) = self.send(target, Vec::new(), true, &send).await {
            tracing::debug!(%error, "the end of a log could not be reported");
        }
        self.with(|offsets| offsets.remove(&target.name));
    }

    async fn send<Sent: Future<Output = io::Result<LogAnswer>>>(
        &self,
        target: &LogTarget,
        lines: Vec<LogLine>,
        end: bool,
        send: impl Fn(LogBody) -> Sent,
    ) -> io::Result<()> {
        let offset = self.with(|offsets| offsets.get(&target.name).copied().unwrap_or_default());
        let answer = send(LogBody { lines, offset: Some(offset), end }).await?;
        self.with(|offsets| offsets.insert(target.name.clone(), answer.next_offset));
        Ok(())
    }

    fn with<T>(&self, change: impl FnOnce(&mut BTreeMap<LogName, u64>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
