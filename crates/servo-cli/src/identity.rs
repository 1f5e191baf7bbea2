//! The identity provider of a server, by its configuration.

use std::path::Path;

use anyhow::Context;
use serde::Deserialize;
use servo_oidc::{Config, Provider};

/// A file with the configuration of a provider.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    oidc: Config,
}

/// The provider that a file configures. `SERVO_OIDC_CLIENT_SECRET` is the secret of the client, if there is one.
pub(crate) fn provider(file: &Path) -> anyhow::Result<Provider> {
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let File { oidc } =
        toml::from_str(&text).with_context(|| format!("{} is not as expected", file.display()))?;
    configured(oidc).with_context(|| file.display().to_string())
}

/// The provider of a table `[oidc]`.
pub(crate) fn of_table(table: toml::Table) -> anyhow::Result<Provider> {
    configured(table.try_into().context("[oidc] is not as expected")?)
}

fn configured(mut oidc: Config) -> anyhow::Result<Provider> {
    if let Some(secret) = std::env::var("SERVO_OIDC_CLIENT_SECRET").ok().filter(|secret| !secret.is_empty()) {
        oidc.client_secret = Some(secret.into());
    }
    Ok(Provider::new(oidc)?)
}
