//! The real binary, and what its processes cost.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};

/// The binary that was built beside this one.
pub(crate) fn servo() -> anyhow::Result<Command> {
    let own = std::env::current_exe()?;
    let binary = own.with_file_name("servo");
    ensure!(binary.is_file(), "{} is not there: cargo build --release -p servo-cli", binary.display());
    let mut command = Command::new(binary);
    command.stdin(Stdio::null()).env_remove("SERVO_URL").env_remove("SERVO_DIR").env_remove("SERVO_KEY");
    // Whoever measures from a shell that sets it would have every interpreter compile all of the SDK again.
    command.env_remove("PYTHONDONTWRITEBYTECODE");
    if std::env::var_os("SERVO_PYTHON").is_none() {
        let here = std::env::current_dir()?;
        let python = here.ancestors().map(|above| above.join(".venv/bin/python")).find(|file| file.is_file());
        command.env("SERVO_PYTHON", python.context("there is no .venv: make setup")?);
    }
    Ok(command)
}

/// Resident memory of a process.
pub(crate) fn resident_mb(process: u32) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
    let kilobytes: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kilobytes / 1024.0)
}

/// The time that a process has had a core for, of the system included.
pub(crate) fn cpu_time(process: u32) -> anyhow::Result<Duration> {
    // In nanoseconds, for each thread; those that have ended are not counted.
    let mut whole = 0;
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let text = fs::read_to_string(thread?.path().join("schedstat")).unwrap_or_default();
        whole += text.split(' ').next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(whole))
}

/// The processes that a process has started.
pub(crate) fn children(process: u32) -> anyhow::Result<Vec<u32>> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let listed = fs::read_to_string(thread?.path().join("children")).unwrap_or_default();
        children.extend(listed.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    Ok(children)
}
