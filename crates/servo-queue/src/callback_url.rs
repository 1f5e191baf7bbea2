//! Callback URLs: addresses that carry their own signature, each good for one kind of report about one attempt until it
//! expires. Whoever has one needs no other credential, so that they are secrets.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};
use servo_core::{Millis, Timestamp};

use crate::keyring::{AuthError, Keyring, Purpose};

const WHAT: &str = "callback URL";

/// A kind of report about an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackVerb {
    /// A worker is about to begin.
    Started,
    /// The work goes on.
    Heartbeat,
    /// The work has ended.
    Finished,
    /// Lines that it has printed.
    Logs,
}

impl CallbackVerb {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Started, Self::Heartbeat, Self::Finished, Self::Logs];

    /// Its name in addresses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Heartbeat => "heartbeat",
            Self::Finished => "finished",
            Self::Logs => "logs",
        }
    }

    /// The one of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }
}

/// The attempt that a callback URL is about, as its address says it. All of it is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct CallbackScope {
    pub tenant: String,
    pub workspace: String,
    pub run_id: String,
    /// The name of the task in addresses.
    pub task_id: String,
    pub attempt: String,
    pub attempt_id: String,
}

impl CallbackScope {
    /// The content that is signed: every part by itself, so that no two addresses have the same.
    fn content(&self, verb: CallbackVerb, expires: &str) -> Vec<u8> {
        let Self { tenant, workspace, run_id, task_id, attempt, attempt_id } = self;
        let parts: [&str; 8] =
            [tenant, workspace, run_id, task_id, attempt, attempt_id, verb.name(), expires];
        serde_json::to_vec(&parts).unwrap_or_default()
    }
}

impl Keyring {
    /// How long a callback URL is good. Heartbeats renew those that have half of it left.
    pub const CALLBACK_URLS_LIVE: Millis = Millis::from_hours(2);

    /// The query that makes an address of a callback one that is believed: `attempt_id`, `expires` in seconds since
    /// 1970, and `sig`, the id of a key and its signature.
    pub fn callback_query(&self, scope: &CallbackScope, verb: CallbackVerb, expires_at: Timestamp) -> String {
        let expires = expires_at.as_millis().div_euclid(1_000).to_string();
        let (key_id, signature) = self.sign(Purpose::CallbackUrls, &scope.content(verb, &expires));
        let signature = BASE64URL_NOPAD.encode(&signature);
        format!("attempt_id={}&expires={expires}&sig={key_id}.{signature}", scope.attempt_id)
    }

    /// When an address expires that this ring signed and that has not expired yet.
    pub fn verify_callback(
        &self,
        scope: &CallbackScope,
        verb: CallbackVerb,
        expires: &str,
        sig: &str,
        now: Timestamp,
    ) -> Result<Timestamp, AuthError> {
        let malformed = |problem: &str| AuthError::Malformed { what: WHAT, problem: problem.to_owned() };
        let (key_id, signature) =
            sig.split_once('.').ok_or_else(|| malformed("sig is the id of a key and a signature"))?;
        let signature = BASE64URL_NOPAD.decode(signature.as_bytes());
        let signature = signature.map_err(|_| malformed("the signature is not base64url"))?;
        self.check(Purpose::CallbackUrls, WHAT, key_id, &scope.content(verb, expires), &signature)?;
        let seconds: i64 = expires.parse().map_err(|_| malformed("expires is no number"))?;
        let at = Timestamp::from_millis(seconds.saturating_mul(1_000));
        if now > at {
            return Err(AuthError::Expired { what: WHAT, at });
        }
        Ok(at)
    }
}

/// A callback URL. Its query is a secret: `Debug` and `Display` leave it out.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallbackUrl(String);

impl CallbackUrl {
    /// An address with its query.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The whole address. To be sent and stored nowhere but where the report goes.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The address without its query, which says what it is about and is no secret.
    pub fn address(&self) -> &str {
        self.0.split_once('?').map_or(&self.0, |(address, _)| address)
    }
}

impl fmt::Display for CallbackUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}?…", self.address())
    }
}

impl fmt::Debug for CallbackUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallbackUrl({self})")
    }
}

/// The callback URLs of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallbackUrls {
    /// A worker is about to begin.
    pub started: CallbackUrl,
    /// The work goes on.
    pub heartbeat: CallbackUrl,
    /// The work has ended.
    pub finished: CallbackUrl,
    /// Lines that it has printed.
    pub logs: CallbackUrl,
}

impl CallbackUrls {
    /// The URLs that `make` gives for each kind of report.
    pub fn of(make: impl Fn(CallbackVerb) -> String) -> Self {
        Self {
            started: CallbackUrl(make(CallbackVerb::Started)),
            heartbeat: CallbackUrl(make(CallbackVerb::Heartbeat)),
            finished: CallbackUrl(make(CallbackVerb::Finished)),
            logs: CallbackUrl(make(CallbackVerb::Logs)),
        }
    }

    /// The URL of a kind of report.
    pub fn get(&self, verb: CallbackVerb) -> &CallbackUrl {
        match verb {
            CallbackVerb::Started => &self.started,
            CallbackVerb::Heartbeat => &self.heartbeat,
            CallbackVerb::Finished => &self.finished,
            CallbackVerb::Logs => &self.logs,
        }
    }

    /// All of them as one text, which travels to whoever reports in the place of a task token.
    ///
    /// # Panics
    /// Never: they are plain texts.
    pub fn to_credential(&self) -> String {
        serde_json::to_string(self).expect("callback URLs are plain texts")
    }

    /// The URLs of a credential; none if it is a task token.
    pub fn of_credential(credential: &str) -> Option<Self> {
        serde_json::from_str(credential).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> CallbackScope {
        CallbackScope {
            tenant: "acme".to_owned(),
            workspace: "main".to_owned(),
            run_id: "run_1".to_owned(),
            task_id: "t_1".to_owned(),
            attempt: "1".to_owned(),
            attempt_id: "01JHMR6K5V0000000000000007".to_owned(),
        }
    }

    /// `expires` and `sig` of a query.
    fn parts(query: &str) -> (String, String) {
        let part = |name: &str| query.split('&').find_map(|it| it.strip_prefix(name)).unwrap().to_owned();
        (part("expires="), part("sig="))
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    #[test]
    fn a_url_is_good_for_its_attempt_and_verb_until_it_expires() {
        let keys = Keyring::new("k1", b"secret");
        let query = keys.callback_query(&scope(), CallbackVerb::Started, at(60));
        let (expires, sig) = parts(&query);
        let verify =
            |scope: &CallbackScope, verb, now| keys.verify_callback(scope, verb, &expires, &sig, now);
        assert_eq!(verify(&scope(), CallbackVerb::Started, at(60)), Ok(at(60)));
        let expired = verify(&scope(), CallbackVerb::Started, Timestamp::from_millis(60_001)).unwrap_err();
        assert_eq!(expired.to_string(), "the callback URL expired at 1970-01-01T00:01:00.000Z");
        let bad = Err(AuthError::BadSignature { what: WHAT });
        for verb in [CallbackVerb::Heartbeat, CallbackVerb::Finished, CallbackVerb::Logs] {
            assert_eq!(verify(&scope(), verb, at(1)), bad, "{verb:?}");
        }
        let altered: [fn(&mut CallbackScope) -> &mut String; 6] = [
            |it| &mut it.tenant,
            |it| &mut it.workspace,
            |it| &mut it.run_id,
            |it| &mut it.task_id,
            |it| &mut it.attempt,
            |it| &mut it.attempt_id,
        ];
        for part in altered {
            let mut other = scope();
            part(&mut other).push('2');
            assert_eq!(verify(&other, CallbackVerb::Started, at(1)), bad, "{other:?}");
        }
        let moved = CallbackScope { tenant: "acm".to_owned(), workspace: "emain".to_owned(), ..scope() };
        assert_eq!(verify(&moved, CallbackVerb::Started, at(1)), bad, "parts are signed by themselves");
        let longer = keys.verify_callback(&scope(), CallbackVerb::Started, "600", &sig, at(1));
        assert_eq!(longer, bad);
    }

    #[test]
    fn urls_of_a_rotated_key_are_good_until_they_expire_and_of_a_removed_one_no_more() {
        let keys = Keyring::new("k1", b"secret");
        let (expires, sig) = parts(&keys.callback_query(&scope(), CallbackVerb::Logs, at(60)));
        let rotated = keys.rotated("k2", b"other");
        let verify = |keys: &Keyring, now| {
            keys.verify_callback(&scope(), CallbackVerb::Logs, &expires, &sig, now).map(drop)
        };
        assert_eq!(verify(&rotated, at(1)), Ok(()));
        assert!(matches!(verify(&rotated, at(61)), Err(AuthError::Expired { .. })));
        assert!(parts(&rotated.callback_query(&scope(), CallbackVerb::Logs, at(60))).1.starts_with("k2."));
        assert!(matches!(verify(&rotated.without("k1"), at(1)), Err(AuthError::UnknownKey { .. })));
        for broken in ["", "k1", "k1.!", ".", "k1.YQ"] {
            assert!(keys_refuse(broken), "{broken:?}");
        }
    }

    fn keys_refuse(sig: &str) -> bool {
        Keyring::new("k1", b"secret").verify_callback(&scope(), CallbackVerb::Logs, "60", sig, at(1)).is_err()
    }

    #[test]
    fn the_query_of_a_url_is_shown_nowhere() {
        let urls = CallbackUrls::of(|verb| format!("https://a.example/{}?sig=hush", verb.name()));
        assert!(!format!("{urls:?} {}", urls.logs).contains("hush"));
        assert_eq!(urls.logs.to_string(), "https://a.example/logs?…");
        assert_eq!(CallbackUrls::of_credential(&urls.to_credential()), Some(urls));
        assert_eq!(CallbackUrls::of_credential("st1.k.a.b"), None);
    }
}
