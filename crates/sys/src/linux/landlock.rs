//! Landlock: a thread gives up files, for itself and all that it starts (landlock(7)).

use crate::Error;
use landlock::{
    ABI, Access as _, AccessFs, BitFlags, PathBeneath, PathFd, RestrictionStatus, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope,
};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// The newest version whose rights are used: files, devices, signals and abstract sockets.
const NEWEST: ABI = ABI::V6;

/// `LANDLOCK_CREATE_RULESET_VERSION` of linux/landlock.h.
const ASK_VERSION: libc::c_ulong = 1;

/// The version in force in this process; 0 is none.
static IN_FORCE: AtomicU32 = AtomicU32::new(0);

/// What may be done below a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderRights {
    /// Files are read and folders listed.
    Read,
    /// Files, folders and links are also written, made, moved and removed. Nothing is executed, no device made.
    Write,
}

/// Returns the version of Landlock that this kernel has; none if it has none or it is switched off.
pub fn version() -> Option<u32> {
    // SAFETY: with this flag landlock_create_ruleset(2) reads no memory and returns a number.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0_usize, ASK_VERSION)
    };
    u32::try_from(version).ok().filter(|version| *version > 0)
}

/// Returns the version in force in this process; none if no thread of it was restricted.
pub fn in_force() -> Option<u32> {
    Some(IN_FORCE.load(Ordering::Relaxed)).filter(|version| *version > 0)
}

/// Leaves the calling thread, and all that it starts, only these folders with all that is below them. It can execute nothing,
/// and sends signals only to threads restricted with it. Files that are open stay so. Returns the version of Landlock in
/// force; none if this kernel has none, and then nothing is restricted.
///
/// # Errors
/// A folder cannot be opened, or the kernel refuses.
pub fn restrict(folders: &[(&Path, FolderRights)]) -> Result<Option<u32>, Error> {
    let Some(version) = version() else { return Ok(None) };
    let mut opened = Vec::with_capacity(folders.len());
    for (path, rights) in folders {
        let folder = PathFd::new(path).map_err(|error| Error::new("open", path.display().to_string(), other(error)))?;
        opened.push((folder, rights.access()));
    }
    let restricted = || -> Result<RestrictionStatus, RulesetError> {
        // Rights that this kernel does not know are left out (the crate's default).
        let mut rules =
            Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?.scope(Scope::from_all(NEWEST))?.create()?;
        for (folder, access) in opened {
            rules = rules.add_rule(PathBeneath::new(folder, access))?;
        }
        rules.restrict_self()
    };
    let status =
        restricted().map_err(|error| Error::new("landlock_restrict_self", "the calling thread", other(error)))?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Ok(None);
    }
    IN_FORCE.store(version, Ordering::Relaxed);
    Ok(Some(version))
}

impl FolderRights {
    fn access(self) -> BitFlags<AccessFs> {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        match self {
            Self::Read => read,
            Self::Write => {
                let made =
                    AccessFs::MakeReg | AccessFs::MakeDir | AccessFs::MakeSym | AccessFs::MakeFifo | AccessFs::MakeSock;
                let changed = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::Refer;
                read | made | changed | AccessFs::RemoveFile | AccessFs::RemoveDir
            }
        }
    }
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::ErrorKind::PermissionDenied;
    use std::path::PathBuf;

    /// A folder that is removed with all that is in it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("linerate-landlock-{name}-{}", std::process::id()));
            fs::create_dir(&path).expect("made");
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_restricted_thread_reaches_only_its_folders_and_executes_nothing() {
        if version().is_none() {
            // This test's other half is `a_kernel_without_landlock_is_told`, of the agent.
            assert_eq!(restrict(&[]).expect("no error"), None);
            return;
        }
        let (own, read) = (Folder::new("own"), Folder::new("read"));
        fs::write(read.0.join("x"), "x").expect("written");
        std::thread::scope(|scope| {
            let run = || {
                let rules = [(&*own.0, FolderRights::Write), (&*read.0, FolderRights::Read)];
                assert!(restrict(&rules).expect("restricted").is_some());
                let kind = |result: io::Result<()>| result.expect_err("out of reach").kind();
                assert_eq!(kind(fs::read("/etc/passwd").map(drop)), PermissionDenied);
                assert_eq!(kind(fs::write(read.0.join("y"), "y")), PermissionDenied);
                assert_eq!(kind(std::process::Command::new("/bin/true").status().map(drop)), PermissionDenied);
                assert_eq!(fs::read(read.0.join("x")).expect("allowed"), b"x");
                fs::create_dir(own.0.join("a")).expect("allowed");
                fs::write(own.0.join("a/b"), "b").expect("allowed");
                fs::remove_dir_all(own.0.join("a")).expect("allowed");
                // A thread that it starts has the same rights.
                let deep = std::thread::spawn(|| fs::read("/etc/passwd").map(drop)).join().expect("joined");
                assert_eq!(kind(deep), PermissionDenied);
            };
            scope.spawn(run).join().expect("the thread ends well");
        });
        assert_eq!(in_force(), version());
        assert!(fs::read("/etc/passwd").is_ok(), "other threads keep their rights");
    }

    #[test]
    fn a_folder_that_is_missing_is_named() {
        let rules = [(Path::new("/nonesuch"), FolderRights::Read)];
        if version().is_some() {
            assert!(restrict(&rules).expect_err("missing").to_string().contains("/nonesuch"));
        }
    }
}
