//! Writes the log of one attempt in the background: printing never waits for a disk.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use servo_core::Clock;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};

use super::excerpt::Excerpt;
use super::{LogLevel, LogLine, LogSink, LogStream, LogTarget, bytes_of};

/// How long lines are batched into one write.
const GATHER: Duration = Duration::from_millis(10);
/// Bytes to write at once; the last line may exceed it.
const BATCH: usize = 1 << 20;
/// Bytes buffered in memory before printing blocks.
const MAX_WAITING: usize = 64 << 20;
/// Timeout of a sink; a slower write counts as failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// The log of a running attempt. Nothing is started until there is a line.
pub(crate) struct LogWriter {
    sink: Arc<dyn LogSink>,
    target: Arc<LogTarget>,
    clock: Arc<dyn Clock>,
    queue: Option<Queue>,
    excerpt: Excerpt,
}

struct Queue {
    lines: mpsc::UnboundedSender<Vec<LogLine>>,
    /// Bytes buffered.
    waiting: Arc<watch::Sender<usize>>,
    task: JoinHandle<()>,
}

impl LogWriter {
    /// The log of an attempt, of which so many bytes are kept.
    pub(crate) fn new(
        sink: Arc<dyn LogSink>,
        target: LogTarget,
        clock: Arc<dyn Clock>,
        max_bytes: usize,
    ) -> Self {
        Self { sink, target: Arc::new(target), clock, queue: None, excerpt: Excerpt::new(max_bytes) }
    }

    /// Takes lines. If too much is buffered, returns what to wait for before the next ones are read.
    pub(crate) fn push(&mut self, lines: Vec<LogLine>) -> Option<watch::Receiver<usize>> {
        let lines = self.excerpt.take(lines);
        self.write(lines)
    }

    fn write(&mut self, lines: Vec<LogLine>) -> Option<watch::Receiver<usize>> {
        if lines.is_empty() {
            return None;
        }
        let size = size_of(&lines);
        let queue = self.queue.get_or_insert_with(|| {
            let (sender, lines) = mpsc::unbounded_channel();
            let waiting = Arc::new(watch::channel(0).0);
            let writing = Writing {
                sink: self.sink.clone(),
                target: self.target.clone(),
                clock: self.clock.clone(),
                waiting: waiting.clone(),
                lost: None,
            };
            Queue { lines: sender, waiting, task: tokio::spawn(writing.run(lines)) }
        });
        queue.waiting.send_modify(|waiting| *waiting += size);
        let _ended = queue.lines.send(lines);
        (*queue.waiting.borrow() > MAX_WAITING).then(|| queue.waiting.subscribe())
    }

    /// Flushes the buffer, and ends the log.
    pub(crate) async fn end(mut self) {
        let last = std::mem::replace(&mut self.excerpt, Excerpt::new(0)).end(self.clock.now());
        let _room = self.write(last);
        if let Some(queue) = self.queue {
            drop(queue.lines);
            if timeout(PATIENCE, queue.task).await.is_err() {
                tracing::warn!(
                    task = self.target.name.task_key.as_str(),
                    "the log of an attempt is not written in time"
                );
            }
        }
        self.sink.end(&self.target).await;
    }
}

/// Waits until there is room for more lines.
pub(crate) async fn room(mut waiting: watch::Receiver<usize>) {
    let _ended = waiting.wait_for(|waiting| *waiting <= MAX_WAITING / 2).await;
}

struct Writing {
    sink: Arc<dyn LogSink>,
    target: Arc<LogTarget>,
    clock: Arc<dyn Clock>,
    waiting: Arc<watch::Sender<usize>>,
    /// Number of lines lost since the last successful write, and why.
    lost: Option<(usize, String)>,
}

impl Writing {
    async fn run(mut self, mut lines: mpsc::UnboundedReceiver<Vec<LogLine>>) {
        while let Some(first) = lines.recv().await {
            let mut size = size_of(&first);
            let mut batch = first;
            let until = Instant::now() + GATHER;
            while size < BATCH
                && let Ok(Some(more)) = timeout_at(until, lines.recv()).await
            {
                size += size_of(&more);
                batch.extend(more);
            }
            self.write(batch).await;
            self.waiting.send_modify(|waiting| *waiting -= size);
        }
        if self.lost.is_some() {
            self.write(Vec::new()).await;
        }
    }

    /// Writes lines, after one that says how many are missing before them.
    async fn write(&mut self, mut lines: Vec<LogLine>) {
        let count = lines.len();
        if let Some((lost, why)) = &self.lost {
            let text = format!("{lost} lines are missing here: {why}");
            let mut notice = LogLine::new(self.clock.now(), LogStream::Servo, text);
            notice.level = Some(LogLevel::Warning);
            lines.insert(0, notice);
        }
        let written = match timeout(PATIENCE, self.sink.write(&self.target, lines)).await {
            Ok(written) => written,
            Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
        };
        match written {
            Ok(()) => self.lost = None,
            Err(error) => {
                let (lost, why) = self.lost.get_or_insert_with(|| (0, error.to_string()));
                if *lost == 0 {
                    tracing::warn!(%error, task = self.target.name.task_key.as_str(), "log lines are lost");
                }
                *lost += count;
                *why = error.to_string();
            }
        }
    }
}

fn size_of(lines: &[LogLine]) -> usize {
    lines.iter().map(bytes_of).sum()
}
