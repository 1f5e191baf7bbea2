//! Canonical JSON: the one text of a value, for hashing, signing and comparing.
//!
//! Keys sorted by UTF-8 bytes, no whitespace, integers only. The text equals Python's
//! `json.dumps(v, sort_keys=True, separators=(',', ':'), ensure_ascii=False)` byte for byte. Any float is refused:
//! money is integer micro-units, ratios are parts per million, durations are milliseconds.
//!
//! ```
//! use servo_core::canonical;
//! assert_eq!(canonical::canonicalize_str(r#"{"b": [1, "\u00e9"], "a": null}"#)?, r#"{"a":null,"b":[1,"é"]}"#);
//!
//! let error = canonical::canonicalize_str(r#"{"retry": {"factor": 1.5}}"#).unwrap_err();
//! assert_eq!(error.path(), "$.retry.factor");
//! # Ok::<(), canonical::Error>(())
//! ```

mod error;
mod key;
mod object;
mod reader;
mod serializer;
mod text;

use serde::Serialize;

pub use error::{Error, Problem};

/// How deep arrays and objects may nest; the limit bounds the stack of every reader.
pub const MAX_DEPTH: usize = 128;

/// The canonical text of a value.
pub fn to_canonical_string<T: Serialize + ?Sized>(value: &T) -> Result<String, Error> {
    let mut out = String::with_capacity(128);
    value.serialize(serializer::Serializer::new(&mut out))?;
    Ok(out)
}

/// The canonical text of a value, as UTF-8 bytes.
pub fn to_canonical_bytes<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, Error> {
    to_canonical_string(value).map(String::into_bytes)
}

/// The canonical text of a JSON document, which may have any order and whitespace but no duplicate keys.
pub fn canonicalize_str(json_text: &str) -> Result<String, Error> {
    let mut out = String::with_capacity(json_text.len());
    reader::canonicalize(json_text, 0, &mut out)?;
    Ok(out)
}
