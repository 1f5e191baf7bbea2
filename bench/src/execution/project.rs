//! Projects to measure with: every asset is fib(10), its result kept by the default storage.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempDir;

/// All that were made. They are removed together in the end: file systems are slow at making files where thousands have
/// just been deleted.
static MADE: Mutex<Vec<Arc<TempDir>>> = Mutex::new(Vec::new());

const HEAD: &str = "import servo\n\n\ndef fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n";

/// A project in a directory of its own.
pub(crate) struct Project {
    root: Arc<TempDir>,
}

/// Removes every project that was made.
pub(crate) fn remove_all() {
    MADE.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

impl Project {
    /// One asset that also says when it began.
    pub(crate) fn one() -> anyhow::Result<Self> {
        let code = "\n\n@servo.asset(namespace=\"bench\")\ndef one() -> int:\n    import time\n    with open(\"began\", \"w\") as file:\n        file.write(str(time.time_ns()))\n    return fib(10)\n";
        Self::new(code)
    }

    /// A chain: each asset depends on the one before.
    pub(crate) fn chain(length: usize) -> anyhow::Result<Self> {
        let mut code = asset("n0", &[]);
        for at in 1..length {
            code += &asset(&format!("n{at}"), &[format!("n{}", at - 1)]);
        }
        Self::new(&code)
    }

    /// A fan: one asset, many that depend on it, and one that depends on all.
    pub(crate) fn fan(width: usize) -> anyhow::Result<Self> {
        let middle: Vec<String> = (0..width).map(|at| format!("m{at}")).collect();
        let mut code = asset("first", &[]);
        for name in &middle {
            code += &asset(name, &["first".to_owned()]);
        }
        code += &asset("last", &middle);
        Self::new(&code)
    }

    /// Layers of which each asset waits for three of the layer before.
    pub(crate) fn layers(count: usize, width: usize) -> anyhow::Result<Self> {
        let mut code = String::new();
        for layer in 0..count {
            for at in 0..width {
                let above = |step: usize| format!("l{}_{}", layer - 1, (at + step) % width);
                let upstream: Vec<String> = if layer == 0 { Vec::new() } else { (0..3).map(above).collect() };
                code += &asset(&format!("l{layer}_{at}"), &upstream);
            }
        }
        Self::new(&code)
    }

    /// A year of an asset by the day.
    pub(crate) fn days() -> anyhow::Result<Self> {
        let code = "\n\n@servo.asset(namespace=\"bench\", partitions=servo.DailyPartitions(start=\"2024-01-01\", end=\"2024-12-31\"))\ndef daily() -> int:\n    return fib(10)\n";
        Self::new(code)
    }

    /// Partitions of an asset that does nothing.
    pub(crate) fn nothing(partitions: usize) -> anyhow::Result<Self> {
        let code = format!(
            "\n\n@servo.asset(namespace=\"bench\", partitions=servo.StaticPartitions([f\"p{{n:04}}\" for n in range({partitions})]))\ndef nothing() -> None:\n    pass\n"
        );
        Self::new(&code)
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// A project with this code.
    pub(crate) fn new(code: &str) -> anyhow::Result<Self> {
        let root = Arc::new(tempfile::tempdir_in(std::env::current_dir()?.join("target"))?);
        MADE.lock().unwrap_or_else(PoisonError::into_inner).push(root.clone());
        std::fs::write(
            root.path().join("servo.toml"),
            "[project]\nname = \"bench\"\nmodules = [\"work\"]\n",
        )?;
        std::fs::write(root.path().join("work.py"), format!("{HEAD}{code}"))?;
        Ok(Self { root })
    }
}

fn asset(name: &str, upstream: &[String]) -> String {
    let mut code = String::new();
    let _infallible = write!(
        code,
        "\n\n@servo.asset(namespace=\"bench\")\ndef {name}({}):\n    return fib(10)\n",
        upstream.join(", ")
    );
    code
}
