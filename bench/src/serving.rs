//! `servo serve` under load: server and load generator on this machine, every request authenticated with an API key.

pub(crate) mod api;
mod callbacks;
mod listeners;
mod million;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::json;
use tokio::task::JoinSet;

use crate::execution::project::Project;
use crate::http::{Answer, Connection, Times, load};
use crate::process::{cpu_time, resident_mb, servo};
use crate::results::{Better, Results};

const AREA: &str = "serving";
const CLIENTS: usize = 64;
const TRIGGERS: usize = 6_000;
const FEW: usize = 1_000;
const READS: usize = 1_000;
/// The limit of a tenant while another floods.
const TRIGGERS_A_MINUTE: usize = 30_000;
const WORKSPACES: usize = 1_000;
const WATCHED: Duration = Duration::from_secs(10);
const TRIGGER: &str = r#"{"selection":"bench.one"}"#;

pub(crate) async fn measure(results: &mut Results, full: bool) -> anyhow::Result<()> {
    let project = Project::one()?;
    let server = Serve::start(&project, 0)?;
    server.command(&project, &["deploy"], None)?;
    let done = reads(results, &server).await;
    results.done("serving, reads", done);
    let done = triggers(results, &server).await;
    results.done("serving, triggers", done);
    let done = authentication(results, &server).await;
    results.done("serving, authentication", done);
    let done = workspaces(results, &server).await;
    results.done("serving, idle workspaces", done);
    drop(server);
    let done = neighbours(results).await;
    results.done("serving, tenants", done);
    let done = callbacks::measure(results).await;
    results.done("serving, workers", done);
    let done = listeners::measure(results).await;
    results.done("serving, listeners", done);
    if full {
        million::measure(results).await?;
    }
    Ok(())
}

/// A server that is stopped on drop.
struct Serve {
    process: Child,
    address: SocketAddr,
    key: String,
}

impl Serve {
    /// Starts one that allows a tenant so many triggers a minute; 0 is no limit. Nothing else is limited.
    fn start(project: &Project, triggers: usize) -> anyhow::Result<Self> {
        let log = project.root().join("serve.log");
        fs::write(
            project.root().join("serve.toml"),
            format!(
                "[limits]\nlists_per_minute = 0\nrequests_per_minute = 0\ntriggers_per_minute = {triggers}\n"
            ),
        )?;
        let mut process = servo()?
            .args(["serve", "--listen", "127.0.0.1:0"])
            .current_dir(project.root())
            .env("SERVO_LOG", "warn")
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&log)?)
            .spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().context("its stdout")?).read_line(&mut line)?;
        let key = line.trim().rsplit(' ').next().context("a key")?.to_owned();
        ensure!(key.starts_with("servo_"), "the server printed no key: {}", fs::read_to_string(&log)?);
        let begun = Instant::now();
        let address = loop {
            let text = fs::read_to_string(&log)?;
            if let Some(line) = text.lines().find_map(|line| line.strip_prefix("servo serve http://")) {
                break line.split(' ').next().context("an address")?.parse()?;
            }
            ensure!(begun.elapsed() < Duration::from_secs(30), "servo serve does not start: {text}");
            std::thread::sleep(Duration::from_millis(20));
        };
        Ok(Self { process, address, key })
    }

    /// Runs a command that speaks to it, for a workspace.
    fn command(&self, project: &Project, arguments: &[&str], at: Option<&str>) -> anyhow::Result<()> {
        let mut command = servo()?;
        command.args(arguments).current_dir(project.root());
        command.env("SERVO_URL", format!("http://{}", self.address)).env("SERVO_KEY", &self.key);
        if let Some((tenant, workspace)) = at.and_then(|at| at.split_once('/')) {
            command.args(["--tenant", tenant, "--workspace", workspace]);
        }
        let output = command.output()?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "servo {}: {told}", arguments.join(" "));
        Ok(())
    }

    async fn connect(&self) -> anyhow::Result<Connection> {
        Connection::open(self.address, &self.key).await
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// How long each of some requests took, one after the other.
async fn one_by_one(
    connection: &mut Connection,
    count: usize,
    path: impl Fn(usize) -> String,
) -> anyhow::Result<Times> {
    let mut times = Vec::new();
    for number in 0..count {
        let begun = Instant::now();
        let answer = connection.get(&path(number)).await?;
        times.push(begun.elapsed());
        answered(&answer)?;
    }
    Times::of(times)
}

fn answered(answer: &Answer) -> anyhow::Result<()> {
    let text = String::from_utf8_lossy(&answer.body);
    ensure!(answer.is_good(), "answered with {}: {text}", answer.status);
    Ok(())
}

async fn reads(results: &mut Results, server: &Serve) -> anyhow::Result<()> {
    let path = || "/api/v1/runs".to_owned();
    load(server.address, &server.key, 16, FEW, move |_| ("POST", path(), String::new(), TRIGGER.to_owned()))
        .await?;
    let mut connection = server.connect().await?;
    let list = connection.get("/api/v1/runs?limit=25").await?.json()?;
    let runs = list["items"].as_array().context("runs")?;
    ensure!(runs.len() == 25, "a page has {} runs", runs.len());
    let run = runs[7]["run_id"].as_str().context("a run")?.to_owned();
    let times = one_by_one(&mut connection, READS, |_| format!("/api/v1/runs/{run}")).await?;
    results.add(AREA, "GET of a run, p95", (times.percentile(95), "ms"), Better::Lower, 1.0);
    let times = one_by_one(&mut connection, READS, |_| "/api/v1/runs?limit=25".to_owned()).await?;
    results.add(AREA, "list of 25 runs of 1,000, p95", (times.percentile(95), "ms"), Better::Lower, 2.0);
    Ok(())
}

async fn triggers(results: &mut Results, server: &Serve) -> anyhow::Result<()> {
    let request =
        |_| ("POST", "/api/v1/runs".to_owned(), String::new(), r#"{"selection":"bench.one"}"#.to_owned());
    let (times, took) = load(server.address, &server.key, CLIENTS, TRIGGERS, request).await?;
    let rate = times.len() as f64 / took.as_secs_f64();
    let what = "durable triggers, 64 clients with API keys";
    results.add(AREA, what, (rate, "/s"), Better::Higher, 3_000.0);
    results.add(AREA, format!("{what}, p99"), (times.percentile(99), "ms"), Better::Lower, 50.0);
    Ok(())
}

/// The CPU of the server for a request that says who asks, beyond that of one which nobody need be for.
async fn authentication(results: &mut Results, server: &Serve) -> anyhow::Result<()> {
    let mut connections = [Connection::open(server.address, "").await?, server.connect().await?];
    let process = server.process.id();
    let mut cost = [Duration::MAX; 2];
    for _ in 0..3 {
        let asked = connections.iter_mut().zip(["/api/v1/login-options", "/api/v1/me"]);
        for (cost, (connection, path)) in cost.iter_mut().zip(asked) {
            let used = cpu_time(process)?;
            one_by_one(connection, READS, |_| path.to_owned()).await?;
            *cost = (*cost).min(cpu_time(process)?.saturating_sub(used));
        }
    }
    let [open, known] = cost.map(|cost| cost.as_secs_f64() * 1e6 / READS as f64);
    results.add(
        AREA,
        "authentication and permission check, CPU",
        ((known - open).max(0.0), "µs"),
        Better::Lower,
        50.0,
    );
    results.note(AREA, "a request that needs neither, CPU", (open, "µs"), Better::Lower);
    Ok(())
}

/// How long one tenant waits while another one asks for more than the server can do.
async fn neighbours(results: &mut Results) -> anyhow::Result<()> {
    let project = &Project::one()?;
    let server = &Serve::start(project, TRIGGERS_A_MINUTE)?;
    let mut connection = server.connect().await?;
    for tenant in ["calm", "busy"] {
        for (path, body) in [
            ("/api/v1/admin/tenants".to_owned(), json!({ "tenant": tenant })),
            ("/api/v1/admin/workspaces".to_owned(), json!({ "tenant": tenant, "workspace": "main" })),
        ] {
            answered(&connection.post(&path, &body).await?)?;
        }
        server.command(project, &["deploy"], Some(&format!("{tenant}/main")))?;
    }
    let asked = async || {
        let mut connection = server.connect().await?;
        let mut times = Vec::new();
        for _ in 0..READS {
            let begun = Instant::now();
            let body = json!({ "selection": "bench.one" });
            let answer = connection.post("/api/v1/t/calm/w/main/runs", &body).await?;
            times.push(begun.elapsed());
            answered(&answer)?;
        }
        Times::of(times)
    };
    let alone = asked().await?;
    let flooding = Flood::start(server)?;
    // Until a minute's worth is used up, which may be asked for at once.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let beside = asked().await?;
    drop(flooding);
    let ratio = beside.percentile(99) / alone.percentile(99);
    let what = "durable trigger of a tenant beside one that floods, p99";
    results.note(AREA, "durable trigger of a tenant alone, p99", (alone.percentile(99), "ms"), Better::Lower);
    results.note(AREA, what, (beside.percentile(99), "ms"), Better::Lower);
    results.add(AREA, format!("{what} ÷ alone"), (ratio, "×"), Better::Lower, 1.5);
    Ok(())
}

/// A process that asks for runs of tenant `busy` as fast as it can, so that its own work is not part of what the other
/// tenant's client waits for. Killed on drop.
struct Flood(Child);

impl Flood {
    fn start(server: &Serve) -> anyhow::Result<Self> {
        let mut program = Command::new(std::env::current_exe()?);
        program.arg("--flood").arg(server.address.to_string()).env("SERVO_KEY", &server.key);
        Ok(Self(program.spawn()?))
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

/// Asks for more than can be answered, until it is killed. What is refused is part of it.
pub(crate) async fn flood(address: SocketAddr) -> anyhow::Result<()> {
    let key = std::env::var("SERVO_KEY").context("SERVO_KEY")?;
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let mut connection = Connection::open(address, &key).await?;
        clients.spawn(async move {
            while connection.ask("POST", "/api/v1/t/busy/w/main/runs", "", TRIGGER).await.is_ok() {}
        });
    }
    while clients.join_next().await.is_some() {}
    Ok(())
}

/// The cost of workspaces that nobody uses, and how soon one is there that somebody does.
async fn workspaces(results: &mut Results, server: &Serve) -> anyhow::Result<()> {
    let mut connection = server.connect().await?;
    answered(&connection.post("/api/v1/admin/tenants", &json!({ "tenant": "many" })).await?)?;
    let process = server.process.id();
    let before = resident_mb(process)?;
    for number in 0..WORKSPACES {
        let body = json!({ "tenant": "many", "workspace": format!("w{number:04}") });
        answered(&connection.post("/api/v1/admin/workspaces", &body).await?)?;
    }
    let used = cpu_time(process)?;
    tokio::time::sleep(WATCHED).await;
    let used = cpu_time(process)?.saturating_sub(used);
    let added = resident_mb(process)? - before;
    results.add(AREA, "1,000 idle workspaces, memory added", (added, "MB"), Better::Lower, 50.0);
    let percent = used.as_secs_f64() / WATCHED.as_secs_f64() * 100.0;
    results.add(AREA, "1,000 idle workspaces, CPU", (percent, "% of a core"), Better::Lower, 1.0);
    let times =
        one_by_one(&mut connection, 20, |number| format!("/api/v1/t/many/w/w{:04}/runs", number * 37))
            .await?;
    results.add(AREA, "opening one of them, p50", (times.percentile(50), "ms"), Better::Lower, 50.0);
    Ok(())
}
