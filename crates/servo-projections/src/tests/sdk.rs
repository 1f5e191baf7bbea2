//! What `servo sql` of the SDK knows of the tables, and that it sees the rows that the engine sees.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use arrow_schema::{DataType, TimeUnit};
use servo_core::{EventId, RunId, Timestamp};
use servo_engine::HotRows;
use servo_engine::rows::{Delta, DynamicPartitionRow, PartitionStatusRow, RunRow, TimerRow};

use super::duckdb::python;
use super::generate::Generator;
use super::support::{Directory, empty_delta, event, latest, layout, now, open};
use crate::Limits;
use crate::table::{HotTable, Shape, Table, schema};
use crate::tables::{
    AssetDefinitions, CheckResults, Deployments, DynamicPartitions, Edges, Idempotency, Materializations,
    Outbox, PartitionSets, PartitionStatuses, Quarantine, RunKeyConflicts, RunKeys, Runs, TABLES, Tasks,
    Timers,
};

fn sdk() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/src")
}

/// The type of a column as DuckDB calls it.
fn sql_type(data_type: &DataType) -> &'static str {
    let known = [
        (DataType::Utf8, "VARCHAR"),
        (DataType::Boolean, "BOOLEAN"),
        (DataType::Int32, "INTEGER"),
        (DataType::Int64, "BIGINT"),
        (DataType::UInt64, "UBIGINT"),
        (DataType::FixedSizeBinary(16), "BLOB"),
        (DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())), "TIMESTAMP WITH TIME ZONE"),
    ];
    let found = known.iter().find(|(known, _)| known == data_type);
    found.unwrap_or_else(|| panic!("say here what SQL calls {data_type}")).1
}

fn described<T: Table>(key: &[&str]) -> (&'static str, String) {
    let schema = schema::<T>(Shape::Settled);
    let columns: Vec<String> = schema
        .fields()
        .iter()
        .map(|field| format!("      \"{}\": \"{}\"", field.name(), sql_type(field.data_type())))
        .collect();
    let key: Vec<String> = key.iter().map(|name| format!("\"{name}\"")).collect();
    let text = format!(
        "  \"{}\": {{\n    \"key\": [{}],\n    \"columns\": {{\n{}\n    }}\n  }}",
        T::NAME,
        key.join(", "),
        columns.join(",\n")
    );
    (T::NAME, text)
}

fn described_hot<T: HotTable>() -> (&'static str, String) {
    let key: Vec<&str> = T::key_arrays(&[]).into_iter().map(|(name, _)| name).collect();
    described::<T>(&key)
}

#[test]
fn the_sdk_knows_every_table_with_its_key_and_its_columns() {
    let known = [
        described_hot::<Runs>(),
        described_hot::<Tasks>(),
        described_hot::<Edges>(),
        described_hot::<Timers>(),
        described_hot::<Outbox>(),
        described_hot::<AssetDefinitions>(),
        described_hot::<Deployments>(),
        described_hot::<PartitionStatuses>(),
        described::<Materializations>(&[]),
        described::<CheckResults>(&[]),
        described_hot::<Quarantine>(),
        described_hot::<DynamicPartitions>(),
        described_hot::<PartitionSets>(),
        described::<RunKeys>(&[]),
        described::<RunKeyConflicts>(&[]),
        described::<Idempotency>(&[]),
    ];
    assert_eq!(known.each_ref().map(|(name, _)| *name), TABLES);
    let texts: Vec<&str> = known.iter().map(|(_, text)| text.as_str()).collect();
    let expected = format!("{{\n{}\n}}\n", texts.join(",\n"));
    let path = sdk().join("servo/sql/tables.json");
    if std::env::var_os("SERVO_UPDATE").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        found,
        expected,
        "{} differs; write it anew: SERVO_UPDATE=1 cargo test -p servo-projections the_sdk_knows",
        path.display()
    );
}

/// Few keys that come, change and go again and again. Versions go up and down, as no log would have them: the
/// rule for merging says what counts all the same.
fn delta(generator: &mut Generator, seq: u64) -> Delta {
    let mut delta = empty_delta(seq);
    for n in 0..6_u64 {
        let version = event(generator.below(20) * 1_000 + seq * 10 + n);
        let (key, asset) = (format!("key {n}"), "demo/asset".parse().unwrap());
        match generator.below(4) {
            0 => {
                let run_id = RunId::from_u128(n.into());
                delta.runs.push(RunRow { run_id, row_version: version, ..generator.run() });
                delta.timers.push(TimerRow { timer_id: key, row_version: version, ..generator.timer() });
                let partition_key = (n > 0).then(|| format!("n=i:{n}").parse().unwrap());
                delta.partition_status.push(PartitionStatusRow {
                    asset_key: asset,
                    partition_key,
                    row_version: version,
                    ..generator.partition_status()
                });
            }
            1 => {
                delta.gone.runs.push(RunId::from_u128(n.into()));
                delta.gone.timers.push(key.clone());
                delta.dynamic_partitions.push(DynamicPartitionRow {
                    name: key.clone(),
                    partition: key,
                    row_version: version,
                    ..generator.dynamic_partition()
                });
            }
            2 => delta.gone.dynamic_partitions.push((key.clone(), key)),
            _ => {}
        }
    }
    delta
}

/// The rows of the engine as a sorted list of lines.
fn rows_of(hot: &HotRows) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |table: &str, key: String, version: EventId, at: Timestamp| {
        lines.push(format!("{table} {key} {version} {}", at.as_millis()));
    };
    for row in &hot.runs {
        add("runs", row.run_id.to_string(), row.row_version, row.created_at);
    }
    for row in &hot.timers {
        add("timers", row.timer_id.clone(), row.row_version, row.fire_at);
    }
    for row in &hot.partition_status {
        let key = row.partition_key.as_ref().map_or_else(|| "-".to_owned(), |key| key.canonical().to_owned());
        add("partition_status", key, row.row_version, row.last_attempt_at);
    }
    for row in &hot.dynamic_partitions {
        add("dynamic_partitions", row.partition.clone(), row.row_version, row.added_at);
    }
    lines.sort_unstable();
    lines
}

/// The same as `servo sql` sees them.
fn rows_seen(directory: &Path) -> Vec<String> {
    let mut query = String::new();
    for (table, key, at) in [
        ("runs", "run_id", "created_at"),
        ("timers", "timer_id", "fire_at"),
        ("partition_status", "coalesce(partition_key, '-')", "last_attempt_at"),
        ("dynamic_partitions", "partition", "added_at"),
    ] {
        let also = if query.is_empty() { "" } else { " union all " };
        write!(
            query,
            "{also}select concat_ws(' ', '{table}', {key}, row_version, epoch_ms({at})) as line from {table}"
        )
        .unwrap();
    }
    let output = Command::new(python())
        .args(["-m", "servo.sql", "--json", "--tenant", layout().tenant().as_str()])
        .args(["--workspace", layout().workspace().as_str(), "--dir"])
        .arg(directory)
        .arg(query)
        .env("PYTHONPATH", sdk())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let rows: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let mut lines: Vec<String> = rows.iter().map(|row| row["line"].as_str().unwrap().to_owned()).collect();
    lines.sort_unstable();
    lines
}

#[tokio::test]
async fn servo_sql_sees_the_rows_that_the_engine_sees() {
    for (seed, l0_max_count) in [(1, 3), (2, 5), (3, 50)] {
        let directory = Directory::new();
        let limits = Limits { l0_max_count, ..Limits::default() };
        let mut compactor = open(&directory.blobs, 1, 1, limits).await;
        let mut generator = Generator::new(seed);
        for seq in 1..=13 {
            compactor.flush(delta(&mut generator, seq), now()).await.unwrap();
        }
        let projection = latest(&directory.blobs).await;
        assert!(!projection.manifest().l0_deltas.is_empty(), "there is something to merge");
        assert_eq!(projection.manifest().base_snapshot.is_some(), l0_max_count < 13);
        let expected = rows_of(&projection.hot_rows().await.unwrap());
        assert!(expected.len() > 6, "{expected:?}");
        assert_eq!(rows_seen(directory.root.path()), expected, "seed {seed}");
    }
}
