//! File systems.

use nix::sys::statvfs::statvfs;
use std::io;
use std::path::Path;

/// Returns how many bytes this user may still write to the file system of `path`.
///
/// # Errors
/// `path` does not exist, or the file system does not report it.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let disk = statvfs(path)?;
    Ok((disk.blocks_available() as u64).saturating_mul(disk.fragment_size()))
}
