//! The audit.

use super::{Client, ClientError, ListOptions};
use crate::pages::Page;
use crate::views::Act;

impl Client {
    /// Changes that were asked for, the newest first.
    pub async fn audit(&self, options: &ListOptions) -> Result<Page<Act>, ClientError> {
        self.get(&["audit"], &options.query("outcome")).await
    }

    /// The same of the server itself: keys, sessions, tenants, workspaces, quotas.
    pub async fn server_audit(&self, options: &ListOptions) -> Result<Page<Act>, ClientError> {
        self.get(&["admin", "audit"], &options.query("outcome")).await
    }
}
