//! Definitions of schedules, sensors and notification rules: each change of one is folded once, by its version.

use std::sync::Arc;

use super::definitions::keep_version;
use super::{Applied, At, Ignored};
use crate::lifecycle::Origin;
use crate::rows::{DefinitionChange, DefinitionKind};
use crate::state::{Defined, Named, State};

/// A kind whose definitions are folded here.
pub(super) trait Folded: Named {
    /// The word for it among the versions of definitions.
    const KIND: DefinitionKind;
    /// Why an event about one that is not there changes nothing.
    const UNKNOWN: Ignored;

    /// Adds one with its indexes.
    fn add(state: &mut State, new: Self);

    /// Changes one through its indexes.
    fn change(state: &mut State, id: Self::Id, at: At, change: impl FnOnce(&mut Self));
}

/// The definition that another one takes the place of.
pub(super) struct Before<D> {
    pub(super) definition: Arc<D>,
    pub(super) was_removed: bool,
}

/// One is new, or has another definition: `redefined` does what follows from that for its kind.
pub(super) fn defined<T: Folded>(
    state: &mut State,
    at: At,
    new: Defined<T::Id, T::Definition>,
    create: impl FnOnce(Defined<T::Id, T::Definition>) -> T,
    redefined: impl FnOnce(&mut T, &Before<T::Definition>),
) -> Applied {
    let (origin, name, definition) = (new.origin, new.name.clone(), new.definition.clone());
    let mut change = DefinitionChange::Added;
    match T::all(state).get(new.id) {
        Some(known) if new.state_version <= known.state_version => return Applied::No(Ignored::Duplicate),
        Some(known) => {
            let before =
                Before { definition: known.definition.clone(), was_removed: known.removed_at.is_some() };
            if !before.was_removed && known.origin == Origin::Code {
                change = DefinitionChange::Changed;
            }
            T::change(state, new.id, at, |subject| {
                subject.redefine(new);
                redefined(subject, &before);
            });
        }
        None => T::add(state, create(new)),
    }
    keep::<T>(state, at, origin, &name, change, Some(&definition));
    Applied::Yes
}

/// One has changed in another way than its definition.
pub(super) fn changed<T: Folded>(
    state: &mut State,
    at: At,
    id: T::Id,
    state_version: u64,
    apply: impl FnOnce(&mut T),
) -> Applied {
    let Some(known) = T::all(state).get(id) else { return Applied::No(T::UNKNOWN) };
    if state_version <= known.state_version {
        return Applied::No(Ignored::Duplicate);
    }
    T::change(state, id, at, |subject| {
        subject.state_version = state_version;
        apply(subject);
    });
    Applied::Yes
}

/// One is no longer declared, or was deleted: `apply` does what follows from that for its kind.
pub(super) fn removed<T: Folded>(
    state: &mut State,
    at: At,
    id: T::Id,
    state_version: u64,
    apply: impl FnOnce(&mut T),
) -> Applied {
    let applied = changed(state, at, id, state_version, |subject: &mut T| {
        subject.removed_at = Some(at.time);
        subject.definition_version = at.id;
        apply(subject);
    });
    if let (Applied::Yes, Some(known)) = (applied, T::all(state).get(id)) {
        let (origin, name) = (known.origin, known.name.clone());
        keep::<T>(state, at, origin, &name, DefinitionChange::Removed, None);
    }
    applied
}

/// Keeps definitions that code declares, so that a rollback can return to them.
fn keep<T: Folded>(
    state: &mut State,
    at: At,
    origin: Origin,
    name: &str,
    change: DefinitionChange,
    definition: Option<&Arc<T::Definition>>,
) {
    if origin == Origin::Code {
        keep_version(state, at, T::KIND, name, change, definition.map(|definition| &**definition));
    }
}
