//! Operations on an NFS version 3 server (RFC 1813): what a trial asks of it, and what it counts.

use crate::checked::{OutOfRange, check_when_read, rate, within};
use crate::named;
use crate::{Arrivals, Histogram, Net, Path, Transport};
use linerate_units::{ByteCount, Nanos, OpRate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

/// A procedure of NFS version 3 (RFC 1813 section 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NfsOperation {
    Null,
    Getattr,
    Setattr,
    Lookup,
    Access,
    Readlink,
    Read,
    Write,
    Create,
    Mkdir,
    Symlink,
    Remove,
    Rmdir,
    Rename,
    Readdir,
    Readdirplus,
    Fsstat,
    Fsinfo,
    Pathconf,
    Commit,
}

impl NfsOperation {
    /// Every operation that a mix may hold, in the order of their procedure numbers.
    pub const ALL: [Self; 20] = [
        Self::Null,
        Self::Getattr,
        Self::Setattr,
        Self::Lookup,
        Self::Access,
        Self::Readlink,
        Self::Read,
        Self::Write,
        Self::Create,
        Self::Mkdir,
        Self::Symlink,
        Self::Remove,
        Self::Rmdir,
        Self::Rename,
        Self::Readdir,
        Self::Readdirplus,
        Self::Fsstat,
        Self::Fsinfo,
        Self::Pathconf,
        Self::Commit,
    ];

    /// Its name, as in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Getattr => "getattr",
            Self::Setattr => "setattr",
            Self::Lookup => "lookup",
            Self::Access => "access",
            Self::Readlink => "readlink",
            Self::Read => "read",
            Self::Write => "write",
            Self::Create => "create",
            Self::Mkdir => "mkdir",
            Self::Symlink => "symlink",
            Self::Remove => "remove",
            Self::Rmdir => "rmdir",
            Self::Rename => "rename",
            Self::Readdir => "readdir",
            Self::Readdirplus => "readdirplus",
            Self::Fsstat => "fsstat",
            Self::Fsinfo => "fsinfo",
            Self::Pathconf => "pathconf",
            Self::Commit => "commit",
        }
    }

    /// The class it is reported in.
    pub fn class(self) -> NfsClass {
        match self {
            Self::Read => NfsClass::Read,
            Self::Write => NfsClass::Write,
            _ => NfsClass::Other,
        }
    }
}

impl fmt::Display for NfsOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

named! {
    /// Operations of one kind: those that carry data, and all others.
    pub enum NfsClass as "class" {
        /// Read.
        Read = "read", "read";
        /// Write.
        Write = "write", "write";
        /// Everything else.
        Other = "other", "other";
    }
}

/// Which operations are asked for, and how often each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct NfsMix {
    /// What it is called, as in `sfs97-like`.
    pub name: String,
    /// Percent of all operations; they add up to 100. An operation is one call: a long read or write counts each of its
    /// calls.
    pub percent: BTreeMap<NfsOperation, f64>,
    /// How much its reads and writes move.
    #[serde(default)]
    pub sizes: IoSizes,
}

/// How much reads and writes move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IoSizes {
    /// Drawn from the tables of LADDIS and SFS, 1 to 135 KiB, made of calls of `transfer_bytes` at the most; 70 % of writes
    /// append.
    #[default]
    Laddis,
    /// `transfer_bytes` each, one after another through the file.
    Whole,
}

/// The files that operations work on. Their number and size come from the plan, never from the number of generators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct FileSet {
    /// Regular files.
    pub files: u32,
    /// Directories they lie in.
    pub directories: u32,
    /// Symbolic links.
    pub symlinks: u32,
    /// Bytes of each file before the load begins.
    pub file_bytes: ByteCount,
}

impl Default for FileSet {
    /// Files large enough for the longest read of the tables (135 KiB), 29 MB in all.
    fn default() -> Self {
        Self { files: 200, directories: 20, symlinks: 20, file_bytes: ByteCount::new(144 << 10) }
    }
}

impl FileSet {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        u64::from(self.files).saturating_mul(self.file_bytes.get())
    }

    /// How long its creation may take, and its removal: a millionth of a second for each byte (8 Mbit/s) and 10 ms for each
    /// name, at most [`FileSet::SET_UP_TIMEOUT_MAXIMUM`].
    pub fn set_up_timeout(&self) -> Nanos {
        let names = u64::from(self.files) + u64::from(self.directories) + u64::from(self.symlinks);
        let nanos = self.bytes().saturating_mul(1_000).saturating_add(names.saturating_mul(10_000_000));
        Nanos::new(nanos).min(Self::SET_UP_TIMEOUT_MAXIMUM)
    }

    /// Files, directories or links at the most.
    pub const NAMES_MAXIMUM: u32 = 1_000_000;
    /// Bytes of all files at the most: what is kept of each block takes memory.
    pub const BYTES_MAXIMUM: u64 = 4 << 30;

    /// Checks that it is not too large.
    ///
    /// # Errors
    /// It has too many names or bytes.
    pub fn check(&self) -> Result<(), OutOfRange> {
        if self.bytes() > Self::BYTES_MAXIMUM {
            return Err(OutOfRange(format!(
                "{} files of {} bytes are more than {} bytes; ask for fewer or smaller files",
                self.files,
                self.file_bytes.get(),
                Self::BYTES_MAXIMUM
            )));
        }
        within("files", self.files, 0..=Self::NAMES_MAXIMUM)?;
        within("directories", self.directories, 0..=Self::NAMES_MAXIMUM)?;
        within("symbolic links", self.symlinks, 0..=Self::NAMES_MAXIMUM)
    }

    /// No creation may take longer.
    pub const SET_UP_TIMEOUT_MAXIMUM: Nanos = Nanos::from_secs(600);
}

/// An NFS server that is there already. Nothing is known of it but what it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NfsServer {
    /// Its address.
    pub address: IpAddr,
    /// The exported directory.
    pub export: String,
    /// Port of its NFS service; none asks its portmapper.
    pub nfs_port: Option<u16>,
    /// Port of its MOUNT service; none asks its portmapper, or uses `nfs_port` where that is given.
    pub mount_port: Option<u16>,
    /// The user that calls are made as (AUTH_SYS, RFC 5531 appendix A).
    pub uid: u32,
    /// The user's group.
    pub gid: u32,
}

/// NFS operations from the client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct NfsTask {
    /// Who talks to whom; several paths run at once.
    pub paths: Vec<Path>,
    /// Transport, flows and sockets.
    pub net: Net,
    /// The server to ask. Without one, the agent at the server end starts its own for the trial.
    pub server: Option<NfsServer>,
    /// Which operations.
    pub mix: NfsMix,
    /// What they work on.
    pub files: FileSet,
    /// Bytes of one read or write call at the most; longer reads and writes are made of several.
    pub transfer_bytes: ByteCount,
    /// Operations under way at a time on each flow, at the most.
    pub outstanding: u16,
    /// Operations per second over all flows (open loop: response time counts from the intended time); none is a closed loop.
    pub rate: Option<OpRate>,
    /// When an open loop's operations are due.
    pub arrivals: Arrivals,
    /// Seed of all random draws: operations, files, data and arrivals.
    pub seed: u64,
}

impl NfsTask {
    /// The most that one read or write call over UDP can carry: a datagram's 65,507 bytes less headers, rounded down.
    pub const UDP_MAXIMUM: u64 = 60 << 10;
    /// The same over TCP.
    pub const TCP_MAXIMUM: u64 = 1 << 20;
    /// Operations under way on a flow at the most.
    pub const OUTSTANDING_MAXIMUM: u16 = 4_096;

    /// Checks the numbers that no NFS load can have, over whatever transport.
    ///
    /// # Errors
    /// One of them is out of its range.
    pub fn check(&self) -> Result<(), OutOfRange> {
        self.net.check_flows(Net::MOST_FLOWS_WITH_THREADS)?;
        within("bytes of a transfer", self.transfer_bytes.get(), 1..=Self::TCP_MAXIMUM)?;
        within("operations under way", self.outstanding, 1..=Self::OUTSTANDING_MAXIMUM)?;
        self.rate.map_or(Ok(()), |asked| rate("operations per second", asked.get()))
    }

    /// What is read and written comes in pieces of this.
    pub const UNIT: u64 = 1 << 10;

    /// `mix` on the server that the agent starts over IPv4, in transfers of 8 KiB as LADDIS and SFS use, one operation at a time in a
    /// closed loop.
    pub fn plain(transport: Transport, mix: NfsMix) -> Self {
        Self {
            paths: Vec::new(),
            net: Net::plain(transport),
            server: None,
            mix,
            files: FileSet::default(),
            transfer_bytes: ByteCount::new(8 << 10),
            outstanding: 1,
            rate: None,
            arrivals: Arrivals::Poisson,
            seed: 1,
        }
    }
}

check_when_read!(NfsMix, FileSet, NfsTask);

/// What became of the operations of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationCounts {
    /// Answered with success within the window.
    pub completed: u64,
    /// Answered with an error, by the name of its status (RFC 1813 section 2.6), as in `NFS3ERR_STALE`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// Bytes of file data read or written.
    pub bytes: u64,
    /// Bytes read that were not what had been written.
    pub corrupt_bytes: u64,
    /// From the intended time (closed loop: from the call) to the reply, nanoseconds.
    pub latency: Histogram,
}

/// What a server that linerate runs says of the calls it served within the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Service {
    /// Calls answered.
    pub calls: u64,
    /// From a call's arrival in this program until its reply is ready to be sent, nanoseconds.
    pub time: Histogram,
}
