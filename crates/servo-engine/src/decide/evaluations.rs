//! Results of evaluations: what a function returned becomes a tick or a record, with its runs, in one batch. If anything
//! of it cannot be, nothing of it is: the evaluation has failed.

use std::collections::BTreeMap;
use std::sync::Arc;

use servo_core::planted::{self, Mistake};
use servo_core::{EvaluationId, Fingerprint, RunId, Timestamp};

use super::{Decision, NoRun, known_key, newest, partitions, request_run};
use crate::command::{ChangePartitions, Reply, StoredRunKey, TriggerSchedule};
use crate::controllers::schedules;
use crate::definitions::SensorDef;
use crate::evaluation::{
    Evaluated, EvaluationOutcome, EvaluationReport, EvaluationResult, MAX_ATTEMPTS, MAX_ERROR, RequestSpec,
    Subject, chosen_key, cut, delay_after,
};
use crate::event::{
    DynamicPartitionsChanged, EventData, RequestedRun, RunSource, ScheduleEvaluationFailed, SensorEvaluated,
    SensorTrigger, manual_tick_id,
};
use crate::fold::change_partitions;
use crate::lifecycle::{SensorKind, SensorStatus, TickStatus};
use crate::planner::PartitionChoice;
use crate::principal::{Caller, Principal};
use crate::refusal::Refusal;
use crate::requests::{RunRequest, plan};
use crate::state::{PendingEvaluation, Schedule, Sensor, State};

/// A worker has answered.
pub(super) fn evaluated(state: &State, secret: &[u8], answer: &Evaluated, now: Timestamp) -> Decision {
    let chosen = answer.report.run_keys(answer.subject);
    if let Err(stale) = looked_up(state, secret, &chosen, &answer.stored_keys) {
        return Decision::refuse(stale);
    }
    let events = match answer.subject {
        Subject::Schedule(id) => match state.schedules.get(id) {
            Some(schedule) => of_schedule(state, secret, schedule, answer, now),
            None => Vec::new(),
        },
        Subject::Sensor(id) => match state.sensors.get(id) {
            Some(sensor) => of_sensor(state, secret, sensor, answer, now),
            None => Vec::new(),
        },
    };
    let principal = events.first().map_or_else(Principal::system, EventData::usual_principal);
    Decision { events, principal, answer: super::Answer::Now(Ok(Reply::Done)) }
}

/// Refuses run keys that have left memory and that the caller has not looked up in tables that have them.
pub(super) fn looked_up(
    state: &State,
    secret: &[u8],
    chosen: &[Arc<str>],
    stored: &BTreeMap<Arc<str>, StoredRunKey>,
) -> Result<(), Refusal> {
    for key in chosen {
        let run = RunId::derive(secret, state.tenant(), state.workspace(), key);
        known_key(state, run, &stored.get(key).cloned().unwrap_or_default())?;
    }
    Ok(())
}

/// The tick that was evaluated, with its runs. An answer to another call changes nothing: the tick is evaluated again.
fn of_schedule(
    state: &State,
    secret: &[u8],
    schedule: &Schedule,
    answer: &Evaluated,
    now: Timestamp,
) -> Vec<EventData> {
    match schedule.evaluating.as_ref().filter(|it| it.evaluation_id == answer.evaluation_id) {
        Some(_) => {
            let result = answer.report.result();
            tick(state, secret, schedule, result, answer.report.output.clone(), &answer.stored_keys, now)
        }
        None => Vec::new(),
    }
}

/// Makes the tick that a schedule was evaluated for, or notes that it has to be evaluated again.
pub(crate) fn tick(
    state: &State,
    secret: &[u8],
    schedule: &Schedule,
    result: Result<EvaluationResult, String>,
    output: Option<String>,
    stored: &BTreeMap<Arc<str>, StoredRunKey>,
    now: Timestamp,
) -> Vec<EventData> {
    let Some((pending, scheduled_for)) = schedule.evaluating.as_ref().zip(schedule.next_tick_at) else {
        return Vec::new();
    };
    let caller = Caller::from(Principal::controller("schedules"));
    let made = result.and_then(|result| {
        let tick = schedules::ticked(schedule, scheduled_for, TickStatus::Triggered, None);
        let key = format!("sched:{}", tick.tick_id);
        let base = schedules::request(schedule, scheduled_for, caller);
        let subject = Subject::Schedule(schedule.id);
        let made = runs(state, secret, subject, &base, &key, &result, stored, scheduled_for, now)?;
        Ok((tick, result.skip, made))
    });
    match made {
        Ok((mut tick, skip, made)) => {
            if made.runs.is_empty() {
                tick.status = TickStatus::Skipped;
                let reason = skip.or_else(|| made.nothing.clone());
                tick.reason = Some(reason.unwrap_or_else(|| "the function requested nothing".to_owned()));
            }
            made.describe(&mut tick.asset_selection, &mut tick.partition_selection);
            (tick.runs, tick.output) = (made.runs, output);
            let mut events = vec![EventData::ScheduleTicked(tick)];
            events.extend(made.events);
            events
        }
        Err(error) if pending.attempt < MAX_ATTEMPTS => {
            vec![EventData::ScheduleEvaluationFailed(ScheduleEvaluationFailed {
                schedule_id: schedule.id,
                scheduled_for,
                attempt: pending.attempt,
                error: cut(&error, MAX_ERROR),
                retry_at: now.saturating_add(delay_after(pending.attempt)),
                output,
            })]
        }
        Err(error) => {
            let reason = format!("after {} tries: {}", pending.attempt, cut(&error, MAX_ERROR));
            let mut tick = schedules::ticked(schedule, scheduled_for, TickStatus::Failed, Some(reason));
            tick.output = output;
            vec![EventData::ScheduleTicked(tick)]
        }
    }
}

/// A tick that somebody asks for, of a schedule whose function was called for it.
pub(super) fn manual_tick(
    state: &State,
    secret: &[u8],
    schedule: &Schedule,
    command: &TriggerSchedule,
    result: &EvaluationResult,
    now: Timestamp,
) -> Result<(RunId, Vec<EventData>), String> {
    let mut base = schedules::request(schedule, now, command.caller.clone());
    if !command.partitions.is_empty() {
        base.partitions.clone_from(&command.partitions);
    }
    base.config.extend(command.config.clone());
    let mut tick = schedules::ticked(schedule, now, TickStatus::Triggered, None);
    (tick.tick_id, tick.manual) = (manual_tick_id(schedule.id, now), true);
    let key = format!("sched:{}", tick.tick_id);
    let subject = Subject::Schedule(schedule.id);
    let result = &asked_by_hand(result, command);
    let made = runs(state, secret, subject, &base, &key, result, &command.stored_keys, now, now)?;
    let first = made.runs.first().map(|run| run.run_id).ok_or_else(|| {
        let reason = result.skip.as_deref().or(made.nothing.as_deref()).unwrap_or("without a reason");
        format!("its function requested nothing: {reason}")
    })?;
    made.describe(&mut tick.asset_selection, &mut tick.partition_selection);
    tick.runs = made.runs;
    let mut events = vec![EventData::ScheduleTicked(tick)];
    events.extend(made.events);
    Ok((first, events))
}

/// The requests of a function, with what somebody asks for by hand instead of what it chose.
fn asked_by_hand(result: &EvaluationResult, command: &TriggerSchedule) -> EvaluationResult {
    let mut result = result.clone();
    for spec in &mut result.requests {
        if !command.partitions.is_empty() {
            spec.partition = None;
        }
        spec.config.extend(command.config.clone());
    }
    let mut requests = Vec::with_capacity(result.requests.len());
    for spec in std::mem::take(&mut result.requests) {
        if !requests.contains(&spec) {
            requests.push(spec);
        }
    }
    EvaluationResult { requests, ..result }
}

fn of_sensor(
    state: &State,
    secret: &[u8],
    sensor: &Sensor,
    answer: &Evaluated,
    now: Timestamp,
) -> Vec<EventData> {
    let pending = sensor.evaluating.as_ref().filter(|it| it.evaluation_id == answer.evaluation_id);
    // An answer that comes after its deadline was recorded as a failure then.
    let Some(pending) = pending else { return Vec::new() };
    let outcome = SensorOutcome {
        stored: answer.stored_keys.clone(),
        ..SensorOutcome::answer(pending, answer.report.result(), answer.report.output.clone())
    };
    evaluate(state, secret, sensor, outcome, now)
}

/// The outcome of one evaluation of a sensor.
pub(crate) struct SensorOutcome {
    pub(crate) evaluation_id: Option<EvaluationId>,
    pub(crate) trigger: SensorTrigger,
    pub(crate) attempt: u32,
    /// Who asked for it, if somebody did.
    pub(crate) manual: Option<Caller>,
    pub(crate) expected_state_version: Option<u64>,
    pub(crate) result: Result<EvaluationResult, String>,
    pub(crate) output: Option<String>,
    pub(crate) stored: BTreeMap<Arc<str>, StoredRunKey>,
}

impl SensorOutcome {
    /// The answer to a call.
    pub(crate) fn answer(
        pending: &PendingEvaluation,
        result: Result<EvaluationResult, String>,
        output: Option<String>,
    ) -> Self {
        Self {
            evaluation_id: Some(pending.evaluation_id),
            trigger: pending.trigger.clone(),
            attempt: pending.attempt,
            manual: None,
            expected_state_version: Some(pending.expected_state_version),
            result,
            output,
            stored: BTreeMap::new(),
        }
    }
}

/// The record of an evaluation and the runs that it requests.
pub(crate) fn evaluate(
    state: &State,
    secret: &[u8],
    sensor: &Sensor,
    outcome: SensorOutcome,
    now: Timestamp,
) -> Vec<EventData> {
    let mut name = outcome.trigger.eval_id(sensor.id, sensor.cursor.as_deref());
    if outcome.attempt > 1 {
        name = format!("{name}:{}", outcome.attempt);
    }
    let mut record = SensorEvaluated {
        sensor_id: sensor.id,
        eval_id: name.as_str().into(),
        evaluation_id: outcome.evaluation_id,
        trigger: outcome.trigger,
        attempt: outcome.attempt,
        manual: outcome.manual.is_some(),
        definition_version: sensor.definition_version,
        expected_state_version: outcome.expected_state_version,
        cursor_before: sensor.cursor.clone(),
        cursor_after: None,
        status: SensorStatus::NoNewData,
        reason: None,
        run_requests: Vec::new(),
        retry_at: None,
        output: outcome.output,
    };
    // L2-INV-12: what was evaluated on another state is recorded, and nothing of it counts.
    let is_stale = outcome.expected_state_version.is_some_and(|known| known != sensor.state_version);
    if is_stale && !planted::has(Mistake::CursorWithoutCas) {
        let call = outcome.evaluation_id.map(|id| id.to_string()).unwrap_or_default();
        record.eval_id = format!("{name}:stale:{call}").into();
        record.status = SensorStatus::Stale;
        record.reason =
            Some("the sensor was changed while it was evaluated; its runs are dropped".to_owned());
        return vec![EventData::SensorEvaluated(record)];
    }
    let caller = outcome.manual.unwrap_or_else(|| Principal::controller("sensors").into());
    let base = base_request(&sensor.definition, sensor, &record.eval_id, caller);
    let key = format!("sensor:{name}");
    let subject = Subject::Sensor(sensor.id);
    let made = outcome.result.and_then(|result| {
        let made = runs(state, secret, subject, &base, &key, &result, &outcome.stored, now, now)?;
        Ok((result, made))
    });
    match made {
        Ok((result, made)) => {
            record.cursor_after = result.cursor;
            if !made.runs.is_empty() {
                record.status = SensorStatus::Triggered;
            } else {
                record.reason = result.skip;
            }
            record.run_requests = made.runs;
            let mut events = vec![EventData::SensorEvaluated(record)];
            events.extend(made.events);
            events
        }
        Err(error) => {
            record.status = SensorStatus::Failed;
            record.reason = Some(cut(&error, MAX_ERROR));
            record.retry_at = retry_at(sensor, &record, now);
            vec![EventData::SensorEvaluated(record)]
        }
    }
}

/// When a failed evaluation is tried again.
fn retry_at(sensor: &Sensor, record: &SensorEvaluated, now: Timestamp) -> Option<Timestamp> {
    if record.manual {
        return None;
    }
    match sensor.definition.kind() {
        SensorKind::Poll => {
            let delay = delay_after(sensor.failures.saturating_add(1)).max(sensor.definition.interval());
            Some(now.saturating_add(delay))
        }
        SensorKind::Push | SensorKind::Asset | SensorKind::Run => {
            (record.attempt < MAX_ATTEMPTS).then(|| now.saturating_add(delay_after(record.attempt)))
        }
    }
}

fn base_request(
    definition: &SensorDef,
    sensor: &Sensor,
    evaluation: &Arc<str>,
    caller: Caller,
) -> RunRequest {
    RunRequest {
        selection: definition.selection.clone().unwrap_or_default(),
        config: definition.config.clone(),
        priority: definition.priority,
        labels: definition.tags.clone(),
        source: RunSource::Sensor { id: sensor.id.to_string().into(), evaluation: evaluation.clone() },
        caller,
        ..RunRequest::default()
    }
}

impl Sensor {
    /// Plans what an evaluation asks for, with the partitions that it adds, and changes nothing: how many tasks each
    /// request would have, or why it cannot be planned.
    pub fn preview(
        &self,
        state: &State,
        result: &EvaluationResult,
        now: Timestamp,
    ) -> Vec<Result<usize, String>> {
        let base = base_request(&self.definition, self, &"preview".into(), Caller::default());
        let added = match added_partitions(state, result, &base.caller) {
            Ok(added) => added,
            Err(problem) => return result.requests.iter().map(|_| Err(problem.clone())).collect(),
        };
        let with_keys = with_keys(state, &added, now);
        let state = with_keys.as_ref().unwrap_or(state);
        let planned = |spec| newest(filled(&base, spec), |request| plan(state, request, now)).0;
        let tasks = |spec| match planned(spec) {
            Ok(run) => Ok(run.planned.plan.tasks().len()),
            Err(error) => Err(error.to_string()),
        };
        result.requests.iter().map(tasks).collect()
    }
}

/// The runs of an evaluation, and the events that request them.
#[derive(Default)]
struct MadeRuns {
    runs: Vec<RequestedRun>,
    events: Vec<EventData>,
    asked: BTreeMap<Arc<str>, Fingerprint>,
    last: Option<(String, PartitionChoice)>,
    /// Why a request has become no run where nothing is to be made.
    nothing: Option<String>,
}

impl MadeRuns {
    /// Says what the last of them is about, if there are any.
    fn describe(&self, selection: &mut String, partitions: &mut PartitionChoice) {
        if let Some((selected, chosen)) = &self.last {
            selection.clone_from(selected);
            partitions.clone_from(chosen);
        }
    }
}

/// Plans all runs that a function asks for, with the partitions that it adds; the first problem if there is any.
#[allow(clippy::too_many_arguments)]
fn runs(
    state: &State,
    secret: &[u8],
    subject: Subject,
    base: &RunRequest,
    key: &str,
    result: &EvaluationResult,
    stored: &BTreeMap<Arc<str>, StoredRunKey>,
    at: Timestamp,
    now: Timestamp,
) -> Result<MadeRuns, String> {
    result.check()?;
    let mut made = MadeRuns::default();
    let added = added_partitions(state, result, &base.caller)?;
    let with_keys = with_keys(state, &added, now);
    let state = with_keys.as_ref().unwrap_or(state);
    made.events.extend(added.into_iter().map(EventData::DynamicPartitionsChanged));
    let count = result.requests.len();
    let (queued, free) = (state.queued_runs(), state.free_run_places());
    let limit = state.settings().max_queued_runs as usize;
    if count > 1 && queued + count > limit.saturating_add(free) {
        return Err(format!(
            "it requests {count} runs, and {queued} wait already: at most {limit} may (max_queued_runs)"
        ));
    }
    for (position, spec) in result.requests.iter().enumerate() {
        let (run_key, stored_key): (Arc<str>, _) = match &spec.run_key {
            Some(chosen) => {
                let whole = chosen_key(subject, chosen);
                let stored = stored.get(&whole).cloned().unwrap_or_default();
                (whole, Some(stored))
            }
            None if count == 1 => (key.into(), None),
            None => (format!("{key}:{position}").into(), None),
        };
        let request = filled(base, spec);
        let asked = request.fingerprint(None);
        if let Some(known) = made.asked.insert(run_key.clone(), asked.clone()) {
            if known == asked {
                continue;
            }
            let key = spec.run_key.as_deref().unwrap_or_default();
            return Err(format!("it requests two different runs under the run key {key:?}"));
        }
        let found = match request_run(state, secret, run_key, request, stored_key, at, now) {
            Ok(found) => found,
            Err(NoRun::NothingToMake(reason)) => {
                made.nothing = Some(reason);
                continue;
            }
            Err(NoRun::Problem(problem)) => return Err(problem),
        };
        // Of several, the run queue decides in the same step how many may start.
        let starts = |event: &EventData| matches!(event, EventData::RunTriggered(_));
        made.events.extend(found.events.into_iter().filter(|event| count == 1 || !starts(event)));
        made.last = Some((found.request.selection, found.request.partitions));
        made.runs.push(found.run);
    }
    let new = made.events.iter().filter(|event| matches!(event, EventData::RunRequested(_))).count() as u64;
    if let Some(left) = state.daily_runs_left(now).filter(|left| new > *left) {
        return Err(format!("it requests {new} runs, and {left} may be asked for today (max_daily_runs)"));
    }
    Ok(made)
}

/// The state with new keys, if there are any: only with them can their runs be planned.
fn with_keys(state: &State, added: &[DynamicPartitionsChanged], now: Timestamp) -> Option<State> {
    (!added.is_empty()).then(|| {
        let mut with_keys = state.clone();
        added.iter().for_each(|change| change_partitions(&mut with_keys, change, now));
        with_keys
    })
}

fn filled(base: &RunRequest, spec: &RequestSpec) -> RunRequest {
    let mut request = base.clone();
    if let Some(selection) = &spec.selection {
        request.selection.clone_from(selection);
    }
    if let Some(partition) = &spec.partition {
        request.partitions = PartitionChoice { keys: vec![partition.clone()], ..PartitionChoice::default() };
    }
    request.config.extend(spec.config.clone());
    request.labels.extend(spec.tags.clone());
    request.priority = spec.priority.unwrap_or(request.priority);
    request
}

/// The changes of dynamic partitions that make a difference.
fn added_partitions(
    state: &State,
    result: &EvaluationResult,
    caller: &Caller,
) -> Result<Vec<DynamicPartitionsChanged>, String> {
    let mut changes = Vec::new();
    for (name, keys) in &result.add_partitions {
        let command = ChangePartitions {
            name: name.clone(),
            add: keys.clone(),
            remove: Vec::new(),
            caller: caller.clone(),
        };
        let change = partitions::difference(state, &command).map_err(|refusal| refusal.to_string())?;
        if !change.added.is_empty() {
            changes.push(change);
        }
    }
    Ok(changes)
}

impl EvaluationReport {
    /// The result, or why there is none.
    pub(crate) fn result(&self) -> Result<EvaluationResult, String> {
        match &self.outcome {
            EvaluationOutcome::Returned(result) => Ok(result.clone()),
            EvaluationOutcome::Failed(error) => Err(error.clone()),
        }
    }
}
