//! Files of old versions must load for ever.
//!
//! `tests/corpus/v1` is a workspace as version 1 wrote it, with everything it held as text beside it. Never
//! change these files; a new schema version gets a directory of its own, written with
//! `SERVO_WRITE_CORPUS=1 cargo nextest run -p servo-projections --run-ignored all write_the_corpus`.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use servo_store::probe::anchors;
use servo_store::{Blobs, FileBlobs};

use super::rebuilding::workspace_in;
use super::support::layout;
use crate::{Projection, RunFilter, SCHEMA_VERSION};

fn directory(version: u64) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/corpus/v{version}"))
}

/// The readable contents of a workspace, as text.
async fn contents(blobs: Arc<dyn Blobs>) -> String {
    let projection = Projection::open_latest(blobs, layout()).await.unwrap().unwrap();
    let mut text = format!("{:#?}\n", projection.hot_rows().await.unwrap());
    for run in projection.runs_after(None, 1_000, &RunFilter::default()).await.unwrap() {
        assert_eq!(projection.run(run.run_id).await.unwrap().as_ref(), Some(&run));
        write!(text, "{run:#?}\n{:#?}\n", projection.tasks_of(&run).await.unwrap()).unwrap();
        writeln!(text, "{:#?}", projection.edges_of(&run).await.unwrap()).unwrap();
    }
    text
}

#[tokio::test]
async fn a_workspace_of_version_1_loads() {
    let blobs = Arc::new(FileBlobs::new(directory(1), &layout()));
    let expected = fs::read_to_string(directory(1).join("contents.txt")).unwrap();
    let found = contents(blobs).await;
    let mut found = found.lines();
    for (line, expected) in expected.lines().enumerate() {
        // Rows may have gained fields since; what was there must be there, in order.
        assert!(
            found.any(|line| line == expected),
            "line {} of contents.txt is missing: {expected}",
            line + 1
        );
    }
}

#[tokio::test]
#[ignore = "writes the corpus of a new schema version"]
async fn write_the_corpus() {
    let directory = directory(SCHEMA_VERSION);
    assert!(std::env::var_os("SERVO_WRITE_CORPUS").is_some() && !directory.exists(), "never overwritten");
    let blobs: Arc<dyn Blobs> = Arc::new(FileBlobs::new(&directory, &layout()));
    let (mut work, mut compactor) = workspace_in(&blobs, 15).await;
    // One run at work, waiting for its retry.
    work.start(35).await;
    compactor.flush(work.engine.state_mut().take_delta(), work.clock).await.unwrap();
    let manifest = compactor.manifest().unwrap();
    assert!(manifest.base_snapshot.is_some() && !manifest.l0_deltas.is_empty());
    // Only what the newest manifest needs, and what is needed to find it.
    let kept = manifest.paths();
    let manifests: Vec<String> =
        anchors(manifest.revision, 4).into_iter().map(|revision| layout().manifest(revision)).collect();
    for (path, _) in blobs.list("").await.unwrap() {
        let is_needed =
            kept.contains(path.as_str()) || path == layout().manifest_latest() || manifests.contains(&path);
        if !is_needed {
            blobs.delete(&path).await.unwrap();
        }
    }
    fs::write(directory.join("contents.txt"), contents(blobs).await).unwrap();
}
