//! A project, the real binary, and a server that ends with the test.

#![allow(unreachable_pub)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Timeout of everything here.
pub const PATIENCE: Duration = Duration::from_secs(60);

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// The interpreter that `make setup` made.
pub fn python() -> PathBuf {
    let python = std::env::var_os("SERVO_TEST_PYTHON")
        .map_or_else(|| repository().join(".venv/bin/python"), PathBuf::from);
    assert!(python.is_file(), "{} is not there: run make setup", python.display());
    python
}

/// A project in a directory of its own, with the state beside it.
pub struct Project {
    pub root: tempfile::TempDir,
}

impl Project {
    pub fn new(code: &str) -> Self {
        let project = Self { root: tempfile::tempdir().unwrap() };
        let settings = "[project]\nname = \"work\"\nmodules = [\"work\"]\n";
        fs::write(project.path("servo.toml"), settings).unwrap();
        project.save(code);
        project
    }

    pub fn save(&self, code: &str) {
        fs::write(self.path("work.py"), format!("import servo\n{code}")).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_servo"));
        command
            .args(arguments)
            .current_dir(self.root.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("SERVO_PYTHON", python())
            .env("PYTHONPATH", repository().join("python/src"))
            .env("COLUMNS", "140")
            .env("USER", "tester")
            .stdin(Stdio::null());
        command
    }

    pub fn servo(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub fn good(&self, arguments: &[&str]) -> String {
        let output = self.servo(arguments);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    pub fn bad(&self, arguments: &[&str]) -> String {
        let output = self.servo(arguments);
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.good(arguments)).unwrap()
    }

    pub fn home(&self) -> PathBuf {
        self.path(".servo/tenant=default/workspace=main")
    }

    /// The materializations of an asset that were committed.
    pub fn committed(&self, asset: &str) -> Vec<String> {
        let dir = self.home().join("assets").join(asset).join("materializations");
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        let committed = entries.filter(|entry| entry.path().join("_commit.json").is_file());
        committed.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    pub fn latest(&self, asset: &str) -> Value {
        let text = fs::read_to_string(self.home().join("assets").join(asset).join("latest.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    pub fn newest_run(&self) -> Value {
        self.json(&["run", "list", "--json", "--limit", "1"])["items"][0].clone()
    }

    pub fn nothing_is_left_behind(&self) {
        let staging = self.home().join("staging");
        let left = fs::read_dir(staging).into_iter().flatten().flatten().map(|entry| entry.path());
        assert_eq!(left.collect::<Vec<_>>(), Vec::<PathBuf>::new());
    }
}

/// `servo dev` that ends with the test.
pub struct Dev<'a> {
    project: &'a Project,
    pub process: Child,
}

impl<'a> Dev<'a> {
    pub fn start(project: &'a Project) -> Self {
        Self::with(project, &["--port", "0"])
    }

    /// With these options.
    pub fn with(project: &'a Project, options: &[&str]) -> Self {
        let dev = Self::begin(project, options);
        dev.wait_for("reloaded when you save");
        dev
    }

    /// With these options, and without waiting for its code.
    pub fn begin(project: &'a Project, options: &[&str]) -> Self {
        Self::in_environment(project, options, &[])
    }

    /// With these options and variables, and without waiting for its code.
    pub fn in_environment(project: &'a Project, options: &[&str], variables: &[(&str, &str)]) -> Self {
        let log = fs::File::create(project.path("dev.log")).unwrap();
        let mut command = project.command(&["dev", "--slots", "2"]);
        command.args(options).envs(variables.iter().copied()).stderr(log);
        Self { project, process: command.spawn().unwrap() }
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.project.path("dev.log")).unwrap()
    }

    pub fn wait_for(&self, text: &str) {
        let begun = Instant::now();
        while !self.log().contains(text) {
            assert!(begun.elapsed() < PATIENCE, "{text:?} is not in\n{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn signal(&self, signal: &str) {
        let pid = self.process.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}

impl Drop for Dev<'_> {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// Waits for something that must come.
pub fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
