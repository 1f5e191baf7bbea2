//! Streams of a server, which resume after a disconnect.

use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderName};
use reqwest::{Response, Url};
use serde::de::DeserializeOwned;
use servo_core::{Backoff, EventId, RunId};

use super::sse::{SseEvent, SseParser};
use super::{Client, ClientError};
use crate::views::{Run, RunEnd, Task};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Delays before coming back after a break.
const INITIAL_DELAY: Duration = Duration::from_millis(200);
const MAX_DELAY: Duration = Duration::from_secs(2);

/// An event of a run stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEvent {
    /// The current run.
    Run(Box<Run>),
    /// A current task.
    Task(Box<Task>),
    /// The end of the stream.
    End(RunEnd),
}

/// A stream of the events of a run.
#[derive(Debug)]
pub struct RunStream(Stream);

impl Client {
    /// Follows a run, from all changes newer than the given event.
    pub fn follow(&self, run: RunId, seen: Option<EventId>) -> RunStream {
        let url = self.url(&["runs", &run.to_string(), "events"]);
        RunStream(Stream::new(self.clone(), url, seen.map(|seen| seen.to_string())))
    }
}

impl RunStream {
    /// The next event; none after the end. Reconnects if the connection breaks.
    pub async fn next(&mut self) -> Result<Option<RunEvent>, ClientError> {
        while let Some(message) = self.0.next().await? {
            return Ok(Some(match message.event.as_str() {
                "run" => RunEvent::Run(self.0.read(&message)?),
                "task" => RunEvent::Task(self.0.read(&message)?),
                "end" => RunEvent::End(self.0.read(&message)?),
                _ => continue,
            }));
        }
        Ok(None)
    }
}

/// The events of a stream that ends with `end`.
#[derive(Debug)]
pub(super) struct Stream {
    client: Client,
    url: Url,
    /// The id to resume after.
    seen: Option<String>,
    response: Option<Response>,
    messages: SseParser,
    waiting: std::collections::VecDeque<SseEvent>,
    backoff: Backoff,
    ended: bool,
}

impl Stream {
    pub(super) fn new(client: Client, url: Url, seen: Option<String>) -> Self {
        let backoff = Backoff::new(INITIAL_DELAY, MAX_DELAY, client.seeds.next());
        Self {
            client,
            url,
            seen,
            response: None,
            messages: SseParser::default(),
            waiting: std::collections::VecDeque::new(),
            backoff,
            ended: false,
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<SseEvent>, ClientError> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                if let Some(id) = &message.id {
                    self.seen = Some(id.clone());
                }
                self.ended = message.event == "end";
                return Ok(Some(message));
            }
            if self.ended {
                return Ok(None);
            }
            let response = match &mut self.response {
                Some(response) => response,
                None => self.response.insert(self.connect().await?),
            };
            match response.chunk().await {
                Ok(Some(bytes)) => {
                    self.backoff.reset();
                    self.waiting.extend(self.messages.push(&bytes));
                }
                Ok(None) | Err(_) => {
                    // Half a message is told again from where it begins.
                    (self.response, self.messages) = (None, SseParser::default());
                    self.client.timers.sleep(self.backoff.next_delay()).await;
                }
            }
        }
    }

    pub(super) fn read<T: DeserializeOwned>(&self, message: &SseEvent) -> Result<T, ClientError> {
        serde_json::from_str(&message.data).map_err(|error| self.client.malformed(error.to_string()))
    }

    async fn connect(&self) -> Result<Response, ClientError> {
        let request = || {
            let request = self.client.http.get(self.url.clone()).header(ACCEPT, "text/event-stream");
            let request = self.client.authorized(request);
            match &self.seen {
                Some(seen) => request.header(LAST_EVENT_ID, seen),
                None => request,
            }
        };
        self.client.send(request).await
    }
}
