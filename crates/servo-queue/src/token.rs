//! Task tokens: credentials of a worker for reports about one attempt, with an expiry.

use data_encoding::BASE64URL_NOPAD;
use serde::{Deserialize, Serialize};
use servo_core::{AttemptId, RunId, TaskKey, TenantId, Timestamp, WorkspaceId};

use crate::keyring::{AuthError, Keyring, Purpose};

const WHAT: &str = "task token";
const VERSION: &str = "st1";

/// The claims of a task token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct TaskClaims {
    pub tenant: TenantId,
    pub workspace: WorkspaceId,
    pub run_id: RunId,
    pub task_key: TaskKey,
    pub attempt: u32,
    pub attempt_id: AttemptId,
    pub expires_at: Timestamp,
}

impl Keyring {
    /// Mints a token: `st1.{key id}.{claims}.{signature}`.
    ///
    /// # Panics
    /// Never: claims are plain data.
    pub fn mint(&self, claims: &TaskClaims) -> String {
        let body = serde_json::to_vec(claims).expect("claims are plain data");
        let (key_id, signature) = self.sign(Purpose::TaskTokens, &body);
        format!("{VERSION}.{key_id}.{}.{}", BASE64URL_NOPAD.encode(&body), BASE64URL_NOPAD.encode(&signature))
    }

    /// The claims of a token that this ring signed and that has not expired.
    pub fn verify_token(&self, token: &str, now: Timestamp) -> Result<TaskClaims, AuthError> {
        let malformed = |problem: &str| AuthError::Malformed { what: WHAT, problem: problem.to_owned() };
        let parts: Vec<&str> = token.split('.').collect();
        let [VERSION, key_id, body, signature] = parts[..] else {
            return Err(malformed("expected four parts, the first of them st1"));
        };
        let decode = |part: &str| {
            BASE64URL_NOPAD.decode(part.as_bytes()).map_err(|_| malformed("a part is not base64url"))
        };
        let body = decode(body)?;
        self.check(Purpose::TaskTokens, WHAT, key_id, &body, &decode(signature)?)?;
        let claims: TaskClaims =
            serde_json::from_slice(&body).map_err(|_| malformed("the claims do not fit"))?;
        if now > claims.expires_at {
            return Err(AuthError::Expired { what: WHAT, at: claims.expires_at });
        }
        Ok(claims)
    }
}
