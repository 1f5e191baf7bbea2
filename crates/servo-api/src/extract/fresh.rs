//! How far behind an answer may be that comes from the tables (ADR-280).

use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use servo_core::Millis;
use url::form_urlencoded;

use super::query::{DEFAULT_WAIT, timeout};
use crate::app::{App, Shared};
use crate::problem::{Code, Problem};
use crate::views::Tables;

/// The loosest bound that can be asked for.
const MAX_BEHIND: Millis = Millis::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// How far the tables may be behind what is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bound {
    /// Not at all: everything that was accepted before the request is in the answer.
    Whole,
    /// By at most so much.
    Behind(Millis),
    /// By whatever it is: nothing is waited for.
    AsTheyAre,
}

impl Bound {
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        match text {
            "true" => Ok(Self::Whole),
            "false" => Ok(Self::AsTheyAre),
            text => match text.parse().map(Millis::new) {
                Ok(behind) if behind <= MAX_BEHIND => Ok(Self::Behind(behind)),
                Ok(_) | Err(_) => {
                    let most = MAX_BEHIND.get();
                    let detail = format!("{text:?} is neither true, false nor 0 to {most} milliseconds");
                    Err(Problem::invalid("fresh", detail))
                }
            },
        }
    }
}

/// `?fresh=` of a read of the tables, and how long it may wait for them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fresh {
    bound: Option<Bound>,
    timeout: Duration,
}

impl FromRequestParts<Shared> for Fresh {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Problem> {
        let mut fresh = Self { bound: None, timeout: DEFAULT_WAIT };
        for (name, value) in form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()) {
            match &*name {
                "fresh" => fresh.bound = Some(Bound::parse(&value)?),
                "timeout_ms" => fresh.timeout = timeout(&value)?,
                _ => {}
            }
        }
        Ok(fresh)
    }
}

impl Fresh {
    /// Waits until the tables are as fresh as was asked for. If nothing was, they are given `patience`, and what is not
    /// there by then is in a later answer.
    pub(crate) async fn tables(self, app: &App, patience: Option<Duration>) -> Result<(), Problem> {
        let behind = match self.bound {
            None => {
                if let Some(patience) = patience {
                    let _late = tokio::time::timeout(patience, app.tables_written()).await;
                }
                return Ok(());
            }
            Some(Bound::AsTheyAre) => return Ok(()),
            Some(Bound::Whole) => Millis::new(0),
            Some(Bound::Behind(behind)) => behind,
        };
        let late = |_| {
            let detail = format!(
                "the tables are further behind than asked for, after {} ms; ask again, or for less with fresh=",
                self.timeout.as_millis()
            );
            Problem::new(Code::NotYet, detail)
        };
        tokio::select! {
            fresh = tokio::time::timeout(self.timeout, app.tables_within(behind)) => fresh.map_err(late)?,
            () = app.closed() => Err(servo_runtime::Error::Stopped.into()),
        }
    }
}

impl App {
    /// Waits until the tables hold everything that is durable now.
    pub(crate) async fn tables_written(&self) -> Result<Tables, Problem> {
        let durable = self.workspace().read(|state| state.head().seq).await?;
        if Tables::of(self.workspace().manifest().as_deref()).last_seq < durable {
            self.workspace().write_tables().await?;
        }
        loop {
            let tables = Tables::of(self.workspace().manifest().as_deref());
            if tables.last_seq >= durable {
                return Ok(tables);
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Waits until the tables hold everything that is older than a bound and was durable when this was asked.
    async fn tables_within(&self, behind: Millis) -> Result<(), Problem> {
        let durable = self.workspace().read(|state| state.head().seq).await?;
        let bound = self.workspace().now().saturating_sub(behind);
        let mut is_asked_for = false;
        loop {
            let manifest = self.workspace().manifest();
            let has_all = Tables::of(manifest.as_deref()).last_seq >= durable;
            // Events are in order of time: what is before the newest one in the tables is there.
            let newest = manifest.map(|manifest| manifest.watermarks.last_event_at);
            if has_all || behind > Millis::new(0) && newest.is_some_and(|newest| newest >= bound) {
                return Ok(());
            }
            if !std::mem::replace(&mut is_asked_for, true) {
                self.workspace().write_tables().await?;
            }
            tokio::time::sleep(POLL).await;
        }
    }
}
