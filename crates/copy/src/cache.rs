//! State of the host's caches before a copy starts.

use crate::CopyError;
use crate::control::Control;
use crate::entry::Kind;
use crate::source::walk::Walk;
use crate::storage::{OpenFile, Storage};
use linerate_model::{Caveat, CaveatKind, CopyCache, message};
use linerate_sys::{Error, file_cache};
use std::io;
use std::path::Path;

/// Opens what drops the host's caches before cold copies: for a process that soon may open it no more.
pub fn hold_cache_dropping() {
    file_cache::hold();
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
                // A file that cannot be read is reported when it is to be copied.
                while let Ok(read @ 1..) = file.read(offset, &mut piece)
                    && !control.is_stopped()
                {
                    offset += read as u64;
                }
            })?;
            Ok(Vec::new())
        }
        (CopyCache::Cold, folder) => {
            let Err(error) = file_cache::empty() else { return Ok(Vec::new()) };
            if error.source.kind() == io::ErrorKind::Unsupported {
                return Ok(vec![not_emptied()]);
            }
            let Some((folder, path)) = folder else { return Ok(vec![not_dropped(&error, false)]) };
            each_file(folder, path, control, |file| {
                // The caveat says that it is only advice.
                file.forget();
            })?;
            Ok(vec![not_dropped(&error, true)])
        }
    }
}

/// Says that no program can empty the cache on this system.
fn not_emptied() -> Caveat {
    let text = message!(
        "caveat-cache-not-emptied",
        "no program can empty the file cache of this system, so files may have been read from it: restart the host \
         before the copy"
    );
    Caveat::new(CaveatKind::Fallback, text)
}

/// Says that the caches could not be dropped, and whether advice for each file stood in for that.
fn not_dropped(error: &Error, advised: bool) -> Caveat {
    let path = &error.object;
    let error = error.source.to_string();
    let text = match advised {
        true => message!(
            "caveat-cache-advice",
            "{path} cannot be written ({error}), so advice for each file (posix_fadvise), which leaves names and \
             inodes cached, stood in for dropping the caches: run as root",
            path,
            error
        ),
        false => message!(
            "caveat-cache-not-dropped",
            "{path} cannot be written ({error}), so nothing stood in for dropping the caches: run as root",
            path,
            error
        ),
    };
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
