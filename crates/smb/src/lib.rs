//! Files on SMB servers (SMB 2 and 3), for threads that block.
//!
//! A [`Session`] is one connection, logged in to one share. Its calls may be made by several threads at once, and each
//! thread's are answered in their own time. Content goes over it in large pieces, several of them on their way:
//! [`Reader`], [`Writer`].
//!
//! The client speaks MS-SMB2 from version 2.0.2 to 3.1.1, asks for no leases and follows no links. Its parts are the
//! version (`negotiation`), the login by NTLM (`login`, `spnego`, `ntlm`), the messages (`request`, `answer`, `wire`),
//! their protection (`crypto`), the shared connection (`connection`, `receiver`), and the share (`tree`). Messages are
//! signed and encrypted as the server or [`Terms`] demand; they are never compressed. The login and what was negotiated
//! are verified in any case, but for guests.
//!
//! Paths are below the share, `/` between the names. What SMB cannot hold as a name is refused, never changed (`path`).
#![warn(missing_docs)]

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod answer;
mod connection;
mod crypto;
mod error;
mod file_info;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod listing;
mod login;
mod negotiation;
mod ntlm;
mod path;
mod pieces;
mod reader;
mod receiver;
mod request;
mod session;
mod socket;
mod spnego;
mod tree;
mod version;
mod wire;
mod writer;

pub use error::{LoginError, SmbError};
pub use file_info::{FileInfo, Kind, TIME_STEP};
pub use listing::Listing;
pub use login::Login;
pub use negotiation::Terms;
pub use path::check;
pub use reader::Reader;
pub use session::Session;
pub use version::Version;
pub use writer::Writer;
