//! Every way to die on a disk, and how one gets over it.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex};

use servo_store::testing::{MemoryDisk, MemoryFiles, OperationKind, Verdict};

/// More than a process writes when it starts.
const WRITES_OF_RECOVERY: u64 = 20;

/// A client that continues in a new process after the last one died.
pub(crate) trait Client: Default {
    /// Checks that what was acknowledged is there, and does what is left to do.
    fn run(&mut self, files: &MemoryFiles) -> Result<(), Box<dyn Error>>;
}

/// One death.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crash {
    /// At which write of all there are.
    pub(crate) at: u64,
    pub(crate) verdict: Verdict,
    /// The power goes with it; what survives is chosen by this seed.
    pub(crate) power: Option<u64>,
}

/// The writes of an undisturbed process, and its final disk.
pub(crate) struct CrashFreeRun {
    writes: Vec<(OperationKind, usize)>,
    pub(crate) disk: MemoryDisk,
}

impl CrashFreeRun {
    pub(crate) fn run<C: Client>() -> Self {
        let disk = MemoryDisk::new();
        let writes = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&writes);
        disk.on_write(Box::new(move |operation| {
            seen.lock().expect("no panic").push((operation.kind, operation.len));
            Verdict::Go
        }));
        C::default().run(&disk.process()).expect("nothing fails");
        disk.heal();
        let writes = std::mem::take(&mut *writes.lock().expect("no panic"));
        Self { writes, disk }
    }

    /// One death: every way to die at every write.
    pub(crate) fn once(&self) -> Vec<Vec<Crash>> {
        self.every(|kind, len| {
            let mut ways = vec![Verdict::DieBefore, Verdict::DieAfter];
            if kind == OperationKind::Append {
                ways.extend(
                    [1, 16, len / 2, len.saturating_sub(2), len.saturating_sub(1)].map(Verdict::Tear),
                );
            }
            ways
        })
        .map(|crash| vec![crash])
        .collect()
    }

    /// Two deaths in a row: the second at every write of the recovery from the first.
    pub(crate) fn twice(&self) -> Vec<Vec<Crash>> {
        self.and_again(|first, at| vec![first, Crash { at, verdict: Verdict::DieBefore, power: None }])
    }

    /// The power goes with every death. All is lost, nothing is, and `seeds` times something in between.
    pub(crate) fn once_with_power(&self, seeds: u64) -> Vec<Vec<Crash>> {
        let with_power = |(number, crashes): (u64, Vec<Crash>)| {
            let seeds = [0, 1].into_iter().chain((2..2 + seeds).map(move |seed| seed + seeds * number));
            seeds.map(move |seed| vec![Crash { power: Some(seed), ..crashes[0] }])
        };
        (0..).zip(self.once()).flat_map(with_power).collect()
    }

    /// The power goes while a process recovers from a death, or from another loss of power.
    pub(crate) fn twice_with_power(&self) -> Vec<Vec<Crash>> {
        self.and_again(|first, at| {
            let power = at.is_multiple_of(2).then_some(first.at * 1000 + at);
            let seed = if at.is_multiple_of(3) { 0 } else { first.at * 2000 + at };
            vec![Crash { power, ..first }, Crash { at, verdict: Verdict::DieBefore, power: Some(seed) }]
        })
    }

    /// For pairs, only deaths that leave something else on the disk than any other: after a write is before the next.
    fn and_again(&self, second: impl Fn(Crash, u64) -> Vec<Crash>) -> Vec<Vec<Crash>> {
        let firsts = self.every(|kind, len| match kind == OperationKind::Append {
            true => vec![Verdict::DieBefore, Verdict::Tear(len / 2)],
            false => vec![Verdict::DieBefore],
        });
        let pairs = |first: Crash| (1..=WRITES_OF_RECOVERY).map(move |later| (first, first.at + later));
        firsts.flat_map(pairs).map(|(first, at)| second(first, at)).collect()
    }

    fn every(&self, ways: impl Fn(OperationKind, usize) -> Vec<Verdict>) -> impl Iterator<Item = Crash> {
        let crash = move |(at, (kind, len)): (u64, &(OperationKind, usize))| {
            ways(*kind, *len).into_iter().map(move |verdict| Crash { at, verdict, power: None })
        };
        (1..).zip(&self.writes).flat_map(crash)
    }
}

/// Runs a client through each of the cases, and looks at the disk in the end. In how many everybody died who should: a
/// process that dies near the end of the script leaves the next one too little to write.
pub(crate) fn survive_all<C: Client>(cases: Vec<Vec<Crash>>, check: impl Fn(&MemoryDisk)) -> usize {
    let all_died = |crashes: &&Vec<Crash>| {
        named(crashes, || {
            let (disk, deaths) = survive::<C>(crashes);
            check(&disk);
            deaths == crashes.len()
        })
    };
    cases.iter().filter(all_died).count()
}

/// The disk in the end, and how many died.
fn survive<C: Client>(crashes: &[Crash]) -> (MemoryDisk, usize) {
    let disk = MemoryDisk::new();
    let plan: BTreeMap<u64, Verdict> = crashes.iter().map(|crash| (crash.at, crash.verdict)).collect();
    disk.on_write(Box::new(move |operation| plan.get(&operation.number).copied().unwrap_or(Verdict::Go)));
    let mut client = C::default();
    let mut deaths = 0;
    loop {
        let files = disk.process();
        let Err(error) = client.run(&files) else { break };
        assert!(!files.is_alive(), "it did not die: {error}");
        if let Some(seed) = crashes[deaths].power {
            disk.power_loss(&mut chooser(seed));
        }
        deaths += 1;
    }
    assert!(deaths > 0, "nobody died");
    disk.heal();
    client.run(&disk.process()).expect("there is nothing left to do");
    (disk, deaths)
}

/// Says which case it was if it fails.
pub(crate) fn named<T>(case: impl Debug, run: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        eprintln!("that was {case:?}");
        resume_unwind(panic)
    })
}

/// Answers that look random and are the same for the same seed. The first two seeds lose everything and nothing.
fn chooser(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |choices| match seed {
        0 => 0,
        1 => choices - 1,
        _ => {
            // SplitMix64.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            usize::try_from((mixed ^ (mixed >> 31)) % choices as u64).expect("less than the choices")
        }
    }
}
