//! Folders of this host that copies may use, and scratch folders that are removed when a copy ends.

use crate::CopyError;
use crate::destination::root::Root;
use crate::entry::Kind;
use crate::folders::Folders;
use crate::source::walk::Walk;
use crate::storage::Storage;
use crate::storage::local::{LocalFolder, open_untouched};
use linerate_model::CopyExisting;
use linerate_units::ByteCount;
use nix::fcntl::OFlag;
use nix::sys::statvfs::fstatvfs;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// What a copy's own folders begin with.
const SCRATCH: &str = "linerate-copy-";
/// A folder of a copy that is this old has its lock, if it is to have one.
const SETTLED: Duration = Duration::from_secs(60);

/// Folders below which copies may read and write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedFolders {
    /// As the agent's owner named them; empty allows no copy from or to files.
    pub allowed: Vec<PathBuf>,
    /// Where copies make scratch folders; `None` takes the first allowed folder.
    pub scratch: Option<PathBuf>,
}

impl AllowedFolders {
    /// Opens a folder to be read. Returns it with its real path.
    pub(crate) fn source(&self, path: &str) -> Result<(LocalFolder, PathBuf), CopyError> {
        let path = absolute(path)?;
        let real = path.canonicalize().map_err(CopyError::at("open", &path))?;
        self.check(&real)?;
        Ok((LocalFolder::new(open(&real)?), real))
    }

    /// Opens a folder to be written and makes it if it is missing; its parent must exist. Returns it with its real path.
    pub(crate) fn destination(&self, path: &str) -> Result<(LocalFolder, PathBuf), CopyError> {
        let path = absolute(path)?;
        let real = real(&path).map_err(CopyError::at("open", &path))?;
        self.check(&real)?;
        match fs::create_dir(&real) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(CopyError::at("mkdir", &real)(error)),
            _ => Ok((LocalFolder::new(open(&real)?), real)),
        }
    }

    /// Makes a scratch folder with room for `bytes`.
    pub(crate) fn scratch(&self, bytes: ByteCount) -> Result<Scratch, CopyError> {
        let home = self.scratch.as_ref().or(self.allowed.first()).ok_or(CopyError::NoFolder)?;
        let home = home.canonicalize().map_err(CopyError::at("open", home))?;
        let free =
            File::open(&home).and_then(|folder| Ok(fstatvfs(&folder)?)).map_err(CopyError::at("statvfs", &home))?;
        let free = ByteCount::new(free.blocks_available().saturating_mul(free.fragment_size()));
        if free < bytes {
            return Err(CopyError::NoRoom { path: home.display().to_string(), needed: bytes, free });
        }
        sweep(&home);
        let made = tempfile::Builder::new().prefix(SCRATCH).tempdir_in(&home);
        let folder = made.map_err(CopyError::at("mkdir", &home))?;
        let lock = File::open(folder.path()).map_err(CopyError::at("open", folder.path()))?;
        lock.lock().map_err(CopyError::at("flock", folder.path()))?;
        let storage = LocalFolder::new(open(folder.path())?);
        Ok(Scratch { storage, folder: Writable(folder), _lock: lock })
    }

    fn check(&self, real: &Path) -> Result<(), CopyError> {
        let below = |allowed: &PathBuf| self::real(allowed).is_ok_and(|allowed| real.starts_with(allowed));
        if self.allowed.is_empty() {
            return Err(CopyError::NoFolder);
        }
        if self.allowed.iter().any(below) {
            return Ok(());
        }
        let allowed: Vec<String> = self.allowed.iter().map(|allowed| allowed.display().to_string()).collect();
        Err(CopyError::NotAllowed { path: real.display().to_string(), allowed: allowed.join(", ") })
    }
}

/// A folder that is removed with all that is in it.
pub(crate) struct Scratch {
    pub(crate) storage: LocalFolder,
    folder: Writable,
    /// Tells that its copy still goes on.
    _lock: File,
}

impl Scratch {
    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.0.path()
    }

    /// Removes it. Returns what stays behind and why; none if all is gone.
    pub(crate) fn remove(self) -> Option<String> {
        make_writable(self.path());
        let removed = fs::remove_dir_all(self.path());
        removed.err().map(|error| format!("the folder {}: {error}", self.path().display()))
    }
}

/// Removes folders of copies whose agent was killed: nobody holds their locks any more.
fn sweep(home: &Path) {
    let old = |about: &fs::Metadata| {
        about.uid() == nix::unistd::geteuid().as_raw()
            && about.modified().is_ok_and(|made| made.elapsed().is_ok_and(|age| age > SETTLED))
    };
    for entry in fs::read_dir(home).into_iter().flatten().flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(SCRATCH);
        if !ours || !entry.metadata().is_ok_and(|about| about.is_dir() && old(&about)) {
            continue;
        }
        if File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok()) {
            make_writable(&entry.path());
            // What cannot be removed now is tried again by the next copy.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A path without links; its last name need not be there yet.
fn real(path: &Path) -> io::Result<PathBuf> {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Err(error), Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotFound => {
            Ok(parent.canonicalize()?.join(name))
        }
        (found, ..) => found,
    }
}

/// Made removable before it is removed.
struct Writable(TempDir);

impl Drop for Writable {
    fn drop(&mut self) {
        // Only its owner's own copy of read-only folders needs it, and who may not cannot do more.
        make_writable(self.0.path());
    }
}

fn make_writable(root: &Path) {
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let _ = fs::set_permissions(&folder, Permissions::from_mode(0o700));
        let below = fs::read_dir(&folder).into_iter().flatten().flatten();
        let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.extend(below.map(|entry| entry.path()));
    }
}

/// A folder, reached by no symbolic link since its real path was found.
fn open(real: &Path) -> Result<Arc<OwnedFd>, CopyError> {
    let opened = || -> io::Result<OwnedFd> {
        let top: OwnedFd = File::open("/")?.into();
        let names: Vec<&[u8]> = real
            .components()
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name.as_bytes()),
                _ => None,
            })
            .collect();
        let folder = Folders::existing(Arc::new(top)).at(&names.join(&b"/"[..]))?;
        Ok(open_untouched(&folder, OsStr::new("."), OFlag::O_DIRECTORY)?)
    };
    opened().map(Arc::new).map_err(CopyError::at("open", real))
}

fn absolute(path: &str) -> Result<PathBuf, CopyError> {
    let path = PathBuf::from(path);
    if path.is_absolute() {
        return Ok(path);
    }
    let why = format!("{}: write the folder's path on its host from / on", path.display());
    Err(CopyError::Impossible(why))
}

/// Refuses a destination that holds anything, unless that is wanted.
pub(crate) fn check_empty(folder: &dyn Storage, path: &Path, existing: CopyExisting) -> Result<(), CopyError> {
    let mut walk = Walk::new(folder).map_err(CopyError::at("list", path))?;
    match (existing, walk.next()) {
        (CopyExisting::Refuse, Some(_)) => Err(CopyError::NotEmpty { path: path.display().to_string() }),
        _ => Ok(()),
    }
}

/// Files and bytes below a folder; what cannot be listed is told when it is to be copied.
pub(crate) fn count(folder: &dyn Storage, path: &Path) -> Result<(u64, u64), CopyError> {
    let walk = Walk::new(folder).map_err(CopyError::at("list", path))?;
    let sizes = walk.flatten().filter_map(|entry| match entry.kind {
        Kind::File { size, .. } => Some(size),
        _ => None,
    });
    Ok(sizes.fold((0, 0), |(files, bytes), size| (files + 1, bytes + size)))
}

/// The folder below `root` that gets the tree of one of several sources.
pub(crate) fn below(root: &dyn Storage, name: &str, path: &Path) -> Result<Box<dyn Storage>, CopyError> {
    if !crate::entry::is_inside(name.as_bytes()) || name.contains('/') {
        return Err(CopyError::Impossible(format!("`{name}` cannot be a folder's name")));
    }
    root.below(name).map_err(CopyError::at("open", &path.join(name)))
}

/// A root for a tree, swept of what an earlier copy left.
pub(crate) fn root(
    folder: Box<dyn Storage>,
    path: &Path,
    existing: CopyExisting,
    mark: &str,
) -> Result<Root, CopyError> {
    let root = Root::new(folder, existing, mark.to_owned());
    if existing == CopyExisting::Resume {
        root.sweep().map_err(CopyError::at("remove temporary files from", path))?;
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn allowing(folder: &TempDir) -> AllowedFolders {
        AllowedFolders { allowed: vec![folder.path().to_owned()], scratch: None }
    }

    fn text(path: &Path) -> &str {
        path.to_str().expect("UTF-8")
    }

    #[test]
    fn nothing_outside_is_opened() {
        let (allowed, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let folders = allowing(&allowed);
        symlink(other.path(), allowed.path().join("way")).expect("a link");
        let up = allowed.path().join("..");
        for path in [other.path().to_owned(), allowed.path().join("way"), allowed.path().join("way/new"), up] {
            assert!(matches!(
                folders.source(text(&path)),
                Err(CopyError::NotAllowed { .. } | CopyError::System { .. })
            ));
            assert!(
                matches!(folders.destination(text(&path)), Err(CopyError::NotAllowed { .. })),
                "{}",
                path.display()
            );
        }
        assert!(!other.path().join("new").exists());
        assert!(matches!(folders.source("data"), Err(CopyError::Impossible(_))));
        assert!(matches!(AllowedFolders::default().source("/"), Err(CopyError::NoFolder)));
        assert!(matches!(AllowedFolders::default().scratch(ByteCount::new(1)), Err(CopyError::NoFolder)));
    }

    #[test]
    fn a_folder_that_a_killed_copy_left_is_swept_and_no_other() {
        let home = tempfile::tempdir().expect("a folder");
        let old = std::time::SystemTime::now() - SETTLED * 2;
        let made = ["linerate-copy-dead", "linerate-copy-new", "others"].map(|name| {
            let path = home.path().join(name);
            fs::create_dir_all(path.join("below")).expect("made");
            path
        });
        for path in [&made[0], &made[2]] {
            File::open(path).expect("opened").set_modified(old).expect("set");
        }
        let live = allowing(&home).scratch(ByteCount::new(1)).expect("a folder");
        let _other = allowing(&home).scratch(ByteCount::new(1)).expect("a folder");
        assert_eq!(made.map(|path| path.exists()), [false, true, true]);
        assert!(live.storage.another().list(b"").is_ok());
    }

    #[test]
    fn a_destination_is_made_and_must_be_empty() {
        let allowed = tempfile::tempdir().expect("a folder");
        let path = allowed.path().join("new");
        let (folder, real) = allowing(&allowed).destination(text(&path)).expect("made");
        assert!(check_empty(&folder, &real, CopyExisting::Refuse).is_ok());
        fs::write(path.join("x"), "x").expect("written");
        assert!(matches!(check_empty(&folder, &real, CopyExisting::Refuse), Err(CopyError::NotEmpty { .. })));
        assert!(check_empty(&folder, &real, CopyExisting::Replace).is_ok());
    }

    #[test]
    fn scratch_is_gone_at_the_end_and_never_larger_than_the_disk() {
        let allowed = tempfile::tempdir().expect("a folder");
        let folders = allowing(&allowed);
        let scratch = folders.scratch(ByteCount::new(1)).expect("a folder");
        let inside = fs::read_dir(allowed.path()).expect("listed").next().expect("one").expect("read").path();
        fs::create_dir_all(inside.join("a/b")).expect("made");
        fs::set_permissions(inside.join("a"), Permissions::from_mode(0o500)).expect("set");
        drop(scratch);
        assert!(!inside.exists());
        assert!(matches!(folders.scratch(ByteCount::new(1 << 60)), Err(CopyError::NoRoom { .. })));
    }
}
