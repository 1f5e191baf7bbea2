//! Commits what a task has made: on this side of the socket, when its interpreter is at the next task already.
//!
//! The runner says what it has stored and which fate it deserves. Files are brought to where they belong, verified and
//! made durable together with those of other tasks, `_commit.json` is created last, and only then is it reported.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};
use servo_core::PartitionKey;
use servo_engine::outputs::OutputReport;
use servo_engine::{DataFormat, ErrorCode, OutputState, Report, TaskError};
use servo_queue::Envelope;
use servo_store::{BlobError, DataError, Output, OutputFiles};

use crate::data::DataLocations;
use crate::runner::protocol::{DeliveredData, Delivery, Finished, FinishedOutput, RunTask};
use crate::work::{report_of, without_default_location};

/// The file that makes a directory a materialization.
const MARKER: &str = "_commit.json";
/// The file that says why something is in quarantine.
const REASON: &str = "_reason.json";

/// Commits the outputs of a finished task, and gives its report.
pub(crate) async fn commit(
    finished: Finished,
    envelope: Arc<Envelope>,
    task: Arc<RunTask>,
    data: DataLocations,
) -> Report {
    let (mut reports, mut commits) = (Vec::new(), Vec::new());
    for FinishedOutput { report, delivery } in finished.outputs {
        let report = without_default_location(report, &task);
        match output_of(&report, delivery, &envelope, &data) {
            Ok(output) => commits.extend(output.map(|output| (report.asset.clone(), output))),
            Err(error) => return not_stored(reports, &report, error),
        }
        reports.push(report);
    }
    let root = data.root();
    let committed = join_all(commits.iter().map(|(_, output)| root.commit(output.clone()))).await;
    for ((asset, _), outcome) in commits.iter().zip(committed) {
        let Err(error) = outcome else { continue };
        let failed = reports.iter().find(|report| report.asset == *asset).cloned();
        for (_, output) in &commits {
            // What is left is collected anyway, and a conflict is somebody else's.
            if !matches!(error, DataError::Conflict { .. }) {
                let _left = root.remove(&output.directory).await;
            }
        }
        let failed = failed.unwrap_or_else(|| OutputReport::new(asset.clone(), OutputState::Discarded));
        return not_stored(reports, &failed, task_error(&failed, &error));
    }
    let report = report_of(finished.outcome, finished.error, reports, finished.usage, &envelope);
    Report { added_partitions: finished.added_partitions, ..report }
}

/// The output to commit; none if there is nothing to keep of it.
fn output_of(
    report: &OutputReport,
    delivery: Delivery,
    envelope: &Envelope,
    data: &DataLocations,
) -> Result<Option<Output>, TaskError> {
    let (layout, work) = (data.layout(), envelope.work.as_deref());
    let partition = work.and_then(|work| work.partition.as_ref()).map(|partition| &partition.key);
    let asked = work.and_then(|work| work.outputs.iter().find(|asked| asked.asset == report.asset));
    let Some(asked) = asked else {
        let problem = format!("the runner has made {}, which it was not asked for", report.asset);
        return Err(TaskError::new(ErrorCode::InternalError, problem));
    };
    let id = asked.materialization_id;
    let (directory, marker) = match report.state {
        // Of a function that only did something there is nothing to keep: what is known of it is told.
        OutputState::Committed if report.format == Some(DataFormat::None) => return Ok(None),
        OutputState::Committed => (layout.materialization(&report.asset, partition, id), MARKER),
        OutputState::Quarantined => (layout.quarantine(&report.asset, partition, id), REASON),
        OutputState::Discarded | OutputState::Missing => return Ok(None),
    };
    let record = record(report, &delivery, envelope, partition);
    let file = delivery.files.first().cloned();
    let is_data = matches!(report.format, Some(DataFormat::Parquet | DataFormat::Json | DataFormat::Bin));
    let expected = file.clone().filter(|_| is_data).zip(report.byte_size);
    let content = |bytes: Vec<u8>| match file.filter(|name| is_plain(name)) {
        Some(name) => Ok(OutputFiles::Content { name, bytes: bytes.into() }),
        None => Err(wrong_frame(report)),
    };
    let files = match delivery.data {
        None => OutputFiles::None,
        Some(DeliveredData::Text(text)) => content(text.into_bytes())?,
        Some(DeliveredData::Latin1(text)) => {
            let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
            content(bytes.map_err(|_| wrong_frame(report))?)?
        }
        Some(DeliveredData::Staged) => {
            let staging = layout.staging(envelope.run_id, &envelope.task_key, envelope.attempt);
            OutputFiles::Staged { directory: format!("{staging}/{}", report.asset), expected }
        }
        Some(DeliveredData::InPlace) => OutputFiles::InPlace { expected },
    };
    Ok(Some(Output { directory, files, marker, record: record.to_string().into() }))
}

/// Whose it is and what is known of it. It has no time, so that the same attempt always says the same.
fn record(
    report: &OutputReport,
    delivery: &Delivery,
    envelope: &Envelope,
    partition: Option<&PartitionKey>,
) -> Value {
    let mut record = json!({
        "asset": report.asset,
        "attempt": envelope.attempt,
        "attempt_id": envelope.attempt_id.to_string(),
        "byte_size": report.byte_size.unwrap_or_default(),
        "content_hash": report.content_hash,
        "files": delivery.files,
        "format": report.format,
        "materialization_id": servo_engine::outputs::materialization_of(envelope.attempt_id).to_string(),
        "metadata": report.metadata,
        "partition": partition.map(PartitionKey::canonical),
        "preview": delivery.preview,
        "row_count": report.row_count,
        "run_id": envelope.run_id.to_string(),
        "schema": report.schema,
        "schema_hash": report.schema_hash,
        "task_key": envelope.task_key.as_str(),
        "uri": report.uri,
    });
    if report.state == OutputState::Quarantined {
        let mut checks = json!(report.checks);
        for check in checks.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            // How long they took differs from time to time.
            check.remove("duration_ms");
        }
        record["checks"] = checks;
    }
    record
}

/// The report of a task whose outputs could not be kept.
fn not_stored(mut reports: Vec<OutputReport>, failed: &OutputReport, error: TaskError) -> Report {
    if !reports.iter().any(|report| report.asset == failed.asset) {
        reports.push(failed.clone());
    }
    // Results of checks are told whatever became of the data.
    reports.retain(|report| !report.checks.is_empty());
    for report in &mut reports {
        (report.state, report.uri) = (OutputState::Discarded, None);
    }
    Report { outputs: reports.into(), ..Report::failed(error) }
}

fn task_error(output: &OutputReport, error: &DataError) -> TaskError {
    let code = match error {
        error if error.is_full() => ErrorCode::DiskFull,
        DataError::Bucket(BlobError::Unavailable { .. }) => ErrorCode::NetworkError,
        DataError::Incomplete { .. } => ErrorCode::OutputMissing,
        DataError::Files(_) | DataError::Bucket(_) | DataError::Conflict { .. } => ErrorCode::InternalError,
    };
    TaskError::new(code, format!("{} cannot be stored: {error}", output.asset))
}

fn wrong_frame(output: &OutputReport) -> TaskError {
    let problem = format!("the runner has handed over {} in a way that is not understood", output.asset);
    TaskError::new(ErrorCode::InternalError, problem)
}

/// Whether a name is that of a file in a directory.
fn is_plain(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\\', '\0'])
}
