//! The `servo` binary: parses, calls, prints. Results go to stdout, talk goes to stderr.

mod assets;
mod backend;
mod demo;
mod deploy;
mod describe;
mod dev;
mod doctor;
mod exit;
mod follow;
mod graph;
mod init;
mod interrupts;
mod live;
mod location;
mod materialize;
mod output;
mod owner;
mod partitions;
mod plan;
mod project;
mod projections;
mod quarantine;
mod reconcile;
mod runs;
mod session;
mod sql;
mod style;
mod summary;
mod time_zones;
mod worker;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use exit::Exit;
use location::Location;
use output::Format;

/// Keeps data assets up to date.
#[derive(Parser)]
#[command(name = "servo", version, propagate_version = true, arg_required_else_help = true, after_help = exit::HELP)]
struct Cli {
    #[command(flatten)]
    location: Location,
    /// Print JSON instead of tables.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Begin a project that runs at once.
    #[command(after_help = "Example:\n  servo init weather && cd weather && servo asset graph")]
    Init(init::Options),
    /// Make data: run what is selected, show how it goes, end with it.
    #[command(
        after_help = "Examples:\n  servo materialize analytics.delays --partition 2013-01-15\n  servo materialize '+analytics.weekly' --partitions 2013-01-01..2013-01-31\n  servo materialize '*' --latest --config least=20 --json"
    )]
    Materialize(materialize::Options),
    /// Serve the project on this machine: HTTP, workers, and the newest code whenever you save.
    #[command(after_help = "Example:\n  servo dev --slots 4")]
    Dev(dev::Options),
    /// Run tasks of a server on this machine.
    #[command(after_help = "Example:\n  servo worker --server http://127.0.0.1:8741 --slots 8")]
    Worker(worker::Options),
    /// Look at what the project declares.
    #[command(subcommand)]
    Asset(assets::Command),
    /// Show what would run, in which order, and why. Changes nothing.
    #[command(
        after_help = "Examples:\n  servo plan analytics.delays --partition 2013-01-15\n  servo plan '+analytics.weekly' --partitions 2013-01-01..2013-01-31\n  servo plan '*' --latest --json"
    )]
    Plan(plan::Options),
    /// Check the project and make it what the workspace runs.
    #[command(after_help = "Examples:\n  servo deploy --dry-run\n  servo deploy")]
    Deploy(deploy::Options),
    /// Look at partitions; add and remove keys of dynamic ones.
    #[command(subcommand)]
    Partition(partitions::Command),
    /// Run a small graph with the in-process executor and show what became of it.
    #[command(after_help = "Example:\n  servo demo --dir /tmp/servo-demo")]
    Demo(demo::Options),
    /// List, follow, cancel and retry runs.
    #[command(subcommand)]
    Run(runs::Command),
    /// Review materializations that checks blocked.
    #[command(subcommand)]
    Quarantine(quarantine::Command),
    /// Let the controllers look once, without a server: state from the tables, decisions into the log.
    #[command(after_help = "Example:\n  servo reconcile --once")]
    Reconcile(reconcile::Options),
    /// Query runs, tasks, partitions and the data of assets with SQL. Changes nothing.
    #[command(
        after_help = "Examples:\n  servo sql --tables\n  servo sql \"select state, count(*) from runs group by state\"\n  servo sql \"select * from raw.flights where _partition = '2013-01-15'\" --csv\n  servo sql - < query.sql"
    )]
    Sql(sql::Options),
    /// Show what commands would run with: project, Python, SDK, state, time zones, server.
    #[command(after_help = "Examples:\n  servo doctor\n  servo doctor --json")]
    Doctor,
    /// Look after a workspace.
    #[command(subcommand)]
    Admin(Admin),
}

#[derive(Subcommand)]
enum Admin {
    /// List, verify and rebuild the tables.
    #[command(subcommand)]
    Projections(projections::Command),
}

impl Command {
    /// Name of the command, shown to others that wait for it.
    fn name(&self) -> &'static str {
        match self {
            Self::Init(_) => "init",
            Self::Materialize(_) => "materialize",
            Self::Dev(_) => "dev",
            Self::Worker(_) => "worker",
            Self::Asset(_) => "asset",
            Self::Plan(_) => "plan",
            Self::Deploy(_) => "deploy",
            Self::Partition(_) => "partition",
            Self::Demo(_) => "demo",
            Self::Run(_) => "run",
            Self::Quarantine(_) => "quarantine",
            Self::Reconcile(_) => "reconcile",
            Self::Sql(_) => "sql",
            Self::Doctor => "doctor",
            Self::Admin(_) => "admin",
        }
    }
}

fn main() -> ExitCode {
    let mut cli = Cli::parse();
    cli.location.command = cli.command.name();
    let filter = EnvFilter::try_from_env("SERVO_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the async runtime cannot start: {error}");
            return Exit::Failed.into();
        }
    };
    let format = if cli.json { Format::Json } else { Format::Table };
    let outcome = runtime.block_on(async {
        let zones = time_zones::install(&cli.location)?;
        match cli.command {
            Command::Init(options) => init::run(&options, format),
            Command::Materialize(options) => materialize::run(&cli.location, &options, format).await,
            Command::Dev(options) => dev::run(&cli.location, &options).await,
            Command::Worker(options) => worker::run(&cli.location, &options).await,
            Command::Quarantine(command) => quarantine::run(&cli.location, &command, format).await,
            Command::Asset(command) => assets::run(&cli.location, &command, format).await,
            Command::Plan(options) => plan::run(&cli.location, &options, format).await,
            Command::Deploy(options) => deploy::run(&cli.location, &options, format).await,
            Command::Partition(command) => partitions::run(&cli.location, &command, format).await,
            Command::Demo(options) => demo::run(&cli.location, &options, format).await,
            Command::Run(command) => runs::run(&cli.location, &command, format).await,
            Command::Reconcile(options) => reconcile::run(&cli.location, &options, format).await,
            Command::Sql(options) => sql::run(&cli.location, &options, format).await,
            Command::Doctor => doctor::run(&cli.location, &zones, format).await,
            Command::Admin(Admin::Projections(command)) => {
                projections::run(&cli.location, &command, format).await
            }
        }
    });
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::failure(&error, format);
            Exit::of_error(&error).into()
        }
    }
}
