//! What a copy goes from and to: hosts, or a folder of a file server.

use super::share::is_share;
use super::{Arguments, DISCARD};
use crate::commands::nfs::{Target, named};
use crate::exit::Failure;
use crate::hosts::LOCAL;
use linerate_model::{CopyWay, FileServer, HostName};

/// Both ends as they were typed.
pub(super) struct Ends {
    pub(super) sources: End,
    pub(super) destinations: End,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    Hosts(Vec<String>),
    Server { name: HostName, server: FileServer },
}

impl End {
    fn local() -> Self {
        Self::Hosts(vec![LOCAL.to_owned()])
    }

    /// Its hosts, if it has any.
    pub(super) fn hosts(&self) -> &[String] {
        match self {
            Self::Hosts(hosts) => hosts,
            Self::Server { .. } => &[],
        }
    }

    pub(super) fn server(&self) -> Option<&FileServer> {
        match self {
            Self::Hosts(_) => None,
            Self::Server { server, .. } => Some(server),
        }
    }
}

/// Reads both ends.
pub(super) fn read(arguments: &Arguments) -> Result<Ends, Failure> {
    let listed: Vec<String> = arguments.to.iter().filter(|to| *to != DISCARD).cloned().collect();
    let ends: Vec<End> = arguments.hosts.iter().map(|text| end(arguments, text)).collect::<Result<_, _>>()?;
    if arguments.over == CopyWay::Path {
        return within(&ends, &listed);
    }
    let discards = arguments.discards();
    let (sources, destinations) = match (&ends[..], &listed[..]) {
        ([End::Server { .. }, End::Server { .. }], _) => {
            return Err(Failure::usage(
                "a file server at both ends: copy from it to a host, then from there to the other",
            ));
        }
        ([_, End::Server { .. }], _) if discards => {
            return Err(Failure::usage("--to discard keeps nothing: it does not go with a file server as destination"));
        }
        ([from, to], []) => (from.clone(), to.clone()),
        ([server @ End::Server { .. }], []) if discards => (server.clone(), End::local()),
        ([to], []) => (End::local(), to.clone()),
        ([], to) if !to.is_empty() => (End::local(), End::Hosts(to.to_vec())),
        ([from], to) => (from.clone(), End::Hosts(to.to_vec())),
        ([], _) => return Err(Failure::usage("name a source and a destination, or a destination alone")),
        _ => return Err(Failure::usage("destinations are named twice: behind the source, and with --to")),
    };
    if sources.server().or(destinations.server()).is_none()
        && let Some(option) = arguments.server.given().or(arguments.server_load.given())
    {
        return Err(Failure::usage(format!(
            "{option} is for a server that is there already, given as SERVER:/EXPORT or //SERVER/SHARE"
        )));
    }
    let share = matches!(sources.server().or(destinations.server()), Some(FileServer::Smb(_)));
    if let Some(option) = arguments.smb.given().filter(|_| !share) {
        return Err(Failure::usage(format!("{option} is for an SMB server, given as //SERVER/SHARE")));
    }
    if arguments.over == CopyWay::Smb && !share {
        return Err(Failure::usage("--over smb goes to or from a share: give one as //SERVER/SHARE"));
    }
    Ok(Ends { sources, destinations })
}

fn within(ends: &[End], listed: &[String]) -> Result<Ends, Failure> {
    let sources = match ends {
        _ if !listed.is_empty() => {
            return Err(Failure::usage("--over path copies within a host: --to takes no host then"));
        }
        [] => End::local(),
        [hosts] => hosts.clone(),
        _ => return Err(Failure::usage("--over path copies within a host: name that one alone")),
    };
    Ok(Ends { sources, destinations: End::Hosts(Vec::new()) })
}

fn end(arguments: &Arguments, text: &str) -> Result<End, Failure> {
    let ip = arguments.family.ip();
    if is_share(text) {
        if arguments.over != CopyWay::Smb {
            return Err(Failure::usage(format!("{text} is a share of an SMB server: it goes with --over smb")));
        }
        let server = arguments.smb.at(text, ip).map_err(Failure::usage)?;
        return Ok(End::Server { name: HostName(server.to_string()), server: FileServer::Smb(server) });
    }
    match Target::read(text).map_err(Failure::usage)? {
        Target::Agent => Ok(End::Hosts(text.split(',').map(str::to_owned).collect())),
        Target::Server { .. } if arguments.over != CopyWay::Nfs => {
            Err(Failure::usage(format!("{text} is an export of an NFS server: it goes with --over nfs")))
        }
        Target::Server { server, export } => {
            without_zone(&server).map_err(Failure::usage)?;
            let name = named(&server, &export);
            let server = arguments.server.at(&server, export, ip).map_err(Failure::usage)?;
            Ok(End::Server { name, server: FileServer::Nfs(server) })
        }
    }
}

/// Refuses a server with a zone: connections of copies are bound to no interface.
pub(super) fn without_zone(server: &str) -> Result<(), String> {
    if server.contains('%') {
        return Err(format!(
            "a copy cannot reach the file server {server} by a link-local address: give another of its addresses"
        ));
    }
    Ok(())
}
