//! Requests about the life of partitions: which of them a selection means, found on a snapshot.

use std::collections::BTreeSet;

use servo_core::partitions::{PartitionContext, PartitionSet, Partitions};
use servo_core::{AssetKey, PartitionKey, Timestamp};

use super::plan::dynamic_partitions;
use super::{PlanBasis, RequestError};
use crate::command::{MarkPartitions, WipePartitions};
use crate::definitions::{AssetDef, Definitions};
use crate::event::{KeyList, KeyRange};
use crate::lifecycle::AttemptOutcome;
use crate::principal::Caller;
use crate::state::{Materialized, State};

/// Keys that are listed for a request that will be refused for its size.
const MOST_LISTED: usize = 100_000;

/// Partitions of one asset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartitionsOf {
    /// Keys, in the user's notation.
    pub keys: Vec<String>,
    /// Ranges, such as `2013-01-01..2013-01-31`.
    pub ranges: Vec<String>,
    /// Everything that is known of the asset, in its definition or not.
    pub all: bool,
    /// Everything that is known of the asset and that its definition does not have.
    pub outside: bool,
}

impl PartitionsOf {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A wipe as it would be carried out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WipePreview {
    /// How many partitions lose their status.
    pub count: u64,
    /// How many of them have data.
    pub with_data: u64,
    /// The first and the last of them, by the canonical text of their keys; none of an asset without partitions.
    pub between: Option<KeyRange>,
    /// How many of them the definition of the asset does not have.
    pub outside: u64,
}

/// The command that wipes partitions, and what it does.
pub fn prepare_wipe(
    state: &State,
    asset: &AssetKey,
    which: &PartitionsOf,
    at: Timestamp,
) -> Result<(WipePartitions, WipePreview), RequestError> {
    let moment = PartitionContext::new(at, state.dynamic_partitions());
    let found = Found::of(state, asset)?;
    let asked = found.asked(which, moment)?;
    let outside = |key: &PartitionKey| {
        found.partitions.as_deref().is_none_or(|partitions| partitions.index_of(key, moment).is_err())
    };
    let known = known(state, asset);
    let mut preview = WipePreview::default();
    let mut partitions: Vec<Option<PartitionKey>> = Vec::new();
    for key in known {
        let is_outside = key.as_ref().map_or(found.partitions.is_some(), outside);
        let is_asked = match &key {
            _ if which.all => true,
            _ if which.outside && is_outside => true,
            None => found.partitions.is_none() && which.is_empty(),
            Some(key) => {
                let digits = || found.partitions.as_deref()?.block_of(key, moment).ok();
                asked.exact.contains(key)
                    || (!asked.set.is_empty()
                        && digits().is_some_and(|block| {
                            !asked.set.intersection(&std::iter::once(block).collect()).is_empty()
                        }))
            }
        };
        if !is_asked {
            continue;
        }
        preview.count += 1;
        preview.outside += u64::from(is_outside);
        let has_data = state.latest(asset, key.as_ref()).is_some_and(Materialized::has_data);
        preview.with_data += u64::from(has_data);
        if let Some(key) = &key {
            match &mut preview.between {
                None => preview.between = Some(KeyRange { from: key.clone(), to: None }),
                Some(range) => range.to = Some(key.clone()),
            }
        }
        partitions.push(key);
    }
    let command = WipePartitions {
        asset: asset.clone(),
        partitions,
        keep_data: false,
        force: false,
        reason: String::new(),
        caller: Caller::default(),
    };
    Ok((command, preview))
}

/// The command that says how partitions fare.
pub fn prepare_mark(
    state: &State,
    asset: &AssetKey,
    which: &PartitionsOf,
    outcome: AttemptOutcome,
    at: Timestamp,
) -> Result<MarkPartitions, RequestError> {
    let moment = PartitionContext::new(at, state.dynamic_partitions());
    let found = Found::of(state, asset)?;
    let definitions = state.checked_definitions().ok_or(RequestError::NothingDeployed)?;
    let Some(position) = definitions.position(asset) else {
        return Err(RequestError::UnknownAsset { asset: asset.clone() });
    };
    let mut asked = found.asked(which, moment)?;
    if let (true, Some(partitions)) = (which.all, &found.partitions) {
        asked.set = partitions.all(moment);
    }
    let mut keys: Vec<PartitionKey> = asked.exact.into_iter().collect();
    if let Some(partitions) = &found.partitions {
        // The engine says how many are too many; more than so many are not worth a list.
        keys.extend(partitions.keys_in(&asked.set, moment).take(MOST_LISTED));
    }
    if keys.is_empty() && found.partitions.is_some() {
        return Err(RequestError::Partitions(format!("none of these partitions of {asset} exists")));
    }
    let dynamic = dynamic_partitions(&definitions, std::iter::once(position), state);
    Ok(MarkPartitions {
        asset: asset.clone(),
        partitions: KeyList::new(keys),
        outcome,
        reason: String::new(),
        basis: PlanBasis { deployment: Some(state.definitions.number()), dynamic },
        caller: Caller::default(),
    })
}

/// The effect of other definitions on known partitions of an asset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repartitioned {
    /// The asset.
    pub asset: AssetKey,
    /// Partitions that keep their status.
    pub kept: u64,
    /// Partitions that the new definition does not have. They stay until somebody wipes them.
    pub outside: u64,
}

/// The assets whose partitions would be others with these definitions, of which something is known.
pub fn repartitioned(state: &State, definitions: &Definitions, at: Timestamp) -> Vec<Repartitioned> {
    let moment = PartitionContext::new(at, state.dynamic_partitions());
    let mut found = Vec::new();
    for asset in definitions.assets() {
        let is_other = |deployed: &std::sync::Arc<AssetDef>| deployed.partitions != asset.def.partitions;
        if !state.definition(&asset.key).is_some_and(is_other) {
            continue;
        }
        let mut change = Repartitioned { asset: asset.key.clone(), kept: 0, outside: 0 };
        for text in state.statuses.keys_of(&asset.key) {
            let key = text.and_then(|text| PartitionKey::parse(&text).ok());
            let is_kept = match (&asset.partitions, &key) {
                (Some(partitions), Some(key)) => partitions.index_of(key, moment).is_ok(),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            *(if is_kept { &mut change.kept } else { &mut change.outside }) += 1;
        }
        if change.kept + change.outside > 0 {
            found.push(change);
        }
    }
    found
}

/// An asset that is deployed, or of which something is known.
struct Found {
    asset: AssetKey,
    partitions: Option<std::sync::Arc<Partitions>>,
    is_deployed: bool,
    known: BTreeSet<PartitionKey>,
}

/// Partitions that a request names.
#[derive(Default)]
struct Asked {
    set: PartitionSet,
    /// Known keys that the definition does not have.
    exact: BTreeSet<PartitionKey>,
}

impl Found {
    fn of(state: &State, asset: &AssetKey) -> Result<Self, RequestError> {
        let definitions = state.checked_definitions();
        let position = definitions.as_deref().and_then(|definitions| definitions.position(asset));
        let partitions = definitions
            .as_deref()
            .zip(position)
            .and_then(|(definitions, position)| definitions.asset(position).partitions.clone());
        let known: BTreeSet<PartitionKey> = known(state, asset).into_iter().flatten().collect();
        let is_deployed = position.is_some();
        if !is_deployed && state.statuses.keys_of(asset).next().is_none() && state.undoable(asset).is_empty()
        {
            return Err(RequestError::UnknownAsset { asset: asset.clone() });
        }
        Ok(Self { asset: asset.clone(), partitions, is_deployed, known })
    }

    /// Reads texts with the definition; those that it does not have may name what is known from before.
    fn asked(&self, which: &PartitionsOf, at: PartitionContext<'_>) -> Result<Asked, RequestError> {
        let asset = &self.asset;
        let names_some = !which.keys.is_empty() || !which.ranges.is_empty();
        let mut asked = Asked::default();
        if names_some && self.is_deployed && self.partitions.is_none() && self.known.is_empty() {
            return Err(RequestError::Partitions(format!("{asset} has no partitions; leave them out")));
        }
        if which.is_empty() && (self.partitions.is_some() || !self.known.is_empty()) {
            return Err(RequestError::Partitions(format!(
                "{asset} has partitions: say which, with --partition KEY, --partitions FROM..TO or --all"
            )));
        }
        for text in &which.keys {
            match self.partitions.as_deref().map(|partitions| partitions.parse_named(text, at)) {
                Some(Ok(set)) => asked.set = asked.set.union(&set),
                other => {
                    let named =
                        self.known.iter().find(|key| key.canonical() == text || key.to_string() == *text);
                    let why = match other {
                        Some(Err(error)) => error.to_string(),
                        Some(Ok(_)) | None => "nothing is known of it".to_owned(),
                    };
                    let named = named.ok_or_else(|| {
                        RequestError::Partitions(format!("{asset} has no partition {text}: {why}"))
                    })?;
                    asked.exact.insert(named.clone());
                }
            }
        }
        for text in &which.ranges {
            let Some(partitions) = self.partitions.as_deref() else {
                return Err(RequestError::Partitions(format!(
                    "{asset} has no partitions by its definition, so {text} is no range of them; name keys, or --all"
                )));
            };
            let set = partitions
                .parse_range(text, at)
                .map_err(|error| RequestError::Partitions(format!("{asset}, partitions {text}: {error}")))?;
            asked.set = asked.set.union(&set);
        }
        Ok(asked)
    }
}

/// Everything that the state knows of an asset: partitions by the canonical text of their keys, or the whole of it.
fn known(state: &State, asset: &AssetKey) -> Vec<Option<PartitionKey>> {
    let key = |text: Option<&str>| text.and_then(|text| PartitionKey::parse(text).ok());
    let mut known: BTreeSet<Option<PartitionKey>> =
        state.statuses.keys_of(asset).map(|text| key(text.as_deref())).collect();
    known.extend(state.statuses.priors(asset).map(|(text, _)| key(text)));
    for (_, task) in crate::state::making(state, asset) {
        known.insert(task.key.partition());
    }
    known.extend(
        state.quarantine.rows().filter(|row| row.asset_key == *asset).map(|row| row.partition_key.clone()),
    );
    known.into_iter().collect()
}
