//! Objects that callers have handles of, by their place.

use crate::store::{Name, Result};
use nfs3_types::nfs3::{ftype3, nfsstat3};
use std::collections::{HashMap, VecDeque};
use std::ffi::CString;

/// The number of the exported directory.
pub(super) const ROOT: u64 = 1;
/// Memory of an object in addition to its name, bytes: its places in maps and in the order of files.
const OBJECT: u64 = 200;
/// The longest path that the kernel takes (PATH_MAX).
const PATH_MAXIMUM: usize = 4096;

/// The objects that handles were given out for.
#[derive(Debug)]
pub(super) struct Known {
    objects: HashMap<u64, Object>,
    by_inode: HashMap<u64, u64>,
    next: u64,
    /// Files and links in the order in which they got their numbers, among them some that are forgotten.
    files: VecDeque<u64>,
    /// Bytes that all may take, and that they take.
    maximum: u64,
    taken: u64,
}

/// Last known place and type of an object.
#[derive(Debug, Clone)]
pub(super) struct Object {
    pub(super) parent: u64,
    pub(super) name: Box<[u8]>,
    /// Inode number, unique because the directory is one file system.
    pub(super) inode: u64,
    pub(super) kind: ftype3,
}

impl Known {
    /// Knows the exported directory, and takes at most `maximum` bytes.
    pub(super) fn new(root_inode: u64, maximum: u64) -> Self {
        let root = Object { parent: ROOT, name: Box::default(), inode: root_inode, kind: ftype3::NF3DIR };
        Self {
            objects: HashMap::from([(ROOT, root)]),
            by_inode: HashMap::from([(root_inode, ROOT)]),
            next: ROOT + 1,
            files: VecDeque::new(),
            maximum,
            taken: 0,
        }
    }

    pub(super) fn get(&self, id: u64) -> Result<&Object> {
        self.objects.get(&id).ok_or(nfsstat3::NFS3ERR_STALE)
    }

    /// The path from the exported directory.
    pub(super) fn path(&self, id: u64) -> Result<CString> {
        let mut names = Vec::new();
        let mut at = id;
        let mut length = 0;
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
            if let Some(known) = self.objects.get_mut(&id)
                && known.kind == kind
            {
                self.taken = self.taken + object.memory() - known.memory();
                *known = object;
                return Ok(id);
            }
            self.forget(inode);
        }
        self.make_room(object.memory())?;
        let id = self.next;
        self.next += 1;
        self.taken += object.memory();
        if kind != ftype3::NF3DIR {
            self.files.push_back(id);
        }
        self.objects.insert(id, object);
        self.by_inode.insert(inode, id);
        Ok(id)
    }

    /// Forgets the oldest files until there is room for `bytes` more: their handles become stale. Directories stay, for
    /// others lie in them.
    fn make_room(&mut self, bytes: u64) -> Result<()> {
        while self.taken + bytes > self.maximum {
            let oldest = self.files.pop_front().ok_or(nfsstat3::NFS3ERR_SERVERFAULT)?;
            if let Some(inode) = self.objects.get(&oldest).map(|object| object.inode) {
                self.forget(inode);
            }
        }
        // Files that are made and removed again leave only their numbers.
        if self.files.len() > 2 * self.objects.len() + 64 {
            self.files.retain(|id| self.objects.contains_key(id));
        }
        Ok(())
    }

    /// Forgets a removed object.
    pub(super) fn forget(&mut self, inode: u64) {
        if let Some(object) = self.by_inode.remove(&inode).and_then(|id| self.objects.remove(&id)) {
            self.taken -= object.memory();
        }
    }
}

impl Object {
    /// Bytes that it takes.
    fn memory(&self) -> u64 {
        OBJECT + self.name.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attack: a caller looks up file after file, and the server keeps where each lies.
    #[test]
    fn the_oldest_files_are_forgotten_when_all_memory_is_taken() {
        let mut known = Known::new(1, 100 * (OBJECT + 8));
        let mut number = |parent, inode: u64, kind| {
            let name = format!("{inode:08}");
            known.number(parent, Name::new(name.as_bytes()).expect("a name"), inode, kind)
        };
        let directory = number(ROOT, 2, ftype3::NF3DIR).expect("there is room");
        let files: Vec<u64> =
            (3..1_003).map(|inode| number(directory, inode, ftype3::NF3REG).expect("there is room")).collect();
        assert!(known.taken <= known.maximum && known.objects.len() <= 101 && known.files.len() <= 300);
        assert_eq!(known.path(files[999]).expect("the last").to_str(), Ok("00000002/00001002"));
        assert!(known.get(files[0]).is_err(), "its handle is stale");
        assert!(known.get(directory).is_ok(), "others lie in it");
    }
}
