//! Settings of a workspace.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use servo_core::Timestamp;
use servo_engine::rows::SettingRow;
use servo_engine::{SettingOrigin, SettingValue, State};
use utoipa::ToSchema;

use super::names::SettingOriginName;
use super::requests::Accepted;

/// All settings, in the order in which they are documented.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[allow(missing_docs)]
pub struct Settings {
    pub items: Vec<Setting>,
}

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Setting {
    /// Its name. One that ends with a dot stands for a family of settings, none of which has a value yet.
    pub name: String,
    /// The value in force, lengths of time in milliseconds; absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// The same as people write it: `100`, `1h`, `unlimited`.
    pub text: String,
    /// The default, as people write it.
    pub default: String,
    /// Where the value comes from.
    #[schema(value_type = SettingOriginName)]
    pub origin: SettingOrigin,
    /// The author of the last change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<String>,
    /// When that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub changed_at: Option<Timestamp>,
    /// One sentence about it.
    pub about: String,
    /// The smallest value that can be set, as people write it.
    pub least: String,
    /// The largest one.
    pub most: String,
}

/// New values of settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SettingsBody {
    /// New values by name: numbers, or texts such as `90s`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, String>)]
    pub set: BTreeMap<String, SettingValue>,
    /// Settings that get their default again, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unset: Vec<String>,
    /// Whether `servo config` asks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub from_cli: bool,
    /// Idempotency key, if the header has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_request_id: Option<String>,
}

/// Settings after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettingsChanged {
    /// The settings that were asked about, as they are now.
    pub items: Vec<Setting>,
    /// The event; absent if everything was like that before.
    #[serde(flatten)]
    pub accepted: Accepted,
}

impl Setting {
    /// Every setting of a workspace: those that are declared, and members of families that were ever set.
    pub(crate) fn all(state: &State) -> Vec<Self> {
        let declared = servo_engine::Setting::all();
        let rows: BTreeMap<&str, &SettingRow> =
            state.setting_rows().map(|row| (row.name.as_str(), row)).collect();
        let mut items = Vec::new();
        for setting in declared {
            if !setting.is_family() {
                items.push(Self::of(setting, setting.name, rows.get(setting.name).copied(), state));
                continue;
            }
            let members = rows.iter().filter(|(name, _)| name.starts_with(setting.name));
            let before = items.len();
            items.extend(members.map(|(name, row)| Self::of(setting, name, Some(row), state)));
            if items.len() == before {
                items.push(Self::of(setting, setting.name, None, state));
            }
        }
        items
    }

    fn of(setting: &servo_engine::Setting, name: &str, row: Option<&SettingRow>, state: &State) -> Self {
        let shown =
            |value: Option<u64>| value.map_or_else(|| "unlimited".to_owned(), |it| setting.unit.show(it));
        let value = state.settings().get(name);
        Self {
            name: name.to_owned(),
            value,
            text: shown(value),
            default: shown(setting.default_value()),
            origin: row.map_or(SettingOrigin::Default, |row| row.origin),
            changed_by: row.map(|row| row.changed_by.to_string()),
            changed_at: row.map(|row| row.changed_at),
            about: setting.about.to_owned(),
            least: setting.unit.show(setting.least),
            most: setting.unit.show(setting.most),
        }
    }
}
