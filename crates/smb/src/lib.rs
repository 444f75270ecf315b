//! Files on SMB servers (SMB 2 and 3), for threads that block.
//!
//! A [`Session`] is one connection, logged in to one share. Its calls may be made by several threads at once, and each thread's are
//! answered in their own time. Content goes over it in large pieces, several of them on their way: [`Reader`], [`Writer`].
//!
//! It speaks MS-SMB2 from version 2.0.2 to 3.1.1, as a client that asks for no leases and follows no links: the version
//! (`negotiation`), logging in by NTLM (`login`, `spnego`, `ntlm`), the messages (`request`, `answer`, `wire`), their protection
//! (`crypto`), and the connection that they share (`connection`, `receiver`). Messages are signed and encrypted as the server or
//! [`Terms`] demand; they are never compressed. The login and what was negotiated are verified in any case, but for guests.
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
mod spnego;
mod version;
mod wire;
mod writer;

pub use error::{LoginError, SmbError};
pub use listing::Listing;
pub use login::{Login, Terms};
pub use path::check;
pub use reader::Reader;
pub use session::Session;
pub use version::Version;
pub use writer::Writer;

/// The steps in which SMB keeps times, nanoseconds (MS-DTYP 2.3.3, FILETIME).
pub const TIME_STEP: i64 = 100;

/// What is known of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// What it is.
    pub kind: Kind,
    /// Bytes of a file.
    pub size: u64,
    /// When its content was last changed, nanoseconds since 1970.
    pub modified: i64,
}

/// What something on a share is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A reparse point that leads to something else: a link.
    Reparse,
}

/// From 1601, where SMB's times begin, to 1970, in SMB's steps.
const EPOCH: i64 = 116_444_736_000_000_000;

/// A time for the server. Those from before 1601 and far ones do not exist there: the nearest one that does takes their place.
fn file_time(unix_ns: i64) -> u64 {
    // 0 would leave the time as it is.
    u64::try_from(unix_ns.div_euclid(TIME_STEP) + EPOCH).unwrap_or_default().max(1)
}

/// A server's time, nanoseconds since 1970.
fn unix_ns(file_time: u64) -> i64 {
    i64::try_from(file_time).unwrap_or(i64::MAX).saturating_sub(EPOCH).saturating_mul(TIME_STEP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_steps() {
        assert_eq!(file_time(0), 116_444_736_000_000_000);
        for time in [0, 100, -100, 1_700_000_000_123_456_700] {
            assert_eq!(unix_ns(file_time(time)), time);
        }
        assert_eq!(unix_ns(file_time(1_234_567_890_123_456_789)), 1_234_567_890_123_456_700);
        assert_eq!(file_time(i64::MIN), EPOCH as u64 - 92_233_720_368_547_759);
    }
}
