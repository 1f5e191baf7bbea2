//! Grants that are limited to some assets: which routes they are good for, and what is checked there.
//!
//! Whatever is about one asset is answered as if there were no others. A run is there if all of its tasks are about those
//! assets. What would be made or planned has to be about them alone. Everything else is about the whole workspace, and
//! refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::Method;
use axum::http::request::Parts;
use servo_core::selection::Selection;
use servo_core::{AssetKey, RunId};
use servo_engine::RunRequest;
use servo_engine::requests::BackfillRequest;

use crate::app::{App, Shared};
use crate::problem::{Code, Problem};
use crate::reads::unknown_run;

/// Checks of a request whose permission is limited to some assets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AssetRule {
    /// The address names an asset.
    Named,
    /// The address names a run.
    Run,
    /// The route itself compares what it would plan, or gives only what is about those assets.
    Route,
}

/// Routes that are good for a permission that is limited to some assets. All others are refused.
const RULES: &[(Method, &str, AssetRule)] = &[
    (Method::GET, "/api/v1/assets", AssetRule::Route),
    (Method::GET, "/api/v1/checks", AssetRule::Route),
    (Method::GET, "/api/v1/costs", AssetRule::Route),
    (Method::GET, "/api/v1/assets/{namespace}/{name}", AssetRule::Named),
    (Method::GET, "/api/v1/assets/{namespace}/{name}/partitions", AssetRule::Named),
    (Method::GET, "/api/v1/assets/{namespace}/{name}/partitions/summary", AssetRule::Named),
    (Method::GET, "/api/v1/assets/{namespace}/{name}/materializations", AssetRule::Named),
    (Method::GET, "/api/v1/assets/{namespace}/{name}/materialization", AssetRule::Named),
    (
        Method::GET,
        "/api/v1/assets/{namespace}/{name}/materializations/{materialization_id}/files/{file}",
        AssetRule::Named,
    ),
    (Method::POST, "/api/v1/quarantine/{namespace}/{name}/{materialization_id}/approve", AssetRule::Named),
    (Method::POST, "/api/v1/quarantine/{namespace}/{name}/{materialization_id}/reject", AssetRule::Named),
    (Method::POST, "/api/v1/plan", AssetRule::Route),
    (Method::POST, "/api/v1/runs", AssetRule::Route),
    (Method::GET, "/api/v1/runs/{run_id}", AssetRule::Run),
    (Method::GET, "/api/v1/runs/{run_id}/events", AssetRule::Run),
    (Method::GET, "/api/v1/runs/{run_id}/tasks", AssetRule::Run),
    (Method::GET, "/api/v1/runs/{run_id}/tasks/{task_id}", AssetRule::Run),
    (Method::GET, "/api/v1/runs/{run_id}/tasks/{task_id}/attempts/{attempt}/logs", AssetRule::Run),
    (Method::GET, "/api/v1/runs/{run_id}/tasks/{task_id}/attempts/{attempt}/logs/stream", AssetRule::Run),
    (Method::GET, "/api/v1/runs/{run_id}/why", AssetRule::Run),
    (Method::GET, "/api/v1/runs/{run_id}/plan", AssetRule::Run),
    (Method::POST, "/api/v1/runs/{run_id}/cancel", AssetRule::Run),
    (Method::POST, "/api/v1/runs/{run_id}/retry", AssetRule::Run),
    (Method::POST, "/api/v1/runs/{run_id}/retry-now", AssetRule::Run),
    (Method::POST, "/api/v1/orchestration/backfills", AssetRule::Route),
    (Method::POST, "/api/v1/orchestration/backfills/preview", AssetRule::Route),
    (Method::GET, "/api/v1/code", AssetRule::Route),
    (Method::POST, "/api/v1/logins", AssetRule::Route),
    (Method::GET, "/api/v1/me", AssetRule::Route),
];

/// The assets that a request may be about.
#[derive(Debug, Clone, Default)]
pub(crate) enum AssetLimit {
    /// All of them.
    #[default]
    None,
    /// These.
    Only(Arc<OnlyAssets>),
}

/// Some assets of what is deployed.
#[derive(Debug)]
pub(crate) struct OnlyAssets {
    selections: Vec<Arc<str>>,
    keys: BTreeSet<AssetKey>,
}

impl AssetLimit {
    /// Whether an asset is among them.
    pub(crate) fn has(&self, key: &AssetKey) -> bool {
        match self {
            Self::None => true,
            Self::Only(only) => only.keys.contains(key),
        }
    }

    /// The assets that a list may be about: those that it is good for, or of them the one that was asked for.
    pub(crate) fn narrowed(&self, asked: Option<&AssetKey>) -> Option<BTreeSet<AssetKey>> {
        match (self, asked) {
            (Self::None, None) => None,
            (Self::None, Some(asked)) => Some(BTreeSet::from([asked.clone()])),
            (Self::Only(only), None) => Some(only.keys.clone()),
            (Self::Only(only), Some(asked)) => {
                Some(only.keys.iter().filter(|key| *key == asked).cloned().collect())
            }
        }
    }

    /// That there is no limit, for what is about more than some assets.
    pub(crate) fn check_everything(&self) -> Result<(), Problem> {
        match self {
            Self::None => Ok(()),
            Self::Only(only) => Err(only.whole_workspace()),
        }
    }

    /// That a run would be about these assets alone.
    pub(crate) async fn check_run(&self, app: &App, request: &RunRequest) -> Result<(), Problem> {
        let Self::Only(only) = self else { return Ok(()) };
        only.selects(app, request.selection.clone()).await?;
        let plan = crate::views::Plan::from(app.workspace().plan(request.clone()).await?);
        only.all(plan.tasks.iter().flat_map(|task| &task.asset_keys))
    }

    /// That a backfill would be about these assets alone.
    pub(crate) async fn check_backfill(&self, app: &App, request: &BackfillRequest) -> Result<(), Problem> {
        let Self::Only(only) = self else { return Ok(()) };
        only.selects(app, request.selection.clone()).await?;
        let preview = app.workspace().preview_backfill(request.clone()).await?;
        only.all(preview.targets.iter().map(|target| &target.asset))
    }
}

impl OnlyAssets {
    /// That a selection means nothing but these assets. Before anything is planned: what is wrong with a plan, and which
    /// names are near a wrong one, is about assets that the caller may not know of.
    async fn selects(&self, app: &App, text: String) -> Result<(), Problem> {
        let Ok(selection) = Selection::parse(&text) else {
            // What is wrong with the text itself is no secret; planning says it.
            return Ok(());
        };
        let selected = app.workspace().read(move |state| {
            let definitions = state.checked_definitions()?;
            let graph = definitions.graph();
            let set = selection.evaluate(graph).ok()?;
            Some(graph.keys(&set).cloned().collect::<Vec<AssetKey>>())
        });
        match selected.await? {
            Some(keys) => self.all(keys.iter()),
            None => Err(self.beyond()),
        }
    }

    fn all<'k>(&self, mut keys: impl Iterator<Item = &'k AssetKey>) -> Result<(), Problem> {
        if keys.all(|key| self.keys.contains(key)) { Ok(()) } else { Err(self.beyond()) }
    }

    fn beyond(&self) -> Problem {
        let detail =
            format!("this key is good for {} alone, and the request is about something else", self.named());
        Problem::new(Code::Forbidden, detail)
    }

    fn whole_workspace(&self) -> Problem {
        let detail =
            format!("this key is good for {} alone; this is about the whole workspace", self.named());
        Problem::new(Code::Forbidden, detail)
    }

    fn named(&self) -> String {
        self.selections.join(" or ")
    }
}

/// The limit of a request to a route, after checking what its address says.
pub(crate) async fn limited(
    app: &Shared,
    method: &Method,
    path: &str,
    parts: &mut Parts,
    selections: Vec<Arc<str>>,
) -> Result<AssetLimit, Problem> {
    let rule = RULES.iter().find(|(of, at, _)| of == method && *at == path).map(|(_, _, rule)| *rule);
    let only = app.only_assets(selections).await?;
    let params = RawPathParams::from_request_parts(parts, app)
        .await
        .map_err(|error| Problem::invalid("path", error.to_string()))?;
    let param = |name: &str| {
        let found = params.iter().find(|(of, _)| *of == name).map(|(_, value)| value);
        found.ok_or_else(|| Problem::internal(&format!("{path} has no {name}")))
    };
    match rule {
        Some(AssetRule::Named) => {
            let text = format!("{}.{}", param("namespace")?, param("name")?);
            let is_one = AssetKey::parse(&text).is_ok_and(|key| only.keys.contains(&key));
            if !is_one {
                let detail = format!("there is no asset {text} that this key is good for");
                return Err(Problem::new(Code::UnknownAsset, detail));
            }
        }
        Some(AssetRule::Run) => {
            let text = param("run_id")?;
            let run: RunId = text.parse().map_err(|error| Problem::invalid("run_id", format!("{error}")))?;
            let detail = app.workspace().run(run).await?.ok_or_else(|| unknown_run(run))?;
            let is_one = |key: &str| AssetKey::parse(key).is_ok_and(|key| only.keys.contains(&key));
            if !detail.tasks.iter().all(|task| is_one(&task.asset_key)) {
                return Err(unknown_run(run));
            }
        }
        Some(AssetRule::Route) => {}
        None => {
            return Err(only.whole_workspace());
        }
    }
    Ok(AssetLimit::Only(Arc::new(only)))
}

impl App {
    /// The deployed assets of some selections. One that matches nothing any more selects nothing.
    async fn only_assets(&self, selections: Vec<Arc<str>>) -> Result<OnlyAssets, Problem> {
        let texts = selections.clone();
        let keys = self.workspace().read(move |state| {
            let Some(definitions) = state.checked_definitions() else { return BTreeSet::new() };
            let graph = definitions.graph();
            let selected = texts.iter().filter_map(|text| Selection::parse(text).ok()?.evaluate(graph).ok());
            selected.flat_map(|set| graph.keys(&set).cloned().collect::<Vec<_>>()).collect()
        });
        Ok(OnlyAssets { selections, keys: keys.await? })
    }
}

impl FromRequestParts<Shared> for AssetLimit {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Shared) -> Result<Self, Problem> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Access, ROUTES};

    #[test]
    fn every_rule_is_about_a_route_that_asks_for_a_permission() {
        for (method, path, rule) in RULES {
            let found = ROUTES.iter().find(|(of, at, _)| of == method && at == path);
            assert!(matches!(found, Some((_, _, Access::Needs(_)))), "{method} {path}");
            assert_eq!(*rule == AssetRule::Named, path.contains("{namespace}"), "{method} {path}");
            assert_eq!(*rule == AssetRule::Run, path.contains("{run_id}"), "{method} {path}");
        }
    }
}
