//! The names in a folder.
//!
//! The crate `smb` asks for more names once the last one that came was taken, and tells so by a signal that is lost if nobody waits for
//! it yet: then the listing hangs. Its asking and our taking therefore share one thread, and the taker lets the asker go first. That
//! thread always runs: an asker that stands still, with its place in the queue for the connection, would stop all others.

use crate::session::{Session, kind};
use crate::{About, unix_ns};
use futures_util::StreamExt as _;
use smb::{Directory, FileDirectoryInformation};
use std::io;
use std::sync::Arc;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::yield_now;

/// Names that wait to be taken.
const WAITING: usize = 64;
/// STATUS_NO_SUCH_FILE: no name fits the pattern.
const NO_SUCH_FILE: u32 = 0xC000_000F;

/// The names in a folder, `.` and `..` left out, with what is known of each. An error ends it.
pub struct Listing {
    /// Dropped before its session: what comes last of a connection is dropped on its own threads.
    folder: Arc<Directory>,
    names: Receiver<smb::Result<FileDirectoryInformation>>,
    session: Session,
}

impl Listing {
    pub(crate) fn start(session: Session, folder: Directory, pattern: &str) -> Self {
        let (found, names) = channel(WAITING);
        let folder = Arc::new(folder);
        session.shared.spawn_listing(list(Arc::clone(&folder), pattern.to_owned(), found));
        Self { session, folder, names }
    }
}

async fn list(folder: Arc<Directory>, pattern: String, found: Sender<smb::Result<FileDirectoryInformation>>) {
    let mut names = match Directory::query::<FileDirectoryInformation>(&folder, &pattern).await {
        Ok(names) => names,
        Err(error) => return drop(found.send(Err(error)).await),
    };
    loop {
        // Whoever asks runs until it waits, or has passed on a hundred names and is not far from that.
        yield_now().await;
        yield_now().await;
        match names.next().await {
            Some(Ok(name)) => {
                if found.send(Ok(name)).await.is_err() {
                    return;
                }
            }
            Some(Err(error)) => return drop(found.send(Err(error)).await),
            None => return,
        }
    }
}

impl Iterator for Listing {
    type Item = io::Result<(Vec<u8>, About)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let shared = &self.session.shared;
            let found = match shared.wait(async { Ok(self.names.recv().await) }) {
                Ok(None) => return None,
                Ok(Some(Ok(found))) => found,
                Ok(Some(Err(error))) if crate::error::status_of(&error) == Some(NO_SUCH_FILE) => return None,
                Ok(Some(Err(error))) => return Some(Err(shared.failed(&error))),
                Err(lost) => return Some(Err(lost)),
            };
            let about = About {
                kind: kind(found.file_attributes),
                size: found.end_of_file,
                modified: unix_ns(*found.last_write_time),
            };
            let name = match String::try_from(found.file_name) {
                Ok(name) if name == "." || name == ".." => continue,
                Ok(name) => name.into_bytes(),
                Err(_) => {
                    let why = "a name in this folder is not UTF-16; rename it on the server";
                    return Some(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
                }
            };
            return Some(Ok((name, about)));
        }
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        let folder = Arc::clone(&self.folder);
        self.session.shared.spawn(async move {
            let _ = folder.handle.close().await;
        });
    }
}
