//! File systems.

use super::wide::wide;
use std::io;
use std::path::Path;
use std::ptr;
use windows_sys::Win32::Storage::FileSystem::GetDiskFreeSpaceExW;

/// Returns how many bytes this user may still write to the file system of the folder `path`.
///
/// # Errors
/// `path` is no folder, or the file system does not report it.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let path = wide(path)?;
    let mut free = 0;
    // SAFETY: the path ends with a zero, and the system writes one integer that outlives the call.
    let result = unsafe { GetDiskFreeSpaceExW(path.as_ptr(), &raw mut free, ptr::null_mut(), ptr::null_mut()) };
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(free) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_space_is_that_of_a_folder() {
        assert!(free_bytes(&std::env::temp_dir()).expect("a folder") > 0);
        free_bytes(Path::new(r"C:\no\such\folder")).expect_err("a missing folder");
        free_bytes(Path::new("a\0b")).expect_err("no path");
    }
}
