//! Measures the figures that Servo promises, the way a user would meet them: durable, validated, logged.
//!
//! `make bench` prints a table and writes `target/bench/results.json`; `make bench FULL=1` adds what takes minutes.

mod automation;
mod backfills;
mod children;
mod conditions;
mod edges;
mod execution;
mod fold;
mod graphs;
mod harness;
mod history;
mod http;
mod lineage;
mod many;
mod partitions;
mod planning;
mod process;
mod remote;
mod results;
mod run_keys;
mod serving;
mod staleness;

use std::path::PathBuf;

use clap::Parser;

use results::Results;

/// Many small things are made and dropped on many threads: this costs half of what the system's allocator does.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Everything that is measured, in this order.
const AREAS: &[&str] = &[
    "fold",
    "planning",
    "conditions",
    "partitions",
    "staleness",
    "run keys",
    "lineage",
    "graphs",
    "edges",
    "history",
    "remote",
    "execution",
    "automation",
    "backfills",
    "serving",
];

/// Measures the figures that Servo promises.
#[derive(Parser)]
struct Options {
    /// Also measure figures that take more than a minute.
    #[arg(long)]
    full: bool,
    /// Output file of the results.
    #[arg(long, default_value = "target/bench/results.json")]
    out: PathBuf,
    /// Only areas whose name contains this, such as `automation`, `backfills` or `serving`.
    #[arg(long)]
    only: Option<String>,
    /// Open the workspace in this directory and report what that cost: a process of its own for a clean RSS.
    #[arg(long, hide = true)]
    open: Option<PathBuf>,
    /// Grow a million partitions, write their tables to this directory, and report what that cost.
    #[arg(long, hide = true)]
    grow_partitions: Option<PathBuf>,
    /// Load them from this directory and report what that cost.
    #[arg(long, hide = true)]
    load_partitions: Option<PathBuf>,
    /// Write a workspace with finished runs to this directory, for the benchmark of the pages.
    #[arg(long, hide = true)]
    grow_history: Option<PathBuf>,
    /// How many runs it has, before one of `--tasks`.
    #[arg(long, hide = true, default_value_t = 1_000_000)]
    runs: usize,
    /// Tasks of its newest run.
    #[arg(long, hide = true, default_value_t = 10_000)]
    tasks: usize,
    /// Look run keys up in the tables of this directory, and report what that cost.
    #[arg(long, hide = true)]
    look_up_run_keys: Option<PathBuf>,
    /// Open the workspace in this directory, which has only schedules, and report what they cost while nothing is due.
    #[arg(long, hide = true)]
    idle_schedules: Option<PathBuf>,
    /// Run nine million edges in this directory, or open what they have left, and report what that cost.
    #[arg(long, hide = true)]
    run_edges: Option<PathBuf>,
    /// Write the tables of ten million partitions to this directory.
    #[arg(long, hide = true)]
    grow_many: Option<PathBuf>,
    /// Ask this server for runs of one tenant as fast as it answers, with the key in `SERVO_KEY`.
    #[arg(long, hide = true)]
    flood: Option<std::net::SocketAddr>,
    /// Open them and report what that cost, and what pages and heat maps do.
    #[arg(long, hide = true)]
    open_many: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if let Some(directory) = &options.open {
        return history::open_and_report(directory).await;
    }
    if let Some(directory) = &options.grow_partitions {
        return partitions::grow(directory).await;
    }
    if let Some(directory) = &options.load_partitions {
        return partitions::load(directory).await;
    }
    if let Some(directory) = &options.grow_history {
        return history::grow(directory, options.runs, options.tasks).await.map(|_| ());
    }
    if let Some(directory) = &options.look_up_run_keys {
        return run_keys::look_up(directory).await;
    }
    if let Some(directory) = &options.run_edges {
        return edges::run(directory).await;
    }
    if let Some(directory) = &options.grow_many {
        return many::grow(directory).await;
    }
    if let Some(directory) = &options.open_many {
        return many::open(directory).await;
    }
    if let Some(address) = options.flood {
        return serving::flood(address).await;
    }
    if let Some(directory) = &options.idle_schedules {
        return automation::idle(directory).await;
    }
    let wanted = |area: &str| options.only.as_deref().is_none_or(|only| area.contains(only));
    let mut results = Results::default();
    for area in AREAS.iter().copied().filter(|area| wanted(area)) {
        let done = match area {
            "fold" => fold::measure(&mut results),
            "planning" => planning::measure(&mut results),
            "conditions" => conditions::measure(&mut results),
            "partitions" => partitions::measure(&mut results, options.full),
            "staleness" => staleness::measure(&mut results),
            "run keys" => run_keys::measure(&mut results).await,
            "lineage" => lineage::measure(&mut results).await,
            "graphs" => graphs::measure(&mut results).await,
            "edges" => edges::measure(&mut results),
            "history" => history::measure(&mut results, options.full).await,
            "remote" => remote::measure(&mut results).await,
            "execution" => execution::measure(&mut results).await,
            "automation" => automation::measure(&mut results).await,
            "backfills" => backfills::measure(&mut results).await,
            "serving" => serving::measure(&mut results, options.full).await,
            _ => unreachable!("every area is measured"),
        };
        results.done(area, done);
    }
    execution::project::remove_all();
    results.print();
    results.write(&options.out)?;
    println!("\nwritten to {}", options.out.display());
    anyhow::ensure!(results.is_whole(), "something could not be measured");
    Ok(())
}
