//! How long it takes from a command or a request to data: the real binary, real Python, everything durable.

pub(crate) mod project;
pub(crate) mod server;

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::process::servo;
use crate::results::{Better, Results};
use project::Project;
use server::Server;

const AREA: &str = "execution";
const PARTITIONS: usize = 2_000;

/// Measures execution from outside.
pub(crate) async fn measure(results: &mut Results) -> anyhow::Result<()> {
    let version = median(20, || {
        let begun = Instant::now();
        let status = servo()?.arg("--version").stdout(Stdio::null()).status()?;
        ensure!(status.success(), "servo --version failed");
        Ok(begun.elapsed())
    })?;
    results.add(AREA, "servo --version", (millis(version), "ms"), Better::Lower, 10.0);

    let one = Project::one()?;
    let cold = median(20, || {
        let begun = Instant::now();
        let mut command = servo()?;
        command.args(["materialize", "bench.one", "--project"]).arg(one.root());
        let output = command.output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(begun.elapsed())
    })?;
    results.add(AREA, "cold servo materialize of one asset", (millis(cold), "ms"), Better::Lower, 150.0);

    for (what, project, rounds, target) in [
        ("chain of 40 assets, trigger to done", Project::chain(40)?, 15, 120.0),
        ("1 to 500 to 1, trigger to done", Project::fan(500)?, 5, 1_000.0),
        ("1,000 assets in 10 layers, 3 upstream each", Project::layers(10, 100)?, 5, 1_800.0),
    ] {
        let server = Server::start(&project, 2).await?;
        let mut times = Vec::new();
        for _ in 0..rounds {
            times.push(server.run("*", &[]).await?);
        }
        results.add(AREA, what, (millis(middle(times)), "ms"), Better::Lower, target);
    }

    let server = Server::start(&one, 2).await?;
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
    results.add(AREA, format!("{what}, p50"), (millis(middle(times)), "ms"), Better::Lower, 5.0);
    results.add(AREA, format!("{what}, p95"), (millis(p95), "ms"), Better::Lower, 15.0);
    drop(server);

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
