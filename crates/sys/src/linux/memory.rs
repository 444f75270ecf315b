//! Memory files for sendfile.

use crate::Error;
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io::Write as _;

/// A file in memory that holds `content`, gone when closed.
pub fn file_of(content: &[u8]) -> Result<File, Error> {
    let object = || format!("payload of {} bytes", content.len());
    let fd = memfd_create("linerate payload", MFdFlags::MFD_CLOEXEC)
        .map_err(|errno| Error::new("memfd_create", object(), errno))?;
    let mut file = File::from(fd);
    file.write_all(content).map_err(|source| Error::new("write", object(), source))?;
    Ok(file)
}
