//! Which time zone database this process follows: a directory, the `tzdata` package of the project, or the compiled
//! one.

use std::path::{Path, PathBuf};

use servo_core::TimeZones;

use crate::location::Location;

/// Where the rules of time zones come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A directory that was named.
    Named(PathBuf),
    /// The package `tzdata` beside the project, which is newer than the compiled rules.
    Package(PathBuf),
    /// Compiled in.
    Compiled,
}

/// A directory of time zones.
struct Directory {
    path: PathBuf,
    version: String,
}

/// Finds the database and makes it the one of this process; before anything asks for a zone.
pub(crate) fn install(location: &Location) -> anyhow::Result<Source> {
    let (directory, source) = if let Some(path) = named() {
        let directory = Directory::open(&path).ok_or_else(|| {
            anyhow::anyhow!(
                "SERVO_TZDATA is {}, which holds no time zones; name a directory such as /usr/share/zoneinfo",
                path.display()
            )
        })?;
        (directory, Source::Named(path))
    } else {
        let package = package(location).filter(|found| *found.version > *TimeZones::compiled_version());
        let Some(directory) = package else { return Ok(Source::Compiled) };
        let path = directory.path.clone();
        (directory, Source::Package(path))
    };
    let Directory { path, version } = directory;
    let zones = TimeZones::new(version, move |name| read(&path, name));
    zones.install().map_err(|_| anyhow::anyhow!("time zones were used before their database was chosen"))?;
    Ok(source)
}

fn named() -> Option<PathBuf> {
    std::env::var_os("SERVO_TZDATA").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The package `tzdata` that the interpreter of the project would import.
fn package(location: &Location) -> Option<Directory> {
    let (_, interpreter) = location.project.python().ok()?;
    let environment = interpreter.parent()?.parent()?;
    let mut libraries: Vec<PathBuf> = std::fs::read_dir(environment.join("lib"))
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    libraries.sort_unstable();
    let mut packages = libraries.iter().flat_map(|library| {
        ["site-packages", "dist-packages"].map(|packages| library.join(packages).join("tzdata/zoneinfo"))
    });
    packages.find_map(|path| Directory::open(&path))
}

impl Directory {
    /// The directory, if it holds time zones.
    fn open(path: &Path) -> Option<Self> {
        read(path, "UTC")?;
        Some(Self { path: path.to_owned(), version: version(path).unwrap_or_else(|| "unknown".to_owned()) })
    }
}

/// The release, as `tzdata.zi`, `+VERSION` or the Python package say it.
fn version(directory: &Path) -> Option<String> {
    let read = |name: &str| std::fs::read_to_string(directory.join(name)).ok();
    let of_rules = || {
        let text = read("tzdata.zi")?;
        Some(text.lines().next()?.strip_prefix("# version ")?.trim().to_owned())
    };
    let of_package = || {
        let text = read("../__init__.py")?;
        let line = text.lines().find_map(|line| line.strip_prefix("IANA_VERSION = "))?;
        Some(line.trim().trim_matches('"').to_owned())
    };
    let written = || Some(read("+VERSION")?.trim().to_owned());
    of_rules().or_else(written).or_else(of_package).filter(|version| !version.is_empty())
}

/// The TZif bytes of a zone; its name leads nowhere else.
fn read(directory: &Path, name: &str) -> Option<Vec<u8>> {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte))
    };
    if !name.split('/').all(is_word) {
        return None;
    }
    std::fs::read(directory.join(name)).ok().filter(|bytes| bytes.starts_with(b"TZif"))
}
