//! The names in a folder.

use crate::About;
use crate::connection::Ticket;
use crate::error::{CallError, status};
use crate::request::Request;
use crate::session::Handle;
use std::io;
use std::vec::IntoIter;

/// Bytes of names that are asked for at a time: some hundred names.
const PAGE: usize = 64 << 10;

/// The names in a folder, `.` and `..` left out, with what is known of each. An error ends it.
pub struct Listing {
    folder: Handle,
    pattern: String,
    names: IntoIter<(Option<String>, About)>,
    /// The next names, on their way; none at the end.
    next: Option<Ticket>,
}

impl Listing {
    pub(crate) fn start(folder: Handle, pattern: &str) -> io::Result<Self> {
        let mut listing = Self { folder, pattern: pattern.to_owned(), names: Vec::new().into_iter(), next: None };
        listing.ask()?;
        Ok(listing)
    }

    fn ask(&mut self) -> io::Result<()> {
        let request = Request::query_directory(&self.folder.id, &self.pattern, PAGE);
        self.next = Some(self.folder.session.submit(request).map_err(|error| self.folder.session.failed(error))?);
        Ok(())
    }

    /// Whether there are more names.
    fn turn_page(&mut self) -> io::Result<bool> {
        let Some(next) = self.next.take() else { return Ok(false) };
        match next.wait().and_then(|answer| answer.names()) {
            Ok(names) => {
                self.names = names.into_iter();
                self.ask().map(|()| true)
            }
            Err(CallError::Status(status::NO_MORE_FILES | status::NO_SUCH_FILE)) => Ok(false),
            Err(error) => Err(self.folder.session.failed(error)),
        }
    }
}

impl Iterator for Listing {
    type Item = io::Result<(Vec<u8>, About)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.names.next() {
                Some((Some(name), _)) if name == "." || name == ".." => {}
                Some((Some(name), about)) => return Some(Ok((name.into_bytes(), about))),
                Some((None, _)) => {
                    let why = "a name in this folder is not UTF-16; rename it on the server";
                    return Some(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
                }
                None => match self.turn_page() {
                    Ok(true) => {}
                    Ok(false) => return None,
                    Err(error) => return Some(Err(error)),
                },
            }
        }
    }
}
