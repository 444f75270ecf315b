//! Files and folders for their owner alone.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::Path;

/// Makes a folder, and the missing ones above it, for the owner alone. An existing folder keeps its permissions.
///
/// # Errors
/// It cannot be made.
pub fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens the file at `path` for writing and empties it. A missing file is created for the owner alone; an existing one keeps its
/// permissions.
///
/// # Errors
/// It cannot be opened or created.
pub fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().mode(0o600).write(true).create(true).truncate(true).open(path)
}

/// Makes a file for the owner alone, and opens it for writing.
///
/// # Errors
/// There is something at `path`, or the file cannot be made.
pub fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().mode(0o600).write(true).create_new(true).open(path)
}

/// Access of other users to a file. It is displayed as the system lists it, as in `mode 640`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exposure {
    mode: u32,
}

impl Exposure {
    /// Returns the access of other users to the file at `path`. `None` if only its owner has any.
    ///
    /// # Errors
    /// The permissions of the file cannot be read.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        let mode = fs::metadata(path)?.permissions().mode() & 0o7777;
        Ok((mode & 0o077 != 0).then_some(Self { mode }))
    }

    /// Returns the command that ends the access to `path`.
    pub fn remedy(&self, path: &Path) -> String {
        format!("chmod 600 {}", path.display())
    }
}

impl fmt::Display for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mode {:o}", self.mode)
    }
}

/// Gives a file that root made in `folder` to the owner of the folder, who could not read it otherwise. Changes nothing for
/// other users.
///
/// # Errors
/// An owner cannot be read, or the file cannot be given away.
pub fn give_to_owner_of(folder: &Path, file: &File) -> io::Result<()> {
    let about = file.metadata()?;
    let owner = fs::metadata(folder)?;
    // A file with a second name may be root's own, linked here by the owner of the folder.
    if about.uid() != 0 || about.nlink() != 1 || owner.uid() == 0 {
        return Ok(());
    }
    fchown(file, Some(owner.uid()), Some(owner.gid()))
}

/// Returns whether `path` is a folder (and no link) of this user that no other user may write.
pub fn is_own_folder(path: &Path) -> bool {
    let written_by_others = 0o022;
    let user = nix::unistd::geteuid().as_raw();
    fs::symlink_metadata(path)
        .is_ok_and(|about| about.is_dir() && about.uid() == user && about.mode() & written_by_others == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A folder that is removed when dropped.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(test: &str) -> Self {
            let path = std::env::temp_dir().join(format!("linerate-private-{test}-{}", std::process::id()));
            fs::create_dir(&path).expect("made");
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
    }

    #[test]
    fn new_files_and_folders_are_private() {
        let scratch = Scratch::new("new");
        let folder = scratch.0.join("a/b");
        make_folder(&folder).expect("made");
        let file = folder.join("file");
        new_file(&file).expect("made");
        assert_eq!((Exposure::of(&folder.join("..")).ok(), Exposure::of(&file).ok()), (Some(None), Some(None)));
        assert!(is_own_folder(&folder));
        assert_eq!(new_file(&file).map_err(|error| error.kind()).err(), Some(io::ErrorKind::AlreadyExists));
    }

    #[test]
    fn exposure_shows_the_mode_and_the_remedy() {
        let scratch = Scratch::new("exposure");
        let file = scratch.0.join("file");
        assert_eq!(Exposure::of(&file).map_err(|error| error.kind()), Err(io::ErrorKind::NotFound));
        new_file(&file).expect("made");
        set_mode(&file, 0o640);
        let exposure = Exposure::of(&file).expect("a mode").expect("its group can read it");
        assert_eq!(exposure.to_string(), "mode 640");
        assert_eq!(exposure.remedy(Path::new("/srv/file")), "chmod 600 /srv/file");
    }

    #[test]
    fn folders_that_others_write_and_links_are_not_own() {
        let scratch = Scratch::new("own");
        let folder = scratch.0.join("folder");
        make_folder(&folder).expect("made");
        let link = scratch.0.join("link");
        std::os::unix::fs::symlink(&folder, &link).expect("a link");
        assert!(is_own_folder(&folder) && !is_own_folder(&link));
        set_mode(&folder, 0o777);
        assert!(!is_own_folder(&folder) && !is_own_folder(&scratch.0.join("none")));
    }
}
