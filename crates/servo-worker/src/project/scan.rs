//! Scans a project: `python -m servo.scan`, which prints the manifest or the errors.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::value::RawValue;
use servo_core::sha256_hex;
use servo_engine::definitions::Manifest;
use servo_engine::work::CREDENTIALS;

use super::Project;
use super::scan_cache::{Record, ScanCache};
use super::start::StartError;

/// The declarations of a project.
#[derive(Debug, Clone)]
pub struct Scanned {
    /// The manifest.
    pub manifest: Manifest,
    /// The manifest as the SDK wrote it, for whoever deploys it elsewhere.
    pub text: Box<RawValue>,
    /// `sha256:` and the hash of its canonical text.
    pub digest: String,
}

/// Reasons why a scan failed.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The interpreter does not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Modules of the project cannot be imported.
    #[error("{}", modules(.0))]
    Broken(Vec<BrokenModule>),
    /// The answer is malformed.
    #[error("the scan of the project failed: {message}")]
    Failed {
        /// The output of the scan.
        message: String,
    },
}

/// A module that cannot be imported: where in the user's code, and the error of Python.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[allow(missing_docs)]
pub struct BrokenModule {
    #[serde(default)]
    pub module: Option<String>,
    #[serde(default)]
    pub file: Option<String>,
    #[serde(default)]
    pub line: Option<u32>,
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
    /// The line of code.
    #[serde(default)]
    pub source: Option<String>,
    /// How it came there, outermost first.
    #[serde(default)]
    pub frames: Vec<Frame>,
}

/// One step on the way to an error.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[allow(missing_docs)]
pub struct Frame {
    pub file: String,
    pub line: u32,
    #[serde(default)]
    pub function: Option<String>,
    #[serde(default)]
    pub source: Option<String>,
}

/// `file:line: Error: message`, then the code that led there.
impl fmt::Display for BrokenModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, _) => {}
        }
        write!(f, "{}: {}", self.kind, self.message)?;
        if let Some(module) = &self.module {
            write!(f, "\n    while importing {module}")?;
        }
        if self.frames.len() > 1 {
            for frame in &self.frames {
                let function = frame.function.as_deref().unwrap_or("<module>");
                write!(f, "\n    {}:{} in {function}", frame.file, frame.line)?;
            }
        }
        match self.source.as_deref().map(str::trim_end).filter(|source| !source.is_empty()) {
            Some(source) => source.lines().try_for_each(|line| write!(f, "\n      {line}")),
            None => Ok(()),
        }
    }
}

fn modules(broken: &[BrokenModule]) -> String {
    let count = broken.len();
    // The file of the project has no module.
    let is_settings = |module: &BrokenModule| module.module.is_none() && module.kind == "ConfigError";
    let mut text = if broken.iter().all(is_settings) {
        format!("servo.toml has {count} problem{}", if count == 1 { "" } else { "s" })
    } else {
        format!("{count} module{} cannot be imported", if count == 1 { "" } else { "s" })
    };
    for module in broken {
        text.push_str(&format!("\n  {module}"));
    }
    text
}

/// The answer of a scan: the manifest, or the errors.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Answer {
    #[serde(default)]
    digest: Option<String>,
    #[serde(default)]
    manifest: Option<Box<RawValue>>,
    #[serde(default)]
    errors: Vec<BrokenModule>,
    #[serde(default)]
    record: Option<Record>,
}

impl Project {
    /// The declarations of the project: those of the scan before, if a scan would give the same, or else of a new one.
    pub fn scan_cached(&self) -> Result<Scanned, ScanError> {
        let interpreter = self.interpreter().map_err(StartError::from)?;
        let cache = ScanCache::open(self, &interpreter);
        let kept = cache.as_ref().and_then(ScanCache::get);
        if let Some(Ok(scanned)) = kept.map(|answer| Answer::read(answer.get().as_bytes())?.understand()) {
            return Ok(scanned);
        }
        let mut answer = self.ask(&interpreter)?;
        let record = answer.record.take();
        let (digest, manifest) = (answer.digest.clone(), answer.manifest.clone());
        let scanned = answer.understand()?;
        if let (Some(cache), Some(record)) = (cache, record) {
            let kept = serde_json::json!({ "digest": digest, "manifest": manifest });
            if let Ok(kept) = serde_json::value::to_raw_value(&kept) {
                cache.put(kept, record);
            }
        }
        Ok(scanned)
    }

    /// Imports the project in an interpreter of its own and reads what it declares. What the modules print goes to
    /// stderr.
    pub fn scan(&self) -> Result<Scanned, ScanError> {
        self.ask(&self.interpreter().map_err(StartError::from)?)?.understand()
    }

    /// Asks an interpreter; one without the SDK says nothing.
    fn ask(&self, interpreter: &Path) -> Result<Answer, ScanError> {
        let python = interpreter.display().to_string();
        let mut command = Command::new(interpreter);
        for name in CREDENTIALS {
            command.env_remove(name);
        }
        let output = command
            .args(["-c", SCAN, "--no-report", "--record", "--project"])
            .arg(self.root())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .and_then(std::process::Child::wait_with_output)
            .map_err(|source| StartError::Spawn { python: python.clone(), source })?;
        if output.stdout.is_empty() {
            return Err(if has_sdk(interpreter, self.root()) {
                ScanError::Failed { message: format!("it ended with {} and said nothing", output.status) }
            } else {
                StartError::NoSdk { python }.into()
            });
        }
        Answer::read(&output.stdout)
    }
}

/// `python -m servo.scan`, which says nothing where there is no such module: an error of our own follows.
const SCAN: &str = "
import importlib.util, runpy, sys
try:
    found = importlib.util.find_spec('servo.scan')
except ImportError:
    found = None
if found is not None:
    runpy.run_module('servo.scan', run_name='__main__', alter_sys=True)
";

/// Whether an interpreter has the SDK, seen from a directory.
pub fn has_sdk(interpreter: &Path, directory: &Path) -> bool {
    let mut command = Command::new(interpreter);
    for name in CREDENTIALS {
        command.env_remove(name);
    }
    let probe = command
        .args(["-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('servo.scan') is None)"])
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    probe.is_ok_and(|status| status.success())
}

impl Answer {
    /// Reads what the scan printed.
    pub(crate) fn read(answer: &[u8]) -> Result<Self, ScanError> {
        serde_json::from_slice(answer)
            .map_err(|error| ScanError::Failed { message: format!("its answer is not JSON: {error}") })
    }

    /// The manifest, if it is complete and of this release.
    pub(crate) fn understand(self) -> Result<Scanned, ScanError> {
        let failed = |message: String| ScanError::Failed { message };
        if !self.errors.is_empty() {
            return Err(ScanError::Broken(self.errors));
        }
        let (Some(digest), Some(manifest)) = (self.digest, self.manifest) else {
            return Err(failed("its answer has no manifest".to_owned()));
        };
        let found = format!("sha256:{}", sha256_hex(manifest.get().as_bytes()));
        if found != digest {
            return Err(failed(format!("the manifest has digest {found}, not {digest}")));
        }
        let text = manifest;
        let manifest = serde_json::from_str(text.get()).map_err(|error| {
            let advice = "install the same release of the SDK and of servo";
            failed(format!("its manifest is not understood: {error}; {advice}"))
        })?;
        Ok(Scanned { manifest, text, digest })
    }
}
