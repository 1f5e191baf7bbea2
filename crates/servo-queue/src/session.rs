//! Sessions of browsers: a signed expiry, which a browser keeps as a cookie.

use data_encoding::BASE64URL_NOPAD;
use servo_core::Timestamp;

use crate::keyring::{AuthError, Keyring, Purpose};

const WHAT: &str = "session";
const VERSION: &str = "ss1";

impl Keyring {
    /// Signs a session: `ss1.{key id}.{expiry}.{signature}`.
    pub fn seal_session(&self, expires_at: Timestamp) -> String {
        let expiry = expires_at.as_millis().to_string();
        let (key_id, signature) = self.sign(Purpose::Sessions, expiry.as_bytes());
        format!("{VERSION}.{key_id}.{expiry}.{}", BASE64URL_NOPAD.encode(&signature))
    }

    /// That this ring signed a session, and that it has not expired.
    pub fn verify_session(&self, session: &str, now: Timestamp) -> Result<(), AuthError> {
        let malformed = |problem: &str| AuthError::Malformed { what: WHAT, problem: problem.to_owned() };
        let parts: Vec<&str> = session.split('.').collect();
        let [VERSION, key_id, expiry, signature] = parts[..] else {
            return Err(malformed("expected four parts, the first of them ss1"));
        };
        let signature = BASE64URL_NOPAD
            .decode(signature.as_bytes())
            .map_err(|_| malformed("the signature is not base64url"))?;
        self.check(Purpose::Sessions, WHAT, key_id, expiry.as_bytes(), &signature)?;
        let at = expiry.parse().map_err(|_| malformed("the expiry is no number"))?;
        let at = Timestamp::from_millis(at);
        if now > at { Err(AuthError::Expired { what: WHAT, at }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_good_until_it_expires_and_for_the_ring_that_signed_it() {
        let keys = Keyring::new("k1", b"secret");
        let (now, later) = (Timestamp::from_millis(1_000), Timestamp::from_millis(2_001));
        let session = keys.seal_session(Timestamp::from_millis(2_000));
        assert_eq!(keys.verify_session(&session, now), Ok(()));
        assert!(matches!(keys.verify_session(&session, later), Err(AuthError::Expired { .. })));
        let longer = session.replace(".2000.", ".9000.");
        assert_ne!(longer, session);
        assert!(matches!(keys.verify_session(&longer, now), Err(AuthError::BadSignature { .. })));
        let other = Keyring::new("k1", b"another secret");
        assert!(matches!(other.verify_session(&session, now), Err(AuthError::BadSignature { .. })));
        for broken in ["", "ss1", "ss1.k1.2000", "st1.k1.2000.YQ", "ss1.k1.2000.!"] {
            let refused = keys.verify_session(broken, now);
            assert!(matches!(refused, Err(AuthError::Malformed { .. })), "{broken:?}");
        }
    }
}
