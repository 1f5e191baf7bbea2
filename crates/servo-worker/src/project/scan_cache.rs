//! Answers of scans, kept for as long as nothing that they depend on has changed (ADR-120).
//!
//! A scan says which files, directories and variables were read while the project was imported. Its answer is kept
//! with the hashes of these, and given again while all are the same, without starting an interpreter. Files are kept
//! in the cache directory of the user; what cannot be read or written there is as if it was never kept.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use servo_core::sha256_hex;
use servo_engine::work::CREDENTIALS;

use super::Project;

/// Variable that turns the cache off.
const OFF: &str = "SERVO_NO_CACHE";
/// Files that are hashed again for one answer at most.
const MAX_FILES: usize = 10_000;

/// Everything that was read while a project was imported.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    files: Vec<PathBuf>,
    directories: Vec<PathBuf>,
    /// Hashes of their values; none for a variable that was not set.
    variables: BTreeMap<String, Option<String>>,
    /// Whether the names of all variables were listed.
    lists_variables: bool,
}

/// A kept answer.
#[derive(Serialize, Deserialize)]
struct Entry {
    /// Hash of what every scan depends on: this program, the interpreter, the place.
    basis: String,
    files: BTreeMap<PathBuf, Option<String>>,
    directories: BTreeMap<PathBuf, Option<String>>,
    variables: BTreeMap<String, Option<String>>,
    names: Option<String>,
    answer: Box<RawValue>,
}

/// The kept answer for one project and one interpreter.
pub(super) struct ScanCache {
    file: PathBuf,
    basis: String,
    begun: SystemTime,
}

impl ScanCache {
    /// None if the user has no cache, or does not want it to be used.
    pub(super) fn open(project: &Project, interpreter: &Path) -> Option<Self> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        if variable(OFF).is_some() {
            return None;
        }
        let directory = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let directory = directory.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")))?;
        let name = sha256_hex(project.root().as_os_str().as_bytes());
        let file = directory.join("servo").join("scans").join(format!("{}.json", &name[..32]));
        let program = std::env::current_exe().ok()?;
        let path: OsString = variable("PYTHONPATH").unwrap_or_default();
        let basis = format!(
            "{}\0{}\0{}\0{}",
            written(&program)?,
            interpreter.display(),
            written(&interpreter.canonicalize().ok()?)?,
            path.display(),
        );
        Some(Self { file, basis: sha256_hex(basis.as_bytes()), begun: SystemTime::now() })
    }

    /// The kept answer, if a scan would give the same one.
    pub(super) fn get(&self) -> Option<Box<RawValue>> {
        let entry: Entry = serde_json::from_slice(&std::fs::read(&self.file).ok()?).ok()?;
        let is_same = entry.basis == self.basis
            && entry.variables.iter().all(|(name, hash)| variable_hash(name) == *hash)
            && entry.names.as_ref().is_none_or(|names| *names == hash_of_names())
            && entry.directories.iter().all(|(path, hash)| directory_hash(path) == *hash)
            && entry.files.iter().all(|(path, hash)| file_hash(path) == *hash);
        is_same.then_some(entry.answer)
    }

    /// Keeps an answer, unless something that it depends on may have changed since the scan began.
    pub(super) fn put(&self, answer: Box<RawValue>, record: Record) {
        if record.files.len() > MAX_FILES || record.files.iter().any(|file| self.is_newer(file)) {
            return;
        }
        let entry = Entry {
            basis: self.basis.clone(),
            files: record.files.into_iter().map(|file| (file.clone(), file_hash(&file))).collect(),
            directories: record.directories.into_iter().map(|at| (at.clone(), directory_hash(&at))).collect(),
            variables: record.variables,
            names: record.lists_variables.then(hash_of_names),
            answer,
        };
        if let Err(error) = self.write(&entry) {
            tracing::debug!(%error, "project.scan was not kept");
        }
    }

    /// Whether a file was written after the scan began, or so shortly before that the clock of its disk cannot tell.
    fn is_newer(&self, file: &Path) -> bool {
        let modified = std::fs::metadata(file).and_then(|file| file.modified());
        let certain = self.begun - std::time::Duration::from_millis(20);
        modified.is_ok_and(|modified| modified >= certain)
    }

    fn write(&self, entry: &Entry) -> std::io::Result<()> {
        let directory = self.file.parent().unwrap_or(Path::new("."));
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let unfinished = self.file.with_extension(std::process::id().to_string());
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        file.write_all(&serde_json::to_vec(entry)?)?;
        std::fs::rename(&unfinished, &self.file)
    }
}

/// Path, size and time of a program.
fn written(program: &Path) -> Option<String> {
    let file = std::fs::metadata(program).ok()?;
    let modified = file.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(format!("{} {} {}", program.display(), file.len(), modified.as_nanos()))
}

/// None if there is no such file.
fn file_hash(path: &Path) -> Option<String> {
    std::fs::read(path).ok().map(|bytes| sha256_hex(&bytes))
}

/// Hash of the names in a directory, but for hidden ones; none if there is no such directory.
fn directory_hash(path: &Path) -> Option<String> {
    let names = std::fs::read_dir(path).ok()?.flatten().map(|entry| entry.file_name());
    let is_listed = |name: &OsString| !name.as_bytes().starts_with(b".") && name != "__pycache__";
    let mut names: Vec<OsString> = names.filter(is_listed).collect();
    names.sort();
    Some(hash_of(names.iter().map(|name| name.as_bytes())))
}

/// Hash of the value that a scan would find; none if it would find no such variable.
fn variable_hash(name: &str) -> Option<String> {
    let value = std::env::var_os(name).filter(|_| !CREDENTIALS.contains(&name));
    value.map(|value| sha256_hex(value.as_bytes()))
}

/// Hash of the names of all variables.
fn hash_of_names() -> String {
    let mut names: Vec<OsString> = std::env::vars_os().map(|(name, _)| name).collect();
    names.sort();
    hash_of(names.iter().map(|name| name.as_bytes()))
}

fn hash_of<'a>(parts: impl Iterator<Item = &'a [u8]>) -> String {
    let parts: Vec<&[u8]> = parts.collect();
    sha256_hex(parts.join(&0u8))
}
