//! Messages that others push to sensors: read from the forms that senders have, and verified.
//!
//! A message has an id that its sender gave it, so that it counts once however often it is delivered. What it says is kept
//! as JSON: `id`, `data`, `attributes`, `published_at`.

mod forms;
mod verify;

pub(crate) use forms::read;
pub(crate) use verify::{secret, verify};
