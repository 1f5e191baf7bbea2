//! The name of one partition of an asset: a value for each dimension.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::parse_error::{ParseError, Refused, unexpected};
use crate::partition_short;
use crate::partition_value::{PartitionValue, read_value};
use crate::serde_text::deserialize_from_text;

const WHAT: &str = "partition key";

/// Names a partition: dimensions with values, canonically `dim=tag:value[,dim=tag:value…]` with dimensions sorted.
///
/// Two keys are equal if and only if their canonical texts are, and they order by the bytes of those texts.
/// `Display` is the short form for people; [`PartitionKey::canonical`] is the one that is stored.
///
/// ```
/// use servo_core::PartitionKey;
/// let key = PartitionKey::parse("date=d:2025-01-15,region=s:dXMtZWFzdA")?;
/// assert_eq!(key.to_string(), "date=2025-01-15,region=us-east");
///
/// let error = PartitionKey::parse("date=d:2025-13-01").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "invalid partition key \"date=d:2025-13-01\" at character 7: month 13 is not between 1 and 12"
/// );
/// # Ok::<(), servo_core::ParseError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionKey(Arc<str>);

impl PartitionKey {
    /// The key with these dimensions: at least one, each named `[a-z][a-z0-9_]*`.
    pub fn new(dims: &BTreeMap<String, PartitionValue>) -> Result<Self, ParseError> {
        let mut canonical = String::new();
        for (dim, value) in dims {
            check_dim(dim)?;
            if !canonical.is_empty() {
                canonical.push(',');
            }
            canonical.push_str(dim);
            canonical.push('=');
            value.write_canonical(&mut canonical)?;
        }
        if canonical.is_empty() {
            return Err(ParseError::at_byte(WHAT, "", 0, NO_DIMENSIONS));
        }
        Ok(Self(canonical.into()))
    }

    /// The key with one dimension.
    pub fn single(dim: &str, value: PartitionValue) -> Result<Self, ParseError> {
        Self::new(&BTreeMap::from([(dim.to_owned(), value)]))
    }

    /// Reads the canonical text, and only that: dimensions sorted, each once, each value in its one form.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        scan(text).map_err(|refused| ParseError::refused(WHAT, text, refused))?;
        Ok(Self(text.into()))
    }

    /// Wraps a canonical text that was scanned before.
    pub(crate) fn from_valid(canonical: &str) -> Self {
        Self(canonical.into())
    }

    /// `dim=tag:value[,dim=tag:value…]`.
    pub fn canonical(&self) -> &str {
        &self.0
    }

    /// Dimensions and values, in order of dimension.
    pub fn iter(&self) -> impl Iterator<Item = (&str, PartitionValue)> {
        self.0.split(',').map(|entry| {
            let (dim, value) = entry.split_once('=').expect("a partition key was checked when it was made");
            (dim, read_value(value, 0, value.len()).expect("a partition key was checked when it was made"))
        })
    }

    /// The value along `dim`, if the key has that dimension.
    pub fn get(&self, dim: &str) -> Option<PartitionValue> {
        self.iter().find(|(name, _)| *name == dim).map(|(_, value)| value)
    }

    /// Dimensions and values as a map.
    pub fn dims(&self) -> BTreeMap<String, PartitionValue> {
        self.iter().map(|(dim, value)| (dim.to_owned(), value)).collect()
    }
}

const NO_DIMENSIONS: &str = "a partition key has at least one dimension";
const DIM_CHARACTERS: &str = "a letter a-z, a digit, \"_\", or \"=\" after the dimension";

/// Checks the name of a dimension on its own, by reading it as the start of a key.
fn check_dim(dim: &str) -> Result<(), ParseError> {
    let as_start = format!("{dim}=");
    let end = read_dim(&as_start, 0).map_err(|refused| ParseError::refused(WHAT, dim, refused))?;
    if end < dim.len() {
        return Err(ParseError::at_byte(WHAT, dim, end, unexpected(dim, end, DIM_CHARACTERS)));
    }
    Ok(())
}

/// Checks a canonical text from its first to its last byte.
pub(crate) fn scan(text: &str) -> Result<(), Refused> {
    if text.is_empty() {
        return Err((0, NO_DIMENSIONS.to_owned()));
    }
    let mut previous: Option<&str> = None;
    let mut start = 0;
    loop {
        let dim_end = read_dim(text, start)?;
        let dim = &text[start..dim_end];
        match previous {
            Some(before) if before == dim => return Err((start, format!("dimension {dim} is given twice"))),
            Some(before) if before > dim => {
                return Err((start, format!("dimensions are sorted: {dim} comes before {before}")));
            }
            Some(_) | None => previous = Some(dim),
        }
        let end = text[dim_end..].find(',').map_or(text.len(), |comma| dim_end + comma);
        read_value(text, dim_end + 1, end)?;
        if end == text.len() {
            return Ok(());
        }
        start = end + 1;
    }
}

/// Where the dimension that starts at `start` ends: at its `=`.
fn read_dim(text: &str, start: usize) -> Result<usize, Refused> {
    let bytes = &text.as_bytes()[start..];
    if !bytes.first().is_some_and(u8::is_ascii_lowercase) {
        return Err((start, unexpected(text, start, "a dimension, which starts with a letter a-z")));
    }
    let inside = |byte: &&u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || **byte == b'_';
    let end = start + bytes.iter().take_while(inside).count();
    if text.as_bytes().get(end) == Some(&b'=') {
        Ok(end)
    } else {
        Err((end, unexpected(text, end, DIM_CHARACTERS)))
    }
}

/// The short form for people: `2025-01-15`, `date=2025-01-15,region=us-east`.
impl fmt::Display for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        partition_short::write(self, f)
    }
}

impl fmt::Debug for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PartitionKey({})", self.0)
    }
}

impl FromStr for PartitionKey {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl serde::Serialize for PartitionKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

deserialize_from_text!(PartitionKey, "a partition key such as date=d:2025-01-15", PartitionKey::parse);
