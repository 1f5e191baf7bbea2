//! Callers whom an identity provider vouches for: tokens of programs, and what browsers keep while they log in.

use async_trait::async_trait;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use serde::{Deserialize, Serialize};
use servo_core::{Millis, Timestamp};
use servo_oidc::{BrowserLogin, Provider, looks_like_token};

use crate::authentication::{ApiKeys, Authenticated, Authenticator, Credential, bearer};
use crate::problem::{Code, Problem};

/// How long a session lives that a provider vouched for: groups may have changed meanwhile.
pub(crate) const SESSION: Millis = Millis::from_hours(12);
/// How long a browser may take to log in at the provider.
pub(crate) const LOGIN: Millis = Millis::from_secs(600);
/// The credential, as others see it.
const KIND: &str = "oidc";

/// Tokens of a provider.
pub(crate) struct ProviderTokens {
    pub(crate) provider: Provider,
    /// Has the ledger that says who was logged out.
    pub(crate) api_keys: Option<ApiKeys>,
}

#[async_trait]
impl Authenticator for ProviderTokens {
    async fn authenticate(&self, request: &Parts, now: Timestamp) -> Result<Option<Authenticated>, Problem> {
        let Some(token) = bearer(&request.headers).filter(|token| looks_like_token(token)) else {
            return Ok(None);
        };
        let claims = self.provider.verify(token, now).await.map_err(problem)?;
        let identity = self.provider.identity(&claims);
        let issued = Timestamp::from_millis(claims.issued.saturating_mul(1_000));
        let control = self.api_keys.as_ref().map(ApiKeys::control);
        if control.is_some_and(|control| control.state().is_logged_out(&identity.principal, issued)) {
            let detail = "an admin has ended your sessions; log in again";
            return Err(Problem::new(Code::Unauthenticated, detail));
        }
        Ok(Some(Authenticated { identity, credential: Credential::Other(KIND) }))
    }
}

/// A login that a browser has begun, in a cookie that is signed.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PendingLogin {
    pub(crate) login: BrowserLogin,
    pub(crate) next: String,
}

/// Nobody who fails to log in learns more than that, but for the user whose own token it is.
pub(crate) fn problem(error: servo_oidc::Error) -> Problem {
    use servo_oidc::Error;
    match &error {
        Error::Token(_) | Error::Refused(_) => Problem::new(Code::Unauthenticated, error.to_string()),
        Error::Unavailable { .. } | Error::Unsupported { .. } => {
            tracing::warn!(%error, "oidc.provider is of no use");
            Problem::new(Code::Unavailable, "the identity provider does not answer as it should; ask again")
        }
    }
}

/// Where the provider sends browsers back to.
pub(crate) fn callback(provider: &Provider, headers: &HeaderMap, is_secure: bool) -> Result<String, Problem> {
    let base = match &provider.config().public_url {
        Some(url) => url.trim_end_matches('/').to_owned(),
        None => {
            let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
            let host = host.ok_or_else(|| Problem::invalid("host", "the request names no host"))?;
            let scheme = if is_secure { "https" } else { "http" };
            format!("{scheme}://{host}")
        }
    };
    Ok(format!("{base}/login/callback"))
}

/// Whether a provider sends browsers to an address with TLS.
pub(crate) fn is_secure(provider: &Provider) -> bool {
    provider.config().public_url.as_deref().is_some_and(|url| url.starts_with("https://"))
}
