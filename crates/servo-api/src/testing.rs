//! Parsers of pushed messages, for fuzzers.

use axum::http::HeaderMap;
use servo_core::Timestamp;
use servo_engine::definitions::VerifyScheme;

use crate::problem::Problem;
use crate::push;

/// Reads a pushed message: its id, and the JSON object that its sensor is given.
pub fn read_push(headers: &HeaderMap, body: &[u8]) -> Result<(String, String), Problem> {
    push::read(headers, body).map(|message| (message.id, message.text))
}

/// Verifies that the sender of a message knows a secret.
pub fn verify_push(
    scheme: VerifyScheme,
    secret: &str,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Result<(), Problem> {
    push::verify(scheme, secret, headers, None, body, now)
}
