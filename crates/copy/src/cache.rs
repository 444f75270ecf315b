//! What the host's caches hold before a copy starts.

use crate::CopyError;
use crate::control::Control;
use crate::entry::Kind;
use crate::source::walk::Walk;
use crate::storage::{OpenFile, Storage};
use linerate_model::{Caveat, CaveatKind, CopyCache};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::OnceLock;

/// Where a write of 3 drops pages, names and inodes that are not in use (proc_sys_vm(5)).
const DROP: &str = "/proc/sys/vm/drop_caches";

/// That file, once it could be opened to be written.
static DROPPING: OnceLock<File> = OnceLock::new();

/// Opens what drops the host's caches before cold copies: for a process that soon may open it no more.
pub fn hold_cache_dropping() {
    // A copy that wants it is told if it cannot be opened.
    let _ = dropping();
}

fn dropping() -> io::Result<&'static File> {
    match DROPPING.get() {
        Some(file) => Ok(file),
        None => {
            let file = OpenOptions::new().write(true).open(DROP)?;
            Ok(DROPPING.get_or_init(|| file))
        }
    }
}

fn drop_caches() -> io::Result<()> {
    dropping()?.write_all_at(b"3\n", 0)
}

/// Makes the caches as they are asked to be, for the tree in a folder if there is one; gives doubts.
pub(crate) fn prepare(
    cache: CopyCache,
    folder: Option<(&dyn Storage, &Path)>,
    control: &Control,
) -> Result<Vec<Caveat>, CopyError> {
    match (cache, folder) {
        (CopyCache::AsIs, _) | (CopyCache::Warm, None) => Ok(Vec::new()),
        (CopyCache::Warm, Some((folder, path))) => {
            each_file(folder, path, control, |file| {
                let (mut piece, mut offset) = (vec![0; 256 << 10], 0);
                // A file that cannot be read is told when it is to be copied.
                while let Ok(read @ 1..) = file.read(offset, &mut piece)
                    && !control.is_stopped()
                {
                    offset += read as u64;
                }
            })?;
            Ok(Vec::new())
        }
        (CopyCache::Cold, folder) => {
            nix::unistd::sync();
            let Err(error) = drop_caches() else { return Ok(Vec::new()) };
            let Some((folder, path)) = folder else { return Ok(vec![stands_in(&error, "nothing")]) };
            each_file(folder, path, control, |file| {
                // The caveat says that it is only advice.
                file.forget();
            })?;
            Ok(vec![stands_in(&error, "advice for each file (posix_fadvise), which leaves names and inodes cached,")])
        }
    }
}

fn stands_in(error: &io::Error, what: &str) -> Caveat {
    let text = format!("{DROP} cannot be written ({error}), so {what} stood in for dropping the caches: run as root");
    Caveat::new(CaveatKind::Fallback, text)
}

fn each_file(
    folder: &dyn Storage,
    path: &Path,
    control: &Control,
    mut action: impl FnMut(&mut dyn OpenFile),
) -> Result<(), CopyError> {
    let mut storage = folder.another();
    for entry in Walk::new(folder).map_err(CopyError::at("list", path))?.flatten() {
        if control.is_stopped() {
            return Err(CopyError::Stopped);
        }
        if !matches!(entry.kind, Kind::File { .. }) {
            continue;
        }
        if let Ok((mut file, _)) = storage.open(&entry.path) {
            action(&mut *file);
        }
    }
    Ok(())
}
