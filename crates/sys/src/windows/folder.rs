//! Folders by their open handles: each name is opened from the folder that it is in, and no link (reparse point) is followed. So nothing
//! leads out of the folder, and no path is too long.
//!
//! A name is one component of a path, in UTF-8. Windows takes names that differ only in case for the same. A name in other letters than
//! an entry has is not its name here, so that no entry takes the place of another one.

mod call;
mod entries;
mod file;
mod held;
#[cfg(test)]
mod tests;

pub use entries::Listing;
pub use file::FolderFile;
pub use held::HeldFolder;

use crate::entry::About;
use crate::windows_name::{self, component};
use call::{Information, Opening, SHARE_ALL};
use entries::{Entries, Entry};
use std::fs::OpenOptions;
use std::io;
use std::iter;
use std::os::windows::ffi::OsStrExt as _;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::{AsHandle as _, AsRawHandle as _, BorrowedHandle, OwnedHandle};
use std::path::Path;
use std::sync::Arc;
use windows_sys::Wdk::Storage::FileSystem::{
    FILE_BASIC_INFORMATION, FILE_CREATE, FILE_DIRECTORY_FILE, FILE_DISPOSITION_DELETE,
    FILE_DISPOSITION_IGNORE_READONLY_ATTRIBUTE, FILE_DISPOSITION_INFORMATION, FILE_DISPOSITION_INFORMATION_EX,
    FILE_DISPOSITION_POSIX_SEMANTICS, FILE_NON_DIRECTORY_FILE, FILE_OPEN, FILE_RENAME_IGNORE_READONLY_ATTRIBUTE,
    FILE_RENAME_POSIX_SEMANTICS, FILE_RENAME_REPLACE_IF_EXISTS, FILE_STANDARD_INFORMATION, FileBasicInformation,
    FileDispositionInformation, FileDispositionInformationEx, FileRenameInformation, FileRenameInformationEx,
};
use windows_sys::Win32::Storage::FileSystem::{
    DELETE, FILE_ATTRIBUTE_DIRECTORY, FILE_ATTRIBUTE_NORMAL, FILE_ATTRIBUTE_READONLY, FILE_ATTRIBUTE_REPARSE_POINT,
    FILE_FLAG_BACKUP_SEMANTICS, FILE_GENERIC_READ, FILE_GENERIC_WRITE, FILE_LIST_DIRECTORY, FILE_READ_ATTRIBUTES,
    FILE_TRAVERSE, FILE_WRITE_ATTRIBUTES, GetFinalPathNameByHandleW,
};

/// Steps in which times are kept, in nanoseconds.
pub const TIME_STEP: i64 = 100;
/// Whether [`Folder::sync`] makes all files durable at once. On Windows this takes the rights of an administrator.
pub const SYNCS_AT_ONCE: bool = false;

/// Rights to go on from a folder.
const PASS: u32 = FILE_TRAVERSE | FILE_READ_ATTRIBUTES;
/// Rights to list a folder.
const LIST: u32 = PASS | FILE_LIST_DIRECTORY;
/// Rights to remove.
const REMOVE: u32 = DELETE | FILE_READ_ATTRIBUTES | FILE_WRITE_ATTRIBUTES;
/// Characters of the longest path.
const LONGEST_PATH: u32 = 1 << 15;

// SAFETY: the structures are made of integers.
unsafe impl Information for FILE_BASIC_INFORMATION {}
// SAFETY: the structures are made of integers.
unsafe impl Information for FILE_DISPOSITION_INFORMATION_EX {}
// SAFETY: the structure is one boolean, which is only set.
unsafe impl Information for FILE_DISPOSITION_INFORMATION {}
// SAFETY: the structure is made of integers and of two booleans, to which the system writes 0 or 1.
unsafe impl Information for FILE_STANDARD_INFORMATION {}

/// An open folder. Clones share it.
#[derive(Debug, Clone)]
pub struct Folder(Arc<OwnedHandle>);

impl Folder {
    /// Opens the folder at `path` to be listed. Links are followed.
    ///
    /// # Errors
    /// There is no such folder, or this user may not read it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.access_mode(LIST).share_mode(SHARE_ALL).custom_flags(FILE_FLAG_BACKUP_SEMANTICS);
        let opened = OwnedHandle::from(options.open(path)?);
        if attributes(opened.as_handle())? & FILE_ATTRIBUTE_DIRECTORY == 0 {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self::from(opened))
    }

    /// Opens the folder at `path`, an absolute path without links as `canonicalize` returns it, to go on from. If a link took the place of
    /// a name meanwhile, it is not followed.
    ///
    /// # Errors
    /// There is no such folder.
    pub fn open_without_links(path: &Path) -> io::Result<Self> {
        let folder = Self::open(path)?;
        // What is open is what is used, so that it suffices to look once.
        if final_path(folder.0.as_handle())? != path.as_os_str().encode_wide().collect::<Vec<u16>>() {
            return Err(io::Error::new(io::ErrorKind::NotADirectory, "a link is on the way, and is not followed"));
        }
        Ok(folder)
    }

    /// Opens the folder `name` to go on from.
    ///
    /// # Errors
    /// There is no folder of this name in these letters.
    pub fn enter(&self, name: &[u8]) -> io::Result<Self> {
        let text = component(name)?;
        let folder = self.open_below(text, PASS)?;
        match self.find(text) {
            Ok(Some(entry)) if entry.name == text => Ok(folder),
            // Names in a folder that cannot be listed cannot be compared.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(folder),
            Ok(_) => Err(io::ErrorKind::NotFound.into()),
            Err(error) => Err(error),
        }
    }

    /// Opens the folder `name` to be listed.
    ///
    /// # Errors
    /// There is no folder of this name, or this user may not read it.
    pub fn open_folder(&self, name: &[u8]) -> io::Result<Self> {
        self.open_below(component(name)?, LIST)
    }

    /// Opens the folder itself to be listed.
    ///
    /// # Errors
    /// This user may not read it.
    pub fn to_list(&self) -> io::Result<Self> {
        Ok(Self::from(self.again(LIST)?))
    }

    /// Opens the folder `name` to be emptied.
    ///
    /// # Errors
    /// There is no folder of this name, or this user may not read it.
    pub fn open_to_empty(&self, name: &[u8]) -> io::Result<Self> {
        self.open_folder(name)
    }

    /// Opens the folder itself to be emptied.
    ///
    /// # Errors
    /// This user may not read it.
    pub fn to_empty(&self) -> io::Result<Self> {
        self.to_list()
    }

    /// Makes the folder `name`. Its permissions are those that this folder gives to what is made in it.
    ///
    /// # Errors
    /// The kind is `AlreadyExists` if the name is taken, and `InvalidFilename` if Windows cannot hold the name, or not next to another one.
    pub fn make_folder(&self, name: &[u8], _mode: u32) -> io::Result<()> {
        let text = windows_name::check(name)?;
        let opening = Opening { access: PASS, share: SHARE_ALL, disposition: FILE_CREATE, kind: FILE_DIRECTORY_FILE };
        match call::open(self.0.as_handle(), text, opening) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.check_letters(text)?;
                Err(error)
            }
            made => made.map(drop),
        }
    }

    /// Lists the folder.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn list(&self) -> io::Result<Listing> {
        Ok(Listing::new(Entries::of(self.again(LIST)?, None)))
    }

    /// Returns the first `count` names.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn first_names(&self, count: usize) -> io::Result<Vec<Vec<u8>>> {
        self.list()?.take(count).map(|found| Ok(found?.0)).collect()
    }

    /// Returns the attributes of the entry `name`.
    ///
    /// # Errors
    /// There is no such entry in these letters.
    pub fn about(&self, name: &[u8]) -> io::Result<About> {
        let text = component(name)?;
        match self.find(text)? {
            Some(entry) if entry.name == text => Ok(entry.about),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Opens the file `name` for reading. Returns its attributes, too: they show whether it is a file.
    ///
    /// # Errors
    /// There is no such entry, or this user may not read it.
    pub fn open_file(&self, name: &[u8]) -> io::Result<(FolderFile, About)> {
        let opening = Opening { access: FILE_GENERIC_READ, share: SHARE_ALL, disposition: FILE_OPEN, kind: 0 };
        FolderFile::existing(call::open(self.0.as_handle(), component(name)?, opening)?)
    }

    /// Makes the file `name`, and opens it for writing and reading. Its permissions are those that the folder gives to what is made in it.
    ///
    /// # Errors
    /// The name is taken, Windows cannot hold it, or the folder has no room for it.
    pub fn create_file(&self, name: &[u8], _mode: u32) -> io::Result<FolderFile> {
        let opening = Opening {
            access: FILE_GENERIC_READ | FILE_GENERIC_WRITE | DELETE,
            share: SHARE_ALL,
            disposition: FILE_CREATE,
            kind: FILE_NON_DIRECTORY_FILE,
        };
        Ok(FolderFile::new(call::open(self.0.as_handle(), windows_name::check(name)?, opening)?))
    }

    /// Returns an error if the folder cannot hold an entry called `name`.
    ///
    /// # Errors
    /// The kind is `InvalidFilename`.
    pub fn check_name(&self, name: &[u8]) -> io::Result<()> {
        windows_name::check(name)?;
        Ok(())
    }

    /// Gives `file`, which is called `from`, the name `to` in place of the file or link that has it.
    ///
    /// # Errors
    /// A folder has the name. The kind is `InvalidFilename` if Windows cannot hold it, or not next to another one.
    pub fn rename(&self, file: &FolderFile, _from: &[u8], to: &[u8]) -> io::Result<()> {
        let text = windows_name::check(to)?;
        let folder = self.0.as_handle();
        match call::rename(file.handle(), folder, text, FileRenameInformation, 0) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            renamed => return renamed,
        }
        self.check_letters(text)?;
        let flags = FILE_RENAME_REPLACE_IF_EXISTS | FILE_RENAME_POSIX_SEMANTICS | FILE_RENAME_IGNORE_READONLY_ATTRIBUTE;
        match call::rename(file.handle(), folder, text, FileRenameInformationEx, flags) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            renamed => return renamed,
        }
        // Before Windows 10 1809, and on other file systems than NTFS.
        self.allow_removal(text)?;
        call::rename(file.handle(), folder, text, FileRenameInformation, FILE_RENAME_REPLACE_IF_EXISTS)
    }

    /// Reads no link.
    ///
    /// # Errors
    /// Always, with the kind `Unsupported`.
    pub fn read_link(&self, _name: &[u8]) -> io::Result<Vec<u8>> {
        let reason = "a link of Windows: where it leads is not read; --links skip leaves links out";
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }

    /// Makes no link: Windows lets administrators only, and distinguishes links to files from links to folders.
    ///
    /// # Errors
    /// Always, with the kind `Unsupported`.
    pub fn make_link(&self, _temporary: &[u8], _name: &[u8], _target: &[u8], _modified: i64) -> io::Result<()> {
        let reason = "linerate makes no symbolic link on Windows; --links skip leaves links out";
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }

    /// Gives a folder its time of last change, in nanoseconds since 1970. Folders of Windows have no permission bits.
    ///
    /// # Errors
    /// This user may not change it.
    pub fn settle(&self, _mode: u32, modified: i64) -> io::Result<()> {
        let folder = self.again(FILE_WRITE_ATTRIBUTES)?;
        let times = FILE_BASIC_INFORMATION { LastWriteTime: file_time(modified), ..Default::default() };
        call::set(folder.as_handle(), FileBasicInformation, &times)
    }

    /// Removes the file or link `name`.
    ///
    /// # Errors
    /// The kind is `IsADirectory` if it is a folder.
    pub fn remove_file(&self, name: &[u8]) -> io::Result<()> {
        let file = self.open_to_remove(component(name)?, 0)?;
        let attributes = attributes(file.as_handle())?;
        if attributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT) == FILE_ATTRIBUTE_DIRECTORY {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        remove(file.as_handle())
    }

    /// Removes the empty folder `name`.
    ///
    /// # Errors
    /// It is not empty, or no folder.
    pub fn remove_folder(&self, name: &[u8]) -> io::Result<()> {
        let folder = self.open_to_remove(component(name)?, FILE_DIRECTORY_FILE)?;
        check_no_link(folder.as_handle())?;
        remove(folder.as_handle())
    }

    /// Does nothing: each file is made durable by itself.
    ///
    /// # Errors
    /// Never.
    pub fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// Returns the number of the device that the folder is on. Always `None`: files of Windows have none.
    pub fn device(&self) -> Option<u64> {
        None
    }

    /// Returns how many bytes this user may still write to the folder's volume.
    ///
    /// # Errors
    /// The volume does not report it.
    pub fn free_bytes(&self) -> io::Result<u64> {
        call::free_bytes(self.0.as_handle())
    }

    /// Opens the folder itself once more.
    fn again(&self, access: u32) -> io::Result<OwnedHandle> {
        let opening = Opening { access, share: SHARE_ALL, disposition: FILE_OPEN, kind: FILE_DIRECTORY_FILE };
        call::open(self.0.as_handle(), "", opening)
    }

    /// Opens the folder `name`, and refuses a link.
    fn open_below(&self, name: &str, access: u32) -> io::Result<Self> {
        let opening = Opening { access, share: SHARE_ALL, disposition: FILE_OPEN, kind: FILE_DIRECTORY_FILE };
        let folder = call::open(self.0.as_handle(), name, opening)?;
        check_no_link(folder.as_handle())?;
        Ok(Self::from(folder))
    }

    fn open_to_remove(&self, name: &str, kind: u32) -> io::Result<OwnedHandle> {
        let opening = Opening { access: REMOVE, share: SHARE_ALL, disposition: FILE_OPEN, kind };
        call::open(self.0.as_handle(), name, opening)
    }

    /// Returns the entry that Windows takes for `name`. Its name may have other letters, or be the long form of a short name.
    fn find(&self, name: &str) -> io::Result<Option<Entry>> {
        let mut other = None;
        for entry in Entries::of(self.again(LIST)?, Some(name)) {
            let entry = entry?;
            if entry.name == name {
                return Ok(Some(entry));
            }
            other = Some(entry);
        }
        Ok(other)
    }

    /// Refuses a name that is taken by an entry with another one.
    fn check_letters(&self, name: &str) -> io::Result<()> {
        match self.find(name)? {
            Some(entry) if entry.name != name => {
                let reason = format!(
                    "Windows cannot hold the name next to `{}`, which it takes for the same; rename it",
                    entry.name
                );
                Err(io::Error::new(io::ErrorKind::InvalidFilename, reason))
            }
            _ => Ok(()),
        }
    }

    /// Lets a read-only file be replaced.
    fn allow_removal(&self, name: &str) -> io::Result<()> {
        clear_read_only(self.open_to_remove(name, FILE_NON_DIRECTORY_FILE)?.as_handle())
    }
}

impl From<OwnedHandle> for Folder {
    fn from(folder: OwnedHandle) -> Self {
        Self(Arc::new(folder))
    }
}

/// Removes what is open.
fn remove(file: BorrowedHandle<'_>) -> io::Result<()> {
    let flags = FILE_DISPOSITION_DELETE | FILE_DISPOSITION_POSIX_SEMANTICS | FILE_DISPOSITION_IGNORE_READONLY_ATTRIBUTE;
    let disposition = FILE_DISPOSITION_INFORMATION_EX { Flags: flags };
    match call::set(file, FileDispositionInformationEx, &disposition) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
        removed => return removed,
    }
    // Before Windows 10 1809, and on other file systems than NTFS.
    clear_read_only(file)?;
    call::set(file, FileDispositionInformation, &FILE_DISPOSITION_INFORMATION { DeleteFile: true })
}

fn clear_read_only(file: BorrowedHandle<'_>) -> io::Result<()> {
    if attributes(file)? & FILE_ATTRIBUTE_READONLY == 0 {
        return Ok(());
    }
    let plain = FILE_BASIC_INFORMATION { FileAttributes: FILE_ATTRIBUTE_NORMAL, ..Default::default() };
    call::set(file, FileBasicInformation, &plain)
}

fn attributes(file: BorrowedHandle<'_>) -> io::Result<u32> {
    Ok(call::query::<FILE_BASIC_INFORMATION>(file, FileBasicInformation)?.FileAttributes)
}

fn check_no_link(folder: BorrowedHandle<'_>) -> io::Result<()> {
    if attributes(folder)? & FILE_ATTRIBUTE_REPARSE_POINT != 0 {
        return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is a link, and is not followed"));
    }
    Ok(())
}

/// Returns the path of what is open, as `canonicalize` has it.
fn final_path(folder: BorrowedHandle<'_>) -> io::Result<Vec<u16>> {
    let mut path: Vec<u16> = iter::repeat_n(0, LONGEST_PATH as usize).collect();
    // SAFETY: the system writes at most `LONGEST_PATH` characters into the live array; the handle is borrowed for the call.
    let length = unsafe { GetFinalPathNameByHandleW(folder.as_raw_handle(), path.as_mut_ptr(), LONGEST_PATH, 0) };
    match length {
        0 => Err(io::Error::last_os_error()),
        LONGEST_PATH.. => Err(io::ErrorKind::InvalidFilename.into()),
        length => {
            path.truncate(length as usize);
            Ok(path)
        }
    }
}

/// Steps of file times between 1601 and 1970.
const EPOCH: i64 = 116_444_736_000_000_000;

/// Converts nanoseconds since 1970 to a file time.
fn file_time(unix_ns: i64) -> i64 {
    unix_ns.div_euclid(TIME_STEP) + EPOCH
}

/// Converts a file time to nanoseconds since 1970.
fn unix_ns(file_time: i64) -> i64 {
    file_time.saturating_sub(EPOCH).saturating_mul(TIME_STEP)
}
