//! Principals: who is responsible for an event or asks for something.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use servo_core::{Fingerprint, TenantId};

/// The kinds of principals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PrincipalKind {
    /// A person.
    User,
    /// A program with credentials of its own.
    Service,
    /// A process that executes tasks.
    Worker,
    /// A controller of the engine; the subject is its name.
    Controller,
    /// Servo itself.
    System,
    /// A kind that this version does not know; the subject is the text as it was written.
    Unknown,
}

impl PrincipalKind {
    const NAMED: [Self; 5] = [Self::User, Self::Service, Self::Worker, Self::Controller, Self::System];

    /// The name on the wire and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            PrincipalKind::User => "user",
            PrincipalKind::Service => "service",
            PrincipalKind::Worker => "worker",
            PrincipalKind::Controller => "controller",
            PrincipalKind::System => "system",
            PrincipalKind::Unknown => "unknown",
        }
    }
}

/// Who is responsible for an event or asks for something.
///
/// Its text is `kind:subject`, or `kind@tenant:subject` for somebody of another tenant than the workspace's, or the
/// kind alone if there is no subject. Reading a text never fails, so that no kind of a newer version spoils a batch.
///
/// ```
/// use servo_engine::{Principal, PrincipalKind};
///
/// let principal = Principal::parse("user:zoë@example.org");
/// assert_eq!((principal.kind(), principal.subject()), (PrincipalKind::User, "zoë@example.org"));
/// assert_eq!(Principal::system().to_string(), "system");
/// assert_eq!(Principal::parse("robot:7").kind(), PrincipalKind::Unknown);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal {
    kind: PrincipalKind,
    subject: Arc<str>,
    tenant: Option<TenantId>,
}

impl Principal {
    /// Somebody of the tenant that owns the workspace.
    pub fn new(kind: PrincipalKind, subject: impl Into<Arc<str>>) -> Self {
        Self { kind, subject: subject.into(), tenant: None }
    }

    /// A person.
    pub fn user(subject: impl Into<Arc<str>>) -> Self {
        Self::new(PrincipalKind::User, subject)
    }

    /// A worker, by its id.
    pub fn worker(id: impl Into<Arc<str>>) -> Self {
        Self::new(PrincipalKind::Worker, id)
    }

    /// A controller, by its name.
    pub fn controller(name: impl Into<Arc<str>>) -> Self {
        Self::new(PrincipalKind::Controller, name)
    }

    /// Servo itself.
    pub fn system() -> Self {
        Self::new(PrincipalKind::System, "")
    }

    /// The same, of another tenant.
    #[must_use]
    pub fn of_tenant(self, tenant: TenantId) -> Self {
        Self { tenant: Some(tenant), ..self }
    }

    /// Reads its text.
    pub fn parse(text: &str) -> Self {
        let (head, subject) = text.split_once(':').unwrap_or((text, ""));
        let (kind, tenant) = match head.split_once('@') {
            Some((kind, tenant)) => (kind, TenantId::parse(tenant).map(Some)),
            None => (head, Ok(None)),
        };
        let named = PrincipalKind::NAMED.into_iter().find(|named| named.name() == kind);
        match (named, tenant) {
            (Some(kind), Ok(tenant)) if !text.ends_with(':') || !subject.is_empty() => {
                Self { kind, subject: subject.into(), tenant }
            }
            (Some(_) | None, Ok(_) | Err(_)) => Self::new(PrincipalKind::Unknown, text),
        }
    }

    /// Returns its kind.
    pub fn kind(&self) -> PrincipalKind {
        self.kind
    }

    /// Its name among those of its kind.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The tenant, if it is not the one that owns the workspace.
    pub fn tenant(&self) -> Option<&TenantId> {
        self.tenant.as_ref()
    }
}

/// Who asks for something, and with which request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caller {
    /// Who asks.
    pub principal: Principal,
    /// Their own id of the request.
    pub request_id: Option<Arc<str>>,
    /// Hash of the whole request. With an id it is carried out once, and answered the same for a day.
    pub request_fingerprint: Option<Fingerprint>,
}

impl Caller {
    /// A person, with a request that has no id.
    pub fn user(subject: impl Into<Arc<str>>) -> Self {
        Principal::user(subject).into()
    }
}

impl From<Principal> for Caller {
    fn from(principal: Principal) -> Self {
        Self { principal, request_id: None, request_fingerprint: None }
    }
}

/// Servo itself: for what nobody in particular asked for.
impl Default for Principal {
    fn default() -> Self {
        Self::system()
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == PrincipalKind::Unknown {
            return f.write_str(&self.subject);
        }
        f.write_str(self.kind.name())?;
        if let Some(tenant) = &self.tenant {
            write!(f, "@{tenant}")?;
        }
        if self.subject.is_empty() { Ok(()) } else { write!(f, ":{}", self.subject) }
    }
}

impl std::str::FromStr for Principal {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::parse(text))
    }
}

impl Serialize for Principal {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Principal {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        std::borrow::Cow::<'de, str>::deserialize(deserializer).map(|text| Self::parse(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_principal_is_read_as_it_was_written() {
        let acme = TenantId::parse("acme").unwrap();
        let all = [
            Principal::user("zoë@example.org"),
            Principal::user("a:b").of_tenant(acme),
            Principal::worker("local-1"),
            Principal::controller("timers"),
            Principal::system(),
            Principal::new(PrincipalKind::Service, "ci"),
        ];
        for principal in all {
            assert_eq!(Principal::parse(&principal.to_string()), principal);
        }
    }

    #[test]
    fn what_is_not_known_keeps_its_text() {
        for text in ["robot:7", "", "user:", "user@NO TENANT:me", ":"] {
            let principal = Principal::parse(text);
            assert_eq!((principal.kind(), principal.to_string().as_str()), (PrincipalKind::Unknown, text));
        }
    }
}
