//! Another process that has the workspace: a server, or a command that is at work.

use anyhow::Context;
use async_trait::async_trait;
use servo_api::client::Client;

use super::Backend;

/// Another process.
pub(super) struct Server {
    client: Client,
    /// It was named by the user, who means it and no other.
    named: bool,
}

impl Server {
    /// The one at `SERVO_URL`.
    pub(super) fn named() -> anyhow::Result<Option<Self>> {
        let url = std::env::var("SERVO_URL").ok().filter(|url| !url.is_empty());
        let client = url.map(|url| Client::new(&url).context("SERVO_URL")).transpose()?;
        Ok(client.map(|client| Self { client, named: true }))
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
