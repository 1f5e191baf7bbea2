//! `servo automation`: assets that are made without anybody asking, and why they are or are not.

mod play;

use servo_api::client::{Client, ListOptions};
use servo_api::views::{Condition, ExplainedCondition, PauseConditionBody, Trace};
use servo_core::AssetKey;

use crate::backend::{Need, note_without_server, through};
use crate::exit::Exit;
use crate::lists::{PageArgs, fetch_all, more, print_all};
use crate::location::Location;
use crate::output::{self, Format, words};

/// Partitions that `explain` names one by one.
const NAMED: usize = 10;

/// Look at automation conditions of assets: list, explain, pause, resume.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List the assets that have an automation condition.
    #[command(after_help = "Example:\n  servo automation list")]
    List,
    /// Say why the condition of an asset holds or not at this moment, part by part.
    #[command(
        after_help = "Examples:\n  servo automation explain analytics.delays\n  servo automation explain analytics.delays --partition 2013-01-15"
    )]
    Explain {
        /// The asset.
        #[arg(value_parser = asset)]
        asset: AssetKey,
        /// One partition, instead of the newest.
        #[arg(short, long, value_name = "KEY")]
        partition: Option<String>,
        /// How many of the newest partitions are looked at.
        #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u16).range(1..=1000))]
        newest: u16,
    },
    /// Show what the condition of an asset requested, newest first.
    #[command(after_help = "Example:\n  servo automation history analytics.delays")]
    History {
        /// The asset.
        #[arg(value_parser = asset)]
        asset: AssetKey,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Pause the automation of an asset: its condition requests nothing.
    #[command(
        after_help = "Example:\n  servo automation pause analytics.delays --reason 'the source is down'"
    )]
    Pause(Which),
    /// Resume the automation of an asset. What changed meanwhile is requested once.
    #[command(after_help = "Example:\n  servo automation resume analytics.delays")]
    Resume(Which),
    /// Play a story against the conditions of a project, for `servo.testing.Story`. Reads it from standard input.
    #[command(hide = true)]
    Play,
}

/// Which asset, as its caller knows it.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// The asset.
    #[arg(value_parser = asset)]
    asset: AssetKey,
    /// Why; `servo audit` shows it.
    #[arg(long, default_value = "")]
    reason: String,
    /// Only if its state has this version; `servo automation explain --json` says it.
    #[arg(long, value_name = "VERSION")]
    expected_state_version: Option<u64>,
}

fn asset(text: &str) -> Result<AssetKey, String> {
    AssetKey::parse(text).map_err(|error| error.to_string())
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    match command {
        Command::List => list(location, format).await?,
        Command::Explain { asset, partition, newest } => {
            explain(location, asset, partition.as_deref(), usize::from(*newest), format).await?;
        }
        Command::History { asset, page } => history(location, asset, page, format).await?,
        Command::Pause(which) => change(location, which, true, format).await?,
        Command::Resume(which) => change(location, which, false, format).await?,
        Command::Play => play::play()?,
    }
    Ok(Exit::Done)
}

async fn list(location: &Location, format: Format) -> anyhow::Result<()> {
    let found = fetch_all(location, async |client, options| client.conditions(options).await).await?;
    let row = |condition: &Condition| {
        vec![
            condition.asset.to_string(),
            words(&condition.status),
            condition.condition.clone(),
            condition.last_requested_at.map(|at| at.to_string()).unwrap_or_default(),
            condition.last_error.clone().unwrap_or_default(),
        ]
    };
    let header = ["asset", "status", "condition", "last requested", "last error"];
    let nothing = "no asset has an automation condition; declare one with automation=servo.eager()";
    if print_all(found, format, nothing, &header, row)? {
        note_without_server(location, "no condition is evaluated").await?;
    }
    Ok(())
}

async fn explain(
    location: &Location,
    asset: &AssetKey,
    partition: Option<&str>,
    newest: usize,
    format: Format,
) -> anyhow::Result<()> {
    let found = through(location, Need::ReadProject, async |client| {
        Ok(client.explain_condition(asset, partition, newest).await?)
    })
    .await?;
    if format == Format::Json {
        return output::json(&found);
    }
    output::line(format_args!("{}: {}", found.condition.asset, found.condition.condition));
    if found.condition.status != "ACTIVE" {
        output::line("its automation is paused; `servo automation resume` goes on");
    }
    if let Some(error) = &found.condition.last_error {
        output::line(format_args!("the last request failed: {error}"));
    }
    output::line("");
    tree(&found.trace, 0);
    output::line("");
    partitions(&found);
    Ok(())
}

fn tree(trace: &Trace, depth: usize) {
    let sign = if trace.of > 0 && trace.holds == trace.of {
        "✓"
    } else if trace.holds == 0 {
        "✗"
    } else {
        "~"
    };
    let count = if trace.of > 1 { format!(" {} of {}", trace.holds, trace.of) } else { String::new() };
    let since = trace.since.map(|at| format!(" since {at}")).unwrap_or_default();
    output::line(format_args!("{}{sign} {}{count}{since}", "  ".repeat(depth), trace.label));
    trace.parts.iter().for_each(|part| tree(part, depth + 1));
}

fn partitions(found: &ExplainedCondition) {
    let about = found.partitions.iter().rev().take(NAMED);
    for partition in about {
        let what = partition.partition.as_deref().unwrap_or("it");
        match &partition.held_back {
            Some(why) => output::line(format_args!("{what} is not requested: {why}")),
            None => output::line(format_args!("{what} is about to be requested")),
        }
    }
    let more = found.partitions.len().saturating_sub(NAMED);
    if more > 0 {
        output::line(format_args!("and {more} more; --partition KEY explains one"));
    }
}

async fn history(
    location: &Location,
    asset: &AssetKey,
    page: &PageArgs,
    format: Format,
) -> anyhow::Result<()> {
    let fetch =
        async |client: &Client, options: &ListOptions| client.condition_evaluations(asset, options).await;
    let page = page.fetch(location, None, fetch).await?;
    if format == Format::Json {
        return output::json(&page);
    }
    if page.items.is_empty() {
        output::line(format_args!("the condition of {asset} has requested nothing yet"));
        return Ok(());
    }
    let rows = page.items.iter().map(|row| {
        let keys = row.partition_keys.first().zip(row.partition_keys.last());
        let keys =
            keys.map(|(first, last)| if first == last { first.clone() } else { format!("{first} … {last}") });
        vec![
            row.evaluated_at.to_string(),
            words(&row.status),
            row.partitions.to_string(),
            keys.unwrap_or_default(),
            row.run_id.map(|run| run.to_string()).or_else(|| row.reason.clone()).unwrap_or_default(),
        ]
    });
    output::table(&["at", "status", "partitions", "which", "run"], &[2], rows.collect());
    more(&page, format_args!("servo automation history {asset}"));
    Ok(())
}

async fn change(location: &Location, which: &Which, paused: bool, format: Format) -> anyhow::Result<()> {
    let body = PauseConditionBody {
        expected_state_version: which.expected_state_version,
        reason: which.reason.clone(),
        client_request_id: None,
    };
    let accepted = through(location, Need::ChangeProject, async |client| {
        Ok(client.pause_condition(&which.asset, paused, &body).await?)
    })
    .await?;
    if format == Format::Json {
        return output::json(&accepted);
    }
    let done = match (paused, accepted.accepted_event_id.is_some()) {
        (true, true) => "is paused",
        (true, false) => "was paused already",
        (false, true) => "is active",
        (false, false) => "was active already",
    };
    output::line(format_args!("the automation of {} {done}", which.asset));
    Ok(())
}
