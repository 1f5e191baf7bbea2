//! Frames: four bytes of length, big-endian, and a JSON object of that length.

use serde::Serialize;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;

/// No frame is longer.
pub(super) const MAX_FRAME: usize = 16 << 20;
const HEADER: usize = 4;
/// Room for most frames.
const READ: usize = 8 << 10;

/// Reasons why there is no frame.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    /// The connection was closed, or failed.
    #[error("the connection ended: {0}")]
    Io(#[from] std::io::Error),
    /// The frame exceeds the limit.
    #[error("a frame of {len} bytes, and {MAX_FRAME} are allowed")]
    TooLong { len: usize },
    /// The message to send exceeds the limit.
    #[error("a message of {len} bytes, and a runner takes {MAX_FRAME}")]
    CannotSend { len: usize },
    /// The frame is not a valid message.
    #[error("a frame that is not a message: {0}")]
    Malformed(#[from] serde_json::Error),
}

/// The socket to a runner.
#[derive(Debug)]
pub(super) struct Frames<S = UnixStream> {
    socket: S,
    /// Bytes read that are not yet a whole frame.
    read: Vec<u8>,
    /// Length of the first frame, which was returned already.
    given: usize,
}

impl<S: AsyncRead + Unpin> Frames<S> {
    pub(super) fn new(socket: S) -> Self {
        Self { socket, read: Vec::new(), given: 0 }
    }

    /// Reads the next frame. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<&[u8], FrameError> {
        self.read.drain(..std::mem::take(&mut self.given));
        loop {
            if let Some(header) = self.read.first_chunk::<HEADER>() {
                let len = u32::from_be_bytes(*header) as usize;
                if len > MAX_FRAME {
                    return Err(FrameError::TooLong { len });
                }
                let end = HEADER + len;
                if self.read.len() >= end {
                    self.given = end;
                    return Ok(&self.read[HEADER..end]);
                }
                self.read.reserve(end - self.read.len());
            }
            self.read.reserve(READ);
            if self.socket.read_buf(&mut self.read).await? == 0 {
                return Err(FrameError::Io(std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> Frames<S> {
    /// Writes a message, in one piece.
    pub(super) async fn send(&mut self, message: &impl Serialize) -> Result<(), FrameError> {
        let mut frame = vec![0; HEADER];
        serde_json::to_writer(&mut frame, message)?;
        let len = frame.len() - HEADER;
        if len > MAX_FRAME {
            return Err(FrameError::CannotSend { len });
        }
        frame[..HEADER].copy_from_slice(&(len as u32).to_be_bytes());
        Ok(self.socket.write_all(&frame).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn a_frame_that_comes_in_parts_survives_whoever_stops_waiting_for_it() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut frames = Frames::new(ours);
        theirs.write_all(&[0, 0, 0, 5, b'h', b'e']).await.unwrap();
        assert!(frames.next().now_or_never().is_none());
        theirs.write_all(b"llo\0\0\0\x01!\0").await.unwrap();
        assert_eq!(frames.next().await.unwrap(), b"hello");
        assert_eq!(frames.next().await.unwrap(), b"!");
        drop(theirs);
        assert!(matches!(frames.next().await, Err(FrameError::Io(_))), "half a frame is none");
    }

    #[tokio::test]
    async fn a_frame_that_is_too_long_is_neither_read_nor_written() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut frames = Frames::new(ours);
        theirs.write_all(&[2, 0, 0, 0]).await.unwrap();
        assert!(matches!(frames.next().await, Err(FrameError::TooLong { len: 0x0200_0000 })));
        let long = "x".repeat(MAX_FRAME);
        assert!(matches!(frames.send(&long).await, Err(FrameError::CannotSend { .. })));
    }
}
