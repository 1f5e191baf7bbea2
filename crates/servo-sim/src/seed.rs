//! Runs one seed: a cluster is created, exercised, healed, and verified.

use std::hash::{DefaultHasher, Hash, Hasher};

use futures::FutureExt;
use servo_core::planted::{self, Mistake};
use servo_engine::HotRows;
use servo_engine::testing::invariants;

use crate::audit::{Audit, Batch};
use crate::blows::{Workers, strike};
use crate::bucket::Bucket;
use crate::faults::{Fault, Faults, Struck};
use crate::judge;
use crate::people::People;
use crate::scenario::{HOUR, MINUTE, SECOND, Scenario};
use crate::shrink::Cut;
use crate::site::Site;
use crate::strangers;
use crate::world::{Lane, Remains, World};

/// Steps after which a world that is not at rest never will be. Hours without a worker take half of them.
const MOST_STEPS: u64 = 1_000_000;

/// How long after healing everything must have ended.
const REST: u64 = 100 * HOUR;

/// The outcome of a seed.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// How it was run.
    pub how: How,
    /// The violations; empty if there are none.
    pub wrong: Vec<String>,
    /// Number of steps.
    pub steps: u64,
    /// Whether it came to rest, or ran out of steps.
    pub ended: bool,
    /// Hash of everything that happened.
    pub hash: u64,
    /// Hash of the log of the workspace.
    pub history: u64,
    /// Batches in the log.
    pub batches: usize,
    /// How often each fault took effect.
    pub struck: Struck,
    /// The trace, if it was requested.
    pub trace: Vec<String>,
    /// The batches of the log.
    pub log: Vec<Batch>,
}

impl Outcome {
    /// The command that reproduces it, with these parts left out.
    pub fn command(&self, cut: &Cut) -> String {
        let How { planted, twice, neighbour, .. } = self.how;
        let planted = planted.map_or_else(String::new, |mistake| format!(" --plant {mistake:?}"));
        let twice = if twice { " --twice" } else { "" };
        let neighbour = if neighbour { " --neighbour" } else { "" };
        let seed = self.seed;
        format!("replay: cargo run --release -p servo-sim -- replay {seed}{cut}{planted}{twice}{neighbour}")
    }
}

/// How to run a seed.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    /// Record a trace, as text.
    pub traced: bool,
    /// Plant this mistake.
    pub planted: Option<Mistake>,
    /// Run it twice, which must give the same result to the bit.
    pub twice: bool,
    /// Run it again beside a second workspace, which must not matter.
    pub neighbour: bool,
    /// Stop after so many steps, if not after the usual number.
    pub most_steps: Option<u64>,
}

/// Runs a scenario, and perhaps again.
pub fn run(scenario: &Scenario, how: How) -> Outcome {
    let mut outcome = once(scenario, how, false);
    if how.twice {
        let again = once(scenario, how, false);
        let what = |outcome: &Outcome| (outcome.hash, outcome.steps, outcome.history);
        if what(&again) != what(&outcome) {
            outcome.wrong.push(format!(
                "the same seed is not the same history: {:016x} after {} steps, then {:016x} after {}",
                outcome.hash, outcome.steps, again.hash, again.steps
            ));
        }
    }
    if how.neighbour {
        let beside = once(scenario, how, true);
        if beside.history != outcome.history {
            outcome.wrong.push("its history is another one with a neighbour".to_owned());
        }
        if !beside.wrong.is_empty() {
            outcome.wrong.extend(beside.wrong);
            outcome.trace = beside.trace;
        }
    }
    outcome
}

fn once(scenario: &Scenario, how: How, neighbour: bool) -> Outcome {
    planted::plant(how.planted);
    let (mut outcome, remains) = live(scenario, how, neighbour);
    planted::plant(None);
    if !remains.are_gone() {
        outcome.wrong.push("memory is held by something that holds itself".to_owned());
    }
    outcome
}

fn live(scenario: &Scenario, how: How, neighbour: bool) -> (Outcome, Remains) {
    let world = World::new(scenario.seed, how.traced);
    let audit = Audit::default();
    let bucket = Bucket::new(&world, &audit);
    let site = settle_in(&world, WATCHED, &audit, &bucket, "prod", scenario.clone());
    let neighbour = neighbour.then(|| {
        // It shares the clock and the bucket, and has troubles of its own.
        let seed = scenario.seed ^ 0x00ae_1947_0000;
        let other = settle_in(&world, NEXT_DOOR, &audit, &bucket, "other", Scenario::of(seed));
        other.aside("neighbour", Troubled::begin(&other).rest().map(drop));
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
            Some(None) => std::iter::once("something never ends".to_owned()).chain(world.alive()).collect(),
            None => vec![format!("there is no end to it after {} steps", world.steps())],
        };
    }
    world.end();
    std::iter::once(&site).chain(&neighbour).for_each(Site::end);
    let batches = audit.book(&site.prefix()).batches;
    let outcome = Outcome {
        seed: scenario.seed,
        how,
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

/// The lane of the observed workspace, and that of the second one, which must not matter to it.
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

/// Hash of a log.
fn history(batches: &[Batch]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for batch in batches {
        (batch.seq, batch.epoch, &batch.payload).hash(&mut hasher);
    }
    hasher.finish()
}

/// A cluster with its users and workers.
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

    /// Waits until nothing is left to do: every request answered, every run ended. Returns the states of the nodes;
    /// none if that takes too long, or there is a violation.
    async fn rest(self) -> Option<Vec<HotRows>> {
        let (site, lane) = (&self.site, self.site.lane);
        let mut last = site.scenario.healed_at + REST;
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
            if !self.is_idle().await {
                continue;
            }
            match site.faults.next_late() {
                Some(at) => self.stand_still_until(at).await,
                None => return Some(self.settle().await),
            }
            last = site.world.now() + REST;
        }
    }

    /// Stops all nodes until shortly before the next event that is late by days.
    async fn stand_still_until(&self, at: u64) {
        let (site, now) = (&self.site, self.site.world.now());
        if at > now + HOUR {
            site.switch_off();
            site.world.sleep(site.lane, at - now - 5 * MINUTE).await;
            site.switch_on();
        }
        site.world.sleep(site.lane, at.saturating_sub(site.world.now()) + MINUTE).await;
    }

    async fn is_idle(&self) -> bool {
        let nodes = self.site.open_nodes();
        if nodes.is_empty() {
            return false;
        }
        for node in nodes {
            let idle = node.inspect(|state| state.active_runs() == 0 && state.next_deadline().is_none());
            if !idle.await.unwrap_or(false) {
                return false;
            }
        }
        true
    }

    /// Closes the nodes one after the other, and returns their states.
    async fn settle(&self) -> Vec<HotRows> {
        let nodes = self.site.open_nodes();
        let end = self.site.audit.book(&self.site.prefix()).batches.len() as u64;
        let mut states = Vec::new();
        for node in nodes {
            let rows =
                node.inspect(|state| (invariants::check_at_rest(state), state.head().seq, state.rows()));
            match rows.await {
                Ok((Ok(()), seq, rows)) if seq == end => states.push(rows),
                // Without a lease an idle node learns of the other's work when it writes.
                Ok((Ok(()), ..)) | Err(_) => {}
                Ok((Err(wrong), ..)) => self.site.audit.complain(wrong.to_string()),
            }
        }
        // With a lease, or alone, there is one that knows everything; unless a stranger had the last word.
        let strangers = self.site.faults.struck().contains_key(&Fault::NewEvents);
        let alone = self.site.scenario.leased || self.site.scenario.nodes == 1;
        if states.is_empty() && alone && !strangers {
            self.site.audit.complain("no node knows the whole log");
        }
        let nodes = self.site.open_nodes();
        self.site.close();
        for node in nodes {
            let _ended = node.shutdown().await;
        }
        self.site.switch_off();
        states
    }
}
