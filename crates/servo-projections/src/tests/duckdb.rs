//! DuckDB reads every table as it lies on disk, without any code of Servo.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use servo_core::RunId;
use servo_engine::rows::{Delta, IdempotencyRow, RunKeyRow, RunRow};

use super::generate::Generator;
use super::support::{Directory, Model, empty_delta, event, latest, layout, now, open};
use crate::tables::TABLES;
use crate::{Limits, RunFilter};

pub(super) fn python() -> PathBuf {
    match std::env::var_os("SERVO_TEST_PYTHON") {
        Some(python) => python.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python"),
    }
}

fn read_with_duckdb(workspace: &Path) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/read_tables.py");
    let output = Command::new(python()).arg(script).arg(workspace).output().unwrap_or_else(|error| {
        panic!("{} cannot be started: {error}; run `make setup`", python().display())
    });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("No module named 'duckdb'"), "duckdb is not installed; run `make setup`");
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Rows of every table, some removed, some ended.
fn delta(generator: &mut Generator, seq: u64, model: &Model) -> Delta {
    let mut delta = empty_delta(seq);
    for n in 0..4_u64 {
        let run_id = RunId::from_u128(u128::from(seq * 10 + n));
        let version = event((seq - 1) * 1_000 + n);
        delta.runs.push(RunRow { run_id, row_version: version, ..generator.run() });
        delta.tasks.push(servo_engine::rows::TaskRow { run_id, row_version: version, ..generator.task() });
        delta.edges.push(servo_engine::rows::EdgeRow { run_id, row_version: version, ..generator.edge() });
        let name = format!("{seq}/{n}");
        delta.timers.push(servo_engine::rows::TimerRow {
            timer_id: name.clone(),
            row_version: version,
            ..generator.timer()
        });
        delta.outbox.push(servo_engine::rows::OutboxRow {
            dispatch_id: name,
            row_version: version,
            ..generator.outbox()
        });
        let ended = RunId::from_u128(u128::from(seq * 1_000 + n));
        delta.ended_runs.push(RunRow {
            run_id: ended,
            requested_event_id: event(seq * 10 + n),
            ..generator.run()
        });
        delta.ended_tasks.push(servo_engine::rows::TaskRow { run_id: ended, ..generator.task() });
        delta.ended_edges.push(servo_engine::rows::EdgeRow { run_id: ended, ..generator.edge() });
        delta.run_keys.push(RunKeyRow { created_at: now(), ..generator.run_key() });
        delta.run_key_conflicts.push(generator.conflict());
        delta.idempotency.push(IdempotencyRow { created_at: now(), ..generator.idempotency() });
        let name = format!("{seq}/{n}");
        delta.dynamic_partitions.push(servo_engine::rows::DynamicPartitionRow {
            partition: name.clone(),
            row_version: version,
            ..generator.dynamic_partition()
        });
        delta.partition_sets.push(servo_engine::rows::PartitionSetRow {
            name,
            row_version: version,
            ..generator.partition_set()
        });
        let mut definition = generator.asset_definition();
        definition.asset_key = format!("demo/asset_{n}").parse().unwrap();
        definition.row_version = version;
        delta.asset_definitions.push(definition);
        let ended = servo_engine::rows::DeploymentRow { row_version: version, ..generator.deployment() };
        delta.ended_deployments.push(ended);
        let mut status = generator.partition_status();
        status.partition_key = (n > 0).then(|| format!("n=i:{n}").parse().unwrap());
        status.row_version = version;
        delta.partition_status.push(status);
        delta.materializations.push(generator.materialization());
        delta.check_results.push(generator.check_result());
        let waiting = servo_engine::rows::QuarantineRow { row_version: version, ..generator.quarantine() };
        delta.quarantine.push(waiting);
    }
    let newest = servo_engine::rows::DeploymentRow {
        number: seq,
        row_version: event((seq - 1) * 1_000),
        ..generator.deployment()
    };
    delta.deployments.push(newest);
    delta.gone.deployments.extend(model.deployments.keys().copied());
    delta.gone.runs.extend(model.runs.keys().next());
    delta.gone.timers.extend(model.timers.keys().next().cloned());
    delta.gone.dynamic_partitions.extend(model.dynamic_partitions.keys().next().cloned());
    delta.gone.quarantine.extend(model.quarantine.keys().next().cloned());
    delta
}

#[tokio::test]
async fn duckdb_reads_every_table_as_it_lies_on_disk() {
    let directory = Directory::new();
    let limits = Limits { l0_max_count: 2, tier_fanout: 3, ..Limits::default() };
    let mut compactor = open(&directory.blobs, 1, 1, limits).await;
    let (mut generator, mut model) = (Generator::new(11), Model::default());
    for seq in 1..=8 {
        let delta = delta(&mut generator, seq, &model);
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
    for table in TABLES {
        assert_eq!(seen[table]["stored"], seen[table]["declared"], "{table}");
        assert_eq!(seen[table]["columns"]["tenant_id"], "VARCHAR", "{table}");
        assert_eq!(seen[table]["columns"]["row_version"], "VARCHAR", "{table}");
        assert!(!seen[table]["rows"].as_array().unwrap().is_empty(), "{table}");
    }
    assert_eq!(seen["runs"]["columns"]["created_at"], "TIMESTAMP WITH TIME ZONE");
    assert_eq!(seen["idempotency_keys"]["columns"]["key_hash"], "BLOB");

    let hot = projection.hot_rows().await.unwrap();
    for (table, rows) in [
        ("asset_definitions", hot.asset_definitions.len()),
        ("partition_status", hot.partition_status.len()),
        ("dynamic_partitions", hot.dynamic_partitions.len()),
        ("dynamic_partition_sets", hot.partition_sets.len()),
        ("quarantine", hot.quarantine.len()),
    ] {
        assert_eq!(seen[table]["rows"].as_array().unwrap().len(), rows, "{table}");
    }
    let mut runs: Vec<RunRow> = hot.runs;
    runs.extend(projection.runs_before(None, 1_000, &RunFilter::default()).await.unwrap());
    let rows = seen["runs"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), runs.len());
    for run in runs {
        let row = rows.iter().find(|row| row["run_id"] == run.run_id.to_string()).unwrap();
        assert_eq!(row["tenant_id"], layout().tenant().as_str());
        assert_eq!(row["run_key"], run.run_key);
        assert_eq!(row["state"], run.state.name());
        assert_eq!(row["priority"], run.priority);
        assert_eq!(row["tasks_total"], run.tasks_total);
        assert_eq!(row["created_at"], run.created_at.as_millis());
        assert_eq!(row["finished_at"].as_i64(), run.finished_at.map(|at| at.as_millis()));
        assert_eq!(row["cancel_actor"].as_str(), run.cancel_actor.as_deref());
        assert_eq!(row["row_version"], run.row_version.to_string());
    }
}
