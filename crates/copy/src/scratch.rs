//! Scratch folders: made for one copy, and removed with all that is in them when it ends.
//!
//! Open handles are used for everything, so that a link that takes a folder's place leads nowhere.

use crate::CopyError;
use crate::removal;
use crate::storage::local::LocalFolder;
use linerate_sys::folder::{Folder, HeldFolder};
use linerate_units::ByteCount;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Beginning of the names of scratch folders.
const PREFIX: &str = "linerate-copy-";
/// A folder of a copy that is this old is held, if its copy still runs.
const SETTLED: Duration = Duration::from_secs(60);
/// Names that are tried before it is given up; each is one of 2^64.
const ATTEMPTS: usize = 8;

/// A folder that is removed with all that is in it.
pub(crate) struct Scratch {
    pub(crate) storage: LocalFolder,
    home: Folder,
    name: Vec<u8>,
    /// Path, for messages.
    path: PathBuf,
    /// The folder, which shows that its copy still runs. `None` once it is removed.
    held: Option<HeldFolder>,
}

impl Scratch {
    /// Makes one with room for `bytes` in the folder at `home`, which the agent's owner named.
    pub(crate) fn new(home: &Path, bytes: ByteCount) -> Result<Self, CopyError> {
        let opened = Folder::open(home).map_err(CopyError::at("open", home))?;
        let free = ByteCount::new(opened.free_bytes().map_err(CopyError::at("statvfs", home))?);
        if free < bytes {
            return Err(CopyError::NoRoom { path: home.display().to_string(), needed: bytes, free });
        }
        sweep(&opened);
        let (name, held) = make(&opened).map_err(CopyError::at("mkdir", home))?;
        let path = home.join(&name);
        let storage = LocalFolder::new(held.folder().map_err(CopyError::at("open", &path))?);
        Ok(Self { storage, home: opened, name: name.into_bytes(), path, held: Some(held) })
    }

    /// Removes the folder. Returns what remains and why, or `None` if all is gone.
    pub(crate) fn remove(mut self) -> Option<String> {
        self.clear().err().map(|error| format!("the folder {}: {error}", self.path.display()))
    }

    fn clear(&mut self) -> io::Result<()> {
        let Some(held) = self.held.take() else { return Ok(()) };
        removal::empty(self.storage.root())?;
        held.remove(&self.home, &self.name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The copy has failed already, and its error is reported. The next copy sweeps the remains.
        let _ = self.clear();
    }
}

/// A new folder in `home`: its name and the folder itself.
fn make(home: &Folder) -> io::Result<(String, HeldFolder)> {
    for attempt in 0..ATTEMPTS {
        let name = format!("{PREFIX}{:016x}", RandomState::new().hash_one(attempt));
        match home.make_held(name.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return Ok((name, made?)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Removes folders of copies with a killed agent: nobody holds them any more. What cannot be removed now is tried
/// again by the next copy.
fn sweep(home: &Folder) {
    let Ok(found) = home.to_list().and_then(|home| home.list()) else { return };
    for (name, _) in found.flatten().filter(|(name, _)| name.starts_with(PREFIX.as_bytes())) {
        let Ok(Some(held)) = home.hold_abandoned(&name, SETTLED) else { continue };
        if held.folder().is_ok_and(|folder| removal::empty(&folder).is_ok()) {
            let _ = held.remove(home, &name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Storage as _;
    use std::fs;

    #[test]
    fn a_folder_that_a_killed_copy_left_is_swept_and_no_other() {
        let home = tempfile::tempdir().expect("a folder");
        let old = std::time::SystemTime::now() - SETTLED * 2;
        let made = ["linerate-copy-dead", "linerate-copy-new", "others"].map(|name| {
            let path = home.path().join(name);
            fs::create_dir_all(path.join("below")).expect("made");
            path
        });
        let old = old.duration_since(std::time::SystemTime::UNIX_EPOCH).expect("after 1970").as_nanos() as i64;
        for name in [&b"linerate-copy-dead"[..], b"others"] {
            Folder::open(home.path()).and_then(|home| home.open_folder(name)?.settle(0o755, old)).expect("set");
        }
        let live = Scratch::new(home.path(), ByteCount::new(1)).expect("a folder");
        let _other = Scratch::new(home.path(), ByteCount::new(1)).expect("a folder");
        assert_eq!(made.map(|path| path.exists()), [false, true, true]);
        assert!(live.storage.another().list(b"").is_ok());
    }

    #[test]
    fn scratch_is_gone_at_the_end_and_never_larger_than_the_disk() {
        let home = tempfile::tempdir().expect("a folder");
        let inside = || fs::read_dir(home.path()).expect("listed").next().expect("one").expect("read").path();
        let [removed, dropped] = [(); 2].map(|()| {
            let scratch = Scratch::new(home.path(), ByteCount::new(1)).expect("a folder");
            let inside = inside();
            fs::create_dir_all(inside.join("a/b")).expect("made");
            fs::write(inside.join("a/b/file"), "x").expect("written");
            let a = Folder::open(&inside).and_then(|folder| folder.open_folder(b"a")).expect("opened");
            a.open_folder(b"b").and_then(|b| b.settle(0o000, 0)).expect("set");
            a.settle(0o500, 0).expect("set");
            (scratch, inside)
        });
        assert_eq!(removed.0.remove(), None);
        assert!(!removed.1.exists());
        drop(dropped.0);
        assert!(!dropped.1.exists());
        assert!(matches!(Scratch::new(home.path(), ByteCount::new(1 << 60)), Err(CopyError::NoRoom { .. })));
    }

    #[test]
    fn a_scratch_folder_that_was_moved_is_emptied_and_told() {
        let home = tempfile::tempdir().expect("a folder");
        let scratch = Scratch::new(home.path(), ByteCount::new(1)).expect("a folder");
        let made = scratch.path.clone();
        let moved = home.path().join("moved");
        if fs::rename(&made, &moved).is_err() {
            // This system does not move a folder that is held.
            return assert_eq!(scratch.remove(), None);
        }
        fs::write(moved.join("file"), "x").expect("written");
        fs::create_dir(&made).expect("another");
        let remains = scratch.remove().expect("it stays");
        assert!(remains.contains("moved"), "{remains}");
        assert_eq!(fs::read_dir(&moved).expect("listed").count(), 0);
    }
}
