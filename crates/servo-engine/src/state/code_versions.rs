//! Interned code versions: a million partitions made by the same code share one text.

use std::sync::Arc;

use super::shared::{SharedMap, SharedVec};

/// Stands for a code version, or for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Symbol(u32);

impl Symbol {
    /// Stands for no version.
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn number(self) -> u32 {
        self.0
    }

    /// The symbol that has a number.
    pub(crate) fn from_number(number: u32) -> Self {
        Self(number)
    }
}

/// Code versions by number, in the order in which they were first seen. Snapshots share them: every asset has its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct CodeVersions {
    numbers: SharedMap<Arc<str>, u32>,
    texts: SharedVec<Arc<str>>,
}

impl CodeVersions {
    /// The symbol of a version, which is kept if it is new.
    pub(crate) fn intern(&mut self, version: Option<&Arc<str>>) -> Symbol {
        let Some(version) = version else { return Symbol::default() };
        Symbol(match self.numbers.get(version) {
            Some(number) => *number,
            None => self.add(version.clone()),
        })
    }

    /// The same for a text that is not shared yet.
    pub(crate) fn intern_str(&mut self, version: Option<&str>) -> Symbol {
        let Some(version) = version else { return Symbol::default() };
        Symbol(match self.numbers.get(version) {
            Some(number) => *number,
            None => self.add(version.into()),
        })
    }

    /// The version that a symbol stands for.
    pub(crate) fn get(&self, symbol: Symbol) -> Option<&Arc<str>> {
        self.texts.get((symbol.0 as usize).checked_sub(1)?)
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// All of them, by number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.texts.iter()
    }

    fn add(&mut self, version: Arc<str>) -> u32 {
        self.texts.push(version.clone());
        let number = u32::try_from(self.texts.len()).expect("fewer than four billion versions of code");
        self.numbers.insert(version, number);
        number
    }
}
