//! `servo notification`: who is told what went wrong, and what came of telling them.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use servo_api::Page;
use servo_api::client::{Client, ListOptions};
use servo_api::views::{NotificationBody, NotificationRecord, NotificationRule, VersionBody};
use servo_core::EventId;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::lists::{PageArgs, fetch_all, print_all, print_page};
use crate::location::Location;
use crate::named::{self, Turn, Which};
use crate::output::{self, Format, words};

/// How long the outcome of a test is waited for, and how often it is looked for.
const LONGEST_TEST: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Look at notification rules, test, pause and resume them; create those that no code declares.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List notification rules.
    #[command(after_help = "Example:\n  servo notification list")]
    List,
    /// Show one notification rule, and what it has told of that is not well again.
    #[command(after_help = "Example:\n  servo notification show oncall")]
    Show {
        /// Its name or its id.
        notification: String,
    },
    /// Show what a rule told, newest first: to whom, whether it arrived, and why not.
    #[command(after_help = "Example:\n  servo notification history oncall --status failed,pending")]
    History {
        /// Its name or its id.
        notification: String,
        #[command(flatten)]
        page: PageArgs,
        /// Only those in one of these states: pending, sending, sent, failed, dropped.
        #[arg(long)]
        status: Option<String>,
    },
    /// Send a test to each destination of a rule, and say whether it arrived.
    #[command(after_help = "Example:\n  servo notification test oncall")]
    Test {
        /// Its name or its id.
        notification: String,
    },
    /// Create a notification rule that no code declares, from a JSON file.
    #[command(
        after_help = "Example:\n  servo notification create oncall.json\n\nwhere oncall.json has\n  {\"name\": \"oncall\", \"when\": [\"run_failed\", \"recovered\"],\n   \"to\": [{\"type\": \"slack\", \"url\": {\"name\": \"url\", \"provider\": \"env\", \"path\": \"SERVO_NOTIFY_SLACK\"}}]}"
    )]
    Create {
        /// The file; - reads standard input. docs/notifications.md says what is in it.
        file: PathBuf,
    },
    /// Change a rule that was created with `servo notification create`, to what a JSON file says.
    #[command(after_help = "Example:\n  servo notification update oncall.json")]
    Update {
        /// The file, as `servo notification create` takes it; - reads standard input.
        file: PathBuf,
        /// Only if its state has this version; `servo notification show` says it.
        #[arg(long, value_name = "VERSION")]
        expected_state_version: Option<u64>,
    },
    /// Pause a rule: it tells nothing, and what happens meanwhile is not told later.
    #[command(after_help = "Example:\n  servo notification pause oncall")]
    Pause(Which),
    /// Resume a rule.
    #[command(after_help = "Example:\n  servo notification resume oncall")]
    Resume(Which),
    /// Delete a rule that was created with `servo notification create`. Its history stays.
    #[command(after_help = "Example:\n  servo notification delete oncall")]
    Delete(Which),
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    match command {
        Command::List => list(location, format).await?,
        Command::Show { notification } => show(location, notification, format).await?,
        Command::History { notification, page, status } => {
            history(location, notification, page, status.as_deref(), format).await?;
        }
        Command::Test { notification } => return test(location, notification, format).await,
        Command::Create { file } => create(location, file, format).await?,
        Command::Update { file, expected_state_version } => {
            let mut body = rule_in(file)?;
            body.expected_state_version = expected_state_version.or(body.expected_state_version);
            named::redefine(location, &body.name, format, async |client| {
                Ok(client.change_notification(&body.name, &body).await?)
            })
            .await?;
        }
        Command::Pause(which) => change(location, which, Turn::Pause, format).await?,
        Command::Resume(which) => change(location, which, Turn::Resume, format).await?,
        Command::Delete(which) => change(location, which, Turn::Remove, format).await?,
    }
    Ok(Exit::Done)
}

async fn list(location: &Location, format: Format) -> anyhow::Result<()> {
    let found = fetch_all(location, async |client, options| client.notifications(options).await).await?;
    let row = |rule: &NotificationRule| {
        vec![
            rule.name.clone(),
            words(&rule.status),
            rule.when.join(", "),
            rule.selection.clone().unwrap_or_else(|| "everything".to_owned()),
            channels(rule),
            rule.last_sent_at.map(|at| at.to_string()).unwrap_or_default(),
        ]
    };
    let header = ["notification", "status", "when", "about", "to", "last sent"];
    let nothing =
        "there are no notification rules; declare one with servo.notify, or `servo notification create` one";
    print_all(found, format, nothing, &header, row)?;
    Ok(())
}

fn channels(rule: &NotificationRule) -> String {
    let kinds: Vec<&str> = rule.to.iter().filter_map(|to| to.get("type")?.as_str()).collect();
    kinds.join(", ")
}

async fn show(location: &Location, notification: &str, format: Format) -> anyhow::Result<()> {
    let found =
        through(location, Need::ReadProject, async |client| Ok(client.notification(notification).await?))
            .await?;
    if format == Format::Json {
        return output::json(&found);
    }
    let mut rows = vec![
        ("status", words(&found.status)),
        ("when", found.when.join(", ")),
        ("about", found.selection.clone().unwrap_or_else(|| "everything".to_owned())),
        ("to", channels(&found)),
        ("defined by", found.origin.clone()),
        ("id", found.rule_id.to_string()),
        ("state version", found.state_version.to_string()),
        ("at most", format!("{} in an hour", found.max_per_hour)),
        ("last sent", output::time(found.last_sent_at)),
    ];
    let mut add = |name, value: Option<String>| rows.extend(value.map(|value| (name, value)));
    add("title", found.title.clone());
    add("body", found.body.clone());
    add("description", found.description.clone());
    add("left out", Some(found.left_out).filter(|count| *count > 0).map(|count| count.to_string()));
    add("last error", found.last_error.clone());
    let open: Vec<&str> = found.open.keys().map(String::as_str).collect();
    add("not well", Some(open.join(", ")).filter(|text| !text.is_empty()));
    output::facts(&found.name, &rows);
    Ok(())
}

async fn history(
    location: &Location,
    notification: &str,
    page: &PageArgs,
    status: Option<&str>,
    format: Format,
) -> anyhow::Result<()> {
    let fetch = async |client: &Client, options: &ListOptions| {
        client.notification_history(notification, options).await
    };
    let found = page.fetch(location, status, fetch).await?;
    let header = ["at", "why", "to", "status", "tries", "what"];
    print_page(&found, format, &header, row, format_args!("servo notification history {notification}"))
}

fn row(record: &NotificationRecord) -> Vec<String> {
    let told = record.facts.get("summary").and_then(|text| text.as_str()).unwrap_or_default();
    let what =
        record.last_error.as_ref().map_or_else(|| told.to_owned(), |error| format!("{told} – {error}"));
    vec![
        record.created_at.to_string(),
        record.trigger.clone(),
        record.channel.clone(),
        words(&record.status),
        record.attempts.to_string(),
        what,
    ]
}

async fn test(location: &Location, notification: &str, format: Format) -> anyhow::Result<Exit> {
    let sent = through(location, Need::ChangeProject, async |client| {
        let accepted = client.test_notification(notification, &VersionBody::default()).await?;
        let event = accepted.accepted_event_id.context("a test is always sent anew")?;
        tested(client, notification, event).await
    })
    .await?;
    let arrived = sent.iter().all(|record| record.status == "SENT");
    if format == Format::Json {
        output::json(&Page { items: sent, next_cursor: None })?;
    } else {
        for record in &sent {
            let error = record.last_error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
            output::line(format_args!("{} {}{error}", record.channel, words(&record.status)));
        }
    }
    Ok(if arrived { Exit::Done } else { Exit::Failed })
}

/// The notifications of a test, once it is known what came of all of them.
async fn tested(
    client: &Client,
    notification: &str,
    event: EventId,
) -> anyhow::Result<Vec<NotificationRecord>> {
    let begun = Instant::now();
    loop {
        let page = client.notification_history(notification, &ListOptions::default()).await?;
        let mut mine: Vec<_> =
            page.items.into_iter().filter(|record| record.created_event_id == event).collect();
        let is_over = |record: &NotificationRecord| !matches!(record.status.as_str(), "PENDING" | "SENDING");
        if !mine.is_empty() && mine.iter().all(is_over) {
            mine.sort_by_key(|record| record.destination);
            return Ok(mine);
        }
        if begun.elapsed() > LONGEST_TEST {
            bail!("nobody knows yet what came of it; servo notification history {notification}");
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn create(location: &Location, file: &Path, format: Format) -> anyhow::Result<()> {
    let body = rule_in(file)?;
    let next = format!("servo notification test {} sends a test", body.name);
    named::create(location, &body.name, next, format, async |client| client.create_notification(&body).await)
        .await
}

/// The rule that a file defines.
fn rule_in(file: &Path) -> anyhow::Result<NotificationBody> {
    let text = if file.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin()).context("reading standard input")?
    } else {
        std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?
    };
    serde_json::from_str(&text).with_context(|| format!("{} is no notification rule", file.display()))
}

async fn change(location: &Location, which: &Which, turn: Turn, format: Format) -> anyhow::Result<()> {
    let notification = &which.name;
    let ask = async |client: &Client, body: &VersionBody| match turn {
        Turn::Pause => client.pause_notification(notification, body).await,
        Turn::Resume => client.resume_notification(notification, body).await,
        Turn::Remove => client.delete_notification(notification, body).await,
    };
    named::turn(location, which, turn, "is deleted; its history stays", format, ask).await
}
