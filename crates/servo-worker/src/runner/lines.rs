//! What a runner prints, line by line, with time and stream.
//!
//! At the end of a task the runner writes a marker to both streams; when both have come, everything that was printed before
//! has been read, so no line is lost and none is taken for a line of the next task.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use servo_core::{Clock, Timestamp};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::sync::watch;

/// A longer line comes in pieces.
const MAX_LINE: usize = 64 << 10;
/// What replaces a secret.
const MASK: &str = "***";

/// Where a line was printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// One line of output.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Line {
    pub at: Timestamp,
    pub stream: Stream,
    pub text: String,
}

/// Takes the lines of an attempt, in order.
pub trait LineSink: Send + Sync {
    /// Takes the next lines. It may not wait for anything that user code decides about.
    fn take(&self, lines: Vec<Line>);
}

/// The output of one runner, of which one attempt at a time is the owner.
pub(super) struct Capture {
    owner: Mutex<Owner>,
    clock: Arc<dyn Clock>,
    /// How many markers have come, of each stream.
    marks: [watch::Sender<u64>; 2],
}

#[derive(Default)]
struct Owner {
    sink: Option<Arc<dyn LineSink>>,
    marker: String,
    masked: Vec<String>,
    /// Printed while no attempt was at work, such as during imports; given to the next one.
    before: VecDeque<Line>,
}

/// How many lines are kept while no attempt is at work.
const KEPT_BEFORE: usize = 1_000;

impl Capture {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        let marks = [watch::channel(0).0, watch::channel(0).0];
        Arc::new(Self { owner: Mutex::default(), clock, marks })
    }

    /// From now on lines belong to an attempt.
    pub(super) fn begin(&self, sink: Arc<dyn LineSink>, marker: String) {
        let mut owner = self.lock();
        let before: Vec<Line> = owner.before.drain(..).collect();
        if !before.is_empty() {
            sink.take(before);
        }
        *owner = Owner { sink: Some(sink), marker, ..Owner::default() };
    }

    /// Replaces these values from now on.
    pub(super) fn mask(&self, values: Vec<String>) {
        let mut values: Vec<String> = values.into_iter().filter(|value| !value.is_empty()).collect();
        // The longest first, so that a secret that contains another is replaced whole.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        self.lock().masked = values;
    }

    /// How many markers have come, to wait for the next.
    pub(super) fn marks(&self) -> [(u64, watch::Receiver<u64>); 2] {
        [0, 1].map(|stream| {
            let receiver = self.marks[stream].subscribe();
            let seen = *receiver.borrow();
            (seen, receiver)
        })
    }

    /// Lines belong to nobody again.
    pub(super) fn end(&self) {
        *self.lock() = Owner::default();
    }

    /// Reads a stream to its end.
    pub(super) async fn read(self: Arc<Self>, stream: Stream, from: impl AsyncRead + Unpin) {
        let mut reader = BufReader::with_capacity(MAX_LINE, from);
        let mut partial = Vec::new();
        loop {
            let chunk = match reader.fill_buf().await {
                Ok([]) | Err(_) => break,
                Ok(chunk) => chunk,
            };
            let len = chunk.len();
            let texts = split(&mut partial, chunk);
            reader.consume(len);
            self.give(stream, texts);
        }
        let rest = std::mem::take(&mut partial);
        if !rest.is_empty() {
            self.give(stream, vec![rest]);
        }
        // Nothing more comes: whoever waits for a marker need not.
        self.marks[stream as usize].send_modify(|marks| *marks = u64::MAX);
    }

    fn give(&self, stream: Stream, texts: Vec<Vec<u8>>) {
        if texts.is_empty() {
            return;
        }
        let at = self.clock.now();
        let mut owner = self.lock();
        let mut lines = Vec::with_capacity(texts.len());
        let mut marked = 0;
        for text in texts {
            let mut text = String::from_utf8_lossy(&text).into_owned();
            if !owner.marker.is_empty() && text.ends_with(&owner.marker) {
                marked += 1;
                text.truncate(text.len() - owner.marker.len());
                if text.is_empty() {
                    continue;
                }
            }
            for secret in &owner.masked {
                if text.contains(secret.as_str()) {
                    text = text.replace(secret.as_str(), MASK);
                }
            }
            lines.push(Line { at, stream, text });
        }
        match &owner.sink {
            Some(sink) => sink.take(lines),
            None => {
                owner.before.extend(lines);
                while owner.before.len() > KEPT_BEFORE {
                    owner.before.pop_front();
                }
            }
        }
        if marked > 0 {
            self.marks[stream as usize].send_modify(|marks| *marks = marks.saturating_add(marked));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Owner> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The whole lines in what was read so far; the rest stays in `partial`.
fn split(partial: &mut Vec<u8>, chunk: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    let mut rest = chunk;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        partial.extend_from_slice(&rest[..end]);
        if partial.last() == Some(&b'\r') {
            partial.pop();
        }
        lines.push(std::mem::take(partial));
        rest = &rest[end + 1..];
    }
    partial.extend_from_slice(rest);
    if partial.len() >= MAX_LINE {
        lines.push(std::mem::take(partial));
    }
    lines
}
