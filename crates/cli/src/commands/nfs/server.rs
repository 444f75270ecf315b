//! How an NFS server that is there already is reached.

use crate::server_address::resolve;
use linerate_model::{IpVersion, NfsServer};
use linerate_sys::user::nfs_ids;

/// Its options, the same for each command that takes `SERVER:/EXPORT`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Existing NFS server")]
pub(in crate::commands) struct Server {
    /// Port of the NFS service [default: from the server's portmapper]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), hide_short_help = true)]
    nfs_port: Option<u16>,

    /// Port of the MOUNT service [default: from the server's portmapper; with --nfs-port the same port]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..), hide_short_help = true)]
    mount_port: Option<u16>,

    /// User ID of the calls (AUTH_SYS) [default: this user's]
    #[arg(long, value_name = "N", hide_short_help = true)]
    uid: Option<u32>,

    /// Group ID of the calls (AUTH_SYS) [default: this user's]
    #[arg(long, value_name = "N", hide_short_help = true)]
    gid: Option<u32>,
}

impl Server {
    /// The first option given.
    pub(in crate::commands) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--nfs-port", self.nfs_port.is_some()),
            ("--mount-port", self.mount_port.is_some()),
            ("--uid", self.uid.is_some()),
            ("--gid", self.gid.is_some()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }

    /// The server called `name`, and one of its exports.
    pub(in crate::commands) fn at(&self, name: &str, export: String, ip: IpVersion) -> Result<NfsServer, String> {
        let ids = nfs_ids();
        Ok(NfsServer {
            address: resolve(name, ip)?,
            export,
            nfs_port: self.nfs_port,
            mount_port: self.mount_port,
            uid: self.uid.or(ids.map(|ids| ids.user)).unwrap_or_default(),
            gid: self.gid.or(ids.map(|ids| ids.group)).unwrap_or_default(),
        })
    }
}
