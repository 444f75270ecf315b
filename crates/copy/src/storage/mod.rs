//! Storage of a tree: a folder of this host, or of a file server. The stages do not depend on the difference.
//!
//! A [`Storage`] is the folder as one thread sees it. Paths in it are an entry's: below that folder, `/` between the
//! names, and empty for the folder itself. No symbolic link is followed.

pub(crate) mod local;
mod nfs;
#[cfg(feature = "smb")]
mod smb;

use crate::{Control, CopyError};
use linerate_model::{Assignment, FileServer, SessionKey};
use linerate_nfs::NfsFolder;
pub(crate) use linerate_sys::entry::{About, What};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// A name in a folder.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) name: Vec<u8>,
    pub(crate) about: io::Result<About>,
}

/// The names of a folder, `.` and `..` left out, some at a time. An error ends it.
pub(crate) type Listing = Box<dyn Iterator<Item = io::Result<Found>> + Send>;

/// A folder that a tree is read from or written to.
///
/// A server that is lost, so that nothing more can come of it, is an error of kind [`io::ErrorKind::NotConnected`]: the
/// copy ends there. All other errors are of one file. Their text names what the server answered.
pub(crate) trait Storage: Send + Sync {
    /// Returns the folder for another thread.
    fn another(&self) -> Box<dyn Storage>;

    /// The folder called `name` in it, which is made if it is missing, as a storage of its own.
    fn below(&self, name: &str) -> io::Result<Box<dyn Storage>>;

    /// Lists the folder at `path`.
    fn list(&mut self, path: &[u8]) -> io::Result<Listing>;

    /// Returns the attributes at `path`.
    fn about(&mut self, path: &[u8]) -> io::Result<About>;

    /// Returns the target of the symbolic link at `path`.
    fn read_link(&mut self, path: &[u8]) -> io::Result<Vec<u8>>;

    /// Opens the file at `path` for reading, and says what is known of it.
    fn open(&mut self, path: &[u8]) -> io::Result<(Box<dyn OpenFile>, About)>;

    /// Makes the folder at `path`, unless it is there, and those on the way to it.
    fn make_folder(&mut self, path: &[u8]) -> io::Result<()>;

    /// Makes the file that will be at `path` with the permissions `mode`, empty, in the same folder under the name
    /// `temporary`. Folders on the way are made.
    fn create(&mut self, path: &[u8], temporary: &str, mode: u32) -> io::Result<Box<dyn Draft>>;

    /// Makes the symbolic link at `path`, first under the name `temporary`; it takes the place of what has its name,
    /// unless that is a folder. Folders on the way are made.
    fn make_link(&mut self, path: &[u8], temporary: &str, target: &[u8], modified: i64) -> io::Result<()>;

    /// Gives the folder at `path` its permissions and time of change.
    fn settle_folder(&mut self, path: &[u8], mode: u32, modified: i64) -> io::Result<()>;

    /// Removes the file or link at `path`.
    fn remove(&mut self, path: &[u8]) -> io::Result<()>;

    /// Whether [`Self::sync`] makes all durable at once. If not, each file is made durable before it has its name, also
    /// where that was wanted at the end only.
    fn syncs_at_once(&self) -> bool;

    /// Makes all that was written durable, where that can be done at once.
    fn sync(&self) -> io::Result<()>;

    /// Number of the device of this host that it is on, as its files have it (`st_dev`); none on a server.
    fn device(&self) -> Option<u64> {
        None
    }

    /// Whether this host's own kernel answers for it, and no server is asked over a connection of ours.
    fn is_here(&self) -> bool {
        false
    }

    /// The steps in which it keeps times, nanoseconds.
    fn time_step(&self) -> i64 {
        1
    }
}

/// A file that is read.
pub(crate) trait OpenFile: Send {
    /// Reads some bytes from `offset` on, in the order of the file; 0 at its end.
    fn read(&mut self, offset: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Returns the current attributes.
    fn about(&mut self) -> io::Result<About>;

    /// Returns the next range of data from `offset` on in a file of `size` bytes: before it is a hole.
    fn extent(&mut self, offset: u64, size: u64) -> io::Result<(u64, u64)> {
        Ok((offset, size))
    }

    /// Advises this host's cache to let go of it.
    fn forget(&mut self) {}
}

/// A file that is being written: under a temporary name, until it is whole. Dropped before it has its name, it is
/// removed.
pub(crate) trait Draft: Send {
    /// Writes at `offset`. It may return before the bytes are there: what fails then shows later, in [`Self::complete`]
    /// at the latest.
    fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Sets length, permissions and time of change after everything was written.
    fn complete(&mut self, length: u64, mode: u32, modified: i64) -> io::Result<()>;

    /// Makes it durable.
    fn sync(&mut self) -> io::Result<()>;

    /// Makes it durable, and advises this host's cache to let go of it, so that reading asks the storage itself.
    fn forget(&mut self) -> io::Result<()> {
        self.sync()
    }

    /// Reads some bytes of what was written from `offset` on, in the order of the file; none at its end. They are as
    /// many as `room` holds at most, and need not be in it.
    fn read<'a>(&'a mut self, offset: u64, room: &'a mut [u8]) -> io::Result<&'a [u8]>;

    /// Gives it its name, in place of the file or link that has it.
    fn name(&mut self) -> io::Result<()>;
}

/// Begins a session with a file server: its folder, and its name for people. With `make`, the folder is made if it is
/// missing; the one that it is in must be there.
pub(crate) fn connect(
    server: &FileServer,
    assignment: &Assignment,
    make: bool,
    control: &Arc<Control>,
) -> Result<(Box<dyn Storage>, PathBuf), CopyError> {
    let control = Arc::clone(control);
    Ok(match server {
        FileServer::Nfs(nfs) => {
            let name = format!("{}:{}", nfs.address, nfs.export);
            let stopped = Box::new(move || control.is_stopped());
            (Box::new(NfsFolder::connect(nfs, make, stopped)?), name.into())
        }
        FileServer::AgentNfs(address) => connect_agent(*address, &assignment.key, &control)?,
        #[cfg(not(feature = "smb"))]
        FileServer::Smb(_) => return Err(CopyError::NoSmb),
        #[cfg(feature = "smb")]
        FileServer::Smb(smb) => {
            // What a stop leaves to tidy up needs a connection that it does not close.
            let keep = Box::new(move |stream: &_| if control.is_stopped() { Ok(()) } else { control.keep(stream) });
            let folder = self::smb::SmbFolder::connect(smb, assignment.password.as_ref(), make, keep)?;
            (Box::new(folder), smb.to_string().into())
        }
    })
}

/// Begins a session with the NFS server of an agent, which is to be shown `key`: its folder, and its name for people.
pub(crate) fn connect_agent(
    server: SocketAddr,
    key: &SessionKey,
    control: &Arc<Control>,
) -> Result<(Box<dyn Storage>, PathBuf), CopyError> {
    let control = Arc::clone(control);
    let stopped = Box::new(move || control.is_stopped());
    Ok((Box::new(NfsFolder::of_agent(server, key, stopped)?), server.to_string().into()))
}
