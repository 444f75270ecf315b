//! Files in memory.

use crate::Error;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::windows::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicU32, Ordering};
use windows_sys::Win32::Storage::FileSystem::{FILE_ATTRIBUTE_TEMPORARY, FILE_FLAG_DELETE_ON_CLOSE};

/// Creates a file with `content` that is deleted when closed. Windows keeps a temporary file in memory as long as there is enough of it
/// (FILE_ATTRIBUTE_TEMPORARY of CreateFileW).
///
/// # Errors
/// The folder of temporary files cannot be written.
pub fn file_of(content: &[u8]) -> Result<File, Error> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("linerate-payload-{}-{number}", std::process::id()));
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .share_mode(0)
        .attributes(FILE_ATTRIBUTE_TEMPORARY)
        .custom_flags(FILE_FLAG_DELETE_ON_CLOSE)
        .open(&path)
        .map_err(|source| Error::new("CreateFileW", path.display().to_string(), source))?;
    file.write_all(content).map_err(|source| Error::new("WriteFile", path.display().to_string(), source))?;
    Ok(file)
}
