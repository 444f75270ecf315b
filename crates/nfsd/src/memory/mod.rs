//! A tree of files in memory, gone with its server.
//!
//! Each node has a lock of its own, so that reads and writes meet only at the same file. Names are made, moved and
//! removed one at a time: whoever changes them holds `changing`, and no other change can come between what it looks at
//! and what it does. Nobody waits for one node's lock while holding another's.

mod node;
mod pages;
mod room;

pub(crate) use pages::FILE_MAXIMUM;

use crate::handle::Handle;
use crate::store::{DirOpArgs, Entry, LINK_MAXIMUM, Made, New, Removed, Result, Space, Store};
use nfs3_types::nfs3::{Nfs3Option, fattr3, nfsstat3, nfstime3, sattr3, stable_how, wcc_data};
use node::{Content, DOT, DOT_DOT, Directory, Node};
use pages::Pages;
use room::{Room, Taken};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Number of maps for nodes, so that threads seldom wait for each other.
const SHARDS: usize = 64;
/// The number of the exported directory.
const ROOT: u64 = 1;
/// Memory of a node in addition to its data: itself, its places in maps, and the longest name.
const NODE_BYTES: u64 = 1 << 10;

/// A tree of files in memory.
#[derive(Debug)]
pub(crate) struct MemoryStore {
    generation: u64,
    shards: [RwLock<HashMap<u64, Arc<Node>>>; SHARDS],
    next: AtomicU64,
    changing: Mutex<()>,
    room: Arc<Room>,
}

impl MemoryStore {
    /// Makes an empty tree that takes at most `bytes` of memory.
    pub(crate) fn new(bytes: u64) -> Self {
        let store = Self {
            generation: rand::random(),
            shards: std::array::from_fn(|_| RwLock::default()),
            next: AtomicU64::new(ROOT),
            changing: Mutex::default(),
            room: Room::new(bytes),
        };
        store.add(Content::Directory(Directory::in_directory(ROOT)), Taken::nothing(&store.room));
        store
    }

    fn handle(&self, id: u64) -> Handle {
        Handle { generation: self.generation, id }
    }

    fn shard(&self, id: u64) -> &RwLock<HashMap<u64, Arc<Node>>> {
        &self.shards[id as usize % SHARDS]
    }

    fn node(&self, handle: Handle) -> Result<Arc<Node>> {
        self.numbered(handle.of(self.generation)?)
    }

    fn numbered(&self, id: u64) -> Result<Arc<Node>> {
        let shard = self.shard(id).read().unwrap_or_else(PoisonError::into_inner);
        shard.get(&id).cloned().ok_or(nfsstat3::NFS3ERR_STALE)
    }

    fn add(&self, content: Content, taken: Taken) -> Arc<Node> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let node = Arc::new(Node::new(id, content, taken));
        self.shard(id).write().unwrap_or_else(PoisonError::into_inner).insert(id, Arc::clone(&node));
        node
    }

    fn drop_node(&self, id: u64) {
        self.shard(id).write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// The file that is there already, where that is what was wanted.
    fn found(&self, node: &Node, new: New<'_>, directory: &Node) -> Result<Made> {
        let mut state = node.write();
        match new {
            New::Unchecked { attributes } if state.file().is_ok() => state.set(attributes)?,
            New::Exclusive { number } if state.exclusive == Some(number) => {}
            _ => return Err(nfsstat3::NFS3ERR_EXIST),
        }
        let attributes = state.attributes(node.id);
        drop(state);
        let state = directory.read();
        let directory = wcc_data { before: state.before(), after: Nfs3Option::Some(state.attributes(directory.id)) };
        Ok(Made { handle: self.handle(node.id), attributes, directory })
    }

    /// Whether `id` is `directory` or one of those that hold it.
    fn holds(&self, id: u64, mut directory: u64) -> Result<bool> {
        while directory != id {
            if directory == ROOT {
                return Ok(false);
            }
            directory = self.numbered(directory)?.read().directory()?.parent;
        }
        Ok(true)
    }
}

impl Store for MemoryStore {
    fn root(&self) -> Handle {
        self.handle(ROOT)
    }

    fn verifier(&self) -> [u8; 8] {
        self.generation.to_be_bytes()
    }

    fn attributes(&self, object: Handle) -> Result<fattr3> {
        Ok(self.node(object)?.attributes())
    }

    fn set_attributes(&self, object: Handle, to: &sattr3, guard: Option<nfstime3>) -> Result<wcc_data> {
        let node = self.node(object)?;
        let mut state = node.write();
        if guard.is_some_and(|time| !state.changed_at(time)) {
            return Err(nfsstat3::NFS3ERR_NOT_SYNC);
        }
        let before = state.before();
        state.set(to)?;
        Ok(wcc_data { before, after: Nfs3Option::Some(state.attributes(node.id)) })
    }

    fn lookup(&self, place: DirOpArgs<'_>) -> Result<(Handle, fattr3)> {
        let directory = self.node(place.directory)?;
        let id = directory.read().directory()?.get(place.name.bytes()).ok_or(nfsstat3::NFS3ERR_NOENT)?;
        // Removed in between, it is not there.
        let node = self.numbered(id).map_err(|_| nfsstat3::NFS3ERR_NOENT)?;
        Ok((self.handle(id), node.attributes()))
    }

    fn parent(&self, directory: Handle) -> Result<(Handle, fattr3)> {
        let parent = self.node(directory)?.read().directory()?.parent;
        Ok((self.handle(parent), self.numbered(parent)?.attributes()))
    }

    fn link_text(&self, link: Handle) -> Result<(Vec<u8>, fattr3)> {
        let node = self.node(link)?;
        let state = node.read();
        match &state.content {
            Content::Link(text) => Ok((text.to_vec(), state.attributes(node.id))),
            Content::File(_) | Content::Directory(_) => Err(nfsstat3::NFS3ERR_INVAL),
        }
    }

    fn read(&self, file: Handle, offset: u64, count: u32, data: &mut Vec<u8>) -> Result<(bool, fattr3)> {
        let node = self.node(file)?;
        let state = node.read();
        let end = state.file()?.read(offset, count, data);
        Ok((end, state.attributes(node.id)))
    }

    fn write(&self, file: Handle, offset: u64, data: &[u8], _: stable_how) -> Result<wcc_data> {
        let (_, changed) = self.node(file)?.change(|state| state.file_mut()?.write(offset, data))?;
        Ok(changed)
    }

    fn commit(&self, file: Handle) -> Result<wcc_data> {
        let node = self.node(file)?;
        let state = node.read();
        state.file()?;
        Ok(wcc_data { before: state.before(), after: Nfs3Option::Some(state.attributes(node.id)) })
    }

    fn make(&self, place: DirOpArgs<'_>, new: New<'_>) -> Result<Made> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = self.node(place.directory)?;
        let there = directory.read().directory()?.get(place.name.bytes());
        if let Some(there) = there {
            return self.found(&*self.numbered(there)?, new, &directory);
        }
        let mut taken = Taken::nothing(&self.room);
        taken.grow(NODE_BYTES)?;
        let (attributes, number) = match new {
            New::Unchecked { attributes } | New::Guarded { attributes } => (Some(attributes), None),
            New::Directory { attributes } => (Some(attributes), None),
            New::Exclusive { number } => (None, Some(number)),
            New::Link { attributes, text } if text.len() <= LINK_MAXIMUM => {
                taken.grow(text.len() as u64)?;
                (Some(attributes), None)
            }
            New::Link { .. } => return Err(nfsstat3::NFS3ERR_NAMETOOLONG),
        };
        let is_directory = matches!(new, New::Directory { .. });
        let content = match new {
            New::Directory { .. } => Content::Directory(Directory::in_directory(directory.id)),
            New::Link { text, .. } => Content::Link(text.into()),
            _ => Content::File(Pages::new(&self.room)),
        };
        let node = self.add(content, taken);
        let mut state = node.write();
        state.exclusive = number;
        if let Some(attributes) = attributes {
            state.set(attributes).inspect_err(|_| self.drop_node(node.id))?;
        }
        let attributes = state.attributes(node.id);
        drop(state);
        let ((), changed) = directory.change(|state| {
            let names = state.directory_mut()?;
            names.put(place.name.bytes(), node.id);
            names.subdirectories += u32::from(is_directory);
            Ok(())
        })?;
        Ok(Made { handle: self.handle(node.id), attributes, directory: changed })
    }

    fn remove(&self, place: DirOpArgs<'_>, what: Removed) -> Result<wcc_data> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let directory = self.node(place.directory)?;
        let id = directory.read().directory()?.get(place.name.bytes()).ok_or(nfsstat3::NFS3ERR_NOENT)?;
        let node = self.numbered(id)?;
        match (node.read().directory(), what) {
            (Ok(_), Removed::File) => return Err(nfsstat3::NFS3ERR_ISDIR),
            (Err(_), Removed::Directory) => return Err(nfsstat3::NFS3ERR_NOTDIR),
            (Ok(names), Removed::Directory) if !names.is_empty() => return Err(nfsstat3::NFS3ERR_NOTEMPTY),
            _ => {}
        }
        let ((), changed) = directory.change(|state| {
            let names = state.directory_mut()?;
            names.take(place.name.bytes());
            names.subdirectories -= u32::from(what == Removed::Directory);
            Ok(())
        })?;
        self.drop_node(id);
        Ok(changed)
    }

    fn rename(&self, from: DirOpArgs<'_>, to: DirOpArgs<'_>) -> Result<(wcc_data, wcc_data)> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let source = self.node(from.directory)?;
        let target = self.node(to.directory)?;
        let id = source.read().directory()?.get(from.name.bytes()).ok_or(nfsstat3::NFS3ERR_NOENT)?;
        let replaced = target.read().directory()?.get(to.name.bytes());
        let moved = self.numbered(id)?;
        let moves_directory = moved.read().directory().is_ok();
        if moves_directory && self.holds(id, target.id)? {
            return Err(nfsstat3::NFS3ERR_INVAL);
        }
        let mut replaces_directory = false;
        if let Some(there) = replaced.filter(|there| *there != id) {
            let node = self.numbered(there)?;
            let state = node.read();
            match (moves_directory, state.directory()) {
                (true, Ok(names)) if names.is_empty() => replaces_directory = true,
                (true, Ok(_)) => return Err(nfsstat3::NFS3ERR_NOTEMPTY),
                (false, Err(_)) => {}
                _ => return Err(nfsstat3::NFS3ERR_EXIST),
            }
        }
        // The new name comes before the old one goes: at no moment is there none.
        let ((), target_changed) = target.change(|state| {
            if replaced != Some(id) {
                let names = state.directory_mut()?;
                names.put(to.name.bytes(), id);
                names.subdirectories += u32::from(moves_directory);
                names.subdirectories -= u32::from(replaces_directory);
            }
            Ok(())
        })?;
        let ((), source_changed) = source.change(|state| {
            if replaced != Some(id) {
                let names = state.directory_mut()?;
                names.take(from.name.bytes());
                names.subdirectories -= u32::from(moves_directory);
            }
            Ok(())
        })?;
        if moves_directory {
            moved.write().directory_mut()?.parent = target.id;
        }
        if let Some(there) = replaced.filter(|there| *there != id) {
            self.drop_node(there);
        }
        Ok((source_changed, target_changed))
    }

    fn list(&self, directory: Handle, cookie: u64, each: &mut dyn FnMut(Entry<'_>) -> bool) -> Result<(fattr3, bool)> {
        let node = self.node(directory)?;
        let state = node.read();
        let names = state.directory()?;
        let ends: [(u64, &[u8], u64); 2] = [(DOT, b".", node.id), (DOT_DOT, b"..", names.parent)];
        let ends = ends.into_iter().filter(|(own, ..)| *own > cookie);
        let all_shown = ends
            .chain(names.behind(cookie.max(DOT_DOT)))
            .all(|(cookie, name, file_id)| each(Entry { name, file_id, cookie }));
        Ok((state.attributes(node.id), all_shown))
    }

    fn space(&self) -> Result<Space> {
        let bytes = self.room.bytes;
        let bytes_free = self.room.free();
        Ok(Space { bytes, bytes_free, files: bytes / NODE_BYTES, files_free: bytes_free / NODE_BYTES })
    }
}

#[cfg(test)]
mod tests;
