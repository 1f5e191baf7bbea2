//! Simulated users: they repeat requests until they are answered, and remember the answers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use servo_core::{EventId, Millis, RunId};
use servo_engine::{
    Caller, CancelRun, Change, ChangePartitions, Review, RunReply, RunRequest, TriggerRun, Verdict,
};
use servo_projections::RunFilter;
use servo_runtime::{Error, RetryRequest};

use crate::graphs;
use crate::scenario::Wish;
use crate::site::Site;

/// The simulated users, and what they were told. Cheap to clone.
#[derive(Clone)]
pub struct People {
    site: Site,
    /// Runs that they were told of, by key: the same key always means the same run.
    told: Arc<Mutex<BTreeMap<String, RunId>>>,
    waiting: Arc<AtomicUsize>,
}

impl People {
    /// The users of a cluster; their requests come at their times.
    pub fn new(site: &Site) -> Self {
        let people = Self { site: site.clone(), told: Arc::default(), waiting: Arc::default() };
        people.waiting.store(site.scenario.wishes.len(), Ordering::Relaxed);
        for (at, wish) in site.scenario.wishes.clone() {
            let person = people.clone();
            people.site.aside("person", async move {
                person.site.world.sleep(person.site.lane, at).await;
                person.wish(wish).await;
                person.waiting.fetch_sub(1, Ordering::Relaxed);
            });
        }
        people
    }

    /// The number of unanswered requests.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    async fn wish(&self, wish: Wish) {
        let site = &self.site;
        site.world.note("wish", || format!("{wish:?}"));
        match wish {
            Wish::Deploy(version) => {
                let deploy = graphs::project(version);
                let answer = site.insist(
                    move |workspace| {
                        let deploy = deploy.clone();
                        async move { workspace.deploy(deploy).await }.boxed()
                    },
                    always,
                );
                self.accepted(answer.await);
            }
            Wish::Run { key, graph, priority, timeout } => {
                let layout = &site.layout;
                let plan = graphs::plan(layout.tenant(), layout.workspace(), site.scenario.seed, graph);
                let key = format!("key-{key}");
                let timeout = timeout.map(Millis::from_secs);
                let request = TriggerRun::of_tasks(
                    key.clone(),
                    plan,
                    RunRequest { priority, timeout, caller: Caller::user("me"), ..RunRequest::default() },
                );
                let answer = site.insist(
                    move |workspace| {
                        let request = request.clone();
                        async move { workspace.trigger(request).await }.boxed()
                    },
                    always,
                );
                if let Ok(RunReply { run_id: run, accepted }) = answer.await {
                    self.told_run(key, run, accepted);
                }
            }
            Wish::Cancel { key, force } => {
                let Some(run_id) = self.run_of(key) else { return };
                let answer = site.insist(
                    move |workspace| {
                        let request =
                            CancelRun { run_id, caller: Caller::user("me"), reason: String::new(), force };
                        async move { workspace.cancel(request).await }.boxed()
                    },
                    always,
                );
                self.accepted(answer.await);
            }
            Wish::Retry { key, from_failure } => {
                let Some(run_id) = self.run_of(key) else { return };
                // Its key is made up by the node, so an unanswered one may have happened: asked once.
                let request = RetryRequest { from_failure, caller: Caller::user("me"), run_key: None };
                let answer =
                    site.call(move |workspace| async move { workspace.retry(run_id, request).await }.boxed());
                if let Some(Ok(launched)) = answer.await {
                    self.told().insert(launched.run_id.to_string(), launched.run_id);
                    launched.accepted.into_iter().for_each(|event| self.acknowledge(event));
                }
            }
            Wish::Partitions { add, remove } => {
                let keys =
                    |bits: u8| (0..4).filter(move |bit| bits >> bit & 1 == 1).map(|bit| format!("k{bit}"));
                let change = ChangePartitions {
                    name: graphs::CUSTOMERS.to_owned(),
                    add: keys(add).collect(),
                    remove: keys(remove & !add).collect(),
                    caller: Caller::user("me"),
                };
                let answer = site.insist(
                    move |workspace| {
                        let change = change.clone();
                        async move { workspace.change_partitions(change).await }.boxed()
                    },
                    always,
                );
                self.accepted(answer.await);
            }
            Wish::Review { approve } => self.review(approve).await,
            Wish::Read => self.read().await,
        }
    }

    async fn review(&self, approve: bool) {
        let waiting = self.site.insist(
            |workspace| {
                async move {
                    let found = workspace.read(|state| {
                        state.quarantine().next().map(|row| (row.asset_key.clone(), row.materialization_id))
                    });
                    found.await
                }
                .boxed()
            },
            always,
        );
        let Ok(Some((asset, materialization_id))) = waiting.await else { return };
        let verdict = if approve { Verdict::Approve } else { Verdict::Reject };
        let review =
            Review { asset, materialization_id, verdict, caller: Caller::user("me"), reason: String::new() };
        let answer = self.site.insist(
            move |workspace| {
                let review = review.clone();
                async move { workspace.review(review).await }.boxed()
            },
            always,
        );
        self.accepted(answer.await);
    }

    /// Checks that acknowledged runs are found, in memory or in the tables.
    async fn read(&self) {
        let known = self.told().clone();
        let listed = self
            .site
            .call(|workspace| async move { workspace.runs(None, 50, RunFilter::default()).await }.boxed());
        let Some(Ok(listed)) = listed.await else { return };
        // With several nodes one may be behind the other for as long as nobody tells it.
        if self.site.scenario.nodes > 1 {
            return;
        }
        for (key, run) in known {
            if !listed.iter().any(|row| row.run_id == run) {
                self.site.audit.complain(format!("run {run} of {key} was acknowledged and is not listed"));
            }
        }
    }

    fn told(&self) -> MutexGuard<'_, BTreeMap<String, RunId>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_of(&self, key: u8) -> Option<RunId> {
        self.told().get(&format!("key-{key}")).copied()
    }

    fn told_run(&self, key: String, run: RunId, accepted: Option<EventId>) {
        let before = *self.told().entry(key.clone()).or_insert(run);
        if before != run {
            self.site.audit.complain(format!("{key} was answered with {run}, and with {before} before"));
        }
        if let Some(event) = accepted {
            self.acknowledge(event);
        }
    }

    fn accepted(&self, answer: Result<Change, Error>) {
        if let Ok(Change::Accepted { event_id }) = answer {
            self.acknowledge(event_id);
        }
    }

    fn acknowledge(&self, event: EventId) {
        self.site.audit.acknowledged(&self.site.prefix(), &event.to_string());
    }
}

fn always() -> bool {
    true
}
