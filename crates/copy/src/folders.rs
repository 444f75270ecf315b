//! Folders by their open handles, name by name and never through a symbolic link: no path is too long, and nothing
//! leads out of the root.

use crate::tree_path::split;
use linerate_sys::folder::Folder;
use std::io;

/// Permissions of a folder that is being filled.
const OWN: u32 = 0o700;

/// The folders on the way to the last one that was asked for, open.
pub(crate) struct Folders {
    root: Folder,
    way: Vec<(Vec<u8>, Folder)>,
    /// Make those that are missing.
    make: bool,
}

impl Folders {
    /// To be read.
    pub(crate) fn existing(root: Folder) -> Self {
        Self { root, way: Vec::new(), make: false }
    }

    /// To be written: folders on the way are made.
    pub(crate) fn made(root: Folder) -> Self {
        Self { root, way: Vec::new(), make: true }
    }

    /// The folder at `path`; the root for an empty one.
    pub(crate) fn at(&mut self, path: &[u8]) -> io::Result<Folder> {
        if path.is_empty() {
            return Ok(self.root.clone());
        }
        let mut depth = 0;
        for name in path.split(|byte| *byte == b'/') {
            if self.way.get(depth).is_none_or(|(known, _)| known != name) {
                self.way.truncate(depth);
                let above = self.way.last().map_or(&self.root, |(_, folder)| folder);
                let folder = self.step(above, name)?;
                self.way.push((name.to_vec(), folder));
            }
            depth += 1;
        }
        self.way.truncate(depth);
        Ok(self.way.last().map_or(&self.root, |(_, folder)| folder).clone())
    }

    /// The folder that `path` is in, and its last name.
    pub(crate) fn parent<'p>(&mut self, path: &'p [u8]) -> io::Result<(Folder, &'p [u8])> {
        let (above, name) = split(path);
        Ok((self.at(above)?, name))
    }

    fn step(&self, above: &Folder, name: &[u8]) -> io::Result<Folder> {
        match above.enter(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.make => {
                match above.make_folder(name, OWN) {
                    // Another lane may have made it.
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                    _ => above.enter(name),
                }
            }
            entered => entered,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn root(folder: &tempfile::TempDir) -> Folder {
        Folder::open(folder.path()).expect("the folder opens")
    }

    #[test]
    fn no_link_leads_out() {
        let outside = tempfile::tempdir().expect("a folder");
        let inside = tempfile::tempdir().expect("a folder");
        let target = outside.path().as_os_str().as_encoded_bytes();
        if root(&inside).make_link(b"temporary", b"way", target, 0).is_err() {
            // This system has no links.
            return;
        }
        for mut folders in [Folders::existing(root(&inside)), Folders::made(root(&inside))] {
            assert!(folders.at(b"way").is_err());
            assert!(folders.at(b"way/in").is_err());
        }
        assert_eq!(fs::read_dir(outside.path()).expect("listed").count(), 0);
    }

    #[test]
    fn what_is_missing_is_made_only_where_that_is_asked() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(Folders::existing(root(&folder)).at(b"a/b").is_err());
        let mut made = Folders::made(root(&folder));
        let deep = vec!["folder-of-some-length"; 30].join("/");
        made.at(deep.as_bytes()).expect("made");
        let (_, name) = made.parent(b"folder-of-some-length/x").expect("there");
        assert_eq!((name, made.way.len()), (&b"x"[..], 1));
    }
}
