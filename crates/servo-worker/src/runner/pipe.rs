//! A pipe for the output of user code that never blocks it longer than needed.
//!
//! It holds as much as the system allows, and nobody is woken by what is printed unless somebody waits for it: whoever
//! prints neither waits for a turn of this process nor pays for waking it with every line.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;

use tokio::net::unix::pipe::Receiver;

/// Requested capacity of the pipe: the most that the system allows by default.
#[cfg(target_os = "linux")]
const ROOM: usize = 1 << 20;

/// The end to read from.
#[derive(Debug)]
pub(super) struct Pipe {
    /// None only while it is awaited.
    file: Option<File>,
}

impl Pipe {
    pub(super) fn new(end: OwnedFd) -> io::Result<Self> {
        // An error means that there is less room.
        #[cfg(target_os = "linux")]
        let _denied = rustix::pipe::fcntl_setpipe_size(&end, ROOM);
        let unblocked = Receiver::from_owned_fd(end)?.into_nonblocking_fd()?;
        Ok(Self { file: Some(unblocked.into()) })
    }

    /// Reads what is there, or waits until something is; 0 at the end.
    pub(super) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let mut file = self.file.take().ok_or(ErrorKind::BrokenPipe)?;
            match file.read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let waiting = Receiver::from_owned_fd_unchecked(file.into())?;
                    waiting.readable().await?;
                    self.file = Some(waiting.into_nonblocking_fd()?.into());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => self.file = Some(file),
                done => {
                    self.file = Some(file);
                    return done;
                }
            }
        }
    }
}
