//! Which partitions of each selected asset are meant by the keys and ranges of a request.
//!
//! The request speaks of the assets that the selection names. What `+` adds takes the partitions that they need, or
//! that need them, by the mappings between them. If nothing that is named has partitions, the request speaks of all.
//!
//! A text is read by every kind of partitions that is selected. Where several kinds of time read it, the one with the
//! shortest time decides, and the others take their partitions that lie inside that time, or if none do, those around it: a
//! day of a monthly asset is its month, and a range of days is the months that are whole in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::partitions::{Moment, PartitionSet};
use servo_core::{Partitions, Timestamp};

use super::error::PlanningError;
use super::{PartitionChoice, Role, follow};
use crate::definitions::Definitions;

/// How many assets an error names.
const MAX_NAMED: usize = 5;

/// Why these partitions of an asset are planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// It has no partitions.
    Whole,
    /// These were asked for.
    Asked(String),
    /// These lie inside the asked time.
    Inside(String),
    /// These are around the asked time.
    Around(String),
    /// The newest was asked for.
    Latest,
    /// Mappings name them.
    Mapped,
}

impl Chosen {
    /// Both reasons together.
    fn or(self, other: Self) -> Self {
        match (self.text(), other.text()) {
            (first, second) if first == second => self,
            (first, second) => Self::Asked(format!("{first} or {second}")),
        }
    }

    fn text(&self) -> &str {
        match self {
            Self::Asked(text) | Self::Inside(text) | Self::Around(text) => text,
            Self::Latest => "latest",
            Self::Whole | Self::Mapped => "",
        }
    }
}

/// Assets that have the same partitions, and what was chosen of them.
struct Kind {
    partitions: Arc<Partitions>,
    chosen: Option<(Chosen, PartitionSet)>,
    /// Why the last text did not fit.
    refused: Option<String>,
}

impl Kind {
    fn add(&mut self, chosen: Chosen, set: PartitionSet) {
        if set.is_empty() {
            return;
        }
        self.chosen = Some(match self.chosen.take() {
            Some((first, known)) => (first.or(chosen), known.union(&set)),
            None => (chosen, set),
        });
    }
}

/// What is chosen of each asset, in order; none of it for an asset of which nothing is needed.
pub(super) fn choose(
    definitions: &Definitions,
    assets: &[(u32, Role)],
    choice: &PartitionChoice,
    at: Moment<'_>,
) -> Result<Vec<(Chosen, PartitionSet)>, PlanningError> {
    let has_partitions = |position: u32| definitions.asset(position).partitions.is_some();
    let is_told = assets.iter().any(|(position, role)| *role == Role::Named && has_partitions(*position));
    let is_named = |role: Role| role == Role::Named || !is_told;
    let named: Vec<u32> =
        assets.iter().filter(|(_, role)| is_named(*role)).map(|(position, _)| *position).collect();
    let chosen = named.iter().copied().zip(asked(definitions, &named, choice, at)?);
    let mut chosen: BTreeMap<u32, (Chosen, PartitionSet)> = chosen.collect();
    if is_told {
        follow::follow(definitions, assets, &mut chosen, at);
    }
    let nothing = || (Chosen::Mapped, PartitionSet::EMPTY);
    Ok(assets.iter().map(|(position, _)| chosen.remove(position).unwrap_or_else(nothing)).collect())
}

/// What the request asks of each of these assets.
fn asked(
    definitions: &Definitions,
    assets: &[u32],
    choice: &PartitionChoice,
    at: Moment<'_>,
) -> Result<Vec<(Chosen, PartitionSet)>, PlanningError> {
    let mut kinds: Vec<Kind> = Vec::new();
    let mut kind_of: Vec<Option<usize>> = Vec::with_capacity(assets.len());
    for position in assets {
        let kind = definitions.asset(*position).partitions.as_ref().map(|partitions| {
            kinds.iter().position(|kind| Arc::ptr_eq(&kind.partitions, partitions)).unwrap_or_else(|| {
                kinds.push(Kind { partitions: Arc::clone(partitions), chosen: None, refused: None });
                kinds.len() - 1
            })
        });
        kind_of.push(kind);
    }
    let asks = choice.latest || !choice.keys.is_empty() || !choice.ranges.is_empty();
    if asks && kinds.is_empty() {
        return Err(PlanningError::NoPartitions);
    }
    let texts =
        choice.keys.iter().map(|text| (text, false)).chain(choice.ranges.iter().map(|text| (text, true)));
    for (text, is_range) in texts {
        read(text, is_range, &mut kinds, at).map_err(|reasons| PlanningError::NoSuchPartition {
            text: text.clone(),
            reasons: name(definitions, assets, &kind_of, reasons),
        })?;
    }
    if choice.latest {
        for kind in &mut kinds {
            let set = kind.partitions.latest(at);
            // What has no partitions yet has nothing to bring up to date.
            kind.chosen.get_or_insert((Chosen::Latest, PartitionSet::EMPTY));
            kind.add(Chosen::Latest, set);
        }
    }
    let lacking = |kind: &Kind| {
        let why = || kind.refused.clone().unwrap_or_else(|| example(&kind.partitions, at));
        kind.chosen.is_none().then(why)
    };
    let lacking: Vec<Option<String>> = kinds.iter().map(lacking).collect();
    if lacking.iter().any(Option::is_some) {
        let mut named = name_all(definitions, assets, &kind_of, &lacking);
        let more = named.len().saturating_sub(MAX_NAMED);
        named.truncate(MAX_NAMED);
        return Err(PlanningError::NeedsPartition { assets: named, more });
    }
    let chosen = kind_of.into_iter().map(|kind| match kind.and_then(|kind| kinds[kind].chosen.clone()) {
        Some(chosen) => chosen,
        None => (Chosen::Whole, PartitionSet::unpartitioned()),
    });
    Ok(chosen.collect())
}

/// Adds what a text means to every kind that it fits; if it fits none, why it does not.
fn read(text: &str, is_range: bool, kinds: &mut [Kind], at: Moment<'_>) -> Result<(), Vec<String>> {
    let sets: Vec<Result<PartitionSet, String>> = kinds
        .iter()
        .map(|kind| {
            let set = if is_range {
                kind.partitions.parse_range(text, at)
            } else {
                kind.partitions.parse_key(text).and_then(|key| key.set(at))
            };
            set.map_err(|error| error.to_string())
        })
        .collect();
    if sets.iter().all(Result::is_err) {
        return Err(sets.into_iter().filter_map(Result::err).collect());
    }
    let times: Vec<Option<(Timestamp, Timestamp)>> = kinds
        .iter()
        .zip(&sets)
        .map(|(kind, set)| set.as_ref().ok().and_then(|set| kind.partitions.time_of(set)))
        .collect();
    let shortest = times.iter().flatten().min_by_key(|(start, end)| (end.since(*start), *start)).copied();
    for ((kind, set), time) in kinds.iter_mut().zip(sets).zip(times) {
        match (set, shortest) {
            (Ok(set), Some(shortest)) if time.is_none_or(|time| time == shortest) => {
                kind.add(Chosen::Asked(text.to_owned()), set)
            }
            (Ok(set), None) => kind.add(Chosen::Asked(text.to_owned()), set),
            (set, Some((start, end))) => {
                let inside = kind.partitions.within(start, end, at).unwrap_or_default();
                if inside.is_empty() {
                    let around = kind.partitions.around(start, end, at).unwrap_or_default();
                    if around.is_empty() {
                        kind.refused = set.err();
                    }
                    kind.add(Chosen::Around(text.to_owned()), around);
                } else {
                    kind.add(Chosen::Inside(text.to_owned()), inside);
                }
            }
            (Err(refused), None) => kind.refused = Some(refused),
        }
    }
    Ok(())
}

/// How many partitions there are, and the name of one.
fn example(partitions: &Partitions, at: Moment<'_>) -> String {
    let count = partitions.count(at);
    match count.checked_sub(1).and_then(|last| partitions.key(last, at)) {
        Some(last) => format!("has {count} partitions, the latest is {last}"),
        None => "has no partitions yet".to_owned(),
    }
}

/// The first asset of each kind with the text about that kind.
fn name(
    definitions: &Definitions,
    assets: &[u32],
    kind_of: &[Option<usize>],
    texts: Vec<String>,
) -> Vec<(servo_core::AssetKey, String)> {
    let named = texts.into_iter().enumerate().filter_map(|(kind, text)| {
        let first = kind_of.iter().position(|of| *of == Some(kind))?;
        Some((definitions.asset(assets[first]).key.clone(), text))
    });
    named.take(MAX_NAMED).collect()
}

/// Every asset of the kinds that there is a text about.
fn name_all(
    definitions: &Definitions,
    assets: &[u32],
    kind_of: &[Option<usize>],
    texts: &[Option<String>],
) -> Vec<(servo_core::AssetKey, String)> {
    let of = |kind: &Option<usize>| kind.and_then(|kind| texts[kind].clone());
    let all = assets
        .iter()
        .zip(kind_of)
        .filter_map(|(asset, kind)| Some((definitions.asset(*asset).key.clone(), of(kind)?)));
    all.collect()
}
