//! Commands about the workspace itself.

use std::collections::BTreeMap;

use crate::event::{ExpiredData, NewValue, PauseScope};
use crate::lifecycle::SettingOrigin;
use crate::principal::Caller;
use crate::settings::{SettingValue, Settings};

/// Give settings other values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeSettings {
    /// New values by name.
    pub set: BTreeMap<String, SettingValue>,
    /// Names of settings that get their default again.
    pub unset: Vec<String>,
    /// The way that the request came.
    pub origin: SettingOrigin,
    /// Who asks.
    pub caller: Caller,
}

/// Pause or resume dispatching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Everything, a queue or an asset.
    pub scope: PauseScope,
    /// Whether it is to be paused.
    pub paused: bool,
    /// Why.
    pub reason: String,
    /// Who asks.
    pub caller: Caller,
}

/// The settings that a process was started with. They give way to those that somebody has set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartWith {
    /// Values by name, each within its bounds.
    pub given: BTreeMap<String, NewValue>,
}

impl StartWith {
    /// Adds what `change` changes, as coming from `origin`.
    pub fn adjust(&mut self, origin: SettingOrigin, change: impl FnOnce(&mut Settings)) {
        let mut before = Settings::default();
        for (name, new) in &self.given {
            before.put(name, new.value);
        }
        let mut after = before.clone();
        change(&mut after);
        for (name, number) in after.values().filter(|(name, number)| before.get(name) != Some(*number)) {
            self.given.insert(name, NewValue { value: Some(number), origin });
        }
    }

    /// Those of `settings` that differ from the defaults.
    pub fn differing(settings: &Settings, origin: SettingOrigin) -> Self {
        let mut start = Self::default();
        start.adjust(origin, |defaults| defaults.clone_from(settings));
        start
    }
}

/// A request without the permission for it. Whoever answers requests has found that out; the engine records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenyRequest {
    /// The permission that is missing, such as `runs.trigger`.
    pub permission: &'static str,
    /// The role that has it.
    pub role: &'static str,
    /// The request, as an address.
    pub subject: String,
    /// Who asks.
    pub caller: Caller,
}

/// Remove what is not kept any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplyRetention {
    /// Superseded materializations that the rules do not keep, as the tables show them. Those that are needed by now
    /// stay.
    pub superseded: Vec<ExpiredData>,
    /// Whether there are logs that the rules do not keep.
    pub logs: bool,
    /// Who asks.
    pub caller: Caller,
}
