//! Files for sendfile.

use crate::Error;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::atomic::{AtomicU32, Ordering};

/// Creates a temporary file with `content` that is gone when closed: macOS sends no other files.
///
/// # Errors
/// The folder of temporary files cannot be written.
pub fn file_of(content: &[u8]) -> Result<File, Error> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("linerate-payload-{}-{number}", std::process::id()));
    let failed = |call, source| Error::new(call, path.display().to_string(), source);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(|error| failed("open", error))?;
    fs::remove_file(&path).map_err(|error| failed("unlink", error))?;
    file.write_all(content).map_err(|error| failed("write", error))?;
    Ok(file)
}
