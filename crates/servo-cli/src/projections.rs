//! `servo admin projections`: lists, verifies and rebuilds the tables.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use servo_projections::rebuild::{
    Mode, Progress, RebuildContext, RebuildOptions, TableStatus, VerifyReport, list, rebuild, verify,
};
use servo_runtime::{DataReport, Stores, SystemClock, point_at_latest, verify_data};
use servo_store::SystemPutIds;

use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};
use crate::owner::{self, Kind, Ownership};

/// The tables.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Tables with their files, rows and bytes.
    #[command(after_help = "Example:\n  servo admin projections list --json")]
    List,
    /// Compare every row with the log, every file with its checksum, and data with the rows. Changes nothing; exit code 1
    /// if they differ.
    #[command(after_help = "Example:\n  servo admin projections verify")]
    Verify,
    /// Rebuild all tables from the log.
    #[command(
        after_help = "Examples:\n  servo admin projections rebuild\n  servo admin projections rebuild --online"
    )]
    Rebuild {
        /// Rebuild beside the server that writes the workspace.
        #[arg(long)]
        online: bool,
        /// Start over even if an earlier rebuild was interrupted.
        #[arg(long)]
        fresh: bool,
        /// Undecodable batches per million that are tolerated, skipped and reported.
        #[arg(long, default_value_t = 0)]
        max_errors_ppm: u64,
    },
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    match command {
        Command::List => {
            let stores = location.look()?;
            print_tables(&list(stores.blobs, stores.layout).await?, format)?;
            Ok(Exit::Done)
        }
        Command::Verify => {
            let mut stores = location.look()?;
            location.use_storage(&mut stores)?;
            let report = verify(stores.log.as_ref(), &rebuild_context(&stores)).await?;
            let data = verify_data(&stores).await?;
            print_verification(&report, &data, format)?;
            Ok(if report.is_ok() && data.is_ok() { Exit::Done } else { Exit::Failed })
        }
        Command::Rebuild { online, fresh, max_errors_ppm } => {
            let (mut stores, _ownership) = match online {
                true => (location.look()?, None),
                false => owned(location).await?,
            };
            location.use_storage(&mut stores)?;
            let options = RebuildOptions {
                mode: if *online { Mode::Online } else { Mode::Offline },
                resume: !fresh,
                max_errors_ppm: *max_errors_ppm,
                ..RebuildOptions::default()
            };
            stop_on_ctrl_c(&options.abort);
            let report =
                rebuild(stores.log.as_ref(), &rebuild_context(&stores), &options, &mut progress).await?;
            eprintln!("rebuilt through batch {} as revision {}", report.through, report.revision);
            let pointers = point_at_latest(&stores, false).await?;
            if pointers > 0 {
                eprintln!("{pointers} latest.json were pointed at what counts");
            }
            for sample in &report.error_samples {
                eprintln!("skipped: {sample}");
            }
            print_tables(&report.tables, format)?;
            Ok(Exit::Done)
        }
    }
}

/// The stores of a workspace that must exist, with this process as its one writer.
async fn owned(location: &Location) -> anyhow::Result<(Stores, Option<Ownership>)> {
    location.must_exist()?;
    let (stores, ownership) = owner::own(location, Kind::Command).await?;
    Ok((stores, Some(ownership)))
}

pub(crate) fn rebuild_context(stores: &Stores) -> RebuildContext {
    RebuildContext {
        blobs: stores.blobs.clone(),
        layout: stores.layout.clone(),
        put_ids: Arc::new(SystemPutIds::default()),
        clock: Arc::new(SystemClock),
    }
}

/// An interrupted rebuild leaves a checkpoint to resume from.
fn stop_on_ctrl_c(abort: &Arc<AtomicBool>) {
    let abort = abort.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            abort.store(true, Ordering::Release);
        }
    });
}

/// One line that is rewritten on a terminal; nothing otherwise.
fn progress(now: Progress) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{:?}: batch {} of {}\x1b[K\r", now.phase, now.through, now.of);
    }
}

fn print_tables(tables: &[TableStatus], format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        let tables: Vec<_> = tables
            .iter()
            .map(|table| {
                serde_json::json!({
                    "table": table.table,
                    "rows": table.rows,
                    "bytes": table.bytes,
                    "base_files": table.base_files,
                    "l0_files": table.l0_files,
                    "history_files": table.history_files.iter().map(|(_, files)| files).sum::<u64>(),
                    "last_seq": table.last_seq,
                })
            })
            .collect();
        return output::json(&serde_json::json!({ "tables": tables }));
    }
    if tables.is_empty() {
        output::line(format_args!("no tables yet"));
        return Ok(());
    }
    output::table(
        &["table", "rows", "bytes", "base", "l0", "history", "through batch"],
        &[1, 2, 3, 4, 5, 6],
        tables
            .iter()
            .map(|table| {
                vec![
                    table.table.clone(),
                    table.rows.to_string(),
                    table.bytes.to_string(),
                    table.base_files.to_string(),
                    table.l0_files.to_string(),
                    table.history_files.iter().map(|(_, files)| files).sum::<u64>().to_string(),
                    table.last_seq.to_string(),
                ]
            })
            .collect(),
    );
    Ok(())
}

fn print_verification(report: &VerifyReport, data: &DataReport, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(&serde_json::json!({
            "ok": report.is_ok() && data.is_ok(),
            "revision": report.revision,
            "through_batch": report.through,
            "files": report.files,
            "damaged": report.damaged,
            "orphans": report.orphans,
            "undecodable": report.undecodable,
            "data": { "partitions": data.partitions, "differing": data.differing, "samples": data.samples },
            "tables": report.tables.iter().map(|table| serde_json::json!({
                "table": table.table,
                "expected": table.expected,
                "found": table.found,
                "missing": table.missing,
                "unexpected": table.unexpected,
                "differing": table.differing,
                "samples": table.samples,
            })).collect::<Vec<_>>(),
        }));
    }
    for problem in report.damaged.iter().chain(&report.undecodable) {
        output::line(format_args!("{problem}"));
    }
    output::table(
        &["table", "expected", "found", "missing", "unexpected", "differing"],
        &[1, 2, 3, 4, 5],
        report
            .tables
            .iter()
            .map(|table| {
                vec![
                    table.table.clone(),
                    table.expected.to_string(),
                    table.found.to_string(),
                    table.missing.to_string(),
                    table.unexpected.to_string(),
                    table.differing.to_string(),
                ]
            })
            .collect(),
    );
    let verdict =
        if report.is_ok() { "the tables are what the log says" } else { "the tables differ from the log" };
    output::line(format_args!(
        "\n{verdict}, through batch {} ({} files checked)",
        report.through, report.files
    ));
    for sample in report.tables.iter().flat_map(|table| &table.samples) {
        output::line(format_args!("  {sample}"));
    }
    match data.is_ok() {
        true => {
            output::line(format_args!("the data of {} partitions is what the tables say", data.partitions))
        }
        false => output::line(format_args!(
            "the data of {} of {} partitions is not what the tables say",
            data.differing, data.partitions
        )),
    }
    for sample in &data.samples {
        output::line(format_args!("  {sample}"));
    }
    Ok(())
}
