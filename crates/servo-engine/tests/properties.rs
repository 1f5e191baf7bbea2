//! Properties of any history: a small world of random graphs, outcomes, lost answers, lost workers, cancellations and
//! passing time drives the engine; what it logs must fold to the same rows however it is replayed.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use servo_core::{Millis, RunId, TaskKey, Timestamp};
use servo_engine::controllers::{self, Freshness, dispatcher};
use servo_engine::event::{decode_batch, encode_batch};
use servo_engine::rows::{Delta, EdgeRow, HotRows, OutboxRow, RunRow, TaskRow, TimerRow};
use servo_engine::{
    Attempt, CancelRun, Effect, Engine, ErrorCode, Event, EventData, Input, Outcome, Plan, Reply, Report,
    RetryPolicy, Settings, State, TaskError, TaskOptions, TaskRequest, TaskState, Trigger, TriggerRun,
};
use support::{SECRET, START, empty_state, key, plan_of, tenant, workspace};

const CASES: u32 = 96;

/// A random graph: for each task a mask of the earlier tasks it waits for, and a pick of options.
type Graph = Vec<(u16, u8)>;

/// One thing that happens: what, to whom, how much.
type Act = (u8, u16, u8);

#[derive(Debug, Clone)]
struct Story {
    graphs: Vec<Graph>,
    acts: Vec<Act>,
    slots: u32,
    recent_runs: usize,
}

fn stories() -> impl Strategy<Value = Story> {
    let graph = prop::collection::vec((any::<u16>(), any::<u8>()), 1..=12);
    (
        prop::collection::vec(graph, 1..=4),
        prop::collection::vec((any::<u8>(), any::<u16>(), any::<u8>()), 0..500),
        1..6u32,
        0..3usize,
    )
        .prop_map(|(graphs, acts, slots, recent_runs)| Story { graphs, acts, slots, recent_runs })
}

fn plan_for(graph: &Graph) -> Plan {
    // Names run against the order of the graph, so that "smallest key" and "first in the graph" differ.
    let name = |i: usize| format!("n{:02}", 20 - i);
    let retry = |pick: u8| match pick % 4 {
        0 => None,
        n => Some(RetryPolicy { max_attempts: u32::from(n), ..RetryPolicy::default() }),
    };
    let tasks = graph.iter().enumerate().map(|(i, (mask, pick))| TaskRequest {
        key: key(&name(i)),
        upstream: (0..i).filter(|j| mask >> j & 1 == 1).map(|j| key(&name(j))).collect(),
        options: TaskOptions {
            priority: i32::from(pick % 3),
            retry: retry(pick / 3),
            timeout_ms: None,
            heartbeat_timeout_ms: (pick % 7 == 0).then_some(Millis::from_secs(20)),
            worker_queue: (pick % 5 == 0).then(|| Arc::from("big")),
        },
    });
    plan_of(tasks.collect())
}

/// The engine, the queue, the workers and the network, all of them unreliable.
struct Sim {
    engine: Engine,
    now: Timestamp,
    plans: Vec<Plan>,
    runs: Vec<RunId>,
    /// What queues hold, including what was delivered already: they may deliver again.
    queue: Vec<Attempt>,
    /// What workers believe they run.
    running: Vec<Attempt>,
    /// Everything sent so far: any of it may come again.
    sent: Vec<Input>,
    waiting: Vec<Input>,
    log: Vec<Vec<Event>>,
    /// Called after every step.
    deltas: Vec<Delta>,
}

impl Sim {
    fn new(story: &Story) -> Self {
        let settings = Settings {
            max_concurrent_tasks: story.slots,
            max_concurrent_runs: 3,
            max_interruptions: 3,
            recent_runs: story.recent_runs,
            max_run_duration: Millis::from_hours(4),
            ..Settings::default()
        };
        Self {
            engine: Engine::new(empty_state(&settings), SECRET),
            now: START,
            plans: story.graphs.iter().map(plan_for).collect(),
            runs: Vec::new(),
            queue: Vec::new(),
            running: Vec::new(),
            sent: Vec::new(),
            waiting: Vec::new(),
            log: Vec::new(),
            deltas: Vec::new(),
        }
    }

    /// Plays the story, then lets everything go well until nothing is left to do.
    fn play(story: &Story) -> Self {
        let mut sim = Self::new(story);
        for act in &story.acts {
            sim.act(*act);
        }
        sim.flush();
        sim
    }

    fn settings(&self) -> Settings {
        self.engine.state().settings().clone()
    }

    fn act(&mut self, (what, whom, how): Act) {
        let pick = |len: usize| (len > 0).then(|| usize::from(whom) % len);
        let input = match what % 32 {
            0..=2 => pick(self.plans.len()).map(|i| self.request(i, how)),
            3..=6 => pick(self.queue.len()).map(|i| Input::Enqueued(self.queue[i].clone())),
            7..=13 => pick(self.queue.len()).map(|i| {
                let attempt = self.queue[i].clone();
                if how % 8 != 0 {
                    self.queue.remove(i);
                }
                Input::Started(attempt, format!("w{}/x", how % 3).into())
            }),
            14..=15 => pick(self.running.len()).map(|i| {
                let progress = servo_engine::Progress { ppm: u32::from(how), message: String::new() };
                Input::Heartbeat(self.running[i].clone(), self.now, (how % 2 == 0).then_some(progress))
            }),
            16..=22 => pick(self.running.len()).map(|i| {
                let attempt = self.running[i].clone();
                if how % 8 != 0 {
                    self.running.remove(i);
                }
                Input::Finished(attempt, report(how))
            }),
            // A report without a start: the start was lost on the way.
            23 => pick(self.queue.len()).map(|i| Input::Finished(self.queue[i].clone(), report(how))),
            // The same message once more.
            24..=25 => pick(self.sent.len()).map(|i| self.sent[i].clone()),
            26 => pick(self.runs.len()).filter(|_| how % 6 == 0).map(|i| {
                Input::Cancel(CancelRun {
                    run_id: self.runs[i],
                    actor: "me".to_owned(),
                    reason: String::new(),
                    force: how % 12 == 0,
                })
            }),
            27 if how % 4 == 0 => Some(Input::WorkersLost(format!("w{}/", how % 3).into())),
            28 => Some(Input::Sweep),
            29 => {
                self.queue.clear();
                self.hand_out();
                None
            }
            30 => {
                let seconds = [1, 10, 31, 45, 91, 301, 3_600][usize::from(how) % 7];
                self.now = self.now.saturating_add(Millis::from_secs(seconds));
                None
            }
            _ => {
                self.now = self.now.saturating_add(Millis::new(u64::from(how)));
                None
            }
        };
        if let Some(input) = input {
            self.sent.push(input.clone());
            self.waiting.push(input);
        }
        if whom % 3 != 0 {
            self.flush();
        }
    }

    fn request(&self, i: usize, how: u8) -> Input {
        let trigger = Trigger::Manual { actor: "me".to_owned() };
        // Now and then the same key with another priority: a conflict, unless it comes first.
        let priority = i32::from(how % 4 == 0);
        let timeout = (i % 2 == 1).then_some(Millis::from_minutes(90));
        Input::Trigger(TriggerRun::with(
            format!("key-{i}").into(),
            self.plans[i].clone(),
            trigger,
            priority,
            BTreeMap::new(),
            timeout,
        ))
    }

    fn hand_out(&mut self) {
        self.queue.extend(dispatcher::outstanding(self.engine.state()).into_iter().map(|d| d.attempt));
    }

    fn flush(&mut self) {
        let inputs = std::mem::take(&mut self.waiting);
        let step = self.engine.step(&inputs, self.now);
        assert_eq!(step.replies.len(), inputs.len());
        for (input, reply) in inputs.iter().zip(&step.replies) {
            match (input, reply) {
                (Input::Trigger(_), Ok(Reply::Run { run_id, accepted: Some(_) })) => self.runs.push(*run_id),
                (Input::Started(attempt, _), Ok(Reply::Accepted { .. })) => {
                    self.running.push(attempt.clone());
                }
                _ => {}
            }
        }
        let Effects(attempts) = Effects::of(&step.effects);
        self.queue.extend(attempts);
        if !step.events.is_empty() {
            self.log.push(step.events);
        }
        check_invariants(self.engine.state());
        if self.log.len() % 3 == 0 {
            self.take_delta();
        }
    }

    fn take_delta(&mut self) {
        let delta = self.engine.state_mut().take_delta();
        self.deltas.push(delta);
    }

    /// Faults are over: queues hold what they should, workers answer, time passes. Everything must end.
    fn settle(&mut self) {
        for _ in 0..600 {
            if self.engine.state().active_runs() == 0 {
                return;
            }
            self.queue.clear();
            self.hand_out();
            for attempt in std::mem::take(&mut self.queue) {
                self.waiting.push(Input::Started(attempt, "w9/x".into()));
            }
            self.flush();
            for attempt in std::mem::take(&mut self.running) {
                self.waiting.push(Input::Finished(attempt, Report::succeeded()));
            }
            self.flush();
            let due = self.engine.state().next_deadline().unwrap_or(self.now);
            self.now = self.now.max(due).saturating_add(Millis::new(1));
        }
        panic!("still at work: {:#?}", self.engine.state().rows());
    }

    fn events(&self) -> Vec<Event> {
        self.log.iter().flatten().cloned().collect()
    }
}

struct Effects(Vec<Attempt>);

impl Effects {
    fn of(effects: &[Effect]) -> Self {
        Self(
            effects
                .iter()
                .map(|effect| match effect {
                    Effect::Enqueue(dispatch) => dispatch.attempt.clone(),
                })
                .collect(),
        )
    }
}

fn report(how: u8) -> Report {
    let failed = |code| Report::failed(TaskError::new(code, "boom"));
    let plain = |outcome| Report { outcome, error: None, materialization_id: None };
    match how % 11 {
        0..=4 => Report::succeeded(),
        5..=6 => failed(ErrorCode::UserCodeException),
        7 => failed(ErrorCode::WorkerCrash),
        8 => plain(Outcome::TimedOut),
        9 => plain(Outcome::Interrupted),
        _ => plain(Outcome::Cancelled),
    }
}

/// What must be true after every step, whatever happened.
fn check_invariants(state: &State) {
    let mut outstanding = 0;
    let mut waiting = 0;
    let mut deadlines = BTreeSet::new();
    let mut active = 0;
    for run in state.runs() {
        let count = |wanted| run.tasks.iter().filter(|t| t.state == wanted).count() as u32;
        assert_eq!(run.counts.succeeded, count(TaskState::Succeeded));
        assert_eq!(run.counts.failed, count(TaskState::Failed));
        assert_eq!(run.counts.skipped, count(TaskState::Skipped));
        assert_eq!(run.counts.cancelled, count(TaskState::Cancelled));
        let all_ended = run.tasks.iter().all(|t| t.state.is_terminal());
        assert_eq!(run.state.is_terminal(), all_ended, "a run ends when, and only when, its tasks have");
        assert_eq!(run.finished_at.is_some(), all_ended);
        active += usize::from(!all_ended);
        deadlines.extend(run.deadline(state.settings()));
        for edge in &run.edges {
            let upstream = &run.tasks[edge.upstream as usize];
            assert_eq!(edge.resolution.is_some(), upstream.state.is_terminal());
        }
        for (position, task) in (0u32..).zip(&run.tasks) {
            outstanding += u32::from(task.has_open_attempt());
            waiting += usize::from(task.state == TaskState::Ready && !task.has_open_attempt());
            deadlines.extend(task.deadline(state.settings()).map(|(at, _)| at));
            let satisfied = run.upstream_of(position).filter(|u| u.state == TaskState::Succeeded).count();
            assert_eq!(task.deps_satisfied as usize, satisfied, "each edge counts once");
            let begun = task.attempt > 0 || task.state == TaskState::Ready;
            if begun {
                assert_eq!(task.deps_satisfied, task.deps_total, "{} before its dependencies", task.key);
            }
            assert_eq!(task.state == TaskState::Skipped, task.caused_by.is_some());
            if let Some(cause) = task.caused_by {
                assert_eq!(Some(cause), smallest_failure_before(run, position));
            }
            assert_eq!(task.finished_at.is_some(), task.state.is_terminal());
        }
    }
    assert_eq!(state.active_runs(), active);
    assert_eq!(state.outstanding(), outstanding);
    assert!(outstanding <= state.settings().max_concurrent_tasks);
    assert_eq!(state.waiting(), waiting);
    assert_eq!(state.next_deadline(), deadlines.first().copied());
    assert!(waiting == 0 || outstanding == state.settings().max_concurrent_tasks, "no slot stays free");
}

fn smallest_failure_before(run: &servo_engine::Run, position: u32) -> Option<u32> {
    let mut seen = BTreeSet::new();
    let mut todo = vec![position];
    while let Some(next) = todo.pop() {
        for edge in run.edges.iter().filter(|e| e.downstream == next) {
            if seen.insert(edge.upstream) {
                todo.push(edge.upstream);
            }
        }
    }
    seen.into_iter().find(|p| run.tasks[*p as usize].state == TaskState::Failed)
}

fn fold_batches(settings: &Settings, log: &[Vec<Event>]) -> State {
    let mut state = empty_state(settings);
    for (seq, batch) in (1u64..).zip(log) {
        state.apply_batch(seq, batch);
    }
    state
}

/// Folds single events; the batch number, which they do not carry, is taken from `live`.
fn fold_events(settings: &Settings, events: &[Event], live: &HotRows) -> HotRows {
    let mut rows = support::fold(settings, events).rows();
    rows.head.seq = live.head.seq;
    rows
}

/// Equality of rows with an answer that a person can read: only the lines that differ.
fn same(found: &HotRows, expected: &HotRows) -> Result<(), TestCaseError> {
    if found == expected {
        return Ok(());
    }
    let (found, expected) = (format!("{found:#?}"), format!("{expected:#?}"));
    let differing: Vec<String> = found
        .lines()
        .zip(expected.lines())
        .filter(|(f, e)| f != e)
        .take(12)
        .map(|(f, e)| format!("found    {}\nexpected {}", f.trim(), e.trim()))
        .collect();
    Err(TestCaseError::fail(format!("rows differ:\n{}", differing.join("\n"))))
}

/// Whether two events that follow each other in a log could have come the other way round.
///
/// What the engine decided about a run or a task (requests, cancellations, timers, dispatches) was decided knowing
/// all that came before, so it stays where it is relative to that run or task. Reports of workers and answers of
/// queues about different tasks, or from the queue and the worker about one attempt, are concurrent.
fn concurrent(first: &EventData, second: &EventData, upstream: &Upstream) -> bool {
    let (a, b) = (Place::of(first), Place::of(second));
    if a.run != b.run {
        return true;
    }
    let (Some(task_a), Some(task_b)) = (&a.task, &b.task) else { return false };
    if task_a != task_b {
        // The dispatch of a task stays after the end of what it waits for, even if that is a retry's own dispatch.
        let waits = |later: &TaskKey, earlier: &TaskKey| {
            upstream.get(&(a.run, later.clone())).is_some_and(|up| up.contains(earlier))
        };
        return !waits(task_b, task_a) && !waits(task_a, task_b);
    }
    match (a.role, b.role) {
        (Role::Decision, _) | (_, Role::Decision) => false,
        (Role::Queue, Role::Worker) | (Role::Worker, Role::Queue) => true,
        (Role::Queue, Role::Queue) | (Role::Worker, Role::Worker) => a.attempt != b.attempt,
    }
}

type Upstream = BTreeMap<(RunId, TaskKey), BTreeSet<TaskKey>>;

#[derive(Clone, Copy)]
enum Role {
    Decision,
    Queue,
    Worker,
}

struct Place {
    run: RunId,
    /// None: about the whole run, or a barrier for it.
    task: Option<TaskKey>,
    attempt: u32,
    role: Role,
}

impl Place {
    fn of(data: &EventData) -> Self {
        let run = |run: RunId| Place { run, task: None, attempt: 0, role: Role::Decision };
        let task = |run: RunId, task: &TaskKey, attempt: u32, role: Role| Place {
            run,
            task: Some(task.clone()),
            attempt,
            role,
        };
        match data {
            EventData::RunRequested(e) => run(e.run_id),
            EventData::PlanCreated(e) => run(e.run_id),
            EventData::RunTriggered(e) => run(e.run_id),
            EventData::RunCancelRequested(e) => run(e.run_id),
            EventData::TimerFired(e) => run(e.run_id),
            EventData::DispatchRequested(e) => task(e.run_id, &e.task_key, e.attempt, Role::Decision),
            EventData::TimerRequested(e) => task(e.run_id, &e.task_key, e.attempt, Role::Decision),
            EventData::TimerEnqueued(e) => task(e.run_id, &e.task_key, e.attempt, Role::Decision),
            EventData::DispatchEnqueued(e) => task(e.run_id, &e.task_key, e.attempt, Role::Queue),
            EventData::TaskStarted(e) => task(e.run_id, &e.task_key, e.attempt, Role::Worker),
            EventData::TaskHeartbeat(e) => task(e.run_id, &e.task_key, e.attempt, Role::Worker),
            EventData::TaskFinished(e) => task(e.run_id, &e.task_key, e.attempt, Role::Worker),
            EventData::Unknown(_) => run(RunId::from_u128(0)),
        }
    }
}

fn upstream_of(events: &[Event]) -> Upstream {
    let mut upstream = Upstream::new();
    for event in events {
        if let EventData::PlanCreated(plan) = &event.data {
            for spec in plan.tasks.iter() {
                let keys = spec.upstream.iter().map(|u| plan.tasks[*u as usize].task_key.clone());
                upstream.insert((plan.run_id, spec.task_key.clone()), keys.collect());
            }
        }
    }
    upstream
}

/// Deterministic numbers from a seed (splitmix64), for choices that need not shrink.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % limit.max(1) as u64) as usize
    }
}

/// A random walk through the orders that `concurrent` allows.
fn reorder(events: &[Event], chance: &mut Chance) -> Vec<Event> {
    let upstream = upstream_of(events);
    let mut events = events.to_vec();
    for _ in 0..events.len() * 40 {
        let at = chance.below(events.len().saturating_sub(1));
        let Some([first, second]) = events.get(at..at + 2) else { break };
        if concurrent(&first.data, &second.data, &upstream) {
            events.swap(at, at + 1);
        }
    }
    events
}

/// Every event one to three times: where it was, and again at random later places.
fn duplicate(events: &[Event], chance: &mut Chance) -> Vec<Event> {
    let mut placed: Vec<(usize, usize, &Event)> = Vec::new();
    for (at, event) in events.iter().enumerate() {
        placed.push((at, 0, event));
        for copy in 0..chance.below(3) {
            placed.push((at + chance.below(events.len() - at), copy + 1, event));
        }
    }
    placed.sort_by_key(|(at, copy, _)| (*at, *copy));
    placed.into_iter().map(|(_, _, event)| event.clone()).collect()
}

/// Plain tables, kept up by deltas alone, as the compactor keeps its own.
#[derive(Default, PartialEq, Debug)]
struct Tables {
    runs: BTreeMap<RunId, RunRow>,
    tasks: BTreeMap<(RunId, TaskKey), TaskRow>,
    edges: BTreeMap<(RunId, TaskKey, TaskKey), EdgeRow>,
    timers: BTreeMap<String, TimerRow>,
    outbox: BTreeMap<String, OutboxRow>,
}

impl Tables {
    fn upsert(&mut self, delta: &Delta) {
        self.runs.extend(delta.runs.iter().map(|r| (r.run_id, r.clone())));
        self.tasks.extend(delta.tasks.iter().map(|r| ((r.run_id, r.task_key.clone()), r.clone())));
        self.edges.extend(delta.edges.iter().map(|r| {
            ((r.run_id, r.upstream_task_key.clone(), r.downstream_task_key.clone()), r.clone())
        }));
        self.timers.extend(delta.timers.iter().map(|r| (r.timer_id.clone(), r.clone())));
        self.outbox.extend(delta.outbox.iter().map(|r| (r.dispatch_id.clone(), r.clone())));
    }

    fn remove(&mut self, delta: &Delta) {
        self.runs.retain(|k, _| !delta.gone.runs.contains(k));
        self.tasks.retain(|k, _| !delta.gone.tasks.contains(k));
        self.edges.retain(|k, _| !delta.gone.edges.contains(k));
        self.timers.retain(|k, _| !delta.gone.timers.contains(k));
        self.outbox.retain(|k, _| !delta.gone.outbox.contains(k));
    }

    fn of(rows: &HotRows) -> Self {
        let mut tables = Self::default();
        tables.runs.extend(rows.runs.iter().map(|r| (r.run_id, r.clone())));
        tables.tasks.extend(rows.tasks.iter().map(|r| ((r.run_id, r.task_key.clone()), r.clone())));
        tables.edges.extend(rows.edges.iter().map(|r| {
            ((r.run_id, r.upstream_task_key.clone(), r.downstream_task_key.clone()), r.clone())
        }));
        tables.timers.extend(rows.timers.iter().map(|r| (r.timer_id.clone(), r.clone())));
        tables.outbox.extend(rows.outbox.iter().map(|r| (r.dispatch_id.clone(), r.clone())));
        tables
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn replay_of_the_log_is_the_live_state_byte_for_byte(story in stories()) {
        let sim = Sim::play(&story);
        let live = sim.engine.state().rows();
        let read_back: Vec<Vec<Event>> = sim.log.iter().map(|batch| {
            let mut bytes = Vec::new();
            encode_batch(batch, &mut bytes);
            decode_batch(&bytes).expect("what was written can be read")
        }).collect();
        prop_assert_eq!(&read_back, &sim.log, "every batch reads back as it was");
        let replayed = fold_batches(&sim.settings(), &read_back).rows();
        same(&replayed, &live)?;
        prop_assert_eq!(format!("{replayed:?}").into_bytes(), format!("{live:?}").into_bytes());
    }

    #[test]
    fn any_duplication_of_a_history_folds_to_the_same_rows(story in stories(), seed in any::<u64>()) {
        let sim = Sim::play(&story);
        let live = sim.engine.state().rows();
        let events = duplicate(&sim.events(), &mut Chance(seed));
        same(&fold_events(&sim.settings(), &events, &live), &live)?;
    }

    #[test]
    fn any_order_of_concurrent_facts_folds_to_the_same_rows(mut story in stories(), seed in any::<u64>()) {
        // Which ended runs are still in memory depends on which ended last; that is not at stake here.
        story.recent_runs = 100;
        let sim = Sim::play(&story);
        let live = sim.engine.state().rows();
        let events = reorder(&sim.events(), &mut Chance(seed));
        let folded = fold_events(&sim.settings(), &events, &live);
        prop_assert_eq!(folded.head.last_event, live.head.last_event);
        same(&folded, &live)?;
    }

    #[test]
    fn a_state_restored_from_rows_folds_on_as_if_it_had_never_left(story in stories(), seed in any::<u64>()) {
        let mut sim = Sim::play(&story);
        sim.settle();
        let settings = sim.settings();
        let cut = Chance(seed).below(sim.log.len() + 1);
        let prefix = fold_batches(&settings, &sim.log[..cut]);
        let mut restored = State::from_rows(tenant(), workspace(), settings.clone(), prefix.rows())
            .expect("its own rows fit");
        same(&restored.rows(), &prefix.rows())?;
        prop_assert_eq!(restored.waiting(), prefix.waiting());
        prop_assert_eq!(restored.outstanding(), prefix.outstanding());
        prop_assert_eq!(restored.next_deadline(), prefix.next_deadline());
        let later = sim.now.saturating_add(Millis::from_hours(1));
        prop_assert_eq!(
            controllers::reconcile(&restored, later, Freshness::Current),
            controllers::reconcile(&prefix, later, Freshness::Current)
        );
        for (seq, batch) in (1u64..).zip(&sim.log).skip(cut) {
            restored.apply_batch(seq, batch);
        }
        same(&restored.rows(), &sim.engine.state().rows())?;
    }

    #[test]
    fn when_faults_stop_everything_ends(story in stories()) {
        let mut sim = Sim::play(&story);
        sim.settle();
        prop_assert_eq!(sim.engine.state().outstanding(), 0);
        prop_assert_eq!(sim.engine.state().waiting(), 0);
        prop_assert_eq!(sim.engine.state().next_deadline(), None);
        prop_assert!(sim.engine.step(&[Input::Sweep], sim.now).events.is_empty(), "nothing left to repair");
    }

    #[test]
    fn deltas_alone_rebuild_the_tables_and_history_gets_each_ended_run_once(story in stories()) {
        let mut sim = Sim::play(&story);
        sim.settle();
        sim.take_delta();
        let state = sim.engine.state();
        prop_assert!(state.runs().count() <= story.recent_runs.max(1), "ended runs leave memory");
        let mut tables = Tables::default();
        let mut ended: Vec<RunId> = Vec::new();
        for delta in &sim.deltas {
            tables.remove(delta);
            tables.upsert(delta);
            let mut other_way = Tables::default();
            other_way.upsert(delta);
            let upserts = (other_way.runs.len(), other_way.tasks.len(), other_way.outbox.len(), other_way.timers.len());
            prop_assert_eq!(
                upserts,
                (delta.runs.len(), delta.tasks.len(), delta.outbox.len(), delta.timers.len()),
                "each row once"
            );
            other_way.remove(delta);
            prop_assert_eq!(
                upserts,
                (other_way.runs.len(), other_way.tasks.len(), other_way.outbox.len(), other_way.timers.len()),
                "a key that is gone is not among the rows"
            );
            ended.extend(delta.ended_runs.iter().map(|r| r.run_id));
        }
        prop_assert_eq!(tables, Tables::of(&state.rows()));
        let in_memory = state.runs().map(|r| r.id);
        let mut all: Vec<RunId> = ended.into_iter().chain(in_memory).collect();
        all.sort();
        let mut requested = sim.runs.clone();
        requested.sort();
        prop_assert_eq!(all, requested, "each run is either in memory or was handed to history once");
        let mut state = sim.engine.state().clone();
        prop_assert!(state.take_delta().is_empty(), "nothing changed since");
    }
}
