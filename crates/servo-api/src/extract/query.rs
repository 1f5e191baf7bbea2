//! Query parameters: filters of lists, and the event whose effects a reader wants to see.

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use servo_core::EventId;
use servo_store::within;
use tokio::sync::broadcast::error::RecvError;
use url::form_urlencoded;

use super::fresh::Bound;
use super::violation;
use crate::app::{App, Shared};
use crate::problem::{Code, Problem};

pub(super) const DEFAULT_WAIT: Duration = Duration::from_secs(5);
const MAX_WAIT: Duration = Duration::from_secs(30);

/// The query of a read. Every read can wait for an event, `?wait_for_event_id=&timeout_ms=`, and takes `fresh`.
pub(crate) struct Query<T>(pub(crate) T);

/// The query of a read that has no parameters of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoQuery {}

impl<T: DeserializeOwned + Send> FromRequestParts<Shared> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Problem> {
        let (value, wait) = read(parts.uri.query().unwrap_or_default())?;
        if let Some((event, timeout)) = wait {
            app.wait_for(event, timeout).await?;
        }
        Ok(Self(value))
    }
}

/// The parameters of a read, and the event to wait for.
fn read<T: DeserializeOwned>(query: &str) -> Result<(T, Option<(EventId, Duration)>), Problem> {
    let mut wait = None;
    let mut timeout = DEFAULT_WAIT;
    let mut own = form_urlencoded::Serializer::new(String::new());
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "wait_for_event_id" => {
                let id = value.parse::<EventId>();
                wait = Some(id.map_err(|error| Problem::invalid("wait_for_event_id", error.to_string()))?);
            }
            "timeout_ms" => {
                timeout = self::timeout(&value)?;
            }
            // Memory has everything that was accepted; whoever reads tables takes `Fresh`.
            "fresh" => {
                Bound::parse(&value)?;
            }
            _ => {
                own.append_pair(&name, &value);
            }
        }
    }
    let own = own.finish();
    let pairs = serde_urlencoded::Deserializer::new(form_urlencoded::parse(own.as_bytes()));
    let value = serde_path_to_error::deserialize(pairs)
        .map_err(|error| violation(error.path(), &error.inner().to_string()))?;
    Ok((value, wait.map(|event| (event, timeout))))
}

/// How long a read may wait.
pub(super) fn timeout(text: &str) -> Result<Duration, Problem> {
    let millis = text
        .parse()
        .map_err(|_| Problem::invalid("timeout_ms", format!("{text:?} is no number of milliseconds")))?;
    Ok(Duration::from_millis(millis).min(MAX_WAIT))
}

impl App {
    /// Waits until an event is folded.
    async fn wait_for(&self, event: EventId, timeout: Duration) -> Result<(), Problem> {
        let workspace = self.workspace();
        let head = || workspace.read(|state| state.head().last_event);
        if head().await? >= event {
            return Ok(());
        }
        let mut followed = workspace.subscribe();
        let comes = async {
            while head().await? < event {
                match followed.recv().await {
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return Err(servo_runtime::Error::Stopped.into()),
                }
            }
            Ok(())
        };
        let never = || {
            let detail = format!("event {event} has not come in {} ms; ask again", timeout.as_millis());
            Problem::new(Code::NotYet, detail)
        };
        tokio::select! {
            biased;
            outcome = within(self.timers(), timeout, comes) => outcome.ok_or_else(never)?,
            () = self.closed() => Err(servo_runtime::Error::Stopped.into()),
        }
    }
}
