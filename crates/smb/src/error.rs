//! Errors, with the server's status in their text.

use crate::version::Version;
use std::sync::Arc;
use std::{fmt, io};

/// Why a session could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SmbError {
    /// The server did not answer as an SMB server does.
    #[error("{server} does not answer as an SMB server (version 2 or 3): {why}")]
    NoServer {
        /// Its address.
        server: String,
        /// Reason, such as the unexpected answer.
        why: String,
    },
    /// The login was refused.
    #[error("{server} refused user `{user}`: {why}")]
    Refused {
        /// Its address.
        server: String,
        /// User of the login.
        user: String,
        /// The server's status, or what is wrong with the user.
        why: String,
        /// Cause, for remedies.
        cause: LoginError,
    },
    /// The server speaks no offered version.
    #[error("{server} speaks no version of SMB from {minimum} on")]
    TooOld {
        /// Its address.
        server: String,
        /// The earliest version that was offered.
        minimum: Version,
    },
    /// The signature of the server's answer to the login is not what it must be.
    #[error(
        "an answer of {server} to the login could not be verified: {why}; something on the way may have changed it"
    )]
    Unverified {
        /// Its address.
        server: String,
        /// Reason.
        why: String,
    },
    /// The share is not there, or not for this user.
    #[error("{server} has no share `{share}` for user `{user}`: {why}")]
    NoShare {
        /// Its address.
        server: String,
        /// The share.
        share: String,
        /// User of the session.
        user: String,
        /// The server's status.
        why: String,
    },
    /// The system refused something.
    #[error("{call}: {source}")]
    System {
        /// Name of the system call.
        call: &'static str,
        /// Error of the system.
        source: io::Error,
    },
}

/// Why a login is refused, so that a program can say what to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginError {
    /// The name is not written as a user's: `NAME`, `DOMAIN\\NAME` or `NAME@DOMAIN`.
    BadName,
    /// The server takes no NTLM, which is all that is spoken here.
    NoNtlm,
    /// The server does not know the user, or the password is wrong.
    UserOrPassword,
    /// The server would take the user for a guest.
    TakenForGuest,
    /// A guest has no key, and [`Terms`](crate::Terms) ask for signatures.
    GuestCannotSign,
    /// Another status of the server's.
    Other,
}

/// Statuses (MS-ERREF 2.3.1) that mean something here.
pub(crate) mod status {
    /// Status of a login with one more step.
    pub(crate) const MORE: u32 = 0xC000_0016;
    /// Status of a listing without further names, or without a match.
    pub(crate) const NO_MORE_FILES: u32 = 0x8000_0006;
    pub(crate) const NO_SUCH_FILE: u32 = 0xC000_000F;
    const NOT_FOUND: u32 = 0xC000_0034;
    const PATH_NOT_FOUND: u32 = 0xC000_003A;
    pub(crate) const END_OF_FILE: u32 = 0xC000_0011;
    pub(crate) const COLLISION: u32 = 0xC000_0035;
    pub(crate) const LOGON_FAILURE: u32 = 0xC000_006D;
    const BAD_NETWORK_NAME: u32 = 0xC000_00CC;
    const ACCESS_DENIED: u32 = 0xC000_0022;
    const WRITE_PROTECTED: u32 = 0xC000_00A2;
    const DISK_FULL: u32 = 0xC000_007F;
    const QUOTA_EXCEEDED: u32 = 0xC000_0044;
    const SHARING_VIOLATION: u32 = 0xC000_0043;
    const NAME_INVALID: u32 = 0xC000_0033;
    const DELETE_PENDING: u32 = 0xC000_0056;
    const NOT_A_DIRECTORY: u32 = 0xC000_0103;
    const IS_A_DIRECTORY: u32 = 0xC000_00BA;
    /// Status of a negotiation without a common version (MS-SMB2 3.3.5.4).
    pub(crate) const NOT_SUPPORTED: u32 = 0xC000_00BB;
    pub(crate) const INVALID_DEVICE_REQUEST: u32 = 0xC000_0010;
    pub(crate) const FILE_CLOSED: u32 = 0xC000_0128;
    pub(crate) const SESSION_DELETED: u32 = 0xC000_0203;
    const NAME_DELETED: u32 = 0xC000_00C9;
    const SESSION_EXPIRED: u32 = 0xC000_035C;

    /// Returns the kind of I/O error and the name of a status.
    pub(crate) fn meaning(status: u32) -> Option<(std::io::ErrorKind, &'static str)> {
        use std::io::ErrorKind;
        Some(match status {
            NOT_FOUND => (ErrorKind::NotFound, "STATUS_OBJECT_NAME_NOT_FOUND"),
            NO_SUCH_FILE => (ErrorKind::NotFound, "STATUS_NO_SUCH_FILE"),
            PATH_NOT_FOUND => (ErrorKind::NotFound, "STATUS_OBJECT_PATH_NOT_FOUND"),
            COLLISION => (ErrorKind::AlreadyExists, "STATUS_OBJECT_NAME_COLLISION"),
            ACCESS_DENIED => (ErrorKind::PermissionDenied, "permission denied, STATUS_ACCESS_DENIED"),
            WRITE_PROTECTED => (ErrorKind::ReadOnlyFilesystem, "it is read-only, STATUS_MEDIA_WRITE_PROTECTED"),
            DISK_FULL => (ErrorKind::StorageFull, "no room is left, STATUS_DISK_FULL"),
            QUOTA_EXCEEDED => (ErrorKind::QuotaExceeded, "the quota is used up, STATUS_QUOTA_EXCEEDED"),
            SHARING_VIOLATION => (ErrorKind::ResourceBusy, "another program has it open, STATUS_SHARING_VIOLATION"),
            NAME_INVALID => (ErrorKind::InvalidFilename, "STATUS_OBJECT_NAME_INVALID"),
            LOGON_FAILURE => (ErrorKind::PermissionDenied, "STATUS_LOGON_FAILURE"),
            BAD_NETWORK_NAME => (ErrorKind::NotFound, "STATUS_BAD_NETWORK_NAME"),
            DELETE_PENDING => (ErrorKind::ResourceBusy, "STATUS_DELETE_PENDING"),
            NOT_A_DIRECTORY => (ErrorKind::NotADirectory, "STATUS_NOT_A_DIRECTORY"),
            IS_A_DIRECTORY => (ErrorKind::IsADirectory, "STATUS_FILE_IS_A_DIRECTORY"),
            NOT_SUPPORTED => (ErrorKind::Unsupported, "STATUS_NOT_SUPPORTED"),
            SESSION_DELETED => (ErrorKind::NotConnected, "STATUS_USER_SESSION_DELETED"),
            NAME_DELETED => (ErrorKind::NotConnected, "STATUS_NETWORK_NAME_DELETED"),
            SESSION_EXPIRED => (ErrorKind::NotConnected, "STATUS_NETWORK_SESSION_EXPIRED"),
            _ => return None,
        })
    }
}

/// Why a call failed.
#[derive(Debug, Clone)]
pub(crate) enum CallError {
    /// The server says so.
    Status(u32),
    /// The server sent an answer that cannot be understood; the text names the part.
    Malformed(&'static str),
    /// The connection is of no more use.
    Lost(Arc<str>),
}

impl CallError {
    /// Converts to an I/O error; `server` is the server of the connection.
    pub(crate) fn into_io(self, server: &str) -> io::Error {
        match &self {
            Self::Status(status) => match status::meaning(*status) {
                Some((kind, _)) => io::Error::new(kind, self.to_string()),
                None => io::Error::other(self.to_string()),
            },
            Self::Malformed(_) => io::Error::new(io::ErrorKind::InvalidData, self.to_string()),
            Self::Lost(why) => {
                io::Error::new(io::ErrorKind::NotConnected, format!("the connection to {server} is lost: {why}"))
            }
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => match status::meaning(*status) {
                Some((_, name)) => write!(out, "the server says: {name}"),
                None => write!(out, "the server says: status {status:#010x} (MS-ERREF 2.3.1)"),
            },
            Self::Malformed(what) => write!(out, "the server sent what is not understood: {what}"),
            Self::Lost(why) => out.write_str(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_its_kind_and_its_name() {
        let full = CallError::Status(0xC000_007F).into_io("x");
        assert_eq!((full.kind(), full.to_string().contains("STATUS_DISK_FULL")), (io::ErrorKind::StorageFull, true));
        let other = CallError::Status(0xC000_9999).into_io("x").to_string();
        assert!(other.contains("0xc0009999"), "{other}");
        let lost = CallError::Lost("it was silent".into()).into_io("192.0.2.1");
        assert_eq!(lost.kind(), io::ErrorKind::NotConnected);
        assert_eq!(lost.to_string(), "the connection to 192.0.2.1 is lost: it was silent");
    }
}
