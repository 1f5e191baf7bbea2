//! Logs as files: one per attempt, one JSON object per line.
//!
//! No file stays open between writes, and nothing is kept about a log that nobody watches. Files hold whole lines only:
//! what was half written when the disk became full, or the process ended, is cut off by the next write.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use servo_store::Layout;
use tokio::sync::watch;

use super::{LogLine, LogName, LogSink, LogTarget};

/// How much is read at once when a line is longer than what was asked for.
const READ: u64 = 64 << 10;

/// The logs below a directory.
#[derive(Debug)]
pub struct LogFiles {
    directory: PathBuf,
    layout: Layout,
    watched: Mutex<BTreeMap<LogName, watch::Sender<LogState>>>,
}

/// The state of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogState {
    /// Bytes that can be read.
    pub len: u64,
    /// Whether no more lines will come.
    pub ended: bool,
}

/// A part of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogChunk {
    /// Complete lines of JSON.
    pub bytes: Vec<u8>,
    /// The offset of the next part.
    pub next: u64,
}

impl LogChunk {
    /// The lines; malformed ones are left out.
    pub fn lines(&self) -> impl Iterator<Item = LogLine> + '_ {
        self.bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
    }
}

impl LogFiles {
    /// Logs of a workspace below the directory of all state. What is missing is made when there is something to write.
    pub fn new(directory: impl Into<PathBuf>, layout: Layout) -> Self {
        Self { directory: directory.into(), layout, watched: Mutex::default() }
    }

    /// The file of a log, which need not be there.
    pub fn path(&self, name: &LogName) -> PathBuf {
        let LogName { run_id, task_key, attempt } = name;
        let file = self.layout.attempt_log(*run_id, task_key, *attempt);
        self.directory.join(self.layout.prefix()).join(file)
    }

    /// The directory of all logs of the workspace.
    pub(super) fn all(&self) -> PathBuf {
        self.directory.join(self.layout.prefix()).join(self.layout.attempt_logs())
    }

    /// Reads whole lines from an offset that begins one: at most `max_bytes`, but always one if there is any. A log
    /// that is not there is empty.
    pub async fn read(&self, name: &LogName, from: u64, max_bytes: usize) -> io::Result<LogChunk> {
        let path = self.path(name);
        blocking(move || match File::open(path) {
            Ok(file) => read_lines(&file, from, max_bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(LogChunk { bytes: Vec::new(), next: from })
            }
            Err(error) => Err(error),
        })
        .await
    }

    /// Notifies of every append and of the end. Only a running attempt comes to an end: watch first, then ask the
    /// control plane whether it runs.
    pub fn watch(&self, name: &LogName) -> watch::Receiver<LogState> {
        let mut watched = self.lock();
        // Those that nobody watches any more, of attempts whose worker never came back to say that it was all.
        watched.retain(|_, sender| !sender.is_closed());
        if let Some(sender) = watched.get(name) {
            return sender.subscribe();
        }
        let len = fs::metadata(self.path(name)).map_or(0, |found| found.len());
        let (sender, receiver) = watch::channel(LogState { len, ended: false });
        watched.insert(name.clone(), sender);
        receiver
    }

    /// Appends lines, all or none.
    pub async fn append(&self, name: &LogName, lines: Vec<LogLine>) -> io::Result<()> {
        let path = self.path(name);
        let len = blocking(move || append(&path, &encoded(&lines)?)).await?;
        if let Some(sender) = self.lock().get(name) {
            sender.send_modify(|state| state.len = len);
        }
        Ok(())
    }

    /// Notifies watchers that no more lines will come.
    pub fn end(&self, name: &LogName) {
        if let Some(sender) = self.lock().remove(name) {
            sender.send_modify(|state| state.ended = true);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<LogName, watch::Sender<LogState>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl LogSink for LogFiles {
    async fn write(&self, target: &LogTarget, lines: Vec<LogLine>) -> io::Result<()> {
        self.append(&target.name, lines).await
    }

    async fn end(&self, target: &LogTarget) {
        LogFiles::end(self, &target.name);
    }
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

fn encoded(lines: &[LogLine]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(lines.iter().map(|line| line.text.len() + 64).sum());
    for line in lines {
        serde_json::to_writer(&mut bytes, line)?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// Appends to a file, and gives its length.
fn append(path: &Path, bytes: &[u8]) -> io::Result<u64> {
    let mut file = match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(path.parent().unwrap_or(path))?;
            open(path)?
        }
        opened => opened?,
    };
    let len = whole_lines(&file)?;
    let end = len + bytes.len() as u64;
    if let Err(error) = file.write_all(bytes) {
        file.set_len(len)?;
        return Err(error);
    }
    Ok(end)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).open(path)
}

/// Cuts off a torn line at the end, which a killed process left, and returns the length.
fn whole_lines(file: &File) -> io::Result<u64> {
    let len = file.metadata()?.len();
    let mut end = len;
    let mut last = [0; 1];
    while end > 0 {
        file.read_exact_at(&mut last, end - 1)?;
        if last[0] == b'\n' {
            break;
        }
        end -= 1;
    }
    if end < len {
        file.set_len(end)?;
    }
    Ok(end)
}

fn read_lines(mut file: &File, from: u64, max_bytes: usize) -> io::Result<LogChunk> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(max_bytes as u64).read_to_end(&mut bytes)?;
    let mut end = bytes.iter().rposition(|byte| *byte == b'\n');
    while end.is_none() {
        let searched = bytes.len();
        if file.take(READ).read_to_end(&mut bytes)? == 0 {
            break;
        }
        end = bytes[searched..].iter().position(|byte| *byte == b'\n').map(|found| searched + found);
    }
    bytes.truncate(end.map_or(0, |end| end + 1));
    let next = from + bytes.len() as u64;
    Ok(LogChunk { bytes, next })
}
