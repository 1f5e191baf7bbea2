//! Commands about schedules, sensors and notification rules, as far as they are the same.

use std::collections::BTreeMap;

use serde_json::Value;
use servo_api::client::{Client, ClientError};
use servo_api::views::{Accepted, VersionBody};

use crate::backend::{Need, through};
use crate::location::Location;
use crate::output::{self, Format};
use crate::plan::ConfigArgs;

/// One of those that have a name, as its caller knows it.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// Its name or its id.
    pub(crate) name: String,
    /// Only if its state has this version, which `show` says.
    #[arg(long, value_name = "VERSION")]
    pub(crate) expected_state_version: Option<u64>,
}

/// The part of a new schedule or sensor that says what it requests.
#[derive(clap::Args)]
pub(crate) struct Definition {
    /// Letters, digits, `_` and `-`.
    pub(crate) name: String,
    /// The selection that it requests.
    #[arg(long = "select", value_name = "SELECTION")]
    pub(crate) selection: String,
    /// For people.
    #[arg(long)]
    pub(crate) description: Option<String>,
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// A tag of its runs.
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = tag)]
    tags: Vec<(String, String)>,
    /// Higher runs first.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) priority: i32,
    /// Begin paused.
    #[arg(long)]
    pub(crate) paused: bool,
}

impl Definition {
    /// The tags of its runs.
    pub(crate) fn tags(&self) -> BTreeMap<String, String> {
        self.tags.iter().cloned().collect()
    }
}

/// Changes of the part of a schedule or sensor that says what it requests.
#[derive(clap::Args)]
pub(crate) struct Redefinition {
    #[command(flatten)]
    pub(crate) which: Which,
    /// The selection that it requests.
    #[arg(long = "select", value_name = "SELECTION")]
    selection: Option<String>,
    /// For people.
    #[arg(long)]
    description: Option<String>,
    #[command(flatten)]
    config: ConfigArgs,
    /// A tag of its runs, instead of those that it has.
    #[arg(long = "tag", value_name = "NAME=VALUE", value_parser = tag)]
    tags: Vec<(String, String)>,
    /// Higher runs first.
    #[arg(long, allow_negative_numbers = true)]
    priority: Option<i32>,
}

/// The fields of a definition that [`Redefinition`] changes.
pub(crate) struct Requested<'b> {
    pub(crate) selection: &'b mut String,
    pub(crate) description: &'b mut Option<String>,
    pub(crate) config: &'b mut BTreeMap<String, Value>,
    pub(crate) tags: &'b mut BTreeMap<String, String>,
    pub(crate) priority: &'b mut i32,
    pub(crate) expected_state_version: &'b mut Option<u64>,
}

impl Redefinition {
    /// Changes a definition as far as options were given.
    pub(crate) fn apply(&self, body: Requested<'_>) -> anyhow::Result<()> {
        set(body.selection, &self.selection);
        set(body.priority, &self.priority);
        if self.description.is_some() {
            body.description.clone_from(&self.description);
        }
        let config = self.config.body()?;
        if !config.is_empty() {
            *body.config = config;
        }
        if !self.tags.is_empty() {
            *body.tags = self.tags.iter().cloned().collect();
        }
        if self.which.expected_state_version.is_some() {
            *body.expected_state_version = self.which.expected_state_version;
        }
        Ok(())
    }
}

/// Takes a value that was given.
pub(crate) fn set<T: Clone>(field: &mut T, given: &Option<T>) {
    if let Some(given) = given {
        field.clone_from(given);
    }
}

/// Reads a tag or a label.
pub(crate) fn tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        Some(_) | None => Err(format!("{text:?} is not of the form NAME=VALUE")),
    }
}

/// A change that needs nothing but a name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Turn {
    Pause,
    Resume,
    Remove,
}

/// Pauses, resumes or removes what has a name, and says what has become of it; `removed` if it is gone.
pub(crate) async fn turn(
    location: &Location,
    which: &Which,
    turn: Turn,
    removed: &str,
    format: Format,
    ask: impl AsyncFn(&Client, &VersionBody) -> Result<Accepted, ClientError>,
) -> anyhow::Result<()> {
    let Which { name, expected_state_version } = which;
    let body = VersionBody { expected_state_version: *expected_state_version, client_request_id: None };
    let accepted =
        through(location, Need::ChangeProject, async |client| Ok(ask(client, &body).await?)).await?;
    let done = match (turn, accepted.accepted_event_id.is_some()) {
        (Turn::Pause, true) => "is paused",
        (Turn::Pause, false) => "was paused already",
        (Turn::Resume, true) => "is active",
        (Turn::Resume, false) => "was active already",
        (Turn::Remove, _) => removed,
    };
    told(&accepted, format, format_args!("{name} {done}"))
}

/// Creates what has a name, and says what to do with it next.
pub(crate) async fn create(
    location: &Location,
    name: &str,
    next: impl std::fmt::Display,
    format: Format,
    ask: impl AsyncFn(&Client) -> Result<Accepted, ClientError>,
) -> anyhow::Result<()> {
    let accepted = through(location, Need::ChangeProject, async |client| Ok(ask(client).await?)).await?;
    told(&accepted, format, format_args!("{name} is defined; {next}"))
}

/// Gives what has a name another definition.
pub(crate) async fn redefine(
    location: &Location,
    name: &str,
    format: Format,
    ask: impl AsyncFn(&Client) -> anyhow::Result<Accepted>,
) -> anyhow::Result<()> {
    let accepted = through(location, Need::ChangeProject, async |client| ask(client).await).await?;
    let done = match accepted.accepted_event_id {
        Some(_) => "is changed",
        None => "was like that already",
    };
    told(&accepted, format, format_args!("{name} {done}"))
}

/// Prints what has become of a change: a sentence for people, what was accepted for programs.
pub(crate) fn told(
    accepted: &Accepted,
    format: Format,
    sentence: impl std::fmt::Display,
) -> anyhow::Result<()> {
    match format {
        Format::Json => output::json(accepted),
        Format::Table => {
            output::line(sentence);
            Ok(())
        }
    }
}
