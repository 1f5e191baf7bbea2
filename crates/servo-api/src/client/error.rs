//! Errors of the client.

use std::sync::Arc;

use super::transport::TransportError;
use crate::problem::{Code, Problem};

/// Reasons why there is no response.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// The address is not valid.
    #[error("{text:?} is not the address of a server: {reason}")]
    Address {
        /// The given text.
        text: String,
        /// The reason why it cannot be used.
        reason: String,
    },
    /// The server cannot be reached.
    #[error("{server} cannot be reached: {reason}")]
    Unreachable {
        /// The server.
        server: Arc<str>,
        /// Why.
        reason: String,
    },
    /// The server refused.
    #[error(transparent)]
    Problem(Box<Problem>),
    /// The response is malformed.
    #[error("{server} gave an answer that is not understood: {reason}; is it a server of another version?")]
    Malformed {
        /// The server.
        server: Arc<str>,
        /// The reason why it cannot be used.
        reason: String,
    },
    /// This machine gives no random numbers.
    #[error("there are no random numbers: {0}")]
    Random(String),
}

impl ClientError {
    /// The error code of the server, if it gave one.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Problem(problem) => Some(problem.code),
            Self::Address { .. } | Self::Unreachable { .. } | Self::Malformed { .. } | Self::Random(_) => {
                None
            }
        }
    }

    /// No response came, for this reason.
    pub(crate) fn unreachable(server: &Arc<str>, error: impl Into<TransportError>) -> Self {
        Self::Unreachable { server: server.clone(), reason: error.into().to_string() }
    }
}
