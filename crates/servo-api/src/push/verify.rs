//! Senders prove that they know the secret of a sensor: they show it, or sign with it as GitHub and Stripe do.

use std::path::Path;

use axum::http::{HeaderMap, header};
use data_encoding::HEXLOWER_PERMISSIVE;
use hmac::{Hmac, KeyInit, Mac};
use servo_core::Timestamp;
use servo_engine::definitions::{SecretDef, VerifyScheme};
use servo_runtime::read_secret;
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::problem::{Code, Problem};

/// How far the time in a signature may be from now: an older message may have been recorded and sent again.
const TOLERANCE_SECS: i64 = 300;

/// The value of a secret, where the server finds it.
pub(crate) fn secret(reference: &SecretDef, root: Option<&Path>) -> Result<String, Problem> {
    read_secret(reference, root).ok_or_else(|| {
        let place = format!("{} {}", reference.provider, reference.path);
        let detail = format!("the secret of the sensor is not there: the server looks for it in {place}");
        Problem::new(Code::Unavailable, detail)
    })
}

/// Refuses a message whose sender does not know the secret. Never says what was expected.
pub(crate) fn verify(
    scheme: VerifyScheme,
    secret: &str,
    headers: &HeaderMap,
    token: Option<&str>,
    body: &[u8],
    now: Timestamp,
) -> Result<(), Problem> {
    match scheme {
        VerifyScheme::Token => {
            let shown = bearer(headers).or(token).ok_or_else(|| missing("Authorization: Bearer"))?;
            let is_same: bool = shown.as_bytes().ct_eq(secret.as_bytes()).into();
            if is_same { Ok(()) } else { Err(wrong("the token")) }
        }
        VerifyScheme::Github => {
            let shown = text(headers, "x-hub-signature-256").ok_or_else(|| missing("X-Hub-Signature-256"))?;
            let shown =
                shown.strip_prefix("sha256=").ok_or_else(|| wrong("the form of X-Hub-Signature-256"))?;
            if is_signed(secret, &[body], shown) { Ok(()) } else { Err(wrong("X-Hub-Signature-256")) }
        }
        VerifyScheme::Stripe => stripe(secret, headers, body, now),
    }
}

/// `t=` and one or several `v1=`, of the time, a dot and the body.
fn stripe(secret: &str, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Result<(), Problem> {
    let shown = text(headers, "stripe-signature").ok_or_else(|| missing("Stripe-Signature"))?;
    let parts: Vec<(&str, &str)> = shown.split(',').filter_map(|part| part.trim().split_once('=')).collect();
    let time = parts.iter().find(|(name, _)| *name == "t").map(|(_, time)| *time);
    let seconds: i64 =
        time.and_then(|time| time.parse().ok()).ok_or_else(|| wrong("the form of Stripe-Signature"))?;
    let signed = |shown: &str| is_signed(secret, &[time.unwrap_or_default().as_bytes(), b".", body], shown);
    if !parts.iter().any(|(name, shown)| *name == "v1" && signed(shown)) {
        return Err(wrong("Stripe-Signature"));
    }
    let age = now.as_millis().div_euclid(1_000).saturating_sub(seconds);
    if age.saturating_abs() > TOLERANCE_SECS {
        let detail = format!("the signature is of another time: more than {TOLERANCE_SECS} seconds from now");
        return Err(Problem::new(Code::Unauthenticated, detail));
    }
    Ok(())
}

/// Whether a signature in hexadecimal is that of these parts; takes the same time wherever it differs.
fn is_signed(secret: &str, parts: &[&[u8]], shown: &str) -> bool {
    let Ok(shown) = HEXLOWER_PERMISSIVE.decode(shown.as_bytes()) else { return false };
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.verify_slice(&shown).is_ok()
}

fn missing(header: &str) -> Problem {
    Problem::new(Code::Unauthenticated, format!("this sensor takes messages with {header} only"))
}

fn wrong(what: &str) -> Problem {
    Problem::new(Code::Unauthenticated, format!("{what} is not right; the message was not taken"))
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = text(headers, header::AUTHORIZATION.as_str())?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        [(name.parse().unwrap(), value.parse().unwrap())].into_iter().collect()
    }

    fn check(scheme: VerifyScheme, headers: &HeaderMap, body: &[u8], seconds: i64) -> Result<(), Code> {
        let now = Timestamp::from_millis(seconds * 1_000);
        verify(scheme, "It's a Secret to Everybody", headers, None, body, now).map_err(|problem| problem.code)
    }

    /// The example of GitHub's documentation.
    #[test]
    fn signatures_of_github_are_verified() {
        let good = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        let signed = headers("x-hub-signature-256", good);
        assert_eq!(check(VerifyScheme::Github, &signed, b"Hello, World!", 0), Ok(()));
        assert_eq!(check(VerifyScheme::Github, &signed, b"Hello, World?", 0), Err(Code::Unauthenticated));
        assert_eq!(check(VerifyScheme::Github, &HeaderMap::new(), b"", 0), Err(Code::Unauthenticated));
        for bad in ["757107ea", "sha256=", "sha256=zz", "sha1=757107ea"] {
            let signed = headers("x-hub-signature-256", bad);
            assert_eq!(check(VerifyScheme::Github, &signed, b"Hello, World!", 0), Err(Code::Unauthenticated));
        }
    }

    #[test]
    fn signatures_of_stripe_are_verified_and_grow_old() {
        let mut mac = Hmac::<Sha256>::new_from_slice(b"It's a Secret to Everybody").unwrap();
        mac.update(b"1000.{}");
        let signature = HEXLOWER_PERMISSIVE.encode(&mac.finalize().into_bytes());
        let signed = headers("stripe-signature", &format!("t=1000,v0=aa,v1={signature}"));
        assert_eq!(check(VerifyScheme::Stripe, &signed, b"{}", 1_200), Ok(()));
        assert_eq!(check(VerifyScheme::Stripe, &signed, b"{}", 1_400), Err(Code::Unauthenticated));
        assert_eq!(check(VerifyScheme::Stripe, &signed, b"[]", 1_200), Err(Code::Unauthenticated));
        let bare = headers("stripe-signature", "t=1000");
        assert_eq!(check(VerifyScheme::Stripe, &bare, b"{}", 1_000), Err(Code::Unauthenticated));
    }

    #[test]
    fn a_secret_is_shown_as_it_is() {
        let shown = headers("authorization", "Bearer It's a Secret to Everybody");
        assert_eq!(check(VerifyScheme::Token, &shown, b"", 0), Ok(()));
        let other = headers("authorization", "Bearer something else");
        assert_eq!(check(VerifyScheme::Token, &other, b"", 0), Err(Code::Unauthenticated));
    }
}
