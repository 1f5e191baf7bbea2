//! Properties of every parser of untrusted bytes.
//!
//! **Owns** one function for each parser: it takes any bytes, reads them, and panics if something that must hold does
//! not. What was read prints back to the same text or the same value; what is damaged is an error, never a panic and
//! never silence.
//!
//! **Refuses** to know where the bytes come from. `make test` replays the inputs in `fuzz/corpus` and small changes of
//! them; `make fuzz` looks for new ones.
//!
//! ```
//! let (name, check) = servo_fuzz::TARGETS[0];
//! assert_eq!(name, "log_line");
//! check(br#"{"crc":"00000000","seq":1}"#);
//! ```

mod definitions;
mod events;
mod json;
mod keys;
mod lease;
mod log;
mod manifest;
mod messages;
mod pushes;
mod runner;
mod runtime;
mod table_files;
mod tables;
mod user_texts;

pub use definitions::definitions;
pub use events::event_batch;
pub use json::canonical_json;
pub use keys::{names, partition_key, partition_text};
pub use lease::lease_record;
pub use log::{boundary, log_line, log_segment};
pub use manifest::manifest;
pub use messages::{envelope, sealed_text, task_token};
pub use pushes::{notification_rule, push_message, push_signature};
pub use runner::{printed_lines, runner_frames, scan_answer};
pub use table_files::{parquet_file, parquet_guard};
pub use user_texts::{cron, selection};

/// Reads bytes, and panics if something that must hold does not.
pub type Target = fn(&[u8]);

/// Every target by its name, which is also that of its corpus.
pub const TARGETS: &[(&str, Target)] = &[
    ("log_line", log_line),
    ("log_segment", log_segment),
    ("boundary", boundary),
    ("lease_record", lease_record),
    ("manifest", manifest),
    ("parquet_guard", parquet_guard),
    ("parquet_file", parquet_file),
    ("event_batch", event_batch),
    ("definitions", definitions),
    ("canonical_json", canonical_json),
    ("names", names),
    ("partition_key", partition_key),
    ("partition_text", partition_text),
    ("selection", selection),
    ("cron", cron),
    ("envelope", envelope),
    ("task_token", task_token),
    ("sealed_text", sealed_text),
    ("runner_frames", runner_frames),
    ("printed_lines", printed_lines),
    ("scan_answer", scan_answer),
    ("push_message", push_message),
    ("push_signature", push_signature),
    ("notification_rule", notification_rule),
];
