//! The scenario of a seed: settings, requests and faults with their times. Plain data, so that a failing one can be
//! shrunk.

use servo_core::Millis;
use servo_engine::Settings;

use crate::dice::Dice;
use crate::faults::{Fault, FaultSet};

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
pub enum Crew {
    /// Separate workers, reached through a queue and a network.
    Remote,
    /// Workers inside the node.
    Local,
}

/// A request of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Wish {
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
    /// Read a page of runs: every acknowledged run must be there.
    Read,
}

/// A fault with its parameters, scheduled for a time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Blow {
    /// A node crashes after so many more turns of its tasks; it restarts after this long.
    Crash { node: usize, turns: u64, pause: u64 },
    /// The machine of a node loses power; it restarts after this long.
    PowerLoss { pause: u64 },
    /// A node is paused for this long.
    Freeze { node: usize, length: u64 },
    /// The store is slow for this long.
    Slow(u64),
    /// Most requests to the store are refused for this long.
    Storm(u64),
    /// Every request to the store is refused for this long.
    Outage(u64),
    /// The clock of a node is off by so many milliseconds.
    Clock { node: usize, error: i64, fault: Fault },
    /// A worker dies and is replaced.
    WorkerCrash(usize),
    /// A worker is cut off for this long.
    CutOff { worker: usize, length: u64, fault: Fault },
    /// A newer version writes events.
    NewEvents,
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
    pub crew: Crew,
    /// How many nodes.
    pub nodes: usize,
    /// Whether nodes use a lease.
    pub leased: bool,
    /// How many workers.
    pub workers: usize,
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
    pub wishes: Vec<(u64, Wish)>,
    /// Faults, and their times.
    pub blows: Vec<(u64, Blow)>,
    /// The time at which faults stop.
    pub healed_at: u64,
}

impl Scenario {
    /// The scenario of a seed.
    pub fn of(seed: u64) -> Self {
        let mut dice = Dice::fork(seed, 1);
        let mut faults = FaultSet::choose(&mut dice);
        let storage = if dice.chance(650) { Storage::Bucket } else { Storage::Disk };
        let crew = if dice.chance(700) { Crew::Remote } else { Crew::Local };
        let (nodes, leased) = match storage {
            Storage::Disk => (1, false),
            Storage::Bucket if faults.has(Fault::SecondNode) => (2, false),
            Storage::Bucket if faults.has(Fault::StaleNode) => (2, true),
            Storage::Bucket => (1 + usize::from(dice.chance(300)), true),
        };
        if nodes < 2 {
            faults = faults.without(Fault::SecondNode).without(Fault::StaleNode);
        }
        let settings = Settings {
            max_concurrent_tasks: dice.within(1..7) as u32,
            max_concurrent_runs: dice.within(2..8) as u32,
            max_interruptions: dice.within(2..6) as u32,
            force_cancel_after: Millis::from_secs(dice.within(20..120)),
            recent_runs: *dice.pick(&[0, 1, 3, 100]),
            max_run_duration: Millis::from_hours(*dice.pick(&[1, 4, 24])),
            outbox_retry_after: Millis::from_secs(dice.within(30..300)),
            dedup_window: Millis::from_hours(7 * 24),
            max_partition_changes: 6,
            max_dynamic_partitions: 3,
            ..Settings::default()
        };
        let healed_at = *dice.pick(&[MINUTE / 2, MINUTE, 3 * MINUTE, 5 * MINUTE, 15 * MINUTE]);
        let mut scenario = Self {
            seed,
            storage,
            crew,
            nodes,
            leased,
            workers: 1 + dice.below(3),
            settings,
            flush_every: *dice.pick(&[10_000, 60_000, 300_000, 1_200_000]),
            merge_at: dice.within(3..9) as usize,
            keep_log_batches: faults.has(Fault::DeletedUnderReader).then(|| dice.within(1..8)),
            faults,
            wishes: Vec::new(),
            blows: Vec::new(),
            healed_at,
        };
        scenario.wish(&mut dice);
        scenario.strike(&mut dice);
        scenario
    }

    fn wish(&mut self, dice: &mut Dice) {
        self.wishes.push((0, Wish::Deploy(0)));
        if dice.chance(500) {
            self.wishes.push((0, Wish::Partitions { add: 3, remove: 0 }));
        }
        let runs = dice.within(1..5) as u8;
        let wishes = dice.within(1..10) + u64::from(runs);
        for number in 0..wishes {
            let at = dice.within(0..self.healed_at);
            let key =
                if number < u64::from(runs) { number as u8 } else { dice.below(usize::from(runs)) as u8 };
            let run = |dice: &mut Dice, fresh: bool| Wish::Run {
                key,
                // The same key asks for the same again, except now and then.
                graph: if fresh || dice.chance(900) { u64::from(key) } else { 77 },
                priority: i32::from(key % 3),
                timeout: (key % 4 == 3).then_some(600),
            };
            let wish = match if number < u64::from(runs) { 0 } else { dice.below(10) } {
                0 if number < u64::from(runs) => run(dice, true),
                0 | 1 => run(dice, false),
                2 | 3 => Wish::Cancel { key, force: dice.chance(300) },
                4 => Wish::Retry { key, from_failure: dice.chance(500) },
                5 => Wish::Deploy(dice.below(4) as u8),
                6 => Wish::Partitions { add: dice.draw() as u8, remove: dice.draw() as u8 },
                7 => Wish::Review { approve: dice.chance(500) },
                _ => Wish::Read,
            };
            self.wishes.push((at, wish));
        }
    }

    fn strike(&mut self, dice: &mut Dice) {
        let within = self.healed_at;
        for fault in self.faults.iter() {
            for _ in 0..dice.within(1..4) {
                let at = dice.within(0..within);
                let node = dice.below(self.nodes);
                let worker = dice.below(self.workers);
                let pause = *dice.pick(&[0, 5_000, SECOND, 40 * SECOND]);
                let blow = match fault {
                    Fault::Crash => Blow::Crash { node, turns: dice.within(1..60), pause },
                    Fault::TornTail if self.storage == Storage::Disk => Blow::PowerLoss { pause },
                    Fault::StaleNode => Blow::Freeze { node, length: dice.within(SECOND..120 * SECOND) },
                    Fault::SlowStore => Blow::Slow(dice.within(SECOND..90 * SECOND)),
                    Fault::Storm => Blow::Storm(dice.within(SECOND..90 * SECOND)),
                    Fault::Outage => {
                        let hours = dice.chance(20);
                        self.healed_at += if hours { 3 * HOUR } else { 0 };
                        Blow::Outage(if hours { 3 * HOUR } else { dice.within(5 * SECOND..2 * MINUTE) })
                    }
                    Fault::ClockSkew => Blow::Clock { node, error: skew(dice, 300_000), fault },
                    Fault::ClockJump => {
                        Blow::Clock { node, error: -(dice.within(1..7_200_000) as i64), fault }
                    }
                    Fault::WorkerCrash => Blow::WorkerCrash(worker),
                    Fault::Zombie => {
                        let length = *dice.pick(&[2 * MINUTE, 20 * MINUTE, 30 * HOUR]);
                        Blow::CutOff { worker, length, fault }
                    }
                    Fault::Partition => {
                        let length = dice.within(SECOND..150 * SECOND);
                        Blow::CutOff { worker, length, fault }
                    }
                    Fault::NewEvents => Blow::NewEvents,
                    Fault::DeletedUnderReader => Blow::SlowReader,
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
                    | Fault::OldEvents => break,
                };
                self.blows.push((at, blow));
            }
        }
    }
}

fn skew(dice: &mut Dice, most: u64) -> i64 {
    let error = dice.within(1..most) as i64;
    if dice.chance(500) { error } else { -error }
}
