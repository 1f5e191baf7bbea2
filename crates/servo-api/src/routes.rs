//! The router, and the layers around all routes.

mod admission;
mod api_keys;
mod assets;
mod audit;
mod backfills;
mod callbacks;
mod changes;
mod checks;
mod code;
mod conditions;
mod conflicts;
mod costs;
mod deployment_history;
mod deployments;
mod evaluations;
mod events;
mod freshness;
mod graph;
mod health;
mod lineage;
mod login;
mod logs;
mod materializations;
mod me;
mod named;
mod notifications;
mod partition_life;
mod partition_plane;
mod partition_summary;
mod partitions;
mod pictures;
mod plans;
mod provider_login;
mod quarantine;
mod queues;
mod registration;
mod renames;
mod retention;
mod run_plan;
mod runs;
mod schedules;
mod sensors;
mod sessions;
mod settings;
mod sql;
mod staleness;
mod tables;
mod tasks;
mod tenants;
mod workers;

pub use health::{Health, Version};
pub use registration::fingerprint as asset_fingerprint;
pub use workers::worker_keyring;

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, Response, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::routing::get;
use futures::FutureExt;
use tower_service::Service;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::authorize;
use crate::app::{Api, App, Shared};
use crate::description;
use crate::guard::guard;
use crate::problem::{Code, Problem};
use crate::ui;

const BASE: &str = "/api/v1";

/// The OpenAPI document without its routes, which add themselves.
#[derive(OpenApi)]
#[openapi(
    info(title = "Servo", description = "Keeps data assets up to date.", license(name = "Apache-2.0")),
    components(schemas(Problem)),
    modifiers(&Credentials)
)]
struct Description;

/// Credentials of users and workers.
struct Credentials;

impl Modify for Credentials {
    fn modify(&self, description: &mut utoipa::openapi::OpenApi) {
        let components = description.components.get_or_insert_default();
        for name in ["access_token", "worker_key", "task_token"] {
            let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
            components.add_security_scheme(name, scheme);
        }
        let signature = ApiKeyValue::with_description("sig", "The signature of a callback URL.");
        let scheme = SecurityScheme::ApiKey(ApiKey::Query(signature));
        components.add_security_scheme("callback_url", scheme);
    }
}

/// Every route, and the description of all of them.
fn described() -> OpenApiRouter<Shared> {
    let routes = OpenApiRouter::new()
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::version))
        .routes(routes!(login::create))
        .routes(routes!(provider_login::options))
        .routes(routes!(me::show))
        .routes(routes!(me::workspaces))
        .routes(routes!(plans::plan))
        .routes(routes!(run_plan::show))
        .routes(routes!(runs::list, runs::trigger))
        .routes(routes!(runs::show))
        .routes(routes!(runs::cancel))
        .routes(routes!(runs::retry))
        .routes(routes!(runs::retry_now))
        .routes(routes!(checks::list))
        .routes(routes!(conflicts::list))
        .routes(routes!(costs::list))
        .routes(routes!(events::follow))
        .routes(routes!(tasks::list))
        .routes(routes!(tasks::show))
        .routes(routes!(logs::read))
        .routes(routes!(logs::follow))
        .routes(routes!(assets::list))
        .routes(routes!(assets::show))
        .routes(routes!(assets::partitions))
        .routes(routes!(partition_summary::show))
        .routes(routes!(materializations::list))
        .routes(routes!(graph::show))
        .routes(routes!(changes::follow))
        .routes(routes!(assets::materialization))
        .routes(routes!(pictures::show))
        .routes(routes!(lineage::show))
        .routes(routes!(partitions::change))
        .routes(routes!(partition_life::preview))
        .routes(routes!(partition_life::wipe))
        .routes(routes!(partition_life::mark))
        .routes(routes!(partition_life::undo))
        .routes(routes!(renames::rename))
        .routes(routes!(staleness::list))
        .routes(routes!(freshness::list))
        .routes(routes!(staleness::why))
        .routes(routes!(quarantine::list))
        .routes(routes!(quarantine::approve))
        .routes(routes!(quarantine::reject))
        .routes(routes!(deployments::current))
        .routes(routes!(deployments::preview))
        .routes(routes!(deployment_history::list, deployments::deploy))
        .routes(routes!(deployment_history::show))
        .routes(routes!(deployment_history::diff))
        .routes(routes!(deployment_history::rollback))
        .routes(routes!(deployment_history::versions))
        .routes(routes!(code::current))
        .routes(routes!(settings::list, settings::change))
        .routes(routes!(retention::show))
        .routes(routes!(retention::apply))
        .routes(routes!(admission::show))
        .routes(routes!(queues::list))
        .routes(routes!(admission::pause))
        .routes(routes!(admission::resume))
        .routes(routes!(admission::why_run))
        .routes(routes!(schedules::list, schedules::create))
        .routes(routes!(schedules::show, schedules::redefine, schedules::delete))
        .routes(routes!(schedules::ticks))
        .routes(routes!(schedules::preview))
        .routes(routes!(schedules::trigger))
        .routes(routes!(schedules::pause))
        .routes(routes!(schedules::resume))
        .routes(routes!(sensors::list, sensors::create))
        .routes(routes!(sensors::show, sensors::redefine, sensors::delete))
        .routes(routes!(sensors::evals))
        .routes(routes!(sensors::push))
        .routes(routes!(sensors::evaluate))
        .routes(routes!(sensors::reset_cursor))
        .routes(routes!(sensors::pause))
        .routes(routes!(sensors::resume))
        .routes(routes!(backfills::list, backfills::create))
        .routes(routes!(backfills::preview))
        .routes(routes!(backfills::show))
        .routes(routes!(backfills::chunks))
        .routes(routes!(backfills::pause))
        .routes(routes!(backfills::resume))
        .routes(routes!(backfills::cancel))
        .routes(routes!(backfills::retry_failed))
        .routes(routes!(conditions::list))
        .routes(routes!(conditions::explain))
        .routes(routes!(conditions::evaluations))
        .routes(routes!(conditions::pause))
        .routes(routes!(conditions::resume))
        .routes(routes!(notifications::list, notifications::create))
        .routes(routes!(notifications::show, notifications::redefine, notifications::delete))
        .routes(routes!(notifications::history))
        .routes(routes!(notifications::pause))
        .routes(routes!(notifications::resume))
        .routes(routes!(notifications::test))
        .routes(routes!(tables::show))
        .routes(routes!(sql::run))
        .routes(routes!(sql::tables))
        .routes(routes!(audit::list))
        .routes(routes!(registration::list))
        .routes(routes!(registration::register))
        .routes(routes!(registration::heartbeat))
        .routes(routes!(registration::leave))
        .routes(routes!(workers::lease))
        .routes(routes!(evaluations::take))
        .routes(routes!(evaluations::report))
        .routes(routes!(workers::started))
        .routes(routes!(workers::heartbeat))
        .routes(routes!(workers::completed))
        .routes(routes!(logs::write))
        .routes(routes!(callbacks::started))
        .routes(routes!(callbacks::heartbeat))
        .routes(routes!(callbacks::finished))
        .routes(routes!(callbacks::logs))
        .routes(routes!(api_keys::list, api_keys::create))
        .routes(routes!(api_keys::revoke))
        .routes(routes!(audit::of_server))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::end_all))
        .routes(routes!(sessions::end))
        .routes(routes!(tenants::list, tenants::create))
        .routes(routes!(tenants::disable))
        .routes(routes!(tenants::enable))
        .routes(routes!(tenants::remove))
        .routes(routes!(tenants::quotas, tenants::change_quotas))
        .routes(routes!(tenants::workspaces, tenants::create_workspace))
        .routes(routes!(tenants::disable_workspace))
        .routes(routes!(tenants::enable_workspace))
        .routes(routes!(tenants::remove_workspace));
    OpenApiRouter::with_openapi(Description::openapi())
        .nest(BASE, routes)
        .routes(routes!(login::enter))
        .routes(routes!(provider_login::callback))
        .routes(routes!(provider_login::logout))
}

/// The description of the interface: OpenAPI 3.1.
pub fn openapi() -> serde_json::Value {
    description::complete(&described().into_openapi())
}

/// The routes as a service.
pub fn router(api: Api) -> Router {
    assembled(App::new(api))
}

pub(crate) fn assembled(app: Shared) -> Router {
    bare(app.clone()).layer(from_fn_with_state(app, guard))
}

/// The routes without what the front of a server does for all of them.
pub(crate) fn bare(app: Shared) -> Router {
    let (router, _) = described().split_for_parts();
    router
        .route(&format!("{BASE}/openapi.json"), get(health::document))
        .route_layer(from_fn_with_state(app.clone(), authorize))
        .fallback(nothing_here)
        .method_not_allowed_fallback(not_so)
        .with_state(app)
}

/// Handles a request. A panic in a route fails that request, not the connection.
pub(crate) async fn answer(mut router: Router, request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let answered = AssertUnwindSafe(router.call(request)).catch_unwind().await;
    answered.unwrap_or_else(|_| Ok(Problem::internal(&"a route panicked").into_response()))
}

/// The web UI, or that there is nothing.
async fn nothing_here(method: Method, uri: Uri, headers: HeaderMap) -> Response<Body> {
    ui::answer(&method, &uri, &headers)
}

async fn not_so(method: Method, uri: Uri) -> Problem {
    Problem::new(Code::MethodNotAllowed, format!("{} does not know {method}", uri.path()))
}
