//! Deployments of before: list, show, compare, and return to one (ADR-170).

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use servo_core::TimeZones;
use servo_engine::definitions::{AssetDef, Definitions, MANIFEST_VERSION, Manifest, ResourceDef};
use servo_engine::rows::{DefinitionKind, DefinitionVersionRow, Name};
use servo_engine::{Change, Deploy, WorkerState};
use servo_projections::DefinitionsAsOf;
use utoipa::IntoParams;

use super::assets::{key, unknown};
use crate::answer::{Answer, IdempotencyKey, Problems, Wait};
use crate::app::{App, Shared};
use crate::extract::{Command, NoQuery, Path, Query};
use crate::pages::{List, Page, PageQuery};
use crate::problem::{Code, Problem};
use crate::views::{
    AssetVersion, AssetVersionPage, DefinitionDiff, Deployment, DeploymentDetail, DeploymentDiff,
    DeploymentPage, DiffCounts, RollbackBody, RolledBack, differing_fields,
};

/// Query of a comparison.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct DiffQuery {
    /// The deployment to compare with; the current one by default.
    to: Option<u64>,
    /// Page size, at most 100; 25 by default.
    limit: Option<usize>,
    /// Cursor, as the page before returned it.
    cursor: Option<String>,
}

/// Lists deployments, the newest first.
#[utoipa::path(
    get, path = "/deployments", operation_id = "list_deployments", tag = "deployments",
    params(PageQuery, Wait), responses((status = 200, body = DeploymentPage), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(query): Query<PageQuery>,
) -> Result<Answer<DeploymentPage>, Problem> {
    let list = query.open(&app.api.keys, "deployments".to_owned())?;
    let before = list.place()?;
    app.tables_current().await?;
    let current = app.workspace().read(|state| state.deployment().map(Deployment::from)).await?;
    let rows = app.workspace().deployments_before(before, list.wanted(), |_| true).await?;
    let mut found: Vec<Deployment> = current.into_iter().filter(|_| before.is_none()).collect();
    let newest = found.first().map(|deployment| deployment.number);
    // What was current a moment ago is in the tables by now, or is what is current.
    found.extend(rows.into_iter().filter(|row| Some(row.number) != newest).map(Deployment::from));
    found.truncate(list.wanted());
    Ok(Answer(Page::of(found, &list, |deployment| deployment.event_id.to_string())))
}

/// A deployment by its number, with what it changed of the one before it.
#[utoipa::path(
    get, path = "/deployments/{number}", operation_id = "get_deployment", tag = "deployments",
    params(("number" = u64, Path), Wait), responses((status = 200, body = DeploymentDetail), Problems)
)]
pub(super) async fn show(
    State(app): State<Shared>,
    Path(number): Path<u64>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<DeploymentDetail>, Problem> {
    let (deployment, is_current) = app.deployment(number).await?;
    let after = app.definitions_of(&deployment).await?;
    let before = match number {
        1 => DefinitionsAsOf::new(),
        _ => app.workspace().definitions_as_of(number - 1).await?,
    };
    let count = |wanted: DefinitionKind| after.keys().filter(|(kind, _)| *kind == wanted).count() as u64;
    let (schedules, sensors) = (count(DefinitionKind::Schedule), count(DefinitionKind::Sensor));
    let changes = compared(&before, &after).1;
    Ok(Answer(DeploymentDetail { deployment, is_current, schedules, sensors, changes }))
}

/// Compares the definitions of two deployments, field by field. Number 0 stands for none.
#[utoipa::path(
    get, path = "/deployments/{number}/diff", operation_id = "diff_deployments", tag = "deployments",
    params(("number" = u64, Path), DiffQuery, Wait), responses((status = 200, body = DeploymentDiff), Problems)
)]
pub(super) async fn diff(
    State(app): State<Shared>,
    Path(from): Path<u64>,
    Query(query): Query<DiffQuery>,
) -> Result<Answer<DeploymentDiff>, Problem> {
    let to = match query.to {
        Some(to) => to,
        None => app.current_deployment().await?.number,
    };
    let list_name = format!("differences {from} {to}");
    let list = List::open(&app.api.keys, list_name, query.limit, query.cursor.as_deref())?;
    let after: Option<u64> = list.place()?;
    let (before, afterwards) = (app.definitions_at(from).await?, app.definitions_at(to).await?);
    let (mut differing, counts) = compared(&before, &afterwards);
    let first = usize::try_from(after.unwrap_or(0)).unwrap_or(usize::MAX).min(differing.len());
    let last = first.saturating_add(list.limit).min(differing.len());
    let next_cursor = (last < differing.len()).then(|| list.cursor(&last.to_string()));
    let items = differing.drain(first..last).map(DefinitionDiff::from).collect();
    Ok(Answer(DeploymentDiff { from, to, counts, items, next_cursor }))
}

/// Makes the definitions of an earlier deployment current, by a new deployment. The code of workers is not changed by
/// it: those that have other code get no tasks until they have that of the deployment.
#[utoipa::path(
    post, path = "/deployments/{number}/rollback", operation_id = "roll_back", tag = "deployments",
    params(("number" = u64, Path), IdempotencyKey), request_body = RollbackBody,
    responses((status = 202, body = RolledBack), Problems)
)]
pub(super) async fn rollback(
    State(app): State<Shared>,
    Path(number): Path<u64>,
    Command { body, caller }: Command<RollbackBody>,
) -> Result<Response<Body>, Problem> {
    // The same request again is answered as before, whatever is current by now.
    let is_known = app.answer_to(&caller).await?.is_some();
    let (deployment, _) = app.deployment(number).await?;
    let current = app.current_deployment().await?;
    let expected = body.expected_current.filter(|_| !is_known);
    if let Some(expected) = expected.filter(|expected| *expected != current.number) {
        let detail = format!(
            "deployment {} is current, not {expected}: somebody has deployed since; look at the difference again",
            current.number
        );
        return Err(Problem::new(Code::VersionConflict, detail));
    }
    let definitions = app.definitions_of(&deployment).await?;
    let project = deployment.project.clone();
    let checked = tokio::task::spawn_blocking(move || checked(project, definitions)).await;
    let definitions = checked.map_err(|error| Problem::internal(&error))??;
    let digest: Arc<str> = deployment.digest.as_str().into();
    let request = Deploy {
        digest: digest.clone(),
        time_zones: TimeZones::in_use().version().into(),
        project: definitions.project().to_owned(),
        assets: definitions.assets().iter().map(|asset| asset.def.clone()).collect(),
        schedules: definitions.schedules().to_vec(),
        sensors: definitions.sensors().to_vec(),
        notifications: definitions.notifications().to_vec(),
        caller: caller.clone(),
    };
    let outdated = app.workspace().read(move |state| {
        let others =
            |row: &&servo_engine::rows::WorkerRow| row.state == WorkerState::Active && *row.digest != *digest;
        state.workers().filter(others).count() as u64
    });
    let outdated_workers = outdated.await?;
    let rolled_back = |change: Change| RolledBack {
        rolled_back_to: number,
        digest: deployment.digest.clone(),
        assets: definitions.assets().len() as u64,
        outdated_workers,
        accepted: change.into(),
    };
    let work = async { Ok(rolled_back(app.workspace().deploy(request).await?)) };
    app.once(caller, work, async |known| Ok(rolled_back(known.change()))).await
}

/// Versions of an asset's definition, the newest first, each with what differs from the one before.
#[utoipa::path(
    get, path = "/assets/{namespace}/{name}/versions", operation_id = "list_asset_versions", tag = "assets",
    params(("namespace" = String, Path), ("name" = String, Path), PageQuery, Wait),
    responses((status = 200, body = AssetVersionPage), Problems)
)]
pub(super) async fn versions(
    State(app): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Query(query): Query<PageQuery>,
) -> Result<Answer<AssetVersionPage>, Problem> {
    let asset = key(&namespace, &name)?;
    let list_name = format!("versions of {}", asset.canonical());
    let list = query.open(&app.api.keys, list_name)?;
    app.tables_current().await?;
    let (kind, before) = (DefinitionKind::Asset, list.place()?);
    // One more, to compare the last with.
    let wanted = list.wanted() + 1;
    let rows = app.workspace().definition_versions(kind, asset.canonical(), before, wanted).await?;
    if rows.is_empty() && before.is_none() {
        let wanted = asset.clone();
        let known = app.workspace().read(move |state| match state.definition(&wanted) {
            Some(_) => Ok(()),
            None => Err(unknown(&wanted, state.checked_definitions().as_deref())),
        });
        known.await??;
    }
    let shown = rows.len().min(list.wanted());
    let found = (0..shown).map(|at| (rows[at].row_version, AssetVersion::of(&rows[at], rows.get(at + 1))));
    let page = Page::of(found.collect(), &list, |(version, _)| version.to_string());
    Ok(Answer(page.map(|(_, version)| version)))
}

/// A definition that differs.
struct Differing {
    kind: DefinitionKind,
    name: String,
    change: &'static str,
    fields: crate::views::Fields,
}

impl From<Differing> for DefinitionDiff {
    fn from(differing: Differing) -> Self {
        Self {
            kind: Name(differing.kind).to_text(),
            name: differing.name,
            change: differing.change.to_owned(),
            more_fields: differing.fields.more,
            fields: differing.fields.listed,
        }
    }
}

/// The differences between two deployments, by kind and name, and how many there are.
fn compared(before: &DefinitionsAsOf, after: &DefinitionsAsOf) -> (Vec<Differing>, DiffCounts) {
    let mut counts = DiffCounts::default();
    let mut found = Vec::new();
    let places: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for place in places {
        let (old, new) = (before.get(place), after.get(place));
        let of = |row: Option<&DefinitionVersionRow>| row.and_then(|row| row.definition.clone());
        let (change, fields) = match (of(old), of(new)) {
            (Some(old), Some(new)) if old == new => continue,
            (Some(old), Some(new)) => {
                let fields = differing_fields(&old, &new);
                let is_changed = fields.is_more_than_moved;
                *(if is_changed { &mut counts.changed } else { &mut counts.moved }) += 1;
                (if is_changed { "CHANGED" } else { "MOVED" }, fields)
            }
            (None, _) => {
                counts.added += 1;
                ("ADDED", crate::views::Fields::default())
            }
            (Some(_), None) => {
                counts.removed += 1;
                ("REMOVED", crate::views::Fields::default())
            }
        };
        let (kind, name) = place.clone();
        found.push(Differing { kind, name, change, fields });
    }
    (found, counts)
}

/// The definitions of a deployment, held to the rules of this version. Only the names of resources are known.
fn checked(project: String, definitions: DefinitionsAsOf) -> Result<Definitions, Problem> {
    let mut manifest = Manifest {
        manifest_version: MANIFEST_VERSION,
        project,
        assets: Vec::new(),
        schedules: Vec::new(),
        sensors: Vec::new(),
        notifications: Vec::new(),
        resources: Vec::new(),
    };
    for ((kind, name), row) in definitions {
        let Some(definition) = row.definition.map(|definition| definition.0) else { continue };
        match kind {
            DefinitionKind::Asset => manifest.assets.push(read(&name, definition)?),
            DefinitionKind::Schedule => manifest.schedules.push(read(&name, definition)?),
            DefinitionKind::Sensor => manifest.sensors.push(read(&name, definition)?),
            DefinitionKind::Notification => manifest.notifications.push(read(&name, definition)?),
        }
    }
    let named = |asset: &AssetDef| asset.resources.iter().chain(&asset.io).cloned().collect::<Vec<_>>();
    let names: BTreeSet<String> = manifest.assets.iter().flat_map(named).collect();
    let resource = |name| ResourceDef { name, kind: String::new() };
    manifest.resources = names.into_iter().map(resource).collect();
    Ok(Definitions::check(manifest)?)
}

fn read<T: DeserializeOwned>(name: &str, definition: serde_json::Value) -> Result<T, Problem> {
    serde_json::from_value(definition).map_err(|error| {
        let detail =
            format!("this version of Servo cannot read the definition of {name} as it was then: {error}");
        Problem::new(Code::InvalidDefinitions, detail)
    })
}

impl App {
    async fn current_deployment(&self) -> Result<Deployment, Problem> {
        let current = self.workspace().read(|state| state.deployment().map(Deployment::from)).await?;
        let nothing = || Problem::new(Code::NothingDeployed, "nothing was ever deployed in this workspace");
        current.ok_or_else(nothing)
    }

    /// A deployment, and whether it is the current one. The tables have everything about it.
    async fn deployment(&self, number: u64) -> Result<(Deployment, bool), Problem> {
        self.tables_current().await?;
        let current = self.current_deployment().await?;
        if current.number == number {
            return Ok((current, true));
        }
        let found = self.workspace().deployments_before(None, 1, |row| row.number == number).await?;
        let deployment = found.into_iter().next().map(Deployment::from);
        let unknown = || {
            let detail = format!("there is no deployment {number}; the newest is {}", current.number);
            Problem::new(Code::UnknownDeployment, detail)
        };
        Ok((deployment.ok_or_else(unknown)?, false))
    }

    async fn definitions_at(&self, number: u64) -> Result<DefinitionsAsOf, Problem> {
        if number == 0 {
            return Ok(DefinitionsAsOf::new());
        }
        let (deployment, _) = self.deployment(number).await?;
        self.definitions_of(&deployment).await
    }

    /// The definitions that a deployment had; a problem if the tables do not have all of them.
    async fn definitions_of(&self, deployment: &Deployment) -> Result<DefinitionsAsOf, Problem> {
        let found = self.workspace().definitions_as_of(deployment.number).await?;
        let assets = found.keys().filter(|(kind, _)| *kind == DefinitionKind::Asset).count();
        if assets == deployment.assets as usize {
            return Ok(found);
        }
        let detail = format!(
            "the tables have {assets} of {} definitions of deployment {}, which is older than they are; \
             `servo admin projections rebuild` writes them anew from the log",
            deployment.assets, deployment.number
        );
        Err(Problem::new(Code::DefinitionsNotKept, detail))
    }
}
