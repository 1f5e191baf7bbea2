//! The readers of this crate by themselves, for fuzzers.

use crate::file_log::parse_boundary;
use crate::line::{self, Line};
use crate::{Damage, ReadError, Record, Seq};

/// Reads a line of the log, given without its line break.
pub fn log_line(bytes: &[u8]) -> Result<Record, Damage> {
    line::parse(bytes).and_then(Line::to_record)
}

/// The line of a record, with its line break.
pub fn write_line(record: &Record) -> Vec<u8> {
    line::encode(record)
}

/// Whether a whole line hides inside this bad one.
pub fn hides_a_whole_line(bytes: &[u8]) -> bool {
    line::hides_a_whole_line(bytes)
}

/// Reads the file that says where a log begins.
pub fn boundary(bytes: &[u8]) -> Result<Seq, ReadError> {
    parse_boundary(bytes, "boundary".to_owned())
}
