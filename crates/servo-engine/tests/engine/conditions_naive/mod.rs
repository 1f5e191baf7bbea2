//! A naive evaluator of automation conditions: looks at the whole state and the whole log, for every partition of every
//! asset, and keeps nothing. Shares no code with the engine's.

use std::collections::{BTreeMap, BTreeSet};

use servo_core::partitions::PartitionContext;
use servo_core::{
    AssetKey, Cron, EventId, Operation, PartitionKey, PartitionValue, PartitionsDef, RunId, TaskKey,
    Timestamp,
};
use servo_engine::definitions::{Condition, Definitions};
use servo_engine::{AttemptOutcome, Event, EventData, State};

/// A partition of an asset.
pub(crate) type Piece = (AssetKey, Option<PartitionKey>);

const NOW: EventId = EventId::from_u128(u128::MAX);

/// Whether a part holds, since when, and the newest fact that speaks for it.
#[derive(Clone, Copy)]
struct Value {
    holds: bool,
    at: Option<EventId>,
    cause: Option<EventId>,
}

/// Requests of conditions that were not made good, with what attempts since could read. Followed event by event, from
/// the log and the state behind each: an end counts for the requests that were open at that time.
#[derive(Default)]
pub(crate) struct OpenRequests {
    requests: BTreeMap<Piece, EventId>,
    ended: BTreeSet<(RunId, TaskKey)>,
}

impl OpenRequests {
    /// Notes an event, with the state that it led to.
    pub(crate) fn follow(&mut self, event: &Event, state: &State) {
        if let EventData::AssetsDeployed(deployed) = &event.data {
            // What an earlier condition did is forgotten with it.
            let without = deployed.upsert.iter().filter(|asset| asset.definition().automation.is_none());
            let without: BTreeSet<&AssetKey> = without.map(|it| it.key()).chain(&deployed.removed).collect();
            self.requests.retain(|(asset, _), _| !without.contains(asset));
        }
        if let EventData::ConditionsEvaluated(evaluated) = &event.data {
            for requested in &evaluated.requested {
                let keys = requested.partitions.iter().cloned().map(Some);
                let whole = requested.partitions.is_empty().then_some(None);
                for key in keys.chain(whole) {
                    self.requests.insert((requested.asset.clone(), key), event.id);
                }
            }
        }
        for run in state.runs() {
            for task in run.tasks.iter().filter(|task| task.state.is_terminal()) {
                let piece = (task.key.asset(), task.key.partition());
                let is_new = self.ended.insert((run.id, task.key.clone()));
                if let (true, Some(read), Some(open)) =
                    (is_new, task.inputs_as_of, self.requests.get_mut(&piece))
                {
                    *open = read.max(*open);
                }
            }
        }
        self.requests.retain(|(asset, key), open| {
            let made = state.latest(asset, key.as_ref()).filter(|latest| latest.event_id() == event.id);
            made.is_none_or(|latest| latest.inputs_as_of().unwrap_or(latest.event_id()) < *open)
        });
    }
}

pub(crate) struct Naive<'a> {
    pub(crate) state: &'a State,
    pub(crate) log: &'a [Event],
    pub(crate) open: &'a OpenRequests,
    pub(crate) now: Timestamp,
    definitions: std::sync::Arc<Definitions>,
    requested: BTreeSet<Piece>,
}

impl<'a> Naive<'a> {
    pub(crate) fn new(
        state: &'a State,
        log: &'a [Event],
        open: &'a OpenRequests,
        now: Timestamp,
    ) -> Option<Self> {
        let definitions = state.checked_definitions()?;
        Some(Self { state, log, open, now, definitions, requested: BTreeSet::new() })
    }

    fn at(&self) -> PartitionContext<'a> {
        PartitionContext::new(self.now, self.state.dynamic_partitions())
    }

    /// Everything that is to be requested now.
    pub(crate) fn fires(mut self) -> BTreeSet<Piece> {
        for asset in self.upstream_first() {
            let Some(condition) = self.state.condition(&asset).filter(|condition| !condition.paused) else {
                continue;
            };
            let (root, in_force) = (condition.condition.clone(), condition.in_force);
            for piece in self.pieces(&asset) {
                let handled = self.handled(&piece);
                let value = self.value(&root, &piece, &piece, handled, in_force);
                let is_news = value.cause.is_some_and(|cause| cause >= in_force && cause > handled);
                let can_be_planned = self.deps(&asset).iter().all(|dep| self.reads(&piece, *dep).1);
                if value.holds && is_news && !self.in_progress(&piece).0 && can_be_planned {
                    self.requested.insert(piece);
                }
            }
        }
        self.requested
    }

    fn upstream_first(&self) -> Vec<AssetKey> {
        let mut done: Vec<AssetKey> = Vec::new();
        while done.len() < self.definitions.assets().len() {
            for asset in self.definitions.assets() {
                let is_done = |dep: &AssetKey| *dep == asset.key || done.contains(dep);
                let deps = asset.deps.iter().map(|dep| &self.definitions.asset(dep.asset).key);
                if !done.contains(&asset.key) && deps.clone().all(is_done) {
                    done.push(asset.key.clone());
                }
            }
        }
        done
    }

    fn pieces(&self, asset: &AssetKey) -> Vec<Piece> {
        let position = self.definitions.position(asset).expect("it is deployed");
        match &self.definitions.asset(position).partitions {
            None => vec![(asset.clone(), None)],
            Some(partitions) => {
                let count = usize::try_from(partitions.count(self.at())).expect("few");
                let keys = partitions.page(0, count, self.at());
                keys.into_iter().map(|key| (asset.clone(), Some(key))).collect()
            }
        }
    }

    fn deps(&self, asset: &AssetKey) -> Vec<usize> {
        let position = self.definitions.position(asset).expect("it is deployed");
        (0..self.definitions.asset(position).deps.len()).collect()
    }

    /// The upstream partitions of one dependency, and whether all that it asks for exist.
    fn reads(&self, piece: &Piece, dep: usize) -> (Vec<Piece>, bool) {
        let position = self.definitions.position(&piece.0).expect("it is deployed");
        let asset = self.definitions.asset(position);
        let dep = &asset.deps[dep];
        let set = match (&asset.partitions, &piece.1) {
            (Some(partitions), Some(key)) => partitions.block_of(key, self.at()).expect("it exists").into(),
            _ => servo_core::partitions::PartitionSet::unpartitioned(),
        };
        let mapped = dep.mapping.upstream(&set, self.at());
        let up = self.definitions.asset(dep.asset);
        let pieces: Vec<Piece> = match &up.partitions {
            None if mapped.set.is_empty() => Vec::new(),
            None => vec![(up.key.clone(), None)],
            Some(partitions) => {
                let keys = partitions.keys_in(&mapped.set, self.at());
                keys.map(|key| (up.key.clone(), Some(key))).collect()
            }
        };
        let is_made = |piece: &Piece| {
            self.requested.contains(piece) || self.state.latest(&piece.0, piece.1.as_ref()).is_some()
        };
        let pieces = pieces.into_iter().filter(|piece| !dep.available || is_made(piece)).collect();
        (pieces, mapped.missing.is_empty())
    }

    /// The newest event that is no news: it was requested for it, made of it, or attempts since could read it.
    fn handled(&self, piece: &Piece) -> EventId {
        let made = self.state.latest(&piece.0, piece.1.as_ref());
        let made = made.map(|latest| latest.inputs_as_of().unwrap_or(latest.event_id()));
        let open = self.open.requests.get(piece).copied();
        open.max(made).unwrap_or(EventId::NIL)
    }

    fn in_progress(&self, piece: &Piece) -> (bool, Option<EventId>) {
        let runs = self.state.runs().filter(|run| {
            run.tasks.iter().any(|task| {
                !task.state.is_terminal()
                    && task.key.operation() != Operation::Check
                    && task.key.asset() == piece.0
                    && task.key.partition() == piece.1
            })
        });
        let first = runs.map(|run| run.requested).min();
        (first.is_some(), first)
    }

    fn created(&self, piece: &Piece) -> Option<EventId> {
        let position = self.definitions.position(&piece.0).expect("it is deployed");
        let partitions = self.definitions.asset(position).partitions.as_ref()?;
        let key = piece.1.as_ref()?;
        if let PartitionsDef::Dynamic { name } = partitions.def() {
            let (_, value) = key.iter().next()?;
            let PartitionValue::Str(text) = value else { return None };
            let mut added = None;
            for event in self.log {
                if let EventData::DynamicPartitionsChanged(change) = &event.data
                    && change.name == *name
                {
                    if change.added.contains(&text) && added.is_none() {
                        added = Some(event.id);
                    } else if change.removed.contains(&text) && !change.added.contains(&text) {
                        added = None;
                    }
                }
            }
            return added;
        }
        let (_, end) = partitions.window(key).ok()?;
        Some(moment(end))
    }

    fn value(
        &self,
        condition: &Condition,
        of: &Piece,
        root: &Piece,
        after: EventId,
        in_force: EventId,
    ) -> Value {
        let below = |part: &Condition| self.value(part, of, root, after, in_force);
        let state = |holds: bool, at: Option<EventId>| Value { holds, at, cause: at.filter(|_| holds) };
        let guard = |holds: bool, at: Option<EventId>| Value { holds, at, cause: None };
        let is_own = of == root;
        let requested = self.requested.contains(of);
        let latest = self.state.latest(&of.0, of.1.as_ref());
        let status = self.state.partition_status(&of.0, of.1.as_ref());
        let missing_since = || {
            let whole = (of.1.is_none() && is_own).then_some(in_force);
            self.created(of).max(whole)
        };
        match condition {
            Condition::And { of } => joined(of.iter().map(below).collect(), true),
            Condition::Or { of } => joined(of.iter().map(below).collect(), false),
            Condition::Not { of } => {
                let value = below(of);
                guard(!value.holds, value.at)
            }
            Condition::Named { of, .. } => below(of),
            Condition::NewlyTrue { of } => {
                let value = below(of);
                state(value.holds && value.at.is_some_and(|at| at > after), value.at)
            }
            Condition::Since { of: part, since } => {
                let since = below(since).at.unwrap_or(EventId::NIL);
                let value = self.value(part, of, root, since, in_force);
                let holds = value.holds && value.at.is_some_and(|at| at > since);
                Value { holds, at: value.at, cause: value.cause.filter(|_| holds) }
            }
            Condition::AnyUpstream { of: part, .. } | Condition::AllUpstream { of: part, .. } => {
                let mut values = Vec::new();
                for dep in self.deps(&of.0) {
                    let (pieces, all_exist) = self.reads(of, dep);
                    values.extend(pieces.iter().map(|up| self.value(part, up, root, after, in_force)));
                    if !all_exist {
                        values.push(guard(matches!(**part, Condition::Missing), None));
                    }
                }
                joined(values, matches!(condition, Condition::AllUpstream { .. }))
            }
            Condition::Missing if requested => guard(false, Some(NOW)),
            Condition::Missing => match latest {
                Some(latest) => guard(false, Some(latest.event_id())),
                None => state(true, missing_since()),
            },
            Condition::NewPartition => {
                let at = self.created(of);
                state(at.is_some_and(|at| at > after), at)
            }
            Condition::Updated => {
                let at = if requested { Some(NOW) } else { latest.map(|latest| latest.event_id()) };
                let holds = at.is_some_and(|at| at > after);
                if is_own { guard(holds, at) } else { state(holds, at) }
            }
            Condition::CodeChanged => {
                let deployed = self.state.definition(&of.0).and_then(|def| def.code_version.clone());
                let Some(latest) = latest else { return guard(false, None) };
                let made_by = self.state.code_version(latest).map(ToString::to_string);
                if deployed.is_some() && deployed != made_by && !requested {
                    let mut changed = None;
                    for event in self.log {
                        if let EventData::AssetsDeployed(deployed) = &event.data
                            && deployed.upsert.iter().any(|asset| *asset.key() == of.0)
                        {
                            changed = Some(event.id);
                        }
                    }
                    state(true, changed)
                } else {
                    state(false, Some(latest.event_id()))
                }
            }
            Condition::InProgress => {
                let (holds, at) = self.in_progress(of);
                let at = at.or_else(|| status.map(|status| status.last_attempt().event_id));
                if is_own { guard(holds, at) } else { state(holds, at) }
            }
            Condition::Failed => {
                let last = status.map(|status| status.last_attempt());
                let failed = last.is_some_and(|last| last.outcome == AttemptOutcome::Failed);
                state(failed && !requested, last.map(|last| last.event_id))
            }
            Condition::CronTick { cron, timezone } => {
                let zone = timezone.as_deref().unwrap_or("UTC");
                let ticks = Cron::parse(cron).expect("checked").in_zone(zone).expect("checked");
                let at = ticks.previous(self.now).map(moment);
                state(at.is_some_and(|at| at > after && at >= in_force), at)
            }
            Condition::Latest { windows } => {
                let pieces = self.pieces(&of.0);
                let is_timed = of.1.as_ref().is_some_and(|key| key.canonical().contains("=d:"));
                let newest = pieces.iter().rev().take(*windows as usize).any(|piece| piece == of);
                guard(!is_timed || newest, None)
            }
            Condition::AtMost { times, per_ms } => {
                let from = self.now.saturating_sub(*per_ms);
                let mut count = 0;
                for event in self.log.iter().filter(|event| event.at > from && event.id > in_force) {
                    if let EventData::ConditionsEvaluated(evaluated) = &event.data {
                        count += evaluated
                            .requested
                            .iter()
                            .filter(|requested| {
                                requested.asset == of.0
                                    && of.1.as_ref().is_none_or(|key| requested.partitions.contains(key))
                            })
                            .count();
                    }
                }
                guard(count < *times as usize, None)
            }
            Condition::Stale | Condition::During { .. } => unreachable!("not among those that are compared"),
        }
    }
}

fn moment(at: Timestamp) -> EventId {
    EventId::from_parts(u64::try_from(at.as_millis()).unwrap_or(0), 0)
}

fn joined(values: Vec<Value>, all: bool) -> Value {
    let holds =
        if all { values.iter().all(|value| value.holds) } else { values.iter().any(|value| value.holds) };
    let same: BTreeMap<bool, Option<EventId>> = values.iter().fold(BTreeMap::new(), |mut same, value| {
        let known = same.entry(value.holds).or_default();
        *known = (*known).max(value.at);
        same
    });
    let cause = values.iter().filter(|value| value.holds).filter_map(|value| value.cause).max();
    Value { holds, at: same.get(&holds).copied().flatten(), cause: cause.filter(|_| holds) }
}
