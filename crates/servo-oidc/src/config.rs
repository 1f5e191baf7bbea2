//! The configuration of a provider: `[oidc]` of the server.

use std::fmt;

use serde::{Deserialize, Serialize};
use servo_access::{Grant, Role, Scope};
use url::Url;

use crate::error::ConfigError;

/// Tokens may be this much too early or too late, unless said otherwise.
const SKEW_SECONDS: u64 = 60;
const MAX_SKEW_SECONDS: u64 = 600;

/// An identity provider, and what its groups may do.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Address of the provider, exactly as its tokens name it.
    pub issuer: String,
    /// The name of this server at the provider.
    pub client_id: String,
    /// The secret of a confidential client; public clients have none.
    #[serde(default)]
    pub client_secret: Option<ClientSecret>,
    /// Audiences of bearer tokens besides the client.
    #[serde(default)]
    pub audiences: Vec<String>,
    /// Scopes that are asked for.
    #[serde(default = "scopes")]
    pub scopes: Vec<String>,
    /// The claim that names the groups of somebody.
    #[serde(default = "groups_claim")]
    pub groups_claim: String,
    /// The claim that names somebody in the log; the subject if it is absent.
    #[serde(default = "name_claim")]
    pub name_claim: String,
    /// Seconds that the clocks may differ.
    #[serde(default = "skew")]
    pub skew_seconds: u64,
    /// Seconds that pass at least before keys are fetched again because a token names one that is not known.
    #[serde(default = "key_refetch")]
    pub key_refetch_seconds: u64,
    /// Algorithms of signatures that are taken.
    #[serde(default = "algorithms")]
    pub algorithms: Vec<Algorithm>,
    /// Address of this server as browsers see it; what the request says unless given.
    #[serde(default)]
    pub public_url: Option<String>,
    /// Roles of groups.
    #[serde(default)]
    pub roles: Vec<RoleOfGroup>,
}

/// The role that members of a group have somewhere.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleOfGroup {
    /// The group; `*` is everybody whom the provider knows.
    pub group: String,
    /// The role.
    pub role: Role,
    /// Where: `tenant/workspace`, `tenant/*` or `*`.
    pub scope: Scope,
    /// A selection of assets that it is limited to.
    #[serde(default)]
    pub assets: Option<String>,
}

/// Algorithms of signatures. Those with a shared secret and `none` are not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Algorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

impl Algorithm {
    /// The name on the wire.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RS256 => "RS256",
            Self::RS384 => "RS384",
            Self::RS512 => "RS512",
            Self::PS256 => "PS256",
            Self::PS384 => "PS384",
            Self::PS512 => "PS512",
            Self::ES256 => "ES256",
            Self::ES384 => "ES384",
            Self::EdDSA => "EdDSA",
        }
    }
}

/// The secret of a client. Never shown.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct ClientSecret(String);

impl ClientSecret {
    /// The secret, for the provider's eyes.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for ClientSecret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientSecret(…)")
    }
}

impl Config {
    /// The same, if it can be used.
    pub fn checked(self) -> Result<Self, ConfigError> {
        let wrong = |field, problem: &str| Err(ConfigError { field, problem: problem.to_owned() });
        if !Url::parse(&self.issuer).is_ok_and(|url| is_trustworthy(&url)) {
            return wrong("issuer", "it is an https:// address; http:// only on the loopback, for tests");
        }
        if self.client_id.is_empty() {
            return wrong("client_id", "it is empty; register this server at the provider");
        }
        if self.algorithms.is_empty() {
            return wrong("algorithms", "the list is empty, so that no token could be verified");
        }
        if self.skew_seconds > MAX_SKEW_SECONDS {
            return wrong("skew_seconds", "at most 600: expired tokens would stay good for too long");
        }
        if let Some(url) = &self.public_url
            && !Url::parse(url).is_ok_and(|url| is_trustworthy(&url) && url.query().is_none())
        {
            return wrong("public_url", "it is an https:// address; http:// only on the loopback");
        }
        if self.roles.iter().any(|role| role.group.is_empty()) {
            return wrong("roles", "a group has no name");
        }
        Ok(self)
    }

    /// Roles by group.
    pub fn grants(&self, groups: &[String]) -> Vec<Grant> {
        let mine = self.roles.iter().filter(|role| role.group == "*" || groups.contains(&role.group));
        mine.map(|role| Grant {
            role: role.role,
            scope: role.scope.clone(),
            assets: role.assets.as_deref().map(Into::into),
        })
        .collect()
    }

    /// The name by which browsers address this server, if its address is given.
    pub fn public_host(&self) -> Option<String> {
        let url = Url::parse(self.public_url.as_deref()?).ok()?;
        url.host_str().map(str::to_owned)
    }

    pub(crate) fn is_audience(&self, name: &str) -> bool {
        name == self.client_id || self.audiences.iter().any(|audience| audience == name)
    }
}

/// Whether secrets may be sent there: TLS, or a process of this machine.
pub(crate) fn is_trustworthy(url: &Url) -> bool {
    let is_loopback = match url.host() {
        Some(url::Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => return false,
    };
    let is_plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    is_plain && (url.scheme() == "https" || (url.scheme() == "http" && is_loopback))
}

fn scopes() -> Vec<String> {
    ["openid", "profile", "email"].map(str::to_owned).to_vec()
}

fn groups_claim() -> String {
    "groups".to_owned()
}

fn name_claim() -> String {
    "email".to_owned()
}

const fn skew() -> u64 {
    SKEW_SECONDS
}

const fn key_refetch() -> u64 {
    10
}

fn algorithms() -> Vec<Algorithm> {
    vec![Algorithm::RS256, Algorithm::PS256, Algorithm::ES256, Algorithm::ES384, Algorithm::EdDSA]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(issuer: &str) -> Config {
        toml::from_str(&format!("issuer = {issuer:?}\nclient_id = \"servo\"")).unwrap()
    }

    #[test]
    fn only_addresses_that_nobody_can_listen_to_are_taken() {
        for good in [
            "https://login.example.org",
            "http://localhost:9000/realm",
            "http://127.0.0.1:1",
            "http://[::1]:1",
        ] {
            assert!(config(good).checked().is_ok(), "{good}");
        }
        for bad in [
            "http://login.example.org",
            "http://10.0.0.1",
            "file:///etc/passwd",
            "login",
            "https://u:p@a",
            "",
        ] {
            assert_eq!(config(bad).checked().unwrap_err().field, "issuer", "{bad}");
        }
    }

    #[test]
    fn groups_have_the_roles_that_are_configured_and_no_others() {
        let config: Config = toml::from_str(
            r#"
            issuer = "https://a"
            client_id = "servo"
            roles = [
                { group = "*", role = "viewer", scope = "acme/main" },
                { group = "ops", role = "operator", scope = "acme/*", assets = "raw.*" },
                { group = "root", role = "admin", scope = "*" },
            ]
            "#,
        )
        .unwrap();
        let roles = |groups: &[&str]| -> Vec<String> {
            let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
            config.grants(&groups).iter().map(|grant| format!("{} {}", grant.role, grant.scope)).collect()
        };
        assert_eq!(roles(&[]), ["viewer acme/main"]);
        assert_eq!(roles(&["ops", "Root", "other"]), ["viewer acme/main", "operator acme/*"]);
        assert_eq!(roles(&["root"]), ["viewer acme/main", "admin *"]);
    }

    #[test]
    fn secrets_are_not_shown_and_shared_secrets_are_no_algorithm() {
        let mut config = config("https://a");
        config.client_secret = Some("canary".to_owned().into());
        assert!(!format!("{config:?}").contains("canary"));
        for name in ["HS256", "none", "None", "RS1"] {
            let text = format!("issuer = \"https://a\"\nclient_id = \"s\"\nalgorithms = [{name:?}]");
            assert!(toml::from_str::<Config>(&text).is_err(), "{name}");
        }
    }
}
