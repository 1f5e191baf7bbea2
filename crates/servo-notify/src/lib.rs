//! Sends notifications: webhooks, Slack, e-mail, commands.
//!
//! This crate owns sockets, processes and secrets on the way out. It decides nothing: the engine says what is sent, when
//! and how often (ADR-165). It guarantees that a try ends, that no failure holds a secret, and that addresses of private
//! networks are reached only where that is allowed (ADR-166).

mod addresses;
mod command;
mod email;
mod secrets;
mod webhook;

use std::path::PathBuf;

use async_trait::async_trait;
use servo_engine::definitions::Destination;
use servo_engine::notification::template::{self, Words};
use servo_engine::notification::{Delivery, SendFailure};
use servo_runtime::Notifier;

use crate::secrets::Secrets;

/// Sends notifications to destinations of every kind.
pub struct Senders {
    /// The workspace that they are about.
    workspace: String,
    /// Where people look at it.
    link_base: Option<String>,
    /// The directory of the project: files of secrets are below it, and commands run in it.
    project: Option<PathBuf>,
    /// Whether private addresses are reached without a setting that allows it.
    private_addresses: bool,
    /// Whether commands are run.
    commands: bool,
    http: webhook::Clients,
}

impl Senders {
    /// Senders for a workspace.
    pub fn new(workspace: impl Into<String>) -> Self {
        Self {
            workspace: workspace.into(),
            link_base: None,
            project: None,
            private_addresses: false,
            commands: false,
            http: webhook::Clients::default(),
        }
    }

    /// Links lead to this address.
    #[must_use]
    pub fn with_link_base(mut self, base: Option<String>) -> Self {
        self.link_base = base;
        self
    }

    /// The project is in this directory.
    #[must_use]
    pub fn with_project(mut self, directory: PathBuf) -> Self {
        self.project = Some(directory);
        self
    }

    /// Private addresses are reached whatever the settings say: for whoever works on a machine of their own.
    #[must_use]
    pub fn with_private_addresses(mut self, allowed: bool) -> Self {
        self.private_addresses = allowed;
        self
    }

    /// Commands are run: for whoever runs the project's code anyway.
    #[must_use]
    pub fn with_commands(mut self, allowed: bool) -> Self {
        self.commands = allowed;
        self
    }

    fn words(&self, delivery: &Delivery) -> Words {
        template::words(delivery, &self.workspace, self.link_base.as_deref())
    }

    fn fill(&self, text: &str, delivery: &Delivery) -> String {
        template::fill(text, delivery, &self.workspace, self.link_base.as_deref())
    }

    /// The notification as programs read it.
    fn object(&self, delivery: &Delivery) -> serde_json::Value {
        let words = self.words(delivery);
        serde_json::json!({
            "notification_id": &*delivery.notification_id,
            "attempt": delivery.attempt,
            "rule": delivery.rule.name,
            "trigger": delivery.trigger.name(),
            "workspace": self.workspace,
            "title": words.title,
            "text": words.body,
            "link": words.link,
            "facts": &*delivery.facts,
        })
    }
}

#[async_trait]
impl Notifier for Senders {
    async fn send(&self, delivery: &Delivery) -> Result<(), SendFailure> {
        let mut secrets = Secrets::new(self.project.clone());
        let private = self.private_addresses || delivery.private_addresses;
        let sent = match delivery.to() {
            None => Err(never("the rule does not have this destination any more")),
            Some(Destination::Webhook { url, headers, json, secret }) => {
                let hook = webhook::Hook { url, headers, json: json.as_ref(), secret: secret.as_ref() };
                webhook::send(self, delivery, &hook, private, &mut secrets).await
            }
            Some(Destination::Slack { url }) => {
                webhook::slack(self, delivery, url, private, &mut secrets).await
            }
            Some(to @ Destination::Email { .. }) => {
                email::send(self, delivery, to, private, &mut secrets).await
            }
            Some(Destination::Command { .. }) if !self.commands => Err(never(
                "this server runs no commands; SERVO_NOTIFY_COMMANDS=1 in its environment allows them",
            )),
            Some(Destination::Command { command, timeout_ms }) => {
                command::run(self, delivery, command, *timeout_ms).await
            }
        };
        // Whatever went wrong may have been told with what was sent.
        sent.map_err(|failure| SendFailure { message: secrets.mask(&failure.message), ..failure })
    }
}

/// A failure that another try may mend.
fn again(message: impl Into<String>) -> SendFailure {
    SendFailure { message: message.into(), retry: true }
}

/// A failure that no try mends.
fn never(message: impl Into<String>) -> SendFailure {
    SendFailure { message: message.into(), retry: false }
}
