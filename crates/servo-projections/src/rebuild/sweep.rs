//! The files of a workspace: those that make up the tables, and orphans that no manifest names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use servo_store::{Blobs, Layout};

use super::RebuildContext;
use super::checkpoint::Checkpoint;
use super::report::TableStatus;
use crate::error::Error;
use crate::manifest::Manifest;
use crate::manifests::Manifests;
use crate::table::TABLES;

/// The tables as the newest manifest has them; empty if there is none.
pub async fn list(blobs: Arc<dyn Blobs>, layout: Layout) -> Result<Vec<TableStatus>, Error> {
    let newest = Manifests { blobs, layout }.newest().await?;
    Ok(newest.map_or_else(Vec::new, |newest| tables_of(&newest)))
}

pub(crate) fn tables_of(manifest: &Manifest) -> Vec<TableStatus> {
    let status = |table: &str| {
        let count = |files: Option<&Vec<_>>| files.map_or(0, |files| files.len() as u64);
        let mut levels: BTreeMap<u32, u64> = BTreeMap::new();
        for file in manifest.immutable(table) {
            *levels.entry(file.level).or_default() += 1;
        }
        let files = || manifest.files().filter(|(name, _)| *name == table).map(|(_, file)| file);
        TableStatus {
            table: table.to_owned(),
            base_files: manifest.base_snapshot.as_ref().map_or(0, |base| count(base.tables.get(table))),
            l0_files: manifest.l0_deltas.iter().map(|delta| count(delta.tables.get(table))).sum(),
            history_files: levels.into_iter().collect(),
            rows: files().map(|file| file.rows).sum(),
            bytes: files().map(|file| file.bytes).sum(),
            last_seq: manifest.watermarks.last_seq,
        }
    };
    TABLES.iter().map(|table| status(table)).collect()
}

/// Deletes table files that no manifest names: left by crashes and by stopped rebuilds. Returns how many.
///
/// A file's name carries the first revision that may name it. Once that revision is published by somebody, a file
/// that it does not name will never be named; files of later revisions may belong to a writer at work.
pub async fn sweep(context: &RebuildContext) -> Result<u64, Error> {
    let orphans = orphans(context).await?;
    let manifests = context.manifests();
    for path in &orphans {
        manifests.delete(path).await?;
    }
    Ok(orphans.len() as u64)
}

pub(super) async fn orphans(context: &RebuildContext) -> Result<Vec<String>, Error> {
    let manifests = context.manifests();
    let Some(newest) = manifests.newest_by_number().await? else { return Ok(Vec::new()) };
    let mut named: BTreeSet<String> = BTreeSet::new();
    for revision in newest.pruned_through + 1..=newest.revision {
        if let Some(manifest) = manifests.read_undamaged(revision).await? {
            named.extend(manifest.paths().into_iter().map(str::to_owned));
        }
    }
    if let Some(boundary) = manifests.boundary_tables().await? {
        named.extend(boundary.paths().into_iter().map(str::to_owned));
    }
    if let Some(checkpoint) = Checkpoint::read(&*context.blobs).await? {
        named.extend(checkpoint.shadow.paths().into_iter().map(str::to_owned));
    }
    let dir = context.layout.state_dir();
    let listed = context.blobs.list(dir).await;
    let listed = listed.map_err(|source| Error::store("listing", dir, source))?;
    let paths = listed.into_iter().map(|(path, _)| path);
    let dead =
        |path: &String| !named.contains(path) && revision_of(path).is_some_and(|r| r <= newest.revision);
    Ok(paths.filter(dead).collect())
}

/// The revision in the name of one of our files.
fn revision_of(path: &str) -> Option<u64> {
    let (name, _) = path.rsplit('/').next()?.rsplit_once('.')?;
    name.split('-').nth(1).filter(|digits| digits.len() == 20)?.parse().ok()
}
