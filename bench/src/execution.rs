//! How long it takes from a command or a request to data: the real binary, real Python, everything durable.

pub(crate) mod project;
pub(crate) mod server;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use serde_json::json;
use servo_core::partitions::Span;
use servo_core::{PartitionsDef, Timestamp};

use crate::http::Connection;
use crate::process::servo;
use crate::results::{Better, Results};
use project::Project;
use server::Server;

const AREA: &str = "execution";
const PARTITIONS: usize = 2_000;
const DAYS: usize = 365;
const YEAR: &str = "2024-01-01..2024-12-30";
/// Fresh projects whose first run is measured.
const FRESH: usize = 3;

/// Measures execution from outside.
pub(crate) async fn measure(results: &mut Results) -> anyhow::Result<()> {
    let one = Project::one()?;
    let done = commands(results, &one);
    results.done("execution, commands", done);
    let done = shapes(results).await;
    results.done("execution, graphs", done);
    let done = days(results).await;
    results.done("execution, days", done);
    let done = syncs(results).await;
    results.done("execution, syncs", done);
    let done = warm_server(results, &one).await;
    results.done("execution, a warm server", done);
    let done = nothing(results).await;
    results.done("execution, nothing", done);
    Ok(())
}

fn commands(results: &mut Results, one: &Project) -> anyhow::Result<()> {
    let version = median(20, || {
        let begun = Instant::now();
        let status = servo()?.arg("--version").stdout(Stdio::null()).status()?;
        ensure!(status.success(), "servo --version failed");
        Ok(begun.elapsed())
    })?;
    results.add(AREA, "servo --version", (millis(version), "ms"), Better::Lower, 10.0);

    let cold = median(20, || {
        let begun = Instant::now();
        let mut command = servo()?;
        command.args(["materialize", "bench.one", "--project"]).arg(one.root());
        let output = command.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(begun.elapsed())
    })?;
    results.add(AREA, "cold servo materialize of one asset", (millis(cold), "ms"), Better::Lower, 110.0);
    Ok(())
}

/// A project that is made anew for each server.
type Make = fn() -> anyhow::Result<Project>;

async fn shapes(results: &mut Results) -> anyhow::Result<()> {
    let shapes: [(&str, Make, usize, f64, Option<f64>); 3] = [
        ("chain of 40 assets, trigger to done", || Project::chain(40), 15, 80.0, None),
        ("1 to 500 to 1, trigger to done", || Project::fan(500), 7, 500.0, Some(800.0)),
        (
            "1,000 assets in 10 layers, 3 upstream each",
            || Project::layers(10, 100),
            7,
            1_000.0,
            Some(1_600.0),
        ),
    ];
    for (what, make, rounds, warm, fresh) in shapes {
        let mut firsts = Vec::new();
        for _ in 1..if fresh.is_some() { FRESH } else { 1 } {
            let project = make()?;
            firsts.push(Server::start_fresh(&project, 2).await?.run("*", &[]).await?);
        }
        let project = make()?;
        let server = Server::start_fresh(&project, 2).await?;
        firsts.push(server.run("*", &[]).await?);
        let mut times = Vec::new();
        for _ in 0..rounds {
            times.push(server.run("*", &[]).await?);
        }
        results.add(AREA, what, (millis(middle(times)), "ms"), Better::Lower, warm);
        if let Some(fresh) = fresh {
            let what = format!("{what}, first run of a fresh project");
            results.add(AREA, what, (millis(middle(firsts)), "ms"), Better::Lower, fresh);
        }
    }
    Ok(())
}

/// A year by the day: in one run, and in a run for each day that is asked for by itself.
async fn days(results: &mut Results) -> anyhow::Result<()> {
    let project = Project::days()?;
    let server = Server::start_fresh(&project, 2).await?;
    let first = server.run("bench.daily", &[YEAR]).await?;
    let mut times = Vec::new();
    for _ in 0..7 {
        times.push(server.run("bench.daily", &[YEAR]).await?);
    }
    let what = "365 partitions in one run";
    results.add(AREA, what, (millis(middle(times)), "ms"), Better::Lower, 350.0);
    results.note(AREA, format!("{what}, for the first time"), (millis(first), "ms"), Better::Lower);

    let (address, token) = server.address();
    let mut connection = Connection::open(address, token).await?;
    let days = PartitionsDef::Daily { span: Span::new("2024-01-01") }.validate()?;
    let keys: Vec<String> = days.page(0, DAYS, Timestamp::MAX).iter().map(ToString::to_string).collect();
    let mut times = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        let mut runs = Vec::new();
        for key in &keys {
            let body = json!({ "selection": "bench.daily", "partitions": { "keys": [key] } });
            let accepted = connection.post("/api/v1/runs", &body).await?.json()?;
            runs.push(accepted["run_id"].as_str().context("a run")?.to_owned());
        }
        for run in runs {
            until_succeeded(&mut connection, &run).await?;
        }
        times.push(begun.elapsed());
    }
    let what = "365 runs, triggered one after the other over HTTP";
    results.add(AREA, what, (millis(middle(times)), "ms"), Better::Lower, 800.0);
    Ok(())
}

async fn until_succeeded(connection: &mut Connection, run: &str) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        let found = connection.get(&format!("/api/v1/runs/{run}")).await?.json()?;
        match found["state"].as_str() {
            Some("SUCCEEDED") => return Ok(()),
            Some("FAILED" | "CANCELLED") | None => bail!("the run ended wrongly: {found}"),
            Some(_) => ensure!(begun.elapsed() < Duration::from_secs(60), "the run does not end: {found}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How often a server asks the disk to write, for each of 365 partitions in one run: `strace` counts it, and stops
/// nothing else.
async fn syncs(results: &mut Results) -> anyhow::Result<()> {
    let project = Project::days()?;
    let counted = project.root().join("syncs");
    let servo = servo()?;
    let mut strace = Command::new("strace");
    // As a grandchild of the server, so that the server is the process that is started here.
    strace.args(["-D", "-f", "--seccomp-bpf", "-qq", "-e", "trace=fsync,fdatasync,syncfs,sync", "-o"]);
    strace.arg(&counted).arg(servo.get_program());
    for (name, value) in servo.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }
    if Command::new("strace").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("syncs: needs strace; left out");
        return Ok(());
    }
    let server = Server::start_as(strace, &project, 2).await?;
    server.run("bench.daily", &[YEAR]).await?;
    // A call that another thread interrupts is two lines.
    let count = || {
        anyhow::Ok(fs::read_to_string(&counted)?.lines().filter(|line| !line.contains("resumed>")).count())
    };
    let mut each = Vec::new();
    for _ in 0..5 {
        let before = count()?;
        server.run("bench.daily", &[YEAR]).await?;
        // Tables follow within a second.
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        each.push(count()? - before);
    }
    each.sort_unstable();
    let each = each[each.len() / 2] as f64 / DAYS as f64;
    results.add(AREA, "365 partitions in one run, syncs per task", (each, ""), Better::Lower, 2.0);
    Ok(())
}

async fn warm_server(results: &mut Results, one: &Project) -> anyhow::Result<()> {
    let server = Server::start(one, 2).await?;
    results.add(
        AREA,
        "idle servo dev with 2 warm runners, RSS",
        (server.resident_mb()?, "MB"),
        Better::Lower,
        100.0,
    );
    let mut times = Vec::new();
    for _ in 0..200 {
        times.push(server.first_line(one.root()).await?);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    times.sort_unstable();
    let p95 = times[times.len() * 95 / 100];
    let what = "HTTP trigger to first line of user code";
    results.add(AREA, format!("{what}, p50"), (millis(middle(times)), "ms"), Better::Lower, 3.0);
    results.add(AREA, format!("{what}, p95"), (millis(p95), "ms"), Better::Lower, 6.0);
    Ok(())
}

async fn nothing(results: &mut Results) -> anyhow::Result<()> {
    let nothing = Project::nothing(PARTITIONS)?;
    let server = Server::start(&nothing, 2).await?;
    let mut times = Vec::new();
    for _ in 0..3 {
        times.push(server.run("bench.nothing", &["p0000..p1999"]).await?);
    }
    let rate = PARTITIONS as f64 / middle(times).as_secs_f64();
    results.add(AREA, "warm tasks that do nothing, 2 slots", (rate, "/s"), Better::Higher, 800.0);
    Ok(())
}

fn median(rounds: usize, mut once: impl FnMut() -> anyhow::Result<Duration>) -> anyhow::Result<Duration> {
    once()?;
    Ok(middle((0..rounds).map(|_| once()).collect::<anyhow::Result<_>>()?))
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
