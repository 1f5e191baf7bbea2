//! Links that let a browser in.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Ways to log in to a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoginOptions {
    /// The identity provider of the server; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc: Option<OidcOptions>,
    /// Whether it has API keys, which admins create and revoke: that of `servo serve` has, that of `servo dev` has not.
    #[serde(default)]
    pub api_keys: bool,
}

/// An identity provider, as far as whoever logs in needs to know it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OidcOptions {
    /// Address of the provider.
    pub issuer: String,
    /// Name of the server at the provider.
    pub client_id: String,
    /// Scopes to ask for.
    pub scopes: Vec<String>,
}

/// A link that lets one browser in, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoginLink {
    /// Where it is on the server, with a token: `/login?token=…`.
    pub path: String,
}
