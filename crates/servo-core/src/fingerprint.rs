//! Digests of values: equal values, equal digests, in every process and in both languages.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::canonical::{self, to_canonical_string};
use crate::parse_error::{ParseError, unexpected};
use crate::serde_text::deserialize_from_text;

const PREFIX: &str = "v1:sha256:";
const LEN: usize = PREFIX.len() + 64;

/// The SHA-256 of `bytes` in lower-case hexadecimal.
pub fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

/// The fingerprint of a value: `v1:sha256:` and the SHA-256 of its canonical JSON.
///
/// ```
/// let value = serde_json::json!({"b": 1, "a": 2});
/// let fingerprint = servo_core::fingerprint(&value)?;
/// assert!(fingerprint.as_str().starts_with("v1:sha256:"));
/// # Ok::<(), servo_core::canonical::Error>(())
/// ```
pub fn fingerprint<T: Serialize + ?Sized>(value: &T) -> Result<Fingerprint, canonical::Error> {
    let digest = sha256_hex(to_canonical_string(value)?);
    Ok(Fingerprint(format!("{PREFIX}{digest}").into()))
}

/// A digest of a value, with the version of the rules that made it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(Arc<str>);

impl Fingerprint {
    /// Accepts `v1:sha256:` and 64 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let refuse = |at, problem| Err(ParseError::at_byte("fingerprint", text, at, problem));
        let Some(digits) = text.strip_prefix(PREFIX) else {
            return refuse(0, format!("a fingerprint starts with \"{PREFIX}\""));
        };
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if let Some(at) = digits.bytes().position(|byte| !is_digit(byte)) {
            let at = PREFIX.len() + at;
            return refuse(at, unexpected(text, at, "a lower-case hexadecimal digit"));
        }
        if text.len() != LEN {
            return refuse(text.len().min(LEN), format!("has {} digits, expected 64", digits.len()));
        }
        Ok(Self(text.into()))
    }

    /// The fingerprint with this digest.
    pub fn from_digest(digest: [u8; 32]) -> Self {
        Self(format!("{PREFIX}{}", HEXLOWER.encode(&digest)).into())
    }

    /// The digest alone.
    pub fn digest(&self) -> [u8; 32] {
        let mut digest = [0; 32];
        for (byte, pair) in digest.iter_mut().zip(self.0.as_bytes()[PREFIX.len()..].chunks_exact(2)) {
            *byte = hex(pair[0]) << 4 | hex(pair[1]);
        }
        digest
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The value of a lower-case hexadecimal digit.
fn hex(digit: u8) -> u8 {
    if digit.is_ascii_digit() { digit - b'0' } else { digit - b'a' + 10 }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({})", self.0)
    }
}

impl FromStr for Fingerprint {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Self::parse(text)
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

deserialize_from_text!(Fingerprint, "a fingerprint such as v1:sha256:…", Fingerprint::parse);
