//! API keys: `servo_{id}_{secret}`. The id is shown in lists and logs; of the secret only a hash is kept.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// How every key begins, so that people and scanners for secrets recognize one.
pub const KEY_PREFIX: &str = "servo_";

/// Bytes of an id.
const ID: usize = 6;
/// Bytes of a secret.
const SECRET: usize = 32;

/// The part of a key that is no secret.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId(String);

impl KeyId {
    /// It as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({})", self.0)
    }
}

impl FromStr for KeyId {
    type Err = String;

    /// Takes the id alone, or with the prefix of keys.
    fn from_str(text: &str) -> Result<Self, String> {
        let id = text.strip_prefix(KEY_PREFIX).unwrap_or(text);
        let is_good = HEXLOWER.decode(id.as_bytes()).is_ok_and(|bytes| bytes.len() == ID);
        if is_good {
            return Ok(Self(id.to_owned()));
        }
        // Whoever gives the whole key instead of its id shall not find it in a message.
        Err(format!(
            "the id of a key is {} letters and digits, as servo admin api-keys list shows them",
            ID * 2
        ))
    }
}

impl Serialize for KeyId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for KeyId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The SHA-256 of a secret. The secret has 256 random bits, so that nothing slower is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyHash([u8; 32]);

impl KeyHash {
    /// The hash of a secret.
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// The hash of no secret: an unknown key takes as long to refuse as a wrong one.
    pub(crate) const NONE: Self = Self([0; 32]);

    /// Whether a secret has this hash. Takes the same time wherever the first difference is.
    pub fn matches(&self, secret: &str) -> bool {
        bool::from(Self::of(secret).0.ct_eq(&self.0))
    }

    /// As text: what envelopes for a worker with the key are signed with, which both sides know.
    pub fn to_text(&self) -> String {
        HEXLOWER.encode(&self.0)
    }
}

/// A hash is not secret, but there is no reason to show it.
impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyHash(..)")
    }
}

impl Serialize for KeyHash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

impl<'de> Deserialize<'de> for KeyHash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = HEXLOWER.decode(text.as_bytes()).map_err(serde::de::Error::custom)?;
        let bytes = bytes.try_into().map_err(|_| serde::de::Error::custom("a hash has 32 bytes"))?;
        Ok(Self(bytes))
    }
}

/// A key that was just made: the only time that its secret is there.
pub struct KeyText {
    /// Its id.
    pub id: KeyId,
    secret: String,
}

impl KeyText {
    /// Makes one of random bytes.
    pub fn of(random: [u8; ID + SECRET]) -> Self {
        let (id, secret) = random.split_at(ID);
        Self { id: KeyId(HEXLOWER.encode(id)), secret: HEXLOWER.encode(secret) }
    }

    /// The hash that is kept.
    pub fn hash(&self) -> KeyHash {
        KeyHash::of(&self.secret)
    }

    /// The whole key. To be shown once.
    pub fn reveal(&self) -> String {
        format!("{KEY_PREFIX}{}_{}", self.id, self.secret)
    }
}

/// Secrets are never shown.
impl fmt::Debug for KeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyText").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The id and the secret of a text of the form of a key; none if it has not.
pub fn parse_key(text: &str) -> Option<(KeyId, &str)> {
    let (id, secret) = text.strip_prefix(KEY_PREFIX)?.split_once('_')?;
    let is_secret = secret.len() == SECRET * 2 && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_secret.then_some(())?;
    Some((id.parse().ok()?, secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_by_its_hash_and_nothing_else() {
        let key = KeyText::of([7; ID + SECRET]);
        let text = key.reveal();
        let (id, secret) = parse_key(&text).unwrap();
        assert_eq!(id, key.id);
        assert!(key.hash().matches(secret));
        // Altered at every place.
        for place in KEY_PREFIX.len() + ID * 2 + 1..text.len() {
            let mut altered = text.clone().into_bytes();
            altered[place] = if altered[place] == b'0' { b'1' } else { b'0' };
            let altered = String::from_utf8(altered).unwrap();
            let (_, secret) = parse_key(&altered).unwrap();
            assert!(!key.hash().matches(secret), "{place}");
        }
        assert!(!format!("{key:?} {:?}", key.hash()).contains(secret));
        assert!(!serde_json::to_string(&key.hash()).unwrap().contains(secret));
    }

    #[test]
    fn what_has_not_the_form_of_a_key_is_none() {
        let key = KeyText::of([7; ID + SECRET]).reveal();
        for bad in [
            "",
            "servo_",
            "servo__",
            "servo_070707070707",
            &key[1..],
            &key[..key.len() - 1],
            &format!("{key}0"),
        ] {
            assert!(parse_key(bad).is_none(), "{bad:?}");
        }
        let refused = key.parse::<KeyId>().unwrap_err();
        assert!(!refused.contains("0707"), "{refused}");
        assert_eq!("servo_070707070707".parse::<KeyId>().unwrap().as_str(), "070707070707");
    }
}
