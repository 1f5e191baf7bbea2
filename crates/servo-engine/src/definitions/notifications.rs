//! Notification rules: when somebody is told, about which assets, and how.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use servo_core::Millis;
use servo_core::selection::{AssetGraph, Selection};

use super::automation::{about, check_name};
use super::limits::{About, PROVIDERS};
use super::manifest::{Location, SecretDef, is_default, is_yes, yes};
use super::problem::Report;
use crate::lifecycle::{Channel, NotificationTrigger};
use crate::notification::template;

/// Destinations that one rule may have.
const MAX_DESTINATIONS: usize = 10;
/// People that one e-mail may go to.
const MAX_ADDRESSES: usize = 50;
const MAX_HEADERS: usize = 20;
const MAX_TEMPLATE: usize = 10_000;
const MAX_ARGUMENTS: usize = 100;
/// Longest that a command may take.
const MAX_COMMAND: u64 = 5 * 60_000;
/// Prefix of the environment variables that a rule which no code declares may refer to.
pub const SHARED_SECRETS: &str = "SERVO_NOTIFY_";

/// Declares a notification rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct NotificationDef {
    pub name: Arc<str>,
    #[serde(default)]
    pub location: Location,
    /// Its triggers.
    pub when: Vec<NotificationTrigger>,
    /// Whom to tell.
    pub to: Vec<Destination>,
    /// About which assets; all unless given.
    #[serde(default, skip_serializing_if = "is_default")]
    pub selection: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub description: Option<String>,
    /// The first line, with names in braces.
    #[serde(default, skip_serializing_if = "is_default")]
    pub title: Option<String>,
    /// The text, with names in braces.
    #[serde(default, skip_serializing_if = "is_default")]
    pub body: Option<String>,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub enabled: bool,
    /// The most that is told within an hour; what is more is left out and counted.
    #[serde(default = "default_per_hour", skip_serializing_if = "is_default_per_hour")]
    pub max_per_hour: u32,
}

impl NotificationDef {
    /// `max_per_hour` unless given.
    pub const DEFAULT_PER_HOUR: u32 = 60;
}

fn default_per_hour() -> u32 {
    NotificationDef::DEFAULT_PER_HOUR
}

fn is_default_per_hour(count: &u32) -> bool {
    *count == NotificationDef::DEFAULT_PER_HOUR
}

/// Where a notification goes. Secrets are references, read when it is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Destination {
    /// `POST` of a JSON object.
    Webhook {
        /// Where.
        url: TextOrSecret,
        /// Headers of the request.
        #[serde(default, skip_serializing_if = "is_default")]
        headers: BTreeMap<String, TextOrSecret>,
        /// The object to send instead of the usual one. Its texts have names in braces; `{"$secret": …}` is a secret.
        #[serde(default, skip_serializing_if = "is_default")]
        json: Option<serde_json::Map<String, Value>>,
        /// Signs the body: `X-Servo-Signature-256: sha256=`.
        #[serde(default, skip_serializing_if = "is_default")]
        secret: Option<SecretDef>,
    },
    /// An incoming webhook of Slack, or of anything that takes the same.
    Slack {
        /// Where; whoever knows it may write to the channel.
        url: SecretDef,
    },
    /// An e-mail.
    Email {
        /// The server.
        host: String,
        /// Its port; 587, 465 with `tls`, 25 with `none` unless given.
        #[serde(default, skip_serializing_if = "is_default")]
        port: Option<u16>,
        /// How the connection is protected.
        #[serde(default, skip_serializing_if = "is_default")]
        security: SmtpSecurity,
        /// Whom to log in as.
        #[serde(default, skip_serializing_if = "is_default")]
        username: Option<String>,
        /// With which password.
        #[serde(default, skip_serializing_if = "is_default")]
        password: Option<SecretDef>,
        /// Who writes.
        from: String,
        /// Who reads.
        to: Vec<String>,
    },
    /// A program on the machine of the server: the notification is its standard input, as JSON.
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// Longest that it may take; 30 seconds unless given.
        #[serde(default, skip_serializing_if = "is_default")]
        timeout_ms: Option<Millis>,
    },
}

impl Destination {
    /// Its kind.
    pub fn channel(&self) -> Channel {
        match self {
            Destination::Webhook { .. } => Channel::Webhook,
            Destination::Slack { .. } => Channel::Slack,
            Destination::Email { .. } => Channel::Email,
            Destination::Command { .. } => Channel::Command,
        }
    }

    /// The secrets that it refers to.
    fn secrets(&self) -> Vec<SecretDef> {
        match self {
            Destination::Webhook { url, headers, json, secret } => {
                let texts = std::iter::once(url).chain(headers.values());
                let mut found: Vec<SecretDef> =
                    texts.filter_map(TextOrSecret::secret).chain(secret).cloned().collect();
                json.iter()
                    .flat_map(|object| object.values())
                    .for_each(|value| secrets_in(value, &mut found));
                found
            }
            Destination::Slack { url } => vec![url.clone()],
            Destination::Email { password, .. } => password.iter().cloned().collect(),
            Destination::Command { .. } => Vec::new(),
        }
    }
}

/// The reference that a value of a webhook's object stands for, if it does.
pub fn secret_in(value: &Value) -> Option<SecretDef> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    let reference = object.get("$secret")?;
    let text = |field: &str| reference.get(field)?.as_str().map(str::to_owned);
    Some(SecretDef { name: "json".to_owned(), provider: text("provider")?, path: text("path")? })
}

fn secrets_in(value: &Value, found: &mut Vec<SecretDef>) {
    if let Some(secret) = secret_in(value) {
        found.push(secret);
        return;
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| secrets_in(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| secrets_in(field, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A text, or a reference to a secret one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TextOrSecret {
    /// As it is.
    Text(String),
    /// Read when it is needed.
    Secret(SecretDef),
}

impl TextOrSecret {
    /// The reference, if it is one.
    pub fn secret(&self) -> Option<&SecretDef> {
        match self {
            TextOrSecret::Secret(secret) => Some(secret),
            TextOrSecret::Text(_) => None,
        }
    }
}

/// How the connection to a mail server is protected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SmtpSecurity {
    /// By `STARTTLS`.
    #[default]
    Starttls,
    /// From the first byte.
    Tls,
    /// Not at all: for a relay on the same machine.
    None,
}

/// Checks one rule.
pub(super) fn check(rule: &NotificationDef, graph: &AssetGraph, report: &mut Report) {
    let mut about = about("notification", &rule.name, &rule.location, report);
    check_name(&rule.name, &mut about);
    if rule.when.is_empty() {
        about.add("is never sent", "say when=, such as [\"run_failed\"]");
    }
    if rule.when.contains(&NotificationTrigger::Test) {
        about.add("waits for a test", "leave \"test\" out of when=: `servo notification test` sends one");
    }
    if rule.when == [NotificationTrigger::Recovered] {
        about.add("tells of recoveries of nothing", "say in when= what has to go wrong before");
    }
    if rule.to.is_empty() || rule.to.len() > MAX_DESTINATIONS {
        let count = rule.to.len();
        about.add(
            format!("goes to {count} destinations, not between 1 and {MAX_DESTINATIONS}"),
            "say to=, such as servo.Slack(…); declare another rule for more",
        );
    }
    if !(1..=1_000).contains(&rule.max_per_hour) {
        let count = rule.max_per_hour;
        about.add(format!("max_per_hour is {count}, not between 1 and 1000"), "choose a number in between");
    }
    if let Some(text) = &rule.selection {
        match Selection::parse(text) {
            Err(error) => about.add(error.to_string(), "correct selection="),
            Ok(selection) => {
                if let Err(error) = selection.evaluate(graph) {
                    about.add(error.to_string(), "correct selection=");
                }
            }
        }
    }
    for (field, text) in [("title", &rule.title), ("body", &rule.body)] {
        let Some(text) = text else { continue };
        if text.len() > MAX_TEMPLATE {
            about.add(format!("{field} is longer than {MAX_TEMPLATE} bytes"), "write less");
        }
        if let Err(problem) = template::check(text) {
            about.add(format!("{field} {problem}"), format!("use {}", template::names()));
        }
    }
    for destination in &rule.to {
        check_destination(destination, &mut about);
    }
}

fn check_destination(destination: &Destination, about: &mut About<'_>) {
    for secret in destination.secrets() {
        if !PROVIDERS.contains(&secret.provider.as_str()) {
            about.add(
                format!("a secret is kept by {:?}, which is not known", secret.provider),
                format!("use one of {}", PROVIDERS.join(", ")),
            );
        }
    }
    match destination {
        Destination::Webhook { url, headers, json, .. } => {
            if let TextOrSecret::Text(url) = url {
                check_url(url, about);
            }
            json.iter().flat_map(|object| object.values()).for_each(|value| check_json(value, about));
            if headers.len() > MAX_HEADERS {
                about.add(format!("a webhook has more than {MAX_HEADERS} headers"), "leave some out");
            }
            let is_name = |name: &str| {
                !name.is_empty()
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
            };
            for (name, value) in headers {
                let is_value = match value {
                    TextOrSecret::Text(text) => !text.chars().any(char::is_control),
                    TextOrSecret::Secret(_) => true,
                };
                if !is_name(name) || !is_value {
                    about.add(format!("{name:?} is no header of a request"), "use a name such as X-Team");
                }
            }
        }
        Destination::Slack { .. } => {}
        Destination::Email { host, from, to, username, password, .. } => {
            if host.is_empty() || host.chars().any(|each| each.is_whitespace() || each.is_control()) {
                about.add(format!("{host:?} is no name of a mail server"), "say host=\"smtp.example.org\"");
            }
            if to.is_empty() || to.len() > MAX_ADDRESSES {
                about.add(
                    format!("an e-mail goes to {} people, not between 1 and {MAX_ADDRESSES}", to.len()),
                    "say to=, or write to a list",
                );
            }
            for address in to.iter().chain([from]) {
                let is_address = address.split('@').count() == 2
                    && !address.starts_with('@')
                    && !address.ends_with('@')
                    && !address.chars().any(|each| each.is_control() || matches!(each, ',' | '<' | '>'));
                if !is_address {
                    about.add(format!("{address:?} is no address"), "write one such as data@example.org");
                }
            }
            if username.is_some() != password.is_some() {
                about.add("an e-mail has a username or a password alone", "say both, or neither");
            }
        }
        Destination::Command { command, timeout_ms } => {
            if command.first().is_none_or(String::is_empty) || command.len() > MAX_ARGUMENTS {
                about.add("a command names no program", "say command=[\"/usr/local/bin/page\", \"--high\"]");
            }
            if let Some(timeout) = timeout_ms {
                about.within("timeout of a command", *timeout, 1_000, MAX_COMMAND);
            }
        }
    }
}

/// The texts of an object that is sent are templates.
fn check_json(value: &Value, about: &mut About<'_>) {
    match value {
        Value::String(text) => {
            if let Err(problem) = template::check(text) {
                about.add(format!("json= {problem}"), format!("use {}", template::names()));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| check_json(item, about)),
        Value::Object(_) if secret_in(value).is_some() => {}
        Value::Object(fields) => fields.values().for_each(|field| check_json(field, about)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whoever reads a definition sees its address, so that it must not be a secret.
fn check_url(url: &str, about: &mut About<'_>) {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    match host {
        None => about.add("a webhook is neither of http nor of https", "write https://example.org/hook"),
        Some("") => about.add("a webhook names no host", "write https://example.org/hook"),
        Some(host) if host.contains('@') => about.add(
            "the address of a webhook has a password in it",
            "refer to the whole address as a secret: url=SecretRef.env(\"HOOK_URL\")",
        ),
        Some(_) => {}
    }
    if url.chars().any(|each| each.is_whitespace() || each.is_control()) {
        about.add("the address of a webhook has spaces in it", "write https://example.org/hook");
    }
}

/// Restrictions on a rule that no code declares: whoever may define it must not run programs on the server, nor read
/// its secrets.
pub(crate) fn foreign(rule: &NotificationDef) -> Option<String> {
    for destination in &rule.to {
        if destination.channel() == Channel::Command {
            return Some("a command belongs into a project: declare it there and deploy it".to_owned());
        }
        for secret in destination.secrets() {
            if secret.provider != "env" || !secret.path.starts_with(SHARED_SECRETS) {
                let place = format!("{} {}", secret.provider, secret.path);
                return Some(format!(
                    "it refers to {place}; a rule that no code declares may refer to environment variables of the \
                     server that begin with {SHARED_SECRETS}"
                ));
            }
        }
    }
    None
}
