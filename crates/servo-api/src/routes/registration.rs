//! Routes by which workers become known: they register, prove what they share with the workspace, are heard of, and
//! leave (ADR-110).

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use servo_core::sha256_hex;
use servo_engine::definitions::AssetDef;
use servo_engine::{Refusal, RegisterWorker, WorkerLeaves, WorkerState};
use servo_runtime::{Error, LOCAL_WORKERS};

use super::workers::{checked_queues, name};
use crate::answer::{Answer, Problems, Wait};
use crate::app::Shared;
use crate::extract::{Json, NoQuery, Query};
use crate::problem::{Code, Problem};
use crate::views::{
    Accepted, LeaveBody, RegisterBody, Registration, Worker, WorkerSign, WorkerStanding, Workers,
};

const MAX_SLOTS: u32 = 256;
/// Assets that a refusal names; others are counted.
const NAMED: usize = 5;

/// Workers that are there, and the newest of those that are gone.
#[utoipa::path(
    get, path = "/workers", operation_id = "list_workers", tag = "workers",
    params(Wait), responses((status = 200, body = Workers), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<Workers>, Problem> {
    let mut items = app.workspace().read(Worker::all).await?;
    let workspace = app.workspace();
    for worker in items.iter_mut().filter(|worker| !worker.state.is_gone()) {
        // The log hears of a worker when something changes. The one of this process is here.
        let is_here = worker.worker_id.starts_with(LOCAL_WORKERS) && !workspace.is_read_only();
        let heard = if is_here { Some(workspace.now()) } else { workspace.last_heard_of(&worker.worker_id) };
        worker.heard_at = heard.map_or(worker.heard_at, |heard| heard.max(worker.heard_at));
    }
    Ok(Answer(Workers { items }))
}

/// Registers a worker. Without a proof it is given a challenge: a file in the storage of the workspace, which it has to
/// find in its own, copy beside it, and show.
#[utoipa::path(
    post, path = "/worker/register", operation_id = "register_worker", tag = "workers",
    request_body = RegisterBody, security(("worker_key" = [])),
    responses((status = 200, body = Registration), Problems)
)]
pub(super) async fn register(
    State(app): State<Shared>,
    Json(body): Json<RegisterBody>,
) -> Result<Answer<Registration>, Problem> {
    name("name", &body.name)?;
    if body.name.starts_with(LOCAL_WORKERS) {
        let detail =
            format!("must not begin with {LOCAL_WORKERS}: that is what workers of the server are called");
        return Err(Problem::invalid("name", detail));
    }
    if !(8..=64).contains(&body.nonce.len()) || !body.nonce.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(Problem::invalid("nonce", "is 8 to 64 letters and digits"));
    }
    for (field, text) in [("storage", &body.storage), ("host", &body.host), ("version", &body.version)] {
        if text.len() > 1_024 || text.chars().any(char::is_control) {
            return Err(Problem::invalid(field, "is at most 1,024 bytes without control characters"));
        }
    }
    let queues = checked_queues(&body.queues)?;
    if !(1..=MAX_SLOTS).contains(&body.slots) {
        return Err(Problem::invalid("slots", format!("is 1 to {MAX_SLOTS}")));
    }
    let workspace = app.workspace();
    let ours = workspace.read(|state| (state.tenant().to_string(), state.workspace().to_string())).await?;
    if ours != (body.tenant.clone(), body.workspace.clone()) {
        let detail = format!(
            "this server has workspace {}/{}, the worker is for {}/{}; start it with --tenant and --workspace of the \
             server",
            ours.0, ours.1, body.tenant, body.workspace
        );
        return Err(Problem::new(Code::OtherWorkspace, detail));
    }
    let worker_id = format!("{}-{}", body.name, body.nonce);
    if body.listens {
        must_call(&app, &queues).await?;
    }
    let registered = match &body.proof {
        None => !workspace.challenge_worker(&worker_id).await?,
        Some(proof) if workspace.is_proven(&worker_id, proof).await? => true,
        Some(_) => {
            let detail = format!(
                "worker {worker_id} does not share the storage of this workspace: what it stores in {} is not found \
                 here; give the worker the directory or the bucket of the server (--dir, storage in servo.toml)",
                body.storage
            );
            return Err(Problem::new(Code::OtherStorage, detail));
        }
    };
    if registered {
        let request = RegisterWorker {
            worker_id: worker_id.as_str().into(),
            name: body.name,
            queues,
            slots: body.slots,
            digest: body.digest.into(),
            storage: body.storage,
            host: body.host,
            version: body.version,
        };
        let registered = workspace.register_worker(request).await;
        if let (Err(Error::Refused(refusal @ Refusal::OtherCode { .. })), false) =
            (&registered, body.assets.is_empty())
        {
            let differing = workspace.read(|state| differing_assets(state, &body.assets)).await?;
            let problem = Problem::new(Code::OtherCode, format!("{refusal}: {differing}"));
            return Err(problem);
        }
        registered?;
    }
    Ok(Answer(Registration { worker_id, registered }))
}

/// A worker is there. The answer says what is deployed, and whether it has to register again.
#[utoipa::path(
    post, path = "/worker/heartbeat", operation_id = "worker_heartbeat", tag = "workers",
    request_body = WorkerSign, security(("worker_key" = [])),
    responses((status = 200, body = WorkerStanding), Problems)
)]
pub(super) async fn heartbeat(
    State(app): State<Shared>,
    Json(body): Json<WorkerSign>,
) -> Result<Answer<WorkerStanding>, Problem> {
    name("worker_id", &body.worker_id)?;
    let standing = app.workspace().read(|state| {
        let deployment = state.deployment();
        let row = state.worker(&body.worker_id).filter(|row| !row.state.is_gone());
        WorkerStanding {
            registered: row.is_some(),
            worker_digest: row.map(|row| row.digest.clone()),
            deployment: deployment.map(|deployment| deployment.number),
            digest: deployment.map(|deployment| deployment.digest.to_string()),
            timeout_ms: state.settings().worker_timeout.get(),
        }
    });
    let standing = standing.await?;
    if standing.registered {
        app.workspace().heard_of(&body.worker_id);
    }
    Ok(Answer(standing))
}

/// A worker takes no more tasks.
#[utoipa::path(
    post, path = "/worker/leave", operation_id = "worker_leaves", tag = "workers",
    request_body = LeaveBody, security(("worker_key" = [])),
    responses((status = 200, body = Accepted), Problems)
)]
pub(super) async fn leave(
    State(app): State<Shared>,
    Json(body): Json<LeaveBody>,
) -> Result<Answer<Accepted>, Problem> {
    name("worker_id", &body.worker_id)?;
    let leaves = WorkerLeaves { worker_id: body.worker_id.into(), draining: body.draining };
    Ok(Answer(app.workspace().worker_leaves(leaves).await?.into()))
}

/// Refuses queues that do not call their workers: a worker that waits to be called would wait for ever.
async fn must_call(app: &Shared, queues: &[Arc<str>]) -> Result<(), Problem> {
    let asked = queues.to_vec();
    let is_pulled = move |state: &servo_engine::State| {
        asked.into_iter().find(|queue| state.settings().push_limit(queue) == 0)
    };
    match app.workspace().read(is_pulled).await? {
        Some(queue) => {
            let detail = format!(
                "queue {queue} does not call its workers: name it in [queues] of serve.toml, or start the worker without \
                 --listen"
            );
            Err(Problem::invalid("queues", detail))
        }
        None => Ok(()),
    }
}

/// The assets that differ between a deployment and a worker, the first of them by name.
fn differing_assets(state: &servo_engine::State, theirs: &BTreeMap<String, String>) -> String {
    let ours =
        state.definitions().map(|(key, definition, _)| (key.canonical().to_owned(), fingerprint(definition)));
    let ours: BTreeMap<String, String> = ours.collect();
    let named = |key: &String| key.replacen('/', ".", 1);
    let changed = ours.iter().filter(|(key, hash)| theirs.get(*key).is_some_and(|found| found != *hash));
    let changed = changed.map(|(key, _)| format!("{} differs", named(key)));
    let missing = ours.keys().filter(|key| !theirs.contains_key(*key));
    let missing = missing.map(|key| format!("{} is missing there", named(key)));
    let added = theirs.keys().filter(|key| !ours.contains_key(*key));
    let added = added.map(|key| format!("{} is not deployed", named(key)));
    let mut found: Vec<String> = changed.chain(missing).chain(added).collect();
    let more = found.len().saturating_sub(NAMED);
    found.truncate(NAMED);
    match (found.is_empty(), more) {
        (true, _) => "its assets are the same; schedules or other declarations differ".to_owned(),
        (false, 0) => found.join(", "),
        (false, more) => format!("{} and {more} more", found.join(", ")),
    }
}

/// A hash of the definition of an asset, by which a worker and the workspace compare theirs.
pub fn fingerprint(definition: &AssetDef) -> String {
    sha256_hex(serde_json::to_vec(definition).unwrap_or_default())
}

/// Refuses unless a worker may be given tasks of these queues now: where workers ask, it is registered, takes tasks,
/// and has the code that is deployed.
pub(super) async fn may_take(app: &Shared, worker: &str, queues: &[Arc<str>]) -> Result<(), Problem> {
    let refusal = app.workspace().read(|state| {
        if queues.iter().all(|queue| state.settings().push_limit(queue) > 0) {
            return None;
        }
        let Some(row) = state.worker(worker).filter(|row| row.state == WorkerState::Active) else {
            return Some(Refusal::UnknownWorker { worker: worker.into() });
        };
        let deployment = state.deployment().filter(|deployment| *deployment.digest != *row.digest)?;
        Some(Refusal::OtherCode {
            worker: worker.into(),
            found: row.digest.as_str().into(),
            deployment: deployment.number,
            deployed: deployment.digest.clone(),
        })
    });
    match refusal.await? {
        Some(refusal) => Err(refusal.into()),
        None => {
            app.workspace().heard_of(worker);
            Ok(())
        }
    }
}
