//! Folders that a process holds for its own use. Whoever finds one that nobody holds knows that its process is gone.

use super::call::{self, Opening};
use super::{Folder, LIST, REMOVE, check_no_link, remove, unix_ns};
use crate::windows::acl::{self, Private};
use crate::windows_name::{self, component};
use std::io;
use std::os::windows::io::{AsHandle as _, OwnedHandle};
use std::time::{Duration, SystemTime};
use windows_sys::Wdk::Storage::FileSystem::{
    FILE_BASIC_INFORMATION, FILE_CREATE, FILE_DIRECTORY_FILE, FILE_OPEN, FileBasicInformation,
};
use windows_sys::Win32::Foundation::ERROR_SHARING_VIOLATION;
use windows_sys::Win32::Storage::FileSystem::{FILE_SHARE_READ, FILE_SHARE_WRITE, READ_CONTROL};

/// A folder that this process holds until this is dropped: nobody else may remove, move or hold it.
#[derive(Debug)]
pub struct HeldFolder(OwnedHandle);

impl Folder {
    /// Makes the folder `name` for this user alone (and the system and its administrators), and holds it.
    ///
    /// # Errors
    /// The kind is `AlreadyExists` if the name is taken.
    pub fn make_held(&self, name: &[u8]) -> io::Result<HeldFolder> {
        let name = windows_name::check(name)?;
        let private = Private::new(true)?;
        Ok(HeldFolder(call::create(self.0.as_handle(), name, holding(FILE_CREATE), Some(&private))?))
    }

    /// Holds the folder `name`. Returns `None` if another process holds it, another user made it, or it was changed within `age`.
    ///
    /// # Errors
    /// There is no folder of this name, or this user may not remove it.
    pub fn hold_abandoned(&self, name: &[u8], age: Duration) -> io::Result<Option<HeldFolder>> {
        let folder = match call::open(self.0.as_handle(), component(name)?, holding(FILE_OPEN)) {
            Err(error) if error.raw_os_error() == Some(ERROR_SHARING_VIOLATION.cast_signed()) => return Ok(None),
            opened => opened?,
        };
        check_no_link(folder.as_handle())?;
        let abandoned = is_older(&folder, age)? && acl::is_own(folder.as_handle())?;
        Ok(abandoned.then_some(HeldFolder(folder)))
    }
}

/// The handle may remove, and no other one may: this is what holds the folder.
fn holding(disposition: u32) -> Opening {
    Opening {
        access: LIST | REMOVE | READ_CONTROL,
        share: FILE_SHARE_READ | FILE_SHARE_WRITE,
        disposition,
        kind: FILE_DIRECTORY_FILE,
    }
}

impl HeldFolder {
    /// Returns the folder.
    ///
    /// # Errors
    /// This process may not open more.
    pub fn folder(&self) -> io::Result<Folder> {
        Folder::from(self.0.try_clone()?).to_list()
    }

    /// Removes the folder, which is empty, from `above`, where it was made as `name`.
    ///
    /// # Errors
    /// It is not empty.
    pub fn remove(self, _above: &Folder, _name: &[u8]) -> io::Result<()> {
        remove(self.0.as_handle())
    }
}

fn is_older(folder: &OwnedHandle, age: Duration) -> io::Result<bool> {
    let basic: FILE_BASIC_INFORMATION = call::query(folder.as_handle(), FileBasicInformation)?;
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let changed = Duration::from_nanos(u64::try_from(unix_ns(basic.LastWriteTime)).unwrap_or_default());
    Ok(now.checked_sub(changed).is_some_and(|since| since > age))
}
