//! Lists folders.

use crate::connection::Ticket;
use crate::error::{CallError, status};
use crate::file_info::{FileInfo, Kind};
use crate::request::{Disposition, Request, access, options};
use crate::tree::{Handle, Tree};
use std::io;
use std::sync::Arc;
use std::vec::IntoIter;

/// Size of one answer, in bytes: some hundred names.
const PAGE: usize = 64 << 10;

/// Iterator over the names and attributes in a folder, without `.` and `..`. It ends after an error.
pub struct Listing {
    folder: Handle,
    pattern: String,
    names: IntoIter<(Option<String>, FileInfo)>,
    /// Request for the next names; `None` at the end.
    next: Option<Ticket>,
}

impl Listing {
    /// Lists the names in the folder at `path` that match `pattern` (`*` for all).
    ///
    /// # Errors
    /// Fails if the folder does not exist, is a file, or the server refuses.
    pub(crate) fn open(tree: &Arc<Tree>, path: &[u8], pattern: &str) -> io::Result<Self> {
        let access = access::READ | access::READ_ATTRIBUTES;
        let (folder, info) = tree.open(path, Disposition::Open, access, options::FOLDER)?;
        if info.kind == Kind::File {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let mut listing = Self { folder, pattern: pattern.to_owned(), names: Vec::new().into_iter(), next: None };
        listing.request_page()?;
        Ok(listing)
    }

    /// Requests the next names.
    fn request_page(&mut self) -> io::Result<()> {
        let request = Request::query_directory(&self.folder.id, &self.pattern, PAGE);
        self.next = Some(self.folder.tree.submit(request).map_err(|error| self.folder.tree.failed(error))?);
        Ok(())
    }

    /// Takes the next names. Returns false at the end of the folder.
    fn next_page(&mut self) -> io::Result<bool> {
        let Some(next) = self.next.take() else { return Ok(false) };
        match next.wait().and_then(|answer| answer.names()) {
            Ok(names) => {
                self.names = names.into_iter();
                self.request_page().map(|()| true)
            }
            Err(CallError::Status(status::NO_MORE_FILES | status::NO_SUCH_FILE)) => Ok(false),
            Err(error) => Err(self.folder.tree.failed(error)),
        }
    }
}

impl Iterator for Listing {
    type Item = io::Result<(Vec<u8>, FileInfo)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.names.next() {
                Some((Some(name), _)) if name == "." || name == ".." => {}
                Some((Some(name), info)) => return Some(Ok((name.into_bytes(), info))),
                Some((None, _)) => {
                    let why = "a name in this folder is not UTF-16; rename it on the server";
                    return Some(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
                }
                None => match self.next_page() {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(error) => return Some(Err(error)),
                },
            }
        }
    }
}
