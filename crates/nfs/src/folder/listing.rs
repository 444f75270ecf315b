//! The entries of a folder, a reply's worth at a time (READDIRPLUS, RFC 1813 section 3.3.17).

use super::{NfsAttributes, NfsFolder, PIECE};
use crate::answers::{Answer, Attributes};
use crate::calls::{Ask, Handle};
use crate::status;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;

/// A name in a folder.
#[derive(Debug)]
pub struct NfsFound {
    /// Its name.
    pub name: Vec<u8>,
    /// Attributes of the entry.
    pub attributes: io::Result<NfsAttributes>,
}

/// The names of a folder, `.` and `..` left out. An error ends it.
pub struct NfsListing {
    folder: NfsFolder,
    directory: Handle,
    cookie: u64,
    verifier: [u8; 8],
    /// Whether READDIRPLUS lists.
    plus: bool,
    /// Names of the last reply that are still to be given.
    names: VecDeque<(Vec<u8>, Option<Attributes>)>,
    end: bool,
}

impl NfsListing {
    pub(super) fn new(folder: NfsFolder, directory: Handle) -> Self {
        Self { folder, directory, cookie: 0, verifier: [0; 8], plus: true, names: VecDeque::new(), end: false }
    }

    /// Asks for more names.
    fn more(&mut self) -> io::Result<()> {
        let Self { folder, directory, cookie, verifier, plus, names, end } = self;
        let before = *cookie;
        let opened = *verifier;
        let names_only = &folder.server.lists_names_only;
        // Cookies of one call are nothing to the other.
        if before == 0 {
            *plus = !names_only.load(Ordering::Relaxed);
        }
        let (call, ask) = match *plus {
            true => ("READDIRPLUS", Ask::ReaddirplusFrom { directory, cookie: before, verifier: opened }),
            false => ("READDIR", Ask::ReaddirFrom { directory, cookie: before, verifier: opened }),
        };
        let is_listed = folder.server.connections.one(call, &ask, |answer| match answer {
            Answer::Entries(entries) => {
                (*verifier, *end) = (entries.verifier, entries.end);
                for entry in entries {
                    *cookie = entry.cookie;
                    if !matches!(entry.name, b"." | b"..") {
                        names.push_back((entry.name.to_vec(), entry.attributes));
                    }
                }
                Ok(true)
            }
            // A server need not have it (RFC 1813 section 3.3.17).
            Answer::Failed(status::NOTSUPP) if *plus && before == 0 => Ok(false),
            other => Err(other.into()),
        })?;
        if !is_listed {
            names_only.store(true, Ordering::Relaxed);
            return self.more();
        }
        if *cookie == before && !*end {
            return Err(io::Error::other(format!(
                "the NFS server lists a folder without end: no entry in a reply of {} KiB",
                PIECE >> 10
            )));
        }
        Ok(())
    }
}

impl Iterator for NfsListing {
    type Item = io::Result<NfsFound>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.names.is_empty() {
            if self.end {
                return None;
            }
            if let Err(error) = self.more() {
                self.end = true;
                return Some(Err(error));
            }
        }
        let (name, known) = self.names.pop_front()?;
        // A server may leave out what it would have to look for.
        let attributes = match known {
            Some(known) => Ok(known.into()),
            None => self.folder.found("LOOKUP", &Ask::Lookup(&self.directory, &name)).and_then(|found| {
                found.map(|(_, known)| known).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
            }),
        };
        Some(Ok(NfsFound { name, attributes }))
    }
}
