//! Explains why a process ended unexpectedly.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::Deserialize;
use servo_engine::{ErrorCode, TaskError};

use super::protocol::Failure;

/// How much of stderr goes into a message.
const QUOTED: usize = 4_000;

const OUT_OF_MEMORY: &str = "the process used more memory than there is, and the system killed it; give it less to do \
                             at once, or the worker more memory";

/// How a process has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Exit {
    /// By a signal.
    Signal(i32),
    /// By itself, with a code.
    Code(i32),
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match status.signal() {
            Some(signal) => Self::Signal(signal),
            None => Self::Code(status.code().unwrap_or_default()),
        }
    }
}

impl Exit {
    /// Whether the system may have ended it for want of memory.
    fn is_kill(self) -> bool {
        self == Self::Signal(Signal::KILL.as_raw())
    }
}

/// The error of a task whose process ended.
pub(super) fn crash(exit: Exit, out_of_memory: bool, last_of_stderr: &str) -> TaskError {
    let (code, what) = match exit {
        exit if exit.is_kill() && out_of_memory => (ErrorCode::OutOfMemory, OUT_OF_MEMORY.to_owned()),
        Exit::Signal(signal) => {
            (ErrorCode::WorkerCrash, format!("the process was ended by {}", signal_name(signal)))
        }
        Exit::Code(code) => (
            ErrorCode::WorkerCrash,
            format!(
                "the process ended with exit code {code} and without a result: something in it calls os._exit"
            ),
        ),
    };
    TaskError::new(code, with_stderr(what, last_of_stderr))
}

/// Explains a failure that the runner reported about the process of a task: it does not know why the system killed it.
pub(super) fn explain(failure: &mut Failure, out_of_memory: impl FnOnce() -> bool) {
    if failure.exit.is_some_and(Exit::is_kill) && out_of_memory() {
        (failure.code, failure.message) = (ErrorCode::OutOfMemory, OUT_OF_MEMORY.to_owned());
    }
}

/// A message with the end of what was printed to stderr.
pub(super) fn with_stderr(what: String, last_of_stderr: &str) -> String {
    let quoted = last_of_stderr.trim();
    if quoted.is_empty() {
        return what;
    }
    let start = quoted.ceil_char_boundary(quoted.len().saturating_sub(QUOTED));
    format!("{what}; the last of stderr:\n{}", &quoted[start..])
}

fn signal_name(number: i32) -> String {
    let names = [
        (Signal::ABORT, "SIGABRT"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::HUP, "SIGHUP"),
        (Signal::ILL, "SIGILL"),
        (Signal::INT, "SIGINT"),
        (Signal::KILL, "SIGKILL"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::SYS, "SIGSYS"),
        (Signal::TERM, "SIGTERM"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
    ];
    let name = names.iter().find(|(signal, _)| signal.as_raw() == number);
    name.map_or_else(|| format!("signal {number}"), |(_, name)| (*name).to_owned())
}

/// Tells whether the kernel has killed a process for want of memory lately.
///
/// The counter is that of the control group, else that of the machine: who else was killed is not known, so it is
/// looked at from shortly before a task begins.
#[derive(Debug)]
pub(super) struct OomKills {
    file: PathBuf,
    before: Option<u64>,
    read_at: Instant,
}

/// How old a reading may be when a task begins; reading it for every task would be too slow.
const FRESH: Duration = Duration::from_secs(1);

impl OomKills {
    pub(super) fn new() -> Self {
        let file = control_group_events().unwrap_or_else(|| PathBuf::from("/proc/vmstat"));
        Self { before: count_in(&file), file, read_at: Instant::now() }
    }

    /// Starts counting from now.
    pub(super) fn begin(&mut self) {
        if self.read_at.elapsed() > FRESH {
            *self = Self {
                before: count_in(&self.file),
                file: std::mem::take(&mut self.file),
                read_at: Instant::now(),
            };
        }
    }

    /// Whether there was an out-of-memory kill since.
    pub(super) fn happened(&self) -> bool {
        self.before.zip(count_in(&self.file)).is_some_and(|(before, now)| now > before)
    }
}

fn control_group_events() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new("/sys/fs/cgroup").join(own).join("memory.events")).filter(|file| file.is_file())
}

fn count_in(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_exit_codes_and_want_of_memory_are_told_apart() {
        let exit = |status| Exit::from(ExitStatus::from_raw(status));
        let killed = exit(9);
        assert_eq!(crash(killed, false, "").message, "the process was ended by SIGKILL");
        assert_eq!(crash(killed, true, "").code, ErrorCode::OutOfMemory);
        assert_eq!(crash(exit(11), true, "").code, ErrorCode::WorkerCrash);
        assert_eq!(crash(exit(64), false, "").message, "the process was ended by signal 64");
        let left = crash(exit(3 << 8), false, "a\nb\n").message;
        assert!(left.contains("exit code 3") && left.ends_with("the last of stderr:\na\nb"), "{left}");
    }

    #[test]
    fn a_runner_that_tells_of_a_killed_process_is_corrected_if_memory_ran_out() {
        let told = |exit: &str| -> Failure {
            let text = format!(r#"{{"code":"WORKER_CRASH","message":"ended by SIGKILL","exit":{exit}}}"#);
            serde_json::from_str(&text).unwrap()
        };
        let explained = |exit: &str, out_of_memory| {
            let mut failure = told(exit);
            explain(&mut failure, || out_of_memory);
            failure.code
        };
        assert_eq!(explained(r#"{"signal":9}"#, true), ErrorCode::OutOfMemory);
        assert_eq!(explained(r#"{"signal":9}"#, false), ErrorCode::WorkerCrash);
        // What a message says decides nothing.
        for other in [r#"{"signal":11}"#, r#"{"code":9}"#, "null"] {
            assert_eq!(explained(other, true), ErrorCode::WorkerCrash, "{other}");
        }
    }

    #[test]
    fn only_the_end_of_a_long_stderr_is_quoted() {
        let message = with_stderr("x".to_owned(), &"ä".repeat(QUOTED));
        assert!(message.len() <= QUOTED + 40 && message.ends_with('ä'));
    }

    #[test]
    fn a_kill_counts_from_the_last_reading_on() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let write = |count| fs::write(file.path(), format!("oom 9\noom_kill {count}\n")).unwrap();
        write(3);
        let long_ago = Instant::now().checked_sub(FRESH * 2).unwrap();
        let mut kills = OomKills { before: Some(2), file: file.path().to_owned(), read_at: long_ago };
        assert!(kills.happened());
        kills.begin();
        assert!(!kills.happened());
        write(4);
        kills.begin();
        assert!(kills.happened(), "a reading that is fresh is not made again");
    }
}
