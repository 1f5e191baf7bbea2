//! Bytes that were printed, taken apart into lines and marks.
//!
//! At the end of a task its runner writes a mark to both streams. It ends a line even if the function did not.

use super::mask::Mask;

/// A longer line comes in pieces.
pub(super) const MAX_LINE: usize = 64 << 10;

/// Prefix of a mark; the id of the attempt follows.
const MARK: &[u8] = b"\x01servo end ";
/// Length of the id of an attempt.
const ID: usize = 26;

/// A part of printed output.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A line, or a piece of a long one, without secrets.
    Line(String),
    /// An attempt with this id has ended, and everything that it printed came before.
    Mark(String),
}

/// Splits the output of one stream.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    /// A line without its end so far.
    begun: Vec<u8>,
}

impl Splitter {
    /// Takes bytes, returns the parts that they complete.
    pub(super) fn push(&mut self, chunk: &[u8], mask: &Mask) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            self.end_line(mask, &mut parts);
        }
        self.begun.extend_from_slice(rest);
        // What is kept back may be the begin of a value or of a mark.
        let kept_back = mask.longest().max(MARK.len() + ID);
        while self.begun.len() > MAX_LINE + kept_back {
            parts.push(self.piece(mask));
        }
        parts
    }

    /// Returns the rest at the end of the stream.
    pub(super) fn finish(&mut self, mask: &Mask) -> Vec<Part> {
        let mut parts = Vec::new();
        if !self.begun.is_empty() {
            self.end_line(mask, &mut parts);
        }
        parts
    }

    fn end_line(&mut self, mask: &Mask, parts: &mut Vec<Part>) {
        let mark = mark_in(&self.begun);
        if let Some((at, _)) = mark {
            self.begun.truncate(at);
        } else if self.begun.last() == Some(&b'\r') {
            self.begun.pop();
        }
        while self.begun.len() > MAX_LINE {
            parts.push(self.piece(mask));
        }
        // A mark on a line of its own is no empty line.
        if mark.is_none() || !self.begun.is_empty() {
            parts.push(line(mask, std::mem::take(&mut self.begun)));
        }
        parts.extend(mark.map(|(_, attempt)| Part::Mark(attempt)));
    }

    /// Takes the first piece off a long line.
    fn piece(&mut self, mask: &Mask) -> Part {
        let mut at = mask.cut(&self.begun, MAX_LINE);
        // Not inside of a character, which has at most three more bytes.
        for _ in 0..3 {
            if at > 1 && self.begun.get(at).is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000) {
                at -= 1;
            }
        }
        let rest = self.begun.split_off(at);
        line(mask, std::mem::replace(&mut self.begun, rest))
    }
}

fn line(mask: &Mask, bytes: Vec<u8>) -> Part {
    let text = String::from_utf8(mask.apply(bytes));
    Part::Line(text.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Where a mark begins at the end of a line, and whose it is.
fn mark_in(line: &[u8]) -> Option<(usize, String)> {
    let at = line.len().checked_sub(MARK.len() + ID)?;
    let id = line[at..].strip_prefix(MARK)?;
    Some((at, String::from_utf8(id.to_vec()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "01JCQ0000000000000000000AA";

    /// The parts of a text that is read in pieces of a size.
    fn parts(text: &[u8], size: usize, mask: &Mask) -> Vec<Part> {
        let mut splitter = Splitter::default();
        let mut parts: Vec<Part> = text.chunks(size).flat_map(|chunk| splitter.push(chunk, mask)).collect();
        parts.extend(splitter.finish(mask));
        parts
    }

    fn line(text: &str) -> Part {
        Part::Line(text.to_owned())
    }

    #[test]
    fn lines_and_marks_are_told_apart_wherever_reads_end() {
        let text = format!("one\r\n\ntwo\x01servo end {A}\n\x01servo end {A}\nnot \u{1}servo end\nlast");
        let mark = || Part::Mark(A.to_owned());
        let expected =
            [line("one"), line(""), line("two"), mark(), mark(), line("not \u{1}servo end"), line("last")];
        for size in 1..text.len() {
            assert_eq!(parts(text.as_bytes(), size, &Mask::default()), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn a_secret_is_masked_wherever_reads_and_pieces_end() {
        let mut mask = Mask::default();
        mask.add(vec!["hunter2".to_owned()]);
        for size in 1..20 {
            assert_eq!(parts(b"password hunter2!\n", size, &mask), [line("password ***!")]);
        }
        for before in MAX_LINE - 8..=MAX_LINE {
            let text = format!("{}hunter2{}\n", "x".repeat(before), "y".repeat(before));
            let shown: String = parts(text.as_bytes(), 4096, &mask)
                .into_iter()
                .map(|part| match part {
                    Part::Line(piece) => {
                        assert!(piece.len() <= MAX_LINE);
                        piece
                    }
                    Part::Mark(_) => panic!("there is no mark"),
                })
                .collect();
            assert_eq!(shown, format!("{}***{}", "x".repeat(before), "y".repeat(before)));
        }
    }

    #[test]
    fn a_long_line_comes_in_pieces_without_a_broken_character_or_a_lost_mark() {
        let long = "ä".repeat(MAX_LINE);
        let text = format!("{long}\u{1}servo end {A}\n");
        for size in [1_000, MAX_LINE, 10 * MAX_LINE] {
            let mut found = parts(text.as_bytes(), size, &Mask::default());
            assert_eq!(found.pop(), Some(Part::Mark(A.to_owned())));
            assert_eq!(found, [line(&long[..MAX_LINE]), line(&long[MAX_LINE..])]);
        }
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_replaced() {
        assert_eq!(parts(b"caf\xe9\n", 2, &Mask::default()), [line("caf\u{fffd}")]);
    }
}
