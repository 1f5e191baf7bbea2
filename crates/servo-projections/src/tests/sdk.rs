//! The tables that `servo sql` of the SDK knows: they match, and it sees the rows that the engine sees.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use arrow_array::{Array, ArrayRef, Int64Array, StringArray, UInt64Array};
use arrow_schema::{DataType, TimeUnit};
use servo_engine::rows::{Delta, HotRow, HotRows, Row};
use servo_engine::{for_each_append_only_table, for_each_hot_table};

use super::duckdb::python;
use super::generate::Generator;
use super::support::{Directory, check_generated, empty_delta, latest, layout, now, open};
use crate::Limits;
use crate::table::{Arrays, Shape, StoredRow, schema};

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
        (DataType::FixedSizeBinary(32), "BLOB"),
        (DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())), "TIMESTAMP WITH TIME ZONE"),
    ];
    let found = known.iter().find(|(known, _)| known == data_type);
    found.unwrap_or_else(|| panic!("say here what SQL calls {data_type}")).1
}

/// The SDK's description of a table. Rows that never change are not merged by their key.
fn described<R: StoredRow>(is_hot: bool) -> String {
    let schema = schema::<R>(Shape::Immutable);
    let columns: Vec<String> = schema
        .fields()
        .iter()
        .map(|field| format!("      \"{}\": \"{}\"", field.name(), sql_type(field.data_type())))
        .collect();
    let key = if is_hot { R::KEY } else { &[] };
    let key: Vec<String> = key.iter().map(|name| format!("\"{name}\"")).collect();
    format!(
        "  \"{}\": {{\n    \"key\": [{}],\n    \"columns\": {{\n{}\n    }}\n  }}",
        R::TABLE,
        key.join(", "),
        columns.join(",\n")
    )
}

#[test]
fn the_sdk_knows_every_table_with_its_key_and_its_columns() {
    let mut tables = Vec::new();
    for_each_hot_table!(R => tables.push(described::<R>(true)));
    for_each_append_only_table!(R => tables.push(described::<R>(false)));
    let expected = format!("{{\n{}\n}}\n", tables.join(",\n"));
    check_generated(&sdk().join("servo/sql/tables.json"), &expected);
}

/// Few keys that come, change and go again and again. Versions go up and down, as no log would have them: the
/// rule for merging says what counts all the same.
fn delta(generator: &Generator, seq: u64) -> Delta {
    let mut delta = empty_delta(seq);
    for_each_hot_table!(R => {
        let mut rows: BTreeMap<<R as Row>::Key, R> = BTreeMap::new();
        for _ in 0..generator.below(6) {
            generator.at_batch(1 + generator.below(20));
            let row: R = generator.row();
            rows.insert(row.key(), row);
        }
        for (key, row) in rows {
            match generator.below(2) {
                0 => R::changed_mut(&mut delta).push(row),
                _ => R::gone_mut(&mut delta).push(key),
            }
        }
    });
    delta
}

/// The text of a column's values; `-` for null.
fn texts(array: &ArrayRef) -> Vec<String> {
    let of_numbers = |array: &UInt64Array| array.iter().map(|n| n.map(|n| n.to_string())).collect();
    let of_signed = |array: &Int64Array| array.iter().map(|n| n.map(|n| n.to_string())).collect();
    let of_texts = |array: &StringArray| array.iter().map(|text| text.map(str::to_owned)).collect();
    let numbers = array.as_any().downcast_ref().map(of_numbers);
    let signed = || array.as_any().downcast_ref().map(of_signed);
    let texts = || array.as_any().downcast_ref().map(of_texts);
    let found: Option<Vec<Option<String>>> = numbers.or_else(signed).or_else(texts);
    let found = found.unwrap_or_else(|| panic!("say here how {} is shown", array.data_type()));
    found.into_iter().map(|text| text.unwrap_or_else(|| "-".to_owned())).collect()
}

/// Key and version of every row of the engine, as a sorted list of lines.
fn rows_of(hot: &HotRows) -> Vec<String> {
    let mut lines = Vec::new();
    for_each_hot_table!(R => {
        let arrays = Arrays::of_rows(R::hot(hot)).0;
        let mut table = vec![R::TABLE.to_owned(); R::hot(hot).len()];
        for name in R::KEY.iter().chain(&["row_version"]) {
            let (_, array) = arrays.iter().find(|(column, _)| column == name).unwrap();
            table.iter_mut().zip(texts(array)).for_each(|(line, text)| *line += &format!("|{text}"));
        }
        lines.extend(table);
    });
    lines.sort_unstable();
    lines
}

/// The same as `servo sql` sees them.
fn rows_seen(directory: &Path) -> Vec<String> {
    let mut queries: Vec<String> = Vec::new();
    for_each_hot_table!(R => {
        let columns: Vec<String> =
            R::KEY.iter().map(|name| format!("coalesce(\"{name}\"::varchar, '-')")).collect();
        let line = format!("concat_ws('|', '{}', {}, row_version)", R::TABLE, columns.join(", "));
        queries.push(format!("select {line} as line from {}", R::TABLE));
    });
    let query = queries.join(" union all ");
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
        let generator = Generator::new(seed);
        for seq in 1..=13 {
            compactor.flush(delta(&generator, seq), now()).await.unwrap();
        }
        let projection = latest(&directory.blobs).await;
        assert!(!projection.manifest().l0_deltas.is_empty(), "there is something to merge");
        assert_eq!(projection.manifest().base_snapshot.is_some(), l0_max_count < 13);
        let expected = rows_of(&projection.hot_rows().await.unwrap());
        assert!(expected.len() > 6, "{expected:?}");
        assert_eq!(rows_seen(directory.root.path()), expected, "seed {seed}");
    }
}
