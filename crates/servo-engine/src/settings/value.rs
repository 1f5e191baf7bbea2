//! Values of settings: numbers in memory and in the log, `90s` or `100` for people.

use std::fmt;

use serde::{Deserialize, Serialize};
use servo_core::Millis;

/// How the number of a setting is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingUnit {
    /// A whole number.
    Count,
    /// Milliseconds; people write `30s`, `5m` or `7d`.
    Duration,
    /// A price in billionths of a US dollar, a whole number.
    NanoUsd,
}

/// A value as somebody wrote it: a number, or a text with a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SettingValue {
    /// A whole number. For lengths of time, milliseconds.
    Number(u64),
    /// A text, such as `90s` or `100`.
    Text(String),
}

impl fmt::Display for SettingValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingValue::Number(number) => write!(f, "{number}"),
            SettingValue::Text(text) => f.write_str(text),
        }
    }
}

impl SettingUnit {
    /// The number that a value means.
    pub(super) fn read(self, value: &SettingValue) -> Result<u64, String> {
        match (self, value) {
            (
                SettingUnit::Count | SettingUnit::Duration | SettingUnit::NanoUsd,
                SettingValue::Number(number),
            ) => Ok(*number),
            (SettingUnit::Count, SettingValue::Text(text)) => {
                text.parse().map_err(|_| "it is a whole number, such as 100".to_owned())
            }
            (SettingUnit::NanoUsd, SettingValue::Text(text)) => text.parse().map_err(|_| {
                "it is a whole number of billionths of a US dollar: 24000 is $0.000024".to_owned()
            }),
            (SettingUnit::Duration, SettingValue::Text(text)) => {
                text.parse::<Millis>().map(Millis::get).map_err(|error| error.problem)
            }
        }
    }

    /// The number as people write it.
    pub fn show(self, number: u64) -> String {
        match self {
            SettingUnit::Count | SettingUnit::NanoUsd => number.to_string(),
            SettingUnit::Duration => Millis::new(number).to_string(),
        }
    }
}

/// Why a setting cannot have a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum SettingError {
    #[error("there is no setting {name:?}; `servo config show` lists all of them")]
    Unknown { name: String },
    #[error("setting {name} cannot be {value:?}: {problem}")]
    Unreadable { name: String, value: String, problem: String },
    #[error("setting {name} cannot be {value}; it is from {least} to {most}")]
    OutOfBounds { name: String, value: String, least: String, most: String },
    #[error("setting {name} is to be set and unset; ask for one of the two")]
    SetAndUnset { name: String },
}
