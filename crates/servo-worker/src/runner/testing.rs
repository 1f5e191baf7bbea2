//! The readers of what runners say and print by themselves, for fuzzers.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::FutureExt;
use tokio::io::{AsyncRead, ReadBuf};

use super::frames::Frames;
use super::lines::{Part, Splitter};
use super::mask::Mask;
use super::protocol::Reply;
use crate::project::{Answer, ScanError, Scanned};

/// A longer line comes in pieces.
pub const MAX_LINE: usize = super::lines::MAX_LINE;

/// A part of printed output.
#[derive(Debug, PartialEq, Eq)]
pub enum Printed {
    /// A line, or a piece of a long one, without secrets.
    Line(String),
    /// The id of an attempt that has ended.
    Mark(String),
}

/// A connection on which bytes arrive in pieces of a size.
struct Pieces<'a> {
    rest: &'a [u8],
    size: usize,
}

impl AsyncRead for Pieces<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let (piece, rest) = self.rest.split_at(self.size.min(self.rest.len()).min(buffer.remaining()));
        buffer.put_slice(piece);
        self.rest = rest;
        Poll::Ready(Ok(()))
    }
}

/// Parses the messages of a runner from bytes that arrive in pieces of a size, until the connection cannot be used any
/// more.
pub fn replies(bytes: &[u8], size: usize) -> Vec<String> {
    let mut frames = Frames::new(Pieces { rest: bytes, size });
    let mut told = Vec::new();
    loop {
        let frame = frames.next().now_or_never().expect("these bytes never have to be waited for");
        match frame {
            Ok(frame) => match Reply::read(frame) {
                Ok(reply) => told.push(format!("{reply:?}")),
                Err(error) => told.push(error.to_string()),
            },
            Err(error) => {
                told.push(error.to_string());
                return told;
            }
        }
    }
}

/// Captures the output of user code from bytes that arrive in pieces of a size.
pub fn printed(bytes: &[u8], size: usize, secrets: &[&str]) -> Vec<Printed> {
    let mut mask = Mask::default();
    mask.add(secrets.iter().map(|secret| (*secret).to_owned()).collect());
    let mut splitter = Splitter::default();
    let mut parts: Vec<Part> = bytes.chunks(size).flat_map(|chunk| splitter.push(chunk, &mask)).collect();
    parts.extend(splitter.finish(&mask));
    let told = |part| match part {
        Part::Line(line) => Printed::Line(line),
        Part::Mark(attempt) => Printed::Mark(attempt),
    };
    parts.into_iter().map(told).collect()
}

/// Parses the answer of a scan.
pub fn scan_answer(bytes: &[u8]) -> Result<Scanned, ScanError> {
    Answer::read(bytes)?.understand()
}
