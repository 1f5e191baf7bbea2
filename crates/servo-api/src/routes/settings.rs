//! Settings of the workspace: their values, where these come from, and changing them.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use servo_access::Quota;
use servo_engine::{Change, ChangeSettings, SettingOrigin, SettingValue, read_settings};

use crate::answer::{Answer, IdempotencyKey, Problems, Wait};
use crate::app::{App, Shared};
use crate::extract::{Command, NoQuery, Query};
use crate::problem::Problem;
use crate::views::{Setting, Settings, SettingsBody, SettingsChanged};

/// Every setting with its value, where that comes from and who changed it.
#[utoipa::path(
    get, path = "/settings", operation_id = "list_settings", tag = "settings",
    params(Wait), responses((status = 200, body = Settings), Problems)
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(NoQuery {}): Query<NoQuery>,
) -> Result<Answer<Settings>, Problem> {
    Ok(Answer(Settings { items: app.workspace().read(Setting::all).await? }))
}

/// Changes settings: all that are named, or none of them. They hold from the next decision on.
#[utoipa::path(
    patch, path = "/settings", operation_id = "change_settings", tag = "settings",
    params(IdempotencyKey), request_body = SettingsBody,
    responses((status = 202, body = SettingsChanged), Problems)
)]
pub(super) async fn change(
    State(app): State<Shared>,
    Command { body, caller }: Command<SettingsBody>,
) -> Result<Response<Body>, Problem> {
    let SettingsBody { set, unset, from_cli, client_request_id: _ } = body;
    within_quotas(&app, &set)?;
    let names: Vec<String> = set.keys().chain(&unset).cloned().collect();
    let origin = if from_cli { SettingOrigin::Cli } else { SettingOrigin::Api };
    let change = ChangeSettings { set, unset, origin, caller: caller.clone() };
    let work = async {
        let change = app.workspace().change_settings(change).await?;
        changed(&app, &names, change).await
    };
    app.once(caller, work, async |known| changed(&app, &names, known.change()).await).await
}

/// That no setting is given more than the tenant has of it.
fn within_quotas(app: &App, set: &BTreeMap<String, SettingValue>) -> Result<(), Problem> {
    let Some(keys) = &app.api.api_keys else { return Ok(()) };
    let state = keys.control().state();
    let Some(tenant) = state.tenant(app.workspace().layout().tenant()) else { return Ok(()) };
    // What is no setting is refused where settings are known.
    for (name, value) in read_settings(set).unwrap_or_default() {
        let limit = Quota::find(&name).and_then(|quota| tenant.quotas.get(quota));
        if let Some(limit) = limit.filter(|limit| value > *limit) {
            let problem = format!(
                "{value} is more than the {limit} that the tenant has; an admin of the server changes that with servo \
                 admin quotas set"
            );
            return Err(Problem::invalid(format!("set.{name}"), problem));
        }
    }
    Ok(())
}

/// The settings that were asked about, as they are now.
async fn changed(app: &Shared, names: &[String], change: Change) -> Result<SettingsChanged, Problem> {
    let mut items = app.workspace().read(Setting::all).await?;
    items.retain(|setting| names.contains(&setting.name));
    Ok(SettingsChanged { items, accepted: change.into() })
}
