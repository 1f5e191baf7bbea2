//! Another process that has the workspace: a server, or a command that is at work.

use async_trait::async_trait;
use servo_api::client::Client;

use super::Backend;
use crate::location::Location;
use crate::login;
use crate::target::Target;

/// Another process.
pub(super) struct Server {
    client: Client,
    /// It was named by the user, who means it and no other.
    named: bool,
}

impl Server {
    /// The one that flags, the environment or the context in use name.
    pub(super) async fn named(location: &Location) -> anyhow::Result<Option<Self>> {
        match Target::of(location)? {
            Some(mut target) => {
                login::renew(&mut target).await?;
                Ok(Some(Self { client: target.client(location)?, named: true }))
            }
            None => Ok(None),
        }
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
