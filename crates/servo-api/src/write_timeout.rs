//! Breaks off clients that do not read what they have asked for.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// A stream whose writes fail when nothing could be written for a while. A slow reader that goes on reading is no
/// problem, nor is a stream that has nothing to say.
#[derive(Debug)]
pub(crate) struct WriteTimeout<S> {
    stream: S,
    limit: Duration,
    /// Runs while a write waits.
    timer: Pin<Box<Sleep>>,
    waits: bool,
}

impl<S> WriteTimeout<S> {
    pub(crate) fn new(stream: S, limit: Duration) -> Self {
        Self { stream, limit, timer: Box::pin(sleep_until(Instant::now())), waits: false }
    }

    /// The outcome of a write, unless it has waited for too long.
    fn within<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waits = false;
            return written;
        }
        if !self.waits {
            self.waits = true;
            self.timer.as_mut().reset(Instant::now() + self.limit);
        }
        ready!(self.timer.as_mut().poll(context));
        let problem = format!("the client has read nothing for {} s", self.limit.as_secs());
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, problem)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.within(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.within(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.within(context, ended)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    /// A stream with room for 16 bytes that nobody has read yet, and who reads it.
    async fn full(limit: Duration) -> (WriteTimeout<DuplexStream>, DuplexStream) {
        let (server, client) = duplex(16);
        let mut server = WriteTimeout::new(server, limit);
        server.write_all(&[7; 16]).await.expect("there is room");
        (server, client)
    }

    /// When a write fails for which there is no room now.
    fn deadline_of_write(server: &mut WriteTimeout<DuplexStream>) -> Instant {
        let mut context = Context::from_waker(Waker::noop());
        let written = Pin::new(&mut *server).poll_write(&mut context, &[7; 16]);
        assert!(written.is_pending(), "there is no room");
        server.timer.deadline()
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_is_broken_off_after_the_limit() {
        let limit = Duration::from_millis(20);
        let (mut server, _client) = full(limit).await;
        let start = Instant::now();
        let error = server.write_all(&[7; 16]).await.expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() >= limit, "broken off after {:?}", start.elapsed());
    }

    #[tokio::test]
    async fn a_client_that_reads_slowly_has_the_whole_limit_for_each_part() {
        let (mut server, mut client) = full(LIMIT).await;
        let first = deadline_of_write(&mut server);
        assert_eq!(deadline_of_write(&mut server), first, "asking again gives no more time");
        client.read_exact(&mut [0; 16]).await.expect("there is something");
        let read = Instant::now();
        server.write_all(&[7; 16]).await.expect("there is room again");
        assert!(deadline_of_write(&mut server) >= read + LIMIT);
    }

    #[tokio::test]
    async fn a_stream_that_was_quiet_has_the_whole_limit_for_its_next_words() {
        let (mut server, _client) = full(LIMIT).await;
        let quiet_until = Instant::now();
        assert!(deadline_of_write(&mut server) >= quiet_until + LIMIT);
    }
}
