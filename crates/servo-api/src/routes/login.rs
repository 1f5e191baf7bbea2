//! Links that let a browser in, and what happens when one is followed.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Response, StatusCode, header};
use servo_core::Millis;
use url::form_urlencoded;

use crate::answer::{Answer, Problems};
use crate::app::Shared;
use crate::authentication::Authenticated;
use crate::login::{self, SESSION};
use crate::problem::{Code, Problem};
use crate::routes::provider_login;
use crate::views::LoginLink;

/// A link that lets one browser in, once.
#[utoipa::path(
    post, path = "/logins", operation_id = "create_login", tag = "server",
    responses((status = 200, body = LoginLink), Problems)
)]
pub(super) async fn create(
    State(app): State<Shared>,
    who: Authenticated,
) -> Result<Answer<LoginLink>, Problem> {
    let path = app.api.logins.link_for(who.session()).map_err(|error| Problem::internal(&error))?;
    Ok(Answer(LoginLink { path }))
}

/// Exchanges the token of a link for a session, which is a cookie, and goes to `next`, a path of this server. Without a
/// token, the browser logs in at the identity provider, if the server has one.
#[utoipa::path(
    get, path = "/login", operation_id = "login", tag = "server",
    params(("token" = Option<String>, Query), ("next" = Option<String>, Query)),
    responses((status = 303, description = "The browser has a session."), Problems)
)]
pub(super) async fn enter(State(app): State<Shared>, request: Request) -> Result<Response<Body>, Problem> {
    let (mut token, mut next) = (String::new(), "/".to_owned());
    let query = request.uri().query().unwrap_or_default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "token" => token = value.into_owned(),
            "next" => next = value.into_owned(),
            other => return Err(Problem::invalid(other, "there is no such parameter")),
        }
    }
    if !is_path(&next) {
        return Err(Problem::invalid("next", "it is a path of this server, such as /runs"));
    }
    let now = app.workspace().now();
    if let (true, Some(provider)) = (token.is_empty(), &app.api.oidc) {
        return provider_login::begin(&app, provider, request.headers(), next).await;
    }
    let mut response = Response::builder().status(StatusCode::SEE_OTHER).header(header::LOCATION, next);
    // Whoever follows a link a second time is in already.
    let is_in =
        login::session(request.headers()).is_some_and(|held| app.sessions().verify(held, now).is_ok());
    if let Some(of) = app.api.logins.redeem(&token) {
        let session = app.sessions().start(of, now, SESSION).await?;
        let name = login::cookie_name(request.headers());
        let age = SESSION.get() / Millis::from_secs(1).get();
        let secure = if app.api.secure { "; Secure" } else { "" };
        let cookie = format!("{name}={session}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{secure}");
        let cookie = HeaderValue::from_str(&cookie).map_err(|error| Problem::internal(&error))?;
        response = response.header(header::SET_COOKIE, cookie);
    } else if !is_in {
        let detail = "this link was used before, or is of another server; servo open makes a new one";
        return Err(Problem::new(Code::Unauthenticated, detail));
    }
    response.body(Body::empty()).map_err(|error| Problem::internal(&error))
}

/// Whether a text is a path of this server: a browser takes `//host` and `/\host` for other servers.
pub(super) fn is_path(text: &str) -> bool {
    let mut letters = text.bytes();
    letters.next() == Some(b'/')
        && !matches!(letters.next(), Some(b'/' | b'\\'))
        && text.bytes().all(|letter| letter.is_ascii_graphic() && letter != b'\\')
}

#[cfg(test)]
mod tests {
    use super::is_path;

    #[test]
    fn only_paths_of_this_server_are_gone_to() {
        for good in ["/", "/runs", "/runs?state=FAILED#top", "/assets/raw/orders"] {
            assert!(is_path(good), "{good}");
        }
        for bad in
            ["", "runs", "//evil.example", "/\\evil.example", "https://evil.example", "/a\r\nb", "/a b"]
        {
            assert!(!is_path(bad), "{bad:?}");
        }
    }
}
