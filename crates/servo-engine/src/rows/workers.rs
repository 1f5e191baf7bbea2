//! Table `workers`.

use servo_core::{EventId, Timestamp};

use super::Json;
use super::table::table;
use crate::lifecycle::WorkerState;

table! {
    /// One row per worker that is there, and for the newest of those that are gone.
    "workers" => WorkerRow {
        key (worker_id: String),
        sorted by row_version,
        at |row| row.changed_at,
    }
    columns {
        /// A name, and a nonce of the process: two processes of one name are two workers.
        worker_id: String, unique;
        name: String;
        state: WorkerState;
        /// The queues that it serves.
        queues: Json<Vec<String>>;
        /// Functions that it runs at once.
        slots: u32;
        /// The deployment whose code it has.
        deployment: u64;
        /// Digest of that code.
        digest: String;
        /// Its storage, as it calls it.
        storage: String;
        /// The machine that it runs on.
        host: String;
        /// Version of Servo.
        version: String;
        registered_at: Timestamp;
        /// When it was last heard, as far as the log knows.
        heard_at: Timestamp;
        changed_at: Timestamp;
        /// Number of its last change.
        change_number: u64;
        row_version: EventId;
    }
}
