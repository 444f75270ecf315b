//! NFS version 3 (RFC 1813) as a caller: a load of operations on a server, linerate's own or any other, and folders of
//! servers for copies ([`NfsFolder`]).
//!
//! An operation is one call. Operations come in shuffled batches (`operation_mix`), so that a mix's shares hold
//! exactly; long reads and writes consist of several calls. The files are created before the load and removed after it
//! (`set`). Each belongs to one flow, which knows its right content (`files`, `versions`, `content`).

mod answers;
mod calls;
mod check;
mod content;
mod engine;
mod files;
mod folder;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod identity;
mod load;
mod mount;
mod operation_mix;
mod session;
mod set;
mod sizes;
mod status;
mod transient_names;
mod versions;
mod work;

pub use engine::Nfs;
pub use folder::{NfsAttributes, NfsDraft, NfsFolder, NfsFound, NfsKind, NfsListing, NfsReading, Stopped};
