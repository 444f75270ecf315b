//! The system's cache of files.

use crate::{Error, HeldFile};

/// File of the setting that drops unused pages, names and inodes when 3 is written to it (proc_sys_vm(5)).
static DROP_CACHES: HeldFile = HeldFile::new("/proc/sys/vm/drop_caches");

/// Opens what empties the cache: for a process that soon may open it no more.
pub fn hold() {
    DROP_CACHES.hold();
}

/// Writes what is not written yet, and empties the cache.
///
/// # Errors
/// This user may not. The object is the file that could not be written.
pub fn empty() -> Result<(), Error> {
    nix::unistd::sync();
    DROP_CACHES.write(b"3\n").map_err(|source| Error::new("write", DROP_CACHES.path(), source))
}
