//! The settings in force, and who gave them their values.

use std::collections::BTreeMap;

use servo_core::{EventId, Timestamp};

use crate::event::SettingsChanged;
use crate::principal::Principal;
use crate::rows::SettingRow;
use crate::settings::Settings;

/// Settings that differ from their defaults, or did once, with the values that follow.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangedSettings {
    rows: BTreeMap<String, SettingRow>,
}

impl ChangedSettings {
    pub(crate) fn restore(rows: Vec<SettingRow>) -> Self {
        Self { rows: rows.into_iter().map(|row| (row.name.clone(), row)).collect() }
    }

    /// The settings in force.
    pub(crate) fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        for row in self.rows.values() {
            settings.put(&row.name, row.value);
        }
        settings
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &SettingRow> {
        self.rows.values()
    }

    pub(crate) fn row(&self, name: &str) -> Option<&SettingRow> {
        self.rows.get(name)
    }

    /// Number of the last change; 0 before the first.
    pub(crate) fn number(&self) -> u64 {
        self.rows.values().map(|row| row.change_number).max().unwrap_or_default()
    }

    pub(crate) fn change(&mut self, by: &Principal, at: Timestamp, id: EventId, change: &SettingsChanged) {
        for (name, new) in &change.changes {
            self.rows.insert(
                name.clone(),
                SettingRow {
                    name: name.clone(),
                    value: new.value,
                    origin: new.origin,
                    changed_by: by.clone(),
                    changed_at: at,
                    change_number: change.number,
                    row_version: id,
                },
            );
        }
    }
}
