//! A real `servo dev`, asked over HTTP.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, bail, ensure};
use servo_api::client::{Client, RunEvent};
use servo_api::views::{PartitionsBody, RunBody};
use servo_engine::RunState;

use super::project::Project;
use crate::process::{children, cpu_time, resident_mb, servo};

/// A server process that is stopped on drop.
pub(crate) struct Server {
    process: Child,
    client: Client,
    address: SocketAddr,
    token: String,
}

impl Server {
    /// Starts a server, waits until its runners are warm, and runs everything once.
    pub(crate) async fn start(project: &Project, slots: usize) -> anyhow::Result<Self> {
        let server = Self::start_fresh(project, slots).await?;
        server.run("*", &[]).await.ok();
        Ok(server)
    }

    /// Starts a server and waits until its runners are warm.
    pub(crate) async fn start_fresh(project: &Project, slots: usize) -> anyhow::Result<Self> {
        Self::start_as(servo()?, project, slots).await
    }

    /// The same with a program that has the server in its process.
    pub(crate) async fn start_as(
        mut program: Command,
        project: &Project,
        slots: usize,
    ) -> anyhow::Result<Self> {
        let notice = project.root().join(".servo/server.json");
        let process = program
            .args(["dev", "--port", "0", "--slots", &slots.to_string(), "--project"])
            .arg(project.root())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let begun = Instant::now();
        let (url, token) = loop {
            if let Some(text) = fs::read_to_string(&notice).ok().filter(|text| text.ends_with('}')) {
                let value: serde_json::Value = serde_json::from_str(&text)?;
                // It says who it is before it listens.
                if let (Some(url), Some(token)) = (value["url"].as_str(), value["token"].as_str()) {
                    break (url.to_owned(), token.to_owned());
                }
            }
            ensure!(begun.elapsed() < Duration::from_secs(30), "servo dev does not start");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let address = url.trim_start_matches("http://").trim_end_matches('/').parse()?;
        let server =
            Self { process, client: Client::new(&url)?.with_access_token(token.clone()), address, token };
        while server.client.deployment().await.is_err() || server.runners()?.len() < slots {
            ensure!(begun.elapsed() < Duration::from_secs(60), "servo dev has no deployment");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        Ok(server)
    }

    /// From the request to the end of the run, by the clock that both share.
    pub(crate) async fn run(&self, selection: &str, ranges: &[&str]) -> anyhow::Result<Duration> {
        let body = body(selection, ranges);
        let asked = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let accepted = self.client.trigger(&body).await?;
        let mut events = self.client.follow(accepted.run_id, None);
        while let Some(event) = events.next().await? {
            if let RunEvent::End(end) = event {
                ensure!(end.state == RunState::Succeeded, "the run ended as {}", end.state);
            }
        }
        let run = self.client.run(accepted.run_id).await?;
        let done = run.finished_at.context("it has ended")?.as_millis();
        Ok(Duration::from_millis(u64::try_from(done)?).saturating_sub(asked))
    }

    /// From the request to the first line of the function.
    pub(crate) async fn first_line(&self, root: &Path) -> anyhow::Result<Duration> {
        let asked = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let accepted = self.client.trigger(&body("bench.one", &[])).await?;
        let mut events = self.client.follow(accepted.run_id, None);
        while events.next().await?.is_some() {}
        let began: u64 = fs::read_to_string(root.join("began"))?.parse()?;
        let began = Duration::from_nanos(began);
        if began < asked {
            bail!("the function was not called");
        }
        Ok(began - asked)
    }

    /// Memory of the server and of its runners.
    pub(crate) fn resident_mb(&self) -> anyhow::Result<f64> {
        let processes = std::iter::once(self.process.id()).chain(self.runners()?);
        processes.map(resident_mb).sum()
    }

    fn runners(&self) -> anyhow::Result<Vec<u32>> {
        children(self.process.id())
    }

    /// The address that it listens at, and the secret that it asks for.
    pub(crate) fn address(&self) -> (SocketAddr, &str) {
        (self.address, &self.token)
    }

    /// The time that the server and its runners have had a core for.
    pub(crate) fn cpu_time(&self) -> anyhow::Result<Duration> {
        let processes = std::iter::once(self.process.id()).chain(self.runners()?);
        processes.map(cpu_time).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _reaped = self.process.wait();
    }
}

fn body(selection: &str, ranges: &[&str]) -> RunBody {
    let ranges = ranges.iter().map(|range| (*range).to_owned()).collect();
    RunBody {
        selection: selection.to_owned(),
        partitions: PartitionsBody { ranges, ..PartitionsBody::default() },
        ..RunBody::default()
    }
}
