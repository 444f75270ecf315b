//! NFS version 3 (RFC 1813) as a caller: a load of operations on a server, linerate's own or any other, and folders of servers
//! for whoever copies them ([`NfsFolder`]).
//!
//! An operation is one call. Which comes next is dealt like cards (`deck`), so that a mix's shares hold exactly; long reads and
//! writes are made of several calls, which take their turns. The files are made beforehand and removed afterwards (`set`). Each
//! belongs to one flow, which knows what must be found in it (`files`, `versions`, `content`).

mod answers;
mod calls;
mod check;
mod content;
mod deck;
mod engine;
mod files;
mod folder;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod identity;
mod load;
mod mount;
mod session;
mod set;
mod sizes;
mod spares;
mod status;
mod versions;
mod work;

pub use engine::Nfs;
pub use folder::{NfsAttributes, NfsDraft, NfsFolder, NfsFound, NfsKind, NfsListing, NfsReading, Stopped};
