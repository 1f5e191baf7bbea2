//! Plans of checks that run alone: on what is materialized, and only where checks of data are declared.

use super::error::PlanningError;
use super::meaning::Meaning;
use super::outside::Outside;
use super::{Group, PlanRequest, PlannedAsset, options};
use crate::definitions::{Definitions, Phase};

/// Refuses what makes no sense for checks.
pub(super) fn validate(request: &PlanRequest) -> Result<(), PlanningError> {
    if request.partitions.is_filtered() {
        return Err(PlanningError::ChecksOfMissing);
    }
    match request.config.keys().next() {
        Some(name) => Err(PlanningError::UnknownConfig { name: name.clone(), known: Vec::new() }),
        None => Ok(()),
    }
}

/// Keeps the assets that declare checks of their data, and of these the partitions that have any.
pub(super) fn narrow(
    definitions: &Definitions,
    meaning: &mut Meaning,
    outside: &Outside<'_>,
    request: &PlanRequest,
) -> Result<(), PlanningError> {
    let selection = || request.selection.to_string();
    meaning.retain(|asset, _| has_checks(definitions, *asset));
    if meaning.is_empty() {
        return Err(PlanningError::NoChecks { selection: selection() });
    }
    for (asset, member) in meaning.iter_mut() {
        for reason in &mut member.reasons {
            reason.partitions = outside.materialized(*asset, &reason.partitions);
        }
    }
    meaning.retain(|_, member| member.reasons.iter().any(|reason| !reason.partitions.is_empty()));
    if meaning.is_empty() { Err(PlanningError::NothingToCheck { selection: selection() }) } else { Ok(()) }
}

fn has_checks(definitions: &Definitions, asset: u32) -> bool {
    definitions.asset(asset).def.checks.iter().any(|check| check.phase == Phase::Post)
}

/// A group for each asset: what is made together is checked on its own.
pub(super) fn groups(definitions: &Definitions, planned: &[PlannedAsset]) -> Vec<Group> {
    let group = |planned: &PlannedAsset| Group {
        assets: vec![planned.asset],
        partitions: planned.partitions.clone(),
        options: options(&definitions.asset(planned.asset).def, Vec::new()),
    };
    planned.iter().map(group).collect()
}
