//! The scenario of a seed: settings, requests and faults with their times. Plain data, so that a failing one can be
//! shrunk.

use servo_core::Millis;
use servo_engine::Settings;

use crate::declared::{CUSTOMER, CUSTOMERS_OF_RUNS, Declared, POOLS};
use crate::faults::{Fault, FaultSet};
use crate::graphs;
use crate::rng::Rng;

/// A second, in the unit of the world.
pub const SECOND: u64 = 1_000_000;
/// A minute.
pub const MINUTE: u64 = 60 * SECOND;
/// An hour.
pub const HOUR: u64 = 60 * MINUTE;

/// The storage of a workspace's log and tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// In a bucket: any number of nodes.
    Bucket,
    /// On the disk of one machine: one node.
    Disk,
}

/// The kind of workers that run the tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerKind {
    /// Separate workers, reached through a queue and a network.
    Remote,
    /// Workers inside the node.
    Local,
}

/// The code of the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerCode {
    /// A script, which does what the contract says in its own way.
    Scripted,
    /// The executor of `servo-worker`.
    Executor,
    /// The executor, which asks the routes of `servo-api` by their client. Only for workers that are remote.
    OverHttp,
}

/// A request of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum UserRequest {
    /// Deploy this version of the project.
    Deploy(u8),
    /// Trigger a run of this graph under this key.
    Run { key: u8, graph: u64, priority: i32, timeout: Option<u64> },
    /// Cancel the run with this key.
    Cancel { key: u8, force: bool },
    /// Retry the run with this key.
    Retry { key: u8, from_failure: bool },
    /// Add and remove keys of dynamic partitions.
    Partitions { add: u8, remove: u8 },
    /// Approve or reject a quarantined materialization.
    Review { approve: bool },
    /// Wipe what is known of an asset, whatever is at work on it.
    Wipe { asset: u8, keep_data: bool, force: bool },
    /// Say how partitions of an asset fare.
    Mark { asset: u8, failed: bool },
    /// Undo the last wipe or mark of an asset.
    Undo { asset: u8 },
    /// The life of a schedule: it is created, paused and resumed or not, and removed after this long.
    Schedule { number: u8, paused: bool, length: u64 },
    /// The life of a backfill: it is created, paused or not, and resumed or cancelled after this long.
    Backfill { chunk_size: u32, at_once: u32, paused: bool, cancelled: bool, length: u64 },
    /// The polling sensor is resumed, its cursor perhaps set meanwhile, and paused after this long.
    Poll { cursor: Option<u8>, length: u64 },
    /// Messages are sent to a sensor, with ids that others send too. If it is not of the project, it is created before,
    /// and perhaps removed.
    Push { declared: bool, messages: u8, removed: bool },
    /// The condition of an asset of the chain is paused for so long.
    Condition { asset: u8, length: u64 },
    /// A notification rule is tested, and paused for so long.
    Rule { length: u64 },
    /// Another version of the project is deployed, and what it does not declare any more is given another name.
    Rename { version: u8, asset: u8 },
    /// The limit of a pool, or of runs for the same customer, becomes this, or none.
    Limit { of: u8, limit: Option<u8> },
    /// Remove what the rules of retention do not keep.
    Retention,
    /// Read a page of runs: every acknowledged run must be there.
    Read,
}

/// A fault with its parameters, scheduled for a time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ScheduledFault {
    /// A node crashes after so many more turns of its tasks; it restarts after this long.
    Crash { node: usize, turns: u64, pause: u64 },
    /// The machine of a node loses power; it restarts after this long.
    PowerLoss { pause: u64 },
    /// A node is paused for this long.
    Freeze { node: usize, length: u64 },
    /// The store is slow for this long.
    Slow(u64),
    /// Most requests to the store are refused for this long.
    Throttling(u64),
    /// Every request to the store is refused for this long.
    Outage(u64),
    /// The clock of a node is off by so many milliseconds.
    Clock { node: usize, error: i64, fault: Fault },
    /// A worker dies and is replaced.
    WorkerCrash(usize),
    /// A worker is cut off for this long.
    CutOff { worker: usize, length: u64, fault: Fault },
    /// A slow reader of all tables starts.
    SlowReader,
}

/// The description of one simulated workspace.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The seed of all random choices.
    pub seed: u64,
    /// The storage.
    pub storage: Storage,
    /// The kind of workers.
    pub worker_kind: WorkerKind,
    /// Their code.
    pub worker_code: WorkerCode,
    /// How long tokens are good that workers are given over HTTP.
    pub token_lifetime: Millis,
    /// How many nodes.
    pub nodes: usize,
    /// Whether nodes use a lease.
    pub leased: bool,
    /// How many workers.
    pub workers: usize,
    /// Declarations of the project beside its assets.
    pub declared: Declared,
    /// Settings of the engine.
    pub settings: Settings,
    /// How often tables are written, in milliseconds.
    pub flush_every: u64,
    /// How many small files are merged into one.
    pub merge_at: usize,
    /// Batches of the log to keep.
    pub keep_log_batches: Option<u64>,
    /// The faults that may occur.
    pub faults: FaultSet,
    /// Requests, and their times.
    pub requests: Vec<(u64, UserRequest)>,
    /// Faults, and their times.
    pub scheduled_faults: Vec<(u64, ScheduledFault)>,
    /// The time at which faults stop.
    pub healed_at: u64,
}

impl Scenario {
    /// The scenario of a seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::fork(seed, 1);
        let mut faults = FaultSet::choose(&mut rng);
        let storage = if rng.chance(650) { Storage::Bucket } else { Storage::Disk };
        let worker_kind = if rng.chance(700) { WorkerKind::Remote } else { WorkerKind::Local };
        let (nodes, leased) = match storage {
            Storage::Disk => (1, false),
            Storage::Bucket if faults.has(Fault::SecondNode) => (2, false),
            Storage::Bucket if faults.has(Fault::StaleNode) => (2, true),
            Storage::Bucket => (1 + usize::from(rng.chance(300)), true),
        };
        if nodes < 2 {
            faults = faults.without(Fault::SecondNode).without(Fault::StaleNode);
        }
        let settings = Settings {
            max_concurrent_tasks: rng.within(1..7) as u32,
            max_concurrent_runs: rng.within(2..8) as u32,
            max_interruptions: rng.within(2..6) as u32,
            force_cancel_after: Millis::from_secs(rng.within(20..120)),
            recent_runs: *rng.pick(&[0, 1, 3, 100]),
            max_run_duration: Millis::from_hours(*rng.pick(&[1, 4, 24])),
            outbox_retry_after: Millis::from_secs(rng.within(30..300)),
            recent_run_keys: [0, 1, 2, 100][(seed % 4) as usize],
            dedup_window: Millis::from_hours(7 * 24),
            max_partition_changes: 6,
            max_dynamic_partitions: 3,
            push_limit: if seed % 10 < 7 { 0 } else { 1_000 },
            tasks_per_slot: 1 + (seed % 3) as u32,
            ..Settings::default()
        };
        let declared = Declared::of(seed);
        let settings = if declared.limits { limited(seed, settings) } else { settings };
        let settings = if removes_soon(seed) {
            Settings {
                keep_superseded: Millis::from_secs(1),
                keep_superseded_versions: 0,
                keep_quarantined: Millis::from_secs(30),
                ..settings
            }
        } else {
            settings
        };
        let healed_at = *rng.pick(&[MINUTE / 2, MINUTE, 3 * MINUTE, 5 * MINUTE, 15 * MINUTE]);
        let mut scenario = Self {
            seed,
            storage,
            worker_kind,
            worker_code: worker_code(seed, worker_kind),
            token_lifetime: Millis::from_secs(*Rng::fork(seed, 53).pick(&[120, 600, 7_200])),
            nodes,
            leased,
            workers: 1 + rng.below(3),
            declared,
            settings,
            flush_every: *rng.pick(&[10_000, 60_000, 300_000, 1_200_000]),
            merge_at: rng.within(3..9) as usize,
            keep_log_batches: faults.has(Fault::DeletedUnderReader).then(|| rng.within(1..8)),
            faults,
            requests: Vec::new(),
            scheduled_faults: Vec::new(),
            healed_at,
        };
        scenario.request(&mut rng);
        scenario.automate();
        scenario.use_declared();
        if declared.limits {
            scenario.change_limits();
        }
        scenario.inject(&mut rng);
        if removes_soon(seed) {
            // Chance of its own: what else happens in a seed stays as it is.
            let mut rng = Rng::fork(seed, 43);
            for _ in 0..rng.within(1..5) {
                scenario.requests.push((rng.within(0..healed_at), UserRequest::Retention));
            }
        }
        scenario
    }

    fn request(&mut self, rng: &mut Rng) {
        self.requests.push((0, UserRequest::Deploy(0)));
        if rng.chance(500) {
            self.requests.push((0, UserRequest::Partitions { add: 3, remove: 0 }));
        }
        let runs = rng.within(1..5) as u8;
        let requests = rng.within(1..10) + u64::from(runs);
        for number in 0..requests {
            let at = rng.within(0..self.healed_at);
            let key =
                if number < u64::from(runs) { number as u8 } else { rng.below(usize::from(runs)) as u8 };
            let run = |rng: &mut Rng, fresh: bool| UserRequest::Run {
                key,
                // The same key asks for the same again, except now and then.
                graph: if fresh || rng.chance(900) { u64::from(key) } else { 77 },
                priority: i32::from(key % 3),
                timeout: (key % 4 == 3).then_some(600),
            };
            let request = match if number < u64::from(runs) { 0 } else { rng.below(10) } {
                0 if number < u64::from(runs) => run(rng, true),
                0 | 1 => run(rng, false),
                2 | 3 => UserRequest::Cancel { key, force: rng.chance(300) },
                4 => UserRequest::Retry { key, from_failure: rng.chance(500) },
                5 => UserRequest::Deploy(rng.below(4) as u8),
                6 => UserRequest::Partitions { add: rng.draw() as u8, remove: rng.draw() as u8 },
                7 => UserRequest::Review { approve: rng.chance(500) },
                _ => UserRequest::Read,
            };
            self.requests.push((at, request));
        }
        // With chances of their own, so that everything else of a seed stays as it was.
        let mut rng = Rng::fork(self.seed, 17);
        for _ in 0..rng.below(4) {
            let (at, asset) = (rng.within(0..self.healed_at), rng.draw() as u8);
            let request = match rng.below(6) {
                0..=3 => UserRequest::Wipe { asset, keep_data: rng.chance(400), force: rng.chance(700) },
                4 => UserRequest::Mark { asset, failed: rng.chance(500) },
                _ => UserRequest::Undo { asset },
            };
            self.requests.push((at, request));
        }
    }

    /// Automation, in some seeds, with chances of its own.
    fn automate(&mut self) {
        if self.seed % 6 != 1 {
            return;
        }
        let mut rng = Rng::fork(self.seed, 23);
        for _ in 0..rng.below(3) {
            let length = rng.within(SECOND..3 * MINUTE);
            let schedule =
                UserRequest::Schedule { number: rng.below(4) as u8, paused: rng.chance(400), length };
            self.requests.push((rng.within(0..self.healed_at), schedule));
        }
        for _ in 0..rng.below(3) {
            let backfill = UserRequest::Backfill {
                chunk_size: rng.within(1..4) as u32,
                at_once: rng.within(1..4) as u32,
                paused: rng.chance(400),
                cancelled: rng.chance(400),
                length: rng.within(SECOND..MINUTE),
            };
            self.requests.push((rng.within(0..self.healed_at), backfill));
        }
    }

    /// Acts of people on what the project declares, with chances of their own.
    fn use_declared(&mut self) {
        let mut rng = Rng::fork(self.seed, 37);
        if self.declared.change_of_clocks {
            let (at, length) = (rng.within(0..self.healed_at), rng.within(12 * MINUTE..20 * MINUTE));
            let night = UserRequest::Schedule { number: graphs::NIGHT, paused: rng.chance(300), length };
            self.requests.push((at, night));
        }
        if self.declared.conditions {
            for _ in 0..rng.below(3) {
                let length = rng.within(SECOND..MINUTE);
                let pause = UserRequest::Condition { asset: rng.below(3) as u8, length };
                self.requests.push((rng.within(0..self.healed_at), pause));
            }
        }
        if self.declared.renames {
            for _ in 0..rng.within(1..4) {
                let rename = UserRequest::Rename { version: rng.below(4) as u8, asset: rng.draw() as u8 };
                self.requests.push((rng.within(0..self.healed_at), rename));
            }
        }
        if self.declared.notifications && rng.chance(500) {
            let rule = UserRequest::Rule { length: rng.within(SECOND..MINUTE) };
            self.requests.push((rng.within(0..self.healed_at), rule));
        }
        if self.declared.sensors {
            for _ in 0..rng.within(1..3) {
                let cursor = rng.chance(600).then(|| rng.below(4) as u8);
                let poll = UserRequest::Poll { cursor, length: rng.within(10 * SECOND..2 * MINUTE) };
                self.requests.push((rng.within(0..self.healed_at), poll));
            }
            for _ in 0..rng.within(1..4) {
                let push = UserRequest::Push {
                    declared: rng.chance(500),
                    messages: rng.within(1..5) as u8,
                    removed: rng.chance(300),
                };
                self.requests.push((rng.within(0..self.healed_at), push));
            }
        }
    }

    /// Changes of limits, with chances of their own.
    fn change_limits(&mut self) {
        let mut rng = Rng::fork(self.seed, 67);
        for _ in 0..rng.below(4) {
            let limit = rng.chance(800).then(|| rng.within(1..4) as u8);
            let change = UserRequest::Limit { of: rng.below(3) as u8, limit };
            self.requests.push((rng.within(0..self.healed_at), change));
        }
    }

    fn inject(&mut self, rng: &mut Rng) {
        let within = self.healed_at;
        for fault in self.faults.iter() {
            for _ in 0..rng.within(1..4) {
                let at = rng.within(0..within);
                let node = rng.below(self.nodes);
                let worker = rng.below(self.workers);
                let pause = *rng.pick(&[0, 5_000, SECOND, 40 * SECOND]);
                let fault = match fault {
                    Fault::Crash => ScheduledFault::Crash { node, turns: rng.within(1..60), pause },
                    Fault::TornTail if self.storage == Storage::Disk => ScheduledFault::PowerLoss { pause },
                    Fault::StaleNode => {
                        ScheduledFault::Freeze { node, length: rng.within(SECOND..120 * SECOND) }
                    }
                    Fault::SlowStore => ScheduledFault::Slow(rng.within(SECOND..90 * SECOND)),
                    Fault::Throttling => ScheduledFault::Throttling(rng.within(SECOND..90 * SECOND)),
                    Fault::Outage => {
                        let hours = rng.chance(20);
                        self.healed_at += if hours { 3 * HOUR } else { 0 };
                        ScheduledFault::Outage(if hours {
                            3 * HOUR
                        } else {
                            rng.within(5 * SECOND..2 * MINUTE)
                        })
                    }
                    Fault::ClockSkew => ScheduledFault::Clock { node, error: skew(rng, 300_000), fault },
                    Fault::ClockJump => {
                        ScheduledFault::Clock { node, error: -(rng.within(1..7_200_000) as i64), fault }
                    }
                    Fault::WorkerCrash => ScheduledFault::WorkerCrash(worker),
                    Fault::Zombie => {
                        let length = *rng.pick(&[2 * MINUTE, 20 * MINUTE, 30 * HOUR]);
                        ScheduledFault::CutOff { worker, length, fault }
                    }
                    Fault::Partition => {
                        let length = rng.within(SECOND..150 * SECOND);
                        ScheduledFault::CutOff { worker, length, fault }
                    }
                    Fault::DeletedUnderReader => ScheduledFault::SlowReader,
                    Fault::TornTail
                    | Fault::LostAnswer
                    | Fault::DuplicateWrite
                    | Fault::RetryConflict
                    | Fault::SecondNode
                    | Fault::QueueDuplicate
                    | Fault::QueueDelay
                    | Fault::QueueReorder
                    | Fault::QueueDrop
                    | Fault::Redelivery
                    | Fault::Poison
                    | Fault::OldEvents
                    | Fault::NewEvents => break,
                };
                self.scheduled_faults.push((at, fault));
            }
        }
    }
}

/// Settings with limits of pools and labels, and room for more tasks and runs than they let begin.
fn limited(seed: u64, settings: Settings) -> Settings {
    let mut rng = Rng::fork(seed, 61);
    let mut few = || rng.within(1..3) as u32;
    let pools = POOLS.map(|pool| (pool.to_owned(), few()));
    let runs_per = [(CUSTOMER.to_owned(), few())];
    let runs_with = [(format!("{CUSTOMER}={}", CUSTOMERS_OF_RUNS[1]), few())];
    Settings {
        max_concurrent_tasks: settings.max_concurrent_tasks + 3,
        pools: pools.into(),
        runs_per: runs_per.into(),
        runs_with: runs_with.into(),
        ..settings
    }
}

/// The code of the workers of a seed, with a chance of its own.
fn worker_code(seed: u64, kind: WorkerKind) -> WorkerCode {
    match Rng::fork(seed, 47).below(10) {
        0..=3 => WorkerCode::Scripted,
        4..=6 if kind == WorkerKind::Remote => WorkerCode::OverHttp,
        _ => WorkerCode::Executor,
    }
}

/// Whether superseded data goes soon in a seed, and somebody asks for it.
fn removes_soon(seed: u64) -> bool {
    seed % 5 == 2
}

fn skew(rng: &mut Rng, most: u64) -> i64 {
    let error = rng.within(1..most) as i64;
    if rng.chance(500) { error } else { -error }
}
