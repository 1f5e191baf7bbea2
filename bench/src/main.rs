//! Measures the figures that Servo promises, the way a user would meet them: durable, validated, logged.
//!
//! `make bench` prints a table and writes `target/bench/results.json`; `make bench FULL=1` adds what takes minutes.

mod conditions;
mod execution;
mod fold;
mod graphs;
mod harness;
mod history;
mod lineage;
mod partitions;
mod planning;
mod remote;
mod results;
mod run_keys;
mod staleness;

use std::path::PathBuf;

use clap::Parser;

use results::Results;

/// Measures the figures that Servo promises.
#[derive(Parser)]
struct Options {
    /// Also measure figures that take more than a minute.
    #[arg(long)]
    full: bool,
    /// Output file of the results.
    #[arg(long, default_value = "target/bench/results.json")]
    out: PathBuf,
    /// Only areas whose name contains this.
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
    let wanted = |area: &str| options.only.as_deref().is_none_or(|only| area.contains(only));
    let mut results = Results::default();
    if wanted("fold") {
        fold::measure(&mut results)?;
    }
    if wanted("planning") {
        planning::measure(&mut results)?;
    }
    if wanted("conditions") {
        conditions::measure(&mut results)?;
    }
    if wanted("partitions") {
        partitions::measure(&mut results)?;
    }
    if wanted("staleness") {
        staleness::measure(&mut results)?;
    }
    if wanted("run keys") {
        run_keys::measure(&mut results).await?;
    }
    if wanted("lineage") {
        lineage::measure(&mut results).await?;
    }
    if wanted("graphs") {
        graphs::measure(&mut results).await?;
    }
    if wanted("history") {
        history::measure(&mut results, options.full).await?;
    }
    if wanted("remote") {
        remote::measure(&mut results).await?;
    }
    if wanted("execution") {
        execution::measure(&mut results).await?;
    }
    results.print();
    results.write(&options.out)?;
    println!("\nwritten to {}", options.out.display());
    Ok(())
}
