//! Converts the work of an attempt to a runner's task, and its result to a report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;
use servo_core::{AssetKey, PartitionKey};
use servo_engine::outputs::{OutputReport, Usage, materialization_of};
use servo_engine::work::{Work, WorkInput, WorkOutput, WorkPiece};
use servo_engine::{DataFormat, ErrorCode, Outcome, OutputState, Report, TaskError};
use servo_queue::Envelope;

use crate::data::DataLocations;
use crate::runner::protocol::{
    CallPart, Failure, Input, Output, Partition, Piece, Previous, RunTask, WorkOutcome,
};

/// How many missing inputs a message names.
const NAMED: usize = 5;

/// Builds the runner's task from an envelope. An attempt that cannot run is refused here, without starting anything.
pub(crate) fn task_of(envelope: &Envelope, data: &DataLocations) -> Result<RunTask, TaskError> {
    let work = envelope.work.as_deref().ok_or_else(|| not_deployed(envelope))?;
    let unmade = work.outputs.iter().filter_map(missing_of);
    let missing: Vec<_> = work.inputs.iter().flat_map(missing_in).chain(unmade).collect();
    if !missing.is_empty() {
        return Err(missing_inputs(
            &envelope.task_key.asset(),
            envelope.task_key.partition().as_ref(),
            &missing,
        ));
    }
    let partition = work.partition.as_ref().map(|partition| &partition.key);
    let staging = data.layout().staging(envelope.run_id, &envelope.task_key, envelope.attempt);
    Ok(RunTask {
        run_id: envelope.run_id.to_string(),
        task_key: envelope.task_key.to_string(),
        attempt: envelope.attempt,
        attempt_id: envelope.attempt_id.to_string(),
        function: work.function.clone(),
        partition: work.partition.as_ref().map(|partition| Partition {
            key: partition.key.canonical().to_owned(),
            window: partition.window,
        }),
        call: Vec::new(),
        inputs: work.inputs.iter().map(|input| input_of(input, data)).collect::<Result<_, _>>()?,
        outputs: work.outputs.iter().map(|output| output_of(output, partition, &staging, data)).collect(),
        config: config_of(work)?,
        secrets: work.secrets.clone(),
        isolation: work.isolation,
        compute: work.compute.clone(),
    })
}

/// One task of the runner for all partitions of a call, named after the first.
///
/// A parameter is given the partitions that any of them reads, each once and in their order. It is given one value only
/// if what it reads has no partitions.
pub(crate) fn call_of<'a>(tasks: impl Iterator<Item = &'a RunTask> + Clone) -> Option<RunTask> {
    let mut call = tasks.clone().next()?.clone();
    for (position, input) in call.inputs.iter_mut().enumerate() {
        let mut known = BTreeSet::new();
        let others = tasks.clone().filter_map(|task| task.inputs.get(position));
        let pieces = others.clone().flat_map(|input| &input.pieces);
        input.pieces = pieces.filter(|piece| known.insert(piece.uri.clone())).cloned().collect();
        input.missing = others.map(|input| input.missing).max().unwrap_or_default();
        input.single = input.pieces.iter().all(|piece| piece.partition.is_none());
    }
    let part = |task: &RunTask| CallPart {
        task_key: task.task_key.clone(),
        attempt: task.attempt,
        attempt_id: task.attempt_id.clone(),
        partition: task.partition.clone(),
        outputs: task.outputs.clone(),
    };
    call.call = tasks.map(part).collect();
    Some(call)
}

/// Converts the runner's result to a report for the control plane.
pub(crate) fn report_of(
    outcome: WorkOutcome,
    error: Option<Failure>,
    outputs: Vec<OutputReport>,
    usage: Option<Usage>,
    envelope: &Envelope,
) -> Report {
    let made = outputs.iter().any(|output| output.state == OutputState::Committed);
    let error = error.map(|failure| TaskError {
        code: failure.code,
        message: failure.message,
        error_type: failure.error_type,
        error_bases: failure.error_bases,
        traceback: failure.traceback,
        suggested_action: failure.suggested_action,
        details: failure.details.into_iter().map(|(name, value)| (name, value.to_string())).collect(),
    });
    let outcome = match outcome {
        WorkOutcome::Succeeded => Outcome::Succeeded,
        WorkOutcome::Failed => Outcome::Failed,
    };
    Report {
        added_partitions: BTreeMap::new(),
        outcome,
        error: error.map(Arc::new),
        materialization_id: (made && outcome == Outcome::Succeeded)
            .then(|| materialization_of(envelope.attempt_id)),
        outputs: outputs.into(),
        usage,
    }
}

/// Drops a location that is the default one.
pub(crate) fn without_default_location(mut output: OutputReport, task: &RunTask) -> OutputReport {
    let asked = task.outputs.iter().find(|asked| asked.asset == output.asset);
    let known = asked.map(|asked| [&asked.r#final, &asked.quarantine_to]);
    output.uri = output.uri.filter(|uri| !known.is_some_and(|places| places.contains(&uri)));
    output
}

fn input_of(input: &WorkInput, data: &DataLocations) -> Result<Input, TaskError> {
    if input.external && input.io.is_none() {
        return Err(TaskError::new(
            ErrorCode::InvalidDefinition,
            format!(
                "{} is made elsewhere, so Servo has no data of it for the parameter {}; give it an io= that loads it, or \
                 name it in deps= to only depend on it",
                input.asset, input.parameter
            ),
        ));
    }
    Ok(Input {
        parameter: input.parameter.clone(),
        asset: input.asset.clone(),
        io: input.io.clone(),
        single: input.single,
        pieces: input
            .pieces
            .iter()
            .map(|piece| piece_of(&input.asset, input.external, piece, data))
            .collect(),
        missing: input.missing,
    })
}

fn piece_of(asset: &AssetKey, is_external: bool, piece: &WorkPiece, data: &DataLocations) -> Piece {
    let (layout, partition) = (data.layout(), piece.partition.as_ref());
    let place = match piece.materialization_id {
        Some(id) => layout.materialization(asset, partition, id),
        None => layout.data_home(asset, partition),
    };
    let format = match piece.format {
        // Where it is, only its record says.
        Some(DataFormat::External) => None,
        None if is_external => Some(DataFormat::Io),
        format => format,
    };
    Piece {
        partition: partition.map(|key| key.canonical().to_owned()),
        uri: data.uri(&place),
        format,
        materialization_id: piece.materialization_id,
    }
}

fn output_of(
    output: &WorkOutput,
    partition: Option<&PartitionKey>,
    staging: &str,
    data: &DataLocations,
) -> Output {
    let (layout, id) = (data.layout(), output.materialization_id);
    let previous = |id| Previous { uri: data.uri(&layout.materialization(&output.asset, partition, id)) };
    Output {
        asset: output.asset.clone(),
        io: output.io.clone(),
        materialization_id: id,
        staging: data.uri(&format!("{staging}/{}", output.asset)),
        r#final: data.uri(&layout.materialization(&output.asset, partition, id)),
        quarantine_to: data.uri(&layout.quarantine(&output.asset, partition, id)),
        quarantine: output.quarantine,
        checks: output.checks.clone(),
        previous: output.previous.map(previous),
        checked: output.checked.as_ref().map(|piece| piece_of(&output.asset, false, piece, data)),
    }
}

fn config_of(work: &Work) -> Result<BTreeMap<String, Value>, TaskError> {
    let read = |(name, text): (&String, &String)| match serde_json::from_str(text) {
        Ok(value) => Ok((name.clone(), value)),
        Err(error) => Err(TaskError::new(
            ErrorCode::InvalidDefinition,
            format!("the value of {name} in the configuration is not JSON: {error}"),
        )),
    };
    work.config.iter().map(read).collect()
}

fn not_deployed(envelope: &Envelope) -> TaskError {
    let asset = envelope.task_key.asset();
    TaskError::new(
        ErrorCode::InvalidDefinition,
        format!(
            "{asset} is not among the deployed assets; deploy the project that declares it: servo deploy"
        ),
    )
}

fn missing_in(input: &WorkInput) -> impl Iterator<Item = (&AssetKey, Option<&PartitionKey>)> {
    let pieces = if input.external { &[] } else { input.pieces.as_slice() };
    let missing = pieces.iter().filter(|piece| piece.materialization_id.is_none());
    missing.map(|piece| (&input.asset, piece.partition.as_ref()))
}

/// The asset and partition of a check whose materialization was never made.
fn missing_of(output: &WorkOutput) -> Option<(&AssetKey, Option<&PartitionKey>)> {
    let checked = output.checked.as_ref().filter(|piece| piece.materialization_id.is_none())?;
    Some((&output.asset, checked.partition.as_ref()))
}

fn missing_inputs(
    reader: &AssetKey,
    partition: Option<&PartitionKey>,
    missing: &[(&AssetKey, Option<&PartitionKey>)],
) -> TaskError {
    let named = |(asset, partition): &(&AssetKey, Option<&PartitionKey>)| match partition {
        Some(partition) => format!("{asset} {partition}"),
        None => asset.to_string(),
    };
    let names: Vec<_> = missing.iter().take(NAMED).map(named).collect();
    let names = match missing.len().saturating_sub(NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    };
    let (was, them) = if missing.len() == 1 { ("was", "it") } else { ("were", "them") };
    let only = partition.map(|partition| format!(" --partition '{partition}'")).unwrap_or_default();
    let action = format!("make {them} first: servo materialize '+{reader}'{only} --missing");
    TaskError {
        suggested_action: Some(action.into()),
        ..TaskError::new(
            ErrorCode::MissingInput,
            format!("{names} {was} never materialized, and this task reads {them}"),
        )
    }
}
