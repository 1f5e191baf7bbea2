//! Another process that has the workspace: a server, or a command that is at work.

use anyhow::Context;
use async_trait::async_trait;
use servo_api::client::Client;

use super::Backend;
use crate::location::Location;
use crate::owner;

/// Another process.
pub(super) struct Server {
    client: Client,
    /// It was named by the user, who means it and no other.
    named: bool,
}

impl Server {
    /// The one of `--url`. It is shown `--key`, or `SERVO_TOKEN`, or else the token of the server that has the workspace
    /// here, if that is the one.
    pub(super) fn named(location: &Location) -> anyhow::Result<Option<Self>> {
        let Some(url) = location.url.as_ref().filter(|url| !url.is_empty()) else { return Ok(None) };
        let mut client = location.addressed(Client::new(url).context("SERVO_URL")?);
        let of_environment = || std::env::var("SERVO_TOKEN").ok().filter(|value| !value.is_empty());
        let token = location.key.clone().or_else(of_environment);
        let token = token.or_else(|| owner::token_of(location, client.server()));
        if let Some(token) = token {
            client = client.with_access_token(token);
        }
        Ok(Some(Self { client, named: true }))
    }

    /// The one that has the workspace on this machine.
    pub(super) fn found(client: Client) -> Self {
        Self { client, named: false }
    }
}

#[async_trait]
impl Backend for Server {
    fn client(&self) -> &Client {
        &self.client
    }

    fn may_end(&self) -> bool {
        !self.named
    }

    async fn close(self: Box<Self>) -> anyhow::Result<()> {
        Ok(())
    }
}
