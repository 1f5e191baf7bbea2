//! `servo admin log`: looks at a log that cannot be read to its end, and drops what is behind the damage.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};

use anyhow::bail;
use serde_json::json;
use servo_core::Clock;
use servo_engine::event::{EventData, decode_batch};
use servo_projections::Projection;
use servo_projections::rebuild::{RebuildOptions, rebuild};
use servo_runtime::{SystemClock, point_at_latest};
use servo_store::{DamagedLog, FileLog, Layout};

use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};
use crate::owner::{self, Kind};
use crate::projections::rebuild_context;

/// The log.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Read the whole log; where it is damaged, say what is good and what would be dropped, and drop it when told to.
    #[command(after_help = "Examples:\n  servo admin log repair\n  servo admin log repair --yes")]
    Repair {
        /// Drop it without asking.
        #[arg(long, short = 'y')]
        yes: bool,
    },
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    location.must_exist()?;
    let Command::Repair { yes } = command;
    let layout = Layout::new(location.tenant.clone(), location.workspace.clone());
    let Some(damaged) = FileLog::examine(location.dir(), &layout)? else {
        match format {
            Format::Json => output::json(&json!({ "damaged": false }))?,
            Format::Table => output::line(format_args!("the log is whole: there is nothing to repair")),
        }
        return Ok(Exit::Done);
    };
    if damaged.last_good < damaged.boundary {
        bail!("{}\nnothing before it can be read, so there is nothing to go on from", damaged.damage);
    }
    let in_tables = tables_through(location).await;
    let loss = Loss::of(&damaged);
    if format == Format::Table {
        loss.tell(&damaged);
    }
    if in_tables > damaged.last_good && damaged.boundary > 1 {
        bail!(
            "the tables go up to batch {in_tables}, and cannot be made anew: batches before {} were deleted. \
             Restore the log from a backup",
            damaged.boundary
        );
    }
    if !yes && !is_confirmed()? {
        if format == Format::Json {
            output::json(&loss.json(&damaged, None))?;
        }
        eprintln!("nothing was changed; drop it with --yes");
        return Ok(Exit::Failed);
    }
    let last_good = damaged.last_good;
    let told = loss.json(&damaged, None);
    let name = SystemClock.now().to_string().replace([':', '.'], "-");
    let kept = damaged.repair(&name)?;
    let (stores, _ownership) = owner::own(location, Kind::Command).await?;
    let mut stores = stores;
    location.use_storage(&mut stores)?;
    if in_tables > last_good {
        let options = RebuildOptions { log_was_cut: true, resume: false, ..RebuildOptions::default() };
        rebuild(stores.log.as_ref(), &rebuild_context(&stores), &options, &mut |_| {}).await?;
    }
    let pointers = point_at_latest(&stores, true).await?;
    match format {
        Format::Json => {
            let mut told = told;
            told["kept_in"] = json!(kept.display().to_string());
            told["pointers_corrected"] = json!(pointers);
            output::json(&told)?;
        }
        Format::Table => {
            output::line(format_args!("dropped; a copy is in {}", kept.display()));
            if in_tables > last_good {
                output::line(format_args!("the tables were made anew through batch {last_good}"));
            }
            if pointers > 0 {
                output::line(format_args!("{pointers} latest.json were pointed at what counts now"));
            }
        }
    }
    Ok(Exit::Done)
}

/// The last batch that the tables have; 0 without tables that can be read.
async fn tables_through(location: &Location) -> u64 {
    let layout = Layout::new(location.tenant.clone(), location.workspace.clone());
    let blobs = std::sync::Arc::new(servo_store::FileBlobs::new(location.dir(), &layout));
    let tables = Projection::open_latest(blobs, layout).await.ok().flatten();
    tables.map_or(0, |tables| tables.manifest().watermarks.last_seq)
}

/// The batches that would be lost.
struct Loss {
    batches: usize,
    unreadable: usize,
    bytes: u64,
    /// Lowest and highest number.
    numbers: Option<(u64, u64)>,
    /// Events by kind.
    events: BTreeMap<String, u64>,
    runs: Vec<String>,
}

impl Loss {
    fn of(damaged: &DamagedLog) -> Self {
        let (mut events, mut runs, mut unreadable) = (BTreeMap::<String, u64>::new(), Vec::new(), 0);
        for batch in &damaged.dropped {
            let Ok(found) = decode_batch(&batch.events) else {
                unreadable += 1;
                continue;
            };
            for event in found {
                *events.entry(event.data.kind().name().to_owned()).or_default() += 1;
                if let EventData::RunRequested(_) = &event.data
                    && let Some(run) = event.data.run_id()
                {
                    runs.push(run.to_string());
                }
            }
        }
        let numbers = damaged.dropped.iter().filter_map(|batch| batch.seq);
        let numbers = numbers.clone().min().zip(numbers.max());
        let bytes = damaged.dropped.iter().map(|batch| batch.bytes).sum();
        Self { batches: damaged.dropped.len(), unreadable, bytes, numbers, events, runs }
    }

    fn tell(&self, damaged: &DamagedLog) {
        output::line(format_args!("{}", damaged.damage));
        output::line(format_args!("the log is good through batch {}", damaged.last_good));
        let numbers = self.numbers.map_or(String::new(), |(low, high)| format!(", numbered {low} to {high}"));
        output::line(format_args!(
            "behind it are {} lines{numbers}: {} bytes, {} of them unreadable",
            self.batches, self.bytes, self.unreadable
        ));
        for (kind, count) in &self.events {
            output::line(format_args!("  {count} {kind}"));
        }
        for run in &self.runs {
            output::line(format_args!("  begun in it: {run}"));
        }
    }

    fn json(&self, damaged: &DamagedLog, kept: Option<&str>) -> serde_json::Value {
        json!({
            "damaged": true,
            "damage": damaged.damage.to_string(),
            "good_through_batch": damaged.last_good,
            "dropped": {
                "lines": self.batches,
                "unreadable": self.unreadable,
                "bytes": self.bytes,
                "lowest_batch": self.numbers.map(|(low, _)| low),
                "highest_batch": self.numbers.map(|(_, high)| high),
                "events": self.events,
                "runs": self.runs,
            },
            "kept_in": kept,
        })
    }
}

/// Asks whoever sits at the terminal; nobody there means no.
fn is_confirmed() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    eprint!("drop it? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
