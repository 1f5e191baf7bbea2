//! Verification of tokens. Nothing of a token counts before its signature is verified with a key of the provider.

use data_encoding::BASE64URL_NOPAD;
use serde::Deserialize;
use serde_json::{Map, Value};
use servo_access::Identity;
use servo_core::Timestamp;
use servo_engine::Principal;
use subtle::ConstantTimeEq;

use crate::error::Error;
use crate::provider::Provider;

const MAX_TOKEN: usize = 16 << 10;
const MAX_NAME: usize = 255;
const MAX_GROUPS: usize = 1_000;

/// Whether a text has the form of a token, so that it is one of a provider or nobody's.
pub fn looks_like_token(text: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    // A header is a JSON object, and `{"` is `eyJ` in its encoding.
    text.starts_with("eyJ") && text.split('.').count() == 3 && text.split('.').all(is_part)
}

/// Whether a token says of itself that it has expired, for whoever shows it: nothing is verified.
pub fn has_expired(token: &str, now: Timestamp) -> bool {
    #[derive(Deserialize)]
    struct Expiry {
        exp: f64,
    }
    let payload = token.split('.').nth(1).and_then(|part| BASE64URL_NOPAD.decode(part.as_bytes()).ok());
    let expiry: Option<Expiry> = payload.and_then(|text| serde_json::from_slice(&text).ok());
    #[allow(clippy::cast_precision_loss)]
    let now = now.as_millis() as f64 / 1e3;
    expiry.is_some_and(|token| token.exp <= now + 30.0)
}

/// The claims of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// Who it is, for ever.
    pub subject: String,
    /// The name that goes into the log.
    pub name: String,
    /// The groups of that one.
    pub groups: Vec<String>,
    /// When the token expires, in seconds since 1970.
    pub expires: i64,
    /// When it was issued, in seconds since 1970; 0 if it does not say.
    pub issued: i64,
    nonce: Option<String>,
}

/// The parts of a header that decide; where it says that a key is to be fetched from is not among them.
#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    crit: Option<Value>,
    #[serde(default)]
    enc: Option<Value>,
    #[serde(default)]
    zip: Option<Value>,
}

#[derive(Deserialize)]
struct Payload {
    iss: String,
    sub: String,
    aud: Audience,
    exp: f64,
    #[serde(default)]
    nbf: Option<f64>,
    #[serde(default)]
    iat: Option<f64>,
    #[serde(default)]
    azp: Option<String>,
    #[serde(default)]
    nonce: Option<String>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Provider {
    /// Who a token is about.
    pub async fn verify(&self, token: &str, now: Timestamp) -> Result<Claims, Error> {
        if token.len() > MAX_TOKEN || !looks_like_token(token) {
            return Err(Error::token("it is no token, or too long"));
        }
        let (signed, signature) = token.rsplit_once('.').unwrap_or_default();
        let (header, payload) = signed.split_once('.').unwrap_or_default();
        let decoded = |part: &str| BASE64URL_NOPAD.decode(part.as_bytes()).ok();
        let header: Option<Header> = decoded(header).and_then(|text| serde_json::from_slice(&text).ok());
        let header = header.ok_or_else(|| Error::token("its header is not understood"))?;
        let taken = self.config().algorithms.iter().find(|taken| taken.name() == header.alg);
        let algorithm = *taken.ok_or_else(|| Error::token("its algorithm is not taken here"))?;
        if header.crit.is_some() || header.enc.is_some() || header.zip.is_some() {
            return Err(Error::token("its header asks for something that is not known here"));
        }
        let key = self.key(header.kid.as_deref()).await?;
        let wrong = || Error::token("its signature or its content is wrong");
        let signature = decoded(signature).ok_or_else(wrong)?;
        if !key.verifies(algorithm, signed.as_bytes(), &signature) {
            return Err(wrong());
        }
        let payload = decoded(payload).and_then(|text| serde_json::from_slice(&text).ok());
        self.check(payload.ok_or_else(wrong)?, now)
    }

    fn check(&self, payload: Payload, now: Timestamp) -> Result<Claims, Error> {
        let config = self.config();
        if payload.iss != config.issuer {
            return Err(Error::token("it is of another issuer"));
        }
        let (audiences, is_one) = match payload.aud {
            Audience::One(one) => (vec![one], true),
            Audience::Many(many) => {
                let is_one = many.len() == 1;
                (many, is_one)
            }
        };
        if !audiences.iter().any(|audience| config.is_audience(audience)) {
            return Err(Error::token("it is for somebody else: its audience is not this server"));
        }
        if let Some(party) = payload.azp.as_deref().filter(|_| !is_one)
            && !config.is_audience(party)
        {
            return Err(Error::token("it was given to somebody else"));
        }
        #[allow(clippy::cast_precision_loss)]
        let (now, skew) = (now.as_millis() as f64 / 1e3, config.skew_seconds as f64);
        if payload.exp + skew <= now {
            return Err(Error::token("it has expired; log in again"));
        }
        if payload.nbf.is_some_and(|begins| begins > now + skew)
            || payload.iat.is_some_and(|made| made > now + skew)
        {
            return Err(Error::token("it is not good yet; do the clocks agree?"));
        }
        let is_name =
            |name: &str| !name.is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control);
        if !is_name(&payload.sub) {
            return Err(Error::token("it names nobody"));
        }
        let text =
            |claim: &str| payload.others.get(claim).and_then(Value::as_str).filter(|name| is_name(name));
        // Whoever can choose an address that is not verified could choose somebody else's.
        let is_verified =
            config.name_claim != "email" || payload.others.get("email_verified") == Some(&Value::Bool(true));
        let name = text(&config.name_claim).filter(|_| is_verified).unwrap_or(&payload.sub).to_owned();
        let groups = match payload.others.get(&config.groups_claim) {
            Some(Value::Array(groups)) => {
                groups.iter().filter_map(Value::as_str).take(MAX_GROUPS).map(str::to_owned).collect()
            }
            Some(Value::String(group)) => vec![group.clone()],
            Some(_) | None => Vec::new(),
        };
        #[allow(clippy::cast_possible_truncation)]
        let (expires, issued) = (payload.exp as i64, payload.iat.unwrap_or_default() as i64);
        Ok(Claims { subject: payload.sub, name, groups, expires, issued, nonce: payload.nonce })
    }

    /// Who somebody is to this server, and what that one may do.
    pub fn identity(&self, claims: &Claims) -> Identity {
        Identity {
            principal: Principal::user(claims.name.as_str()),
            grants: self.config().grants(&claims.groups),
        }
    }
}

impl Claims {
    /// That the token was made for a login that was begun here.
    pub(crate) fn is_for(&self, nonce: &str) -> bool {
        let shown = self.nonce.as_deref().unwrap_or_default();
        !nonce.is_empty() && bool::from(shown.as_bytes().ct_eq(nonce.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::looks_like_token;

    #[test]
    fn tokens_are_told_from_keys_by_their_form() {
        assert!(looks_like_token("eyJhbGciOiJub25lIn0.eyJhIjoxfQ.c2ln"));
        for other in ["", "sk_abc", "eyJ.a", "eyJ.a.b.c", "eyJ.a.", "eyJ.a.b c", "a.b.c", "eyJ.a.b\n"] {
            assert!(!looks_like_token(other), "{other:?}");
        }
    }
}
