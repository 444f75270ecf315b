//! Folders by their open handles, name by name and never through a symbolic link: no path is too long, and nothing
//! leads out of the root.

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, mkdirat};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

/// The folders on the way to the last one that was asked for, open.
pub(crate) struct Folders {
    root: Arc<OwnedFd>,
    way: Vec<(Vec<u8>, Arc<OwnedFd>)>,
    /// Make those that are missing.
    make: bool,
}

/// Flags for a folder that is only passed through.
const PASS: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_NOFOLLOW).union(OFlag::O_CLOEXEC);

impl Folders {
    /// To be read.
    pub(crate) fn existing(root: Arc<OwnedFd>) -> Self {
        Self { root, way: Vec::new(), make: false }
    }

    /// To be written: folders on the way are made.
    pub(crate) fn made(root: Arc<OwnedFd>) -> Self {
        Self { root, way: Vec::new(), make: true }
    }

    /// The folder at `path`; the root for an empty one.
    pub(crate) fn at(&mut self, path: &[u8]) -> io::Result<Arc<OwnedFd>> {
        if path.is_empty() {
            return Ok(Arc::clone(&self.root));
        }
        let mut depth = 0;
        for name in path.split(|byte| *byte == b'/') {
            if self.way.get(depth).is_none_or(|(known, _)| known != name) {
                self.way.truncate(depth);
                let above = self.way.last().map_or(&self.root, |(_, folder)| folder);
                let folder = Arc::new(self.step(above, name)?);
                self.way.push((name.to_vec(), folder));
            }
            depth += 1;
        }
        self.way.truncate(depth);
        Ok(self.way.last().map_or_else(|| Arc::clone(&self.root), |(_, folder)| Arc::clone(folder)))
    }

    /// The folder that `path` is in, and its last name.
    pub(crate) fn parent<'p>(&mut self, path: &'p [u8]) -> io::Result<(Arc<OwnedFd>, &'p OsStr)> {
        let cut = path.iter().rposition(|byte| *byte == b'/');
        let (above, name) = cut.map_or((&[][..], path), |cut| (&path[..cut], &path[cut + 1..]));
        Ok((self.at(above)?, OsStr::from_bytes(name)))
    }

    fn step(&self, above: &OwnedFd, name: &[u8]) -> io::Result<OwnedFd> {
        let name = OsStr::from_bytes(name);
        match openat(above, name, PASS, Mode::empty()) {
            Err(nix::Error::ENOENT) if self.make => {
                match mkdirat(above, name, Mode::S_IRWXU) {
                    // Another lane may have made it.
                    Ok(()) | Err(nix::Error::EEXIST) => Ok(openat(above, name, PASS, Mode::empty())?),
                    Err(error) => Err(error.into()),
                }
            }
            opened => Ok(opened?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn root(folder: &tempfile::TempDir) -> Arc<OwnedFd> {
        Arc::new(fs::File::open(folder.path()).expect("the folder opens").into())
    }

    #[test]
    fn no_link_leads_out() {
        let outside = tempfile::tempdir().expect("a folder");
        let inside = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink(outside.path(), inside.path().join("way")).expect("a link");
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
        // Deeper than any path that the system takes in one call.
        let deep = vec!["folder-of-some-length"; 250].join("/");
        made.at(deep.as_bytes()).expect("made");
        let (_, name) = made.parent(b"folder-of-some-length/x").expect("there");
        assert_eq!((name, made.way.len()), (OsStr::new("x"), 1));
    }
}
