//! What went wrong, with the server's own status in its text.

use std::io;

/// Why a session could not be had.
#[derive(Debug, thiserror::Error)]
pub enum SmbError {
    /// The server did not answer as an SMB server does.
    #[error("{server} does not answer as an SMB server (version 2 or 3): {why}")]
    NoServer {
        /// Its address.
        server: String,
        /// What came instead.
        why: String,
    },
    /// The login was refused.
    #[error("{server} refused user `{user}`: {why}; {remedy}")]
    Refused {
        /// Its address.
        server: String,
        /// Who was to be logged in.
        user: String,
        /// The server's status.
        why: String,
        /// What to try.
        remedy: &'static str,
    },
    /// The signature of the server's answer to the login is not what it must be.
    #[error(
        "an answer of {server} to the login could not be verified: {why}; something on the way may have changed it"
    )]
    Unverified {
        /// Its address.
        server: String,
        /// What is wrong with it.
        why: String,
    },
    /// The share is not there, or not for this user.
    #[error("{server} has no share `{share}` for user `{user}`: {why}")]
    NoShare {
        /// Its address.
        server: String,
        /// The share.
        share: String,
        /// Who is logged in.
        user: String,
        /// The server's status.
        why: String,
    },
    /// The system refused something.
    #[error("{call}: {source}")]
    System {
        /// What was called.
        call: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// Statuses (MS-ERREF 2.3.1) that mean something here.
pub(crate) mod status {
    pub(crate) const NOT_FOUND: u32 = 0xC000_0034;
    pub(crate) const PATH_NOT_FOUND: u32 = 0xC000_003A;
    pub(crate) const END_OF_FILE: u32 = 0xC000_0011;
    pub(crate) const COLLISION: u32 = 0xC000_0035;
    const LOGON_FAILURE: u32 = 0xC000_006D;
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
    const SESSION_DELETED: u32 = 0xC000_0203;
    const NAME_DELETED: u32 = 0xC000_00C9;
    const SESSION_EXPIRED: u32 = 0xC000_035C;

    /// What it means to a copy, and its name.
    pub(crate) fn meaning(status: u32) -> Option<(std::io::ErrorKind, &'static str)> {
        use std::io::ErrorKind;
        Some(match status {
            NOT_FOUND => (ErrorKind::NotFound, "STATUS_OBJECT_NAME_NOT_FOUND"),
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
            SESSION_DELETED => (ErrorKind::NotConnected, "STATUS_USER_SESSION_DELETED"),
            NAME_DELETED => (ErrorKind::NotConnected, "STATUS_NETWORK_NAME_DELETED"),
            SESSION_EXPIRED => (ErrorKind::NotConnected, "STATUS_NETWORK_SESSION_EXPIRED"),
            _ => return None,
        })
    }
}

/// The server's status in an error, if it is one.
pub(crate) fn status_of(error: &smb::Error) -> Option<u32> {
    match error {
        smb::Error::ReceivedErrorMessage(status, _) | smb::Error::UnexpectedMessageStatus(status) => Some(*status),
        // Errors for content come as text only, and the status in it ends in a number.
        smb::Error::IoError(error) => status_in(&error.to_string()),
        _ => None,
    }
}

/// Whether a file ended before what was asked for.
pub(crate) fn is_end(error: &smb::Error) -> bool {
    status_of(error) == Some(status::END_OF_FILE)
}

/// The last hexadecimal number in a text about a status.
fn status_in(text: &str) -> Option<u32> {
    let number = &text[text.rfind("status: ").and_then(|_| text.rfind("0x"))? + 2..];
    let end = number.find(|letter: char| !letter.is_ascii_hexdigit()).unwrap_or(number.len());
    u32::from_str_radix(&number[..end], 16).ok()
}

/// As the system's own errors are.
pub(crate) fn to_io(error: &smb::Error) -> io::Error {
    match error {
        smb::Error::OperationTimeout(_, after) => {
            io::Error::new(io::ErrorKind::NotConnected, format!("the server did not answer for {after:?}"))
        }
        error => match status_of(error) {
            Some(status) => match status::meaning(status) {
                Some((kind, name)) => io::Error::new(kind, format!("the server says: {name}")),
                None => {
                    let name = smb::Status::try_display_as_status(status);
                    io::Error::other(format!("the server says: {name}"))
                }
            },
            None => io::Error::other(error.to_string()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_found_where_only_text_is_left() {
        let full = smb::Error::UnexpectedMessageStatus(0xC000_007F);
        for error in [&full, &smb::Error::IoError(io::Error::other(full.to_string()))] {
            assert_eq!(to_io(error).kind(), io::ErrorKind::StorageFull, "{error}");
        }
        let denied = smb::Error::UnexpectedMessageStatus(0xC000_0022);
        let denied = to_io(&smb::Error::IoError(io::Error::other(denied.to_string())));
        assert!(denied.to_string().contains("STATUS_ACCESS_DENIED"), "{denied}");
        let other = to_io(&smb::Error::UnexpectedMessageStatus(0xC000_9999));
        assert!(other.to_string().contains("0xc0009999"), "{other}");
        assert_eq!(status_of(&smb::Error::IoError(io::Error::other("read 0x10 bytes"))), None);
    }
}
