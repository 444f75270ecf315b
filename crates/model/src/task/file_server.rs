//! A file server that is an end of a copy.

use super::NfsServer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

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

impl FileServer {
    /// The folder `name` below this one.
    pub fn below(&self, name: &str) -> Self {
        let mut server = self.clone();
        match &mut server {
            Self::Nfs(nfs) => nfs.export = format!("{}/{name}", nfs.export.trim_end_matches('/')),
            Self::Smb(smb) if smb.folder.is_empty() => name.clone_into(&mut smb.folder),
            Self::Smb(smb) => smb.folder = format!("{}/{name}", smb.folder),
            // It serves one folder, and has no path.
            Self::AgentNfs(_) => {}
        }
        server
    }
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
    /// The earliest version of SMB that is spoken.
    #[serde(default)]
    pub minimum: SmbVersion,
    /// Whether every message is signed, also where the server does not require it.
    #[serde(default)]
    pub sign: bool,
}

/// Versions of SMB (MS-SMB2 1.7, dialects).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum SmbVersion {
    /// Windows Vista, Server 2008.
    #[serde(rename = "2.0.2")]
    V2_0_2,
    /// Windows 7, Server 2008 R2.
    #[serde(rename = "2.1")]
    V2_1,
    /// Windows 8, Server 2012.
    #[serde(rename = "3.0")]
    V3_0,
    /// Windows 8.1, Server 2012 R2.
    #[serde(rename = "3.0.2")]
    V3_0_2,
    /// Windows 10, Server 2016. The first one whose login binds all that was negotiated.
    #[default]
    #[serde(rename = "3.1.1")]
    V3_1_1,
}

/// A text that names no version of SMB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("choose 2.0.2, 2.1, 3.0, 3.0.2 or 3.1.1")]
pub struct UnknownSmbVersion;

impl SmbVersion {
    /// All of them, earliest first.
    pub const ALL: [Self; 5] = [Self::V2_0_2, Self::V2_1, Self::V3_0, Self::V3_0_2, Self::V3_1_1];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::V2_0_2 => "2.0.2",
            Self::V2_1 => "2.1",
            Self::V3_0 => "3.0",
            Self::V3_0_2 => "3.0.2",
            Self::V3_1_1 => "3.1.1",
        }
    }
}

impl fmt::Display for SmbVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

impl FromStr for SmbVersion {
    type Err = UnknownSmbVersion;

    fn from_str(name: &str) -> Result<Self, UnknownSmbVersion> {
        Self::ALL.into_iter().find(|version| version.name() == name).ok_or(UnknownSmbVersion)
    }
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
            SmbServer { address, name, share, folder, user, minimum: SmbVersion::default(), sign: false }.to_string()
        };
        assert_eq!(shown("192.0.2.5:445", "filer", ""), "//filer/data");
        assert_eq!(shown("192.0.2.5:4450", "filer", "a/b"), "//filer:4450/data/a/b");
        assert_eq!(shown("[2001:db8::1]:4450", "2001:db8::1", ""), "//[2001:db8::1]:4450/data");
        let filer = |folder: &str| {
            let address = "192.0.2.5:445".parse().expect("an address");
            let [name, share, folder, user] = ["filer", "data", folder, "ann"].map(str::to_owned);
            FileServer::Smb(SmbServer {
                address,
                name,
                share,
                folder,
                user,
                minimum: SmbVersion::default(),
                sign: false,
            })
        };
        assert_eq!((filer("").below("a"), filer("a").below("b/c")), (filer("a"), filer("a/b/c")));
        assert_eq!(format!("{:?}", Password(String::from("secret"))), "Password(..)");
    }
}
