//! Callback URLs: how they are made, and how a request at one of them is believed.
//!
//! The address says which attempt of which task it is about, and its query has the signature. Whoever asks there is
//! treated as whoever shows the task token of that attempt.

use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use servo_core::{AttemptId, RunId, TaskKey, Timestamp};
use servo_queue::{AuthError, CallbackScope, CallbackUrls, CallbackVerb, Keyring, TaskClaims};

use crate::access::TaskToken;
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::reads::keys_of;
use crate::views::{RenewedCallbacks, Task};

/// The URLs of an attempt at a server, until a time.
pub fn callback_urls(
    keys: &Keyring,
    server: &str,
    claims: &TaskClaims,
    expires_at: Timestamp,
) -> CallbackUrls {
    let TaskClaims { tenant, workspace, run_id, .. } = claims;
    let of_workspace = format!("{}/api/v1/t/{tenant}/w/{workspace}", server.trim_end_matches('/'));
    urls_below(&format!("{of_workspace}/runs/{run_id}/tasks"), keys, claims, expires_at)
}

/// The URLs of an attempt below the address of the tasks of its run.
fn urls_below(tasks: &str, keys: &Keyring, claims: &TaskClaims, expires_at: Timestamp) -> CallbackUrls {
    let scope = CallbackScope {
        tenant: claims.tenant.to_string(),
        workspace: claims.workspace.to_string(),
        run_id: claims.run_id.to_string(),
        task_id: Task::id_of(&claims.task_key),
        attempt: claims.attempt.to_string(),
        attempt_id: claims.attempt_id.to_string(),
    };
    CallbackUrls::of(|verb| {
        let query = keys.callback_query(&scope, verb, expires_at);
        format!("{tasks}/{}/attempts/{}/callbacks/{}?{query}", scope.task_id, scope.attempt, verb.name())
    })
}

/// Whether a path is that of a callback of an attempt.
pub(crate) fn is_callback(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/api/v1/runs/") else { return false };
    let mut segments = rest.split('/').skip(1).step_by(2);
    segments.by_ref().take(3).eq(["tasks", "attempts", "callbacks"])
}

/// The URL of a request that was found to be good.
#[derive(Debug, Clone)]
pub(crate) struct GoodUrl(Arc<(CallbackScope, Timestamp)>);

impl GoodUrl {
    /// The URLs of another attempt of the same run, relative to this one: only whoever was given this one knows how the
    /// server is reached. They expire when it does.
    pub(crate) fn beside(&self, keys: &Keyring, claims: &TaskClaims) -> CallbackUrls {
        // From `{task}/attempts/{attempt}/callbacks/started` to the tasks.
        urls_below("../../../..", keys, claims, self.0.1)
    }

    /// Queries for the same addresses that are good for longer, where this one has little time left.
    pub(crate) fn renewed(&self, keys: &Keyring, now: Timestamp) -> Option<RenewedCallbacks> {
        let (scope, expires_at) = &*self.0;
        if expires_at.since(now).get() >= Keyring::CALLBACK_URLS_LIVE.get() / 2 {
            return None;
        }
        let later = now.saturating_add(Keyring::CALLBACK_URLS_LIVE);
        let query = |verb| format!("?{}", keys.callback_query(scope, verb, later));
        Some(RenewedCallbacks {
            started: query(CallbackVerb::Started),
            heartbeat: query(CallbackVerb::Heartbeat),
            finished: query(CallbackVerb::Finished),
            logs: query(CallbackVerb::Logs),
        })
    }
}

impl App {
    /// Verifies the URL of a request, and gives what is as good as the task token of its attempt. It never leaves this
    /// process.
    pub(crate) async fn verify_callback(
        &self,
        parts: &mut Parts,
        verb: CallbackVerb,
    ) -> Result<(GoodUrl, TaskToken), Problem> {
        let query = Query::read(parts.uri.query().unwrap_or_default())?;
        let params = RawPathParams::from_request_parts(parts, &()).await;
        let params = params.map_err(|error| Problem::invalid("path", error.to_string()))?;
        let param = |name: &str| {
            let found = params.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        let layout = self.workspace().layout();
        let scope = CallbackScope {
            tenant: layout.tenant().to_string(),
            workspace: layout.workspace().to_string(),
            run_id: param("run_id"),
            task_id: param("task_id"),
            attempt: param("attempt"),
            attempt_id: query.attempt_id,
        };
        let keys = &self.api.keys;
        let now = self.workspace().now();
        let expires_at = keys.verify_callback(&scope, verb, &query.expires, &query.sig, now)?;
        let (Ok(run_id), Ok(attempt), Ok(attempt_id)) =
            (scope.run_id.parse(), scope.attempt.parse(), scope.attempt_id.parse())
        else {
            return Err(malformed("it is about no attempt").into());
        };
        let claims = TaskClaims {
            tenant: layout.tenant().clone(),
            workspace: layout.workspace().clone(),
            run_id,
            task_key: self.task_key_of(run_id, &scope.task_id, attempt, attempt_id).await?,
            attempt,
            attempt_id,
            expires_at,
        };
        let token = self.workspace().task_token(claims.clone());
        Ok((GoodUrl(Arc::new((scope, expires_at))), TaskToken(Arc::new((token, claims)))))
    }

    /// The key of a task by its name in addresses.
    async fn task_key_of(
        &self,
        run_id: RunId,
        task_id: &str,
        attempt: u32,
        attempt_id: AttemptId,
    ) -> Result<TaskKey, Problem> {
        // Names are hashes of keys. Nearly always it is the newest attempt of its task, so that one hash is enough.
        let found = self.workspace().read(move |state| {
            let run = state.run(run_id)?;
            let newest = run.tasks.iter().find(|task| task.is_attempt(attempt, attempt_id));
            Some(newest.map_or_else(|| keys_of(run), |task| vec![task.key.clone()]))
        });
        let over = || Problem::new(Code::AttemptEnded, "the run ended long ago; stop working on it");
        let keys = found.await?.ok_or_else(over)?;
        keys.into_iter().find(|key| Task::id_of(key) == task_id).ok_or_else(over)
    }
}

/// The query of a callback URL.
struct Query {
    attempt_id: String,
    expires: String,
    sig: String,
}

impl Query {
    /// Each part once, and nothing else.
    fn read(text: &str) -> Result<Self, AuthError> {
        let problem = || malformed("its query is attempt_id, expires and sig, each once");
        let pairs: Vec<(String, String)> = serde_urlencoded::from_str(text).map_err(|_| problem())?;
        let mut parts = [None, None, None];
        for (name, value) in pairs {
            let at = ["attempt_id", "expires", "sig"].iter().position(|known| *known == name);
            if parts[at.ok_or_else(problem)?].replace(value).is_some() {
                return Err(problem());
            }
        }
        let [Some(attempt_id), Some(expires), Some(sig)] = parts else { return Err(problem()) };
        Ok(Self { attempt_id, expires, sig })
    }
}

fn malformed(problem: &str) -> AuthError {
    AuthError::Malformed { what: "callback URL", problem: problem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_that_of_a_callback_or_not() {
        assert!(is_callback("/api/v1/runs/r/tasks/t/attempts/1/callbacks/started"));
        for path in [
            "/api/v1/runs/r/tasks/t/attempts/1/logs",
            "/api/v1/runs/tasks/attempts/callbacks",
            "/api/v1/runs/r/callbacks/started",
            "/api/v1/t/a/w/m/runs/r/tasks/t/attempts/1/callbacks/started",
            "/api/v1/runs",
        ] {
            assert!(!is_callback(path), "{path}");
        }
    }

    #[test]
    fn a_query_has_each_part_once_and_nothing_else() {
        assert!(Query::read("attempt_id=a&expires=1&sig=k.s").is_ok());
        for bad in [
            "",
            "expires=1&sig=k.s",
            "attempt_id=a&expires=1&sig=k.s&sig=x",
            "attempt_id=a&expires=1&sig=k.s&x=1",
        ] {
            assert!(Query::read(bad).is_err(), "{bad}");
        }
    }
}
