//! Which handle stands for what: the objects that callers were told of, by where they lie.

use crate::store::{Name, Result};
use nfs3_types::nfs3::{ftype3, nfsstat3};
use std::collections::HashMap;
use std::ffi::CString;

/// The number of the exported directory.
pub(super) const ROOT: u64 = 1;
/// So many objects at the most; each takes about 200 bytes.
const MAXIMUM: usize = 8 << 20;
/// The longest path that the kernel takes (PATH_MAX).
const PATH_MAXIMUM: usize = 4096;

/// The objects that handles were given out for.
#[derive(Debug)]
pub(super) struct Known {
    objects: HashMap<u64, Object>,
    by_inode: HashMap<u64, u64>,
    next: u64,
}

/// Where an object lay when it was last seen, and what it is.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) parent: u64,
    pub(super) name: Box<[u8]>,
    /// All lie on one file system, so this is an identity.
    pub(super) inode: u64,
    pub(super) kind: ftype3,
}

impl Known {
    pub(super) fn new(root_inode: u64) -> Self {
        let root = Object { parent: ROOT, name: Box::default(), inode: root_inode, kind: ftype3::NF3DIR };
        Self { objects: HashMap::from([(ROOT, root)]), by_inode: HashMap::from([(root_inode, ROOT)]), next: ROOT + 1 }
    }

    pub(super) fn get(&self, id: u64) -> Result<&Object> {
        self.objects.get(&id).ok_or(nfsstat3::NFS3ERR_STALE)
    }

    /// The path from the exported directory.
    pub(super) fn path(&self, id: u64) -> Result<CString> {
        let mut names = Vec::new();
        let (mut at, mut length) = (id, 0);
        while at != ROOT {
            let object = self.get(at)?;
            length += object.name.len() + 1;
            if length > PATH_MAXIMUM {
                return Err(nfsstat3::NFS3ERR_NAMETOOLONG);
            }
            names.push(&object.name[..]);
            at = object.parent;
        }
        names.reverse();
        let path = if names.is_empty() { b".".to_vec() } else { names.join(&b'/') };
        CString::new(path).map_err(|_| nfsstat3::NFS3ERR_STALE)
    }

    /// The number of what lies at a place, which is new unless it was known by its inode.
    pub(super) fn number(&mut self, parent: u64, name: Name<'_>, inode: u64, kind: ftype3) -> Result<u64> {
        let object = Object { parent, name: name.bytes().into(), inode, kind };
        if let Some(id) = self.by_inode.get(&inode).copied() {
            // An inode that became something else was removed in between: its handle is stale.
            if self.objects.get(&id).is_some_and(|known| known.kind == kind) {
                self.objects.insert(id, object);
                return Ok(id);
            }
            self.forget(inode);
        }
        if self.objects.len() >= MAXIMUM {
            return Err(nfsstat3::NFS3ERR_SERVERFAULT);
        }
        let id = self.next;
        self.next += 1;
        self.objects.insert(id, object);
        self.by_inode.insert(inode, id);
        Ok(id)
    }

    /// What was removed has no number any more.
    pub(super) fn forget(&mut self, inode: u64) {
        if let Some(id) = self.by_inode.remove(&inode) {
            self.objects.remove(&id);
        }
    }
}
