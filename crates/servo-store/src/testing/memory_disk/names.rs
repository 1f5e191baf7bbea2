//! Directories and the names in them: as every process sees them, and what of them is on the disk.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::chance::Chance;
use super::contents::Contents;

/// A file, whatever its names.
#[derive(Debug)]
pub(super) struct Inode {
    pub(super) number: u64,
    contents: Mutex<Contents>,
}

impl Inode {
    pub(super) fn new(number: u64, contents: Contents) -> Arc<Self> {
        Arc::new(Self { number, contents: Mutex::new(contents) })
    }

    pub(super) fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A directory, by its place in the list of all.
pub(super) type DirNumber = usize;

/// The target of a name.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Dir(DirNumber),
    File(Arc<Inode>),
}

#[derive(Debug, Clone, Default)]
struct Dir {
    entries: BTreeMap<OsString, Node>,
    on_disk: BTreeMap<OsString, Node>,
}

/// A name in a directory.
type Slot = (DirNumber, OsString);

/// The effect of one operation on names: it survives a power loss entirely or not at all.
#[derive(Debug, Clone)]
struct Change(Vec<(Slot, Option<Node>)>);

impl Change {
    fn is_in(&self, dir: DirNumber) -> bool {
        self.0.iter().any(|((changed, _), _)| *changed == dir)
    }
}

/// All directories. The first is the root.
#[derive(Debug, Clone)]
pub(super) struct Names {
    dirs: Vec<Dir>,
    /// Changes that are not durable yet.
    changes: Vec<Change>,
}

impl Names {
    pub(super) fn new() -> Self {
        Self { dirs: vec![Dir::default()], changes: Vec::new() }
    }

    pub(super) fn lookup(&self, path: &Path) -> io::Result<Node> {
        let mut node = &Node::Dir(0);
        for component in path.components() {
            let name = match component {
                Component::Normal(name) => name,
                Component::RootDir | Component::CurDir => continue,
                Component::ParentDir | Component::Prefix(_) => {
                    return Err(io::ErrorKind::Unsupported.into());
                }
            };
            let Node::Dir(dir) = node else { return Err(io::ErrorKind::NotADirectory.into()) };
            node = self.dirs[*dir].entries.get(name).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(node.clone())
    }

    pub(super) fn file(&self, path: &Path) -> io::Result<Arc<Inode>> {
        match self.lookup(path)? {
            Node::File(inode) => Ok(inode),
            Node::Dir(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    pub(super) fn dir(&self, path: &Path) -> io::Result<DirNumber> {
        match self.lookup(path)? {
            Node::Dir(dir) => Ok(dir),
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// The directory of a name, which need not exist itself.
    pub(super) fn slot<'a>(&self, path: &'a Path) -> io::Result<(DirNumber, &'a OsStr)> {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        Ok((self.dir(dir)?, name))
    }

    pub(super) fn get(&self, (dir, name): (DirNumber, &OsStr)) -> Option<&Node> {
        self.dirs[dir].entries.get(name)
    }

    /// The entries of a directory, sorted by name.
    pub(super) fn entries(&self, dir: DirNumber) -> &BTreeMap<OsString, Node> {
        &self.dirs[dir].entries
    }

    /// Makes a directory that no name stands for yet.
    pub(super) fn new_dir(&mut self) -> Node {
        self.dirs.push(Dir::default());
        Node::Dir(self.dirs.len() - 1)
    }

    /// Lets names stand for something else, or for nothing, all at once.
    pub(super) fn change<const N: usize>(&mut self, slots: [((DirNumber, &OsStr), Option<Node>); N]) {
        let slots = slots.map(|((dir, name), node)| ((dir, name.to_owned()), node)).to_vec();
        for ((dir, name), node) in &slots {
            set(&mut self.dirs[*dir].entries, name, node.as_ref());
        }
        self.changes.push(Change(slots));
    }

    /// Makes the names of a directory durable.
    pub(super) fn sync(&mut self, dir: DirNumber) {
        let durable: Vec<bool> = self.changes.iter().map(|change| change.is_in(dir)).collect();
        self.write(durable);
    }

    /// Makes all names durable.
    pub(super) fn sync_all(&mut self) {
        self.write(vec![true; self.changes.len()]);
    }

    /// Writes changes to the disk, and those of the same names that came before them.
    fn write(&mut self, mut durable: Vec<bool>) {
        let mut needed: BTreeSet<&Slot> = BTreeSet::new();
        for (change, durable) in self.changes.iter().zip(&mut durable).rev() {
            *durable |= change.0.iter().any(|(slot, _)| needed.contains(slot));
            if *durable {
                needed.extend(change.0.iter().map(|(slot, _)| slot));
            }
        }
        for (change, durable) in mem::take(&mut self.changes).into_iter().zip(durable) {
            if durable {
                for ((dir, name), node) in &change.0 {
                    set(&mut self.dirs[*dir].on_disk, name, node.as_ref());
                }
            } else {
                self.changes.push(change);
            }
        }
    }

    /// The power is gone. Changes survive in the order they were made, or each by itself.
    pub(super) fn lose_power(&mut self, chance: &mut Chance<'_>) {
        let all = self.changes.len();
        let durable = if all == 0 || chance.good() {
            let survive = chance.up_to(all);
            (0..all).map(|number| number < survive).collect()
        } else {
            (0..all).map(|_| chance.good()).collect()
        };
        self.write(durable);
        self.changes.clear();
        for dir in &mut self.dirs {
            dir.entries = dir.on_disk.clone();
        }
    }

    /// Every file that has a name, by its names.
    pub(super) fn files(&self) -> BTreeMap<PathBuf, Arc<Inode>> {
        let mut found = BTreeMap::new();
        let mut waiting = vec![(PathBuf::from("/"), 0)];
        while let Some((path, dir)) = waiting.pop() {
            for (name, node) in &self.dirs[dir].entries {
                match node {
                    Node::Dir(dir) => waiting.push((path.join(name), *dir)),
                    Node::File(inode) => drop(found.insert(path.join(name), Arc::clone(inode))),
                }
            }
        }
        found
    }

    /// The same names for copies of all files.
    pub(super) fn deep_copy(&self) -> Self {
        let mut copies: BTreeMap<u64, Arc<Inode>> = BTreeMap::new();
        let mut copy = |node: &mut Node| {
            if let Node::File(inode) = node {
                let fresh = || Inode::new(inode.number, inode.contents().clone());
                *inode = Arc::clone(copies.entry(inode.number).or_insert_with(fresh));
            }
        };
        let mut names = self.clone();
        for dir in &mut names.dirs {
            dir.entries.values_mut().chain(dir.on_disk.values_mut()).for_each(&mut copy);
        }
        for change in &mut names.changes {
            change.0.iter_mut().filter_map(|(_, node)| node.as_mut()).for_each(&mut copy);
        }
        names
    }
}

fn set(entries: &mut BTreeMap<OsString, Node>, name: &OsStr, node: Option<&Node>) {
    match node {
        Some(node) => drop(entries.insert(name.to_owned(), node.clone())),
        None => drop(entries.remove(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names in the root after every way in which power can be lost.
    fn outcomes(names: &Names) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        super::super::chance::every(|chance| {
            let mut names = names.clone();
            names.lose_power(chance);
            let listed =
                names.files().into_iter().map(|(path, inode)| format!("{}={}", path.display(), inode.number));
            found.insert(listed.collect::<Vec<_>>().join(" "));
        });
        found
    }

    fn texts<const N: usize>(texts: [&str; N]) -> BTreeSet<String> {
        texts.into_iter().map(str::to_owned).collect()
    }

    fn file(number: u64) -> Option<Node> {
        Some(Node::File(Inode::new(number, Contents::default())))
    }

    fn name(name: &str) -> (DirNumber, &OsStr) {
        (0, OsStr::new(name))
    }

    #[test]
    fn a_name_is_durable_when_its_directory_is_synced() {
        let mut names = Names::new();
        names.change([(name("a"), file(1))]);
        assert_eq!(outcomes(&names), texts(["", "/a=1"]));
        names.sync(0);
        assert_eq!(outcomes(&names), texts(["/a=1"]));
        names.change([(name("a"), None)]);
        assert_eq!(outcomes(&names), texts(["", "/a=1"]));
    }

    #[test]
    fn a_rename_is_all_or_nothing() {
        let mut names = Names::new();
        names.change([(name("old"), file(1)), (name("new"), file(2))]);
        names.sync(0);
        names.change([(name("old"), None), (name("new"), file(1))]);
        assert_eq!(outcomes(&names), texts(["/new=2 /old=1", "/new=1"]));
        names.change([(name("old"), file(3))]);
        assert_eq!(
            outcomes(&names),
            texts(["/new=2 /old=1", "/new=1", "/new=1 /old=3"]),
            "what took the old name does not survive without the rename"
        );
    }

    #[test]
    fn names_that_have_nothing_to_do_with_each_other_survive_in_any_order() {
        let mut names = Names::new();
        names.change([(name("a"), file(1))]);
        names.change([(name("b"), file(2))]);
        assert_eq!(outcomes(&names), texts(["", "/a=1", "/b=2", "/a=1 /b=2"]));
    }

    #[test]
    fn what_is_in_a_directory_is_lost_with_its_name() {
        let mut names = Names::new();
        let node = names.new_dir();
        names.change([(name("d"), Some(node))]);
        names.change([((1, OsStr::new("a")), file(1))]);
        names.sync(1);
        assert_eq!(outcomes(&names), texts(["", "/d/a=1"]));
        names.sync(0);
        assert_eq!(outcomes(&names), texts(["/d/a=1"]));
    }

    #[test]
    fn a_move_between_directories_is_durable_when_either_is_synced() {
        let mut names = Names::new();
        let node = names.new_dir();
        names.change([(name("d"), Some(node))]);
        names.change([(name("a"), file(1))]);
        names.sync(0);
        let inner = (1, OsStr::new("a"));
        names.change([(inner, file(2))]);
        names.change([(name("a"), None), (inner, file(1))]);
        for dir in [0, 1] {
            let mut names = names.clone();
            names.sync(dir);
            assert_eq!(outcomes(&names), texts(["/d/a=1"]), "directory {dir}");
        }
    }
}
