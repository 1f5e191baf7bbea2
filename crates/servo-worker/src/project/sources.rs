//! The files that the code of a project is in, as they are on disk at some moment.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Directories of a project that are looked into at most.
pub const MAX_DIRECTORIES: usize = 2_000;

/// State of the source files below a directory at some moment. Equal states mean that nothing was saved in between.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sources {
    files: BTreeMap<PathBuf, FileState>,
}

/// The properties of a file that change when it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Sources {
    /// Looks at the source files below a directory.
    pub fn look(root: &Path) -> Self {
        let mut sources = Self::default();
        let mut directories = vec![root.to_owned()];
        for _ in 0..MAX_DIRECTORIES {
            let Some(directory) = directories.pop() else { break };
            for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
                let path = entry.path();
                if is_source_directory(&path) {
                    directories.push(path);
                } else if let (true, Ok(file)) = (is_source(&path), std::fs::metadata(&path)) {
                    sources.files.insert(path, FileState::of(&file));
                }
            }
        }
        sources
    }
}

impl FileState {
    fn of(file: &std::fs::Metadata) -> Self {
        Self {
            inode: file.ino(),
            bytes: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

/// Whether a file is code, or says how to load it.
pub fn is_source(path: &Path) -> bool {
    let is_code = path.extension().is_some_and(|extension| extension == "py" || extension == "sql");
    let is_settings = path.file_name().is_some_and(|name| name == super::FILE);
    (is_code || is_settings) && !is_hidden(path)
}

/// Whether code may be in a directory: it is neither hidden nor left behind by a tool.
pub fn is_source_directory(path: &Path) -> bool {
    let tools = ["__pycache__", "node_modules", "target", "venv"];
    let is_tool = |name: &std::ffi::OsStr| tools.iter().any(|tool| name == *tool);
    !is_hidden(path) && !path.file_name().is_some_and(is_tool) && path.is_dir() && !path.is_symlink()
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_save_is_seen_and_what_tools_leave_is_not() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.path().join(name), text).unwrap();
        for directory in ["sub", "__pycache__", ".servo"] {
            std::fs::create_dir(root.path().join(directory)).unwrap();
        }
        write("work.py", "a = 1");
        let before = Sources::look(root.path());
        for (name, text) in
            [("__pycache__/work.py", ""), (".servo/a.py", ""), ("notes.md", ""), (".x.py", "")]
        {
            write(name, text);
            assert_eq!(Sources::look(root.path()), before, "{name}");
        }
        for (name, text) in [("work.py", "a = 22"), ("sub/more.sql", "select 1"), ("servo.toml", "")] {
            let before = Sources::look(root.path());
            write(name, text);
            assert_ne!(Sources::look(root.path()), before, "{name}");
        }
    }
}
