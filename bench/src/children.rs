//! Measurements in a process of their own, whose memory nothing else has touched.

use std::path::Path;
use std::process::Command;

/// Runs this binary with an option that takes a directory; gives what it reports.
pub(crate) fn child(what: &str, directory: &Path) -> anyhow::Result<serde_json::Value> {
    let output = Command::new(std::env::current_exe()?).arg(what).arg(directory).output()?;
    anyhow::ensure!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}
