//! Effects: what a durable batch does to the outside world. One module per kind carries it out; every one of them can
//! be done twice without harm (INV-4).
//!
//! Dispatches go to queues, which may make them wait, evaluations to workers that ask, and notifications to a task each,
//! which may take its time. Everything else is about files of assets and is done by a thread of its own: [`files`]. Tables are written only after the effects of all batches in them were carried out, see
//! [`Barrier`] (ADR-074).

mod discard;
mod enqueue;
mod expire;
pub(crate) mod files;
mod notify;
pub(crate) mod promote;
pub(crate) mod release;
pub(crate) mod set_aside;

pub(crate) use enqueue::Enqueuer;
pub(crate) use files::{Barrier, FileEffects, FileEffectsHandle};
pub(crate) use notify::NotifyEffects;
pub use set_aside::StuckPath;
pub(crate) use set_aside::{SetAside, StuckPaths};

use std::sync::Arc;

use servo_engine::{Dispatch, Effect};
use tokio::sync::mpsc::UnboundedSender;

use crate::evaluations::Evaluations;

/// Hands effects to those who carry them out.
pub(crate) struct Effects {
    pub(crate) enqueuer: Arc<Enqueuer>,
    /// Dispatches whose queue was not ready at once.
    pub(crate) waiting: UnboundedSender<Vec<Dispatch>>,
    pub(crate) files: FileEffectsHandle,
    /// Calls that workers are asked for.
    pub(crate) evaluations: Arc<Evaluations>,
    pub(crate) notifications: NotifyEffects,
}

impl Effects {
    /// Begins to carry out the effects of a durable batch. Never waits.
    pub(crate) fn begin(&self, batch: Vec<Effect>) {
        let (mut dispatches, mut files) = (Vec::new(), Vec::new());
        for effect in batch {
            match effect {
                Effect::Enqueue(dispatch) => dispatches.push(dispatch),
                Effect::Evaluate(evaluation) => self.evaluations.begin(*evaluation),
                Effect::Notify(delivery) => self.notifications.begin(*delivery),
                Effect::Release(_)
                | Effect::Move(_)
                | Effect::Promote(_)
                | Effect::Discard(_)
                | Effect::ClearStaging(_)
                | Effect::Expire(_)
                | Effect::ExpireLogs(_) => files.push(effect),
            }
        }
        let waiting = self.enqueuer.begin(dispatches);
        if !waiting.is_empty() {
            let _stopping = self.waiting.send(waiting);
        }
        self.files.begin(files);
    }

    /// Tells when everything begun so far was carried out that tables must not be ahead of.
    pub(crate) fn barrier(&self) -> Barrier {
        self.files.barrier()
    }
}
