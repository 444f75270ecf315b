//! The engine for ONC RPC version 2 (RFC 5531): calls with any number under way, and the servers that answer them, over TCP
//! with record marking and over UDP with retransmission.
//!
//! One thread owns one connection or socket; it sends and takes calls and replies in batches, and shares nothing on the hot path.

mod client;
mod error;
mod flow;
mod folder;
mod half;
mod job;
mod load;
mod message;
mod nfs;
mod nfsd;
mod portmap;
mod privileged;
mod program;
mod record;
mod running;
mod server;
mod serving;
mod standing;

pub use error::RpcError;
pub use folder::{NfsAttributes, NfsDraft, NfsFolder, NfsFound, NfsKind, NfsListing, NfsReading, Stopped};
pub use half::{Half, Serve, prepare};
pub use nfsd::{NfsService, NfsShare, ServiceTime};
pub use program::{PROGRAM, VERSION};
pub use running::Running;
pub use standing::Standing;
