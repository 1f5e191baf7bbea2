//! Settings of a workspace: figures that decide, so every node must have the same ones.
//!
//! The log holds every value that was ever given as a `SettingsChanged` event, and a replay folds under the settings
//! that were in force at each point (ADR-095). What a process is started with becomes such an event.

mod declared;
mod value;

pub use declared::Settings;
pub use value::{SettingError, SettingUnit, SettingValue};

use std::collections::BTreeMap;

/// Declaration of one setting, or of a family of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Its name, as in `servo.toml`. That of a family ends with a dot: `pool.` stands for `pool.warehouse` and others.
    pub name: &'static str,
    /// One sentence about it.
    pub about: &'static str,
    /// How its number is written.
    pub unit: SettingUnit,
    /// The smallest value that can be set.
    pub least: u64,
    /// The largest value that can be set.
    pub most: u64,
}

/// Longest name of a member of a family.
const MAX_MEMBER: usize = 128;

impl Setting {
    /// Every setting, in the order in which they are declared; families last.
    pub fn all() -> &'static [Setting] {
        Settings::DECLARED
    }

    /// The declaration of the setting with this name.
    pub fn find(name: &str) -> Result<&'static Setting, SettingError> {
        let is_member = |family: &str| {
            let member = name.strip_prefix(family).filter(|_| family.ends_with('.'));
            member.is_some_and(|it| (1..=MAX_MEMBER).contains(&it.len()) && it.chars().all(is_plain))
        };
        let found = Self::all().iter().find(|it| it.name == name && !it.is_family() || is_member(it.name));
        found.ok_or_else(|| SettingError::Unknown { name: name.chars().take(MAX_MEMBER).collect() })
    }

    /// Whether it stands for all names that begin with its own.
    pub fn is_family(&self) -> bool {
        self.name.ends_with('.')
    }

    /// Its value without any change; members of families have none, which is no limit.
    pub fn default_value(&self) -> Option<u64> {
        Settings::default().get(self.name)
    }

    /// The number that a value means, if it lies within the bounds.
    pub fn read(&self, name: &str, value: &SettingValue) -> Result<u64, SettingError> {
        let number = self.unit.read(value).map_err(|problem| SettingError::Unreadable {
            name: name.to_owned(),
            value: value.to_string(),
            problem,
        })?;
        if (self.least..=self.most).contains(&number) {
            return Ok(number);
        }
        Err(SettingError::OutOfBounds {
            name: name.to_owned(),
            value: self.unit.show(number),
            least: self.unit.show(self.least),
            most: self.unit.show(self.most),
        })
    }
}

fn is_plain(c: char) -> bool {
    !c.is_control() && !c.is_whitespace()
}

/// Values by name, each readable and within its bounds.
pub fn read_settings(values: &BTreeMap<String, SettingValue>) -> Result<BTreeMap<String, u64>, SettingError> {
    let read =
        |(name, value): (&String, &SettingValue)| Ok((name.clone(), Setting::find(name)?.read(name, value)?));
    values.iter().map(read).collect()
}
