//! A disk in memory that loses power as real disks do.
//!
//! Processes see the page cache: what one wrote is there for all others, and after its death. Only what was synced is
//! on the disk. When the power goes, the rest of the contents may be lost, torn or blank, and names that were not
//! synced with their directory may be as they were before. A rename is all or nothing.
//!
//! It has no clock and no randomness: whoever takes the power away says what survives.

mod chance;
mod contents;
mod names;
mod operation;
mod process;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::chance::Chance;
use self::contents::Contents;
use self::names::{Inode, Names};

pub use self::operation::{Operation, OperationKind, Verdict};
pub use self::process::MemoryFiles;

/// Decides what becomes of operations.
pub type Hook = Box<dyn FnMut(&Operation<'_>) -> Verdict + Send>;

/// A disk in memory. Clones share it. All paths begin at its root, with a slash or without.
#[derive(Clone)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
    hook: Arc<Mutex<Option<Hook>>>,
}

#[derive(Debug)]
struct State {
    names: Names,
    writes: u64,
    inodes: u64,
    uniques: u64,
    processes: u64,
    /// Processes with lower numbers died with the power.
    first_alive: u64,
    killed: BTreeSet<u64>,
    /// Lock holders, by inode number.
    locks: BTreeMap<u64, Holder>,
    taken: u64,
}

#[derive(Debug, Clone, Copy)]
struct Holder {
    process: u64,
    /// Number of the lock itself: the same process may take it again.
    lock: u64,
}

impl State {
    fn is_alive(&self, process: u64) -> bool {
        process >= self.first_alive && !self.killed.contains(&process)
    }

    fn new_inode(&mut self) -> Arc<Inode> {
        self.inodes += 1;
        Inode::new(self.inodes, Contents::default())
    }
}

impl fmt::Debug for MemoryDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryDisk").field("writes", &self.writes()).finish_non_exhaustive()
    }
}

impl Default for MemoryDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::with_state(State {
            names: Names::new(),
            writes: 0,
            inodes: 0,
            uniques: 0,
            processes: 0,
            first_alive: 0,
            killed: BTreeSet::new(),
            locks: BTreeMap::new(),
            taken: 0,
        })
    }

    fn with_state(state: State) -> Self {
        Self { state: Arc::new(Mutex::new(state)), hook: Arc::default() }
    }

    /// The disk as a new process sees it.
    pub fn process(&self) -> MemoryFiles {
        let mut state = self.state();
        state.processes += 1;
        MemoryFiles::new(self.clone(), state.processes - 1)
    }

    /// Asks `hook` before every operation that changes the disk. It may use the disk, but not set a hook.
    pub fn on_write(&self, hook: Hook) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = Some(hook);
    }

    /// Asks no hook any more.
    pub fn heal(&self) {
        *self.hook.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// How many operations there have been that change the disk, or would have if they had not failed.
    pub fn writes(&self) -> u64 {
        self.state().writes
    }

    /// The power goes: all processes are dead, and what was not durable may be lost. `choose` is asked with a number of
    /// choices and answers with one of them, counted from 0: the first is the worst, the last the best. It must not
    /// use the disk.
    pub fn power_loss(&self, choose: &mut dyn FnMut(usize) -> usize) {
        let mut state = self.state();
        state.first_alive = state.processes;
        state.killed.clear();
        state.locks.clear();
        let mut chance = Chance::new(choose);
        state.names.lose_power(&mut chance);
        let files = state.names.files();
        let files: BTreeMap<u64, &Arc<Inode>> = files.values().map(|inode| (inode.number, inode)).collect();
        for inode in files.values() {
            inode.contents().lose_power(&mut chance);
        }
    }

    /// Another disk that is as this one is now, with what is not durable. No process has it open, and no hook is asked.
    pub fn snapshot(&self) -> Self {
        let state = self.state();
        Self::with_state(State {
            names: state.names.deep_copy(),
            first_alive: state.processes,
            killed: BTreeSet::new(),
            locks: BTreeMap::new(),
            ..*state
        })
    }

    /// All files as processes see them, by their paths from the root.
    pub fn dump(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let files = self.state().names.files();
        files.into_iter().map(|(path, inode)| (path, inode.contents().bytes().to_vec())).collect()
    }

    /// All files as they would be if the power went now and everything was lost that can be.
    pub fn durable(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let disk = self.snapshot();
        disk.power_loss(&mut |_| 0);
        disk.dump()
    }

    /// One file as processes see it.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let inode = self.state().names.file(path.as_ref())?;
        Ok(inode.contents().bytes().to_vec())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn living(&self, process: u64) -> io::Result<MutexGuard<'_, State>> {
        let state = self.state();
        if state.is_alive(process) { Ok(state) } else { Err(dead()) }
    }

    /// Does what the hook leaves of an operation. `act` is given how many bytes to write.
    fn mutate<T>(
        &self,
        process: u64,
        (kind, path, len): (OperationKind, &Path, usize),
        act: impl FnOnce(&mut State, usize) -> io::Result<T>,
    ) -> io::Result<T> {
        let number = {
            let mut state = self.living(process)?;
            state.writes += 1;
            state.writes
        };
        let verdict = match self.hook.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(hook) => hook(&Operation { number, kind, path, len }),
            None => Verdict::Go,
        };
        let mut state = self.living(process)?;
        let writes = matches!(kind, OperationKind::Append | OperationKind::Pad);
        let part = |bytes: usize| writes.then_some(bytes.min(len));
        let (done, error) = match verdict {
            Verdict::Go => return act(&mut state, len),
            Verdict::Fail(io::ErrorKind::StorageFull) => (part(len / 2), Some(io::ErrorKind::StorageFull)),
            Verdict::Fail(error) => (None, Some(error)),
            Verdict::DieBefore => (None, None),
            Verdict::DieAfter => (Some(len), None),
            Verdict::Tear(bytes) => (part(bytes), None),
        };
        let unseen = done.map(|bytes| act(&mut state, bytes));
        if error.is_none() {
            state.killed.insert(process);
        }
        // Dropping what was made may need the disk, as a lock does.
        drop(state);
        drop(unseen);
        Err(error.map_or_else(dead, io::Error::from))
    }
}

fn dead() -> io::Error {
    io::Error::other("the process is dead")
}
