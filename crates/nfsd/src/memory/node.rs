//! A file, directory or link in memory.

use super::pages::Pages;
use super::room::Taken;
use crate::store::Result;
use nfs3_types::nfs3::{
    Nfs3Option, createverf3, fattr3, ftype3, nfsstat3, nfstime3, sattr3, set_atime, set_mtime, specdata3, wcc_attr,
    wcc_data,
};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::SystemTime;

/// The bits of a mode that say who may do what (RFC 1813 section 2.5, mode3).
const MODE_BITS: u32 = 0o7777;

/// A file, directory or link.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: u64,
    state: RwLock<State>,
}

/// State of a node.
#[derive(Debug)]
pub(super) struct State {
    pub(super) content: Content,
    /// The number that an EXCLUSIVE creation came with.
    pub(super) exclusive: Option<createverf3>,
    mode: u32,
    uid: u32,
    gid: u32,
    atime: nfstime3,
    mtime: nfstime3,
    ctime: nfstime3,
    /// Memory that it takes in addition to its data.
    _taken: Taken,
}

#[derive(Debug)]
pub(super) enum Content {
    File(Pages),
    Directory(Directory),
    Link(Box<[u8]>),
}

/// The names in a directory.
#[derive(Debug)]
pub(super) struct Directory {
    /// The number of the directory that holds it.
    pub(super) parent: u64,
    by_name: BTreeMap<Arc<[u8]>, (u64, u64)>,
    /// In the order in which they came.
    by_cookie: BTreeMap<u64, (Arc<[u8]>, u64)>,
    next_cookie: u64,
    pub(super) subdirectories: u32,
}

/// The cookies of `.` and `..`.
pub(super) const DOT: u64 = 1;
pub(super) const DOT_DOT: u64 = 2;

impl Directory {
    pub(super) fn in_directory(parent: u64) -> Self {
        Self {
            parent,
            by_name: BTreeMap::new(),
            by_cookie: BTreeMap::new(),
            next_cookie: DOT_DOT + 1,
            subdirectories: 0,
        }
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<u64> {
        self.by_name.get(name).map(|(_, id)| *id)
    }

    /// Gives `name` to `id`, whatever had it.
    pub(super) fn put(&mut self, name: &[u8], id: u64) {
        self.take(name);
        let name: Arc<[u8]> = name.into();
        self.by_name.insert(Arc::clone(&name), (self.next_cookie, id));
        self.by_cookie.insert(self.next_cookie, (name, id));
        self.next_cookie += 1;
    }

    pub(super) fn take(&mut self, name: &[u8]) {
        if let Some((cookie, _)) = self.by_name.remove(name) {
            self.by_cookie.remove(&cookie);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns cookie, name and number of each entry after `cookie`.
    pub(super) fn behind(&self, cookie: u64) -> impl Iterator<Item = (u64, &[u8], u64)> {
        let behind = (std::ops::Bound::Excluded(cookie), std::ops::Bound::Unbounded);
        self.by_cookie.range(behind).map(|(cookie, (name, id))| (*cookie, &**name, *id))
    }
}

impl Node {
    pub(super) fn new(id: u64, content: Content, taken: Taken) -> Self {
        let mode = match content {
            Content::File(_) => 0o644,
            Content::Directory(_) => 0o755,
            Content::Link(_) => 0o777,
        };
        let exclusive = None;
        let uid = 0;
        let gid = 0;
        let time = now();
        let state = State { content, exclusive, mode, uid, gid, atime: time, mtime: time, ctime: time, _taken: taken };
        Self { id, state: RwLock::new(state) }
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn attributes(&self) -> fattr3 {
        self.read().attributes(self.id)
    }

    /// Does `act`, which changes the content, and gives what the node was before and is after it.
    pub(super) fn change<T>(&self, act: impl FnOnce(&mut State) -> Result<T>) -> Result<(T, wcc_data)> {
        let mut state = self.write();
        let before = state.before();
        let done = act(&mut state)?;
        state.touch();
        Ok((done, wcc_data { before, after: Nfs3Option::Some(state.attributes(self.id)) }))
    }
}

impl State {
    pub(super) fn directory(&self) -> Result<&Directory> {
        match &self.content {
            Content::Directory(directory) => Ok(directory),
            _ => Err(nfsstat3::NFS3ERR_NOTDIR),
        }
    }

    pub(super) fn directory_mut(&mut self) -> Result<&mut Directory> {
        match &mut self.content {
            Content::Directory(directory) => Ok(directory),
            _ => Err(nfsstat3::NFS3ERR_NOTDIR),
        }
    }

    pub(super) fn file(&self) -> Result<&Pages> {
        match &self.content {
            Content::File(pages) => Ok(pages),
            other => Err(other.no_file()),
        }
    }

    pub(super) fn file_mut(&mut self) -> Result<&mut Pages> {
        match &mut self.content {
            Content::File(pages) => Ok(pages),
            other => Err(other.no_file()),
        }
    }

    /// Its size and times before a change.
    pub(super) fn before(&self) -> Nfs3Option<wcc_attr> {
        Nfs3Option::Some(wcc_attr { size: self.size(), mtime: self.mtime, ctime: self.ctime })
    }

    /// The content has changed now.
    fn touch(&mut self) {
        self.mtime = now();
        self.ctime = self.mtime;
    }

    pub(super) fn attributes(&self, id: u64) -> fattr3 {
        let (type_, nlink, used) = match &self.content {
            Content::File(pages) => (ftype3::NF3REG, 1, pages.taken()),
            Content::Directory(directory) => (ftype3::NF3DIR, 2 + directory.subdirectories, 0),
            Content::Link(text) => (ftype3::NF3LNK, 1, text.len() as u64),
        };
        fattr3 {
            type_,
            mode: self.mode,
            nlink,
            uid: self.uid,
            gid: self.gid,
            size: self.size(),
            used,
            rdev: specdata3::default(),
            fsid: 0,
            fileid: id,
            atime: self.atime,
            mtime: self.mtime,
            ctime: self.ctime,
        }
    }

    fn size(&self) -> u64 {
        match &self.content {
            Content::File(pages) => pages.length(),
            Content::Directory(directory) => directory.by_name.len() as u64,
            Content::Link(text) => text.len() as u64,
        }
    }

    /// Sets what is to be set, all of it or nothing.
    pub(super) fn set(&mut self, to: &sattr3) -> Result<()> {
        if let Nfs3Option::Some(size) = to.size {
            self.file_mut()?.resize(size)?;
            self.touch();
        }
        if let Nfs3Option::Some(mode) = to.mode {
            self.mode = mode & MODE_BITS;
        }
        if let Nfs3Option::Some(uid) = to.uid {
            self.uid = uid;
        }
        if let Nfs3Option::Some(gid) = to.gid {
            self.gid = gid;
        }
        match to.atime {
            set_atime::DONT_CHANGE => {}
            set_atime::SET_TO_SERVER_TIME => self.atime = now(),
            set_atime::SET_TO_CLIENT_TIME(time) => self.atime = time,
        }
        match to.mtime {
            set_mtime::DONT_CHANGE => {}
            set_mtime::SET_TO_SERVER_TIME => self.mtime = now(),
            set_mtime::SET_TO_CLIENT_TIME(time) => self.mtime = time,
        }
        self.ctime = now();
        Ok(())
    }

    /// Changed last at `time`.
    pub(super) fn changed_at(&self, time: nfstime3) -> bool {
        self.ctime == time
    }
}

impl Content {
    /// Why what wants a file cannot have it.
    fn no_file(&self) -> nfsstat3 {
        match self {
            Self::Directory(_) => nfsstat3::NFS3ERR_ISDIR,
            Self::File(_) | Self::Link(_) => nfsstat3::NFS3ERR_INVAL,
        }
    }
}

fn now() -> nfstime3 {
    nfstime3::try_from(SystemTime::now()).unwrap_or_default()
}
