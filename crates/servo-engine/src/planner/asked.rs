//! Which partitions of each asset the keys and ranges of a request mean.
//!
//! Every asset reads a text by itself, in its own zone, whatever else is selected. Of a text that another asset
//! understands and that names dimensions which it does not have, an asset takes what it knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::partitions::{KeyError, PartitionContext, PartitionSet, Reason, Wording};
use servo_core::{AssetKey, Operation, Partitions};

use super::PlanRequest;
use super::error::PlanningError;
use super::outside::Outside;
use crate::definitions::Definitions;

/// How many assets an error names.
const MAX_NAMED: usize = 5;

/// Assets that have the same partitions, and what was asked of them.
struct Kind {
    partitions: Arc<Partitions>,
    assets: Vec<u32>,
    asked: Option<PartitionSet>,
    /// Why the last text did not fit.
    refused: Option<String>,
    /// Whether something has to be asked of them: of what is made elsewhere it need not.
    is_made: bool,
}

impl Kind {
    fn add(&mut self, set: &PartitionSet) {
        self.asked = Some(self.asked.take().map_or_else(|| set.clone(), |known| known.union(set)));
    }

    /// Takes what a text means, or why it means nothing.
    fn take(&mut self, read: Result<PartitionSet, KeyError>) {
        self.refused = read.map(|set| self.add(&set)).err().map(|error| error.to_string());
    }
}

/// The requested partitions of each of these assets, which have partitions.
pub(super) fn asked(
    definitions: &Definitions,
    assets: impl Iterator<Item = u32>,
    request: &PlanRequest,
    at: PartitionContext<'_>,
    outside: &Outside<'_>,
) -> Result<BTreeMap<u32, PartitionSet>, PlanningError> {
    let (choice, is_check) = (&request.partitions, request.operation == Operation::Check);
    let mut kinds = kinds(definitions, assets);
    let asks = choice.latest || !choice.keys.is_empty() || !choice.ranges.is_empty();
    if asks && kinds.is_empty() {
        return Err(PlanningError::NoPartitions);
    }
    let keys = choice.keys.iter().map(|text| (text, Wording::Key));
    for (text, wording) in keys.chain(choice.ranges.iter().map(|text| (text, Wording::Range))) {
        read(text, wording, &mut kinds, at);
        if kinds.iter().all(|kind| kind.refused.is_some()) {
            let reasons = kinds.into_iter().map(|kind| (kind.assets[0], kind.refused.unwrap_or_default()));
            let named = |(asset, reason): (u32, String)| (definitions.asset(asset).key.clone(), reason);
            return Err(PlanningError::NoSuchPartition {
                text: text.clone(),
                reasons: reasons.map(named).take(MAX_NAMED).collect(),
            });
        }
    }
    if choice.latest {
        // What has no partitions yet has nothing to bring up to date.
        for kind in &mut kinds {
            kind.add(&kind.partitions.latest(at));
        }
    }
    if (choice.is_filtered() || is_check) && !asks {
        for kind in &mut kinds {
            kind.add(&kind.partitions.all(at));
        }
    }
    let lacking = lacking(definitions, &kinds, at);
    if !lacking.is_empty() {
        let more = lacking.len().saturating_sub(MAX_NAMED);
        return Err(PlanningError::NeedsPartition {
            assets: lacking.into_iter().take(MAX_NAMED).collect(),
            more,
        });
    }
    let asked = kinds.into_iter().flat_map(|kind| {
        let set = kind.asked.unwrap_or_default();
        kind.assets.into_iter().map(move |asset| (asset, set.clone()))
    });
    let narrowed = |(asset, set): (u32, PartitionSet)| {
        let set = if choice.missing { outside.never_materialized(asset, &set) } else { set };
        let set = if choice.failed { outside.failed(asset, &set) } else { set };
        (asset, if is_check { outside.materialized(asset, &set) } else { set })
    };
    Ok(asked.map(narrowed).collect())
}

fn kinds(definitions: &Definitions, assets: impl Iterator<Item = u32>) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for position in assets {
        let asset = definitions.asset(position);
        let Some(partitions) = &asset.partitions else { continue };
        let known = kinds.iter().position(|kind| Arc::ptr_eq(&kind.partitions, partitions));
        let known = known.unwrap_or_else(|| {
            kinds.push(Kind {
                partitions: Arc::clone(partitions),
                assets: Vec::new(),
                asked: None,
                refused: None,
                is_made: false,
            });
            kinds.len() - 1
        });
        kinds[known].assets.push(position);
        kinds[known].is_made |= !asset.def.external;
    }
    kinds
}

/// Adds what a text means to every kind that it fits, and says of the others why it does not.
fn read(text: &str, wording: Wording, kinds: &mut [Kind], at: PartitionContext<'_>) {
    let mut is_understood = false;
    let mut other_dimensions = Vec::new();
    for (position, kind) in kinds.iter_mut().enumerate() {
        let set = match wording {
            Wording::Key => kind.partitions.parse_named(text, at),
            Wording::Range => kind.partitions.parse_range(text, at),
        };
        is_understood |= set.is_ok();
        if set.as_ref().is_err_and(|error| matches!(error.reason, Reason::Dimensions { .. })) {
            other_dimensions.push(position);
        }
        kind.take(set);
    }
    for position in other_dimensions.into_iter().filter(|_| is_understood) {
        let set = kinds[position].partitions.parse_part(text, wording, at);
        kinds[position].take(set);
    }
}

/// The assets of which nothing is asked, and why or what could be.
fn lacking(definitions: &Definitions, kinds: &[Kind], at: PartitionContext<'_>) -> Vec<(AssetKey, String)> {
    let mut lacking: Vec<(u32, String)> = Vec::new();
    for kind in kinds.iter().filter(|kind| kind.is_made && kind.asked.is_none()) {
        let why = kind.refused.clone().unwrap_or_else(|| example(&kind.partitions, at));
        let made = kind.assets.iter().filter(|asset| !definitions.asset(**asset).def.external);
        lacking.extend(made.map(|asset| (*asset, why.clone())));
    }
    lacking.sort_unstable();
    lacking.into_iter().map(|(asset, why)| (definitions.asset(asset).key.clone(), why)).collect()
}

/// How many partitions there are, and the name of one.
fn example(partitions: &Partitions, at: PartitionContext<'_>) -> String {
    let count = partitions.count(at);
    match count.checked_sub(1).and_then(|last| partitions.key(last, at)) {
        Some(last) => format!("has {count} partitions, the latest is {last}"),
        None => "has no partitions yet".to_owned(),
    }
}
