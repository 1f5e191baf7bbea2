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

use crate::cluster::Cluster;
use crate::graphs;
use crate::scenario::UserRequest;

/// The simulated users, and what they were told. Cheap to clone.
#[derive(Clone)]
pub struct Users {
    cluster: Cluster,
    /// Runs that they were told of, by key: the same key always means the same run.
    told: Arc<Mutex<BTreeMap<String, RunId>>>,
    waiting: Arc<AtomicUsize>,
}

impl Users {
    /// The users of a cluster; their requests come at their times.
    pub fn new(cluster: &Cluster) -> Self {
        let users = Self { cluster: cluster.clone(), told: Arc::default(), waiting: Arc::default() };
        users.waiting.store(cluster.scenario.requests.len(), Ordering::Relaxed);
        for (at, request) in cluster.scenario.requests.clone() {
            let person = users.clone();
            users.cluster.spawn_process("person", async move {
                person.cluster.world.sleep(person.cluster.domain, at).await;
                person.request(request).await;
                person.waiting.fetch_sub(1, Ordering::Relaxed);
            });
        }
        users
    }

    /// The number of unanswered requests.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    async fn request(&self, request: UserRequest) {
        let cluster = &self.cluster;
        cluster.world.note("request", || format!("{request:?}"));
        match request {
            UserRequest::Deploy(version) => {
                let deploy = graphs::project(version);
                let answer = cluster.retry_until_acked(
                    move |workspace| {
                        let deploy = deploy.clone();
                        async move { workspace.deploy(deploy).await }.boxed()
                    },
                    always,
                );
                self.accepted(answer.await);
            }
            UserRequest::Run { key, graph, priority, timeout } => {
                let layout = &cluster.layout;
                let plan = graphs::plan(layout.tenant(), layout.workspace(), cluster.scenario.seed, graph);
                let key = format!("key-{key}");
                let timeout = timeout.map(Millis::from_secs);
                let request = TriggerRun::of_tasks(
                    key.clone(),
                    plan,
                    RunRequest { priority, timeout, caller: Caller::user("me"), ..RunRequest::default() },
                );
                let answer = cluster.retry_until_acked(
                    move |workspace| {
                        let request = request.clone();
                        async move { workspace.trigger(request).await }.boxed()
                    },
                    always,
                );
                if let Ok(RunReply { run_id: run, accepted }) = answer.await {
                    self.note_run(key, run, accepted);
                }
            }
            UserRequest::Cancel { key, force } => {
                let Some(run_id) = self.run_of(key) else { return };
                let answer = cluster.retry_until_acked(
                    move |workspace| {
                        let request =
                            CancelRun { run_id, caller: Caller::user("me"), reason: String::new(), force };
                        async move { workspace.cancel(request).await }.boxed()
                    },
                    always,
                );
                self.accepted(answer.await);
            }
            UserRequest::Retry { key, from_failure } => {
                let Some(run_id) = self.run_of(key) else { return };
                // Its key is made up by the node, so an unanswered one may have happened: asked once.
                let request = RetryRequest { from_failure, caller: Caller::user("me"), run_key: None };
                let answer = cluster
                    .call(move |workspace| async move { workspace.retry(run_id, request).await }.boxed());
                if let Some(Ok(launched)) = answer.await {
                    self.told().insert(launched.run_id.to_string(), launched.run_id);
                    launched.accepted.into_iter().for_each(|event| self.acknowledge(event));
                }
            }
            UserRequest::Partitions { add, remove } => {
                let keys =
                    |bits: u8| (0..4).filter(move |bit| bits >> bit & 1 == 1).map(|bit| format!("k{bit}"));
                let change = ChangePartitions {
                    name: graphs::CUSTOMERS.to_owned(),
                    add: keys(add).collect(),
                    remove: keys(remove & !add).collect(),
                    caller: Caller::user("me"),
                };
                let answer = cluster.retry_until_acked(
                    move |workspace| {
                        let change = change.clone();
                        async move { workspace.change_partitions(change).await }.boxed()
                    },
                    always,
                );
                self.accepted(answer.await);
            }
            UserRequest::Review { approve } => self.review(approve).await,
            UserRequest::Read => self.read().await,
        }
    }

    async fn review(&self, approve: bool) {
        let waiting = self.cluster.retry_until_acked(
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
        let answer = self.cluster.retry_until_acked(
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
            .cluster
            .call(|workspace| async move { workspace.runs(None, 50, RunFilter::default()).await }.boxed());
        let Some(Ok(listed)) = listed.await else { return };
        // With several nodes one may be behind the other for as long as nobody tells it.
        if self.cluster.scenario.nodes > 1 {
            return;
        }
        for (key, run) in known {
            if !listed.iter().any(|row| row.run_id == run) {
                self.cluster.audit.report(format!("run {run} of {key} was acknowledged and is not listed"));
            }
        }
    }

    fn told(&self) -> MutexGuard<'_, BTreeMap<String, RunId>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run_of(&self, key: u8) -> Option<RunId> {
        self.told().get(&format!("key-{key}")).copied()
    }

    fn note_run(&self, key: String, run: RunId, accepted: Option<EventId>) {
        let before = *self.told().entry(key.clone()).or_insert(run);
        if before != run {
            self.cluster.audit.report(format!("{key} was answered with {run}, and with {before} before"));
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
        self.cluster.audit.acknowledged(&self.cluster.prefix(), &event.to_string());
    }
}

fn always() -> bool {
    true
}
