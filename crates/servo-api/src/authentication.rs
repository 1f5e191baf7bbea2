//! Authentication: who asks. Several authenticators are asked in turn, and the first that knows the credential decides.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use serde::{Deserialize, Serialize};
use servo_access::{
    AddressLockedOut, ControlCommand, ControlLedger, Identity, KeyId, KeyStatus, LedgerError, Permission,
    RequestDenied, SessionId, SessionOf, parse_key,
};
use servo_core::{Millis, Timestamp};
use servo_engine::Principal;
use servo_queue::Keyring;

use crate::access::{ANYBODY, SameProcess, is_equal};
use crate::lockout::LockedOut;
use crate::login;
use crate::problem::{Code, Problem};

/// The user of this machine whose server it is.
const LOCAL: &str = "local";
/// Refusals that are recorded in a minute; more are counted.
const DENIALS_A_MINUTE: u32 = 60;
/// How old a record of the last use of a key may be before another one is made.
const USE_RECORDED_EVERY: Millis = Millis::from_hours(1);

/// Somebody whose credential was found to be good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authenticated {
    /// Who it is, and what that one may do.
    pub identity: Identity,
    /// The credential, without its secret.
    pub credential: Credential,
}

/// A kind of credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// None: the serving process asks itself.
    SameProcess,
    /// The token of the server, from `server.json`.
    ServerToken,
    /// An API key.
    ApiKey(KeyId),
    /// A session of a browser.
    Session(SessionOf),
    /// Something that an authenticator of another kind knows, by its name.
    Other(&'static str),
}

impl Authenticated {
    /// Whoever runs this server.
    pub(crate) fn owner(credential: Credential) -> Self {
        Self { identity: Identity::owner(Principal::user(LOCAL)), credential }
    }

    /// Who is counted for limits: each key for itself, everybody else by name.
    pub(crate) fn caller(&self) -> Arc<str> {
        match &self.credential {
            Credential::ApiKey(id) => format!("key {id}").into(),
            Credential::SameProcess
            | Credential::ServerToken
            | Credential::Session(_)
            | Credential::Other(_) => self.identity.principal.to_string().into(),
        }
    }

    /// The session that a browser of the same one is given.
    pub fn session(&self) -> SessionOf {
        match &self.credential {
            Credential::SameProcess | Credential::ServerToken => SessionOf::Owner,
            Credential::ApiKey(id) => SessionOf::Key { id: id.clone() },
            Credential::Session(of) => of.clone(),
            Credential::Other(_) => SessionOf::Identity(self.identity.clone()),
        }
    }
}

/// The cookie of a session that the control ledger knows.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedSession {
    session: SessionId,
}

/// Knows one kind of credential.
#[async_trait]
pub trait Authenticator: Send + Sync {
    /// Who asks. None if the request shows no credential of this kind, so that the next authenticator is asked; a problem
    /// if it does, and the credential is not good.
    async fn authenticate(&self, request: &Parts, now: Timestamp) -> Result<Option<Authenticated>, Problem>;
}

/// Asks authenticators in turn.
pub(crate) async fn authenticate(
    authenticators: &[Arc<dyn Authenticator>],
    request: &Parts,
    now: Timestamp,
) -> Result<Authenticated, Problem> {
    if request.extensions.get::<SameProcess>().is_some() {
        return Ok(Authenticated::owner(Credential::SameProcess));
    }
    for authenticator in authenticators {
        if let Some(found) = authenticator.authenticate(request, now).await? {
            return Ok(found);
        }
    }
    let detail = match bearer(&request.headers) {
        Some(_) => {
            "the token is neither that of this server, which is in server.json, nor another that it knows"
        }
        None => {
            "show an API key, or the token of server.json, as bearer; servo commands do so by themselves, and a browser \
             is let in by a link of servo open"
        }
    };
    Err(Problem::new(Code::Unauthenticated, detail))
}

/// The token of the server.
pub(crate) struct ServerToken(pub(crate) Arc<str>);

#[async_trait]
impl Authenticator for ServerToken {
    async fn authenticate(&self, request: &Parts, _: Timestamp) -> Result<Option<Authenticated>, Problem> {
        let is_shown = bearer(&request.headers).is_some_and(|shown| is_equal(shown, &self.0));
        Ok(is_shown.then(|| Authenticated::owner(Credential::ServerToken)))
    }
}

/// API keys of the control ledger. Clones share when keys were used.
#[derive(Clone)]
pub struct ApiKeys {
    control: ControlLedger,
    uses: Arc<Mutex<BTreeMap<KeyId, Timestamp>>>,
    denials: Arc<Mutex<Denials>>,
}

/// Refusals of the minute: more than a few are counted instead of written.
#[derive(Default)]
struct Denials {
    minute: i64,
    recorded: u32,
    omitted: u64,
}

impl std::fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiKeys").field("control", &self.control).finish_non_exhaustive()
    }
}

impl ApiKeys {
    /// Those of a ledger.
    pub fn new(control: ControlLedger) -> Self {
        Self { control, uses: Arc::default(), denials: Arc::default() }
    }

    /// The ledger.
    pub fn control(&self) -> &ControlLedger {
        &self.control
    }

    /// When a key was last used by this process.
    pub fn last_used(&self, id: &KeyId) -> Option<Timestamp> {
        self.uses.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied()
    }

    /// Who has a key that is good, whose secret was verified before.
    pub(crate) fn holder(&self, id: &KeyId, now: Timestamp) -> Result<Identity, Problem> {
        let denied = |detail: String| Err(Problem::new(Code::Unauthenticated, detail));
        let state = self.control.state();
        let Some(key) = state.key(id) else { return denied(format!("there is no key {id} any more")) };
        match key.status(now) {
            KeyStatus::Active => {
                self.uses.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), now);
                Ok(key.identity())
            }
            KeyStatus::Revoked => denied(format!("key {id} was revoked; ask an admin for another one")),
            KeyStatus::Expired => denied(format!("key {id} has expired; ask an admin for another one")),
        }
    }

    /// Begins a session, which is in the ledger from then on; gives the content of its cookie.
    async fn start_session(&self, of: SessionOf, now: Timestamp, lives: Millis) -> Result<Vec<u8>, Problem> {
        let principal = match &of {
            SessionOf::Owner => Principal::user(LOCAL),
            SessionOf::Key { id } => self.holder(id, now)?.principal,
            SessionOf::Identity(identity) => identity.principal.clone(),
        };
        let mut random = [0u8; 8];
        getrandom::fill(&mut random).map_err(|error| Problem::internal(&error))?;
        let session = SessionId::of(random);
        let expires_at = now.saturating_add(lives);
        let start = ControlCommand::StartSession { id: session.clone(), holder: of, expires_at };
        self.control.ask(&principal, &start).await?;
        serde_json::to_vec(&RecordedSession { session }).map_err(|error| Problem::internal(&error))
    }

    /// Whose session a cookie is, if it has not ended.
    fn session(&self, content: &[u8], now: Timestamp) -> Result<SessionOf, Problem> {
        let ended = || Problem::new(Code::Unauthenticated, "the session has ended; log in again");
        let RecordedSession { session } = serde_json::from_slice(content).map_err(|_| ended())?;
        let state = self.control.state();
        state.session(&session, now).map(|session| session.of.clone()).ok_or_else(ended)
    }

    /// Records that somebody may not administer what they asked for.
    pub(crate) async fn record_denial(&self, who: &Authenticated, permission: Permission, subject: String) {
        let Some(omitted) = self.recorded() else { return };
        let denied = RequestDenied {
            permission: permission.name().to_owned(),
            role: permission.least_role().name().to_owned(),
            subject,
            scope: who.identity.home(),
            omitted,
        };
        self.record(&who.identity.principal, ControlCommand::RecordDenial(denied)).await;
    }

    /// Records that an address was locked out.
    pub(crate) async fn record_lockout(&self, locked: LockedOut) {
        let Some(omitted) = self.recorded() else { return };
        let locked = AddressLockedOut {
            address: locked.address,
            wrong_keys: locked.wrong_keys,
            wait_ms: Millis::new(u64::try_from(locked.wait.as_millis()).unwrap_or(u64::MAX)),
            omitted,
        };
        self.record(&Principal::user(ANYBODY), ControlCommand::RecordLockout(locked)).await;
    }

    /// Counts a refusal: how many before it were left out, or none if it is left out itself.
    fn recorded(&self) -> Option<u64> {
        let minute = self.control.now().as_millis() / 60_000;
        let mut denials = self.denials.lock().unwrap_or_else(PoisonError::into_inner);
        if denials.minute != minute {
            (denials.minute, denials.recorded) = (minute, 0);
        }
        if denials.recorded >= DENIALS_A_MINUTE {
            denials.omitted += 1;
            return None;
        }
        denials.recorded += 1;
        Some(std::mem::take(&mut denials.omitted))
    }

    async fn record(&self, principal: &Principal, refusal: ControlCommand) {
        if let Err(error) = self.control.ask(principal, &refusal).await {
            tracing::warn!(%error, "a refused request could not be recorded");
        }
    }

    /// Whether a key is whole and of this server, be it expired or revoked: whoever has it has not guessed it.
    pub(crate) fn has_issued(&self, shown: &str) -> bool {
        parse_key(shown).is_some_and(|(id, secret)| self.control.state().verified(&id, secret).is_some())
    }

    /// Records in the ledger when keys were last used: those whose record is old, or all of them at the end.
    pub async fn record_uses(&self, all: bool) -> Result<(), LedgerError> {
        let state = self.control.state();
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner).clone();
        uses.retain(|id, at| {
            let recorded = state.key(id).and_then(|key| key.last_used_at);
            recorded.is_none_or(|before| all || at.since(before) >= USE_RECORDED_EVERY)
        });
        if uses.is_empty() {
            return Ok(());
        }
        self.control.ask(&Principal::system(), &ControlCommand::RecordUse(uses)).await.map(|_| ())
    }
}

#[async_trait]
impl Authenticator for ApiKeys {
    async fn authenticate(&self, request: &Parts, now: Timestamp) -> Result<Option<Authenticated>, Problem> {
        let Some((id, secret)) = bearer(&request.headers).and_then(parse_key) else { return Ok(None) };
        if self.control.state().verified(&id, secret).is_none() {
            // Neither says whether there is such a key.
            let detail = "this key is not one of this server, or is not whole";
            return Err(Problem::new(Code::Unauthenticated, detail));
        }
        let identity = self.holder(&id, now)?;
        Ok(Some(Authenticated { identity, credential: Credential::ApiKey(id) }))
    }
}

/// Sessions of browsers.
pub(crate) struct Sessions {
    pub(crate) keys: Keyring,
    pub(crate) api_keys: Option<ApiKeys>,
}

impl Sessions {
    /// Begins a session; gives the text of its cookie.
    pub(crate) async fn start(
        &self,
        of: SessionOf,
        now: Timestamp,
        lives: Millis,
    ) -> Result<String, Problem> {
        let content = match &self.api_keys {
            Some(keys) => keys.start_session(of, now, lives).await?,
            None => serde_json::to_vec(&of).map_err(|error| Problem::internal(&error))?,
        };
        Ok(self.keys.seal_session(now.saturating_add(lives), &content))
    }

    /// Ends the session of a cookie, if it is one that the ledger knows.
    pub(crate) async fn end(&self, session: &str, now: Timestamp) -> Result<(), Problem> {
        let (Ok(who), Some(keys)) = (self.verify(session, now), &self.api_keys) else { return Ok(()) };
        let Ok(content) = self.keys.verify_session(session, now) else { return Ok(()) };
        let Ok(RecordedSession { session }) = serde_json::from_slice(&content) else { return Ok(()) };
        keys.control.ask(&who.identity.principal, &ControlCommand::EndSession(session)).await?;
        Ok(())
    }

    /// Whose session it is, if it is a good one.
    pub(crate) fn verify(&self, session: &str, now: Timestamp) -> Result<Authenticated, Problem> {
        let content = self.keys.verify_session(session, now)?;
        let of = match &self.api_keys {
            Some(keys) => keys.session(&content, now)?,
            None => serde_json::from_slice(&content).map_err(|_| {
                Problem::new(Code::Unauthenticated, "the session is of another version; log in again")
            })?,
        };
        let identity = match (&of, &self.api_keys) {
            (SessionOf::Owner, _) => Identity::owner(Principal::user(LOCAL)),
            (SessionOf::Key { id }, Some(keys)) => keys.holder(id, now)?,
            (SessionOf::Key { .. }, None) => {
                return Err(Problem::new(Code::Unauthenticated, "this server has no keys; log in again"));
            }
            (SessionOf::Identity(identity), _) => identity.clone(),
        };
        Ok(Authenticated { identity, credential: Credential::Session(of) })
    }
}

#[async_trait]
impl Authenticator for Sessions {
    async fn authenticate(&self, request: &Parts, now: Timestamp) -> Result<Option<Authenticated>, Problem> {
        // A program that shows a token means that.
        if bearer(&request.headers).is_some() {
            return Ok(None);
        }
        let Some(session) = login::session(&request.headers) else { return Ok(None) };
        login::check_origin(&request.method, &request.headers)?;
        self.verify(session, now).map(Some)
    }
}

/// The token that a request shows.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
