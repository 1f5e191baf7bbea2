//! What tasks have printed, read from the files.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use servo_worker::LogLine;

/// The end of a file in which the last lines are looked for.
const LOOKED_AT: u64 = 256 * 1024;

/// The last lines of a log.
pub(crate) fn tail(path: &Path, count: usize) -> io::Result<Vec<LogLine>> {
    let mut file = File::open(path)?;
    let from = file.metadata()?.len().saturating_sub(LOOKED_AT);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    // Half a line at the start is no line of JSON, and is left out with everything else that is none.
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let mut lines: Vec<LogLine> = lines.collect();
    lines.drain(..lines.len().saturating_sub(count));
    Ok(lines)
}
