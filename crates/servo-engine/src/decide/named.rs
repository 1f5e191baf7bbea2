//! Requests about schedules, sensors and notification rules, as far as they are the same: a name belongs to code or to
//! the API, and whoever changes something may expect a version of its state.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::Timestamp;

use super::Decision;
use crate::command::{ChangeNamed, NamedChange};
use crate::definitions::DefinitionProblems;
use crate::event::EventData;
use crate::lifecycle::Origin;
use crate::refusal::Refusal;
use crate::state::{Definition, Named, State};

/// Why nothing can be defined before a project is deployed.
pub(super) const NOTHING_DEPLOYED: &str =
    "no project is deployed in this workspace, so there is nothing to select";

/// Why a function cannot be defined over the API.
pub(super) const BELONGS_TO_CODE: &str =
    "its function belongs into a project: declare it there and deploy it";

/// A kind whose definitions are decided here.
pub(super) trait Decided: Named {
    /// The word for one of them.
    const NAME: &'static str;
    /// The name of the limit on them.
    const QUOTA: &'static str;
    /// How many a workspace may have, with those that were removed.
    const MOST: usize;

    /// The id of one that is defined for the first time.
    fn new_id(state: &State, name: &str, now: Timestamp) -> Self::Id;

    /// Checks a definition that comes over the API.
    fn check(state: &State, definition: &Self::Definition) -> Result<(), String>;

    /// The event that defines one.
    fn defined(
        id: Self::Id,
        origin: Origin,
        state_version: u64,
        definition: Arc<Self::Definition>,
    ) -> EventData;

    /// The event that turns one on, off, or removes it.
    fn turned(id: Self::Id, state_version: u64, turn: Turn) -> EventData;
}

/// A change that is the same for all kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Paused,
    Resumed,
    Removed,
}

/// Decides about a change; `own` about those that only things of its kind know.
pub(super) fn change<T: Decided, X>(
    state: &State,
    command: &ChangeNamed<NamedChange<T::Definition, X>>,
    now: Timestamp,
    own: impl FnOnce(&T, &X) -> Result<Option<EventData>, Refusal>,
) -> Decision {
    match changed(state, command, now, own) {
        Ok(Some(event)) => Decision::change(event, command.caller.principal.clone()),
        Ok(None) => Decision::unchanged(),
        Err(refusal) => Decision::refuse(refusal),
    }
}

fn changed<T: Decided, X>(
    state: &State,
    command: &ChangeNamed<NamedChange<T::Definition, X>>,
    now: Timestamp,
    own: impl FnOnce(&T, &X) -> Result<Option<EventData>, Refusal>,
) -> Result<Option<EventData>, Refusal> {
    if let NamedChange::Create(definition) = &command.change {
        return create::<T>(state, definition, now).map(Some);
    }
    let known: &T = find(state, &command.name)?;
    expect_version(known, command.expected_state_version)?;
    let (id, state_version) = (known.id, known.state_version + 1);
    Ok(match &command.change {
        NamedChange::Pause => (!known.paused).then(|| T::turned(id, state_version, Turn::Paused)),
        NamedChange::Resume => known.paused.then(|| T::turned(id, state_version, Turn::Resumed)),
        NamedChange::Remove => {
            is_changeable(known)?;
            Some(T::turned(id, state_version, Turn::Removed))
        }
        NamedChange::Own(change) => own(known, change)?,
        NamedChange::Create(definition) | NamedChange::Redefine(definition) => {
            is_changeable(known)?;
            check::<T>(state, definition)?;
            let is_same = known.definition == *definition;
            (!is_same).then(|| T::defined(id, Origin::Api, state_version, definition.clone()))
        }
    })
}

fn create<T: Decided>(
    state: &State,
    definition: &Arc<T::Definition>,
    now: Timestamp,
) -> Result<EventData, Refusal> {
    check::<T>(state, definition)?;
    let name = definition.name();
    let known = T::all(state).find(name);
    if let Some(known) = known.filter(|known| known.removed_at.is_none()) {
        return Err(taken::<T>(name, known.origin));
    }
    limit::<T>(T::all(state).len() + 1)?;
    let (id, state_version) = identity(state, name, known.map(|known| &**known), now);
    Ok(T::defined(id, Origin::Api, state_version, definition.clone()))
}

/// The differences between what a project declares of a kind and what is in the state.
pub(super) fn deploy<T: Decided>(
    state: &State,
    definitions: &[Arc<T::Definition>],
    now: Timestamp,
) -> Result<Vec<EventData>, Refusal> {
    let mut declared = BTreeMap::new();
    for definition in definitions {
        let name = definition.name();
        if declared.insert(name, definition).is_some() {
            return Err(bad::<T>(name, "it is declared twice".to_owned()));
        }
    }
    let mut events = Vec::new();
    for (name, definition) in &declared {
        let known = T::all(state).find(name).map(|known| &**known);
        if let Some(live) = known.filter(|known| known.removed_at.is_none()) {
            // Code does not take what somebody has created.
            if live.origin == Origin::Api {
                return Err(taken::<T>(name, live.origin));
            }
            if live.definition == **definition {
                continue;
            }
        }
        let (id, state_version) = identity(state, name, known, now);
        events.push(T::defined(id, Origin::Code, state_version, Arc::clone(definition)));
    }
    limit::<T>(T::all(state).len() + events.len())?;
    let is_gone = |known: &&T| known.origin == Origin::Code && !declared.contains_key(&known.name);
    let removed = T::all(state).iter_live().filter(is_gone);
    events.extend(removed.map(|known| T::turned(known.id, known.state_version + 1, Turn::Removed)));
    Ok(events)
}

/// One that is there, by its name or its id.
pub(super) fn find<'s, T: Named>(state: &'s State, name: &str) -> Result<&'s T, Refusal> {
    T::all(state).live(name).ok_or_else(|| T::unknown(name.to_owned()))
}

/// Refuses a change that expects another version.
pub(super) fn expect_version<T: Decided>(known: &T, expected: Option<u64>) -> Result<(), Refusal> {
    match expected.filter(|expected| *expected != known.state_version) {
        None => Ok(()),
        Some(expected) => {
            let (name, found) = (known.name.to_string(), known.state_version);
            Err(Refusal::StateVersion { what: T::NAME, name, expected, found })
        }
    }
}

/// Refuses a change of a definition that code declares: deploying changes it.
fn is_changeable<T: Decided>(known: &T) -> Result<(), Refusal> {
    match known.origin {
        Origin::Api => Ok(()),
        Origin::Code => Err(Refusal::DefinedByCode { what: T::NAME, name: known.name.to_string() }),
    }
}

fn check<T: Decided>(state: &State, definition: &T::Definition) -> Result<(), Refusal> {
    T::check(state, definition).map_err(|problem| bad::<T>(definition.name(), problem))
}

/// Refuses to define what cannot be.
fn bad<T: Decided>(name: &str, problem: String) -> Refusal {
    Refusal::BadDefinition { what: T::NAME, name: name.to_owned(), problem }
}

fn taken<T: Decided>(name: &str, origin: Origin) -> Refusal {
    Refusal::NameTaken { what: T::NAME, name: name.to_owned(), origin }
}

/// Refuses more than there may be.
fn limit<T: Decided>(used: usize) -> Result<(), Refusal> {
    if used > T::MOST {
        return Err(Refusal::Quota { quota: T::QUOTA, limit: T::MOST as u64, used: used as u64 });
    }
    Ok(())
}

/// The id that a name keeps, and the next version of its state.
fn identity<T: Decided>(state: &State, name: &str, known: Option<&T>, now: Timestamp) -> (T::Id, u64) {
    match known {
        Some(known) => (known.id, known.state_version + 1),
        None => (T::new_id(state, name, now), 1),
    }
}

/// All problems of a definition in one text.
pub(super) fn told(problems: &DefinitionProblems) -> String {
    let texts: Vec<String> =
        problems.iter().map(|found| format!("{}; {}", found.message, found.fix)).collect();
    texts.join("; ")
}
