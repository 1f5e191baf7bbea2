//! The login of a terminal: the device flow, and tokens that are renewed.

use std::time::Duration;

use serde::Deserialize;

use crate::error::Error;
use crate::fetch;
use crate::provider::Provider;

const INTERVAL: u64 = 5;
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

/// Tokens of somebody who has logged in. Never shown.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct Tokens {
    /// Vouches for who it is: what this server is shown.
    #[serde(default)]
    pub id_token: Option<String>,
    /// Gets new ones.
    #[serde(default)]
    pub refresh_token: Option<String>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").finish_non_exhaustive()
    }
}

/// The answer of a token endpoint.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum TokenAnswer {
    Error { error: String },
    Tokens(Tokens),
}

/// The same, told apart by its status.
pub(crate) enum Answered {
    Tokens(Tokens),
    Refused(String),
}

/// A login that waits for its user: shown at the terminal.
#[derive(Clone, Deserialize)]
pub struct DeviceLogin {
    device_code: String,
    /// The code to enter.
    pub user_code: String,
    /// Where to enter it.
    pub verification_uri: String,
    /// The same with the code in it.
    #[serde(default)]
    pub verification_uri_complete: Option<String>,
    expires_in: u64,
    #[serde(default)]
    interval: Option<u64>,
}

impl std::fmt::Debug for DeviceLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceLogin")
            .field("verification_uri", &self.verification_uri)
            .finish_non_exhaustive()
    }
}

impl DeviceLogin {
    /// How long it can be finished.
    pub fn lives(&self) -> Duration {
        Duration::from_secs(self.expires_in)
    }

    /// How long to wait before asking.
    pub fn interval(&self) -> Duration {
        Duration::from_secs(self.interval.unwrap_or(INTERVAL).clamp(1, 60))
    }
}

/// The result of a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Polled {
    /// The user has not finished: ask again.
    Waiting,
    /// The same, and ask less often.
    SlowDown,
    /// The user has logged in.
    Done(Tokens),
}

impl Provider {
    /// Begins a login at a terminal.
    pub async fn begin_device(&self) -> Result<DeviceLogin, Error> {
        let metadata = self.metadata().await?;
        let address = metadata.device_authorization_endpoint.as_deref();
        let address = address.ok_or_else(|| self.unsupported("device flow"))?;
        let scopes = self.device_scopes().join(" ");
        let answered = fetch::json::<serde_json::Value>(self.form(address, &[("scope", &scopes)])).await;
        let (status, answer) = answered.map_err(|reason| self.unavailable(reason))?;
        if !status.is_success() {
            let reason = answer.get("error").and_then(serde_json::Value::as_str).unwrap_or(status.as_str());
            return Err(Error::Refused(reason.to_owned()));
        }
        serde_json::from_value(answer).map_err(|error| self.unavailable(error.to_string()))
    }

    /// Asks whether the user has finished.
    pub async fn poll_device(&self, login: &DeviceLogin) -> Result<Polled, Error> {
        let form = [("grant_type", GRANT), ("device_code", &login.device_code)];
        match self.ask_for_tokens(&form).await? {
            Answered::Tokens(tokens) if tokens.id_token.is_some() => Ok(Polled::Done(tokens)),
            Answered::Tokens(_) => Err(self.unsupported("token of identity")),
            Answered::Refused(reason) if reason == "authorization_pending" => Ok(Polled::Waiting),
            Answered::Refused(reason) if reason == "slow_down" => Ok(Polled::SlowDown),
            Answered::Refused(reason) => Err(Error::Refused(reason)),
        }
    }

    /// New tokens for somebody who has logged in before.
    pub async fn renew(&self, refresh_token: &str) -> Result<Tokens, Error> {
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh_token)];
        match self.ask_for_tokens(&form).await? {
            Answered::Tokens(mut tokens) => {
                // A provider that does not replace it means that it stays good.
                tokens.refresh_token.get_or_insert_with(|| refresh_token.to_owned());
                Ok(tokens)
            }
            Answered::Refused(reason) => Err(Error::Refused(reason)),
        }
    }

    /// Somebody at a terminal does not want to log in every hour.
    fn device_scopes(&self) -> Vec<String> {
        let mut scopes = self.config().scopes.clone();
        if !scopes.iter().any(|scope| scope == "offline_access") {
            scopes.push("offline_access".to_owned());
        }
        scopes
    }
}
