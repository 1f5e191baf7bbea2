//! Keys as people type them.
//!
//! | text | is |
//! |---|---|
//! | `2013-01-15` | a day: the partitions that start in it, or the week, month or tick around it |
//! | `2013-01` | a month in the same way |
//! | `2013-01-15T05`, `2013-01-15T05:00` | an hour or a minute in the same way, by the clock of the definition's zone |
//! | `2013-01-15T05:00:00Z`, `…+01:00` | the same at an instant |
//! | `us-east`, `"us, east"` | a static or dynamic key; quoted if it has `,`, `=`, `"` or `..` in it |
//! | `date=2013-01-15,region=us-east` | one of several dimensions; all along those that are left out |
//! | `2013-01-15` or `us-east` of several | the same along the one dimension that can read it |
//! | `date=d:2013-01-15` | the canonical text |
//! | `A..B`, `A..`, `..B`, `..` | from the first that `A` names to the last that `B` names, as far as they exist |
//! | `date=A..B,region=us-east` | a range along one dimension |
//!
//! The short form that [`PartitionKey`] displays is always among them. [`Partitions::parse_key`] takes only what is the
//! name of one partition, [`Partitions::parse_named`] and [`Partitions::parse_range`] whatever lies in it or around it.
//!
//! [`PartitionKey`]: crate::PartitionKey

mod clock;
mod named;
mod partial;
mod value;
mod words;

pub use named::Wording;
pub use partial::PartialKey;
pub(super) use value::{read, unlisted};

use std::collections::BTreeMap;

use self::named::Scope;
use self::words::{Entry, Word};
use super::context::PartitionContext;
use super::dimension::Dimension;
use super::error::{KeyError, Reason};
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

    /// Reads a key as the partitions that it names, of those there are: a day of hourly partitions is its hours, a day
    /// of monthly ones the month around it.
    ///
    /// ```
    /// use servo_core::{PartitionsDef, Timestamp, partitions::Span};
    /// let hours = PartitionsDef::Hourly { span: Span::new("2024-01-01T00:00").in_zone("Europe/Amsterdam") }.validate()?;
    /// assert_eq!(hours.parse_named("2024-03-31", Timestamp::MAX)?.len(), 23);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse_named<'m>(
        &self,
        text: &str,
        at: impl Into<PartitionContext<'m>>,
    ) -> Result<PartitionSet, KeyError> {
        named::read(self, text, Wording::Key, Scope::Whole, at.into())
    }

    /// Reads a range of keys, or a key, as the partitions there are: along every dimension from the first that `A`
    /// names to the last that `B` names.
    pub fn parse_range<'m>(
        &self,
        text: &str,
        at: impl Into<PartitionContext<'m>>,
    ) -> Result<PartitionSet, KeyError> {
        named::read(self, text, Wording::Range, Scope::Whole, at.into())
    }

    /// Reads a text that was written for other partitions: what it says of dimensions that these have, or if it says
    /// nothing of them, the time that it means to their only dimension of time.
    ///
    /// ```
    /// use servo_core::{PartitionsDef, Timestamp, partitions::{Span, Wording}};
    /// let hours = PartitionsDef::Hourly { span: Span::new("2024-01-01T00:00") }.validate()?;
    /// assert_eq!(hours.parse_part("date=2024-01-05,region=eu", Wording::Key, Timestamp::MAX)?.len(), 24);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse_part<'m>(
        &self,
        text: &str,
        wording: Wording,
        at: impl Into<PartitionContext<'m>>,
    ) -> Result<PartitionSet, KeyError> {
        named::read(self, text, wording, Scope::KnownDimensions, at.into())
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

    /// Which dimension has a name; without one, the only dimension, or the only one that can read the word: that of
    /// time if it is a time, otherwise the one that lists it.
    fn position_of(&self, name: Option<&str>, word: &Word) -> Result<usize, Reason> {
        let only = |reads: &dyn Fn(&Dimension) -> bool| {
            let mut reading = self.dims().iter().enumerate().filter(|(_, (_, dimension))| reads(dimension));
            reading.next().filter(|_| reading.next().is_none()).map(|(position, _)| position)
        };
        match (name, &self.dims()[..]) {
            (None, [_]) => Ok(0),
            (None, _) => {
                let by_time = only(&|dimension| clock::reads(dimension, word));
                let is_listed = |dimension: &Dimension| match dimension {
                    Dimension::Static(keys) => keys.find(&word.text).is_some(),
                    Dimension::Time(_) | Dimension::Dynamic(_) => false,
                };
                let found = by_time.or_else(|| only(&is_listed));
                found.ok_or_else(|| self.unreadable(format!("{:?} could be of any dimension", word.text)))
            }
            (Some(name), dims) => {
                dims.iter().position(|(dim, _)| dim == name).ok_or_else(|| self.other_dimensions())
            }
        }
    }

    /// That a text names other dimensions than these.
    fn other_dimensions(&self) -> Reason {
        Reason::Dimensions { expected: self.dimensions().collect::<Vec<_>>().join(", ") }
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
