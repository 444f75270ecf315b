//! Folders of this host that copies may use.
//!
//! Others may rename folders and make links while a copy begins. So a path is only ever used to find out which names to
//! open: each of them is then opened from the allowed folder's handle, no symbolic link is followed, and what comes
//! after uses that handle.

use crate::CopyError;
use crate::control::Control;
use crate::destination::root::Root;
use crate::entry::{Entry, Kind};
use crate::folders::Folders;
use crate::scratch::Scratch;
use crate::source::walk::Walk;
use crate::storage::Storage;
use crate::storage::local::LocalFolder;
use linerate_model::CopyExisting;
use linerate_sys::folder::Folder;
use linerate_units::ByteCount;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Permissions of a new destination, less the process's mask.
const NEW_FOLDER: u32 = 0o777;

/// Folders below which copies may read and write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedFolders {
    /// Folders that the agent's owner allows; empty allows no copy from or to files.
    pub allowed: Vec<PathBuf>,
    /// Folder for scratch folders of copies; `None` takes the first allowed folder.
    pub scratch: Option<PathBuf>,
}

/// Names below an allowed folder, which is open.
struct FolderPath {
    top: Folder,
    /// `/` between the names; empty for the allowed folder itself.
    below: Vec<u8>,
    /// The whole path, without links: for messages and comparisons.
    path: PathBuf,
}

impl AllowedFolders {
    /// Opens a folder to be read. Returns it with its real path.
    pub(crate) fn source(&self, path: &str) -> Result<(LocalFolder, PathBuf), CopyError> {
        let found = self.locate(path)?;
        let folder = found.open().map_err(CopyError::at("open", &found.path))?;
        Ok((folder, found.path))
    }

    /// Opens a folder to be written and makes it if it is missing; its parent must exist. Returns it with its real
    /// path.
    pub(crate) fn destination(&self, path: &str) -> Result<(LocalFolder, PathBuf), CopyError> {
        let found = self.locate(path)?;
        found.make().map_err(CopyError::at("mkdir", &found.path))?;
        let folder = found.open().map_err(CopyError::at("open", &found.path))?;
        Ok((folder, found.path))
    }

    /// Makes a scratch folder with room for `bytes`.
    pub(crate) fn scratch(&self, bytes: ByteCount) -> Result<Scratch, CopyError> {
        let home = self.scratch.as_ref().or(self.allowed.first()).ok_or(CopyError::NoFolder)?;
        Scratch::new(home, bytes)
    }

    /// Finds the allowed folder that contains `path`.
    fn locate(&self, path: &str) -> Result<FolderPath, CopyError> {
        let path = absolute(path)?;
        if self.allowed.is_empty() {
            return Err(CopyError::NoFolder);
        }
        // A path that cannot be resolved is opened name by name as it is written, if at all: its error must not reveal
        // what exists elsewhere.
        let real = real(&path).unwrap_or_else(|_| path.clone());
        for allowed in &self.allowed {
            let Ok(top) = allowed.canonicalize() else { continue };
            let Some(below) = real.strip_prefix(&top).ok().and_then(names) else { continue };
            let top = Folder::open_without_links(&top).map_err(CopyError::at("open", allowed))?;
            return Ok(FolderPath { top, below, path: real });
        }
        let allowed: Vec<String> = self.allowed.iter().map(|allowed| allowed.display().to_string()).collect();
        Err(CopyError::NotAllowed { path: path.display().to_string(), allowed: allowed.join(", ") })
    }
}

impl FolderPath {
    fn open(&self) -> io::Result<LocalFolder> {
        Ok(LocalFolder::new(Folders::existing(self.top.clone()).at(&self.below)?.to_list()?))
    }

    /// Makes the folder unless something is there.
    fn make(&self) -> io::Result<()> {
        if self.below.is_empty() {
            return Ok(());
        }
        let mut folders = Folders::existing(self.top.clone());
        let (parent, name) = folders.parent(&self.below)?;
        match parent.make_folder(name, NEW_FOLDER) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
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

/// Returns the names of a path with `/` between them, or `None` if one of them leads up.
fn names(path: &Path) -> Option<Vec<u8>> {
    let name = |part| match part {
        Component::Normal(name) => Some(name.as_encoded_bytes()),
        _ => None,
    };
    let names: Option<Vec<&[u8]>> = path.components().map(name).collect();
    Some(names?.join(&b"/"[..]))
}

fn absolute(path: &str) -> Result<PathBuf, CopyError> {
    let path = PathBuf::from(path);
    if path.is_absolute() {
        return Ok(path);
    }
    let why = format!("{}: write the folder's whole path on its host, from / or its drive on", path.display());
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

/// Counts files and bytes below a folder. A part that cannot be listed is reported when it is to be copied.
pub(crate) fn count(folder: &dyn Storage, path: &Path, control: &Control) -> Result<(u64, u64), CopyError> {
    let mut files = 0;
    let mut bytes = 0_u64;
    for found in Walk::new(folder).map_err(CopyError::at("list", path))? {
        if control.is_stopped() {
            return Err(CopyError::Stopped);
        }
        if let Ok(Entry { kind: Kind::File { size, .. }, .. }) = found {
            (files, bytes) = (files + 1, bytes.saturating_add(size));
        }
    }
    Ok((files, bytes))
}

/// The folder below `root` that gets the tree of one of several sources.
pub(crate) fn below(root: &dyn Storage, name: &str, path: &Path) -> Result<Box<dyn Storage>, CopyError> {
    check_name(name)?;
    root.below(name).map_err(CopyError::at("open", &path.join(name)))
}

/// Opens the folder `name` below a folder of this host.
pub(crate) fn local_below(root: &LocalFolder, name: &str, path: &Path) -> Result<LocalFolder, CopyError> {
    check_name(name)?;
    root.folder(name).map_err(CopyError::at("open", &path.join(name)))
}

/// Refuses a path that leads out of the folder it is below.
pub(crate) fn check_path(path: &str) -> Result<(), CopyError> {
    if !crate::entry::is_inside(path.as_bytes()) {
        return Err(CopyError::Impossible(format!("`{path}` is no folder below the server's")));
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), CopyError> {
    if !crate::entry::is_inside(name.as_bytes()) || name.contains('/') {
        return Err(CopyError::Impossible(format!("`{name}` cannot be a folder's name")));
    }
    Ok(())
}

/// A root for a tree, swept of what an earlier copy left.
pub(crate) fn root(
    folder: Box<dyn Storage>,
    path: &Path,
    existing: CopyExisting,
    mark: &str,
    control: &Control,
) -> Result<Root, CopyError> {
    let root = Root::new(folder, existing, mark.to_owned());
    if existing == CopyExisting::Resume {
        root.sweep(control).map_err(CopyError::at("remove temporary files from", path))?;
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    fn allowing(folder: &TempDir) -> AllowedFolders {
        AllowedFolders { allowed: vec![folder.path().to_owned()], scratch: None }
    }

    fn text(path: &Path) -> &str {
        path.to_str().expect("UTF-8")
    }

    #[test]
    fn nothing_outside_is_opened() {
        let allowed = tempfile::tempdir().expect("a folder");
        let other = tempfile::tempdir().expect("a folder");
        let folders = allowing(&allowed);
        let target = other.path().as_os_str().as_encoded_bytes();
        let mut paths = vec![other.path().to_owned(), allowed.path().join("..")];
        // Not every system makes links.
        if Folder::open(allowed.path()).expect("opened").make_link(b"temporary", b"way", target, 0).is_ok() {
            paths.extend([allowed.path().join("way"), allowed.path().join("way/new")]);
        }
        for path in paths {
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
    fn a_destination_is_made_and_must_be_empty() {
        let allowed = tempfile::tempdir().expect("a folder");
        let path = allowed.path().join("new");
        let (folder, real) = allowing(&allowed).destination(text(&path)).expect("made");
        assert!(check_empty(&folder, &real, CopyExisting::Refuse).is_ok());
        fs::write(path.join("x"), "x").expect("written");
        assert!(matches!(check_empty(&folder, &real, CopyExisting::Refuse), Err(CopyError::NotEmpty { .. })));
        assert!(check_empty(&folder, &real, CopyExisting::Replace).is_ok());
    }
}
