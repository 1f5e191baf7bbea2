//! Why there is no answer from a server.

use std::error::Error;
use std::sync::Arc;

use crate::problem::{Code, Problem};

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// That is no address.
    #[error("{text:?} is not the address of a server: {reason}")]
    Address {
        /// What was given.
        text: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Nobody answers there.
    #[error("{server} cannot be reached: {reason}")]
    Unreachable {
        /// The server.
        server: Arc<str>,
        /// Why.
        reason: String,
    },
    /// The server says no.
    #[error(transparent)]
    Problem(Box<Problem>),
    /// The server says something else than it should.
    #[error("{server} gave an answer that is not understood: {reason}; is it a server of another version?")]
    Malformed {
        /// The server.
        server: Arc<str>,
        /// What is wrong with it.
        reason: String,
    },
    /// This machine gives no random numbers.
    #[error("there are no random numbers: {0}")]
    Random(String),
}

impl ClientError {
    /// What the server says is wrong, if it says so.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Problem(problem) => Some(problem.code),
            Self::Address { .. } | Self::Unreachable { .. } | Self::Malformed { .. } | Self::Random(_) => {
                None
            }
        }
    }

    /// The reason at the bottom: what is above it repeats the address.
    pub(super) fn unreachable(server: &Arc<str>, error: &reqwest::Error) -> Self {
        let mut bottom: &dyn Error = error;
        while let Some(below) = bottom.source() {
            bottom = below;
        }
        Self::Unreachable { server: server.clone(), reason: bottom.to_string() }
    }
}
