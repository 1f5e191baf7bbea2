//! Signing keys: each purpose has keys of its own, with ids, so that they can be rotated (ADR-091).
//!
//! Of the keys of a purpose the last one signs, all of them verify. A clone shares the keys of its original, so that
//! rotated ones reach everybody who signs or verifies.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Reasons why a token or an envelope is not accepted. Never says what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Not in the form of a token or an envelope.
    #[error("malformed {what}: {problem}")]
    Malformed {
        /// Token or envelope.
        what: &'static str,
        /// The problem with its form.
        problem: String,
    },
    /// Signed with a key that is not in the ring (any more).
    #[error("{what} is signed with key {key_id:?}, which is not in use; it may have been rotated out")]
    UnknownKey {
        /// Token or envelope.
        what: &'static str,
        /// The key's id.
        key_id: String,
    },
    /// The signature is wrong.
    #[error("the signature of the {what} does not match its content")]
    BadSignature {
        /// Token or envelope.
        what: &'static str,
    },
    /// Too old.
    #[error("the {what} expired at {at}")]
    Expired {
        /// Token or envelope.
        what: &'static str,
        /// The expiry.
        at: servo_core::Timestamp,
    },
}

/// The things that keys sign. A key of one signs nothing else. Run ids are not among them: they are derived with a secret
/// of their own, which never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// Messages that carry attempts to workers.
    Envelopes,
    /// Credentials of workers for reports about one attempt.
    TaskTokens,
    /// Cursors of lists.
    Cursors,
    /// Sessions of browsers.
    Sessions,
    /// Addresses that workers report at about one attempt.
    CallbackUrls,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Envelopes, Self::TaskTokens, Self::Cursors, Self::Sessions, Self::CallbackUrls];

    /// Its name in files and commands.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Envelopes => "envelopes",
            Self::TaskTokens => "task_tokens",
            Self::Cursors => "cursors",
            Self::Sessions => "sessions",
            Self::CallbackUrls => "callback_urls",
        }
    }
}

/// A key for one purpose. The secret never appears in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKey {
    /// The purpose.
    pub purpose: Purpose,
    /// Names the key in what it signs.
    pub id: String,
    /// The secret.
    pub secret: Vec<u8>,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("purpose", &self.purpose)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// Why keys are not a ring.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// Nothing could be signed.
    #[error("there is no key for {}", .0.name())]
    Missing(Purpose),
    /// Anybody could sign with it.
    #[error("key {id:?} for {} has no secret", purpose.name())]
    Empty {
        /// The purpose.
        purpose: Purpose,
        /// The key.
        id: String,
    },
}

/// The keys of one purpose.
#[derive(Clone)]
struct Ring {
    current: String,
    keys: BTreeMap<String, Hmac<Sha256>>,
}

/// Keys by purpose and id. Secrets never appear in `Debug`.
#[derive(Clone)]
pub struct Keyring(Arc<RwLock<BTreeMap<Purpose, Ring>>>);

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let current = self.rings();
        let current: BTreeMap<&str, &str> =
            current.iter().map(|(purpose, ring)| (purpose.name(), ring.current.as_str())).collect();
        f.debug_struct("Keyring").field("current", &current).finish_non_exhaustive()
    }
}

impl Keyring {
    /// A ring of these keys; of each purpose the last one signs.
    pub fn of(keys: impl IntoIterator<Item = SigningKey>) -> Result<Self, KeyringError> {
        let mut rings: BTreeMap<Purpose, Ring> = BTreeMap::new();
        for SigningKey { purpose, id, secret } in keys {
            if secret.is_empty() {
                return Err(KeyringError::Empty { purpose, id });
            }
            let ring = rings.entry(purpose).or_insert(Ring { current: String::new(), keys: BTreeMap::new() });
            ring.keys.insert(id.clone(), prepared(&secret));
            ring.current = id;
        }
        match Purpose::ALL.into_iter().find(|purpose| !rings.contains_key(purpose)) {
            Some(purpose) => Err(KeyringError::Missing(purpose)),
            None => Ok(Self(Arc::new(RwLock::new(rings)))),
        }
    }

    /// A ring with one key for each purpose, derived from a secret: for those who share no more than that.
    ///
    /// # Panics
    /// If the secret is empty: anybody could sign with it.
    pub fn new(id: impl Into<String>, secret: impl AsRef<[u8]>) -> Self {
        let id = id.into();
        match Self::of(derived(&id, secret.as_ref())) {
            Ok(ring) => ring,
            Err(error) => panic!("{error}"),
        }
    }

    /// Adds a key for each purpose, derived from a secret, and signs with it from now on; the older ones still verify.
    ///
    /// # Panics
    /// If the secret is empty.
    #[must_use]
    pub fn rotated(self, id: impl Into<String>, secret: impl AsRef<[u8]>) -> Self {
        let added = Self::new(id, secret);
        let mut rings = self.rings().clone();
        for (purpose, new) in added.rings().iter() {
            if let Some(ring) = rings.get_mut(purpose) {
                ring.keys.extend(new.keys.clone());
                ring.current.clone_from(&new.current);
            }
        }
        Self(Arc::new(RwLock::new(rings)))
    }

    /// Forgets a key: what it signed is no longer believed.
    #[must_use]
    pub fn without(self, id: &str) -> Self {
        let mut rings = self.rings().clone();
        rings.values_mut().for_each(|ring| drop(ring.keys.remove(id)));
        Self(Arc::new(RwLock::new(rings)))
    }

    /// Signs and verifies with other keys from now on, here and in every clone.
    pub fn replace(&self, with: &Keyring) {
        let rings = with.rings().clone();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = rings;
    }

    fn rings(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<Purpose, Ring>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sign(&self, purpose: Purpose, content: &[u8]) -> (String, [u8; 32]) {
        let rings = self.rings();
        let ring = rings.get(&purpose).expect("a ring has keys for every purpose");
        let mut mac = ring.keys.get(&ring.current).expect("the current key is in the ring").clone();
        mac.update(content);
        (ring.current.clone(), mac.finalize().into_bytes().into())
    }

    /// Compares in constant time.
    pub(crate) fn check(
        &self,
        purpose: Purpose,
        what: &'static str,
        key_id: &str,
        content: &[u8],
        signature: &[u8],
    ) -> Result<(), AuthError> {
        let rings = self.rings();
        let key = rings.get(&purpose).and_then(|ring| ring.keys.get(key_id));
        let mut mac =
            key.cloned().ok_or_else(|| AuthError::UnknownKey { what, key_id: key_id.to_owned() })?;
        mac.update(content);
        mac.verify_slice(signature).map_err(|_| AuthError::BadSignature { what })
    }
}

/// One key for each purpose. None of them says anything about the secret, or about another.
fn derived(id: &str, secret: &[u8]) -> Vec<SigningKey> {
    let derive = |purpose: Purpose| {
        let mut mac = prepared(secret);
        mac.update(format!("servo {}", purpose.name()).as_bytes());
        if secret.is_empty() { Vec::new() } else { mac.finalize().into_bytes().to_vec() }
    };
    Purpose::ALL
        .into_iter()
        .map(|purpose| SigningKey { purpose, id: id.to_owned(), secret: derive(purpose) })
        .collect()
}

fn prepared(secret: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(secret).expect("HMAC takes keys of any length")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(purpose: Purpose, id: &str, secret: &[u8]) -> SigningKey {
        SigningKey { purpose, id: id.to_owned(), secret: secret.to_vec() }
    }

    fn sign_and_check(ring: &Keyring, signs: Purpose, checks: Purpose) -> Result<(), AuthError> {
        let (id, signature) = ring.sign(signs, b"content");
        ring.check(checks, "thing", &id, b"content", &signature)
    }

    #[test]
    fn a_key_signs_for_its_purpose_only() {
        let ring = Keyring::new("k1", b"one secret");
        for signs in Purpose::ALL {
            for checks in Purpose::ALL {
                assert_eq!(
                    sign_and_check(&ring, signs, checks).is_ok(),
                    signs == checks,
                    "{signs:?} {checks:?}"
                );
            }
        }
    }

    #[test]
    fn the_last_key_signs_and_all_of_them_verify() {
        let keys = Purpose::ALL.map(|purpose| key(purpose, "old", b"first"));
        let ring = Keyring::of(keys.clone()).unwrap();
        let (_, signature) = ring.sign(Purpose::Cursors, b"content");
        let shared = ring.clone();
        let newer = keys.into_iter().chain([key(Purpose::Cursors, "new", b"second")]);
        shared.replace(&Keyring::of(newer).unwrap());
        assert_eq!(ring.sign(Purpose::Cursors, b"content").0, "new", "a clone was given other keys");
        assert_eq!(ring.sign(Purpose::TaskTokens, b"content").0, "old");
        assert_eq!(ring.check(Purpose::Cursors, "cursor", "old", b"content", &signature), Ok(()));
        let error = ring.check(Purpose::TaskTokens, "token", "new", b"content", &signature).unwrap_err();
        assert!(matches!(error, AuthError::UnknownKey { .. }), "{error}");
    }

    #[test]
    fn nothing_is_signed_with_nothing() {
        let empty = Purpose::ALL.map(|purpose| key(purpose, "k", b""));
        let error = Keyring::of(empty).unwrap_err();
        assert_eq!(error.to_string(), "key \"k\" for envelopes has no secret");
        let error = Keyring::of([key(Purpose::Envelopes, "k", b"x")]).unwrap_err();
        assert_eq!(error, KeyringError::Missing(Purpose::TaskTokens));
    }

    #[test]
    #[should_panic(expected = "has no secret")]
    fn nor_with_keys_derived_from_nothing() {
        let _ring = Keyring::new("k", b"");
    }
}
