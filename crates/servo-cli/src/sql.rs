//! `servo sql`: passes a query to the SDK, which runs it with DuckDB over the tables and the data of assets.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::Context;
use servo_worker::project::{StartError, has_sdk};
use tokio::signal::unix::{SignalKind, signal};

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::Format;

/// Options of `servo sql`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The query; - reads it from stdin. Without one, lists tables and assets.
    #[arg(conflicts_with = "tables")]
    query: Option<String>,
    /// List tables and assets with their columns.
    #[arg(long)]
    tables: bool,
    /// Print CSV instead of a table.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Write the result to a file whose name ends with .csv or .json, whole or not at all.
    #[arg(long, short, value_name = "FILE", value_parser = Output::parse, conflicts_with_all = ["tables", "csv", "json"])]
    output: Option<Output>,
    /// Rows of a table that are shown; 0 shows all.
    #[arg(long, default_value_t = 100, value_name = "N")]
    rows: u32,
    /// Let SQL read and write other files, and use all features of DuckDB.
    #[arg(long)]
    allow_files: bool,
}

/// A file for a result, and how that is written.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    file: PathBuf,
    shape: &'static str,
}

impl Output {
    fn parse(text: &str) -> Result<Self, String> {
        let file = PathBuf::from(text);
        let shape = match file.extension().and_then(OsStr::to_str) {
            Some("csv") => "--csv",
            Some("json") => "--json",
            Some(_) | None => return Err("name a file that ends with .csv or .json".to_owned()),
        };
        Ok(Self { file, shape })
    }

    /// The file as long as it is not complete.
    fn unfinished(&self) -> PathBuf {
        let name = self.file.file_name().and_then(OsStr::to_str).unwrap_or_default();
        self.file.with_file_name(format!(".{name}.{}", std::process::id()))
    }
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let directory = location.existing_dir()?;
    // What a command before this one has said is done is in the tables then.
    through(location, Need::ReadTables, async |client| Ok(client.tables().await?)).await?;
    let (project, interpreter) = location.project.python()?;
    let mut command = Command::new(&interpreter);
    command.args(["-m", "servo.sql", "--dir"]).arg(&directory);
    command.args(["--tenant", location.tenant.as_str(), "--workspace", location.workspace.as_str()]);
    if let Some(storage) = project.as_ref().and_then(|project| project.storage()) {
        command.args(["--storage", &storage]);
    }
    command.args(["--rows", &options.rows.to_string()]);
    let shape = match (&options.output, format, options.csv) {
        (Some(output), ..) => Some(output.shape),
        (None, Format::Json, _) => Some("--json"),
        (None, Format::Table, true) => Some("--csv"),
        (None, Format::Table, false) => None,
    };
    let tables = options.tables.then_some("--tables");
    let allow_files = options.allow_files.then_some("--allow-files");
    command.args(shape.into_iter().chain(tables).chain(allow_files));
    if let Some(query) = &options.query {
        command.args(["--", query]);
    }

    // An interrupt is for the query; its end is then ours.
    let _interrupts = signal(SignalKind::interrupt()).context("waiting for interrupts")?;
    let python = interpreter.display().to_string();
    if let Some(output) = &options.output {
        let unfinished = output.unfinished();
        let writing = || format!("writing {}", output.file.display());
        command.stdout(File::create(&unfinished).with_context(writing)?);
        let status = command.status();
        // Whoever looks at the file sees a whole result, or the one before it.
        match &status {
            Ok(status) if status.success() => {
                std::fs::rename(&unfinished, &output.file).with_context(writing)?;
            }
            Ok(_) | Err(_) => std::fs::remove_file(&unfinished).with_context(writing)?,
        }
        return ended(status.with_context(|| format!("starting {python}"))?, &interpreter, python);
    }
    let status = command.status().with_context(|| format!("starting {python}"))?;
    ended(status, &interpreter, python)
}

fn ended(status: ExitStatus, interpreter: &Path, python: String) -> anyhow::Result<Exit> {
    if status.code() == Some(1) && !has_sdk(interpreter, Path::new(".")) {
        return Err(StartError::NoSdk { python }.into());
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(Exit::Failed, Exit::Of))
}
