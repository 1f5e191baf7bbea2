//! Messages that others push to sensors, and their signatures. An input is lines of headers, an empty line, and a body.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use servo_api::testing::{read_push, verify_push};
use servo_core::Timestamp;
use servo_engine::definitions::{NotificationDef, VerifyScheme};
use servo_engine::notification::template;
use servo_engine::notification::{Delivery, Facts};
use sha2::Sha256;

const SECRET: &str = "It's a Secret to Everybody";
/// 2025-01-15T00:00:00Z.
const NOW: Timestamp = Timestamp::from_millis(1_736_899_200_000);

/// Headers and body of an input.
fn request(bytes: &[u8]) -> (HeaderMap, &[u8]) {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = end.map_or((&[][..], bytes), |end| (&bytes[..end], &bytes[end + 2..]));
    let lines = head.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        Some((name, HeaderValue::from_bytes(line[colon + 1..].trim_ascii()).ok()?))
    });
    (lines.collect(), body)
}

/// A message has an id, says it again, and is the same however often it is read.
pub fn push_message(bytes: &[u8]) {
    let (headers, body) = request(bytes);
    let Ok((id, text)) = read_push(&headers, body) else { return };
    assert!(!id.is_empty(), "a message without an id");
    let read: serde_json::Value = serde_json::from_str(&text).expect("a message is JSON");
    assert_eq!(read.get("id").and_then(|id| id.as_str()), Some(id.as_str()));
    assert_eq!(read_push(&headers, body).ok(), Some((id, text)));
}

/// A signature that is taken is the one that the secret makes.
pub fn push_signature(bytes: &[u8]) {
    let (headers, body) = request(bytes);
    let signed = |parts: &[&[u8]]| {
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("a key of any length");
        parts.iter().for_each(|part| mac.update(part));
        HEXLOWER.encode(&mac.finalize().into_bytes())
    };
    let shown =
        |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let is_taken = |scheme| verify_push(scheme, SECRET, &headers, body, NOW).is_ok();
    if is_taken(VerifyScheme::Github) {
        let expected = format!("sha256={}", signed(&[body]));
        assert!(shown("x-hub-signature-256").eq_ignore_ascii_case(&expected));
    }
    if is_taken(VerifyScheme::Stripe) {
        let shown = shown("stripe-signature");
        let times = shown.split(',').filter_map(|part| part.trim().strip_prefix("t="));
        let is_signed = |time: &str| shown.to_lowercase().contains(&signed(&[time.as_bytes(), b".", body]));
        assert!(times.into_iter().any(is_signed), "{shown}");
    }
    if is_taken(VerifyScheme::Token) {
        assert!(shown("authorization").ends_with(SECRET));
    }
    // With another secret none of it is right.
    for scheme in [VerifyScheme::Github, VerifyScheme::Stripe, VerifyScheme::Token] {
        assert!(
            verify_push(scheme, "another", &headers, body, NOW).is_err()
                || shown("authorization").ends_with("another")
        );
    }
}

/// A rule that is read is written as it was read, and its words can be made whatever they are.
pub fn notification_rule(bytes: &[u8]) {
    let Ok(rule) = serde_json::from_slice::<NotificationDef>(bytes) else { return };
    let written = serde_json::to_string(&rule).expect("a rule can be written");
    assert_eq!(serde_json::from_str::<NotificationDef>(&written).expect("and read again"), rule);
    let delivery = Delivery {
        notification_id: "n".into(),
        attempt: 1,
        rule_id: servo_core::RuleId::NIL,
        trigger: rule.when.first().copied().unwrap_or(servo_engine::NotificationTrigger::Test),
        rule: rule.into(),
        destination: 0,
        facts: Facts::new(NOW, "something\nfailed").into(),
        private_addresses: false,
    };
    let words = template::words(&delivery, "main", Some("https://example.org"));
    assert!(!words.title.chars().any(char::is_control), "a title is one line");
}
