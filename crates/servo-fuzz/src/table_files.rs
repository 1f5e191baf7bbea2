//! Files of tables: what guards them, and what lies behind the guard.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use data_encoding::HEXLOWER;
use parquet::file::metadata::ParquetMetaDataReader;
use servo_projections::{Error, FileRef, Manifest, Projection, TableFiles};
use sha2::{Digest, Sha256};

use crate::runtime::wait;
use crate::tables::{Rows, TABLES, read, store};

/// The manifest of one table, what reading it gives, and its files by name.
struct Table {
    manifest: Manifest,
    files: BTreeMap<String, Bytes>,
    rows: Rows,
}

/// Good tables one by one: most of the time is spent with reading.
static EACH: LazyLock<Vec<Table>> = LazyLock::new(|| {
    let manifest = parquet_only();
    let tables: BTreeSet<&str> = manifest.files().map(|(table, _)| table).collect();
    tables.into_iter().map(alone).collect()
});

/// Good tables without the files of run keys, which have a form of their own.
fn parquet_only() -> Manifest {
    Manifest { run_keys: Vec::new(), ..TABLES.manifest.clone() }
}

fn alone(table: &str) -> Table {
    let mut manifest = parquet_only();
    manifest.history.retain(|name, _| name == table);
    for delta in &mut manifest.l0_deltas {
        delta.tables.retain(|name, _| name == table);
    }
    let paths = manifest.files().map(|(_, file)| file.path.clone());
    let files: BTreeMap<_, _> = paths.map(|path| (path.clone(), TABLES.files[&path].clone())).collect();
    let rows = wait(read_all(&files, &manifest)).expect("a good table");
    Table { manifest, files, rows }
}

/// Damage to one file of a good table: it is refused by its name, or it does not matter. Never are other rows read.
///
/// The first byte chooses the file, two more its new length if that is shorter, and every three after that a byte to
/// change and how.
pub fn parquet_guard(bytes: &[u8]) {
    let [which, length @ .., _] = bytes.first_chunk::<4>().unwrap_or(&[0; 4]);
    let files: Vec<_> =
        EACH.iter().flat_map(|table| table.files.iter().map(move |file| (table, file))).collect();
    let (table, (name, good)) = files[usize::from(*which) % files.len()];
    let mut bad = good.to_vec();
    for change in bytes.get(3..).unwrap_or_default().chunks_exact(3) {
        let at = usize::from(u16::from_be_bytes([change[0], change[1]])) % bad.len();
        bad[at] ^= change[2];
    }
    bad.truncate(usize::from(u16::from_be_bytes(*length)));
    let mut files = table.files.clone();
    files.insert(name.clone(), Bytes::from(bad));
    match wait(read_all(&files, &table.manifest)) {
        Ok(rows) => assert_eq!(rows, table.rows, "damage to {name} changed what is read"),
        Err(Error::Damaged { file, .. }) => assert_eq!(&file, name),
        Err(other) => panic!("damage to {name} is told as another error: {other}"),
    }
}

/// A file that the manifest vouches for: the guard lets it pass, and reading it gives rows or an error.
pub fn parquet_file(bytes: &[u8]) {
    let Some(file) = vouched(bytes) else { return };
    let files = BTreeMap::from([(file.path.clone(), Bytes::copy_from_slice(bytes))]);
    let mut manifest = TABLES.manifest.clone();
    manifest.l0_deltas.truncate(1);
    for table in ["runs", "tasks"] {
        let tables = TableFiles::from([(table.to_owned(), vec![file.clone()])]);
        for (changes, history) in [(tables.clone(), TableFiles::new()), (TableFiles::new(), tables)] {
            manifest.l0_deltas[0].tables = changes;
            manifest.history = history;
            drop(wait(read_all(&files, &manifest)));
        }
    }
}

/// The entry of a manifest that fits the bytes. All of the file counts as its end, so that all of it is looked at.
fn vouched(bytes: &[u8]) -> Option<FileRef> {
    let whole = Bytes::copy_from_slice(bytes);
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&whole).ok()?;
    let any = TABLES.manifest.history["runs"].first()?;
    Some(FileRef {
        rows: metadata.file_metadata().num_rows().cast_unsigned(),
        bytes: bytes.len() as u64,
        sha256: HEXLOWER.encode(&Sha256::digest(bytes)),
        tail_bytes: bytes.len() as u64,
        tail_crc32: crc32fast::hash(bytes),
        ..any.clone()
    })
}

async fn read_all(files: &BTreeMap<String, Bytes>, manifest: &Manifest) -> Result<Rows, Error> {
    let manifest = Arc::new(manifest.clone());
    read(&Projection::from_manifest(store(files).await, manifest, Arc::default())).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_lets_a_good_file_pass_that_is_vouched_for() {
        let mut manifest = TABLES.manifest.clone();
        let mut files = TABLES.files.clone();
        for file in manifest.history.values_mut().flatten() {
            let bytes = &TABLES.files[&file.path];
            *file = FileRef { path: file.path.clone(), ..vouched(bytes).unwrap() };
            files.insert(file.path.clone(), bytes.clone());
        }
        assert_ne!(manifest, TABLES.manifest, "all of a file is its end");
        let rows = wait(read_all(&files, &manifest)).unwrap();
        assert_eq!(rows, wait(read_all(&TABLES.files, &TABLES.manifest)).unwrap());
    }
}
