//! Links that let a browser in.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A link that lets one browser in, once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoginLink {
    /// Where it is on the server, with a token: `/login?token=…`.
    pub path: String,
}
