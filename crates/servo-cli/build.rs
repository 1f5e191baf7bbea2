//! Gives the binary its version: that of the package, and for a release the commit that it was built from. A release
//! is not built without the web UI.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=SERVO_COMMIT");
    let package = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_release {
        require_ui();
    }
    // A commit would link every development build anew.
    let commit = std::env::var("SERVO_COMMIT").ok().or_else(|| is_release.then(of_checkout).flatten());
    let version = commit.map_or(package.clone(), |commit| format!("{package} ({commit})"));
    println!("cargo::rustc-env=SERVO_VERSION={version}");
}

/// Ends the build if `ui/dist` is not there, unless `SERVO_WITHOUT_UI=1` says that nobody will look at it.
fn require_ui() {
    println!("cargo::rerun-if-env-changed=SERVO_WITHOUT_UI");
    println!("cargo::rerun-if-changed=../../ui/dist/index.html");
    let is_waived = std::env::var("SERVO_WITHOUT_UI").is_ok_and(|value| value == "1");
    if !is_waived && !std::path::Path::new("../../ui/dist/index.html").is_file() {
        println!(
            "cargo::error=the web UI is not built: run `make ui` first, or set SERVO_WITHOUT_UI=1 to build without it"
        );
    }
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
