//! Sessions of browsers: an expiry and whose session it is, signed, which a browser keeps as a cookie.

use data_encoding::BASE64URL_NOPAD;
use servo_core::Timestamp;

use crate::keyring::{AuthError, Keyring, Purpose};

const WHAT: &str = "session";
const VERSION: &str = "ss2";

impl Keyring {
    /// Signs a session: `ss2.{key id}.{expiry}.{content}.{signature}`. The content can be read by whoever has it.
    pub fn seal_session(&self, expires_at: Timestamp, content: &[u8]) -> String {
        let signed = format!("{}.{}", expires_at.as_millis(), BASE64URL_NOPAD.encode(content));
        let (key_id, signature) = self.sign(Purpose::Sessions, signed.as_bytes());
        format!("{VERSION}.{key_id}.{signed}.{}", BASE64URL_NOPAD.encode(&signature))
    }

    /// The content of a session that this ring signed and that has not expired.
    pub fn verify_session(&self, session: &str, now: Timestamp) -> Result<Vec<u8>, AuthError> {
        let malformed = |problem: &str| AuthError::Malformed { what: WHAT, problem: problem.to_owned() };
        let parts: Vec<&str> = session.split('.').collect();
        let [VERSION, key_id, expiry, content, signature] = parts[..] else {
            return Err(malformed("expected five parts, the first of them ss2"));
        };
        let decoded = |part: &str| BASE64URL_NOPAD.decode(part.as_bytes());
        let signature = decoded(signature).map_err(|_| malformed("the signature is not base64url"))?;
        let signed = format!("{expiry}.{content}");
        self.check(Purpose::Sessions, WHAT, key_id, signed.as_bytes(), &signature)?;
        let at = expiry.parse().map_err(|_| malformed("the expiry is no number"))?;
        let at = Timestamp::from_millis(at);
        if now > at {
            return Err(AuthError::Expired { what: WHAT, at });
        }
        decoded(content).map_err(|_| malformed("the content is not base64url"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_good_until_it_expires_and_for_the_ring_that_signed_it() {
        let keys = Keyring::new("k1", b"secret");
        let (now, later) = (Timestamp::from_millis(1_000), Timestamp::from_millis(2_001));
        let session = keys.seal_session(Timestamp::from_millis(2_000), b"zo\xc3\xab");
        assert_eq!(keys.verify_session(&session, now).as_deref(), Ok("zoë".as_bytes()));
        assert!(matches!(keys.verify_session(&session, later), Err(AuthError::Expired { .. })));
        let longer = session.replace(".2000.", ".9000.");
        assert_ne!(longer, session);
        assert!(matches!(keys.verify_session(&longer, now), Err(AuthError::BadSignature { .. })));
        let somebody =
            session.replace(&BASE64URL_NOPAD.encode("zoë".as_bytes()), &BASE64URL_NOPAD.encode(b"eve"));
        assert_ne!(somebody, session);
        assert!(matches!(keys.verify_session(&somebody, now), Err(AuthError::BadSignature { .. })));
        let other = Keyring::new("k1", b"another secret");
        assert!(matches!(other.verify_session(&session, now), Err(AuthError::BadSignature { .. })));
        for broken in ["", "ss2", "ss1.k1.2000", "st1.k1.2000.YQ", "ss1.k1.2000.!"] {
            let refused = keys.verify_session(broken, now);
            assert!(matches!(refused, Err(AuthError::Malformed { .. })), "{broken:?}");
        }
    }
}
