//! `servo notification`: who is told what went wrong, and what came of telling them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use servo_api::Page;
use servo_api::client::{Client, ListOptions, all_pages, first_pages};
use servo_api::views::{NotificationBody, NotificationRecord, NotificationRule, VersionBody};
use servo_core::EventId;

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};

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
        /// How many.
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
        limit: u16,
        /// Where to go on; the last line of a page says it.
        #[arg(long)]
        cursor: Option<String>,
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
    /// Pause a rule: it tells nothing, and what happens meanwhile is not told later.
    #[command(after_help = "Example:\n  servo notification pause oncall")]
    Pause(Which),
    /// Resume a rule.
    #[command(after_help = "Example:\n  servo notification resume oncall")]
    Resume(Which),
    /// Remove a rule that was created with `servo notification create`. Its history stays.
    #[command(after_help = "Example:\n  servo notification remove oncall")]
    Remove(Which),
}

/// Which rule, as its caller knows it.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// Its name or its id.
    notification: String,
    /// Only if its state has this version; `servo notification show` says it.
    #[arg(long, value_name = "VERSION")]
    expected_state_version: Option<u64>,
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    match command {
        Command::List => list(location, format).await?,
        Command::Show { notification } => show(location, notification, format).await?,
        Command::History { notification, limit, cursor, status } => {
            let which =
                ListOptions { cursor: cursor.clone(), state: status.clone(), ..ListOptions::default() };
            history(location, notification, usize::from(*limit), which, format).await?;
        }
        Command::Test { notification } => return test(location, notification, format).await,
        Command::Create { file } => create(location, file, format).await?,
        Command::Pause(which) => change(location, which, Change::Pause, format).await?,
        Command::Resume(which) => change(location, which, Change::Resume, format).await?,
        Command::Remove(which) => change(location, which, Change::Remove, format).await?,
    }
    Ok(Exit::Done)
}

async fn list(location: &Location, format: Format) -> anyhow::Result<()> {
    let found = through(location, Need::ReadProject, async |client| {
        Ok(all_pages(async |options: &ListOptions| client.notifications(options).await).await?)
    })
    .await?;
    if format == Format::Json {
        return output::json(&Page { items: found, next_cursor: None });
    }
    if found.is_empty() {
        output::line(
            "there are no notification rules; declare one with servo.notify, or `servo notification create` one",
        );
        return Ok(());
    }
    let row = |rule: &NotificationRule| {
        vec![
            rule.name.clone(),
            rule.status.to_lowercase(),
            rule.when.join(", "),
            rule.selection.clone().unwrap_or_else(|| "everything".to_owned()),
            channels(rule),
            rule.last_sent_at.map(|at| at.to_string()).unwrap_or_default(),
        ]
    };
    output::table(
        &["notification", "status", "when", "about", "to", "last sent"],
        &[],
        found.iter().map(row).collect(),
    );
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
        ("status", found.status.to_lowercase()),
        ("when", found.when.join(", ")),
        ("about", found.selection.clone().unwrap_or_else(|| "everything".to_owned())),
        ("to", channels(&found)),
        ("defined by", found.origin.clone()),
        ("id", found.rule_id.to_string()),
        ("state version", found.state_version.to_string()),
        ("at most", format!("{} in an hour", found.max_per_hour)),
        ("last sent", found.last_sent_at.map_or_else(|| "–".to_owned(), |at| at.to_string())),
    ];
    let mut add = |name, value: Option<String>| rows.extend(value.map(|value| (name, value)));
    add("title", found.title.clone());
    add("body", found.body.clone());
    add("description", found.description.clone());
    add("left out", Some(found.left_out).filter(|count| *count > 0).map(|count| count.to_string()));
    add("last error", found.last_error.clone());
    let open: Vec<&str> = found.open.keys().map(String::as_str).collect();
    add("not well", Some(open.join(", ")).filter(|text| !text.is_empty()));
    output::line(&found.name);
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, value) in rows {
        output::line(format_args!("  {name:<width$}  {value}"));
    }
    Ok(())
}

async fn history(
    location: &Location,
    notification: &str,
    limit: usize,
    which: ListOptions,
    format: Format,
) -> anyhow::Result<()> {
    let page = through(location, Need::Read, async |client| {
        let newest = async |options: &ListOptions| client.notification_history(notification, options).await;
        Ok(first_pages(limit, which.clone(), newest).await?)
    })
    .await?;
    if format == Format::Json {
        return output::json(&page);
    }
    output::table(&["at", "why", "to", "status", "tries", "what"], &[], page.items.iter().map(row).collect());
    if let Some(next) = &page.next_cursor {
        output::line(format_args!("\nmore: servo notification history {notification} --cursor {next}"));
    }
    Ok(())
}

fn row(record: &NotificationRecord) -> Vec<String> {
    let told = record.facts.get("summary").and_then(|text| text.as_str()).unwrap_or_default();
    let what =
        record.last_error.as_ref().map_or_else(|| told.to_owned(), |error| format!("{told} – {error}"));
    vec![
        record.created_at.to_string(),
        record.trigger.clone(),
        record.channel.clone(),
        record.status.to_lowercase(),
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
            output::line(format_args!("{} {}{error}", record.channel, record.status.to_lowercase()));
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

async fn create(location: &Location, file: &PathBuf, format: Format) -> anyhow::Result<()> {
    let text = if file.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin()).context("reading standard input")?
    } else {
        std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?
    };
    let body: NotificationBody =
        serde_json::from_str(&text).with_context(|| format!("{} is no notification rule", file.display()))?;
    let accepted =
        through(location, Need::ChangeProject, async |client| Ok(client.create_notification(&body).await?))
            .await?;
    if format == Format::Json {
        return output::json(&accepted);
    }
    output::line(format_args!("{} is defined; servo notification test {0} sends a test", body.name));
    Ok(())
}

#[derive(Clone, Copy)]
enum Change {
    Pause,
    Resume,
    Remove,
}

async fn change(location: &Location, which: &Which, change: Change, format: Format) -> anyhow::Result<()> {
    let rule = &which.notification;
    let body = VersionBody { expected_state_version: which.expected_state_version, client_request_id: None };
    let accepted = through(location, Need::ChangeProject, async |client| {
        Ok(match change {
            Change::Pause => client.pause_notification(rule, &body).await?,
            Change::Resume => client.resume_notification(rule, &body).await?,
            Change::Remove => client.delete_notification(rule, &body).await?,
        })
    })
    .await?;
    if format == Format::Json {
        return output::json(&accepted);
    }
    let done = match (change, accepted.accepted_event_id.is_some()) {
        (Change::Pause, true) => "is paused",
        (Change::Pause, false) => "was paused already",
        (Change::Resume, true) => "is active",
        (Change::Resume, false) => "was active already",
        (Change::Remove, _) => "is removed; its history stays",
    };
    output::line(format_args!("{rule} {done}"));
    Ok(())
}
