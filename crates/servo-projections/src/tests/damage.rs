//! Damaged, missing and newer files: each a message that names the file.

use std::fs;

use servo_core::RunId;
use servo_engine::rows::{AppendedRows, Delta, EndedRows, Row, RunKeyRow, RunRow};
use servo_store::ErrorKind;

use super::generate::Generator;
use super::support::{Directory, empty_delta, event, latest, layout, now, open, try_open};
use crate::{Error, Limits, Projection, RunFilter};

fn delta(seq: u64) -> Delta {
    let generator = Generator::new(seq);
    let id = RunId::from_u128(u128::from(seq));
    let run =
        RunRow { run_id: id, row_version: event(seq), requested_event_id: event(seq), ..generator.row() };
    let ended: Vec<RunRow> = (0..10)
        .map(|n| RunRow {
            run_id: RunId::from_u128(u128::from(seq * 100 + n)),
            requested_event_id: event(seq * 100 + n),
            ..generator.row()
        })
        .collect();
    let run_keys = vec![RunKeyRow { run_id: id, row_version: event(seq), ..generator.row() }];
    let ended = EndedRows { runs: ended, ..EndedRows::default() };
    let appended = AppendedRows { run_keys, ..AppendedRows::default() };
    Delta { runs: vec![run], ended, appended, ..empty_delta(seq) }
}

async fn workspace() -> Directory {
    let directory = Directory::new();
    let mut compactor = open(&directory.blobs, 1, 1, Limits::default()).await;
    for seq in 1..=3 {
        compactor.flush(delta(seq), now()).await.unwrap();
    }
    directory
}

/// The damaged file and the problem.
fn damaged<T: std::fmt::Debug>(result: Result<T, Error>) -> (String, String) {
    match result {
        Err(error @ Error::Damaged { .. }) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.to_string().contains("rebuild"), "{error}");
            let Error::Damaged { file, problem, .. } = error else { unreachable!() };
            (file, problem)
        }
        other => panic!("{other:?}"),
    }
}

async fn hot_file(directory: &Directory) -> String {
    let manifest = latest(&directory.blobs).await.manifest().clone();
    manifest.l0_deltas[1].tables[RunRow::TABLE][0].path.clone()
}

#[tokio::test]
async fn a_truncated_file_is_named() {
    let directory = workspace().await;
    let name = hot_file(&directory).await;
    let bytes = fs::read(directory.path(&name)).unwrap();
    fs::write(directory.path(&name), &bytes[..bytes.len() - 100]).unwrap();
    let (file, problem) = damaged(latest(&directory.blobs).await.hot_rows().await);
    assert_eq!(file, name);
    assert!(problem.contains("cut off") && problem.contains(&(bytes.len() - 100).to_string()), "{problem}");
}

#[tokio::test]
async fn every_flipped_byte_of_a_hot_file_is_noticed() {
    let directory = workspace().await;
    let name = hot_file(&directory).await;
    let bytes = fs::read(directory.path(&name)).unwrap();
    for at in (0..bytes.len()).step_by(97) {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        fs::write(directory.path(&name), bad).unwrap();
        let (file, problem) = damaged(latest(&directory.blobs).await.hot_rows().await);
        assert_eq!(file, name);
        assert!(problem.contains("SHA-256"), "{problem}");
    }
}

#[tokio::test]
async fn every_flipped_byte_of_a_file_read_in_parts_is_noticed() {
    let directory = workspace().await;
    let manifest = latest(&directory.blobs).await.manifest().clone();
    let name = manifest.immutable(RunRow::TABLE)[1].path.clone();
    let bytes = fs::read(directory.path(&name)).unwrap();
    // The first four bytes are a magic number that is not read.
    for at in (4..bytes.len()).step_by(61) {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        fs::write(directory.path(&name), bad).unwrap();
        let page = latest(&directory.blobs).await.runs_after(None, 30, &RunFilter::default()).await;
        let (file, problem) = damaged(page);
        assert_eq!(file, name);
        assert!(problem.contains("checksum"), "{problem}");
    }
}

#[tokio::test]
async fn every_flipped_byte_of_a_file_of_run_keys_is_noticed_when_it_is_read() {
    let directory = workspace().await;
    let manifest = latest(&directory.blobs).await.manifest().clone();
    let name = manifest.run_keys[1].path.clone();
    let bytes = fs::read(directory.path(&name)).unwrap();
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 0x10;
        fs::write(directory.path(&name), bad).unwrap();
        let (file, problem) = damaged(latest(&directory.blobs).await.run_key(RunId::from_u128(2)).await);
        assert_eq!(file, name);
        assert!(problem.contains("checksum"), "{problem}");
    }
    fs::write(directory.path(&name), &bytes[..bytes.len() - 1]).unwrap();
    let (file, problem) = damaged(latest(&directory.blobs).await.run_key(RunId::from_u128(2)).await);
    assert!(file == name && problem.contains("cut off"), "{problem}");
}

#[tokio::test]
async fn a_missing_file_is_named() {
    let directory = workspace().await;
    let manifest = latest(&directory.blobs).await.manifest().clone();
    let name = manifest.immutable(RunKeyRow::TABLE)[0].path.clone();
    fs::remove_file(directory.path(&name)).unwrap();
    let (file, problem) = damaged(latest(&directory.blobs).await.hot_rows().await);
    assert_eq!(file, name);
    assert!(problem.contains("missing"), "{problem}");
}

#[tokio::test]
async fn a_manifest_of_a_newer_version_is_refused() {
    let directory = workspace().await;
    let newest = latest(&directory.blobs).await.manifest().revision;
    let name = layout().manifest(newest + 1);
    fs::write(directory.path(&name), br#"{"schema_version": 2, "shape": "unheard of"}"#).unwrap();
    let opened = Projection::open_latest(directory.blobs.clone(), layout()).await;
    let error = opened.err().unwrap();
    assert!(matches!(&error, Error::Newer { file, found: 2, supported: 1 } if *file == name), "{error}");
    let error = try_open(&directory.blobs, 1, 2, Limits::default()).await.err().unwrap();
    assert!(matches!(error, Error::Newer { .. }), "{error}");
}

#[tokio::test]
async fn a_damaged_or_missing_copy_of_the_manifest_does_no_harm() {
    let directory = workspace().await;
    let expected = latest(&directory.blobs).await.manifest().clone();
    let copy = directory.path(layout().manifest_latest());
    fs::write(&copy, b"{ not json").unwrap();
    assert_eq!(latest(&directory.blobs).await.manifest(), &expected);
    fs::remove_file(&copy).unwrap();
    assert_eq!(latest(&directory.blobs).await.manifest(), &expected);
}

#[tokio::test]
async fn a_copy_left_behind_does_no_harm() {
    let directory = Directory::new();
    let limits = Limits { keep_manifests: 4, ..Limits::default() };
    let mut compactor = open(&directory.blobs, 1, 1, limits).await;
    let copy = directory.path(layout().manifest_latest());
    let mut old_copies = Vec::new();
    for seq in 1..=40 {
        compactor.flush(delta(seq), now()).await.unwrap();
        old_copies.push(fs::read(&copy).unwrap());
    }
    for old in old_copies {
        fs::write(&copy, old).unwrap();
        assert_eq!(latest(&directory.blobs).await.manifest(), compactor.manifest().unwrap());
    }
}

#[tokio::test]
async fn a_damaged_newest_manifest_is_named() {
    let directory = workspace().await;
    let newest = latest(&directory.blobs).await.manifest().revision;
    let name = layout().manifest(newest);
    let bytes = fs::read(directory.path(&name)).unwrap();
    fs::write(directory.path(&name), &bytes[..bytes.len() / 2]).unwrap();
    let (file, problem) =
        damaged(Projection::open_latest(directory.blobs.clone(), layout()).await.map(|_| ()));
    assert_eq!(file, name);
    assert!(problem.contains("not a manifest"), "{problem}");
}

#[tokio::test]
async fn a_manifest_under_another_number_is_refused() {
    let directory = workspace().await;
    let newest = latest(&directory.blobs).await.manifest().revision;
    let bytes = fs::read(directory.path(&layout().manifest(newest))).unwrap();
    fs::write(directory.path(&layout().manifest(newest + 1)), bytes).unwrap();
    let (file, problem) =
        damaged(Projection::open_latest(directory.blobs.clone(), layout()).await.map(|_| ()));
    assert_eq!(file, layout().manifest(newest + 1));
    assert!(problem.contains(&format!("revision {newest}")), "{problem}");
}
