//! A client that costs next to nothing beside the server that it measures: one connection that is kept, one request at
//! a time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A connection to a server.
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    head: String,
    line: String,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> anyhow::Result<serde_json::Value> {
        ensure!(self.is_good(), "answered with {}: {}", self.status, String::from_utf8_lossy(&self.body));
        Ok(serde_json::from_slice(&self.body)?)
    }

    pub(crate) fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

impl Connection {
    /// Connects; whoever asks shows this secret, if it is not empty.
    pub(crate) async fn open(to: SocketAddr, secret: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        let mut head = format!("host: {to}\r\n");
        if !secret.is_empty() {
            head += &format!("authorization: Bearer {secret}\r\n");
        }
        Ok(Self { stream: BufReader::new(stream), head, line: String::new() })
    }

    pub(crate) async fn get(&mut self, path: &str) -> anyhow::Result<Answer> {
        self.ask("GET", path, "", "").await
    }

    pub(crate) async fn post(&mut self, path: &str, body: &serde_json::Value) -> anyhow::Result<Answer> {
        self.ask("POST", path, "", &body.to_string()).await
    }

    /// Asks with headers, each of which ends its line.
    pub(crate) async fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> anyhow::Result<Answer> {
        self.send(method, path, headers, body).await?;
        self.read_answer().await
    }

    /// Sends a request whose answer is a stream, and reads its head.
    pub(crate) async fn listen(&mut self, path: &str) -> anyhow::Result<()> {
        self.send("GET", path, "accept: text/event-stream\r\n", "").await?;
        let (status, _) = self.read_head().await?;
        ensure!(status == 200, "{path} answered with {status}");
        Ok(())
    }

    /// The next line of a stream; none at its end. The sizes of its chunks are lines among the others.
    pub(crate) async fn next_line(&mut self) -> anyhow::Result<Option<&str>> {
        self.line.clear();
        let read = self.stream.read_line(&mut self.line).await?;
        Ok((read > 0).then(|| self.line.trim_end()))
    }

    async fn send(&mut self, method: &str, path: &str, headers: &str, body: &str) -> anyhow::Result<()> {
        let kind = if body.is_empty() { "" } else { "content-type: application/json\r\n" };
        let text = format!(
            "{method} {path} HTTP/1.1\r\n{}{kind}{headers}content-length: {}\r\n\r\n{body}",
            self.head,
            body.len(),
        );
        Ok(self.stream.get_mut().write_all(text.as_bytes()).await?)
    }

    async fn read_answer(&mut self) -> anyhow::Result<Answer> {
        let (status, length) = self.read_head().await?;
        let mut body = vec![0; length.context("the answer has no content-length")?];
        self.stream.read_exact(&mut body).await?;
        Ok(Answer { status, body })
    }

    async fn read_head(&mut self) -> anyhow::Result<(u16, Option<usize>)> {
        let first = self.next_line().await?.context("the server has closed the connection")?;
        let status = first.split(' ').nth(1).context("no status")?.parse()?;
        let mut length = None;
        loop {
            let Some(line) = self.next_line().await? else { bail!("the answer is cut off") };
            if line.is_empty() {
                return Ok((status, length));
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = Some(value.trim().parse()?);
            }
        }
    }
}

/// How long each of a number of requests took, sorted.
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn of(mut times: Vec<Duration>) -> anyhow::Result<Self> {
        ensure!(!times.is_empty(), "nothing was measured");
        times.sort_unstable();
        Ok(Self(times))
    }

    /// In milliseconds.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let at = (self.0.len() * percent / 100).min(self.0.len() - 1);
        self.0[at].as_secs_f64() * 1e3
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Asks over and over on so many connections at once, each for its share of `count` requests; gives how long each
/// took and how long all did. `request` is given the number of the request.
pub(crate) async fn load(
    to: SocketAddr,
    secret: &str,
    clients: usize,
    count: usize,
    request: impl Fn(usize) -> (&'static str, String, String, String) + Copy + Send + 'static,
) -> anyhow::Result<(Times, Duration)> {
    let mut connections = Vec::new();
    for _ in 0..clients {
        connections.push(Connection::open(to, secret).await?);
    }
    let begun = Instant::now();
    let mut asking = Vec::new();
    for (client, mut connection) in connections.into_iter().enumerate() {
        asking.push(tokio::spawn(async move {
            let mut times = Vec::new();
            for number in (client..count).step_by(clients) {
                let (method, path, headers, body) = request(number);
                let begun = Instant::now();
                let answer = connection.ask(method, &path, &headers, &body).await?;
                times.push(begun.elapsed());
                let text = String::from_utf8_lossy(&answer.body);
                ensure!(answer.is_good(), "{method} {path} answered with {}: {text}", answer.status);
            }
            anyhow::Ok(times)
        }));
    }
    let mut times = Vec::new();
    for client in asking {
        times.extend(client.await??);
    }
    Ok((Times::of(times)?, begun.elapsed()))
}
