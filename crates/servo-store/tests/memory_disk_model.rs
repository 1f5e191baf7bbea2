//! The disk in memory behaves as the operating system's files do, and keeps what was synced when the power goes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::select;
use servo_store::testing::MemoryDisk;
use servo_store::{DirEntry, FileSystem, LockOutcome, OpenFile, OsFiles};

const NAMES: [&str; 8] = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "missing/a"];

#[derive(Debug, Clone)]
enum Step {
    CreateDir(&'static str),
    CreateNew(&'static str),
    OpenAppend(&'static str),
    Append(usize, Vec<u8>),
    Pad(usize, usize),
    Sync(usize),
    Truncate(usize, u64),
    Read(&'static str, u64, u64),
    Len(&'static str),
    Rename(&'static str, &'static str),
    Link(&'static str, &'static str),
    Remove(&'static str),
    List(&'static str),
    SyncDir(&'static str),
    Lock(&'static str),
    Unlock(usize),
}

fn name() -> impl Strategy<Value = &'static str> {
    select(&NAMES[..])
}

/// Where directories are likely.
fn dir() -> impl Strategy<Value = &'static str> {
    select(&["", "d", "d/e", "b"][..])
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => select(&["d", "d/e", "b", "missing/e"][..]).prop_map(Step::CreateDir),
        4 => name().prop_map(Step::CreateNew),
        2 => name().prop_map(Step::OpenAppend),
        6 => (any::<usize>(), prop::collection::vec(1_u8.., 0..6)).prop_map(|(file, bytes)| Step::Append(file, bytes)),
        1 => (any::<usize>(), 0_usize..8).prop_map(|(file, bytes)| Step::Pad(file, bytes)),
        3 => any::<usize>().prop_map(Step::Sync),
        2 => (any::<usize>(), 0_u64..12).prop_map(|(file, len)| Step::Truncate(file, len)),
        2 => (name(), 0_u64..8, 1_u64..8).prop_map(|(name, start, len)| Step::Read(name, start, start + len)),
        1 => name().prop_map(Step::Len),
        3 => (name(), name()).prop_map(|(from, to)| Step::Rename(from, to)),
        3 => (name(), name()).prop_map(|(from, to)| Step::Link(from, to)),
        2 => name().prop_map(Step::Remove),
        1 => dir().prop_map(Step::List),
        3 => dir().prop_map(Step::SyncDir),
        1 => name().prop_map(Step::Lock),
        1 => any::<usize>().prop_map(Step::Unlock),
    ]
}

/// One file system with what was opened on it.
struct Side<F> {
    files: F,
    root: PathBuf,
    open: Vec<Box<dyn OpenFile>>,
    locks: Vec<LockOutcome>,
}

/// The result of a step, in comparable form.
#[derive(Debug, PartialEq)]
enum StepResult {
    Done,
    Bytes(Vec<u8>),
    Len(u64),
    Entries(Vec<DirEntry>),
    HeldBy(String),
    Refused(io::ErrorKind),
}

impl<F: FileSystem> Side<F> {
    fn new(files: F, root: &Path) -> Self {
        Self { files, root: root.to_owned(), open: Vec::new(), locks: Vec::new() }
    }

    fn with_file(
        &mut self,
        file: usize,
        act: impl FnOnce(&mut dyn OpenFile) -> io::Result<()>,
    ) -> io::Result<StepResult> {
        let count = self.open.len();
        if count > 0 {
            act(self.open[file % count].as_mut())?;
        }
        Ok(StepResult::Done)
    }

    fn take(&mut self, step: &Step) -> StepResult {
        self.try_take(step).unwrap_or_else(|error| StepResult::Refused(error.kind()))
    }

    fn try_take(&mut self, step: &Step) -> io::Result<StepResult> {
        let at = |name: &str| self.root.join(name);
        match step {
            Step::CreateDir(dir) => self.files.create_dir(&at(dir))?,
            Step::CreateNew(name) => {
                let file = self.files.create_new(&at(name))?;
                self.open.push(file);
            }
            Step::OpenAppend(name) => {
                let file = self.files.open_append(&at(name))?;
                self.open.push(file);
            }
            Step::Append(file, bytes) => return self.with_file(*file, |file| file.append(bytes)),
            Step::Pad(file, bytes) => return self.with_file(*file, |file| file.pad(*bytes)),
            Step::Sync(file) => return self.with_file(*file, |file| file.sync_data()),
            Step::Truncate(file, len) => return self.with_file(*file, |file| file.truncate(*len)),
            Step::Read(name, start, end) => {
                return self.files.read_range(&at(name), *start..*end).map(StepResult::Bytes);
            }
            Step::Len(name) => return self.files.len(&at(name)).map(StepResult::Len),
            Step::Rename(from, to) => self.files.rename(&at(from), &at(to))?,
            Step::Link(from, to) => self.files.hard_link(&at(from), &at(to))?,
            Step::Remove(name) => self.files.remove(&at(name))?,
            Step::List(dir) => {
                let mut entries = self.files.list_dir(&at(dir))?;
                // How long a directory is differs from one system to the next.
                entries.iter_mut().filter(|entry| entry.is_dir).for_each(|entry| entry.len = 0);
                return Ok(StepResult::Entries(entries));
            }
            Step::SyncDir(dir) => self.files.sync_dir(&at(dir))?,
            Step::Lock(name) => match self.files.try_lock(&at(name), name)? {
                LockOutcome::HeldBy(holder) => return Ok(StepResult::HeldBy(holder)),
                taken @ LockOutcome::Acquired(_) => self.locks.push(taken),
            },
            Step::Unlock(lock) => {
                let count = self.locks.len();
                if count > 0 {
                    drop(self.locks.remove(lock % count));
                }
            }
        }
        Ok(StepResult::Done)
    }

    /// False for what the trait does not speak of: moving or replacing directories, their length, and syncing files as
    /// directories.
    fn is_defined(&self, step: &Step) -> bool {
        let is_dir = |name: &str| self.root.join(name).is_dir();
        match step {
            Step::Rename(from, to) => !(is_dir(from) || is_dir(to) && Path::new(from).starts_with(to)),
            Step::Len(name) => !is_dir(name),
            Step::SyncDir(dir) => !self.root.join(dir).is_file(),
            Step::CreateDir(_) | Step::CreateNew(_) | Step::OpenAppend(_) => true,
            Step::Append(..) | Step::Pad(..) => true,
            Step::Sync(_) | Step::Truncate(..) | Step::Read(..) | Step::Link(..) | Step::Remove(_) => true,
            Step::List(_) | Step::Lock(_) | Step::Unlock(_) => true,
        }
    }
}

fn tree(root: &Path, dir: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            tree(root, &path, found);
        } else {
            let name = Path::new("/").join(path.strip_prefix(root).expect("below the root"));
            found.insert(name, fs::read(&path).expect("a file"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_behaves_as_the_files_of_the_operating_system(steps in prop::collection::vec(step(), 1..50)) {
        let directory = tempfile::tempdir().expect("a directory");
        let disk = MemoryDisk::new();
        let mut real = Side::new(OsFiles, directory.path());
        let mut memory = Side::new(disk.process(), Path::new("/"));
        for step in &steps {
            if real.is_defined(step) {
                prop_assert_eq!(memory.take(step), real.take(step), "{:?}", step);
            }
        }
        let mut expected = BTreeMap::new();
        tree(directory.path(), directory.path(), &mut expected);
        prop_assert_eq!(disk.dump(), expected);
    }
}

/// Which names and contents must survive, worked out apart from the disk.
#[derive(Default)]
struct ExpectedDisk {
    /// Names changed since their directory was synced.
    names: BTreeSet<PathBuf>,
    /// Contents of files when they were last synced; only whole if nothing was written over or cut off after.
    contents: BTreeMap<usize, Vec<u8>>,
    cut: BTreeSet<usize>,
    /// Which file has which name, and what is in it.
    files: BTreeMap<PathBuf, usize>,
    now: BTreeMap<usize, Vec<u8>>,
    /// Open files, and the ends that they know of.
    open: Vec<(usize, usize)>,
}

impl ExpectedDisk {
    fn create(&mut self, path: PathBuf) -> usize {
        let file = self.now.len();
        self.now.insert(file, Vec::new());
        self.contents.insert(file, Vec::new());
        self.files.insert(path.clone(), file);
        self.names.insert(path);
        file
    }

    fn write(&mut self, opened: usize, bytes: &[u8]) {
        let (file, end) = self.open[opened];
        let now = self.now.entry(file).or_default();
        // No file gets longer by writing nothing.
        if bytes.is_empty() {
            return;
        }
        if end < now.len() {
            self.cut.insert(file);
        }
        now.resize(now.len().max(end + bytes.len()), 0);
        now[end..end + bytes.len()].copy_from_slice(bytes);
    }

    /// Takes note of a step that was done.
    fn note(&mut self, step: &Step) {
        let at = |name: &str| Path::new("/").join(name);
        match step {
            Step::CreateDir(dir) => drop(self.names.insert(at(dir))),
            Step::CreateNew(name) => {
                let file = self.create(at(name));
                self.open.push((file, 0));
            }
            Step::OpenAppend(name) => {
                let file = self.files[&at(name)];
                self.open.push((file, self.now[&file].len()));
            }
            Step::Append(file, bytes) if !self.open.is_empty() => {
                let file = file % self.open.len();
                self.write(file, bytes);
                self.open[file].1 += bytes.len();
            }
            Step::Pad(file, bytes) if !self.open.is_empty() => {
                self.write(file % self.open.len(), &vec![0; *bytes]);
            }
            Step::Sync(file) if !self.open.is_empty() => {
                let (file, _) = self.open[file % self.open.len()];
                self.contents.insert(file, self.now[&file].clone());
                self.cut.remove(&file);
            }
            Step::Truncate(file, len) if !self.open.is_empty() => {
                let opened = file % self.open.len();
                let (file, end) = &mut self.open[opened];
                *end = usize::try_from(*len).expect("small");
                self.now.entry(*file).or_default().resize(*end, 0);
                self.cut.insert(*file);
            }
            Step::Rename(from, to)
                if self.files[&at(from)] != self.files.get(&at(to)).copied().unwrap_or(usize::MAX) =>
            {
                let file = self.files.remove(&at(from)).expect("it was there");
                self.files.insert(at(to), file);
                self.names.extend([at(from), at(to)]);
            }
            Step::Link(from, to) => {
                self.files.insert(at(to), self.files[&at(from)]);
                self.names.insert(at(to));
            }
            Step::Remove(name) => {
                self.files.remove(&at(name));
                self.names.insert(at(name));
            }
            Step::SyncDir(dir) => self.names.retain(|name| name.parent() != Some(&at(dir))),
            // Nothing was open, or two names of one file were to become one.
            Step::Append(..) | Step::Pad(..) | Step::Sync(_) | Step::Truncate(..) | Step::Rename(..) => {}
            Step::Read(..) | Step::Len(_) | Step::List(_) | Step::Lock(_) | Step::Unlock(_) => {}
        }
    }

    fn check(&self, after: &BTreeMap<PathBuf, Vec<u8>>) -> Result<(), TestCaseError> {
        for name in NAMES.map(|name| Path::new("/").join(name)) {
            if name.ancestors().any(|name| self.names.contains(name)) {
                continue;
            }
            let Some(file) = self.files.get(&name) else {
                prop_assert!(!after.contains_key(&name), "{} is not there", name.display());
                continue;
            };
            let Some(found) = after.get(&name) else {
                return Err(TestCaseError::fail(format!("{} is lost", name.display())));
            };
            let synced = &self.contents[file];
            if *synced == self.now[file] && !self.cut.contains(file) {
                prop_assert_eq!(found, synced);
            } else if !self.cut.contains(file) {
                prop_assert!(found.starts_with(synced), "{:?} begins with {:?}", found, synced);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_synced_survives_the_loss_of_power(
        steps in prop::collection::vec(step(), 1..60),
        answers in prop::collection::vec(any::<prop::sample::Index>(), 40),
    ) {
        let disk = MemoryDisk::new();
        let mut memory = Side::new(disk.process(), Path::new("/"));
        let mut promise = ExpectedDisk::default();
        for step in steps.iter().filter(|step| !matches!(step, Step::Lock(_) | Step::Unlock(_))) {
            if !matches!(memory.take(step), StepResult::Refused(_)) {
                promise.note(step);
            }
        }
        let before = disk.dump();
        let best = disk.snapshot();
        best.power_loss(&mut |choices| choices - 1);
        prop_assert_eq!(best.dump(), before);
        promise.check(&disk.durable())?;
        let mut answers = answers.iter().cycle();
        disk.power_loss(&mut |choices| answers.next().expect("there are some").index(choices));
        let after = disk.dump();
        promise.check(&after)?;
        disk.power_loss(&mut |_| 0);
        prop_assert_eq!(disk.dump(), after, "what has survived once is durable");
    }
}
