//! What can go wrong, how often it did, and when it stops.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::dice::Dice;
use crate::world::{Lane, World};

/// One way in which the world misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A write lands and its answer never comes.
    LostAnswer,
    /// A write arrives twice, the second time perhaps much later.
    DuplicateWrite,
    /// "Already exists", although nothing landed: try again.
    RetryConflict,
    /// Two nodes work at once, without a lease between them: one is refused what the other has written.
    SecondNode,
    /// A node sleeps longer than its lease, and wakes up as if nothing had happened while another works.
    StaleNode,
    /// Power is lost: what was not synced is gone, in part or out of order.
    TornTail,
    /// A node dies.
    Crash,
    /// The store answers after seconds.
    SlowStore,
    /// Most requests are answered 503 for a while.
    Storm,
    /// Nothing is answered, for minutes or for hours; counted from the first hour on.
    Outage,
    /// The clock of a node is wrong.
    ClockSkew,
    /// The clock of a node jumps back.
    ClockJump,
    /// A message is delivered twice.
    QueueDuplicate,
    /// A message takes minutes.
    QueueDelay,
    /// Messages overtake each other.
    QueueReorder,
    /// A message is lost.
    QueueDrop,
    /// A message comes again after days.
    Redelivery,
    /// A worker dies.
    WorkerCrash,
    /// A worker is cut off, goes on, and reports when it is too late.
    Zombie,
    /// Calls between workers and nodes are lost for a while.
    Partition,
    /// Messages, tokens and reports that make no sense.
    Poison,
    /// Old batches and files are deleted under somebody who reads them.
    DeletedUnderReader,
    /// The log begins with events of the first version, without what came later.
    OldEvents,
    /// A newer node writes events that this version does not know.
    NewEvents,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::LostAnswer,
        Self::DuplicateWrite,
        Self::RetryConflict,
        Self::SecondNode,
        Self::StaleNode,
        Self::TornTail,
        Self::Crash,
        Self::SlowStore,
        Self::Storm,
        Self::Outage,
        Self::ClockSkew,
        Self::ClockJump,
        Self::QueueDuplicate,
        Self::QueueDelay,
        Self::QueueReorder,
        Self::QueueDrop,
        Self::Redelivery,
        Self::WorkerCrash,
        Self::Zombie,
        Self::Partition,
        Self::Poison,
        Self::DeletedUnderReader,
        Self::OldEvents,
        Self::NewEvents,
    ];

    fn bit(self) -> u64 {
        1 << self as u32
    }
}

/// A set of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaultSet(u64);

impl FaultSet {
    /// Some of them, more or less.
    pub fn choose(dice: &mut Dice) -> Self {
        // Quiet worlds, wild worlds, and everything between: each finds what the others hide.
        let chance = *dice.pick(&[0, 60, 150, 150, 300, 300, 500, 800]);
        let mut chosen = Self::default();
        for fault in Fault::ALL {
            if dice.chance(chance) {
                chosen.0 |= fault.bit();
            }
        }
        chosen
    }

    /// Whether it is one of them.
    pub fn has(self, fault: Fault) -> bool {
        self.0 & fault.bit() != 0
    }

    /// Without one.
    #[must_use]
    pub fn without(self, fault: Fault) -> Self {
        Self(self.0 & !fault.bit())
    }

    /// Those that are in it.
    pub fn iter(self) -> impl Iterator<Item = Fault> {
        Fault::ALL.into_iter().filter(move |fault| self.has(*fault))
    }

    /// As a number, for a command line.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// From such a number.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits & ((1 << Fault::ALL.len()) - 1))
    }
}

/// How often each fault struck.
pub type Struck = BTreeMap<Fault, u64>;

/// The faults of one world. Cheap to clone.
#[derive(Clone)]
pub struct Faults {
    world: World,
    enabled: Arc<AtomicU64>,
    healed: Arc<AtomicBool>,
    struck: Arc<Mutex<Struck>>,
    /// When the things come that come late.
    late: Arc<Mutex<BTreeSet<u64>>>,
}

impl Faults {
    /// These may strike from now on.
    pub fn new(world: &World, enabled: FaultSet) -> Self {
        Self {
            world: world.clone(),
            enabled: Arc::new(AtomicU64::new(enabled.0)),
            healed: Arc::default(),
            struck: Arc::default(),
            late: Arc::default(),
        }
    }

    /// Whether it may strike now.
    pub fn may(&self, fault: Fault) -> bool {
        self.enabled.load(Ordering::Relaxed) & fault.bit() != 0
    }

    /// Whether it strikes now: so many times in a thousand, if it may.
    pub fn strikes(&self, lane: Lane, fault: Fault, per_mille: u32) -> bool {
        if !self.may(fault) || !self.world.roll(lane, |dice| dice.chance(per_mille)) {
            return false;
        }
        self.count(fault);
        true
    }

    /// It struck.
    pub fn count(&self, fault: Fault) {
        *lock(&self.struck).entry(fault).or_insert(0) += 1;
        self.world.note("fault", || format!("{fault:?}"));
    }

    /// From now on nothing goes wrong any more.
    pub fn heal(&self) {
        self.enabled.store(0, Ordering::Relaxed);
        self.healed.store(true, Ordering::Relaxed);
        self.world.note("healed", String::new);
    }

    /// Whether nothing goes wrong any more.
    pub fn is_healed(&self) -> bool {
        self.healed.load(Ordering::Relaxed)
    }

    /// How often each has struck.
    pub fn struck(&self) -> Struck {
        lock(&self.struck).clone()
    }

    /// Lets something happen later, perhaps long after everything has healed: the world lives until then.
    pub fn later(&self, lane: Lane, micros: u64, happening: impl FnOnce() + Send + 'static) {
        let (late, at) = (Arc::clone(&self.late), self.world.now() + micros);
        lock(&late).insert(at);
        self.world.after(lane, micros, move |_| {
            lock(&late).remove(&at);
            happening();
        });
    }

    /// When the next of those things happens.
    pub fn next_late(&self) -> Option<u64> {
        lock(&self.late).first().copied()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
