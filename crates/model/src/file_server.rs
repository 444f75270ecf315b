//! A file server that is an end of a copy.

use crate::NfsServer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;

/// A folder of a file server: how it is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileServer {
    /// Of an NFS server that is there already. `export` may lead to a folder below the exported one.
    Nfs(NfsServer),
    /// What another host's agent serves by NFS for this copy, to nobody else.
    AgentNfs(SocketAddr),
    /// Of an SMB server.
    Smb(SmbServer),
}

/// The port of SMB over TCP (MS-SMB2 1.9).
pub const SMB_PORT: u16 = 445;

/// A share of an SMB server, and a folder in it. The user's password is not a part of it: it must not get into a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SmbServer {
    /// Its address.
    pub address: SocketAddr,
    /// Its name, as it was given.
    pub name: String,
    /// The share.
    pub share: String,
    /// The folder below it, `/` between the names; empty for the share itself.
    pub folder: String,
    /// Who logs in: `NAME`, `DOMAIN\\NAME` or `NAME@DOMAIN`.
    pub user: String,
}

/// `//NAME/SHARE/FOLDER`, with the port if it is not SMB's.
impl fmt::Display for SmbServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, name, share, folder, .. } = self;
        match name.contains(':') {
            true => write!(formatter, "//[{name}]")?,
            false => write!(formatter, "//{name}")?,
        }
        if address.port() != SMB_PORT {
            write!(formatter, ":{}", address.port())?;
        }
        let slash = if folder.is_empty() { "" } else { "/" };
        write!(formatter, "/{share}{slash}{folder}")
    }
}

/// A password, which agents are told and nobody else.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Password(pub String);

/// It stays out of logs.
impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_shown_as_it_is_typed() {
        let shown = |address: &str, name: &str, folder: &str| {
            let address = address.parse().expect("an address");
            let [name, share, folder, user] = [name, "data", folder, "ann"].map(str::to_owned);
            SmbServer { address, name, share, folder, user }.to_string()
        };
        assert_eq!(shown("192.0.2.5:445", "filer", ""), "//filer/data");
        assert_eq!(shown("192.0.2.5:4450", "filer", "a/b"), "//filer:4450/data/a/b");
        assert_eq!(shown("[2001:db8::1]:4450", "2001:db8::1", ""), "//[2001:db8::1]:4450/data");
        assert_eq!(format!("{:?}", Password(String::from("secret"))), "Password(..)");
    }
}
