//! Values of configuration that a request gives, for the assets that take them.

use std::collections::{BTreeMap, BTreeSet};

use super::{PlannedAsset, PlanningError};
use crate::definitions::{Asset, Definitions};

/// Every value must be meant for something that is planned.
pub(super) fn check(
    definitions: &Definitions,
    planned: &[PlannedAsset],
    config: &BTreeMap<String, String>,
) -> Result<(), PlanningError> {
    let assets = || planned.iter().map(|planned| definitions.asset(planned.asset));
    for name in config.keys() {
        if !assets().any(|asset| fields(asset).any(|field| is_meant(asset, field, name))) {
            let known: BTreeSet<String> = assets().flat_map(fields).map(str::to_owned).collect();
            return Err(PlanningError::UnknownConfig {
                name: name.clone(),
                known: known.into_iter().collect(),
            });
        }
    }
    Ok(())
}

/// The values for a function that makes these assets. What is meant for one of them alone counts more than what is
/// meant for all.
pub(super) fn of(assets: &[&Asset], config: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let value = |field: &str| {
        let own = assets.iter().find_map(|asset| config.get(&format!("{}:{field}", asset.key)));
        own.or_else(|| config.get(field)).map(|value| (field.to_owned(), value.clone()))
    };
    assets.iter().flat_map(|asset| fields(asset)).filter_map(value).collect()
}

fn is_meant(asset: &Asset, field: &str, name: &str) -> bool {
    match name.split_once(':') {
        Some((of, name)) => name == field && of == asset.key.to_string(),
        None => name == field,
    }
}

fn fields(asset: &Asset) -> impl Iterator<Item = &str> {
    asset.def.config.iter().flat_map(|config| &config.fields).map(|field| field.name.as_str())
}
