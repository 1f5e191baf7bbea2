//! The `servo` binary: parses, calls, prints. Results go to stdout, talk goes to stderr.

mod demo;
mod location;
mod output;
mod projections;
mod reconcile;
mod runs;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use location::Location;
use output::Format;

/// Keeps data assets up to date.
#[derive(Parser)]
#[command(name = "servo", version, propagate_version = true, arg_required_else_help = true)]
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
    /// Run a small graph with the in-process executor and show what became of it.
    #[command(after_help = "Example:\n  servo demo --dir /tmp/servo-demo")]
    Demo(demo::Options),
    /// Look at runs.
    #[command(subcommand)]
    Run(runs::Command),
    /// Let the controllers look once, without a server: state from the tables, decisions into the log.
    #[command(after_help = "Example:\n  servo reconcile --once")]
    Reconcile(reconcile::Options),
    /// Look after a workspace.
    #[command(subcommand)]
    Admin(Admin),
}

#[derive(Subcommand)]
enum Admin {
    /// The tables: what there is, whether it is right, and how to make it anew.
    #[command(subcommand)]
    Projections(projections::Command),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let filter = EnvFilter::try_from_env("SERVO_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the async runtime cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    let format = if cli.json { Format::Json } else { Format::Table };
    let outcome = runtime.block_on(async {
        match cli.command {
            Command::Demo(options) => demo::run(&cli.location, &options, format).await,
            Command::Run(command) => runs::run(&cli.location, &command, format).await,
            Command::Reconcile(options) => reconcile::run(&cli.location, &options, format).await,
            Command::Admin(Admin::Projections(command)) => {
                projections::run(&cli.location, &command, format).await
            }
        }
    });
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
