//! Errors in a definition, and reasons why a key is not one of its keys.

use std::fmt;

/// One problem of a definition: where in it, and what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct Problem {
    /// The field, as a path from the definition: `span.start`, `dims.region.keys`.
    pub path: String,
    /// The problem, and the text to write instead.
    pub message: String,
}

/// Every problem of a definition, in order of its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problems {
    what: &'static str,
    found: Vec<Problem>,
}

impl Problems {
    /// The problems; there is at least one.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.found.iter()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid {}: ", self.what)?;
        for (position, problem) in self.found.iter().enumerate() {
            write!(f, "{}{problem}", if position > 0 { "; " } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Collects problems while a definition is read.
pub(super) struct Collector {
    /// The name of the value being read, for messages.
    what: &'static str,
    found: Vec<Problem>,
    path: Vec<String>,
}

impl Collector {
    /// Collects problems of a definition that messages call `what`.
    pub(super) fn of(what: &'static str) -> Self {
        Self { what, found: Vec::new(), path: Vec::new() }
    }

    /// Adds a problem of `field` below the current path.
    pub(super) fn add(&mut self, field: &str, message: impl Into<String>) {
        let mut path = self.path.join(".");
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(field);
        self.found.push(Problem { path, message: message.into() });
    }

    /// Runs `check` with `field` added to the path.
    pub(super) fn within<T>(&mut self, field: &str, check: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(field.to_owned());
        let result = check(self);
        self.path.pop();
        result
    }

    /// The value, unless something was found.
    pub(super) fn finish<T>(self, value: Option<T>) -> Result<T, Problems> {
        match value {
            Some(value) if self.found.is_empty() => Ok(value),
            Some(_) | None => Err(Problems { what: self.what, found: self.found }),
        }
    }
}

/// A key is not one of the partitions that were asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no partition {key}: {reason}")]
pub struct KeyError {
    /// The key, in its short form.
    pub key: String,
    /// Why it is not a partition.
    pub reason: Reason,
}

/// Why a key is not one of the partitions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The key has other dimensions.
    #[error("the dimensions of these partitions are {expected}")]
    Dimensions {
        /// Names of the dimensions, comma-separated.
        expected: String,
    },
    /// The value has another type.
    #[error("{dim} is {expected}")]
    Type {
        /// The dimension.
        dim: String,
        /// Description of the dimension's values.
        expected: &'static str,
    },
    /// The time is inside a partition, not at its start.
    #[error("no partition starts there; the one around it is {around}")]
    NotAStart {
        /// The value whose window contains it.
        around: String,
    },
    /// The day was skipped in the zone, by moving across the date line.
    #[error("that day did not exist in {zone}")]
    SkippedDay {
        /// The time zone.
        zone: String,
    },
    /// Before the first partition.
    #[error("the first partition is {first}")]
    BeforeStart {
        /// The first value.
        first: String,
    },
    /// After the last partition there will ever be.
    #[error("the last partition is {last}")]
    AfterEnd {
        /// The last value.
        last: String,
    },
    /// It will be a partition later.
    #[error("it is not a partition yet; the latest is {latest}")]
    NotYet {
        /// The last value there is now, or `none`.
        latest: String,
    },
    /// Not one of the listed keys.
    #[error("{value:?} is not one of the {count} keys of {dim}{}", meant(near.as_deref()))]
    Unlisted {
        /// The dimension.
        dim: String,
        /// The value.
        value: String,
        /// How many keys there are.
        count: u64,
        /// The key that was probably meant, if one is similar.
        near: Option<String>,
    },
    /// There is no key at all.
    #[error("{dim} has no keys yet")]
    NoKeys {
        /// The dimension.
        dim: String,
    },
    /// No partition there will ever be is at the time of the key.
    #[error("no partition is at that time: the first is {first}{}", .last.as_ref().map_or_else(String::new, |last| format!(", the last {last}")))]
    Apart {
        /// The first value.
        first: String,
        /// The last value there will ever be; none if they go on for ever.
        last: Option<String>,
    },
    /// The text is not that of a key.
    #[error("{problem}; keys look like {example}")]
    Unreadable {
        /// The problem with the key.
        problem: String,
        /// An example of a valid key.
        example: String,
    },
    /// Not one of the keys that were added to dynamic partitions.
    #[error("{value:?} was not added to {name}; \"servo partition add {name} {value}\" does")]
    NotAdded {
        /// The name of the dynamic partitions.
        name: String,
        /// The value.
        value: String,
    },
    /// The range ends before it starts.
    #[error("the range starts after it, at {from}")]
    Backwards {
        /// The first key of the range.
        from: String,
    },
    /// There are more than 2^128 partitions, and this one has no index.
    #[error("its index is beyond 2^128")]
    TooMany,
    /// A window was asked of partitions that are not of time, or have several dimensions of time.
    #[error("its partitions have {dimensions} dimensions of time, and only one gives a window")]
    NoWindow {
        /// How many dimensions are of time.
        dimensions: usize,
    },
}

fn meant(near: Option<&str>) -> String {
    near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"))
}
