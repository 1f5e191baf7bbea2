//! The assets of a plan: which, why, and which of their partitions.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use servo_core::Operation;
use servo_core::partitions::{PartitionContext, PartitionSet};

use super::asked::asked;
use super::checks;
use super::error::PlanningError;
use super::meaning::{Evaluation, Meaning, Member, Why};
use super::outside::Outside;
use super::reach::Follower;
use super::{PlanContext, PlanRequest, PlannedAsset, SkippedAsset};
use crate::definitions::{Asset, Definitions};

/// The resolved selection of a request.
pub(super) struct Selected {
    /// The assets to plan, in the order of their keys.
    pub(super) assets: Vec<PlannedAsset>,
    /// External assets.
    pub(super) external: Vec<u32>,
    /// Targets that are not planned because they are up to date.
    pub(super) skipped: Vec<SkippedAsset>,
}

/// Evaluates a request.
pub(super) fn select(
    definitions: &Definitions,
    request: &PlanRequest,
    context: &PlanContext<'_>,
    outside: &Outside<'_>,
) -> Result<Selected, PlanningError> {
    request.selection.evaluate(definitions.graph()).map_err(PlanningError::Unmatched)?;
    let is_check = request.operation == Operation::Check;
    if is_check {
        checks::validate(request)?;
    }
    let stopped_at = Cell::new(None);
    let evaluate = |asked: &dyn Fn(u32) -> PartitionSet| {
        let follower = Follower { definitions, context, outside, asked, stopped_at: &stopped_at };
        Evaluation { follower }.meaning(request.selection.expr())
    };
    // Which assets the request speaks of does not depend on partitions, so it is known before any are asked for.
    let spoken_of = RefCell::new(BTreeSet::new());
    let meaning = evaluate(&|asset| {
        spoken_of.borrow_mut().insert(asset);
        PartitionSet::EMPTY
    });
    let external: Vec<u32> =
        meaning.keys().copied().filter(|asset| definitions.asset(*asset).def.external).collect();
    let nothing = || PlanningError::NothingSelected { selection: request.selection.to_string() };
    if external.len() == meaning.len() {
        let only = external.first().map(|first| definitions.asset(*first).key.clone());
        return Err(only.map_or_else(nothing, |asset| PlanningError::OnlyExternal { asset }));
    }
    let spoken_of = spoken_of.into_inner().into_iter();
    let asked = asked(definitions, spoken_of, request, context.at, outside)?;
    let mut meaning = evaluate(&|asset| asked.get(&asset).cloned().unwrap_or_default());
    if let Some(count) = stopped_at.get() {
        return Err(PlanningError::TooManyTasks { count, limit: context.max_tasks });
    }
    meaning.retain(|asset, _| !definitions.asset(*asset).def.external);
    if request.partitions.missing {
        let is_there =
            |asset: u32| definitions.asset(asset).partitions.is_none() && outside.of(asset).contains(&[]);
        meaning.retain(|asset, _| !is_there(*asset));
    }
    if request.partitions.failed {
        let is_left_out = |asset: u32| {
            definitions.asset(asset).partitions.is_none()
                && outside.failed(asset, &PartitionSet::unpartitioned()).is_empty()
        };
        meaning.retain(|asset, _| !is_left_out(*asset));
    }
    let none_yet = meaning.keys().find_map(|asset| none_yet(definitions.asset(*asset), context.at));
    let mut skipped = Vec::new();
    if request.partitions.stale {
        skipped = narrow_to_stale(definitions, &mut meaning, context);
    }
    if is_check {
        checks::narrow(definitions, &mut meaning, outside, request)?;
    } else {
        make_together(definitions, &mut meaning);
    }
    let assets = meaning.into_iter().map(|(asset, mut member)| {
        member.reasons.retain(|reason| !reason.partitions.is_empty());
        PlannedAsset { asset, partitions: member.partitions(), reasons: member.reasons }
    });
    let assets: Vec<PlannedAsset> = assets.filter(|planned| !planned.partitions.is_empty()).collect();
    match assets.is_empty() {
        false => Ok(Selected { assets, external, skipped }),
        true if request.partitions.stale => {
            let waiting = skipped.iter().find(|skipped| !skipped.waiting.is_empty());
            let waiting = waiting.map(|skipped| definitions.asset(skipped.asset).key.clone());
            Err(PlanningError::NothingStale { selection: request.selection.to_string(), waiting })
        }
        true if request.partitions.missing => {
            Err(PlanningError::NothingMissing { selection: request.selection.to_string() })
        }
        true if request.partitions.failed => {
            Err(PlanningError::NothingFailed { selection: request.selection.to_string() })
        }
        true => Err(none_yet.unwrap_or_else(nothing)),
    }
}

/// Says so if an asset has partitions, and there is none yet.
fn none_yet(asset: &Asset, at: PartitionContext<'_>) -> Option<PlanningError> {
    asset.partitions.as_ref().filter(|partitions| partitions.count(at) == 0)?;
    let keys = asset.def.partitions.as_ref().and_then(|def| def.dynamic_names().next()).map(str::to_owned);
    Some(PlanningError::NoneYet { asset: asset.key.clone(), keys })
}

/// Leaves only what has to be made to be up to date; gives the rest.
fn narrow_to_stale(
    definitions: &Definitions,
    meaning: &mut Meaning,
    context: &PlanContext<'_>,
) -> Vec<SkippedAsset> {
    let asked: BTreeMap<u32, PartitionSet> =
        meaning.iter().map(|(asset, member)| (*asset, member.partitions())).collect();
    let mut found = context.materializations.needed(definitions, &asked, context.at.now());
    for (asset, member) in meaning {
        let needed = found.needed.remove(asset).unwrap_or_default();
        for reason in &mut member.reasons {
            reason.partitions = reason.partitions.intersection(&needed);
        }
    }
    let skipped = asked.into_keys().map(|asset| SkippedAsset {
        asset,
        up_to_date: found.up_to_date.remove(&asset).unwrap_or_default(),
        waiting: found.waiting.remove(&asset).unwrap_or_default(),
    });
    skipped.filter(|skipped| !skipped.up_to_date.is_empty() || !skipped.waiting.is_empty()).collect()
}

/// Adds what is made at once: a partition of one output of a function is a task that makes all its planned outputs, and
/// all that it has if it cannot leave any out.
fn make_together(definitions: &Definitions, meaning: &mut Meaning) {
    let mut units: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &asset in meaning.keys().filter(|asset| definitions.asset(**asset).def.multi.is_some()) {
        units.entry(definitions.maker(asset)).or_default().push(asset);
    }
    for planned in units.into_values() {
        let sets: Vec<(u32, PartitionSet)> =
            planned.iter().map(|asset| (*asset, meaning[asset].partitions())).collect();
        let can_leave_out =
            definitions.asset(planned[0]).def.multi.as_ref().is_some_and(|multi| multi.can_subset);
        let outputs = if can_leave_out { planned } else { definitions.made_with(planned[0]).collect() };
        for output in outputs {
            let own = meaning.get(&output).map(Member::partitions).unwrap_or_default();
            for (of, set) in sets.iter().filter(|(of, _)| *of != output) {
                let more = set.difference(&own);
                if !more.is_empty() {
                    meaning.entry(output).or_default().add(Why::SameFunction { of: *of }, &more);
                }
            }
        }
    }
}
