//! Logins of browsers at the identity provider, and how they end.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use servo_access::SessionOf;
use servo_core::{Millis, Timestamp};
use servo_oidc::Provider;
use url::form_urlencoded;

use super::login::is_path;
use crate::answer::{Answer, Problems};
use crate::app::{App, Shared};
use crate::login::{check_origin, cookie, cookie_name, session};
use crate::oidc::{self, LOGIN, PendingLogin, SESSION};
use crate::problem::{Code, Problem};
use crate::views::{LoginOptions, OidcOptions};

/// Ways to log in to this server.
#[utoipa::path(
    get, path = "/login-options", operation_id = "login_options", tag = "server",
    responses((status = 200, body = LoginOptions), Problems)
)]
pub(super) async fn options(State(app): State<Shared>) -> Answer<LoginOptions> {
    let oidc = app.api.oidc.as_ref().map(|provider| {
        let config = provider.config();
        let (issuer, client_id) = (config.issuer.clone(), config.client_id.clone());
        OidcOptions { issuer, client_id, scopes: config.scopes.clone() }
    });
    Answer(LoginOptions { oidc, api_keys: app.api.api_keys.is_some() })
}

/// Sends a browser to the provider. What it needs to come back is in a cookie, so that nobody else can finish its login.
pub(super) async fn begin(
    app: &App,
    provider: &Provider,
    headers: &HeaderMap,
    next: String,
) -> Result<Response<Body>, Problem> {
    let (address, login) =
        provider.begin(&oidc::callback(provider, headers, app.is_secure())?).await.map_err(oidc::problem)?;
    let pending =
        serde_json::to_vec(&PendingLogin { login, next }).map_err(|error| Problem::internal(&error))?;
    let sealed = app.api.session_keys().seal_session(app.workspace().now().saturating_add(LOGIN), &pending);
    let kept = set_cookie(&pending_name(headers), &sealed, "/login", LOGIN, app.is_secure())?;
    redirect(&address, &[kept])
}

/// Where the provider sends a browser back to: it gets a new session, and goes to the page that it wanted.
#[utoipa::path(
    get, path = "/login/callback", operation_id = "login_callback", tag = "server",
    params(("code" = Option<String>, Query), ("state" = Option<String>, Query), ("error" = Option<String>, Query)),
    responses((status = 303, description = "The browser has a session."), Problems)
)]
pub(super) async fn callback(State(app): State<Shared>, request: Request) -> Result<Response<Body>, Problem> {
    let denied = |detail: &str| Problem::new(Code::Unauthenticated, detail);
    let Some(provider) = &app.api.oidc else {
        return Err(Problem::new(Code::NotFound, "this server has no identity provider"));
    };
    let (mut code, mut state, mut refused) = (String::new(), String::new(), None);
    for (name, value) in form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes()) {
        match &*name {
            "code" => code = value.into_owned(),
            "state" => state = value.into_owned(),
            "error" => refused = Some(value.into_owned()),
            // Providers add what they like: a session state, their own name.
            _ => {}
        }
    }
    let (headers, now) = (request.headers(), app.workspace().now());
    let pending = pending(&app, headers, now)
        .ok_or_else(|| denied("no login was begun in this browser, or it took too long; go to /login"))?;
    if refused.is_some() {
        return Err(denied("the identity provider did not let you in; go to /login to try again"));
    }
    let finished = provider.finish(&pending.login, &state, &code, now).await.map_err(oidc::problem)?;
    let of = SessionOf::Identity(provider.identity(&finished.claims));
    let is_secure = app.is_secure();
    // A new one, whatever the browser came with: nobody can have given it a session to log in to.
    let sealed = app.sessions().start(of, now, SESSION).await?;
    let kept = set_cookie(&cookie_name(headers), &sealed, "/", SESSION, is_secure)?;
    let gone = set_cookie(&pending_name(headers), "", "/login", Millis::new(0), is_secure)?;
    redirect(if is_path(&pending.next) { &pending.next } else { "/" }, &[kept, gone])
}

/// Ends the session of a browser.
#[utoipa::path(
    post, path = "/logout", operation_id = "logout", tag = "server",
    responses((status = 303, description = "The browser has no session any more."), Problems)
)]
pub(super) async fn logout(State(app): State<Shared>, request: Request) -> Result<Response<Body>, Problem> {
    let headers = request.headers();
    if let Some(held) = session(headers) {
        check_origin(request.method(), headers)?;
        // Whoever has copied the cookie is out too.
        app.sessions().end(held, app.workspace().now()).await?;
    }
    redirect("/", &[set_cookie(&cookie_name(headers), "", "/", Millis::new(0), app.is_secure())?])
}

fn pending(app: &App, headers: &HeaderMap, now: Timestamp) -> Option<PendingLogin> {
    let sealed = cookie(headers, &pending_name(headers))?;
    serde_json::from_slice(&app.api.session_keys().verify_session(sealed, now).ok()?).ok()
}

fn pending_name(headers: &HeaderMap) -> String {
    cookie_name(headers).replace("session", "login")
}

/// `Lax`: the browser comes from the provider, which is another site, and has to send it.
fn set_cookie(
    name: &str,
    value: &str,
    path: &str,
    lives: Millis,
    is_secure: bool,
) -> Result<HeaderValue, Problem> {
    let age = lives.get() / Millis::from_secs(1).get();
    let secure = if is_secure { "; Secure" } else { "" };
    let cookie = format!("{name}={value}; Path={path}; HttpOnly; SameSite=Lax; Max-Age={age}{secure}");
    HeaderValue::from_str(&cookie).map_err(|error| Problem::internal(&error))
}

fn redirect(to: &str, cookies: &[HeaderValue]) -> Result<Response<Body>, Problem> {
    let mut response = Response::builder().status(StatusCode::SEE_OTHER).header(header::LOCATION, to);
    for cookie in cookies {
        response = response.header(header::SET_COOKIE, cookie);
    }
    response.body(Body::empty()).map_err(|error| Problem::internal(&error))
}
