//! Every dependency leads to an asset, through a mapping that fits the partitions on both sides.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::partitions::{Mapping, MappingDef};
use servo_core::selection::{similar_assets, similarly_named};
use servo_core::{AssetKey, Partitions, to_canonical_string};

use super::Dep;
use super::manifest::{DepDef, OnBlocked};
use super::names::Named;
use super::problem::{self, Report};

/// A dependency that leads somewhere; its mapping is absent if it was a problem.
pub(super) struct Resolved {
    pub(super) asset: u32,
    parameter: Option<String>,
    mapping: Option<(MappingDef, Arc<Mapping>)>,
    available: bool,
    on_blocked: OnBlocked,
}

impl Resolved {
    pub(super) fn into_dep(self) -> Option<Dep> {
        let (def, mapping) = self.mapping?;
        let Self { asset, parameter, available, on_blocked, .. } = self;
        Some(Dep { asset, parameter, def, mapping, available, on_blocked })
    }
}

/// The dependencies of each asset.
pub(super) fn check(
    named: &[Named],
    partitions: &[Option<Arc<Partitions>>],
    report: &mut Report,
) -> Vec<Vec<Resolved>> {
    let mut checker = Checker { named, partitions, by_name: BTreeMap::new(), known: BTreeMap::new() };
    for (position, asset) in (0u32..).zip(named) {
        checker.by_name.entry(asset.key.name()).or_default().push(position);
    }
    (0u32..)
        .zip(named)
        .map(|(position, asset)| {
            asset.def.deps.iter().filter_map(|dep| checker.resolve(position, dep, report)).collect()
        })
        .collect()
}

/// A mapping as text, and the identities of the partitions on both sides.
type MappingKey = (Option<String>, usize, usize);

struct Checker<'a> {
    named: &'a [Named],
    partitions: &'a [Option<Arc<Partitions>>],
    by_name: BTreeMap<&'a str, Vec<u32>>,
    /// Most dependencies of a project map the same partitions in the same way.
    known: BTreeMap<MappingKey, Result<(MappingDef, Arc<Mapping>), String>>,
}

impl Checker<'_> {
    fn resolve(&mut self, position: u32, dep: &DepDef, report: &mut Report) -> Option<Resolved> {
        let asset = &self.named[position as usize];
        let found = match (&dep.asset, &dep.parameter) {
            (Some(key), _) => self.by_key(key, report.is_short()),
            (None, Some(parameter)) => self.by_parameter(&asset.key, parameter, report.is_short()),
            (None, None) => {
                Err(("a dependency has neither an asset nor a parameter".into(), "name one".into()))
            }
        };
        let upstream = match found {
            Ok(upstream) => upstream,
            Err((message, fix)) => {
                report.add(Some(&asset.def.location), problem::asset(&asset.def.key), message, fix);
                return None;
            }
        };
        if upstream == position && !dep.mapping.as_ref().is_some_and(is_strictly_earlier) {
            report.add(
                Some(&asset.def.location),
                problem::asset(&asset.def.key),
                "depends on itself",
                format!(
                    "say which earlier partitions it reads: servo.dep(\"{}\", mapping=servo.window(-1, -1))",
                    asset.key
                ),
            );
            return None;
        }
        if upstream == position && asset.def.single_call {
            report.add(
                Some(&asset.def.location),
                problem::asset(&asset.def.key),
                "has single_call and reads its own earlier partitions, which the same call would have to make first",
                "leave single_call= out: its partitions are made one after the other",
            );
            return None;
        }
        let mapping = self.mapping(position, upstream, dep, report);
        let (parameter, available, on_blocked) = (dep.parameter.clone(), dep.available, dep.on_blocked);
        Some(Resolved { asset: upstream, parameter, mapping, available, on_blocked })
    }

    fn by_key(&self, key: &str, suggest: bool) -> Result<u32, (String, String)> {
        let shown = key.replacen('/', ".", 1);
        let key = AssetKey::parse(key).map_err(|error| {
            (format!("depends on {shown:?}: {error}"), "write servo.dep(\"namespace.name\")".to_owned())
        })?;
        self.named.binary_search_by(|asset| asset.key.cmp(&key)).map(|found| found as u32).map_err(|_| {
            let fix = format!("declare it, or servo.external(\"{key}\") if something else makes it");
            (format!("depends on {key}, which is not declared"), self.similar(&key, suggest).unwrap_or(fix))
        })
    }

    fn by_parameter(&self, of: &AssetKey, parameter: &str, suggest: bool) -> Result<u32, (String, String)> {
        let candidates = self.by_name.get(parameter).map_or(&[][..], Vec::as_slice);
        let in_namespace =
            candidates.iter().find(|at| self.named[**at as usize].key.namespace() == of.namespace());
        match (in_namespace, candidates) {
            (Some(position), _) | (None, [position]) => Ok(*position),
            (None, []) => {
                let fix = format!(
                    "name the parameter after an asset or a resource, or say which asset it is: \
                     servo.dep(\"namespace.name\", parameter=\"{parameter}\")"
                );
                let similar = did_you_mean(|keys| similarly_named(parameter, keys), self.keys(suggest));
                Err((format!("parameter {parameter} is not an asset or a resource"), similar.unwrap_or(fix)))
            }
            (None, several) => {
                let keys: Vec<String> =
                    several.iter().map(|at| self.named[*at as usize].key.to_string()).collect();
                let message = format!("parameter {parameter} could be {}", keys.join(" or "));
                Err((message, format!("say which: servo.dep(\"{}\", parameter=\"{parameter}\")", keys[0])))
            }
        }
    }

    fn similar(&self, key: &AssetKey, suggest: bool) -> Option<String> {
        did_you_mean(|keys| similar_assets(key, keys), self.keys(suggest))
    }

    /// The keys to look for similar ones in: none if there is no time for it.
    fn keys(&self, suggest: bool) -> Vec<&AssetKey> {
        self.named.iter().filter(|_| suggest).map(|asset| &asset.key).collect()
    }

    fn mapping(
        &mut self,
        position: u32,
        upstream: u32,
        dep: &DepDef,
        report: &mut Report,
    ) -> Option<(MappingDef, Arc<Mapping>)> {
        let (asset, of) = (&self.named[position as usize], &self.named[upstream as usize]);
        let mine = self.partitions[position as usize].as_ref();
        let theirs = self.partitions[upstream as usize].as_ref();
        // Partitions that were a problem themselves are reported once, not again with every mapping.
        if mine.is_some() != asset.def.partitions.is_some() || theirs.is_some() != of.def.partitions.is_some()
        {
            return None;
        }
        let identity =
            |partitions: Option<&Arc<Partitions>>| partitions.map_or(0, |p| Arc::as_ptr(p) as usize);
        let text = dep.mapping.as_ref().map(|mapping| to_canonical_string(mapping).unwrap_or_default());
        let known = self.known.entry((text, identity(mine), identity(theirs))).or_insert_with(|| {
            let (mine, theirs) = (mine.map(Arc::as_ref), theirs.map(Arc::as_ref));
            let def = match &dep.mapping {
                Some(def) => def.clone(),
                None => MappingDef::inferred(mine, theirs).map_err(|mismatch| mismatch.to_string())?,
            };
            let mapping = def.between(mine, theirs).map_err(|problems| problems.to_string())?;
            Ok((def, Arc::new(mapping)))
        });
        match known {
            Ok(mapping) => Some(mapping.clone()),
            Err(message) => {
                report.add(
                    Some(&asset.def.location),
                    problem::asset(&asset.def.key),
                    format!("depends on {}: {message}", of.key),
                    format!("say how its partitions map: servo.dep(\"{}\", mapping=…)", of.key),
                );
                None
            }
        }
    }
}

fn did_you_mean<'a>(
    similar: impl FnOnce(Vec<&'a AssetKey>) -> Vec<String>,
    keys: Vec<&'a AssetKey>,
) -> Option<String> {
    let similar = similar(keys);
    (!similar.is_empty()).then(|| format!("did you mean {}?", similar.join(" or ")))
}

/// Whether a mapping of an asset to itself only leads back.
fn is_strictly_earlier(mapping: &MappingDef) -> bool {
    match mapping {
        MappingDef::Window { to, .. } => *to < 0,
        MappingDef::Dims { dims } => dims
            .values()
            .filter_map(|dim| dim.mapping.as_deref())
            .any(|mapping| matches!(mapping, MappingDef::Window { to, .. } if *to < 0)),
        MappingDef::Same
        | MappingDef::All
        | MappingDef::Last
        | MappingDef::Specific { .. }
        | MappingDef::Static { .. }
        | MappingDef::Time => false,
    }
}
