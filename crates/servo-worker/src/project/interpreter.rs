//! Which Python runs a project: the one that was named, else that of the virtual environment, else the system's.

use std::env;
use std::path::{Path, PathBuf};

use super::Project;

/// No interpreter was found, or the one that was named is not there.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NoInterpreter(String);

impl Project {
    /// The interpreter of the project. In order: `SERVO_PYTHON`, `python` in `servo.toml`, the active virtual
    /// environment, `.venv` in the project or above it, `python3` on the path.
    pub fn interpreter(&self) -> Result<PathBuf, NoInterpreter> {
        interpreter(&self.root, self.python.as_deref())
    }
}

/// The interpreter that a project in this directory would have, for commands that need no project.
pub fn interpreter_near(directory: &Path) -> Result<PathBuf, NoInterpreter> {
    interpreter(directory, None)
}

fn interpreter(root: &Path, python: Option<&Path>) -> Result<PathBuf, NoInterpreter> {
    if let Some(named) = env::var_os("SERVO_PYTHON").filter(|value| !value.is_empty()) {
        return named_one(PathBuf::from(named), "SERVO_PYTHON");
    }
    if let Some(python) = python {
        return named_one(root.join(python), "python in servo.toml");
    }
    let active = env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let own = root.ancestors().map(|directory| directory.join(".venv"));
    let found = active.into_iter().chain(own).find_map(|directory| interpreter_in(&directory));
    found.or_else(|| on_path("python3")).ok_or_else(|| {
        NoInterpreter(
            "no Python was found; make a .venv in the project, or name an interpreter with python = \"…\" in \
             servo.toml or with SERVO_PYTHON"
                .to_owned(),
        )
    })
}

fn named_one(python: PathBuf, by: &str) -> Result<PathBuf, NoInterpreter> {
    let is_a_word = python.components().count() == 1;
    let found = if is_a_word {
        on_path(&python.to_string_lossy())
    } else {
        Some(python.clone()).filter(|p| p.is_file())
    };
    found.ok_or_else(|| NoInterpreter(format!("{} is not there; it was named by {by}", python.display())))
}

fn interpreter_in(environment: &Path) -> Option<PathBuf> {
    Some(environment.join("bin").join("python")).filter(|python| python.is_file())
}

fn on_path(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|directory| directory.join(name)).find(|file| file.is_file())
}
