//! Canonical JSON.

use serde_json::Value;
use servo_core::canonical::{Problem, canonicalize_str, to_canonical_string};

/// A JSON document: its canonical text means the same, is its own canonical text, and is what the value has.
pub fn canonical_json(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let value = serde_json::from_str::<Value>(text);
    let canonical = match canonicalize_str(text) {
        Ok(canonical) => canonical,
        Err(error) => {
            assert!(error.path().starts_with('$'));
            let is_refused = value.is_ok_and(|value| to_canonical_string(&value).is_ok());
            let is_duplicate = matches!(error.problem(), Problem::DuplicateKey(_));
            assert!(!is_refused || is_duplicate, "{text:?} is JSON without floats, and refused: {error}");
            return;
        }
    };
    assert_eq!(canonicalize_str(&canonical).as_ref(), Ok(&canonical), "canonical text is its own");
    match value {
        Ok(value) => {
            assert_eq!(serde_json::from_str::<Value>(&canonical).ok().as_ref(), Some(&value));
            assert_eq!(to_canonical_string(&value).as_ref(), Ok(&canonical));
        }
        // It nests to one level less.
        Err(error) => assert!(error.to_string().contains("recursion limit"), "{text:?}: {error}"),
    }
}
