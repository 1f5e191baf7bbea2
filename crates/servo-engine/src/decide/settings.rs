//! Requests to change settings, and what a process is started with: only what makes a difference goes into the log
//! (ADR-095).

use std::collections::BTreeMap;

use super::Decision;
use crate::command::{ChangeSettings, StartWith};
use crate::event::{EventData, NewValue, SettingsChanged};
use crate::lifecycle::SettingOrigin;
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::settings::{Setting, SettingError, read_settings};
use crate::state::State;

pub(super) fn change(state: &State, command: &ChangeSettings) -> Decision {
    match difference(state, command) {
        Ok(changes) => changed(state, changes, command.caller.principal.clone()),
        Err(error) => Decision::refuse(Refusal::BadSetting(error)),
    }
}

fn difference(state: &State, command: &ChangeSettings) -> Result<BTreeMap<String, NewValue>, SettingError> {
    let mut changes: BTreeMap<String, NewValue> = BTreeMap::new();
    for (name, number) in read_settings(&command.set)? {
        changes.insert(name, NewValue { value: Some(number), origin: command.origin });
    }
    for name in &command.unset {
        Setting::find(name)?;
        if changes.contains_key(name) {
            return Err(SettingError::SetAndUnset { name: name.clone() });
        }
        changes.insert(name.clone(), NewValue { value: None, origin: SettingOrigin::Default });
    }
    changes.retain(|name, new| is_news(state, name, *new));
    Ok(changes)
}

/// Keeps settings that somebody has set; all others take this process's start-up values, if it has any.
pub(super) fn start_with(state: &State, command: &StartWith) -> Decision {
    if command.given.is_empty() {
        return Decision::unchanged();
    }
    let by_hand = |name: &str| {
        let row = state.changed_settings.row(name);
        row.is_some_and(|row| matches!(row.origin, SettingOrigin::Api | SettingOrigin::Cli))
    };
    let mut changes: BTreeMap<String, NewValue> = command.given.clone();
    for row in state.changed_settings.rows() {
        changes.entry(row.name.clone()).or_insert(NewValue { value: None, origin: SettingOrigin::Default });
    }
    changes.retain(|name, new| !by_hand(name) && is_news(state, name, *new));
    changed(state, changes, Principal::system())
}

/// Whether the value or its origin differs. A value that is the default without anybody having said so is none.
fn is_news(state: &State, name: &str, new: NewValue) -> bool {
    match state.changed_settings.row(name) {
        Some(row) => row.value != new.value || row.origin != new.origin,
        None => new.value.is_some() && new.value != state.settings().get(name),
    }
}

fn changed(state: &State, changes: BTreeMap<String, NewValue>, principal: Principal) -> Decision {
    if changes.is_empty() {
        return Decision::unchanged();
    }
    let number = state.changed_settings.number() + 1;
    Decision::change(EventData::SettingsChanged(SettingsChanged { number, changes }), principal)
}
