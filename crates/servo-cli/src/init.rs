//! `servo init`: a project that runs at once.

use std::path::{Path, PathBuf};

use anyhow::Context;
use servo_api::{Code, Problem};

use crate::exit::Exit;
use crate::output::{self, Format};

/// Options of `servo init`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Directory of the new project; it may exist, and nothing in it is replaced.
    #[arg(default_value = ".")]
    directory: PathBuf,
    /// Name of the project [default: that of the directory].
    #[arg(long)]
    name: Option<String>,
}

/// The files of a new project. `{{name}}` stands for its name.
const FILES: &[(&str, &str)] = &[
    ("servo.toml", include_str!("../templates/servo.toml")),
    ("pipeline.py", include_str!("../templates/pipeline.py")),
    ("test_pipeline.py", include_str!("../templates/test_pipeline.py")),
    ("README.md", include_str!("../templates/README.md")),
    (".gitignore", include_str!("../templates/gitignore")),
];

pub(crate) fn run(options: &Options, format: Format) -> anyhow::Result<Exit> {
    let directory = std::path::absolute(&options.directory)?;
    let name = match &options.name {
        Some(name) => name.clone(),
        None => name_of(&directory),
    };
    check_name(&name)?;
    std::fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
    let mut taken = FILES.iter().map(|(file, _)| directory.join(file)).filter(|path| path.exists());
    if let Some(path) = taken.next() {
        let detail = format!("{} is there already; nothing was changed", path.display());
        return Err(Problem::new(Code::InvalidRequest, detail).into());
    }
    for (file, text) in FILES {
        let path = directory.join(file);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
        }
        let text = text.replace("{{name}}", &name);
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    let files: Vec<&str> = FILES.iter().map(|(file, _)| *file).collect();
    match format {
        Format::Json => output::json(&serde_json::json!({
            "name": name, "directory": directory.display().to_string(), "files": files,
        }))?,
        Format::Table => told(&options.directory, &name, &files),
    }
    Ok(Exit::Done)
}

fn told(directory: &Path, name: &str, files: &[&str]) {
    output::line(format_args!("project {name}: {}\n", files.join(", ")));
    output::line("try it:");
    if directory != Path::new(".") {
        output::line(format_args!("  cd {}", directory.display()));
    }
    let week = "servo materialize '*' --partitions 2026-01-01..2026-01-07";
    for command in ["servo asset graph", week, "servo dev"] {
        output::line(format_args!("  {command}"));
    }
}

fn name_of(directory: &Path) -> String {
    let name = directory.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let name = name.trim_matches('_').to_owned();
    if name.starts_with(|c: char| c.is_ascii_lowercase()) { name } else { format!("project_{name}") }
}

fn check_name(name: &str) -> anyhow::Result<()> {
    let is_good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= 64
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-');
    if !is_good {
        let rule = "small letters, digits, _ and -, a letter first, at most 64";
        let detail = format!("{name:?} is no name for a project: {rule}");
        return Err(Problem::new(Code::InvalidRequest, detail).into());
    }
    Ok(())
}
