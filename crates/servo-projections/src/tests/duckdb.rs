//! DuckDB reads every table as it lies on disk, without any code of Servo.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use servo_engine::rows::{HotRow, Row};
use servo_engine::{for_each_append_only_table, for_each_hot_table};

use super::generate::Generator;
use super::support::{Directory, Model, latest, layout, now, open, random_delta};
use crate::{Limits, TABLES};

pub(super) fn python() -> PathBuf {
    match std::env::var_os("SERVO_TEST_PYTHON") {
        Some(python) => python.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python"),
    }
}

fn read_with_duckdb(workspace: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_tables.py");
    let mut keys = serde_json::Map::new();
    for_each_hot_table!(R => keys.insert(R::TABLE.to_owned(), R::KEY.into()));
    let keys = Value::from(keys).to_string();
    let output =
        Command::new(python()).arg(script).arg(workspace).arg(keys).output().unwrap_or_else(|error| {
            panic!("{} cannot be started: {error}; run `make setup`", python().display())
        });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("No module named 'duckdb'"), "duckdb is not installed; run `make setup`");
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn duckdb_reads_every_table_as_it_lies_on_disk() {
    let directory = Directory::new();
    let limits = Limits { l0_max_count: 2, tier_fanout: 3, ..Limits::default() };
    let mut compactor = open(&directory.blobs, 1, 1, limits).await;
    let (generator, mut model) = (Generator::new(11), Model::default());
    for seq in 1..=8 {
        let delta = random_delta(&generator, seq, &model);
        model.apply(&delta);
        compactor.flush(delta, now()).await.unwrap();
    }
    let projection = latest(&directory.blobs).await;
    let manifest = projection.manifest();
    assert!(
        manifest.base_snapshot.is_some() && !manifest.l0_deltas.is_empty(),
        "both kinds of hot file are read"
    );

    let seen = read_with_duckdb(&directory.path(""));
    let mut tables: Vec<&str> = seen.as_object().unwrap().keys().map(String::as_str).collect();
    tables.sort_unstable();
    let mut expected = TABLES.to_vec();
    expected.sort_unstable();
    assert_eq!(tables, expected);
    for table in TABLES.iter().copied() {
        assert_eq!(seen[table]["stored"], seen[table]["declared"], "{table}");
        assert_eq!(seen[table]["columns"]["tenant_id"], "VARCHAR", "{table}");
        assert_eq!(seen[table]["columns"]["row_version"], "VARCHAR", "{table}");
        assert!(!seen[table]["rows"].as_array().unwrap().is_empty(), "{table}");
    }
    assert_eq!(seen["runs"]["columns"]["created_at"], "TIMESTAMP WITH TIME ZONE");
    assert_eq!(seen["idempotency_keys"]["columns"]["key_hash"], "BLOB");

    let hot = projection.hot_rows().await.unwrap();
    let live = |table: &str| seen[table]["rows"].as_array().unwrap().len() as u64;
    let immutable = |table: &str| manifest.immutable(table).iter().map(|file| file.rows).sum::<u64>();
    for_each_hot_table!(R => {
        assert_eq!(live(R::TABLE), R::hot(&hot).len() as u64 + immutable(R::TABLE), "{}", R::TABLE);
    });
    for_each_append_only_table!(R => assert_eq!(live(R::TABLE), immutable(R::TABLE), "{}", R::TABLE));
    let rows = seen["runs"]["rows"].as_array().unwrap();
    for run in hot.runs {
        let (id, version) = (run.run_id.to_string(), run.row_version.to_string());
        let row = rows.iter().find(|row| row["run_id"] == id && row["row_version"] == version).unwrap();
        assert_eq!(row["tenant_id"], layout().tenant().as_str());
        assert_eq!(row["run_key"], run.run_key);
        assert_eq!(row["state"], run.state.name());
        assert_eq!(row["labels"], run.labels.to_text());
        assert_eq!(row["priority"], run.priority);
        assert_eq!(row["tasks_total"], run.tasks_total);
        assert_eq!(row["created_at"], run.created_at.as_millis());
        assert_eq!(row["finished_at"].as_i64(), run.finished_at.map(|at| at.as_millis()));
        assert_eq!(
            row["cancelled_by"].as_str(),
            run.cancelled_by.as_ref().map(ToString::to_string).as_deref()
        );
        assert_eq!(row["selection"].as_str(), Some(run.selection.as_str()));
        assert_eq!(row["source_type"].as_str(), Some(run.source_type.as_str()));
        assert_eq!(row["source"].as_str(), Some(run.source.to_text().as_str()));
    }
}
