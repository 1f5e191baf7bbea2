//! The project that a command is about: found, scanned, checked.

use std::path::{Path, PathBuf};

use servo_engine::definitions::Definitions;
use servo_worker::project::{Project, Scanned};

/// Where the project lies.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ProjectArgs {
    /// Directory of the project, or one below it.
    #[arg(long, global = true, env = "SERVO_PROJECT", value_name = "DIR")]
    project: Option<PathBuf>,
}

impl ProjectArgs {
    /// The project at or above the directory.
    pub(crate) fn find(&self) -> anyhow::Result<Project> {
        Ok(Project::find(self.project.as_deref().unwrap_or(Path::new(".")))?)
    }

    /// What the project declares, unchecked.
    pub(crate) fn scan(&self) -> anyhow::Result<Scanned> {
        Ok(self.find()?.scan()?)
    }

    /// What the project declares.
    pub(crate) fn definitions(&self) -> anyhow::Result<Definitions> {
        Ok(Definitions::check(self.scan()?.manifest)?)
    }

    /// Where the state of the project lies: beside `servo.toml`, or below the current directory without a project.
    pub(crate) fn state_directory(&self) -> PathBuf {
        self.find().map_or_else(|_| PathBuf::from(".servo"), |project| project.root().join(".servo"))
    }
}
