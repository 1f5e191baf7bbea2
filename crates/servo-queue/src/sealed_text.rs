//! Signed short texts that the control plane hands out and wants back unchanged, such as page tokens. Not secret.

use data_encoding::BASE64URL_NOPAD;

use crate::keyring::{AuthError, Keyring, Purpose};

impl Keyring {
    /// Signs a text: `{key id}.{content}.{signature}`. The purpose is signed too: a text is valid for no other.
    pub fn seal_text(&self, purpose: &'static str, content: &[u8]) -> String {
        let (key_id, signature) = self.sign(Purpose::Cursors, &signed(purpose, content));
        format!("{key_id}.{}.{}", BASE64URL_NOPAD.encode(content), BASE64URL_NOPAD.encode(&signature))
    }

    /// The content of a text that this ring signed for this purpose.
    pub fn open_text(&self, purpose: &'static str, sealed: &str) -> Result<Vec<u8>, AuthError> {
        let malformed = |problem: &str| AuthError::Malformed { what: purpose, problem: problem.to_owned() };
        let parts: Vec<&str> = sealed.split('.').collect();
        let [key_id, content, signature] = parts[..] else {
            return Err(malformed("expected three parts"));
        };
        let decode = |part: &str| {
            BASE64URL_NOPAD.decode(part.as_bytes()).map_err(|_| malformed("a part is not base64url"))
        };
        let content = decode(content)?;
        self.check(Purpose::Cursors, purpose, key_id, &signed(purpose, &content), &decode(signature)?)?;
        Ok(content)
    }
}

/// Tokens and envelopes begin with a brace, so no purpose can be taken for one.
fn signed(purpose: &str, content: &[u8]) -> Vec<u8> {
    [purpose.as_bytes(), b"\0", content].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_unchanged_and_for_its_purpose_only() {
        let keys = Keyring::new("k1", b"secret");
        let sealed = keys.seal_text("cursor", b"after 7");
        assert_eq!(keys.open_text("cursor", &sealed), Ok(b"after 7".to_vec()));
        let rotated = keys.clone().rotated("k2", b"other");
        assert_eq!(rotated.open_text("cursor", &sealed), Ok(b"after 7".to_vec()));
        assert!(matches!(keys.open_text("page", &sealed), Err(AuthError::BadSignature { what: "page" })));
        let other = Keyring::new("k1", b"another secret");
        assert!(matches!(other.open_text("cursor", &sealed), Err(AuthError::BadSignature { .. })));
        assert!(matches!(
            rotated.without("k1").open_text("cursor", &sealed),
            Err(AuthError::UnknownKey { .. })
        ));
        for broken in ["", "k1.x", "k1.!.x", "k1.YQ.!", "k1.YQ.YQ.YQ"] {
            assert!(
                matches!(keys.open_text("cursor", broken), Err(AuthError::Malformed { .. })),
                "{broken:?}"
            );
        }
    }
}
