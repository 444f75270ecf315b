//! A folder of this host, by open handles: nothing leads out of it.

use super::{About, Draft, Found, Listing, OpenFile, Storage};
use crate::folders::Folders;
use linerate_sys::folder::{Folder, FolderFile, SYNCS_AT_ONCE, TIME_STEP};
use std::io;

/// Permissions that a file may have before it is whole: those who may read it then may read what there is of it.
const AT_ONCE: u32 = 0o777;

/// The folder, and the open folders on the way to what was last asked for.
pub(crate) struct LocalFolder {
    root: Folder,
    /// For what must be there, and for what is made.
    existing: Folders,
    made: Folders,
}

impl LocalFolder {
    /// The folder that is open as `root`.
    pub(crate) fn new(root: Folder) -> Self {
        let existing = Folders::existing(root.clone());
        let made = Folders::made(root.clone());
        Self { root, existing, made }
    }

    /// The folder called `name` in it, which is made if it is missing.
    pub(crate) fn folder(&self, name: &str) -> io::Result<Self> {
        Ok(Self::new(Folders::made(self.root.clone()).at(name.as_bytes())?.to_list()?))
    }

    /// Returns the folder for another thread.
    pub(crate) fn again(&self) -> Self {
        Self::new(self.root.clone())
    }

    /// The open folder.
    pub(crate) fn root(&self) -> &Folder {
        &self.root
    }
}

impl Storage for LocalFolder {
    fn another(&self) -> Box<dyn Storage> {
        Box::new(self.again())
    }

    fn below(&self, name: &str) -> io::Result<Box<dyn Storage>> {
        Ok(Box::new(self.folder(name)?))
    }

    fn device(&self) -> Option<u64> {
        self.root.device()
    }

    fn is_here(&self) -> bool {
        true
    }

    fn list(&mut self, path: &[u8]) -> io::Result<Listing> {
        let folder = if path.is_empty() {
            self.root.to_list()?
        } else {
            let (parent, name) = self.existing.parent(path)?;
            parent.open_folder(name)?
        };
        Ok(Box::new(folder.list()?.map(|found| found.map(|(name, about)| Found { name, about }))))
    }

    fn about(&mut self, path: &[u8]) -> io::Result<About> {
        let (parent, name) = self.existing.parent(path)?;
        parent.about(name)
    }

    fn read_link(&mut self, path: &[u8]) -> io::Result<Vec<u8>> {
        let (parent, name) = self.existing.parent(path)?;
        parent.read_link(name)
    }

    fn open(&mut self, path: &[u8]) -> io::Result<(Box<dyn OpenFile>, About)> {
        let (parent, name) = self.existing.parent(path)?;
        let (file, about) = parent.open_file(name)?;
        Ok((Box::new(file), about))
    }

    fn make_folder(&mut self, path: &[u8]) -> io::Result<()> {
        self.made.at(path).map(drop)
    }

    fn create(&mut self, path: &[u8], temporary: &str, mode: u32) -> io::Result<Box<dyn Draft>> {
        let (folder, name) = self.made.parent(path)?;
        // What cannot have its name need not be written.
        folder.check_name(name)?;
        let file = folder.create_file(temporary.as_bytes(), mode & AT_ONCE)?;
        let temporary = temporary.as_bytes().to_vec();
        let name = name.to_owned();
        Ok(Box::new(LocalDraft { file, end: 0, folder, temporary, name, named: false }))
    }

    fn make_link(&mut self, path: &[u8], temporary: &str, target: &[u8], modified: i64) -> io::Result<()> {
        let (folder, name) = self.made.parent(path)?;
        folder.make_link(temporary.as_bytes(), name, target, modified)
    }

    fn settle_folder(&mut self, path: &[u8], mode: u32, modified: i64) -> io::Result<()> {
        let (parent, name) = self.existing.parent(path)?;
        parent.open_folder(name)?.settle(mode, modified)
    }

    fn remove(&mut self, path: &[u8]) -> io::Result<()> {
        let (parent, name) = self.existing.parent(path)?;
        parent.remove_file(name)
    }

    fn syncs_at_once(&self) -> bool {
        SYNCS_AT_ONCE
    }

    fn sync(&self) -> io::Result<()> {
        self.root.sync()
    }

    fn time_step(&self) -> i64 {
        TIME_STEP
    }
}

impl OpenFile for FolderFile {
    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.read_at(into, offset)
    }

    fn about(&mut self) -> io::Result<About> {
        Self::about(self)
    }

    fn extent(&mut self, offset: u64, size: u64) -> io::Result<(u64, u64)> {
        Self::extent(self, offset, size)
    }

    fn forget(&mut self) {
        Self::forget(self);
    }
}

struct LocalDraft {
    file: FolderFile,
    /// End of the written data.
    end: u64,
    folder: Folder,
    temporary: Vec<u8>,
    name: Vec<u8>,
    named: bool,
}

impl Draft for LocalDraft {
    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        if offset > self.end {
            self.file.allow_holes();
        }
        self.file.write_all_at(data, offset)?;
        self.end = offset + data.len() as u64;
        Ok(())
    }

    fn complete(&mut self, length: u64, mode: u32, modified: i64) -> io::Result<()> {
        if self.end != length {
            self.file.allow_holes();
            self.file.set_length(length)?;
        }
        self.file.settle(mode, modified)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }

    fn forget(&mut self) -> io::Result<()> {
        // Durable data can be taken from the cache. Advice may be ignored.
        self.file.sync_data()?;
        self.file.forget();
        Ok(())
    }

    fn read<'a>(&'a mut self, offset: u64, room: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let read = self.file.read_at(room, offset)?;
        Ok(&room[..read])
    }

    fn name(&mut self) -> io::Result<()> {
        self.folder.rename(&self.file, &self.temporary, &self.name)?;
        self.named = true;
        Ok(())
    }
}

impl Drop for LocalDraft {
    fn drop(&mut self) {
        if !self.named {
            // One that cannot be removed keeps its temporary name, by which the next `--resume` knows it.
            let _ = self.folder.remove_file(&self.temporary);
        }
    }
}
