//! Messages that the control plane signs and reads again: envelopes, task tokens, page tokens.

use data_encoding::BASE64URL_NOPAD;
use hmac::{Hmac, KeyInit, Mac};
use servo_core::{Timestamp, canonicalize_str};
use servo_queue::{Keyring, Purpose, SignedEnvelope, SigningKey, TaskClaims};
use sha2::Sha256;

const KEY_ID: &str = "k1";
const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
const PURPOSE: &str = "cursor";
/// A time at which no message has expired.
const NOW: Timestamp = Timestamp::MIN;

fn keys() -> Keyring {
    let key = |purpose| SigningKey { purpose, id: KEY_ID.to_owned(), secret: SECRET.to_vec() };
    Keyring::of(Purpose::ALL.map(key)).expect("a key for every purpose")
}

fn signature(content: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET).expect("HMAC takes keys of any length");
    mac.update(content);
    BASE64URL_NOPAD.encode(&mac.finalize().into_bytes())
}

/// A signed envelope, and a body that is signed as it is: only what the ring signed is opened, and it seals again.
pub fn envelope(bytes: &[u8]) {
    let keys = keys();
    if let Ok(sealed) = serde_json::from_slice::<SignedEnvelope>(bytes)
        && keys.open(&sealed, NOW).is_ok()
    {
        assert_eq!(sealed.signature, signature(sealed.body.as_bytes()), "it was signed");
    }
    let Ok(body) = std::str::from_utf8(bytes) else { return };
    let sealed = SignedEnvelope {
        body: body.into(),
        key_id: KEY_ID.to_owned(),
        signature: signature(body.as_bytes()),
    };
    let Ok(envelope) = keys.open(&sealed, NOW) else { return };
    // What the ring has signed had a canonical text; a body that has none was never an envelope.
    if canonicalize_str(body).is_err() {
        return;
    }
    let again = keys.seal(&envelope);
    assert_eq!(canonicalize_str(&again.body).as_deref(), Ok(&*again.body));
    assert_eq!(keys.open(&again, NOW).as_ref(), Ok(&envelope));
}

/// A task token, and claims that are signed as they are.
pub fn task_token(bytes: &[u8]) {
    let keys = keys();
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(claims) = keys.verify_token(text, NOW) {
        assert_eq!(keys.verify_token(&keys.mint(&claims), NOW).as_ref(), Ok(&claims));
    }
    let token = format!("st1.{KEY_ID}.{}.{}", BASE64URL_NOPAD.encode(bytes), signature(bytes));
    let claims = keys.verify_token(&token, NOW);
    assert_eq!(claims.is_ok(), serde_json::from_slice::<TaskClaims>(bytes).is_ok());
    if let Ok(claims) = claims {
        assert_eq!(keys.verify_token(&keys.mint(&claims), NOW).as_ref(), Ok(&claims));
    }
}

/// A sealed text, such as the place of a page: what was sealed comes back, anything else is refused.
pub fn sealed_text(bytes: &[u8]) {
    let keys = keys();
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(content) = keys.open_text(PURPOSE, text) {
        assert_eq!(keys.seal_text(PURPOSE, &content), text, "it was sealed");
    }
    assert_eq!(keys.open_text(PURPOSE, &keys.seal_text(PURPOSE, bytes)).as_deref(), Ok(bytes));
}
