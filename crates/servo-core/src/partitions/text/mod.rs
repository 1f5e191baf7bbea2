//! Keys as people type them.
//!
//! | text | is |
//! |---|---|
//! | `2013-01-15` | a day, a week or a month by its first day |
//! | `2013-01` | the month that starts in it |
//! | `2013-01-15T05`, `2013-01-15T05:00` | an hour or tick, by the clock of the definition's zone |
//! | `2013-01-15T05:00:00Z`, `…+01:00` | the same at an instant |
//! | `us-east`, `"us, east"` | a static or dynamic key; quoted if it has `,`, `=`, `"` or `..` in it |
//! | `date=2013-01-15,region=us-east` | one of several dimensions; all along those that are left out |
//! | `date=d:2013-01-15` | the canonical text |
//! | `A..B`, `A..`, `..B` | from `A` to `B`, both included |
//! | `date=A..B,region=us-east` | a range along one dimension |
//!
//! The short form that [`PartitionKey`] displays is always among them.

mod clock;
mod partial;
mod range;
mod value;
mod words;

pub use partial::PartialKey;
pub(super) use value::{read, unlisted};

use std::collections::BTreeMap;

use self::words::{Entry, Word};
use super::error::{KeyError, Reason};
use super::moment::Moment;
use super::partition_set::PartitionSet;
use super::set::Partitions;
use crate::parse_error::shorten;

impl Partitions {
    /// Reads a key as people type it. What can be known without a moment is checked: that dates are of these
    /// partitions and that static keys are listed.
    ///
    /// ```
    /// use servo_core::{PartitionsDef, partitions::Span};
    /// let months = PartitionsDef::Monthly { day: 1, span: Span::new("2013-01-01") }.validate()?;
    /// assert_eq!(months.parse_key("2013-02")?.key().unwrap().canonical(), "month=d:2013-02-01");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse_key(&self, text: &str) -> Result<PartialKey, KeyError> {
        self.read_key(text).map_err(|reason| KeyError { key: shorten(text), reason })
    }

    /// Reads a range of keys, or a key, as the partitions there are: from `A` to `B` along every dimension, both
    /// included.
    pub fn parse_range<'m>(&self, text: &str, at: impl Into<Moment<'m>>) -> Result<PartitionSet, KeyError> {
        range::read(self, text, at.into())
    }

    fn read_key(&self, text: &str) -> Result<PartialKey, Reason> {
        let entries = words::key(text).map_err(|problem| self.unreadable(problem))?;
        let mut values = BTreeMap::new();
        for Entry { dim, word } in entries {
            let (name, dimension) = &self.dims()[self.position_of(dim.as_deref(), &word)?];
            if values.insert(name.clone(), value::of_word(name, dimension, &word)?).is_some() {
                return Err(self.unreadable(format!("{name} is given twice")));
            }
        }
        Ok(PartialKey::new(values, self.dims()))
    }

    /// Which dimension has a name, or is the only one.
    fn position_of(&self, name: Option<&str>, word: &Word) -> Result<usize, Reason> {
        match (name, &self.dims()[..]) {
            (None, [_]) => Ok(0),
            (None, _) => Err(self.unreadable(format!("{:?} could be of any dimension", word.text))),
            (Some(name), dims) => dims.iter().position(|(dim, _)| dim == name).ok_or_else(|| {
                Reason::Dimensions { expected: self.dimensions().collect::<Vec<_>>().join(", ") }
            }),
        }
    }

    /// The reason for a problem, with examples of all dimensions.
    fn unreadable(&self, problem: String) -> Reason {
        let example = match &self.dims()[..] {
            [(_, only)] => value::example(only),
            dims => {
                let examples =
                    dims.iter().map(|(name, dimension)| format!("{name}={}", value::one_example(dimension)));
                examples.collect::<Vec<_>>().join(",")
            }
        };
        Reason::Unreadable { problem, example }
    }
}
