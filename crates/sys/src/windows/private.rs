//! Files and folders for their owner alone.
//!
//! A private file has an access control list of its own: this user, the system and its administrators, who could take the file
//! anyway. It inherits nothing from its folder.

use super::acl::{ADMINISTRATORS, Account, Permissions, Private, READS_OR_WRITES, WRITES, user};
use super::wide::wide;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::windows::io::FromRawHandle as _;
use std::path::Path;
use std::ptr;
use windows_sys::Win32::Foundation::{GENERIC_WRITE, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Storage::FileSystem::{
    CREATE_NEW, CreateDirectoryW, CreateFileW, FILE_ATTRIBUTE_NORMAL, FILE_FLAG_OPEN_REPARSE_POINT, FILE_SHARE_DELETE,
    FILE_SHARE_READ, FILE_SHARE_WRITE,
};

/// Creates a folder, and the missing ones above it, for the owner alone. An existing folder keeps its permissions. Files that are
/// created in a new folder inherit them.
///
/// # Errors
/// It cannot be created.
pub fn make_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_folder(parent)?;
    }
    let wide_path = wide(path)?;
    let private = Private::new(true)?;
    let attributes = private.attributes();
    // SAFETY: the path ends with a zero; the attributes are valid as long as `private`, which outlives the call.
    if unsafe { CreateDirectoryW(wide_path.as_ptr(), &raw const attributes) } != 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    // Another program was faster.
    if path.is_dir() { Ok(()) } else { Err(error) }
}

/// Opens the file at `path` for writing and empties it. A missing file is created for the owner alone; an existing one keeps its
/// permissions.
///
/// # Errors
/// It cannot be opened or created.
pub fn create(path: &Path) -> io::Result<File> {
    match new_file(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            OpenOptions::new().write(true).create(true).truncate(true).open(path)
        }
        created => created,
    }
}

/// Creates a file for the owner alone, and opens it for writing.
///
/// # Errors
/// There is something at `path`, or the file cannot be created.
pub fn new_file(path: &Path) -> io::Result<File> {
    let path = wide(path)?;
    let private = Private::new(false)?;
    let attributes = private.attributes();
    // SAFETY: the path ends with a zero; the attributes are valid as long as `private`, which outlives the call.
    let handle = unsafe {
        CreateFileW(
            path.as_ptr(),
            GENERIC_WRITE,
            FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
            &raw const attributes,
            CREATE_NEW,
            FILE_ATTRIBUTE_NORMAL | FILE_FLAG_OPEN_REPARSE_POINT,
            ptr::null_mut(),
        )
    };
    if handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle is open, is a file's, and has no other owner.
    Ok(unsafe { File::from_raw_handle(handle) })
}

/// Access of other users to a file. It is displayed as the first account that has any, as in `BUILTIN\Users`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposure {
    account: Account,
    /// Security identifier of this user.
    user: String,
}

impl Exposure {
    /// Returns the access of other users to the file at `path`. `None` if only this user, the system and its administrators have any.
    ///
    /// # Errors
    /// The permissions of the file cannot be read.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        let account = Permissions::of(path)?.granted_to_others(READS_OR_WRITES)?;
        account.map(|account| Ok(Self { account, user: user()? })).transpose()
    }

    /// Returns the command that ends the access to `path`.
    pub fn remedy(&self, path: &Path) -> String {
        format!(
            "icacls \"{}\" /inheritance:r /grant:r *{}:F /remove:g *{}",
            path.display(),
            self.user,
            self.account.sid
        )
    }
}

impl fmt::Display for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.account.name)
    }
}

/// Does nothing on Windows: an administrator's private file can be read by the system's services already.
///
/// # Errors
/// None on this system.
pub fn give_to_owner_of(_folder: &Path, _file: &File) -> io::Result<()> {
    Ok(())
}

/// Returns whether `path` is a folder (and no link) of this user, or of the administrators, that no other user may write.
pub fn is_own_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_dir()) && is_own(path).unwrap_or(false)
}

fn is_own(path: &Path) -> io::Result<bool> {
    let permissions = Permissions::of(path)?;
    let owned = permissions.owner == ADMINISTRATORS || permissions.owner == user()?;
    Ok(owned && permissions.granted_to_others(WRITES)?.is_none())
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
            fs::create_dir(&path).expect("created");
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn new_files_and_folders_are_private() {
        let scratch = Scratch::new("new");
        let folder = scratch.0.join(r"a\b");
        make_folder(&folder).expect("created");
        make_folder(&folder).expect("it is there");
        let file = folder.join("file");
        new_file(&file).expect("created");
        // Files in the folder inherit its permissions; Wine 8 has no inheritance.
        for path in [&folder, &file] {
            assert_eq!(Exposure::of(path).expect("read"), None, "{}", path.display());
        }
        assert!(is_own_folder(&folder) && !is_own_folder(&file) && !is_own_folder(&scratch.0.join("missing")));
        assert_eq!(new_file(&file).map_err(|error| error.kind()).err(), Some(io::ErrorKind::AlreadyExists));
        drop(create(&file).expect("emptied"));
        let missing = Exposure::of(&folder.join("missing")).map_err(|error| error.kind());
        assert_eq!(missing, Err(io::ErrorKind::NotFound));
    }

    #[test]
    fn exposure_names_an_account_and_the_remedy() {
        let exposure = Exposure {
            account: Account { sid: "S-1-5-32-545".to_owned(), name: r"BUILTIN\Users".to_owned() },
            user: "S-1-5-21-1-2-3-1001".to_owned(),
        };
        assert_eq!(exposure.to_string(), r"BUILTIN\Users");
        let remedy = exposure.remedy(Path::new(r"C:\x y\file"));
        let command = r#"icacls "C:\x y\file" /inheritance:r /grant:r *S-1-5-21-1-2-3-1001:F /remove:g *S-1-5-32-545"#;
        assert_eq!(remedy, command);
    }
}
