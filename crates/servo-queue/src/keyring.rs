//! Signing keys with ids, so that they can be rotated: the newest signs, all of them verify.

use std::collections::BTreeMap;
use std::fmt;

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

/// Keys by id. Secrets never appear in `Debug`.
#[derive(Clone)]
pub struct Keyring {
    current: String,
    keys: BTreeMap<String, Hmac<Sha256>>,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring").field("current", &self.current).finish_non_exhaustive()
    }
}

impl Keyring {
    /// A ring with one key.
    pub fn new(id: impl Into<String>, secret: impl AsRef<[u8]>) -> Self {
        let current = id.into();
        let keys = BTreeMap::from([(current.clone(), prepared(secret.as_ref()))]);
        Self { current, keys }
    }

    /// Adds a key and signs with it from now on; the older ones still verify.
    #[must_use]
    pub fn rotated(mut self, id: impl Into<String>, secret: impl AsRef<[u8]>) -> Self {
        self.current = id.into();
        self.keys.insert(self.current.clone(), prepared(secret.as_ref()));
        self
    }

    /// Forgets a key: what it signed is no longer believed.
    #[must_use]
    pub fn without(mut self, id: &str) -> Self {
        self.keys.remove(id);
        self
    }

    pub(crate) fn sign(&self, content: &[u8]) -> (&str, [u8; 32]) {
        let key = self.keys.get(&self.current).expect("the current key is in the ring");
        let mut mac = key.clone();
        mac.update(content);
        (&self.current, mac.finalize().into_bytes().into())
    }

    /// Compares in constant time.
    pub(crate) fn check(
        &self,
        what: &'static str,
        key_id: &str,
        content: &[u8],
        signature: &[u8],
    ) -> Result<(), AuthError> {
        let key =
            self.keys.get(key_id).ok_or_else(|| AuthError::UnknownKey { what, key_id: key_id.to_owned() })?;
        let mut mac = key.clone();
        mac.update(content);
        mac.verify_slice(signature).map_err(|_| AuthError::BadSignature { what })
    }
}

fn prepared(secret: &[u8]) -> Hmac<Sha256> {
    Hmac::new_from_slice(secret).expect("HMAC takes keys of any length")
}
