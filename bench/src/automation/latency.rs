//! From the reason to the first line of user code: `servo dev`, real Python, everything durable.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, ensure};
use serde_json::json;

use super::AREA;
use crate::execution::project::Project;
use crate::execution::server::Server;
use crate::http::{Connection, Times, load};
use crate::results::{Better, Results};

const TICKS: usize = 20;
const PUSHES: usize = 100;
const SAME: usize = 3_000;
const MADE: usize = 50;
const POLLS: Duration = Duration::from_secs(20);

/// Each function says when it began, in a file of its own.
const CODE: &str = r#"

import time

import servo


def began(name):
    with open(name, "a") as file:
        file.write(f"{time.time_ns()}\n")


@servo.asset(namespace="bench")
def ticked() -> None:
    began("ticked")


@servo.asset(namespace="bench")
def pushed() -> None:
    began("pushed")


@servo.asset(namespace="bench")
def made() -> None:
    pass


@servo.asset(namespace="bench")
def followed() -> None:
    began("followed")


servo.asset_sensor(name="following", on=["bench.made"], selection="bench.followed")


@servo.push_sensor(selection="bench.pushed")
def told(message):
    return servo.RunRequest()
"#;

pub(super) async fn measure(results: &mut Results) -> anyhow::Result<()> {
    let done = ticks(results).await;
    results.done("automation, ticks", done);
    let project = Project::new(CODE)?;
    let server = Server::start(&project, 2).await?;
    let done = pushes(results, &server, project.root()).await;
    results.done("automation, pushes", done);
    let done = followed(results, &server, project.root()).await;
    results.done("automation, asset sensor", done);
    drop(server);
    polls(results).await
}

/// When a function began, each time, since the epoch.
fn begins(root: &Path, name: &str) -> anyhow::Result<Vec<Duration>> {
    let text = fs::read_to_string(root.join(name)).unwrap_or_default();
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| Ok(Duration::from_nanos(line.parse()?))).collect()
}

/// Waits until a function has been called so often.
async fn until(root: &Path, name: &str, count: usize) -> anyhow::Result<Vec<Duration>> {
    let waiting = Instant::now();
    loop {
        let found = begins(root, name)?;
        if found.len() >= count {
            return Ok(found);
        }
        ensure!(
            waiting.elapsed() < Duration::from_secs(60),
            "{name} was called {} times, not {count}",
            found.len()
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn now() -> anyhow::Result<Duration> {
    Ok(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?)
}

/// A schedule that is due every second.
async fn ticks(results: &mut Results) -> anyhow::Result<()> {
    let schedule = "\n\nservo.schedule(name=\"often\", cron=\"* * * * * *\", selection=\"bench.ticked\")\n";
    let project = Project::new(&format!("{CODE}{schedule}"))?;
    let server = Server::start(&project, 2).await?;
    let known = begins(project.root(), "ticked")?.len();
    let found = until(project.root(), "ticked", known + TICKS).await?;
    drop(server);
    let after = |began: &Duration| Duration::from_nanos(began.subsec_nanos().into());
    let times = Times::of(found[known..].iter().map(after).collect())?;
    let what = "schedule due to first line of user code";
    results.add(AREA, format!("{what}, p50"), (times.percentile(50), "ms"), Better::Lower, 10.0);
    results.add(AREA, format!("{what}, p95"), (times.percentile(95), "ms"), Better::Lower, 50.0);
    Ok(())
}

async fn pushes(results: &mut Results, server: &Server, root: &Path) -> anyhow::Result<()> {
    let (address, token) = server.address();
    let mut connection = Connection::open(address, token).await?;
    let path = "/api/v1/orchestration/sensors/told/push";
    let mut known = begins(root, "pushed")?.len();
    let (mut answered, mut began) = (Vec::new(), Vec::new());
    for number in 0..PUSHES {
        let sent = now()?;
        let answer = connection.post(path, &json!({ "id": format!("m{number}"), "data": {} })).await?;
        answered.push(now()?.saturating_sub(sent));
        answer.json().context("a push")?;
        known += 1;
        let found = until(root, "pushed", known).await?;
        began.push(found[known - 1].saturating_sub(sent));
        // The run ends before the next push.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let answered = Times::of(answered)?;
    results.add(AREA, "push to durable answer, p95", (answered.percentile(95), "ms"), Better::Lower, 10.0);
    let began = Times::of(began)?;
    let what = "push to first line of user code, p95";
    results.add(AREA, what, (began.percentile(95), "ms"), Better::Lower, 20.0);
    results.note(AREA, "push to first line of user code, p50", (began.percentile(50), "ms"), Better::Lower);

    let body = r#"{"id":"the same","data":{}}"#;
    let (times, took) =
        load(address, token, 64, SAME, |_| ("POST", path.to_owned(), String::new(), body.to_owned())).await?;
    known += 1;
    until(root, "pushed", known).await?;
    // Another one would have begun by now.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let runs = begins(root, "pushed")?.len() + 1 - known;
    results.add(AREA, "3,000 pushes of one message id, runs", (runs as f64, "runs"), Better::Lower, 1.0);
    let rate = times.len() as f64 / took.as_secs_f64();
    results.note(AREA, "3,000 pushes of one message id, 64 clients", (rate, "/s"), Better::Higher);
    Ok(())
}

/// From the end of the run that materialized an asset to the first line of what the sensor requests.
async fn followed(results: &mut Results, server: &Server, root: &Path) -> anyhow::Result<()> {
    let mut known = begins(root, "followed")?.len();
    let mut times = Vec::new();
    for _ in 0..MADE {
        let asked = now()?;
        let took = server.run("bench.made", &[]).await?;
        known += 1;
        let found = until(root, "followed", known).await?;
        times.push(found[known - 1].saturating_sub(asked + took));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let times = Times::of(times)?;
    let what = "asset materialized to the sensor's run at work, p95";
    results.add(AREA, what, (times.percentile(95), "ms"), Better::Lower, 20.0);
    Ok(())
}

/// The CPU of a poll: what a server with a sensor uses beyond one without, by evaluation.
async fn polls(results: &mut Results) -> anyhow::Result<()> {
    let sensor = r#"

@servo.sensor(interval="1s")
def looking(ctx):
    began("looked")
    return servo.SkipReason("nothing new")
"#;
    let idle = {
        let project = Project::new(CODE)?;
        let server = Server::start(&project, 2).await?;
        let used = server.cpu_time()?;
        tokio::time::sleep(POLLS).await;
        server.cpu_time()?.saturating_sub(used)
    };
    let project = Project::new(&format!("{CODE}{sensor}"))?;
    let server = Server::start(&project, 2).await?;
    until(project.root(), "looked", 2).await?;
    let (used, before) = (server.cpu_time()?, begins(project.root(), "looked")?.len());
    tokio::time::sleep(POLLS).await;
    let used = server.cpu_time()?.saturating_sub(used).saturating_sub(idle);
    let polls = begins(project.root(), "looked")?.len() - before;
    ensure!(polls > 5, "the sensor was evaluated {polls} times");
    let each = used.as_secs_f64() * 1e3 / polls as f64;
    results.add(AREA, "one poll of a trivial sensor, CPU", (each, "ms"), Better::Lower, 4.0);
    Ok(())
}
