//! One seed: a world is made, lived in, healed, and judged.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use servo_core::planted::{self, Mistake};
use servo_engine::HotRows;
use servo_engine::testing::invariants;

use crate::audit::{Audit, Batch};
use crate::bucket::Bucket;
use crate::faults::{Fault, Faults, Struck};
use crate::judge;
use crate::people::People;
use crate::scenario::{Blow, Crew, HOUR, SECOND, Scenario};
use crate::site::Site;
use crate::strangers;
use crate::worker::Worker;
use crate::world::{Lane, Remains, World};

/// Steps after which a world that has not come to rest never will.
const MOST_STEPS: u64 = 400_000;

/// How long after healing everything must have ended.
const REST: u64 = 100 * HOUR;

/// What came of a seed.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// What is wrong; empty if all is well.
    pub wrong: Vec<String>,
    /// Things that happened.
    pub steps: u64,
    /// Whether it came to an end, or was given up.
    pub ended: bool,
    /// The same if, and only if, the same happened.
    pub hash: u64,
    /// The same if, and only if, the log of the workspace is.
    pub history: u64,
    /// Batches in the log.
    pub batches: usize,
    /// How often each fault struck.
    pub struck: Struck,
    /// What happened, if it was asked for.
    pub trace: Vec<String>,
    /// The batches of the log.
    pub log: Vec<Batch>,
}

/// How to run a seed.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    /// Keep what happened, as text.
    pub traced: bool,
    /// Make this mistake.
    pub planted: Option<Mistake>,
    /// Let another workspace live next door.
    pub neighbour: bool,
    /// Give up after so many steps, if not after the usual number.
    pub most_steps: Option<u64>,
}

/// Lives through a scenario.
pub fn run(scenario: &Scenario, how: How) -> Outcome {
    planted::plant(how.planted);
    let (mut outcome, remains) = live(scenario, how);
    planted::plant(None);
    if !remains.are_gone() {
        outcome.wrong.push("memory is held by something that holds itself".to_owned());
    }
    outcome
}

fn live(scenario: &Scenario, how: How) -> (Outcome, Remains) {
    let world = World::new(scenario.seed, how.traced);
    let audit = Audit::default();
    let bucket = Bucket::new(&world, &audit);
    let site = settle_in(&world, WATCHED, &audit, &bucket, "prod", scenario.clone());
    let neighbour = how.neighbour.then(|| {
        // It shares the machines and the bucket, and has troubles of its own.
        let seed = scenario.seed ^ 0x00ae_1947_0000;
        let other = settle_in(&world, NEXT_DOOR, &audit, &bucket, "other", Scenario::of(seed));
        Troubled::begin(&other);
        other
    });
    if site.faults.may(Fault::OldEvents) {
        world.run_until(WATCHED, MOST_STEPS, strangers::old_version(site.clone()));
    }
    let troubled = Troubled::begin(&site);
    let most_steps = how.most_steps.unwrap_or(MOST_STEPS);
    let finished = world.run_until(WATCHED, most_steps, troubled.rest());
    let ended = finished.is_some();
    let mut wrong = audit.complaints();
    if wrong.is_empty() {
        wrong = match finished {
            Some(Some(live)) => {
                let judged = world.run_until(WATCHED, MOST_STEPS, judge::judge(site.clone(), live));
                let mut wrong = judged.unwrap_or_else(|| vec!["the judge came to no end".to_owned()]);
                wrong.extend(audit.complaints());
                wrong
            }
            Some(None) | None if audit.has_complaints() => audit.complaints(),
            Some(None) => std::iter::once("something never ends".to_owned()).chain(world.alive()).collect(),
            None => vec![format!("there is no end to it after {} steps", world.steps())],
        };
    }
    world.end();
    std::iter::once(&site).chain(&neighbour).for_each(Site::end);
    let batches = audit.book(&site.prefix()).batches;
    let outcome = Outcome {
        seed: scenario.seed,
        wrong,
        steps: world.steps(),
        ended,
        hash: world.hash(),
        history: history(&batches),
        batches: batches.len(),
        struck: site.faults.struck(),
        trace: world.trace(),
        log: batches,
    };
    (outcome, world.remains())
}

/// Where the workspace lives that is looked at, and where the one that must not matter to it.
const WATCHED: Lane = 1;
const NEXT_DOOR: Lane = 2;

fn settle_in(
    world: &World,
    lane: Lane,
    audit: &Audit,
    bucket: &Bucket,
    name: &str,
    scenario: Scenario,
) -> Site {
    let faults = Faults::new(world, scenario.faults);
    Site::new(world, lane, &faults, audit, bucket, name, scenario)
}

/// A number that is the same if, and only if, the log is.
fn history(batches: &[Batch]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for batch in batches {
        (batch.seq, batch.epoch, &batch.payload).hash(&mut hasher);
    }
    hasher.finish()
}

/// A site with everybody in it.
#[derive(Clone)]
struct Troubled {
    site: Site,
    people: People,
}

impl Troubled {
    fn begin(site: &Site) -> Self {
        site.haunt();
        for node in 0..site.scenario.nodes {
            site.start(node);
        }
        if site.scenario.faults.has(Fault::SecondNode) {
            site.faults.count(Fault::SecondNode);
        }
        let workers = Workers::start(site);
        let people = People::new(site);
        for (at, blow) in site.scenario.blows.clone() {
            let (hit, workers) = (site.clone(), workers.clone());
            site.world.after(site.lane, at, move |_| strike(&hit, &workers, &blow));
        }
        let (healed, all) = (site.clone(), workers);
        site.world.after(site.lane, site.scenario.healed_at, move |_| {
            healed.faults.heal();
            healed.bucket.heal(healed.lane);
            healed.heal();
            all.heal(&healed);
        });
        Self { site: site.clone(), people }
    }

    /// Waits until nothing is left to do: every wish answered, every run ended. Answers the states of the nodes; none
    /// if that takes too long, or something is wrong.
    async fn rest(self) -> Option<Vec<HotRows>> {
        let (site, lane) = (&self.site, self.site.lane);
        let last = site.scenario.healed_at + REST;
        let mut pause = 5 * SECOND;
        loop {
            site.world.sleep(lane, pause).await;
            pause = (pause * 3 / 2).min(300 * SECOND);
            if site.world.now() > last || site.audit.has_complaints() {
                return None;
            }
            if !site.faults.is_healed() || self.people.waiting() > 0 || !self.is_idle().await {
                continue;
            }
            // Whatever is still under way, such as late reports, has its time.
            site.world.sleep(lane, 600 * SECOND).await;
            if self.is_idle().await {
                return Some(self.settle().await);
            }
        }
    }

    async fn is_idle(&self) -> bool {
        let nodes = self.site.open_nodes();
        if nodes.is_empty() {
            return false;
        }
        for node in nodes {
            let idle = node.read(|state| state.active_runs() == 0 && state.next_deadline().is_none());
            if !idle.await.unwrap_or(false) {
                return false;
            }
        }
        true
    }

    /// Closes the nodes one after the other, having read their states.
    async fn settle(&self) -> Vec<HotRows> {
        let nodes = self.site.open_nodes();
        let end = self.site.audit.book(&self.site.prefix()).batches.len() as u64;
        let mut states = Vec::new();
        for node in nodes {
            let rows = node.read(|state| (invariants::check_at_rest(state), state.head().seq, state.rows()));
            match rows.await {
                Ok((Ok(()), seq, rows)) if seq == end => states.push(rows),
                // Without a lease an idle node learns of the other's work when it writes.
                Ok((Ok(()), ..)) | Err(_) => {}
                Ok((Err(wrong), ..)) => self.site.audit.complain(wrong.to_string()),
            }
        }
        self.site.close();
        for node in self.site.open_nodes() {
            let _ended = node.shutdown().await;
        }
        for node in 0..self.site.scenario.nodes {
            self.site.crash(node, 0);
        }
        states
    }
}

/// Workers that are replaced when they die.
#[derive(Clone)]
struct Workers(Arc<Mutex<Vec<(Worker, u32, u32)>>>);

impl Workers {
    fn start(site: &Site) -> Self {
        let count = if site.scenario.crew == Crew::Remote { site.scenario.workers } else { 0 };
        let start = |number| {
            let (worker, process) = Worker::start(site, &format!("worker-{number}.1"));
            (worker, process, 1)
        };
        Self(Arc::new(Mutex::new((0..count).map(start).collect())))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Worker, u32, u32)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn crash(&self, site: &Site, number: usize) {
        let Some((_, process, starts)) = self.lock().get(number).cloned() else { return };
        site.faults.count(Fault::WorkerCrash);
        site.world.kill(process);
        let (worker, process) = Worker::start(site, &format!("worker-{number}.{}", starts + 1));
        self.lock()[number] = (worker, process, starts + 1);
    }

    fn cut_off(&self, site: &Site, number: usize, length: u64, fault: Fault) {
        let Some((worker, ..)) = self.lock().get(number).cloned() else { return };
        site.faults.count(fault);
        worker.cut_off(true);
        site.world.after(site.lane, length, move |_| worker.cut_off(false));
    }

    /// Those that are cut off for days stay so: that is what makes them zombies. There is one more who does the work.
    fn heal(&self, site: &Site) {
        if !self.lock().is_empty() {
            let (worker, process) = Worker::start(site, "worker-fresh");
            self.lock().push((worker, process, 1));
        }
    }
}

fn strike(site: &Site, workers: &Workers, blow: &Blow) {
    site.world.note("blow", || format!("{blow:?}"));
    match *blow {
        Blow::Crash { node, pause } => {
            site.faults.count(Fault::Crash);
            site.crash(node, pause);
        }
        Blow::PowerLoss { pause } => {
            site.faults.count(Fault::TornTail);
            site.lose_power(pause);
        }
        Blow::Freeze { node, length } => {
            site.faults.count(Fault::StaleNode);
            site.freeze(node, length);
        }
        Blow::Slow(length) => site.bucket.slow_down(site.lane, length),
        Blow::Storm(length) => site.bucket.storm(site.lane, length),
        Blow::Outage(length) => site.bucket.outage(site.lane, length),
        Blow::Clock { node, error } => {
            site.faults.count(if error < 0 { Fault::ClockJump } else { Fault::ClockSkew });
            site.set_clock(node, error);
        }
        Blow::WorkerCrash(worker) => workers.crash(site, worker),
        Blow::CutOff { worker, length, zombie } => {
            workers.cut_off(site, worker, length, if zombie { Fault::Zombie } else { Fault::Partition });
        }
        Blow::NewEvents => site.aside("new version", strangers::new_version(site.clone())),
        Blow::SlowReader => site.aside("reader", strangers::slow_reader(site.clone())),
    }
}
