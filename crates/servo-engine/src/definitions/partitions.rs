//! The partitions of every asset are valid. Equal definitions are checked once and shared.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::{Partitions, to_canonical_string};

use super::names::Named;
use super::problem::{self, Report};

/// The partitions of each asset; none for those that have none, or whose partitions were a problem.
pub(super) fn check(named: &[Named], report: &mut Report) -> Vec<Option<Arc<Partitions>>> {
    let mut known: BTreeMap<String, Result<Arc<Partitions>, servo_core::partitions::Problems>> =
        BTreeMap::new();
    let mut checked = Vec::with_capacity(named.len());
    for asset in named {
        let Some(def) = &asset.def.partitions else {
            checked.push(None);
            continue;
        };
        let text = to_canonical_string(def).unwrap_or_default();
        let partitions = known.entry(text).or_insert_with(|| def.validate().map(Arc::new));
        match partitions {
            Ok(partitions) => checked.push(Some(Arc::clone(partitions))),
            Err(problems) => {
                for found in problems.iter() {
                    let fix = format!("correct {} of partitions=", found.path);
                    report.add(
                        Some(&asset.def.location),
                        problem::asset(&asset.def.key),
                        found.to_string(),
                        fix,
                    );
                }
                checked.push(None);
            }
        }
    }
    checked
}
