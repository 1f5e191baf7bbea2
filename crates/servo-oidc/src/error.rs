//! Errors of providers and tokens. None of them repeats a secret or a token.

/// A configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("[oidc] {field}: {problem}")]
pub struct ConfigError {
    /// The field.
    pub field: &'static str,
    /// Its problem, and what to do.
    pub problem: String,
}

/// Reasons why somebody is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The token is not good.
    #[error("the token of the identity provider is not good: {0}")]
    Token(String),
    /// The provider refused.
    #[error("the identity provider refused: {0}")]
    Refused(String),
    /// The provider cannot be reached, or says what is not understood.
    #[error("the identity provider {issuer} is of no use now: {reason}")]
    Unavailable {
        /// The issuer.
        issuer: String,
        /// Why.
        reason: String,
    },
    /// The provider lacks something.
    #[error("the identity provider {issuer} has no {missing}")]
    Unsupported {
        /// The issuer.
        issuer: String,
        /// The missing part.
        missing: &'static str,
    },
}

impl Error {
    pub(crate) fn token(reason: impl Into<String>) -> Self {
        Self::Token(reason.into())
    }

    /// Whether asking again may help.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}
