//! The common part of schedules, sensors and notification rules: a definition under a name, which code or the API
//! declares, which is versioned, paused, resumed and removed, and which may fail.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::DerefMut;
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;
use servo_core::{EventId, Timestamp};

use super::{RestoreError, SharedMap, State};
use crate::fold::At;
use crate::lifecycle::{AutomationStatus, Origin};
use crate::refusal::Refusal;

/// Failures in a row after which the status says so.
const ERROR_AFTER: u32 = 3;

/// A definition that has a name.
pub trait Definition: PartialEq + Serialize {
    /// The name, unique among those of its kind in a workspace.
    fn name(&self) -> &Arc<str>;

    /// Whether it begins to run when it is created.
    fn is_enabled(&self) -> bool;
}

/// The part that schedules, sensors and notification rules have in common. Each of them gives it by dereferencing, so
/// that its fields are read as their own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Defined<I, D> {
    pub id: I,
    pub name: Arc<str>,
    pub origin: Origin,
    pub definition: Arc<D>,
    /// The event that made the definition, or removed it.
    pub definition_version: EventId,
    pub created_at: Timestamp,
    pub defined_at: Timestamp,
    pub removed_at: Option<Timestamp>,
    pub paused: bool,
    /// Counts definitions, pauses, resumptions, and what else a caller may expect to be as it was.
    pub state_version: u64,
    /// Failures in a row.
    pub failures: u32,
    pub last_error: Option<String>,
    /// The event that last changed it.
    pub version: EventId,
}

impl<I, D: Definition> Defined<I, D> {
    /// One that an event defines for the first time.
    pub(crate) fn new(id: I, origin: Origin, definition: &Arc<D>, state_version: u64, at: At) -> Self {
        Self {
            id,
            name: definition.name().clone(),
            origin,
            definition: definition.clone(),
            definition_version: at.id,
            created_at: at.time,
            defined_at: at.time,
            removed_at: None,
            paused: !definition.is_enabled(),
            state_version,
            failures: 0,
            last_error: None,
            version: at.id,
        }
    }

    /// Takes another definition. One that was removed begins as a new one does.
    pub(crate) fn redefine(&mut self, new: Self) {
        if self.removed_at.is_some() {
            self.paused = new.paused;
        }
        self.origin = new.origin;
        self.definition = new.definition;
        self.definition_version = new.definition_version;
        self.defined_at = new.defined_at;
        self.removed_at = None;
        self.state_version = new.state_version;
    }
}

impl<I, D> Defined<I, D> {
    /// Whether it runs, is paused, or fails.
    pub fn status(&self) -> AutomationStatus {
        if self.paused {
            AutomationStatus::Paused
        } else if self.failures >= ERROR_AFTER {
            AutomationStatus::Error
        } else {
            AutomationStatus::Active
        }
    }
}

/// A kind of things that are defined under names: [`Schedule`](super::Schedule), [`Sensor`](super::Sensor) and
/// [`NotificationRule`](super::NotificationRule).
pub trait Named: Clone + DerefMut<Target = Defined<Self::Id, Self::Definition>> {
    /// The id of one, which it keeps for ever.
    type Id: Copy + Ord + FromStr + fmt::Debug + fmt::Display;
    /// The definition of one, as it is declared.
    type Definition: Definition;

    /// All of them in a workspace.
    fn all(state: &State) -> &NamedMap<Self>;

    /// The refusal of a request about one that is not there.
    fn unknown(name: String) -> Refusal;
}

macro_rules! named {
    ($($type:ident: $id:ty, $definition:ty, $map:ident in $all:ident, $unknown:ident;)*) => {
        $(
            impl std::ops::Deref for super::$type {
                type Target = Defined<$id, $definition>;

                fn deref(&self) -> &Self::Target {
                    &self.defined
                }
            }

            impl DerefMut for super::$type {
                fn deref_mut(&mut self) -> &mut Self::Target {
                    &mut self.defined
                }
            }

            impl Named for super::$type {
                type Id = $id;
                type Definition = $definition;

                fn all(state: &State) -> &NamedMap<Self> {
                    &state.$all
                }

                fn unknown(name: String) -> Refusal {
                    Refusal::$unknown { name }
                }
            }

            impl Definition for $definition {
                fn name(&self) -> &Arc<str> {
                    &self.name
                }

                fn is_enabled(&self) -> bool {
                    self.enabled
                }
            }

            impl std::ops::Deref for super::$map {
                type Target = NamedMap<super::$type>;

                fn deref(&self) -> &Self::Target {
                    &self.named
                }
            }

            impl DerefMut for super::$map {
                fn deref_mut(&mut self) -> &mut Self::Target {
                    &mut self.named
                }
            }
        )*
    };
}

named! {
    Schedule: servo_core::ScheduleId, crate::definitions::ScheduleDef, Schedules in schedules, UnknownSchedule;
    Sensor: servo_core::SensorId, crate::definitions::SensorDef, Sensors in sensors, UnknownSensor;
    NotificationRule: servo_core::RuleId, crate::definitions::NotificationDef, Notifications in notifications,
        UnknownNotification;
}

/// All things of a kind, by id and by name. Removed ones stay, so that one that returns keeps its id.
#[derive(Debug, Clone)]
pub struct NamedMap<T: Named> {
    by_id: SharedMap<T::Id, Arc<T>>,
    names: SharedMap<Arc<str>, T::Id>,
}

impl<T: Named> Default for NamedMap<T> {
    fn default() -> Self {
        Self { by_id: SharedMap::default(), names: SharedMap::default() }
    }
}

impl<T: Named> NamedMap<T> {
    /// One by its name or its id, unless it was removed.
    pub fn live(&self, name: &str) -> Option<&T> {
        self.find(name).filter(|found| found.removed_at.is_none()).map(|found| &**found)
    }

    /// The id of one that is or was there, by its name or its id.
    pub fn id(&self, name: &str) -> Option<T::Id> {
        self.find(name).map(|found| found.id)
    }

    /// Those that are there, by name.
    pub fn iter_live(&self) -> impl DoubleEndedIterator<Item = &T> {
        let all = self.names.values().filter_map(|id| self.by_id.get(id));
        all.filter(|found| found.removed_at.is_none()).map(|found| &**found)
    }

    /// How many there are, with those that were removed.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn get(&self, id: T::Id) -> Option<&Arc<T>> {
        self.by_id.get(&id)
    }

    /// One by its name, or by its id. Removed ones are found too.
    pub(crate) fn find(&self, name: &str) -> Option<&Arc<T>> {
        let by_id = || name.parse().ok();
        self.by_id.get(&self.names.get(name).copied().or_else(by_id)?)
    }

    /// All of them, by id. Removed ones are among them.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Arc<T>> {
        self.by_id.values()
    }

    pub(crate) fn insert(&mut self, new: T) {
        self.names.insert(new.name.clone(), new.id);
        self.by_id.insert(new.id, Arc::new(new));
    }

    pub(crate) fn get_mut(&mut self, id: T::Id) -> Option<&mut T> {
        self.by_id.get_mut(&id).map(Arc::make_mut)
    }
}

/// Rows of the table that has the states of a kind, for the rows of the one that has the definitions.
pub(super) struct States<I, R> {
    /// The name of the one with the definitions, and its own.
    tables: [&'static str; 2],
    by_id: BTreeMap<I, R>,
}

impl<I: Ord + fmt::Display, R> States<I, R> {
    pub(super) fn of(tables: [&'static str; 2], rows: Vec<R>, id: impl Fn(&R) -> I) -> Self {
        Self { tables, by_id: rows.into_iter().map(|row| (id(&row), row)).collect() }
    }

    /// The state of a definition.
    pub(super) fn take(&mut self, id: I) -> Result<R, RestoreError> {
        self.by_id.remove(&id).ok_or_else(|| RestoreError {
            table: self.tables[0],
            key: id.to_string(),
            problem: format!("it is not in table {}", self.tables[1]),
        })
    }
}
