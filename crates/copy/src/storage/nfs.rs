//! A folder of an NFS server, by linerate's own client.

use super::{About, Draft, Found, Listing, OpenFile, Storage, What};
use crate::tree_path::split;
use linerate_nfs::{NfsAttributes, NfsDraft, NfsFolder, NfsFound, NfsKind, NfsReading};
use std::io;

fn about(known: NfsAttributes) -> About {
    let NfsAttributes { kind, mode, size, modified, changed } = known;
    let what = match kind {
        NfsKind::File => What::File { size },
        NfsKind::Folder => What::Folder,
        NfsKind::Link => What::Link,
        NfsKind::Other => What::Other,
    };
    About { mode, modified, changed, what }
}

impl Storage for NfsFolder {
    fn another(&self) -> Box<dyn Storage> {
        Box::new(self.clone())
    }

    fn below(&self, name: &str) -> io::Result<Box<dyn Storage>> {
        Ok(Box::new(Self::below(self, name)?))
    }

    fn list(&mut self, path: &[u8]) -> io::Result<Listing> {
        let found = |NfsFound { name, attributes }| Found { name, about: attributes.map(about) };
        Ok(Box::new(Self::list(self, path)?.map(move |entry| entry.map(found))))
    }

    fn about(&mut self, path: &[u8]) -> io::Result<About> {
        self.attributes(path).map(about)
    }

    fn read_link(&mut self, path: &[u8]) -> io::Result<Vec<u8>> {
        Self::read_link(self, path)
    }

    fn open(&mut self, path: &[u8]) -> io::Result<(Box<dyn OpenFile>, About)> {
        let (file, known) = Self::open(self, path)?;
        Ok((Box::new(file), about(known)))
    }

    fn make_folder(&mut self, path: &[u8]) -> io::Result<()> {
        Self::make_folder(self, path)
    }

    fn create(&mut self, path: &[u8], temporary: &str, _mode: u32) -> io::Result<Box<dyn Draft>> {
        let (folder, name) = split(path);
        Ok(Box::new(Self::create(self, folder, name, temporary)?))
    }

    fn make_link(&mut self, path: &[u8], temporary: &str, target: &[u8], modified: i64) -> io::Result<()> {
        let (folder, name) = split(path);
        Self::make_link(self, folder, name, temporary, target, modified)
    }

    fn settle_folder(&mut self, path: &[u8], mode: u32, modified: i64) -> io::Result<()> {
        Self::settle_folder(self, path, mode, modified)
    }

    fn remove(&mut self, path: &[u8]) -> io::Result<()> {
        Self::remove(self, path)
    }

    fn syncs_at_once(&self) -> bool {
        false
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn time_step(&self) -> i64 {
        i64::try_from(Self::time_step(self)).unwrap_or(1)
    }
}

impl OpenFile for NfsReading {
    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        Self::read(self, offset, into)
    }

    fn about(&mut self) -> io::Result<About> {
        self.attributes().map(about)
    }
}

impl Draft for NfsDraft {
    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        Self::write(self, offset, data)
    }

    fn complete(&mut self, length: u64, mode: u32, modified: i64) -> io::Result<()> {
        Self::complete(self, length, mode, modified)
    }

    fn sync(&mut self) -> io::Result<()> {
        Self::sync(self)
    }

    fn read<'a>(&'a mut self, offset: u64, room: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let read = Self::read(self, offset, room)?;
        Ok(&room[..read])
    }

    fn name(&mut self) -> io::Result<()> {
        Self::name(self)
    }
}
