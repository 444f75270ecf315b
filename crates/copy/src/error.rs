//! Errors that prevent a copy. A file that cannot be copied is a fault, not an error.

use linerate_engine::SocketError;
use linerate_units::ByteCount;
use std::io;
use std::path::Path;

/// Why a copy, or a host's part in it, could not be prepared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyError {
    /// The system refused something.
    #[error("{call} {object}: {source}")]
    System {
        call: &'static str,
        /// On what.
        object: String,
        source: io::Error,
    },
    /// A socket could not be made or used.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The agent's owner did not allow the folder.
    #[error(
        "{path}: this agent copies from and to {allowed} only; name a folder below, or start it with `linerate serve \
         --copy-directory DIR`"
    )]
    NotAllowed { path: String, allowed: String },
    /// The agent's owner allowed no folder at all.
    #[error(
        "this agent has no folder to copy from or to; start it with `linerate serve --copy-directory DIR`, or use \
         `--from memory` at the source and `--to discard` at the destination"
    )]
    NoFolder,
    /// The destination holds something.
    #[error(
        "{path} is not empty; empty it, or give --existing replace to replace files of the same names, or --existing resume to continue an interrupted copy"
    )]
    NotEmpty {
        /// The folder.
        path: String,
    },
    /// The tree does not fit.
    #[error("the tree of {needed} does not fit into {path}, where {free} are free; make room, or name another folder")]
    NoRoom {
        /// The folder.
        path: String,
        /// Bytes of the tree.
        needed: ByteCount,
        /// Bytes free.
        free: ByteCount,
    },
    /// The options do not go together.
    #[error("{0}")]
    Impossible(String),
    /// The made tree could not be written.
    #[error("making the tree: {0}")]
    NotMade(String),
    /// The other end did not come.
    #[error("{0}; is a firewall between the hosts?")]
    NoConnection(String),
    /// A file server, or serving files, failed.
    #[error(transparent)]
    Nfs(#[from] linerate_oncrpc::RpcError),
    /// The build does not include SMB.
    #[cfg(not(feature = "smb"))]
    #[error("this linerate was built without SMB: build it with `--features smb`")]
    NoSmb,
    /// An SMB server did not let it in.
    #[cfg(feature = "smb")]
    #[error("{0}{remedy}", remedy = smb_remedy(.0))]
    Smb(#[from] linerate_smb::SmbError),
    /// The copy was stopped.
    #[error("stopped before the copy began")]
    Stopped,
}

impl CopyError {
    /// For `map_err`: the call that failed, and on what.
    pub(crate) fn at(call: &'static str, object: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let object = object.display().to_string();
        move |source| Self::System { call, object, source }
    }
}

/// Returns the remedy, as the end of the sentence that reports the error.
#[cfg(feature = "smb")]
fn smb_remedy(error: &linerate_smb::SmbError) -> &'static str {
    use linerate_smb::{LoginError, SmbError};
    match error {
        SmbError::Refused { cause, .. } => match cause {
            LoginError::BadName => "; write NAME, DOMAIN\\NAME or NAME@DOMAIN",
            LoginError::NoNtlm => "; does it take NTLM? linerate has no Kerberos",
            LoginError::UserOrPassword => {
                "; check --user, and the password in LINERATE_SMB_PASSWORD or --password-file"
            }
            LoginError::TakenForGuest => {
                "; does the server know this user? Name one that it knows (on Samba, `smbpasswd -a NAME` adds one), or --user guest \
                 where a guest will do, whose messages nothing protects"
            }
            LoginError::GuestCannotSign => "; name a user that the server knows, or leave --smb-sign out",
            LoginError::Other => "; the server's log may tell more",
        },
        SmbError::TooOld { .. } => "; `--smb-min 2.0.2` allows the earlier ones, whose login is protected less",
        SmbError::Unverified { .. } => "; --smb-sign asks for signatures",
        SmbError::NoServer { .. } | SmbError::NoShare { .. } | SmbError::System { .. } => "",
    }
}

#[cfg(all(test, feature = "smb"))]
mod tests {
    use super::*;
    use linerate_smb::{LoginError, SmbError, Version};

    #[test]
    fn who_is_not_let_in_is_told_what_to_try() {
        let refused = |cause| {
            let [server, user, why] = ["192.0.2.5", "alice", "it says no"].map(str::to_owned);
            CopyError::from(SmbError::Refused { server, user, why, cause }).to_string()
        };
        for (cause, remedy) in [
            (LoginError::UserOrPassword, "it says no; check --user, and the password in LINERATE_SMB_PASSWORD"),
            (LoginError::TakenForGuest, "`smbpasswd -a NAME`"),
            (LoginError::GuestCannotSign, "leave --smb-sign out"),
            (LoginError::BadName, "NAME@DOMAIN"),
            (LoginError::NoNtlm, "Kerberos"),
            (LoginError::Other, "the server's log"),
        ] {
            let said = refused(cause);
            assert!(
                said.starts_with("192.0.2.5 refused user `alice`: it says no; ") && said.contains(remedy),
                "{said}"
            );
        }
        let too_old = SmbError::TooOld { server: "192.0.2.5".to_owned(), minimum: Version::V3_1_1 };
        let said = CopyError::from(too_old).to_string();
        assert!(said.contains("from 3.1.1 on; `--smb-min 2.0.2`"), "{said}");
    }
}
