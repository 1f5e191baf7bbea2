//! Settings of the workspace: their values, where these come from, and changing them.

use axum::body::Body;
use axum::extract::State;
use axum::http::Response;
use servo_engine::{Change, ChangeSettings, SettingOrigin};

use crate::answer::{Answer, IdempotencyKey, Problems, Wait};
use crate::app::Shared;
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
    let names: Vec<String> = set.keys().chain(&unset).cloned().collect();
    let origin = if from_cli { SettingOrigin::Cli } else { SettingOrigin::Api };
    let change = ChangeSettings { set, unset, origin, caller: caller.clone() };
    let work = async {
        let change = app.workspace().change_settings(change).await?;
        changed(&app, &names, change).await
    };
    app.once(caller, work, async |known| changed(&app, &names, known.change()).await).await
}

/// The settings that were asked about, as they are now.
async fn changed(app: &Shared, names: &[String], change: Change) -> Result<SettingsChanged, Problem> {
    let mut items = app.workspace().read(Setting::all).await?;
    items.retain(|setting| names.contains(&setting.name));
    Ok(SettingsChanged { items, accepted: change.into() })
}
