//! `servo partition wipe|mark|undo`: what somebody says about partitions, without a run.

use std::io::{IsTerminal, Write};

use servo_api::views::{MarkAs, MarkBody, PartitionsOfBody, PartitionsSet, UndoBody, WipeBody, Wiped};
use servo_core::{AssetKey, EventId};

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};
use crate::which;

/// Which partitions of an asset.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// A partition, such as 2013-01-15, 2013-01 or region=eu; may be given several times.
    #[arg(short = 'p', long = "partition", value_name = "KEY")]
    keys: Vec<String>,
    /// A range of partitions, both ends included; either may be left open.
    #[arg(long = "partitions", value_name = "FROM..TO")]
    ranges: Vec<String>,
    /// All partitions.
    #[arg(long)]
    all: bool,
}

impl Which {
    fn body(&self, outside: bool) -> PartitionsOfBody {
        // A range is a range under either name.
        let (ranges, keys) = self.keys.iter().cloned().partition(|key| key.contains(".."));
        let ranges: Vec<String> = ranges;
        PartitionsOfBody {
            keys,
            ranges: self.ranges.iter().cloned().chain(ranges).collect(),
            all: self.all,
            outside,
        }
    }
}

/// Options of `servo partition wipe`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  servo partition wipe raw.flights --partition 2013-01-15\n  \
    servo partition wipe raw.flights --partitions 2013-01-01..2013-01-31 --keep-data\n  \
    servo partition wipe raw.flights --outside-definition --yes")]
pub(crate) struct Wipe {
    /// The asset.
    #[arg(value_parser = AssetKey::parse)]
    asset: AssetKey,
    #[command(flatten)]
    which: Which,
    /// The partitions that the definition of the asset does not have any more.
    #[arg(long)]
    outside_definition: bool,
    /// Leave the data where it is: only the status goes, and `servo partition undo` gives it back.
    #[arg(long)]
    keep_data: bool,
    /// Also while runs are at work on them: what those make does not count.
    #[arg(long)]
    force: bool,
    /// Why, for the audit.
    #[arg(long, default_value = "")]
    reason: String,
    /// Do not ask.
    #[arg(long, short = 'y')]
    yes: bool,
    /// Say what would go, and change nothing.
    #[arg(long)]
    dry_run: bool,
}

/// Options of `servo partition mark`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  servo partition mark raw.flights --partitions 2012-01-01..2012-12-31 --as materialized \
    --reason \"loaded by hand\"\n  servo partition mark raw.flights --partition 2013-01-15 --as failed"
)]
pub(crate) struct Mark {
    /// The asset.
    #[arg(value_parser = AssetKey::parse)]
    asset: AssetKey,
    #[command(flatten)]
    which: Which,
    /// What they are: materialized, whoever has made them, or failed, so that they are made again.
    #[arg(long = "as", value_name = "STATUS", value_parser = mark_as)]
    mark_as: MarkAs,
    /// Why, for the audit.
    #[arg(long, default_value = "")]
    reason: String,
}

/// Options of `servo partition undo`.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  servo partition undo raw.flights\n  servo partition undo raw.flights --change 01JHKM51000000000000000008"
)]
pub(crate) struct Undo {
    /// The asset.
    #[arg(value_parser = AssetKey::parse)]
    asset: AssetKey,
    /// The wipe or the mark: the id that was printed, the beginning of it, or latest [default: the last that can be
    /// undone].
    #[arg(long)]
    change: Option<which::Which<EventId>>,
}

fn mark_as(text: &str) -> Result<MarkAs, String> {
    match text {
        "materialized" => Ok(MarkAs::Materialized),
        "failed" => Ok(MarkAs::Failed),
        _ => Err("it is materialized or failed".to_owned()),
    }
}

pub(crate) async fn wipe(location: &Location, options: &Wipe, format: Format) -> anyhow::Result<Exit> {
    let Wipe { asset, keep_data, force, reason, .. } = options;
    let body = WipeBody {
        partitions: options.which.body(options.outside_definition),
        keep_data: *keep_data,
        force: *force,
        reason: reason.clone(),
        client_request_id: None,
    };
    if options.dry_run || !options.yes {
        let would = through(location, Need::ReadProject, async |client| {
            Ok(client.preview_wipe(asset, &body.partitions).await?)
        })
        .await?;
        if options.dry_run || would.count == 0 {
            return shown(options, &would, format);
        }
        eprintln!("this wipes {}{}", what(asset, &would), consequence(&would, *keep_data));
        if !is_confirmed()? {
            eprintln!("nothing was changed; wipe with --yes");
            return Ok(Exit::Failed);
        }
    }
    let wiped = through(location, Need::ChangeProject, async |client| {
        Ok(client.wipe_partitions(asset, &body).await?)
    })
    .await?;
    shown(options, &wiped, format)
}

fn shown(options: &Wipe, wiped: &Wiped, format: Format) -> anyhow::Result<Exit> {
    if format == Format::Json {
        output::json(wiped)?;
        return Ok(Exit::Done);
    }
    let asset = &options.asset;
    match (wiped.count, &wiped.accepted.accepted_event_id) {
        (0, _) => {
            output::line(format_args!("nothing to wipe: nothing is known of these partitions of {asset}"))
        }
        (_, None) => output::line(format_args!(
            "would wipe {}{}",
            what(asset, wiped),
            consequence(wiped, options.keep_data)
        )),
        (count, Some(event)) => {
            output::line(format_args!("wiped {count} partition{} of {asset}", plural(count)));
            if options.keep_data {
                output::line(format_args!("undo: servo partition undo {asset} --change {event}"));
            }
        }
    }
    Ok(Exit::Done)
}

fn plural(count: u64) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The partitions in words: how many of which asset, and between which keys.
fn what(asset: &AssetKey, wiped: &Wiped) -> String {
    let between = match (&wiped.first, &wiped.last) {
        (Some(first), Some(last)) if first == last => format!(" ({first})"),
        (Some(first), Some(last)) => format!(" ({first} to {last})"),
        (Some(_), None) | (None, Some(_)) | (None, None) => return asset.to_string(),
    };
    let outside = match wiped.outside {
        0 => String::new(),
        count => format!(", {count} of them outside of its definition"),
    };
    format!("{} partition{} of {asset}{between}{outside}", wiped.count, plural(wiped.count))
}

fn consequence(wiped: &Wiped, keep_data: bool) -> String {
    match (keep_data, wiped.with_data) {
        (true, _) => "; their data stays, and it can be undone".to_owned(),
        (false, 0) => "; there is no data to remove, but it cannot be undone".to_owned(),
        (false, count) => format!("; the data of {count} is removed, and that cannot be undone"),
    }
}

/// Asks, if somebody is there to answer.
fn is_confirmed() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    eprint!("go on? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

pub(crate) async fn mark(location: &Location, options: &Mark, format: Format) -> anyhow::Result<Exit> {
    let body = MarkBody {
        partitions: options.which.body(false),
        mark_as: options.mark_as,
        reason: options.reason.clone(),
        client_request_id: None,
    };
    let marked = through(location, Need::ChangeProject, async |client| {
        Ok(client.mark_partitions(&options.asset, &body).await?)
    })
    .await?;
    let what = match options.mark_as {
        MarkAs::Materialized => "materialized",
        MarkAs::Failed => "failed",
    };
    let (asset, count) = (&options.asset, marked.count);
    set(&marked, format, &format!("marked {count} partition{} of {asset} as {what}", plural(count)))?;
    if let (Format::Table, Some(event)) = (format, &marked.accepted.accepted_event_id) {
        output::line(format_args!("undo: servo partition undo {asset} --change {event}"));
    }
    Ok(Exit::Done)
}

pub(crate) async fn undo(location: &Location, options: &Undo, format: Format) -> anyhow::Result<Exit> {
    let undone = through(location, Need::Change, async |client| {
        let change = match &options.change {
            Some(which) => which.find(client, &options.asset).await?,
            None => None,
        };
        let body = UndoBody { change, client_request_id: None };
        Ok(client.undo_partitions(&options.asset, &body).await?)
    })
    .await?;
    let (asset, count) = (&options.asset, undone.count);
    set(&undone, format, &format!("{count} partition{} of {asset} are what they were", plural(count)))?;
    Ok(Exit::Done)
}

fn set(done: &PartitionsSet, format: Format, words: &str) -> anyhow::Result<()> {
    match format {
        Format::Json => output::json(done),
        Format::Table => {
            output::line(words);
            Ok(())
        }
    }
}
