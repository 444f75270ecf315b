//! The files and folders that the kernel knows of, by the numbers it has for them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The number of the folder that is mounted.
const TOP: u64 = 1;

/// A name in a folder.
type Entry = (u64, OsString);

/// Node numbers and their paths. A number is kept until the kernel has forgotten it as often as it was sent.
pub(super) struct Nodes {
    /// Real path of the top.
    top: PathBuf,
    entries: BTreeMap<u64, (Entry, u64)>,
    numbers: BTreeMap<Entry, u64>,
    next: u64,
}

impl Nodes {
    pub(super) fn new(top: PathBuf) -> Self {
        Self { top, entries: BTreeMap::new(), numbers: BTreeMap::new(), next: TOP + 1 }
    }

    /// Returns the real path of `number`, or `None` if the kernel never received that number.
    pub(super) fn path(&self, number: u64) -> Option<PathBuf> {
        let mut names: Vec<&Path> = Vec::new();
        let mut at = number;
        while at != TOP {
            let ((folder, name), _) = self.entries.get(&at)?;
            names.push(Path::new(name));
            at = *folder;
        }
        Some(names.into_iter().rev().fold(self.top.clone(), |path, name| path.join(name)))
    }

    /// Returns the real path of `name` in `folder`.
    pub(super) fn path_of(&self, folder: u64, name: &OsStr) -> Option<PathBuf> {
        self.path(folder).map(|folder| folder.join(name))
    }

    /// Returns the number of `name` in `folder`, and counts that it is sent to the kernel.
    pub(super) fn tell(&mut self, folder: u64, name: &OsStr) -> u64 {
        let entry = (folder, name.to_owned());
        let number = *self.numbers.entry(entry.clone()).or_insert(self.next);
        if number == self.next {
            self.next += 1;
        }
        self.entries.entry(number).or_insert((entry, 0)).1 += 1;
        number
    }

    /// Notes that the kernel has forgotten `number` as often as `times`.
    pub(super) fn forget(&mut self, number: u64, times: u64) {
        let Some((entry, told)) = self.entries.get_mut(&number) else { return };
        *told = told.saturating_sub(times);
        if *told == 0 {
            let entry = entry.clone();
            self.entries.remove(&number);
            if self.numbers.get(&entry) == Some(&number) {
                self.numbers.remove(&entry);
            }
        }
    }

    /// `name` is gone from `folder`; another that comes there is another.
    pub(super) fn remove(&mut self, folder: u64, name: &OsStr) {
        self.numbers.remove(&(folder, name.to_owned()));
    }

    /// Moves the node `from` to `to`.
    pub(super) fn rename(&mut self, from: (u64, &OsStr), to: (u64, &OsStr)) {
        let to = (to.0, to.1.to_owned());
        self.numbers.remove(&to);
        if let Some(number) = self.numbers.remove(&(from.0, from.1.to_owned())) {
            self.numbers.insert(to.clone(), number);
            if let Some((entry, _)) = self.entries.get_mut(&number) {
                *entry = to;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> (Nodes, u64, u64) {
        let mut nodes = Nodes::new(PathBuf::from("/real"));
        let folder = nodes.tell(TOP, OsStr::new("d"));
        let file = nodes.tell(folder, OsStr::new("f"));
        (nodes, folder, file)
    }

    fn at(nodes: &Nodes, number: u64) -> Option<String> {
        nodes.path(number).map(|path| path.display().to_string())
    }

    #[test]
    fn what_is_in_a_folder_moves_with_it() {
        let (mut nodes, folder, file) = nodes();
        assert_eq!(at(&nodes, file).as_deref(), Some("/real/d/f"));
        nodes.rename((TOP, OsStr::new("d")), (TOP, OsStr::new("e")));
        assert_eq!(at(&nodes, file).as_deref(), Some("/real/e/f"));
        assert_eq!(nodes.tell(TOP, OsStr::new("e")), folder);
        assert_eq!(at(&nodes, TOP).as_deref(), Some("/real"));
        assert_eq!(at(&nodes, 99), None);
    }

    #[test]
    fn a_name_that_is_used_again_is_another_file() {
        let (mut nodes, folder, file) = nodes();
        nodes.remove(folder, OsStr::new("f"));
        let other = nodes.tell(folder, OsStr::new("f"));
        assert_ne!(other, file);
        nodes.forget(file, 1);
        assert_eq!(nodes.tell(folder, OsStr::new("f")), other, "the other one is not forgotten with it");
        nodes.forget(other, 1);
        assert!(at(&nodes, other).is_some(), "it was told twice");
        nodes.forget(other, 1);
        assert_eq!(at(&nodes, other), None);
        nodes.rename((TOP, OsStr::new("d")), (TOP, OsStr::new("x")));
        assert_eq!(nodes.path(folder), Some(PathBuf::from("/real/x")));
    }
}
