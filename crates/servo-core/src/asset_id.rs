//! The id that an asset keeps when it is renamed: UUID version 7.

use std::fmt;
use std::str::FromStr;

use crate::parse_error::{ParseError, unexpected};
use crate::serde_text::deserialize_from_text;

const LEN: usize = 36;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Permanent id of an asset, whatever its key becomes.
///
/// ```
/// use servo_core::AssetId;
/// let id = AssetId::from_parts(1_736_937_000_123, 42);
/// assert_eq!(id.to_string(), "01946983-4cbb-7000-8000-00000000002a");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AssetId(u128);

impl AssetId {
    /// The id for time `ms` (milliseconds since the epoch, 48 bits) and the low 74 bits of `entropy`.
    pub const fn from_parts(ms: u64, entropy: u128) -> Self {
        let last = (1 << 48) - 1;
        let ms = if ms > last { last } else { ms };
        let low = entropy & ((1 << 62) - 1);
        let high = (entropy >> 62) & 0xfff;
        Self((ms as u128) << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low)
    }

    /// The 128 bits of the id.
    pub const fn to_u128(self) -> u128 {
        self.0
    }

    /// The time in the id, in milliseconds since the epoch.
    pub const fn timestamp_ms(self) -> u64 {
        (self.0 >> 80) as u64
    }

    fn write_text(self, buffer: &mut [u8; LEN]) -> &str {
        let mut nibble = 128;
        for (at, slot) in buffer.iter_mut().enumerate() {
            *slot = if is_hyphen(at) {
                b'-'
            } else {
                nibble -= 4;
                DIGITS[(self.0 >> nibble & 15) as usize]
            };
        }
        std::str::from_utf8(buffer).expect("a UUID is written in ASCII")
    }
}

const fn is_hyphen(at: usize) -> bool {
    matches!(at, 8 | 13 | 18 | 23)
}

impl fmt::Display for AssetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.write_text(&mut [0; LEN]))
    }
}

impl fmt::Debug for AssetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AssetId({self})")
    }
}

impl FromStr for AssetId {
    type Err = ParseError;

    /// Accepts the hyphenated lower-case form of a version 7 UUID, and nothing else.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refuse = |at, problem| Err(ParseError::at_byte("asset id", text, at, problem));
        let mut value = 0u128;
        for at in 0..LEN {
            let byte = text.as_bytes().get(at).copied();
            let digit = match byte {
                Some(b'-') if is_hyphen(at) => continue,
                Some(digit @ b'0'..=b'9') if !is_hyphen(at) => digit - b'0',
                Some(digit @ b'a'..=b'f') if !is_hyphen(at) => digit - b'a' + 10,
                Some(_) | None => {
                    let expected = if is_hyphen(at) { "\"-\"" } else { "a lower-case hexadecimal digit" };
                    return refuse(at, unexpected(text, at, expected));
                }
            };
            if at == 14 && digit != 7 {
                return refuse(at, format!("is a UUID of version {digit:x}, expected version 7"));
            }
            if at == 19 && digit >> 2 != 0b10 {
                return refuse(at, unexpected(text, at, "8, 9, a or b (the RFC 9562 variant)"));
            }
            value = value << 4 | u128::from(digit);
        }
        if text.len() > LEN {
            return refuse(LEN, format!("has {} characters, expected {LEN}", text.chars().count()));
        }
        Ok(Self(value))
    }
}

impl serde::Serialize for AssetId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.write_text(&mut [0; LEN]))
    }
}

deserialize_from_text!(AssetId, "a UUID of version 7", str::parse::<AssetId>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_the_entropy_fits_around_version_and_variant() {
        let id = AssetId::from_parts(u64::MAX, u128::MAX);
        assert_eq!(id.to_string(), "ffffffff-ffff-7fff-bfff-ffffffffffff");
        assert_eq!(id.to_string().parse::<AssetId>().unwrap(), id);
        assert_eq!(AssetId::from_parts(99, 0).timestamp_ms(), 99);
    }
}
