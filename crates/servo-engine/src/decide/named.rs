//! What schedules, sensors and notification rules have in common: a name that belongs to code or to the API, and a state
//! version that whoever changes them may expect.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::definitions::DefinitionProblems;
use crate::lifecycle::Origin;
use crate::refusal::Refusal;
use crate::state::{NotificationRule, Schedule, Sensor};

/// Why nothing can be defined before a project is deployed.
pub(super) const NOTHING_DEPLOYED: &str =
    "no project is deployed in this workspace, so there is nothing to select";

/// Why a function cannot be defined over the API.
pub(super) const BELONGS_TO_CODE: &str =
    "its function belongs into a project: declare it there and deploy it";

/// A kind of things that have names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    /// The word for one of them.
    pub(super) name: &'static str,
    /// The name of the limit on them.
    pub(super) quota: &'static str,
    /// How many a workspace may have, with those that were removed.
    pub(super) most: usize,
}

/// Something that has a name.
pub(super) trait Named {
    fn name(&self) -> &str;
    fn origin(&self) -> Origin;
    fn is_removed(&self) -> bool;
    fn state_version(&self) -> u64;
}

macro_rules! named {
    ($($type:ty),*) => {$(
        impl Named for $type {
            fn name(&self) -> &str {
                &self.name
            }

            fn origin(&self) -> Origin {
                self.origin
            }

            fn is_removed(&self) -> bool {
                self.removed_at.is_some()
            }

            fn state_version(&self) -> u64 {
                self.state_version
            }
        }
    )*};
}

named!(Schedule, Sensor, NotificationRule);

impl Kind {
    /// Refuses to define what cannot be.
    pub(super) fn bad(self, name: &str, problem: String) -> Refusal {
        Refusal::BadDefinition { what: self.name, name: name.to_owned(), problem }
    }

    /// Refuses a change that expects another version.
    pub(super) fn expect_version(self, known: &impl Named, expected: Option<u64>) -> Result<(), Refusal> {
        match expected.filter(|expected| *expected != known.state_version()) {
            None => Ok(()),
            Some(expected) => {
                let (name, found) = (known.name().to_owned(), known.state_version());
                Err(Refusal::StateVersion { what: self.name, name, expected, found })
            }
        }
    }

    /// Refuses a change of a definition that code declares: deploying changes it.
    pub(super) fn is_changeable(self, known: &impl Named) -> Result<(), Refusal> {
        match known.origin() {
            Origin::Api => Ok(()),
            Origin::Code => Err(Refusal::DefinedByCode { what: self.name, name: known.name().to_owned() }),
        }
    }

    /// Refuses to create what is there, or one too many.
    pub(super) fn may_create(
        self,
        name: &str,
        known: Option<&impl Named>,
        count: usize,
    ) -> Result<(), Refusal> {
        if let Some(known) = known.filter(|known| !known.is_removed()) {
            return Err(self.taken(name, known.origin()));
        }
        self.limit(count + 1)
    }

    /// Refuses to let code declare what somebody has created.
    pub(super) fn may_deploy(self, name: &str, known: Option<&impl Named>) -> Result<(), Refusal> {
        match known.filter(|known| !known.is_removed() && known.origin() == Origin::Api) {
            Some(known) => Err(self.taken(name, known.origin())),
            None => Ok(()),
        }
    }

    /// Refuses more than there may be.
    pub(super) fn limit(self, used: usize) -> Result<(), Refusal> {
        if used > self.most {
            return Err(Refusal::Quota { quota: self.quota, limit: self.most as u64, used: used as u64 });
        }
        Ok(())
    }

    /// The declarations of a project by name; refused if one is declared twice.
    pub(super) fn declared<'a, D>(
        self,
        definitions: impl Iterator<Item = (&'a str, &'a Arc<D>)>,
    ) -> Result<BTreeMap<&'a str, &'a Arc<D>>, Refusal> {
        let mut declared = BTreeMap::new();
        for (name, definition) in definitions {
            if declared.insert(name, definition).is_some() {
                return Err(self.bad(name, "it is declared twice".to_owned()));
            }
        }
        Ok(declared)
    }

    fn taken(self, name: &str, origin: Origin) -> Refusal {
        Refusal::NameTaken { what: self.name, name: name.to_owned(), origin }
    }
}

/// All problems of a definition in one text.
pub(super) fn told(problems: &DefinitionProblems) -> String {
    let texts: Vec<String> =
        problems.iter().map(|found| format!("{}; {}", found.message, found.fix)).collect();
    texts.join("; ")
}
