//! The embedded server: NFS version 3 and MOUNT version 3 (RFC 1813) on one port, of a tree of files in memory or of a
//! directory.
//!
//! A trial's server is fresh, and is called only by those that hold the trial's key. All procedures are there; MKNOD
//! and LINK answer NFS3ERR_NOTSUPP. Whoever holds the key may do with the tree what the store lets this process do:
//! there are no users.

mod arguments;
#[cfg(target_os = "linux")]
mod directory;
#[cfg(not(target_os = "linux"))]
#[path = "no_directory.rs"]
mod directory;
mod handle;
mod listing;
mod memory;
mod mount;
mod once;
mod pace;
mod procedures;
mod reply;
mod share;
mod store;
#[cfg(test)]
mod tests;
mod transfer;

pub use pace::ServiceTime;
pub use share::NfsShare;

use arguments::Arguments;
use linerate_model::Transport;
use linerate_oncrpc::message::Refused;
use linerate_oncrpc::server::{Call, Program};
use linerate_oncrpc::{ProgramSource, RpcError};
use linerate_units::ByteCount;
use memory::MemoryStore;
use mount::Mount;
use nfs3_types::nfs3::{NFS_PROGRAM, PROGRAM, VERSION};
use once::Once;
use pace::Pace;
use std::io;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use store::Store;

/// The most bytes of one transfer over TCP.
const TCP_MAXIMUM: u32 = 1 << 20;
/// The most over UDP: what leaves room for the headers in a datagram of 65,507 bytes, in a round number.
const UDP_MAXIMUM: u32 = 56 << 10;

/// Content and speed of the embedded NFS server. The user who starts an agent sets them; plans have no such option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NfsService {
    /// Directory to serve; `None` serves a tree in memory, new for each trial.
    pub directory: Option<PathBuf>,
    /// The most memory that the trees of one session may take together, or what its callers learn of a directory.
    pub memory: ByteCount,
    /// A planted limit.
    pub time: ServiceTime,
}

impl Default for NfsService {
    fn default() -> Self {
        Self { directory: None, memory: ByteCount::new(1 << 30), time: ServiceTime::default() }
    }
}

impl NfsService {
    /// Checks that the directory, if there is one, can be served.
    pub fn check(&self) -> Result<(), RpcError> {
        self.open(self.memory.get()).map(drop)
    }

    fn open(&self, memory: u64) -> Result<Arc<dyn Store>, RpcError> {
        let Some(path) = &self.directory else { return Ok(Arc::new(MemoryStore::new(memory))) };
        directory::open(path, memory).map_err(|error| cannot_serve(&path.display().to_string(), &error))
    }
}

fn cannot_serve(directory: &str, error: &io::Error) -> RpcError {
    let remedy = directory::remedy(error);
    RpcError::InvalidRequest(format!("cannot serve {directory} by NFS: {error}; {remedy}"))
}

impl ProgramSource for NfsService {
    fn memory(&self) -> u64 {
        self.memory.get()
    }

    fn programs(&self, servers: u64) -> Result<Vec<Arc<dyn Program>>, RpcError> {
        Ok(programs(self.open(self.memory.get() / servers.max(1))?, self.time))
    }
}

/// NFS and MOUNT of `store`.
fn programs(store: Arc<dyn Store>, time: ServiceTime) -> Vec<Arc<dyn Program>> {
    let nfs = Nfs { store: Arc::clone(&store), pace: Pace::new(time), once: Once::default() };
    vec![Arc::new(nfs), Arc::new(Mount::new(store))]
}

/// The program NFS.
struct Nfs {
    store: Arc<dyn Store>,
    pace: Pace,
    once: Once,
}

impl Program for Nfs {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        VERSION..=VERSION
    }

    fn call(&self, call: &Call<'_>, reply: &mut Vec<u8>) -> Result<Option<u64>, Refused> {
        let procedure = NFS_PROGRAM::try_from(call.procedure).map_err(|_| Refused::ProcedureUnavailable)?;
        if procedure == NFS_PROGRAM::NFSPROC3_NULL {
            return Ok(None);
        }
        let maximum = match call.transport {
            Transport::Tcp => TCP_MAXIMUM,
            Transport::Udp => UDP_MAXIMUM,
        };
        let act = |reply: &mut Vec<u8>| {
            procedures::execute(&*self.store, maximum, procedure, &mut Arguments::new(call.args), reply)
        };
        if call.transport == Transport::Udp && changes_names_or_attributes(procedure) {
            self.once.or(call, reply, act)?;
        } else {
            act(reply)?;
        }
        let writes = matches!(procedure, NFS_PROGRAM::NFSPROC3_WRITE | NFS_PROGRAM::NFSPROC3_COMMIT);
        Ok(self.pace.due(call.arrived_ns, writes))
    }
}

/// Done twice, it may fail or do harm the second time.
fn changes_names_or_attributes(procedure: NFS_PROGRAM) -> bool {
    matches!(
        procedure,
        NFS_PROGRAM::NFSPROC3_SETATTR
            | NFS_PROGRAM::NFSPROC3_CREATE
            | NFS_PROGRAM::NFSPROC3_MKDIR
            | NFS_PROGRAM::NFSPROC3_SYMLINK
            | NFS_PROGRAM::NFSPROC3_REMOVE
            | NFS_PROGRAM::NFSPROC3_RMDIR
            | NFS_PROGRAM::NFSPROC3_RENAME
    )
}
