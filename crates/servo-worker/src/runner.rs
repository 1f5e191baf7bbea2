//! Runners: Python processes that hold an imported project and run one task at a time (`docs/runner.md`).
//!
//! Everything that must not depend on user code is done on this side of the socket: capturing what it prints, noticing
//! that it died and how, stopping it and whatever it started. A runner that misbehaves is killed, never reasoned with.

mod frames;
mod lines;
mod process;
mod protocol;

pub use lines::{Line, LineSink, Stream};
pub use process::{Runner, RunnerError, Told};
pub use protocol::{Finished, Input, Output, Partition, Piece, RunTask, Usage, WorkOutcome};
