//! Place of a destination's tree.

use super::folder_list::{Folder, FolderList};
use crate::control::Control;
use crate::entry::Kind;
use crate::source::walk::Walk;
use crate::storage::{About, Storage, What};
use linerate_model::{CopyExisting, CopyStage, CopySync};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Beginning and end of temporary names.
const TEMPORARY: (&str, &str) = (".linerate-", ".part");
/// Permissions that are copied: who may read, write, run; no set-user bit is made for whoever sends one.
pub(crate) const PERMISSIONS: u32 = 0o1777;

/// The folder that gets a tree.
pub(crate) struct Root {
    pub(crate) storage: Box<dyn Storage>,
    pub(crate) existing: CopyExisting,
    /// Modes and times that folders get when all is in them.
    folders: Mutex<FolderList>,
    /// A part of temporary names that no other copy has.
    pub(crate) mark: String,
}

/// A temporary name, the `number`th of the copy with `mark`.
pub(crate) fn temporary(mark: &str, number: u64) -> String {
    format!("{}{mark}-{number}{}", TEMPORARY.0, TEMPORARY.1)
}

fn is_temporary(name: &[u8]) -> bool {
    name.starts_with(TEMPORARY.0.as_bytes()) && name.ends_with(TEMPORARY.1.as_bytes())
}

impl Root {
    pub(crate) fn new(storage: Box<dyn Storage>, existing: CopyExisting, mark: String) -> Self {
        Self { storage, existing, folders: Mutex::default(), mark }
    }

    /// Remembers what a folder is to be like. `storage` is this root's, and `number` that of a temporary name.
    ///
    /// # Errors
    /// Fails if the destination has no room for it.
    pub(crate) fn later(&self, folder: Folder<'_>, storage: &mut dyn Storage, number: u64) -> io::Result<()> {
        self.folders().add(folder, (storage, &self.mark, number))
    }

    /// Gives the folders their modes and times. Those within come after those around them, and go first here: one that
    /// may not be written any more need not be.
    pub(crate) fn settle(&self, control: &Control) {
        let folders = std::mem::take(&mut *self.folders());
        let mut storage = self.storage.another();
        let settled = folders.take(|Folder { path, mode, modified }| {
            if let Err(error) = storage.settle_folder(path, mode & PERMISSIONS, modified) {
                control.failed(path, CopyStage::Sync, &error);
            }
            !control.is_stopped()
        });
        if let Err(error) = settled {
            control.failed(b"", CopyStage::Sync, &error);
        }
    }

    fn folders(&self) -> MutexGuard<'_, FolderList> {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether each file is made durable before it has its name.
    pub(crate) fn syncs_each(&self, sync: CopySync) -> bool {
        sync == CopySync::Each || (sync == CopySync::End && !self.storage.syncs_at_once())
    }

    /// Whether a file of this size and time is there already, in `storage`, this root's.
    pub(crate) fn has(&self, storage: &mut dyn Storage, path: &[u8], size: u64, time: i64) -> bool {
        let step = self.storage.time_step();
        storage.about(path).is_ok_and(|About { what, modified, .. }| {
            what == What::File { size } && modified.div_euclid(step) == time.div_euclid(step)
        })
    }

    /// Removes what an earlier copy that was killed left under temporary names.
    pub(crate) fn sweep(&self, control: &Control) -> io::Result<()> {
        let mut storage = self.storage.another();
        for entry in Walk::new(&*self.storage)?.take_while(|_| !control.is_stopped()).flatten() {
            let name = crate::tree_path::split(&entry.path).1;
            if matches!(entry.kind, Kind::File { .. } | Kind::Link { .. }) && is_temporary(name) {
                // One that cannot be removed keeps its temporary name, by which the next one knows it.
                let _ = storage.remove(&entry.path);
            }
        }
        Ok(())
    }
}
