//! A real tree, entry by entry: only the folders on the way to the current one are held.

use crate::entry::{Entry, Kind, LONGEST_PATH};
use crate::storage::{About, Found, Listing, Storage, What};
use std::io;

/// A walk in progress. Folders come before what is in them.
pub(crate) struct Walk {
    storage: Box<dyn Storage>,
    levels: Vec<Level>,
    /// The folder that is entered next.
    pending: Option<Vec<u8>>,
    /// Whether targets of links are not looked up.
    skips_links: bool,
}

/// A folder that is being listed.
struct Level {
    path: Vec<u8>,
    names: Listing,
}

/// Something that could not be listed.
#[derive(Debug)]
pub(crate) struct Unlisted {
    pub(crate) path: Vec<u8>,
    pub(crate) reason: io::Error,
}

impl Walk {
    /// Walks the tree in `storage`.
    pub(crate) fn new(storage: &dyn Storage) -> io::Result<Self> {
        let mut walk = Self { storage: storage.another(), levels: Vec::new(), pending: None, skips_links: false };
        walk.enter(Vec::new())?;
        Ok(walk)
    }

    /// Sets whether links are listed without their targets: a storage may not report them.
    pub(crate) fn skipping_links(self, skips_links: bool) -> Self {
        Self { skips_links, ..self }
    }

    fn enter(&mut self, path: Vec<u8>) -> io::Result<()> {
        let names = self.storage.list(&path)?;
        self.levels.push(Level { path, names });
        Ok(())
    }

    fn entry(&mut self, path: Vec<u8>, about: io::Result<About>) -> Result<Entry, Unlisted> {
        let unlisted = |path: Vec<u8>, reason: io::Error| Err(Unlisted { path, reason });
        if path.len() > LONGEST_PATH {
            let why = format!("the path is longer than {LONGEST_PATH} bytes");
            return unlisted(path, io::Error::other(why));
        }
        let About { mode, modified, what, .. } = match about {
            Ok(about) => about,
            Err(error) => return unlisted(path, error),
        };
        let kind = match what {
            What::Folder => Kind::Folder,
            What::File { size } => Kind::File { size, content: 0 },
            What::Link if self.skips_links => Kind::Link { target: Vec::new() },
            What::Link => match self.storage.read_link(&path) {
                Ok(target) => Kind::Link { target },
                Err(error) => return unlisted(path, error),
            },
            What::Other => {
                return unlisted(path, io::Error::other("neither a file, a folder nor a symbolic link: not copied"));
            }
        };
        Ok(Entry { path, mode, modified, kind })
    }
}

impl Iterator for Walk {
    type Item = Result<Entry, Unlisted>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(path) = self.pending.take()
            && let Err(reason) = self.enter(path.clone())
        {
            return Some(Err(Unlisted { path, reason }));
        }
        loop {
            let level = self.levels.last_mut()?;
            match level.names.next() {
                None => {
                    self.levels.pop();
                }
                Some(Err(reason)) => {
                    let path = std::mem::take(&mut level.path);
                    self.levels.pop();
                    return Some(Err(Unlisted { path, reason }));
                }
                Some(Ok(Found { name, about })) => {
                    let mut path = level.path.clone();
                    if !path.is_empty() {
                        path.push(b'/');
                    }
                    path.extend_from_slice(&name);
                    let entry = self.entry(path, about);
                    if let Ok(Entry { path, kind: Kind::Folder, .. }) = &entry {
                        self.pending = Some(path.clone());
                    }
                    return Some(entry);
                }
            }
        }
    }
}
