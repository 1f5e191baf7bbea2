//! `servo-sim`: runs seeds, replays one, looks for planted mistakes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::{Parser, Subcommand};
use servo_core::planted::Mistake;
use servo_sim::campaign::{Report, campaign, notice};
use servo_sim::faults::FaultSet;
use servo_sim::scenario::Scenario;
use servo_sim::seed::{How, Outcome, run};
use servo_sim::shrink::{Cut, shrink};

/// Lines of a trace that are worth showing at the end of a failure.
const SHOWN: usize = 60;

/// Seeds that fail before a campaign is given up.
const ENOUGH: usize = 10;

#[derive(Parser)]
#[command(about = "Deterministic simulation of Servo: the same seed, the same history")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run many seeds, for example: servo-sim run --seeds 100000
    Run {
        /// Number of seeds.
        #[arg(long, default_value_t = 2_000)]
        seeds: u64,
        /// First seed.
        #[arg(long, default_value_t = 0)]
        from: u64,
        /// Threads; all cores by default.
        #[arg(long)]
        jobs: Option<usize>,
    },
    /// Run one seed and print its trace, for example: servo-sim replay 4711
    Replay {
        /// The seed.
        seed: u64,
        /// Plant this mistake.
        #[arg(long)]
        plant: Option<String>,
        /// Leave out these user requests.
        #[arg(long, value_delimiter = ',')]
        without_requests: Vec<usize>,
        /// Leave out these scheduled faults.
        #[arg(long, value_delimiter = ',')]
        without_scheduled_faults: Vec<usize>,
        /// Show the events of the log.
        #[arg(long)]
        log: bool,
        /// Enable only these faults: a set as a number.
        #[arg(long)]
        faults: Option<u64>,
        /// Run it twice, which must give the same result to the bit.
        #[arg(long)]
        twice: bool,
        /// Run it again beside a second workspace, which must not matter.
        #[arg(long)]
        neighbour: bool,
    },
    /// Plant every mistake and count the seeds it takes to detect it
    Plant {
        /// Seeds to try at most.
        #[arg(long, default_value_t = 5_000)]
        most: u64,
    },
}

fn main() {
    let well = match Arguments::parse().command {
        Command::Run { seeds, from, jobs } => run_many(from, seeds, jobs),
        Command::Replay {
            seed,
            plant,
            log,
            without_requests,
            without_scheduled_faults,
            faults,
            twice,
            neighbour,
        } => {
            let cut = Cut {
                requests: without_requests,
                scheduled_faults: without_scheduled_faults,
                faults: faults.map(FaultSet::from_bits),
            };
            let planted = plant.as_deref().map(mistake);
            replay(seed, How { planted, traced: true, twice, neighbour, ..How::default() }, &cut, log)
        }
        Command::Plant { most } => plant_all(most),
    };
    std::process::exit(i32::from(!well));
}

fn run_many(from: u64, seeds: u64, jobs: Option<usize>) -> bool {
    let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let (start, done) = (Instant::now(), AtomicU64::new(0));
    let tell = |outcome: &Outcome| {
        if let Some(first) = outcome.wrong.first() {
            eprintln!("seed {} failed: {first}", outcome.seed);
        }
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(10_000) {
            eprintln!("{done} of {seeds} seeds, {:.0} s", start.elapsed().as_secs_f64());
        }
    };
    let report = campaign(from..from + seeds, jobs, ENOUGH, &tell);
    summarize(&report, start.elapsed().as_secs_f64(), jobs);
    report.failed.iter().for_each(explain);
    report.failed.is_empty() && report.unused_faults().is_empty()
}

fn summarize(report: &Report, took: f64, jobs: usize) {
    let each = report.steps as f64 / took / jobs as f64;
    println!(
        "{} seeds, {} steps in {took:.1} s on {jobs} threads: {each:.0} steps/s on each; {} run twice, {} beside a \
         neighbour; {} failed",
        report.seeds,
        report.steps,
        report.twice,
        report.beside,
        report.failed.len()
    );
    for (fault, times) in &report.injected {
        println!("  {:<20} {times:>10}", format!("{fault:?}"));
    }
    for fault in report.unused_faults() {
        println!("  {:<20} never took effect", format!("{fault:?}"));
    }
}

/// Prints the failure, the shortest story that still fails, and the command that reproduces it.
fn explain(outcome: &Outcome) {
    println!("\nseed {} failed:", outcome.seed);
    outcome.wrong.iter().take(5).for_each(|wrong| println!("  {wrong}"));
    let (cut, least) = shrink(outcome, 200);
    println!("{}", outcome.command(&cut));
    let traced = run(&cut.of(&Scenario::of(outcome.seed)), How { traced: true, ..outcome.how });
    println!("cut down to {} steps, of which the last are:", least.steps);
    let skipped = traced.trace.len().saturating_sub(SHOWN);
    traced.trace.iter().skip(skipped).for_each(|line| println!("  {line}"));
    traced.wrong.iter().take(5).for_each(|wrong| println!("  => {wrong}"));
}

fn mistake(wanted: &str) -> Mistake {
    let found = Mistake::ALL.into_iter().find(|mistake| format!("{mistake:?}") == wanted);
    found.unwrap_or_else(|| panic!("there is no mistake {wanted}; there are {:?}", Mistake::ALL))
}

fn replay(seed: u64, how: How, cut: &Cut, log: bool) -> bool {
    let scenario = cut.of(&Scenario::of(seed));
    println!("{scenario:#?}");
    let outcome = run(&scenario, how);
    outcome.trace.iter().for_each(|line| println!("{line}"));
    for batch in outcome.log.iter().filter(|_| log) {
        println!("batch {} of epoch {}: {}", batch.seq, batch.epoch, String::from_utf8_lossy(&batch.payload));
    }
    println!("{} steps, {} batches, hash {:016x}", outcome.steps, outcome.batches, outcome.hash);
    outcome.wrong.iter().for_each(|wrong| println!("=> {wrong}"));
    outcome.wrong.is_empty()
}

fn plant_all(most: u64) -> bool {
    let mut all = true;
    for mistake in Mistake::ALL {
        match notice(mistake, most) {
            Some((seeds, outcome)) => {
                let first: String =
                    outcome.wrong.first().map_or("", String::as_str).chars().take(120).collect();
                println!("{:<28} noticed after {seeds:>5} seeds: {first}", format!("{mistake:?}"));
            }
            None => {
                println!("{:<28} not noticed in {most} seeds", format!("{mistake:?}"));
                all = false;
            }
        }
    }
    all
}
