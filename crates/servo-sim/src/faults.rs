//! Kinds of faults, how often each took effect, and when injection stops.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::rng::Rng;
use crate::world::{Domain, World};

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A write takes effect, but its response is lost.
    LostAnswer,
    /// A write or a request of a worker arrives twice, the second time perhaps much later.
    DuplicateWrite,
    /// "Already exists", although nothing was stored: a retry is needed.
    RetryConflict,
    /// Two nodes are active at once without a lease: each is refused what the other has written.
    SecondNode,
    /// A node pauses longer than its lease, and resumes while another is active.
    StaleNode,
    /// Power loss: unsynced writes are lost, in part or out of order.
    TornTail,
    /// A node dies.
    Crash,
    /// The store answers after seconds.
    SlowStore,
    /// Most requests are answered 503 for a while.
    Throttling,
    /// No request is answered, for minutes or for hours; counted from the first hour on.
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
    /// A worker is cut off, continues, and reports too late.
    Zombie,
    /// Calls between workers and nodes are lost for a while.
    Partition,
    /// Malformed messages, tokens and reports.
    Poison,
    /// Old batches and files are deleted while they are read.
    DeletedUnderReader,
    /// The log begins with events of the first version, without what came later.
    OldEvents,
    /// In the end a newer node writes an event that this version does not know: it refuses to write after that.
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
        Self::Throttling,
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
    /// Chooses a random subset.
    pub fn choose(rng: &mut Rng) -> Self {
        // Quiet worlds, wild worlds, and everything between: each finds what the others hide.
        let chance = *rng.pick(&[0, 60, 150, 150, 300, 300, 500, 800]);
        let mut chosen = Self::default();
        for fault in Fault::ALL {
            if rng.chance(chance) {
                chosen.0 |= fault.bit();
            }
        }
        chosen
    }

    /// Whether it is one of them.
    pub fn has(self, fault: Fault) -> bool {
        self.0 & fault.bit() != 0
    }

    /// The set without one fault.
    #[must_use]
    pub fn without(self, fault: Fault) -> Self {
        Self(self.0 & !fault.bit())
    }

    /// The faults in the set.
    pub fn iter(self) -> impl Iterator<Item = Fault> {
        Fault::ALL.into_iter().filter(move |fault| self.has(*fault))
    }

    /// As a number, for a command line.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The set of such a number.
    pub fn from_bits(bits: u64) -> Self {
        Self(bits & ((1 << Fault::ALL.len()) - 1))
    }
}

/// How often each fault took effect.
pub type FaultCounts = BTreeMap<Fault, u64>;

/// Decides when faults occur. Cheap to clone.
#[derive(Clone)]
pub struct Faults {
    world: World,
    enabled: Arc<AtomicU64>,
    healed: Arc<AtomicBool>,
    injected: Arc<Mutex<FaultCounts>>,
    /// Times of late events.
    late: Arc<Mutex<BTreeSet<u64>>>,
}

impl Faults {
    /// Enables these faults from now on.
    pub fn new(world: &World, enabled: FaultSet) -> Self {
        Self {
            world: world.clone(),
            enabled: Arc::new(AtomicU64::new(enabled.0)),
            healed: Arc::default(),
            injected: Arc::default(),
            late: Arc::default(),
        }
    }

    /// Whether a fault may occur now.
    pub fn may(&self, fault: Fault) -> bool {
        self.enabled.load(Ordering::Relaxed) & fault.bit() != 0
    }

    /// Whether a fault occurs now: so many times in a thousand, if enabled.
    pub fn injects(&self, domain: Domain, fault: Fault, per_mille: u32) -> bool {
        if !self.may(fault) || !self.world.roll(domain, |rng| rng.chance(per_mille)) {
            return false;
        }
        self.count(fault);
        true
    }

    /// Counts a fault that took effect.
    pub fn count(&self, fault: Fault) {
        *lock(&self.injected).entry(fault).or_insert(0) += 1;
        self.world.note("fault", || format!("{fault:?}"));
    }

    /// Disables all faults from now on.
    pub fn heal(&self) {
        self.enabled.store(0, Ordering::Relaxed);
        self.healed.store(true, Ordering::Relaxed);
        self.world.note("healed", String::new);
    }

    /// Whether all faults are disabled.
    pub fn is_healed(&self) -> bool {
        self.healed.load(Ordering::Relaxed)
    }

    /// How often each fault took effect.
    pub fn injected(&self) -> FaultCounts {
        lock(&self.injected).clone()
    }

    /// Schedules an event, perhaps long after all faults were healed: the world runs until then.
    pub fn later(&self, domain: Domain, micros: u64, happening: impl FnOnce() + Send + 'static) {
        let (late, at) = (Arc::clone(&self.late), self.world.now() + micros);
        lock(&late).insert(at);
        self.world.after(domain, micros, move |_| {
            lock(&late).remove(&at);
            happening();
        });
    }

    /// The time of the next such event.
    pub fn next_late(&self) -> Option<u64> {
        lock(&self.late).first().copied()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
