//! Gives the binary its version: that of the package, and for a release the commit that it was built from.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=SERVO_COMMIT");
    let package = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    // A commit would link every development build anew.
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let commit = std::env::var("SERVO_COMMIT").ok().or_else(|| is_release.then(of_checkout).flatten());
    let version = commit.map_or(package.clone(), |commit| format!("{package} ({commit})"));
    println!("cargo::rustc-env=SERVO_VERSION={version}");
}

fn of_checkout() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    if let Some(head) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={head}");
    }
    git(&["rev-parse", "--short=12", "HEAD"]).filter(|commit| !commit.is_empty())
}
