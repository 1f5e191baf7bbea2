//! Objects whose members arrive in any order and leave sorted.

use std::borrow::Cow;
use std::ops::Range;

use super::error::{Error, Problem};
use super::text::write_string;

/// An object being written. Members go straight to the output; only if they came unsorted are they moved at the end.
pub(crate) struct Object<'k> {
    start: usize,
    members: Vec<(Cow<'k, str>, Range<usize>)>,
    is_sorted: bool,
}

impl<'k> Object<'k> {
    /// Writes the opening brace.
    pub(crate) fn open(out: &mut String) -> Self {
        let start = out.len();
        out.push('{');
        Self { start, members: Vec::new(), is_sorted: true }
    }

    /// Writes one member; `write_value` writes its value.
    pub(crate) fn member(
        &mut self,
        out: &mut String,
        key: Cow<'k, str>,
        write_value: impl FnOnce(&mut String) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if let Some((previous, _)) = self.members.last() {
            out.push(',');
            self.is_sorted &= **previous < *key;
        }
        let start = out.len();
        write_string(out, &key);
        out.push(':');
        write_value(out).map_err(|error| error.under_key(&key))?;
        self.members.push((key, start..out.len()));
        Ok(())
    }

    /// Puts the members in order, refuses duplicates, writes the closing brace.
    pub(crate) fn close(mut self, out: &mut String) -> Result<(), Error> {
        if !self.is_sorted {
            // Rust orders strings by UTF-8 bytes, which is the order of code points, which is Python's.
            self.members.sort_unstable_by(|left, right| left.0.cmp(&right.0));
            if let Some(twin) = self.members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(Error::new(Problem::DuplicateKey(twin[0].0.clone().into_owned())));
            }
            let unsorted = out.split_off(self.start);
            out.push('{');
            for (position, (_, range)) in self.members.iter().enumerate() {
                if position > 0 {
                    out.push(',');
                }
                out.push_str(&unsorted[range.start - self.start..range.end - self.start]);
            }
        }
        out.push('}');
        Ok(())
    }
}
