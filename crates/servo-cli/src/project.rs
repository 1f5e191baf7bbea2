//! The project that a command is about: found, scanned, checked.

use std::path::{Path, PathBuf};

use servo_engine::definitions::Definitions;
use servo_worker::project::{Project, ProjectError, Scanned, interpreter_near};

/// Where the project lies.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ProjectArgs {
    /// Directory of the project, or one below it.
    #[arg(long, global = true, env = "SERVO_PROJECT", value_name = "DIR")]
    project: Option<PathBuf>,
}

impl ProjectArgs {
    /// A project in a directory.
    pub(crate) fn at(directory: PathBuf) -> Self {
        Self { project: Some(directory) }
    }

    /// The project at or above the directory.
    pub(crate) fn find(&self) -> anyhow::Result<Project> {
        Ok(Project::find(self.project.as_deref().unwrap_or(Path::new(".")))?)
    }

    /// The project, if there is one, and the interpreter for SQL and other tools.
    pub(crate) fn python(&self) -> anyhow::Result<(Option<Project>, PathBuf)> {
        let start = self.project.as_deref().unwrap_or(Path::new("."));
        match Project::find(start) {
            Ok(project) => {
                let interpreter = project.interpreter()?;
                Ok((Some(project), interpreter))
            }
            Err(ProjectError::NotFound { start }) if self.project.is_none() => {
                Ok((None, interpreter_near(&start)?))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Scans the project without validating its declarations.
    pub(crate) fn scan(&self) -> anyhow::Result<Scanned> {
        Ok(self.find()?.scan()?)
    }

    /// The same, without importing it again if nothing has changed.
    pub(crate) fn scan_cached(&self) -> anyhow::Result<Scanned> {
        Ok(self.find()?.scan_cached()?)
    }

    /// The same, where there is a project.
    pub(crate) fn scan_if_any(&self) -> anyhow::Result<Option<Scanned>> {
        match self.find() {
            Ok(project) => {
                let scanned = project.scan_cached()?;
                Definitions::check(scanned.manifest.clone())?;
                Ok(Some(scanned))
            }
            Err(_) => Ok(None),
        }
    }

    /// Where the state of the project lies: beside `servo.toml`, or below the current directory without a project.
    pub(crate) fn state_directory(&self) -> PathBuf {
        self.find().map_or_else(|_| PathBuf::from(".servo"), |project| project.root().join(".servo"))
    }
}
