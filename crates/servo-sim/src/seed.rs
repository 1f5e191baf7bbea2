//! Runs one seed: a cluster is created, exercised, healed, and verified.

use std::hash::{DefaultHasher, Hash, Hasher};

use futures::FutureExt;
use servo_core::planted::{self, Mistake};
use servo_engine::HotRows;
use servo_engine::testing::invariants;

use crate::audit::{Audit, Batch};
use crate::bucket::Bucket;
use crate::cluster::Cluster;
use crate::fault_injector::{Workers, inject};
use crate::faults::{Fault, FaultCounts, Faults};
use crate::foreign_writers;
use crate::machine::{START, START_AT_CHANGE};
use crate::scenario::{HOUR, MINUTE, SECOND, Scenario};
use crate::shrink::Cut;
use crate::users::Users;
use crate::verification;
use crate::world::{Domain, LeakCheck, World};

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
    pub injected: FaultCounts,
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
    let (mut outcome, leak_check) = live(scenario, how, neighbour);
    planted::plant(None);
    if !leak_check.are_gone() {
        outcome.wrong.push("memory is held by something that holds itself".to_owned());
    }
    outcome
}

fn live(scenario: &Scenario, how: How, neighbour: bool) -> (Outcome, LeakCheck) {
    let start = if scenario.declared.change_of_clocks { START_AT_CHANGE } else { START };
    let world = World::new(scenario.seed, start, how.traced);
    let audit = Audit::default();
    let bucket = Bucket::new(&world, &audit);
    let cluster = warm_up(&world, WATCHED, &audit, &bucket, "prod", scenario.clone());
    let neighbour = neighbour.then(|| {
        // It shares the clock and the bucket, and has troubles of its own.
        let seed = scenario.seed ^ 0x00ae_1947_0000;
        let other = warm_up(&world, NEXT_DOOR, &audit, &bucket, "other", Scenario::of(seed));
        other.spawn_process("neighbour", RunningCluster::begin(&other).rest().map(drop));
        other
    });
    if cluster.faults.may(Fault::OldEvents) {
        world.run_until(WATCHED, MOST_STEPS, foreign_writers::old_version(cluster.clone()));
    }
    let troubled = RunningCluster::begin(&cluster);
    let most_steps = how.most_steps.unwrap_or(MOST_STEPS);
    let finished = world.run_until(WATCHED, most_steps, troubled.rest());
    let ended = finished.is_some();
    let mut wrong = audit.violations();
    if wrong.is_empty() {
        wrong = match finished {
            Some(Some(live)) => {
                let judged =
                    world.run_until(WATCHED, MOST_STEPS, verification::verify(cluster.clone(), live));
                let mut wrong = judged.unwrap_or_else(|| vec!["the judge came to no end".to_owned()]);
                if wrong.is_empty() && scenario.faults.has(Fault::NewEvents) {
                    let newer = foreign_writers::new_version(cluster.clone());
                    wrong.extend(world.run_until(WATCHED, MOST_STEPS, newer).flatten());
                }
                wrong.extend(audit.violations());
                wrong
            }
            Some(None) => std::iter::once("something never ends".to_owned()).chain(world.alive()).collect(),
            None => vec![format!("there is no end to it after {} steps", world.steps())],
        };
    }
    world.end();
    std::iter::once(&cluster).chain(&neighbour).for_each(Cluster::end);
    let batches = audit.workspace(&cluster.prefix()).batches;
    let outcome = Outcome {
        seed: scenario.seed,
        how,
        wrong,
        steps: world.steps(),
        ended,
        hash: world.hash(),
        history: history(&batches),
        batches: batches.len(),
        injected: cluster.faults.injected(),
        trace: world.trace(),
        log: batches,
    };
    (outcome, world.leak_check())
}

/// The domain of the observed workspace, and that of the second one, which must not matter to it.
const WATCHED: Domain = 1;
const NEXT_DOOR: Domain = 2;

fn warm_up(
    world: &World,
    domain: Domain,
    audit: &Audit,
    bucket: &Bucket,
    name: &str,
    scenario: Scenario,
) -> Cluster {
    let faults = Faults::new(world, scenario.faults);
    Cluster::new(world, domain, &faults, audit, bucket, name, scenario)
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
struct RunningCluster {
    cluster: Cluster,
    users: Users,
}

impl RunningCluster {
    fn begin(cluster: &Cluster) -> Self {
        cluster.inject_disk_faults();
        for node in 0..cluster.scenario.nodes {
            cluster.start(node);
        }
        let workers = Workers::start(cluster);
        let users = Users::new(cluster);
        for (at, fault) in cluster.scenario.scheduled_faults.clone() {
            let (hit, workers) = (cluster.clone(), workers.clone());
            cluster.world.after(cluster.domain, at, move |_| inject(&hit, &workers, &fault));
        }
        let (healed, all) = (cluster.clone(), workers);
        cluster.world.after(cluster.domain, cluster.scenario.healed_at, move |_| {
            healed.faults.heal();
            healed.bucket.heal(healed.domain);
            healed.heal();
            all.heal(&healed);
        });
        Self { cluster: cluster.clone(), users }
    }

    /// Waits until nothing is left to do: every request answered, every run ended. Returns the states of the nodes;
    /// none if that takes too long, or there is a violation.
    async fn rest(self) -> Option<Vec<HotRows>> {
        let (cluster, domain) = (&self.cluster, self.cluster.domain);
        let mut last = cluster.scenario.healed_at + REST;
        let mut pause = 5 * SECOND;
        loop {
            cluster.world.sleep(domain, pause).await;
            pause = (pause * 3 / 2).min(300 * SECOND);
            if cluster.world.now() > last || cluster.audit.has_violations() {
                return None;
            }
            if !cluster.faults.is_healed() || self.users.waiting() > 0 || !self.is_idle().await {
                continue;
            }
            // Whatever is still under way, such as late reports, has its time.
            cluster.world.sleep(domain, 600 * SECOND).await;
            if !self.is_idle().await {
                continue;
            }
            match cluster.faults.next_late() {
                Some(at) => self.stand_still_until(at).await,
                None => return Some(self.settle().await),
            }
            last = cluster.world.now() + REST;
        }
    }

    /// Stops all nodes until shortly before the next event that is late by days.
    async fn stand_still_until(&self, at: u64) {
        let (cluster, now) = (&self.cluster, self.cluster.world.now());
        if at > now + HOUR {
            cluster.stop_all();
            cluster.world.sleep(cluster.domain, at - now - 5 * MINUTE).await;
            cluster.start_all();
        }
        cluster.world.sleep(cluster.domain, at.saturating_sub(cluster.world.now()) + MINUTE).await;
    }

    async fn is_idle(&self) -> bool {
        let nodes = self.cluster.open_nodes();
        if nodes.is_empty() {
            return false;
        }
        for node in nodes {
            let idle = node.inspect(|state| {
                state.active_runs() == 0 && state.next_deadline().is_none() && !state.awaits_try()
            });
            if !idle.await.unwrap_or(false) {
                return false;
            }
        }
        true
    }

    /// Closes the nodes one after the other, and returns their states.
    async fn settle(&self) -> Vec<HotRows> {
        // Whoever is registering has its time.
        self.cluster.close_membership();
        self.cluster.world.sleep(self.cluster.domain, MINUTE).await;
        self.cluster.contracts.check_at_rest();
        self.cluster.queue.check_at_rest();
        let nodes = self.cluster.open_nodes();
        let end = self.cluster.audit.workspace(&self.cluster.prefix()).batches.len() as u64;
        let mut states = Vec::new();
        for node in nodes {
            let rows =
                node.inspect(|state| (invariants::check_at_rest(state), state.head().seq, state.rows()));
            match rows.await {
                Ok((Ok(()), seq, rows)) if seq == end => states.push(rows),
                // Without a lease an idle node learns of the other's work when it writes.
                Ok((Ok(()), ..)) | Err(_) => {}
                Ok((Err(wrong), ..)) => self.cluster.audit.report(wrong.to_string()),
            }
        }
        // With a lease, or alone, there is one that knows everything.
        let alone = self.cluster.scenario.leased || self.cluster.scenario.nodes == 1;
        if states.is_empty() && alone {
            self.cluster.audit.report("no node knows the whole log");
        }
        let nodes = self.cluster.open_nodes();
        self.cluster.close();
        for node in nodes {
            let _ended = node.shutdown().await;
        }
        self.cluster.stop_all();
        states
    }
}
