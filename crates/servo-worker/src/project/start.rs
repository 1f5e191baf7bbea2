//! Errors of starting the interpreter of a project.

use servo_engine::TaskError;

use super::interpreter::NoInterpreter;

/// Python, or Servo in it, does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No interpreter was found.
    #[error(transparent)]
    NoInterpreter(#[from] NoInterpreter),
    /// The interpreter does not start.
    #[error("{python} cannot be started: {source}")]
    Spawn {
        /// The interpreter.
        python: String,
        /// Why.
        source: std::io::Error,
    },
    /// The interpreter has no SDK.
    #[error(
        "{python} has no servo package; activate the virtual environment that has it, name its interpreter with SERVO_PYTHON, \
         or install it there: {python} -m pip install servo-orchestrator"
    )]
    NoSdk {
        /// The interpreter.
        python: String,
    },
    /// The SDK speaks another version of the protocol.
    #[error(
        "the SDK speaks version {found} of the runner's protocol, this servo {expected}; install the same release of both"
    )]
    Protocol {
        /// Its version.
        found: u32,
        /// The version of this build.
        expected: u32,
    },
    /// The interpreter ended while it imported the project.
    #[error("{}", .0.message)]
    Crashed(Box<TaskError>),
}
