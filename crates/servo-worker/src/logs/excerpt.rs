//! The beginning and the end of what an attempt prints, if it prints more than is kept.

use std::collections::VecDeque;

use servo_core::Timestamp;

use super::{LogLevel, LogLine, LogStream, bytes_of};

/// The part of the limit that is kept of the beginning; the rest is for the end.
const BEGINNING: (usize, usize) = (3, 4);

/// Lets lines through up to a limit, and then keeps the last ones.
#[derive(Debug)]
pub(super) struct Excerpt {
    limit: usize,
    begun: usize,
    end: Option<End>,
}

#[derive(Debug, Default)]
struct End {
    lines: VecDeque<LogLine>,
    bytes: usize,
    dropped_lines: u64,
    dropped_bytes: u64,
}

impl Excerpt {
    /// Keeps so many bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, begun: 0, end: None }
    }

    /// The lines that are kept now.
    pub(super) fn take(&mut self, mut lines: Vec<LogLine>) -> Vec<LogLine> {
        let beginning = self.limit / BEGINNING.1 * BEGINNING.0;
        if self.end.is_none() {
            let mut begun = self.begun;
            let mut fits = |line: &LogLine| {
                begun += bytes_of(line);
                begun <= beginning
            };
            let count = lines.iter().take_while(|line| fits(line)).count();
            self.begun += lines[..count].iter().map(bytes_of).sum::<usize>();
            if count == lines.len() {
                return lines;
            }
            let at = lines[count].at;
            let rest = lines.split_off(count);
            let (shown, kept) = (mebibytes(beginning as u64), mebibytes((self.limit - beginning) as u64));
            lines.push(notice(
                at,
                format!(
                    "{shown} were printed: of what follows only the last {kept} are kept, and shown when the attempt ends"
                ),
            ));
            self.end = Some(End::default());
            self.keep_last(rest, beginning);
            return lines;
        }
        self.keep_last(lines, beginning);
        Vec::new()
    }

    fn keep_last(&mut self, lines: Vec<LogLine>, beginning: usize) {
        let Some(end) = &mut self.end else { return };
        for line in lines {
            end.bytes += bytes_of(&line);
            end.lines.push_back(line);
            while end.bytes > self.limit - beginning
                && let Some(oldest) = end.lines.pop_front()
            {
                end.bytes -= bytes_of(&oldest);
                end.dropped_lines += 1;
                end.dropped_bytes += oldest.text.len() as u64;
            }
        }
    }

    /// The lines that are kept of the end, after one that says how many are not.
    pub(super) fn end(self, now: Timestamp) -> Vec<LogLine> {
        let Some(end) = self.end else { return Vec::new() };
        let mut lines = Vec::with_capacity(end.lines.len() + 1);
        if end.dropped_lines > 0 {
            let (count, size) = (end.dropped_lines, mebibytes(end.dropped_bytes));
            let limit = mebibytes(self.limit as u64);
            let text =
                format!("{count} lines, {size}, are left out here: at most {limit} of an attempt are kept");
            lines.push(notice(end.lines.front().map_or(now, |line| line.at), text));
        }
        lines.extend(end.lines);
        lines
    }
}

fn notice(at: Timestamp, text: String) -> LogLine {
    LogLine { level: Some(LogLevel::Warning), ..LogLine::new(at, LogStream::Servo, text) }
}

fn mebibytes(bytes: u64) -> String {
    match bytes >> 20 {
        0 => format!("{bytes} bytes"),
        whole => format!("{whole} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(range: std::ops::Range<u32>) -> Vec<LogLine> {
        let line = |number| LogLine::new(Timestamp::EPOCH, LogStream::Stdout, format!("line {number:04}"));
        range.map(line).collect()
    }

    #[test]
    fn what_fits_is_kept_as_it_comes() {
        let mut excerpt = Excerpt::new(1 << 20);
        assert_eq!(excerpt.take(lines(0..10)), lines(0..10));
        assert_eq!(excerpt.end(Timestamp::EPOCH), []);
    }

    #[test]
    fn of_more_the_beginning_and_the_end_are_kept_and_the_cut_is_told() {
        let each = bytes_of(&lines(0..1)[0]);
        let mut excerpt = Excerpt::new(40 * each);
        let begun: Vec<_> = (0..10).flat_map(|part| excerpt.take(lines(part * 10..part * 10 + 10))).collect();
        assert_eq!(begun[..30], lines(0..30));
        assert_eq!(begun.len(), 31);
        assert!(begun[30].text.contains("only the last"), "{}", begun[30].text);
        let end = excerpt.end(Timestamp::EPOCH);
        assert_eq!(end[1..], lines(90..100));
        assert!(end[0].text.starts_with("60 lines, 540 bytes, are left out here"), "{}", end[0].text);
    }

    #[test]
    fn a_little_more_than_the_beginning_loses_nothing() {
        let each = bytes_of(&lines(0..1)[0]);
        let mut excerpt = Excerpt::new(40 * each);
        assert_eq!(excerpt.take(lines(0..35)).len(), 31);
        assert_eq!(excerpt.end(Timestamp::EPOCH), lines(30..35));
    }
}
