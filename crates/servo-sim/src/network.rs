//! The network between workers on machines of their own and the nodes.

mod http;

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use servo_engine::{Progress, Report};
use servo_queue::{
    CallbackError, Callbacks, FetchedWork, FinishedReply, HeartbeatReply, StartedReply, WorkRef,
};
use servo_runtime::{Error, Workspace};

use crate::cluster::Cluster;
use crate::faults::Fault;
use crate::scenario::{MINUTE, SECOND};

/// After how long a caller who hears nothing gives a call up.
const GIVEN_UP_AFTER: u64 = 60 * SECOND;

/// The connection of a worker to the nodes. It delays, loses calls and answers, and is cut off for a while. Cheap to
/// clone.
#[derive(Clone)]
pub struct Link {
    cluster: Cluster,
    cut_off: Arc<Mutex<Option<Fault>>>,
}

impl Link {
    /// A connection that is there.
    pub fn new(cluster: &Cluster) -> Self {
        Self { cluster: cluster.clone(), cut_off: Arc::default() }
    }

    /// Cuts it, or repairs it.
    pub fn cut_off(&self, why: Option<Fault>) {
        *self.cut_off.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// The fault that has cut it, if one has.
    pub fn is_cut_off(&self) -> Option<Fault> {
        *self.cut_off.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a call reaches anybody. If not, that is known only after a while.
    async fn reaches(&self) -> bool {
        let (cluster, is_cut_off) = (&self.cluster, self.is_cut_off().is_some());
        if !is_cut_off && !cluster.is_closed() {
            return true;
        }
        // Nobody is there for days: looking every minute would take more steps than everything else.
        let length = if is_cut_off { GIVEN_UP_AFTER } else { 10 * MINUTE };
        cluster.world.sleep(cluster.domain, length).await;
        false
    }

    /// Calls a node, once.
    async fn call<T: Send + 'static>(
        &self,
        ask: impl FnOnce(Workspace) -> BoxFuture<'static, Result<T, Error>> + Send,
    ) -> Result<T, CallbackError> {
        let lost = || CallbackError::Transient("no answer".to_owned());
        if !self.reaches().await {
            return Err(lost());
        }
        match self.cluster.call(ask).await {
            _ if self.is_cut_off().is_some() => Err(lost()),
            Some(Err(Error::Stopped)) | None => Err(lost()),
            Some(answer) => Ok(answer?),
        }
    }
}

/// The nodes, as a worker sees them.
#[async_trait]
impl Callbacks for Link {
    async fn started(&self, token: &str, worker: &str) -> Result<StartedReply, CallbackError> {
        let (token, worker, queue) = (token.to_owned(), worker.to_owned(), self.cluster.queue.clone());
        let ask = move |node: Workspace| {
            let asked = async move {
                queue.asked_to_begin(&token);
                node.started(&token, &worker).await
            };
            asked.boxed()
        };
        self.call(ask).await
    }

    async fn work(
        &self,
        token: &str,
        worker: &str,
        work: &WorkRef,
    ) -> Result<Option<FetchedWork>, CallbackError> {
        let (token, worker, work) = (token.to_owned(), worker.to_owned(), work.clone());
        let ask = move |node: Workspace| async move { Ok(node.work(&token, &worker, &work).await) }.boxed();
        self.call(ask).await?
    }

    async fn heartbeat(
        &self,
        token: &str,
        progress: Option<Progress>,
    ) -> Result<HeartbeatReply, CallbackError> {
        let token = token.to_owned();
        self.call(move |node| async move { node.heartbeat(&token, progress).await }.boxed()).await
    }

    async fn finished(&self, token: &str, report: Report) -> Result<FinishedReply, CallbackError> {
        let token = token.to_owned();
        self.call(move |node| async move { node.finished(&token, report).await }.boxed()).await
    }
}
