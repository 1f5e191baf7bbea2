//! Changes of settings (ADR-095).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Payload;
use crate::audit::Act;
use crate::lifecycle::SettingOrigin;

/// Settings got other values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsChanged {
    /// Number of this change, from 1.
    pub number: u64,
    /// The settings that changed, by name.
    pub changes: BTreeMap<String, NewValue>,
}

/// The new value of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewValue {
    /// The number; none for the default. Lengths of time are in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// Where the value comes from.
    pub origin: SettingOrigin,
}

impl Payload for SettingsChanged {
    /// `settings:{number}`: a setting may be changed there and back.
    fn idempotency_key(&self) -> String {
        format!("settings:{}", self.number)
    }

    fn act(&self) -> Option<Act> {
        let names: Vec<&str> = self.changes.keys().map(String::as_str).collect();
        Some(Act::new(Act::SETTINGS, "settings", names.join(", ")))
    }
}
