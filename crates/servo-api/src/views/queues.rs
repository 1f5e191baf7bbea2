//! Queues.

use serde::{Deserialize, Serialize};
use servo_core::Timestamp;
use servo_engine::why::QueueLoad;
use utoipa::ToSchema;

use super::admission::Pause;

/// A queue: what waits for it, what is in it, and who serves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Ready tasks that were not handed to it yet.
    pub tasks_waiting: u64,
    /// Since when the first of them waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub waiting_since: Option<Timestamp>,
    /// Tasks in it that no worker has begun.
    pub tasks_dispatched: u64,
    /// Tasks of it that workers are at.
    pub tasks_running: u64,
    /// Workers that serve it with the code that is deployed.
    pub workers: u32,
    /// Workers that serve it with other code, and are given nothing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub outdated_workers: u32,
    /// Functions that its workers run at once.
    pub slots: u32,
    /// Tasks that could be handed to it now.
    pub free: u32,
    /// The pause of it alone; a pause of everything is in `GET /admission`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    /// The most tasks that may be in it, if it calls its workers: setting `push_limit`. Absent where workers ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push_limit: Option<u32>,
}

/// Queues, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Queues {
    /// The queues.
    pub items: Vec<Queue>,
}

impl From<QueueLoad> for Queue {
    fn from(load: QueueLoad) -> Self {
        Self {
            name: load.name.to_string(),
            tasks_waiting: load.tasks_waiting as u64,
            waiting_since: load.waiting_since,
            tasks_dispatched: load.tasks_dispatched as u64,
            tasks_running: load.tasks_running as u64,
            workers: load.workers,
            outdated_workers: load.outdated_workers,
            slots: load.slots,
            free: load.free,
            paused: load.paused.as_ref().map(Pause::from),
            push_limit: load.push_limit,
        }
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}
