//! Captures the output of a runner and assigns it to attempts.
//!
//! Streams are read all the time, in full. When both marks of an attempt have come, everything that it printed has been
//! read: no line is lost and none is taken for a line of the next one.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use servo_core::{Clock, Timestamp};
use tokio::sync::watch;
use tokio::time::timeout;

use super::lines::{Part, Splitter};
use super::mask::Mask;
use super::pipe::Pipe;
use crate::logs::{LogLine, LogStream, LogWriter, room};

/// How much is read at once.
const CHUNK: usize = 64 << 10;
/// A read of less than this is followed by a pause in which more can gather.
const MUCH: usize = 16 << 10;
/// The length of that pause.
const PAUSE: Duration = Duration::from_millis(2);
/// How long a stream may be silent while a mark or its end is expected.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often that is repeated while there is something to read.
const MOST: u32 = 60;
/// How much of stderr is remembered, for the message of a crash.
const LAST_LINES: usize = 20;

/// One of the two streams.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

impl From<Stream> for LogStream {
    fn from(stream: Stream) -> Self {
        match stream {
            Stream::Stdout => Self::Stdout,
            Stream::Stderr => Self::Stderr,
        }
    }
}

/// The output of one runner, which belongs to one attempt at a time.
pub(super) struct Capture {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// The last mark of each stream.
    marks: [watch::Sender<Mark>; 2],
    /// Set while a caller waits for a mark or for the end.
    hurry: watch::Sender<bool>,
    /// How often something was read.
    reads: AtomicU64,
    /// How many streams are not read because too much waits to be written.
    held_up: AtomicU64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Mark {
    /// No mark yet.
    Nothing,
    /// The mark of an attempt.
    Of(String),
    /// The stream has ended.
    End,
}

/// The result of one read: bytes, or none at the end of the stream.
struct Read {
    stream: Stream,
    at: Timestamp,
    bytes: Option<Vec<u8>>,
}

#[derive(Default)]
struct State {
    log: Option<LogWriter>,
    splitters: [Splitter; 2],
    /// All secrets seen by this process: a thread of an attempt may print after its end.
    mask: Mask,
    /// Output read before the secrets are known.
    held: Option<Vec<Read>>,
    last_of_stderr: VecDeque<String>,
}

impl Capture {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        let marks = [watch::channel(Mark::Nothing).0, watch::channel(Mark::Nothing).0];
        Arc::new(Self {
            clock,
            state: Mutex::default(),
            marks,
            hurry: watch::Sender::new(false),
            reads: AtomicU64::new(0),
            held_up: AtomicU64::new(0),
        })
    }

    /// Assigns lines to an attempt from now on. If it has secrets, nothing is written until they are known.
    pub(super) fn begin(&self, log: LogWriter, has_secrets: bool) {
        self.hurry.send_replace(false);
        let mut state = self.lock();
        state.log = Some(log);
        state.held = has_secrets.then(Vec::new);
        state.last_of_stderr.clear();
    }

    /// Masks these values from now on.
    pub(super) fn mask(&self, values: Vec<String>) {
        let mut state = self.lock();
        state.mask.add(values);
        self.release(&mut state);
    }

    /// Adds a line that was not printed; waits if there are too many.
    pub(super) async fn add(&self, line: LogLine) {
        let full = self.lock().log.as_mut().and_then(|log| log.push(vec![line]));
        if let Some(full) = full {
            room(full).await;
        }
    }

    /// Waits until all output of an attempt has been read, as far as that can be known.
    pub(super) async fn marked(&self, attempt: &str) {
        self.while_it_reads(self.both_marked(attempt)).await;
    }

    /// Waits until both streams have ended, as far as it can be known.
    pub(super) async fn ended(&self) {
        self.while_it_reads(self.both_ended()).await;
    }

    /// Waits for a mark as long as there is output to read: a process left behind may keep the streams open for ever,
    /// and one that closed them leaves no mark.
    async fn while_it_reads(&self, wanted: impl Future<Output = ()>) {
        let mut wanted = pin!(wanted);
        self.hurry.send_replace(true);
        for _ in 0..MOST {
            let before = self.reads.load(Ordering::Relaxed);
            let came = timeout(PATIENCE, &mut wanted).await.is_ok();
            let reads =
                self.reads.load(Ordering::Relaxed) != before || self.held_up.load(Ordering::Relaxed) > 0;
            if came || !reads {
                return;
            }
        }
    }

    async fn both_marked(&self, attempt: &str) {
        self.release(&mut self.lock());
        for mark in &self.marks {
            let of_this = |mark: &Mark| match mark {
                Mark::Of(found) => found == attempt,
                Mark::End => true,
                Mark::Nothing => false,
            };
            let mut mark = mark.subscribe();
            let _gone = mark.wait_for(of_this).await;
        }
    }

    async fn both_ended(&self) {
        for mark in &self.marks {
            let mut mark = mark.subscribe();
            let _gone = mark.wait_for(|mark| *mark == Mark::End).await;
        }
    }

    /// Ends the assignment; returns the log to be ended.
    pub(super) fn end(&self) -> Option<LogWriter> {
        let mut state = self.lock();
        self.release(&mut state);
        state.log.take()
    }

    /// The last lines of stderr since the attempt began, or the process if there was none.
    pub(super) fn last_of_stderr(&self) -> String {
        Vec::from(self.lock().last_of_stderr.clone()).join("\n")
    }

    /// Reads a stream to its end.
    pub(super) async fn read(self: Arc<Self>, stream: Stream, mut from: Pipe) {
        let mut hurry = self.hurry.subscribe();
        let mut chunk = vec![0; CHUNK];
        loop {
            let len = from.read(&mut chunk).await.unwrap_or(0);
            let bytes = (len > 0).then(|| chunk[..len].to_vec());
            let full = self.take(Read { stream, at: self.clock.now(), bytes });
            self.reads.fetch_add(1, Ordering::Relaxed);
            if len == 0 {
                return;
            }
            if let Some(full) = full {
                self.held_up.fetch_add(1, Ordering::Relaxed);
                room(full).await;
                self.held_up.fetch_sub(1, Ordering::Relaxed);
            }
            if len < MUCH {
                let _hurry = timeout(PAUSE, hurry.wait_for(|hurry| *hurry)).await;
            } else {
                tokio::task::yield_now().await;
            }
        }
    }

    fn take(&self, read: Read) -> Option<watch::Receiver<usize>> {
        let mut state = self.lock();
        match &mut state.held {
            Some(held) => {
                held.push(read);
                None
            }
            None => self.give(&mut state, read),
        }
    }

    /// Writes the output that was held back.
    fn release(&self, state: &mut State) {
        for read in state.held.take().unwrap_or_default() {
            self.give(state, read);
        }
    }

    fn give(&self, state: &mut State, read: Read) -> Option<watch::Receiver<usize>> {
        let State { log, splitters, mask, last_of_stderr, .. } = state;
        let Read { stream, at, bytes } = read;
        let splitter = &mut splitters[stream as usize];
        let parts = match &bytes {
            Some(bytes) => splitter.push(bytes, mask),
            None => splitter.finish(mask),
        };
        let mut mark = None;
        let mut lines = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Part::Line(text) => lines.push(LogLine::new(at, stream.into(), text)),
                Part::Mark(attempt) => mark = Some(Mark::Of(attempt)),
            }
        }
        if matches!(stream, Stream::Stderr) {
            last_of_stderr.extend(lines.iter().map(|line| line.text.clone()));
            let surplus = last_of_stderr.len().saturating_sub(LAST_LINES);
            last_of_stderr.drain(..surplus);
        }
        let full = match log {
            Some(log) => log.push(lines),
            None => {
                for line in lines {
                    tracing::info!(target: "servo::project", stream = ?line.stream, "{}", line.text);
                }
                None
            }
        };
        if bytes.is_none() {
            mark = Some(Mark::End);
        }
        if let Some(mark) = mark {
            self.marks[stream as usize].send_replace(mark);
        }
        full
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use async_trait::async_trait;
    use servo_core::ManualClock;

    use super::*;
    use crate::logs::{LogName, LogSink, LogTarget};

    #[derive(Default)]
    struct Kept(Mutex<Vec<String>>);

    #[async_trait]
    impl LogSink for Kept {
        async fn write(&self, _target: &LogTarget, lines: Vec<LogLine>) -> io::Result<()> {
            self.0.lock().unwrap().extend(lines.into_iter().map(|line| line.text));
            Ok(())
        }

        async fn end(&self, _target: &LogTarget) {
            self.0.lock().unwrap().push("end".to_owned());
        }
    }

    fn begun(has_secrets: bool) -> (Arc<Kept>, Arc<Capture>) {
        let (kept, clock) = (Arc::new(Kept::default()), Arc::new(ManualClock::default()));
        let name = LogName {
            run_id: servo_core::RunId::from_u128(1),
            task_key: servo_core::TaskKey::parse("t/a:materialize").unwrap(),
            attempt: 1,
        };
        let target = LogTarget { name, task_token: String::new() };
        let capture = Capture::new(clock.clone());
        capture.begin(LogWriter::new(kept.clone(), target, clock, 1 << 20), has_secrets);
        (kept, capture)
    }

    fn read(capture: &Capture, stream: Stream, bytes: Option<&[u8]>) {
        capture.take(Read { stream, at: Timestamp::EPOCH, bytes: bytes.map(<[u8]>::to_vec) });
    }

    #[tokio::test]
    async fn what_is_printed_before_its_secrets_are_known_waits_for_them() {
        let (kept, capture) = begun(true);
        read(&capture, Stream::Stdout, Some(b"one hunter2\nand hunt"));
        read(&capture, Stream::Stderr, Some(b"hunter2"));
        read(&capture, Stream::Stderr, None);
        capture.mask(vec!["hunter2".to_owned()]);
        assert_eq!(capture.last_of_stderr(), "***");
        read(&capture, Stream::Stdout, Some(b"er2\n"));
        capture.end().unwrap().end().await;
        assert_eq!(*kept.0.lock().unwrap(), ["one ***", "***", "and ***", "end"]);
    }

    #[tokio::test]
    async fn an_attempt_ends_with_the_marks_of_both_streams_or_with_the_streams() {
        let (kept, capture) = begun(true);
        let id = "01JCQ0000000000000000000AA";
        let mark = format!("half a line\u{1}servo end {id}\nof the next\n");
        read(&capture, Stream::Stdout, Some(mark.as_bytes()));
        read(&capture, Stream::Stderr, None);
        capture.marked(id).await;
        capture.end().unwrap().end().await;
        assert_eq!(kept.0.lock().unwrap()[0], "half a line", "no secrets were needed");
    }
}
