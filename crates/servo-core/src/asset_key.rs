//! The name of an asset: a namespace and a name.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;
use std::sync::Arc;

use crate::parse_error::{ParseError, Refused, unexpected};
use crate::serde_text::deserialize_from_text;

const WHAT: &str = "asset key";
const MAX_SEGMENT: usize = 128;

/// Names an asset. Shown as `namespace.name`; canonical, for hashing, sorting, paths and the wire, as
/// `namespace/name`. Keys order by the bytes of the canonical form.
///
/// ```
/// use servo_core::AssetKey;
/// let key = AssetKey::parse("analytics.delays")?;
/// assert_eq!(key.canonical(), "analytics/delays");
/// assert_eq!(key, AssetKey::new("analytics", "delays")?);
/// # Ok::<(), servo_core::ParseError>(())
/// ```
#[derive(Clone)]
pub struct AssetKey {
    canonical: Arc<str>,
    namespace_len: u16,
}

impl AssetKey {
    /// Joins a namespace and a name, each 1 to 128 characters `[A-Za-z_][A-Za-z0-9_-]*`.
    pub fn new(namespace: &str, name: &str) -> Result<Self, ParseError> {
        Self::parse_canonical(&format!("{namespace}/{name}"))
    }

    /// Reads `namespace.name` or `namespace/name`.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let namespace_len = scan(text).map_err(|refused| ParseError::refused(WHAT, text, refused))?;
        let canonical = if text.as_bytes()[namespace_len] == b'/' {
            text.into()
        } else {
            text.replacen('.', "/", 1).into()
        };
        Ok(Self::from_valid(canonical, namespace_len))
    }

    /// Reads the canonical form `namespace/name` only.
    pub fn parse_canonical(text: &str) -> Result<Self, ParseError> {
        let namespace_len =
            scan_canonical(text).map_err(|refused| ParseError::refused(WHAT, text, refused))?;
        Ok(Self::from_valid(text.into(), namespace_len))
    }

    /// Wraps a canonical text that was scanned before.
    pub(crate) fn from_valid(canonical: Arc<str>, namespace_len: usize) -> Self {
        let namespace_len = u16::try_from(namespace_len).expect("a namespace has at most 128 characters");
        Self { canonical, namespace_len }
    }

    /// `namespace/name`.
    pub fn canonical(&self) -> &str {
        &self.canonical
    }

    /// The part before the separator.
    pub fn namespace(&self) -> &str {
        &self.canonical[..usize::from(self.namespace_len)]
    }

    /// The part after the separator.
    pub fn name(&self) -> &str {
        &self.canonical[usize::from(self.namespace_len) + 1..]
    }
}

/// Checks that `text` is an asset key in either form; gives the length of the namespace.
fn scan(text: &str) -> Result<usize, Refused> {
    let separator = segment_end(text, 0, "namespace")?;
    match text.as_bytes().get(separator) {
        Some(b'.' | b'/') => {}
        Some(_) => {
            let expected = "a letter, a digit, \"_\", \"-\", or \".\" before the name";
            return Err((separator, unexpected(text, separator, expected)));
        }
        None => return Err((separator, "has no name: write namespace.name".to_owned())),
    }
    let end = segment_end(text, separator + 1, "name")?;
    if end < text.len() {
        return Err((end, unexpected(text, end, "a letter, a digit, \"_\" or \"-\"")));
    }
    Ok(separator)
}

/// Like [`scan`], for the canonical form only.
pub(crate) fn scan_canonical(text: &str) -> Result<usize, Refused> {
    let separator = scan(text)?;
    if text.as_bytes()[separator] != b'/' {
        let problem = unexpected(text, separator, "\"/\": the canonical form is namespace/name");
        return Err((separator, problem));
    }
    Ok(separator)
}

/// Where the segment that starts at `start` ends, if it is well formed.
fn segment_end(text: &str, start: usize, segment: &str) -> Result<usize, Refused> {
    let bytes = &text.as_bytes()[start..];
    if !bytes.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_') {
        let expected = format!("the {segment}, which starts with a letter or \"_\"");
        return Err((start, unexpected(text, start, &expected)));
    }
    let inside = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let len = bytes.iter().take_while(inside).count();
    if len > MAX_SEGMENT {
        let problem = format!("the {segment} has {len} characters, at most {MAX_SEGMENT} are allowed");
        return Err((start + MAX_SEGMENT, problem));
    }
    Ok(start + len)
}

impl PartialEq for AssetKey {
    fn eq(&self, other: &Self) -> bool {
        self.canonical == other.canonical
    }
}

impl Eq for AssetKey {}

impl Hash for AssetKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.canonical.hash(state);
    }
}

impl PartialOrd for AssetKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for AssetKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.canonical.cmp(&other.canonical)
    }
}

impl fmt::Display for AssetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.namespace(), self.name())
    }
}

impl fmt::Debug for AssetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AssetKey({})", self.canonical)
    }
}

impl FromStr for AssetKey {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl serde::Serialize for AssetKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.canonical)
    }
}

deserialize_from_text!(AssetKey, "an asset key such as namespace/name", AssetKey::parse_canonical);
