//! Incidents: what happens is told to the rules that are about it, once each, and what is well again is told to those
//! that told of it before (ADR-165).
//!
//! Rules that ask for too much within an hour leave the rest out and count it.

use std::collections::BTreeSet;
use std::sync::Arc;

use servo_core::{AssetKey, Millis, PartitionKey, RuleId, RunId, ScheduleId, SensorId};

use super::notifications::RECENT;
use super::{Applied, At, Ignored, retention};
use crate::evaluation::cut;
use crate::event::{FreshnessChanged, QueueServiceChanged};
use crate::failure::{ErrorCode, TaskError};
use crate::lifecycle::{
    AutomationStatus, FreshnessStatus, NotificationStatus, NotificationTrigger, RunState, TaskState,
};
use crate::notification::{Facts, MAX_ERROR, NAMED_ASSETS};
use crate::outputs::{CheckReport, OutputReport};
use crate::rows::{Json, NotificationRow};
use crate::state::{NotificationRule, State, Task};

/// Notifications that may wait at once; what is more is left out and counted.
const MAX_WAITING: usize = 10_000;

/// Things that one rule remembers to have told of.
const MAX_OPEN: usize = 10_000;

const HOUR: Millis = Millis::from_hours(1);

pub(super) fn queue_changed(state: &mut State, at: At, payload: &QueueServiceChanged, key: &str) -> Applied {
    if !retention::remember(state, at, key) {
        return Applied::No(Ignored::Duplicate);
    }
    let queue = &*payload.queue;
    let what = open_queue(queue);
    if payload.served {
        let mut facts = Facts::new(at.time, format!("queue {queue} has a worker again"));
        facts.queue = Some(queue.to_owned());
        well_again(state, at, &what, "", &facts);
        return Applied::Yes;
    }
    let summary = format!("tasks wait for queue {queue}, and no worker serves it since {}", payload.since);
    let mut facts = Facts::new(at.time, summary);
    facts.queue = Some(queue.to_owned());
    let incident = Incident {
        trigger: NotificationTrigger::QueueWithoutWorker,
        occurrence: format!("{queue}:{}", at.id),
        about: About::Everything,
        open: Open::Named(what),
        facts,
    };
    tell(state, at, &incident);
    Applied::Yes
}

/// A run has ended.
pub(super) fn run_ended(state: &mut State, id: RunId) {
    if !state.notifications.is_about(NotificationTrigger::RunFailed) {
        return;
    }
    let Some(run) = state.run(id) else { return };
    let is_blamed = match run.state {
        RunState::Failed => |task: &&Task| task.state == TaskState::Failed,
        RunState::TimedOut => |task: &&Task| task.state != TaskState::Succeeded,
        RunState::Pending
        | RunState::Queued
        | RunState::Running
        | RunState::Cancelling
        | RunState::Cancelled
        | RunState::Succeeded => return,
    };
    let at = At { id: run.version, time: run.finished_at.unwrap_or(state.head.last_event_at) };
    let blamed: Vec<&Task> = run.tasks.iter().filter(is_blamed).collect();
    let verb = if run.state == RunState::TimedOut { "took too long" } else { "failed" };
    let summary = format!("run {id} {verb}: {} of {} tasks did not succeed", blamed.len(), run.tasks.len());
    let mut facts = Facts::new(at.time, summary);
    facts.run_id = Some(id);
    facts.error = blamed.iter().find_map(|task| Some(error_text(task.error.as_deref()?)));
    let pieces = blamed.iter().flat_map(|task| {
        let partition = task.key.partition().map(|key| key.to_string()).unwrap_or_default();
        task.assets().map(move |asset| (asset, partition.clone()))
    });
    let pieces: Vec<(AssetKey, String)> = pieces.collect();
    let incident = Incident {
        trigger: NotificationTrigger::RunFailed,
        occurrence: id.to_string(),
        about: About::Assets(pieces),
        open: Open::Assets,
        facts,
    };
    tell(state, at, &incident);
}

/// A task has failed for good.
pub(super) fn task_failed(state: &mut State, at: At, run: RunId, position: u32) {
    if !state.notifications.is_about(NotificationTrigger::RetriesExhausted) {
        return;
    }
    let Some(task) = state.runs.get(&run).map(|owner| &owner.tasks[position as usize]) else { return };
    let is_blocked = task.error.as_ref().is_some_and(|error| error.code == ErrorCode::CheckFailed);
    if task.state != TaskState::Failed || is_blocked {
        return;
    }
    let assets: Vec<AssetKey> = task.assets().collect();
    let Some(first) = assets.first() else { return };
    let tries = if task.attempt == 1 { "1 try".to_owned() } else { format!("{} tries", task.attempt) };
    let mut facts = Facts::new(at.time, format!("{first} has failed for good after {tries}"));
    facts.run_id = Some(run);
    facts.partition = task.key.partition().map(|key| key.to_string());
    facts.error = task.error.as_deref().map(error_text);
    let partition = facts.partition.clone().unwrap_or_default();
    let incident = Incident {
        trigger: NotificationTrigger::RetriesExhausted,
        // One for each asset of a run, however many of its partitions fail.
        occurrence: format!("{run}:{first}"),
        about: About::Assets(assets.into_iter().map(|asset| (asset, partition.clone())).collect()),
        open: Open::Assets,
        facts,
    };
    tell(state, at, &incident);
}

/// Checks of an output have run.
pub(super) fn checked(
    state: &mut State,
    at: At,
    run: RunId,
    output: &OutputReport,
    partition: Option<&PartitionKey>,
) {
    let notifications = &state.notifications;
    let is_asked = notifications.is_about(NotificationTrigger::CheckFailed)
        || notifications.is_about(NotificationTrigger::CheckBlocked);
    if !is_asked && !notifications.has_open() {
        return;
    }
    let (asset, partition) = (&output.asset, partition.map(ToString::to_string));
    let piece = partition.clone().unwrap_or_default();
    for check in &output.checks {
        let name = &check.name;
        let what = format!("check:{asset}:{name}");
        if check.passed {
            let mut facts = Facts::new(at.time, format!("check {name} of {asset} passes again"));
            (facts.check, facts.run_id) = (Some(name.clone()), Some(run));
            facts.assets = vec![asset.to_string()];
            well_again(state, at, &what, &piece, &facts);
            continue;
        }
        let Some((trigger, verb)) = outcome(check) else { continue };
        let mut facts = Facts::new(at.time, format!("check {name} of {asset} {verb}"));
        (facts.check, facts.run_id, facts.partition) = (Some(name.clone()), Some(run), partition.clone());
        facts.error = check.message.as_deref().or(check.error.as_deref()).map(|text| cut(text, MAX_ERROR));
        let incident = Incident {
            trigger,
            occurrence: format!("{run}:{asset}:{name}"),
            about: About::Assets(vec![(asset.clone(), piece.clone())]),
            open: Open::Named(what),
            facts,
        };
        tell(state, at, &incident);
    }
}

/// The trigger that a failed check fires; none if it is a warning.
fn outcome(check: &CheckReport) -> Option<(NotificationTrigger, &'static str)> {
    match crate::gate::verdicts(std::slice::from_ref(check)).decision {
        crate::lifecycle::GatingDecision::Block => {
            Some((NotificationTrigger::CheckBlocked, "has failed, and the data does not count"))
        }
        crate::lifecycle::GatingDecision::Warn => Some((NotificationTrigger::CheckFailed, "has failed")),
        crate::lifecycle::GatingDecision::Allow => None,
    }
}

/// An asset was materialized: what was told of it is well again.
pub(super) fn materialized(
    state: &mut State,
    at: At,
    asset: &AssetKey,
    partition: Option<&PartitionKey>,
    run: RunId,
) {
    if !state.notifications.has_open() {
        return;
    }
    let mut facts = Facts::new(at.time, format!("{asset} is made again"));
    (facts.assets, facts.run_id) = (vec![asset.to_string()], Some(run));
    let piece = partition.map(ToString::to_string).unwrap_or_default();
    well_again(state, at, &open_asset(asset), &piece, &facts);
}

/// The freshness of an asset has changed.
pub(super) fn freshness_changed(state: &mut State, at: At, payload: &FreshnessChanged) {
    let asset = &payload.asset_key;
    let what = format!("freshness:{asset}");
    match payload.new {
        FreshnessStatus::Fail => {
            let summary = match payload.lag_ms {
                Some(lag) => format!("{asset} is {lag} old, which is more than its freshness allows"),
                None => format!("{asset} was not made by the time that its freshness asks for"),
            };
            let incident = Incident {
                trigger: NotificationTrigger::FreshnessMissed,
                occurrence: format!("{asset}:{}", payload.since.as_millis()),
                about: About::Assets(vec![(asset.clone(), String::new())]),
                open: Open::Named(what),
                facts: Facts::new(at.time, summary),
            };
            tell(state, at, &incident);
        }
        FreshnessStatus::Pass => {
            let mut facts = Facts::new(at.time, format!("{asset} is fresh again"));
            facts.assets = vec![asset.to_string()];
            well_again(state, at, &what, "", &facts);
        }
        FreshnessStatus::Unknown | FreshnessStatus::Warn => {}
    }
}

/// The status of a schedule has changed.
pub(crate) fn schedule_changed(state: &mut State, at: At, id: ScheduleId, before: AutomationStatus) {
    let Some(schedule) = state.schedules.get(id).cloned() else { return };
    let mut facts = Facts::new(at.time, "");
    facts.schedule = Some(schedule.name.to_string());
    facts.error = schedule.last_error.as_deref().map(|text| cut(text, MAX_ERROR));
    let selection = schedule.definition.selection.as_deref();
    let change =
        StatusChange { what: "schedule", name: &schedule.name, before, after: schedule.status(), selection };
    status_changed(state, at, NotificationTrigger::ScheduleError, &change, facts);
}

/// The status of a sensor has changed.
pub(crate) fn sensor_changed(state: &mut State, at: At, id: SensorId, before: AutomationStatus) {
    let Some(sensor) = state.sensors.get(id).cloned() else { return };
    let mut facts = Facts::new(at.time, "");
    facts.sensor = Some(sensor.name.to_string());
    facts.error = sensor.last_error.as_deref().map(|text| cut(text, MAX_ERROR));
    let selection = sensor.definition.selection.as_deref();
    let change =
        StatusChange { what: "sensor", name: &sensor.name, before, after: sensor.status(), selection };
    status_changed(state, at, NotificationTrigger::SensorError, &change, facts);
}

struct StatusChange<'a> {
    what: &'static str,
    name: &'a str,
    before: AutomationStatus,
    after: AutomationStatus,
    /// The selection that it requests.
    selection: Option<&'a str>,
}

fn status_changed(
    state: &mut State,
    at: At,
    trigger: NotificationTrigger,
    change: &StatusChange<'_>,
    mut facts: Facts,
) {
    let StatusChange { what, name, before, after, selection } = *change;
    let open = format!("{what}:{name}");
    if after == AutomationStatus::Error && before != AutomationStatus::Error {
        facts.summary = format!("{what} {name} has failed several times in a row");
        let about = match selection.filter(|_| state.notifications.is_about(trigger)) {
            Some(text) => {
                About::Assets(state.evaluated(text).into_iter().map(|key| (key, String::new())).collect())
            }
            None => About::Everything,
        };
        let occurrence = format!("{name}:{}", at.id);
        tell(state, at, &Incident { trigger, occurrence, about, open: Open::Named(open), facts });
    } else if after == AutomationStatus::Active && before == AutomationStatus::Error {
        facts.summary = format!("{what} {name} works again");
        facts.error = None;
        well_again(state, at, &open, "", &facts);
    }
}

/// Something that happened and is told.
struct Incident {
    trigger: NotificationTrigger,
    /// The same incident always has the same name.
    occurrence: String,
    about: About,
    open: Open,
    facts: Facts,
}

/// The subject of an incident.
enum About {
    /// Assets and their partitions: rules tell of those that they select.
    Assets(Vec<(AssetKey, String)>),
    /// No asset in particular: rules that select assets do not tell of it.
    Everything,
}

/// The incident that stays open until it has recovered.
enum Open {
    /// The assets that it is about.
    Assets,
    /// Something by its name.
    Named(String),
}

pub(crate) fn open_queue(queue: &str) -> String {
    format!("queue:{queue}")
}

fn open_asset(asset: &AssetKey) -> String {
    format!("asset:{asset}")
}

/// Tells an incident to every rule that is about it.
fn tell(state: &mut State, at: At, incident: &Incident) {
    for id in state.notifications.about(incident.trigger) {
        let Some(rule) = state.notifications.get(id).cloned() else { continue };
        let mut facts = incident.facts.clone();
        let opened: Vec<(String, String)> = match &incident.about {
            About::Everything if rule.definition.selection.is_some() => continue,
            About::Everything => match &incident.open {
                Open::Named(what) => vec![(what.clone(), String::new())],
                Open::Assets => Vec::new(),
            },
            About::Assets(pieces) => {
                let assets: BTreeSet<AssetKey> = pieces.iter().map(|(asset, _)| asset.clone()).collect();
                let assets: Vec<AssetKey> = assets.into_iter().collect();
                let selected = state.selected_by(id, &assets);
                if selected.is_empty() && !assets.is_empty() {
                    continue;
                }
                name_assets(state, &selected, &mut facts);
                let mine = pieces.iter().filter(|(asset, _)| selected.binary_search(asset).is_ok());
                match &incident.open {
                    Open::Assets => mine.map(|(asset, piece)| (open_asset(asset), piece.clone())).collect(),
                    Open::Named(what) => mine.map(|(_, piece)| (what.clone(), piece.clone())).collect(),
                }
            }
        };
        let key = format!("notification:{id}:{}:{}", incident.trigger, incident.occurrence);
        open(state, at, id, opened);
        if retention::remember(state, at, &key) {
            let told = (incident.trigger, incident.occurrence.as_str());
            tell_rule(state, at, id, told, facts);
        }
    }
}

/// Something is well again, in one of its pieces: rules that told of it tell that when the last piece is.
fn well_again(state: &mut State, at: At, what: &str, piece: &str, facts: &Facts) {
    for id in state.notifications.open(what) {
        let Some(rule) = state.notifications.get(id).cloned() else { continue };
        let mut open = std::collections::BTreeMap::clone(&rule.open);
        let Some(pieces) = open.get_mut(what) else { continue };
        if !pieces.remove(piece) {
            continue;
        }
        let is_well = pieces.is_empty();
        if is_well {
            open.remove(what);
        }
        state.change_rule(id, at, |rule| rule.open = Arc::new(open));
        let wants = rule.definition.when.contains(&NotificationTrigger::Recovered) && rule.is_active();
        if is_well && wants {
            let mut facts = facts.clone();
            owners_of(state, &mut facts);
            let occurrence = format!("{what}:{}", at.id);
            tell_rule(state, at, id, (NotificationTrigger::Recovered, &occurrence), facts);
        }
    }
}

/// Notes what a rule has told of.
fn open(state: &mut State, at: At, id: RuleId, opened: Vec<(String, String)>) {
    let Some(rule) = state.notifications.get(id) else { return };
    let is_known =
        |(what, piece): &(String, String)| rule.open.get(what).is_some_and(|it| it.contains(piece));
    if opened.iter().all(is_known) {
        return;
    }
    let mut known = std::collections::BTreeMap::clone(&rule.open);
    let mut count: usize = known.values().map(BTreeSet::len).sum();
    for (what, piece) in opened {
        if count >= MAX_OPEN {
            break;
        }
        count += usize::from(known.entry(what).or_default().insert(piece));
    }
    known.retain(|_, pieces| !pieces.is_empty());
    state.change_rule(id, at, |rule| rule.open = Arc::new(known));
}

/// Tells something to a rule, unless it has told too much within the hour.
fn tell_rule(state: &mut State, at: At, id: RuleId, told: (NotificationTrigger, &str), mut facts: Facts) {
    let Some(rule) = state.notifications.get(id) else { return };
    let is_new_hour = at.time.since(rule.hour_began_at) >= HOUR || at.time < rule.hour_began_at;
    let in_hour = if is_new_hour { 0 } else { rule.told_in_hour };
    let is_full = state.notifications.waiting() >= MAX_WAITING;
    let leaves_out = in_hour >= rule.definition.max_per_hour || is_full;
    facts.left_out = if leaves_out { 0 } else { rule.left_out };
    state.change_rule(id, at, |rule| {
        if is_new_hour {
            rule.hour_began_at = at.time;
        }
        rule.told_in_hour = in_hour + u32::from(!leaves_out);
        rule.left_out = if leaves_out { rule.left_out.saturating_add(1) } else { 0 };
    });
    if leaves_out {
        return;
    }
    let Some(rule) = state.notifications.get(id).cloned() else { return };
    add(state, at, &rule, told.0, told.1, &Arc::new(facts));
}

/// Adds a notification for each destination of a rule.
pub(super) fn add(
    state: &mut State,
    at: At,
    rule: &NotificationRule,
    trigger: NotificationTrigger,
    occurrence: &str,
    facts: &Arc<Facts>,
) {
    for (position, destination) in (0u32..).zip(&rule.definition.to) {
        let row = NotificationRow {
            notification_id: format!("{}:{trigger}:{occurrence}:{position}", rule.id),
            rule_id: rule.id,
            rule_name: rule.name.to_string(),
            trigger,
            destination: position,
            channel: destination.channel(),
            status: NotificationStatus::Pending,
            attempts: 0,
            next_attempt_at: Some(at.time),
            last_error: None,
            run_id: facts.run_id,
            asset_key: facts.assets.first().cloned(),
            facts: Json(facts.clone()),
            created_at: at.time,
            finished_at: None,
            created_event_id: at.id,
            row_version: at.id,
        };
        state.put_notification(row, RECENT);
    }
}

/// Names assets and their owners.
fn name_assets(state: &State, assets: &[AssetKey], facts: &mut Facts) {
    facts.assets = assets.iter().take(NAMED_ASSETS).map(ToString::to_string).collect();
    facts.more_assets = assets.len().saturating_sub(NAMED_ASSETS) as u64;
    let definitions = assets.iter().take(NAMED_ASSETS).filter_map(|asset| state.definition(asset));
    let owners: BTreeSet<&String> = definitions.flat_map(|definition| &definition.owners).collect();
    facts.owners = owners.into_iter().cloned().collect();
}

fn owners_of(state: &State, facts: &mut Facts) {
    let assets: Vec<AssetKey> = facts.assets.iter().filter_map(|text| AssetKey::parse(text).ok()).collect();
    name_assets(state, &assets, facts);
}

fn error_text(error: &TaskError) -> String {
    let text = match &error.error_type {
        Some(name) => format!("{name}: {}", error.message),
        None => error.message.clone(),
    };
    cut(&text, MAX_ERROR)
}
