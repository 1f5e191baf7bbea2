//! The current deployment, and deploying another manifest.

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use bytes::Bytes;
use servo_core::{TimeZones, sha256_hex, to_canonical_string};
use servo_engine::definitions::Definitions;
use servo_engine::{Change, Deploy};

use crate::answer::{Answer, IdempotencyKey, Problems, Wait};
use crate::app::Shared;
use crate::etag::{Conditional, IfNoneMatch, Tagged};
use crate::extract::{Manifest, NoQuery, Query, parse};
use crate::problem::{Code, Problem};
use crate::views::{Accepted, Deployed, Deployment, Repartitioned};

/// The newest deployment.
#[utoipa::path(
    get, path = "/deployments/current", operation_id = "current_deployment", tag = "deployments",
    params(Wait, Conditional), responses((status = 200, body = Deployment), Problems)
)]
pub(super) async fn current(
    State(app): State<Shared>,
    if_none_match: IfNoneMatch,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Tagged<Deployment>, Problem> {
    let current = app.workspace().read(|state| state.deployment().map(Deployment::from)).await?;
    let nothing = || Problem::new(Code::NothingDeployed, "nothing was ever deployed in this workspace");
    current.map(|deployment| if_none_match.answer(deployment)).ok_or_else(nothing)
}

/// Deploys a project: a manifest as the SDK writes it. If it has problems, all of them are returned and nothing
/// changes.
#[utoipa::path(
    post, path = "/deployments", operation_id = "deploy", tag = "deployments",
    params(IdempotencyKey), request_body(content = Object, description = "The manifest"),
    responses((status = 202, body = Deployed), Problems)
)]
pub(super) async fn deploy(
    State(app): State<Shared>,
    Manifest { text, caller }: Manifest,
) -> Result<Response<Body>, Problem> {
    // The key of another request is refused, whatever the manifest says.
    app.answer_to(&caller).await?;
    let read = tokio::task::spawn_blocking(move || read(&text)).await;
    let (digest, definitions) = read.map_err(|error| Problem::internal(&error))??;
    let changed = repartitioned(&app, &definitions).await?;
    let deployed = |change: Change| Deployed {
        digest: digest.clone(),
        assets: definitions.assets().len() as u64,
        repartitioned: changed.clone(),
        accepted: change.into(),
    };
    let request = Deploy {
        digest: digest.as_str().into(),
        time_zones: TimeZones::in_use().version().into(),
        project: definitions.project().to_owned(),
        assets: definitions.assets().iter().map(|asset| asset.def.clone()).collect(),
        schedules: definitions.schedules().to_vec(),
        sensors: definitions.sensors().to_vec(),
        notifications: definitions.notifications().to_vec(),
        caller: caller.clone(),
    };
    let work = async { Ok(deployed(app.workspace().deploy(request).await?)) };
    app.once(caller, work, async |known| Ok(deployed(known.change()))).await
}

/// Says what deploying a manifest would do. If it has problems, all of them are returned; nothing changes.
#[utoipa::path(
    post, path = "/deployments/preview", operation_id = "preview_deployment", tag = "deployments",
    request_body(content = Object, description = "The manifest"),
    responses((status = 200, body = Deployed), Problems)
)]
pub(super) async fn preview(
    State(app): State<Shared>,
    Manifest { text, caller: _ }: Manifest,
) -> Result<Answer<Deployed>, Problem> {
    let read = tokio::task::spawn_blocking(move || read(&text)).await;
    let (digest, definitions) = read.map_err(|error| Problem::internal(&error))??;
    Ok(Answer(Deployed {
        digest,
        assets: definitions.assets().len() as u64,
        repartitioned: repartitioned(&app, &definitions).await?,
        accepted: Accepted::default(),
    }))
}

/// Assets whose partitions would be others.
async fn repartitioned(app: &Shared, definitions: &Definitions) -> Result<Vec<Repartitioned>, Problem> {
    let now = app.workspace().now();
    let found = app.workspace().read(|state| servo_engine::requests::repartitioned(state, definitions, now));
    Ok(found.await?.into_iter().map(Repartitioned::from).collect())
}

/// The digest is that of the canonical text, however the manifest was written.
fn read(text: &Bytes) -> Result<(String, Definitions), Problem> {
    let value: serde_json::Value = parse(text)?;
    let canonical = to_canonical_string(&value).map_err(|error| Problem::invalid(".", error.to_string()))?;
    drop(value);
    let digest = format!("sha256:{}", sha256_hex(canonical.as_bytes()));
    let definitions = Definitions::check(parse(canonical.as_bytes())?)?;
    Ok((digest, definitions))
}
