//! Commands about schedules, sensors and notification rules, as far as they are the same.

use servo_api::client::{Client, ClientError};
use servo_api::views::{Accepted, VersionBody};

use crate::backend::{Need, through};
use crate::location::Location;
use crate::output::{self, Format};

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
    name: &str,
    expected_state_version: Option<u64>,
    turn: Turn,
    removed: &str,
    format: Format,
    ask: impl AsyncFn(&Client, &VersionBody) -> Result<Accepted, ClientError>,
) -> anyhow::Result<()> {
    let body = VersionBody { expected_state_version, client_request_id: None };
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
