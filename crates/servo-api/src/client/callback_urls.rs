//! Reports by callback URLs, for workers that a queue calls.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use reqwest::Url;
use serde::Serialize;
use serde::de::DeserializeOwned;
use servo_engine::{Progress, Report};
use servo_queue::{
    CallbackError, CallbackUrl, CallbackUrls, CallbackVerb, Callbacks, FetchedWork, FinishedReply,
    HeartbeatReply, StartedReply, WorkRef,
};
use servo_worker::{LogLine, LogSink, LogTarget};

use super::logs::SentLogs;
use super::worker::{begun, ended, refused};
use super::{Client, ClientError};
use crate::views::{
    Begun, CallbackHeartbeatAnswer, HandedOutWork, Heartbeat, LogAnswer, LogBody, RenewedCallbacks, Reported,
    Started,
};

/// Reports at the callback URLs of attempts, and shows nothing else. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CallbackClient {
    client: Client,
    /// The newest URLs of attempts, by the address of the first one, for those who were given the first ones.
    renewed: Arc<Mutex<BTreeMap<String, CallbackUrls>>>,
    logs: SentLogs,
    /// Whether the last beginning could not be reported.
    is_away: Arc<AtomicBool>,
}

impl Client {
    /// Reports by callback URLs, over the connections of this client.
    pub fn by_callback_urls(&self) -> CallbackClient {
        let (renewed, logs, is_away) = (Arc::default(), SentLogs::default(), Arc::default());
        CallbackClient { client: self.clone(), renewed, logs, is_away }
    }
}

impl CallbackClient {
    async fn report<T: DeserializeOwned>(
        &self,
        urls: &CallbackUrls,
        verb: CallbackVerb,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let url = urls.get(verb);
        let address = |reason: String| ClientError::Address { text: url.to_string(), reason };
        let parsed: Url =
            url.reveal().parse().map_err(|error: url::ParseError| address(error.to_string()))?;
        let response = self.client.post_to(&parsed, body).await?;
        self.client.read(response).await
    }

    /// Says once that addresses cannot be reached: an operator has to see that they are the wrong ones.
    fn tell(&self, urls: &CallbackUrls, error: Option<&ClientError>) {
        let is_away = matches!(error, Some(ClientError::Unreachable { .. }));
        if !self.is_away.swap(is_away, Ordering::Relaxed)
            && let Some(error) = error.filter(|_| is_away)
        {
            tracing::warn!(%error, url = %urls.started, "worker.callback failed, it will be tried again");
        }
    }

    /// The newest URLs of the attempt that these are about.
    fn newest(&self, urls: CallbackUrls) -> CallbackUrls {
        self.lock().get(urls.started.address()).cloned().unwrap_or(urls)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, CallbackUrls>> {
        self.renewed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The URLs of a credential.
fn urls(credential: &str) -> Result<CallbackUrls, CallbackError> {
    let none = || CallbackError::Denied("the message has no callback URLs".to_owned());
    CallbackUrls::of_credential(credential).ok_or_else(none)
}

/// Callback URLs that are relative to another one, as a credential. What cannot be resolved stays as it is, and is
/// refused where it is used.
fn resolved(base: &CallbackUrl, relative: &str) -> String {
    let (Ok(base), Some(urls)) = (base.address().parse::<Url>(), CallbackUrls::of_credential(relative))
    else {
        return relative.to_owned();
    };
    let absolute = |verb| {
        let url = urls.get(verb).reveal();
        base.join(url).map_or_else(|_| url.to_owned(), |absolute| absolute.to_string())
    };
    CallbackUrls::of(absolute).to_credential()
}

/// The same addresses with other queries.
fn with_queries(urls: &CallbackUrls, queries: &RenewedCallbacks) -> CallbackUrls {
    let with = |url: &CallbackUrl, query: &str| CallbackUrl::new(format!("{}{query}", url.address()));
    CallbackUrls {
        started: with(&urls.started, &queries.started),
        heartbeat: with(&urls.heartbeat, &queries.heartbeat),
        finished: with(&urls.finished, &queries.finished),
        logs: with(&urls.logs, &queries.logs),
    }
}

#[async_trait]
impl Callbacks for CallbackClient {
    async fn started(&self, credential: &str, worker: &str) -> Result<StartedReply, CallbackError> {
        let body = Started { worker_id: worker.to_owned(), work: None };
        let urls = urls(credential)?;
        let answer: Result<Begun, _> = self.report(&urls, CallbackVerb::Started, &body).await;
        self.tell(&urls, answer.as_ref().err());
        answer.map(|answer| begun(&answer)).map_err(refused)
    }

    async fn work(
        &self,
        credential: &str,
        worker: &str,
        work: &WorkRef,
    ) -> Result<Option<FetchedWork>, CallbackError> {
        let body = Started { worker_id: worker.to_owned(), work: Some(work.into()) };
        let urls = urls(credential)?;
        let answer: Result<Begun, _> = self.report(&urls, CallbackVerb::Started, &body).await;
        let Some(HandedOutWork { text, credentials }) = answer.map_err(refused)?.work else {
            return Ok(None);
        };
        let credentials = credentials.iter().map(|relative| resolved(&urls.started, relative)).collect();
        Ok(Some(FetchedWork { text, credentials }))
    }

    async fn heartbeat(
        &self,
        credential: &str,
        progress: Option<Progress>,
    ) -> Result<HeartbeatReply, CallbackError> {
        let (urls, body) = (urls(credential)?, Heartbeat { progress: progress.map(Into::into) });
        let answered = self.report(&urls, CallbackVerb::Heartbeat, &body).await;
        let CallbackHeartbeatAnswer { should_cancel, callbacks } = answered.map_err(refused)?;
        let renewed = callbacks.map(|queries| with_queries(&urls, &queries));
        if let Some(renewed) = &renewed {
            self.lock().insert(urls.started.address().to_owned(), renewed.clone());
        }
        Ok(HeartbeatReply { should_cancel, task_token: renewed.map(|urls| urls.to_credential()) })
    }

    async fn finished(&self, credential: &str, report: Report) -> Result<FinishedReply, CallbackError> {
        let urls = urls(credential)?;
        let reported: Result<Reported, _> = self.report(&urls, CallbackVerb::Finished, &report).await;
        let reported = reported.map_err(refused)?;
        self.lock().remove(urls.started.address());
        Ok(ended(&reported))
    }
}

#[async_trait]
impl LogSink for CallbackClient {
    async fn write(&self, target: &LogTarget, lines: Vec<LogLine>) -> io::Result<()> {
        self.logs.write(target, lines, |body| self.send_lines(target, body)).await
    }

    async fn end(&self, target: &LogTarget) {
        self.logs.end(target, |body| self.send_lines(target, body)).await;
    }
}

impl CallbackClient {
    async fn send_lines(&self, target: &LogTarget, body: LogBody) -> io::Result<LogAnswer> {
        let urls = self.newest(urls(&target.task_token).map_err(io::Error::other)?);
        self.report(&urls, CallbackVerb::Logs, &body).await.map_err(io::Error::other)
    }
}
