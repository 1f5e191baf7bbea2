//! A project: the directory with a `servo.toml`, the interpreter that runs it, and what it declares.

mod interpreter;
mod scan;
mod scan_cache;
mod sources;
mod start;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use servo_engine::SettingValue;

pub use interpreter::{NoInterpreter, interpreter_near};
pub(crate) use scan::Answer;
pub use scan::{BrokenModule, Frame, ScanError, Scanned, has_sdk};
pub use sources::{MAX_DIRECTORIES, Sources, is_source, is_source_directory};
pub use start::StartError;

/// The file that makes a directory a project.
pub const FILE: &str = "servo.toml";

/// A project on disk.
#[derive(Debug, Clone)]
pub struct Project {
    root: PathBuf,
    python: Option<PathBuf>,
    storage: Option<String>,
    settings: BTreeMap<String, SettingValue>,
}

/// Reasons why there is no usable project.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// No file in the directory or above it.
    #[error(
        "there is no {FILE} in {} or above it; change to a project, begin one with `servo init NAME`, or make this a project \
         with a file that says\n\n  [project]\n  modules = [\"your_module\"]\n",
        .start.display()
    )]
    NotFound {
        /// Where the search began.
        start: PathBuf,
    },
    /// The file cannot be read.
    #[error("{} cannot be read: {source}", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not valid.
    #[error("{}: {message}", .file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The location and the problem.
        message: String,
    },
}

/// The part of the file that is read here; the SDK reads and checks the rest.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    project: Section,
    #[serde(default)]
    settings: toml::Table,
}

#[derive(Default, Deserialize)]
struct Section {
    python: Option<PathBuf>,
    storage: Option<String>,
}

impl Project {
    /// The nearest project at or above a directory.
    pub fn find(start: &Path) -> Result<Self, ProjectError> {
        let absolute = std::path::absolute(start)
            .map_err(|source| ProjectError::Unreadable { file: start.to_owned(), source })?;
        let root = absolute.ancestors().find(|directory| directory.join(FILE).is_file());
        match root {
            Some(root) => Self::open(root),
            None => Err(ProjectError::NotFound { start: absolute }),
        }
    }

    /// The project in exactly this directory.
    pub fn open(root: &Path) -> Result<Self, ProjectError> {
        let file = root.join(FILE);
        let text = std::fs::read_to_string(&file)
            .map_err(|source| ProjectError::Unreadable { file: file.clone(), source })?;
        let malformed = |message: String| ProjectError::Malformed { file: file.clone(), message };
        let read: File =
            toml::from_str(&text).map_err(|error| malformed(error.to_string().trim_end().to_owned()))?;
        let mut settings = BTreeMap::new();
        flatten("", read.settings, &mut settings).map_err(malformed)?;
        let Section { python, storage } = read.project;
        Ok(Self { root: root.to_owned(), python, storage, settings })
    }

    /// The directory with the file.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Settings of the workspace, as the file gives them.
    pub fn settings(&self) -> &BTreeMap<String, SettingValue> {
        &self.settings
    }

    /// Where the data of assets is kept, if not in the state directory: a URI, or a path.
    pub fn storage(&self) -> Option<String> {
        let storage = self.storage.as_ref()?;
        let is_uri = storage.contains("://");
        Some(if is_uri { storage.clone() } else { self.root.join(storage).display().to_string() })
    }
}

/// Settings by their full names: `pool.warehouse` may be written as `warehouse` in a table `[settings.pool]`.
fn flatten(
    prefix: &str,
    table: toml::Table,
    into: &mut BTreeMap<String, SettingValue>,
) -> Result<(), String> {
    for (key, value) in table {
        let name = format!("{prefix}{key}");
        let read = match value {
            toml::Value::Integer(number) => u64::try_from(number).ok().map(SettingValue::Number),
            toml::Value::String(text) => Some(SettingValue::Text(text)),
            toml::Value::Table(inner) => {
                flatten(&format!("{name}."), inner, into)?;
                continue;
            }
            toml::Value::Float(_)
            | toml::Value::Boolean(_)
            | toml::Value::Datetime(_)
            | toml::Value::Array(_) => None,
        };
        let wrong = || format!("setting {name} is neither a whole number nor a text such as \"90s\"");
        into.insert(name.clone(), read.ok_or_else(wrong)?);
    }
    Ok(())
}
