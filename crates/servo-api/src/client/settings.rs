//! Settings of the workspace.

use reqwest::Method;

use super::{Client, ClientError};
use crate::views::{Settings, SettingsBody, SettingsChanged};

impl Client {
    /// Every setting.
    pub async fn settings(&self) -> Result<Settings, ClientError> {
        self.get(&["settings"], &[]).await
    }

    /// Changes settings.
    pub async fn change_settings(&self, body: &SettingsBody) -> Result<SettingsChanged, ClientError> {
        self.change_by(Method::PATCH, &["settings"], body).await
    }
}
