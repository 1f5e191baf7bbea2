//! Whether a condition holds for a partition, since when, and because of what.
//!
//! Every part has a moment: the event, or the time written as one, that made it what it is. A part that is about
//! something that happens (an update, a tick, a new partition) is true if that happened after the partition was last
//! handled: made, or requested. The newest moment of those that speak for the condition is its cause; states that only
//! keep it back are none. A partition is requested for a cause once: after that the cause is no news.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use servo_core::cron::Ticks;
use servo_core::partitions::{Block, PartitionContext, PartitionSet};
use servo_core::{EventId, PartitionKey, PartitionValue, PartitionsDef, Timestamp};

use super::compiled::{Node, Scope};
use super::trace::TraceNode;
use crate::definitions::{Asset, Definitions, Dep};
use crate::lifecycle::{AttemptOutcome, DataStatus};
use crate::staleness::is_newer;
use crate::state::{Materialized, State};

/// Partitions that an evaluation requests, by asset and index along each dimension.
pub(crate) type Fired = BTreeMap<u32, BTreeSet<Vec<u64>>>;

/// Of what is requested in the same evaluation: later than anything that has happened.
const NOW: EventId = EventId::from_u128(u128::MAX);

/// The most upstream partitions of one dependency that are looked at one by one.
const MOST_LOOKED_AT: u128 = 1_000_000;

/// The most upstream partitions of one dependency that a trace counts over.
const MOST_NOTED: usize = 1_000;

/// One partition of an asset, or an asset without any.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) asset: u32,
    pub(crate) digits: Vec<u64>,
    pub(crate) key: Option<PartitionKey>,
}

/// The value of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Truth {
    pub(crate) holds: bool,
    /// The cause; none if it is not known.
    pub(crate) at: Option<EventId>,
    /// The newest fact that speaks for requesting the asset.
    pub(crate) cause: Option<EventId>,
}

impl Truth {
    fn state(holds: bool, at: Option<EventId>) -> Self {
        Self { holds, at, cause: at.filter(|_| holds) }
    }

    fn guard(holds: bool, at: Option<EventId>) -> Self {
        Self { holds, at, cause: None }
    }
}

/// Context of an evaluation.
pub(crate) struct Evaluator<'a> {
    pub(crate) state: &'a State,
    pub(crate) definitions: &'a Definitions,
    pub(crate) now: Timestamp,
    pub(crate) fired: Fired,
    stale: RefCell<BTreeMap<(u32, Vec<u64>), Truth>>,
}

/// The partition whose condition is evaluated, while parts of it look upstream.
#[derive(Clone, Copy)]
struct Root<'r> {
    subject: &'r Subject,
    /// Where a condition of the root is in force from.
    in_force: EventId,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(state: &'a State, definitions: &'a Definitions, now: Timestamp) -> Self {
        Self { state, definitions, now, fired: Fired::new(), stale: RefCell::default() }
    }

    pub(crate) fn at(&self) -> PartitionContext<'a> {
        PartitionContext::new(self.now, self.state.dynamic_partitions())
    }

    /// A partition by its index along each dimension; none if it does not exist.
    pub(crate) fn subject(&self, asset: u32, digits: Vec<u64>) -> Option<Subject> {
        let key = match &self.definitions.asset(asset).partitions {
            Some(partitions) => Some(partitions.keys_of(&Block::one(&digits), self.at()).next()?),
            None => None,
        };
        Some(Subject { asset, digits, key })
    }

    /// The same by its key.
    pub(crate) fn subject_of(&self, asset: u32, key: Option<&PartitionKey>) -> Option<Subject> {
        let digits = match (&self.definitions.asset(asset).partitions, key) {
            (Some(partitions), Some(key)) => {
                let block = partitions.block_of(key, self.at()).ok()?;
                block.ranges().iter().map(|range| range.start).collect()
            }
            (None, None) => Vec::new(),
            (Some(_), None) | (None, Some(_)) => return None,
        };
        Some(Subject { asset, digits, key: key.cloned() })
    }

    /// The value of a condition for a partition.
    pub(crate) fn evaluate(&self, node: &Node, subject: &Subject) -> Truth {
        self.value(node, subject, self.root(subject), self.handled(subject))
    }

    fn root<'r>(&self, subject: &'r Subject) -> Root<'r> {
        let asset = &self.definitions.asset(subject.asset).key;
        let in_force = self.state.condition(asset).map_or(EventId::NIL, |condition| condition.in_force);
        Root { subject, in_force }
    }

    /// Whether a partition is to be requested, its condition having this value.
    pub(crate) fn fires(&self, truth: Truth, subject: &Subject) -> bool {
        self.held_back(truth, subject).is_none()
    }

    /// Why a partition is not to be requested.
    pub(crate) fn held_back(&self, truth: Truth, subject: &Subject) -> Option<HeldBack> {
        let asset = self.definitions.asset(subject.asset);
        if self.state.condition(&asset.key).is_none_or(|condition| condition.paused) {
            return Some(HeldBack::Paused);
        }
        if !truth.holds {
            return Some(HeldBack::False);
        }
        let Some(cause) = truth.cause else { return Some(HeldBack::NoCause) };
        if cause < self.root(subject).in_force {
            return Some(HeldBack::Before);
        }
        if cause <= self.handled(subject) {
            return Some(HeldBack::Handled);
        }
        if self.state.making(&asset.key, subject.key.as_ref()).is_some() {
            return Some(HeldBack::InProgress);
        }
        self.unmapped(asset, subject).then_some(HeldBack::NoUpstream)
    }

    /// Whether something that the partition is made from cannot exist yet: no run of it could be planned.
    fn unmapped(&self, asset: &Asset, subject: &Subject) -> bool {
        let is_unmapped = |dep: &Dep| {
            let mapped = dep.mapping.at(self.at()).upstream_of(&subject.digits);
            !mapped.missing.is_empty() || mapped.more_missing > 0
        };
        asset.deps.iter().any(is_unmapped)
    }

    /// The newest fact that a partition was made or requested for: what is later is news to it.
    pub(crate) fn handled(&self, subject: &Subject) -> EventId {
        let asset = &self.definitions.asset(subject.asset).key;
        let requested = self.state.condition_request(asset, subject.key.as_ref());
        let made = self.state.latest(asset, subject.key.as_ref()).map(read_as_of);
        requested.map(|request| request.handled).max(made).unwrap_or(EventId::NIL)
    }

    /// The value of a part. Happenings count if they are later than `after`.
    fn value(&self, node: &Node, of: &Subject, root: Root<'_>, after: EventId) -> Truth {
        let below = |part: &Node| self.value(part, of, root, after);
        let happened = |at: Option<EventId>| Truth::state(at.is_some_and(|at| at > after), at);
        match node {
            Node::And(parts) => all(parts.iter().map(below)),
            Node::Or(parts) => any(parts.iter().map(below)),
            Node::Not(part) => {
                let truth = below(part);
                Truth::guard(!truth.holds, truth.at)
            }
            Node::Named(part) => below(part),
            Node::NewlyTrue(part) => {
                let truth = below(part);
                Truth::state(truth.holds && truth.at.is_some_and(|at| at > after), truth.at)
            }
            Node::Since(part, other) => {
                let since = below(other).at.unwrap_or(EventId::NIL);
                let truth = self.value(part, of, root, since);
                let holds = truth.holds && truth.at.is_some_and(|at| at > since);
                Truth { holds, at: truth.at, cause: truth.cause.filter(|_| holds) }
            }
            Node::Any(scope, part) => any(self.upstream(scope, part, of, root, after)),
            Node::All(scope, part) => all(self.upstream(scope, part, of, root, after)),
            Node::Tick(ticks) => {
                // A tick from before the condition was in force is not waited for.
                let at = ticks.previous(self.now).map(moment);
                Truth::state(at.is_some_and(|at| at > after && at >= root.in_force), at)
            }
            Node::During(opening, closing) => self.during(opening, closing),
            Node::Latest(windows) => {
                let partitions = &self.definitions.asset(of.asset).partitions;
                let newest = |windows| partitions.as_ref().map(|known| known.newest(windows, self.at()));
                Truth::guard(newest(*windows).is_none_or(|set| set.contains(&of.digits)), None)
            }
            Node::AtMost(times, per) => {
                let request = self.state.condition_request(self.key(of), of.key.as_ref());
                let from = self.now.saturating_sub(*per);
                let recent = request.map_or(0, |request| request.since(from));
                Truth::guard(recent < *times as usize, None)
            }
            Node::NewPartition => happened(self.created(of)),
            Node::Updated => {
                let at =
                    if self.is_fired(of) { Some(NOW) } else { self.latest(of).map(Materialized::event_id) };
                let truth = happened(at);
                if self.is_root(of, root) { Truth::guard(truth.holds, at) } else { truth }
            }
            Node::Missing => match self.latest(of) {
                _ if self.is_fired(of) => Truth::guard(false, Some(NOW)),
                Some(latest) => Truth::guard(false, Some(latest.event_id())),
                None => Truth::state(true, self.missing_since(of, root)),
            },
            Node::Failed => {
                let last = self.state.partition_status(self.key(of), of.key.as_ref());
                let last = last.map(|status| status.last_attempt());
                let failed = last.is_some_and(|last| last.outcome == AttemptOutcome::Failed);
                Truth::state(failed && !self.is_fired(of), last.map(|last| last.event_id))
            }
            Node::InProgress => {
                let making = self.state.making(self.key(of), of.key.as_ref());
                let ended =
                    || Some(self.state.partition_status(self.key(of), of.key.as_ref())?.last_attempt());
                let at = making.or_else(|| ended().map(|last| last.event_id));
                let truth = Truth::state(making.is_some(), at);
                if self.is_root(of, root) { Truth::guard(truth.holds, at) } else { truth }
            }
            Node::CodeChanged => self.code_changed(of),
            Node::Stale => self.stale(of, root),
        }
    }

    /// The values of a part for the upstream partitions that it is about.
    fn upstream<'v>(
        &'v self,
        scope: &'v Scope,
        part: &'v Node,
        of: &'v Subject,
        root: Root<'v>,
        after: EventId,
    ) -> impl Iterator<Item = Truth> + 'v {
        let deps = self.definitions.asset(of.asset).deps.iter();
        let deps = deps.filter(|dep| scope.has(&self.definitions.asset(dep.asset).key));
        deps.flat_map(move |dep| {
            let (subjects, unmapped) = self.read_by(dep, of);
            let truths = subjects.into_iter().map(move |up| self.value(part, &up, root, after));
            // Of a partition that does not exist yet nothing is true but that it is missing.
            let unmapped = unmapped.then(|| Truth::guard(matches!(part, Node::Missing), None));
            truths.chain(unmapped)
        })
    }

    /// The partitions that one partition reads through a dependency, and whether more of them are to exist later. Those
    /// that were never made are left out where the asset can do without them, and of external assets that Servo knows
    /// nothing of.
    pub(crate) fn read_by(&self, dep: &Dep, of: &Subject) -> (Vec<Subject>, bool) {
        let up = self.definitions.asset(dep.asset);
        let mapped = dep.mapping.at(self.at()).upstream_of(&of.digits);
        let unmapped = !dep.available && (!mapped.missing.is_empty() || mapped.more_missing > 0);
        if mapped.set.len() > MOST_LOOKED_AT {
            return (Vec::new(), true);
        }
        let subjects = mapped.set.iter().filter_map(|digits| self.subject(dep.asset, digits));
        let is_read = |subject: &Subject| {
            let is_made = || self.is_fired(subject) || self.latest(subject).is_some();
            !(dep.available || up.def.external) || is_made()
        };
        (subjects.filter(is_read).collect(), unmapped)
    }

    fn key(&self, of: &Subject) -> &'a servo_core::AssetKey {
        &self.definitions.asset(of.asset).key
    }

    fn latest(&self, of: &Subject) -> Option<Materialized> {
        self.state.latest(self.key(of), of.key.as_ref())
    }

    fn is_root(&self, of: &Subject, root: Root<'_>) -> bool {
        of.asset == root.subject.asset && of.digits == root.subject.digits
    }

    pub(crate) fn is_fired(&self, of: &Subject) -> bool {
        self.fired.get(&of.asset).is_some_and(|fired| fired.contains(&of.digits))
    }

    /// The moment from which a partition exists; none if it always did.
    fn created(&self, of: &Subject) -> Option<EventId> {
        let partitions = self.definitions.asset(of.asset).partitions.as_ref()?;
        let grown = partitions.exists_from(&of.digits).map(moment);
        let key = of.key.as_ref()?;
        let added = key.iter().filter_map(|(dimension, value)| {
            let name = dynamic_name(partitions.def(), dimension)?;
            let PartitionValue::Str(text) = value else { return None };
            self.state.dynamic.added_by(name, &text)
        });
        added.chain(grown).max()
    }

    /// The moment from which a partition has been missing. What has no moment of its own is missing from when the
    /// condition is in force.
    fn missing_since(&self, of: &Subject, root: Root<'_>) -> Option<EventId> {
        let is_whole = self.definitions.asset(of.asset).partitions.is_none();
        let own = (is_whole && self.is_root(of, root)).then_some(root.in_force);
        let status = self.state.partition_status(self.key(of), of.key.as_ref());
        let expired = status.filter(|status| status.status() == DataStatus::Expired);
        self.created(of).max(own).max(expired.map(|status| status.last_attempt().event_id))
    }

    fn code_changed(&self, of: &Subject) -> Truth {
        let deployed = self.definitions.asset(of.asset).def.code_version.as_deref();
        let Some(latest) = self.latest(of) else { return Truth::guard(false, None) };
        let made_by = self.state.code_version(latest).map(|version| &**version);
        let is_other = deployed.is_some() && deployed != made_by && !self.is_fired(of);
        let at =
            if is_other { self.state.definitions.changed_by(self.key(of)) } else { Some(latest.event_id()) };
        Truth::state(is_other, at)
    }

    /// Whether a partition is not what the newest code and data would give. Remembered while this evaluation lasts, and
    /// found without recursion: a chain may have very many links.
    fn stale(&self, of: &Subject, root: Root<'_>) -> Truth {
        if let Some(known) = self.known_stale(of) {
            return known;
        }
        let mut todo = vec![of.clone()];
        while let Some(next) = todo.last().cloned() {
            let ups = self.latest(&next).map_or_else(Vec::new, |_| self.read_by_all(&next));
            let unknown: Vec<Subject> =
                ups.iter().filter(|up| self.known_stale(up).is_none()).cloned().collect();
            if !unknown.is_empty() {
                todo.extend(unknown);
                continue;
            }
            let truth = self.stale_of(&next, &ups, root);
            self.stale.borrow_mut().insert((next.asset, next.digits.clone()), truth);
            todo.pop();
        }
        self.known_stale(of).unwrap_or(Truth::guard(false, None))
    }

    /// Whether a partition is stale, if that is known.
    fn known_stale(&self, of: &Subject) -> Option<Truth> {
        if self.is_fired(of) {
            return Some(Truth::guard(false, Some(NOW)));
        }
        if self.definitions.asset(of.asset).def.external {
            return Some(Truth::guard(false, None));
        }
        self.stale.borrow().get(&(of.asset, of.digits.clone())).copied()
    }

    /// Everything that a partition reads.
    fn read_by_all(&self, of: &Subject) -> Vec<Subject> {
        let deps = self.definitions.asset(of.asset).deps.iter();
        deps.flat_map(|dep| self.read_by(dep, of).0).collect()
    }

    /// Whether a partition is stale, given what it reads, of which that is known.
    fn stale_of(&self, of: &Subject, ups: &[Subject], root: Root<'_>) -> Truth {
        let Some(latest) = self.latest(of) else { return Truth::state(true, self.missing_since(of, root)) };
        let reasons = ups.iter().flat_map(|up| {
            let newer = match self.latest(up) {
                _ if self.is_fired(up) => Truth::state(true, Some(NOW)),
                Some(made) => Truth::state(is_newer(made, latest), Some(made.content_since())),
                None => Truth::guard(false, None),
            };
            [Some(newer), self.known_stale(up)].into_iter().flatten()
        });
        let truth = any(std::iter::once(self.code_changed(of)).chain(reasons));
        if truth.holds { truth } else { Truth::guard(false, Some(latest.event_id())) }
    }

    /// Counts the value of every part of a condition for a partition.
    pub(crate) fn note(&self, root: &Node, subject: &Subject, trace: &mut TraceNode) {
        self.note_part(root, subject, self.root(subject), self.handled(subject), trace);
    }

    fn note_part(&self, node: &Node, of: &Subject, root: Root<'_>, after: EventId, trace: &mut TraceNode) {
        trace.count(self.value(node, of, root, after));
        let mut below = |at: usize, node: &Node, of: &Subject, after: EventId| {
            if let Some(part) = trace.parts.get_mut(at) {
                self.note_part(node, of, root, after, part);
            }
        };
        match node {
            Node::And(parts) | Node::Or(parts) => {
                parts.iter().enumerate().for_each(|(at, part)| below(at, part, of, after));
            }
            Node::Not(part) | Node::NewlyTrue(part) | Node::Named(part) => below(0, part, of, after),
            Node::Since(part, other) => {
                let since = self.value(other, of, root, after).at.unwrap_or(EventId::NIL);
                below(0, part, of, since);
                below(1, other, of, after);
            }
            Node::Any(scope, part) | Node::All(scope, part) => {
                let deps = self.definitions.asset(of.asset).deps.iter();
                for dep in deps.filter(|dep| scope.has(&self.definitions.asset(dep.asset).key)) {
                    let (subjects, _) = self.read_by(dep, of);
                    subjects.iter().take(MOST_NOTED).for_each(|up| below(0, part, up, after));
                }
            }
            Node::Missing
            | Node::NewPartition
            | Node::Updated
            | Node::Stale
            | Node::CodeChanged
            | Node::InProgress
            | Node::Failed
            | Node::Tick(_)
            | Node::Latest(_)
            | Node::During(..)
            | Node::AtMost(..) => {}
        }
    }

    /// Forgets what followed from facts that a request changes.
    pub(crate) fn fire(&mut self, subject: &Subject) {
        self.stale.borrow_mut().clear();
        self.fired.entry(subject.asset).or_default().insert(subject.digits.clone());
    }

    fn during(&self, opening: &Ticks, closing: &Ticks) -> Truth {
        let (opened, closed) = (opening.previous(self.now), closing.previous(self.now));
        Truth::guard(opened > closed, opened.max(closed).map(moment))
    }

    /// The partitions that were requested, as sets.
    pub(crate) fn requested(&self) -> BTreeMap<u32, PartitionSet> {
        let set = |digits: &BTreeSet<Vec<u64>>| digits.iter().map(|digits| Block::one(digits)).collect();
        self.fired.iter().map(|(asset, digits)| (*asset, set(digits))).collect()
    }
}

/// Why a partition is not requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeldBack {
    /// Its automation is paused.
    Paused,
    /// The condition does not hold.
    False,
    /// Nothing in it happened.
    NoCause,
    /// It was so before the condition was deployed.
    Before,
    /// The partition was made or requested since.
    Handled,
    /// It is being made.
    InProgress,
    /// Something that it is made from cannot exist yet.
    NoUpstream,
}

/// The newest event that the attempt of a materialization could have read.
fn read_as_of(latest: Materialized) -> EventId {
    latest.inputs_as_of().unwrap_or_else(|| latest.event_id())
}

/// A time among events: before all that happened in its millisecond.
pub(crate) fn moment(at: Timestamp) -> EventId {
    EventId::from_parts(u64::try_from(at.as_millis()).unwrap_or(0), 0)
}

/// The time of a moment, for people; none of what is about to happen.
pub(crate) fn time(of: EventId) -> Option<Timestamp> {
    let millis = i64::try_from(of.timestamp_ms()).ok()?;
    (of != NOW && of != EventId::NIL).then(|| Timestamp::from_millis(millis))
}

/// The name of the dynamic partitions along a dimension.
fn dynamic_name<'d>(def: &'d PartitionsDef, dimension: &str) -> Option<&'d str> {
    let def = if let PartitionsDef::Multi { dims } = def { dims.get(dimension)? } else { def };
    if let PartitionsDef::Dynamic { name } = def { Some(name) } else { None }
}

fn all(truths: impl Iterator<Item = Truth>) -> Truth {
    joined(truths, true)
}

fn any(truths: impl Iterator<Item = Truth>) -> Truth {
    joined(truths, false)
}

/// True if all are, or if one is; its moment is the newest of those that have the same value.
fn joined(truths: impl Iterator<Item = Truth>, all: bool) -> Truth {
    let mut newest = [None; 2];
    let mut cause = None;
    let (mut any_true, mut any_false) = (false, false);
    for truth in truths {
        let value = usize::from(truth.holds);
        newest[value] = newest[value].max(truth.at);
        any_true |= truth.holds;
        any_false |= !truth.holds;
        cause = cause.max(truth.cause.filter(|_| truth.holds));
    }
    let holds = if all { !any_false } else { any_true };
    Truth { holds, at: newest[usize::from(holds)], cause: cause.filter(|_| holds) }
}
