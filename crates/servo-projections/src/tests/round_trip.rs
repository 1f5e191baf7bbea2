//! Rows to Parquet and back.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field as ArrowField, Schema};
use bytes::Bytes;
use proptest::prelude::*;
use servo_engine::for_each_table;
use servo_engine::rows::{
    EdgeRow, MaterializationRow, PartitionStatusRow, ReadFrom, Row, RunKeyRow, RunRow, TaskRow,
};

use super::generate::Generator;
use super::support::owner;
use crate::batch::Batch;
use crate::encode::encode;
use crate::error::Error;
use crate::files::{decode_whole, verify_whole};
use crate::table::{Arrays, SCHEMA_VERSION, StoredRow};

fn check<R: StoredRow + ReadFrom<Generator>>(seed: u64, count: usize) {
    let rows: Vec<R> = Generator::new(seed).rows(count);
    let mut encoded = encode(&owner(), &rows).unwrap();
    encoded.file.path = "a.parquet".to_owned();
    let bytes = Bytes::from(encoded.bytes);
    verify_whole(&encoded.file, &bytes).unwrap();
    let (open, batches) = decode_whole(&encoded.file, &bytes).unwrap();
    let mut back = Vec::new();
    for (group, batch) in batches.iter().enumerate() {
        let batch = Batch { rows: batch, file: &open.name, first_row: open.first_row(group), chosen: None };
        back.extend(R::read_rows(&batch, 0..batch.len()).unwrap());
    }
    assert_eq!(back, rows);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn rows_of_every_table_come_back_as_they_were(seed: u64, count in 0usize..40) {
        for_each_table!(R => check::<R>(seed, count));
    }
}

#[test]
fn many_row_groups_come_back_in_order() {
    check::<EdgeRow>(1, 10_000);
}

#[test]
fn columns_are_the_fields_of_the_rows_in_snake_case() {
    let names: Vec<&str> = RunKeyRow::COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(names, ["run_id", "run_key", "request_fingerprint", "created_at", "row_version"]);
}

/// The columns of some rows, without these, as a file of an earlier version has them.
fn without<R: StoredRow>(rows: &[R], dropped: &[&str]) -> Vec<R> {
    assert!(dropped.iter().all(|name| R::COLUMNS.iter().any(|column| column.name == *name)), "{dropped:?}");
    let columns = Arrays::of_rows(rows).0.into_iter().filter(|(name, _)| !dropped.contains(name));
    let (fields, arrays): (Vec<ArrowField>, Vec<ArrayRef>) =
        columns.map(|(name, array)| (ArrowField::new(name, array.data_type().clone(), true), array)).unzip();
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
    let batch = Batch { rows: &rows, file: "t/x.parquet", first_row: 0, chosen: None };
    R::read_rows(&batch, 0..batch.len()).unwrap()
}

#[test]
fn columns_that_a_table_has_gained_since_are_null_in_files_without_them() {
    let generator = Generator::new(5);
    let tasks: Vec<TaskRow> = generator.rows(20);
    let found = without(&tasks, &["outputs", "usage", "past_attempts"]);
    let expected =
        tasks.into_iter().map(|row| TaskRow { outputs: None, usage: None, past_attempts: None, ..row });
    assert_eq!(found, expected.collect::<Vec<_>>());

    let statuses: Vec<PartitionStatusRow> = generator.rows(20);
    let found = without(&statuses, &["last_materialization_format"]);
    let expected =
        statuses.into_iter().map(|row| PartitionStatusRow { last_materialization_format: None, ..row });
    assert_eq!(found, expected.collect::<Vec<_>>());

    let made: Vec<MaterializationRow> = generator.rows(20);
    let new = [
        "format",
        "uri",
        "row_count",
        "byte_size",
        "content_hash",
        "schema_hash",
        "schema",
        "metadata",
        "code_version",
    ];
    let expected = made.iter().cloned().map(|row| MaterializationRow {
        format: None,
        uri: None,
        row_count: None,
        byte_size: None,
        content_hash: None,
        schema_hash: None,
        schema: None,
        metadata: None,
        code_version: None,
        ..row
    });
    assert_eq!(without(&made, &new), expected.collect::<Vec<_>>());
}

fn problem(columns: Vec<(&str, ArrayRef)>) -> String {
    let fields: Vec<ArrowField> =
        columns.iter().map(|(name, array)| ArrowField::new(*name, array.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
    let batch = Batch { rows: &rows, file: "t/x.parquet", first_row: 100, chosen: None };
    let ids = batch.column::<servo_core::RunId>("run_id");
    match ids.and_then(|ids| (0..batch.len()).map(|row| ids.get(row)).collect::<Result<Vec<_>, _>>()) {
        Err(Error::Damaged { file, problem, .. }) => format!("{file}: {problem}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_wrong_column_is_named_with_file_and_row() {
    let text = |values: Vec<Option<&str>>| -> ArrayRef { Arc::new(StringArray::from(values)) };
    assert_eq!(problem(vec![("other", text(vec![]))]), "t/x.parquet: column `run_id` is missing");
    assert_eq!(
        problem(vec![("run_id", Arc::new(Int64Array::from(vec![1])))]),
        format!("t/x.parquet: column `run_id` has type {}, expected {}", DataType::Int64, DataType::Utf8)
    );
    let good = "run_aaaaaaaaaaaaaaaaaaaaaaaaaa";
    assert_eq!(
        problem(vec![("run_id", text(vec![Some(good), None]))]),
        "t/x.parquet: row 101, column `run_id`: is null, and must not be"
    );
    let message = problem(vec![("run_id", text(vec![Some(good), Some(good), Some("run_!")]))]);
    assert!(message.starts_with("t/x.parquet: row 102, column `run_id`: "), "{message}");
}

#[test]
fn json_that_is_no_such_value_is_named_with_file_and_row() {
    let rows: Vec<TaskRow> = Generator::new(4).rows(3);
    let mut columns = Arrays::of_rows(&rows).0;
    let options = columns.iter_mut().find(|(name, _)| *name == "options").unwrap();
    options.1 = Arc::new(StringArray::from(vec!["{}", r#"{"retry":"always"}"#, "{}"]));
    let fields: Vec<ArrowField> =
        columns.iter().map(|(name, array)| ArrowField::new(*name, array.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let rows = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap();
    let batch = Batch { rows: &rows, file: "t/x.parquet", first_row: 100, chosen: None };
    let error = TaskRow::read_rows(&batch, 0..batch.len()).unwrap_err().to_string();
    assert!(error.starts_with("t/x.parquet is damaged: row 101, column `options`: "), "{error}");
    assert!(error.contains("RetryPolicy"), "{error}");
}

#[test]
fn a_file_of_a_newer_version_is_refused() {
    // The version is text in the footer; a newer one of the same length keeps every offset.
    let encoded = encode::<RunRow>(&owner(), &Generator::new(3).rows(1)).unwrap();
    let (mut bytes, mut file) = (encoded.bytes, encoded.file);
    let key = b"servo.schema_version";
    let at = bytes.windows(key.len()).position(|window| window == key).unwrap();
    let digit = at + key.len() + bytes[at + key.len()..].iter().position(|byte| *byte == b'1').unwrap();
    bytes[digit] = b'2';
    file.path = "new.parquet".to_owned();
    match decode_whole(&file, &Bytes::from(bytes)) {
        Err(Error::Newer { file, found: 2, supported }) => {
            assert_eq!((file.as_str(), supported), ("new.parquet", SCHEMA_VERSION));
        }
        other => panic!("{other:?}"),
    }
}
