//! Roles in a copy: which go together with what is asked, how many connections they have, and what they need.

use crate::CopyError;
use crate::block::{BLOCK, BLOCKS, FILES};
use crate::connection::STRANGERS;
use crate::control::FAULTS_MEMORY;
use crate::destination::folder_list::FOLDER_LIST_MEMORY;
use linerate_engine::{ForeignServer, Needs};
use linerate_model::{
    CopyCache, CopyExisting, CopyFrom, CopyInto, CopyOptions, CopyTask, CopyTree, CopyVerify, FileServer, Power, Role,
    RoleKind,
};
use linerate_nfsd::NfsShare;

/// Checks that `role` can do its part of `task`.
///
/// # Errors
/// Names the options that do not go together.
pub(crate) fn check(task: &CopyTask, role: &Role) -> Result<(), CopyError> {
    let impossible = |why: &str| Err(CopyError::Impossible(why.to_owned()));
    let CopyOptions { verify, existing, .. } = task.options;
    let (reads, writes) = match &role.kind {
        RoleKind::Source | RoleKind::Destination if role.connects.is_empty() && role.listens.is_empty() => {
            return impossible("a source or destination needs a link to the other");
        }
        RoleKind::Source => (true, false),
        RoleKind::FileServer if role.listens.is_empty() => {
            return impossible("a file server needs a link to listen on");
        }
        RoleKind::Destination | RoleKind::FileServer => (false, true),
        RoleKind::Copier { .. } => (true, role.connects.is_empty()),
        _ => return impossible("a copy has sources, destinations, copiers and file servers, and no other roles"),
    };
    task.options.check().map_err(|error| CopyError::Impossible(error.to_string()))?;
    if reads && task.from == CopyFrom::Memory && task.trees().iter().any(|tree| matches!(tree, CopyTree::Folder(_))) {
        return impossible("a folder is read from files; only a made tree, as like:system, can come from memory");
    }
    let discards = writes && task.into == CopyInto::Discard;
    match &role.kind {
        RoleKind::FileServer if discards => impossible("a folder is served; what is to be discarded goes nowhere"),
        RoleKind::FileServer if matches!(task.into, CopyInto::Server(_)) => {
            impossible("a host serves a folder of its own only")
        }
        _ if discards && (verify == CopyVerify::ReadBack || existing != CopyExisting::Refuse) => {
            impossible("what is discarded can neither be read back, nor replace or resume anything")
        }
        RoleKind::Copier { .. } if verify == CopyVerify::Received => {
            impossible("nothing is received where one host does it all; verify by reading back")
        }
        _ => Ok(()),
    }
}

/// Lanes of `role` on this host, those to file servers included.
pub(crate) fn flows(task: &CopyTask, role: &Role) -> u64 {
    let others = (role.connects.len() + role.listens.len()).max(1) as u64;
    others * u64::from(task.options.lanes)
}

/// Returns how many connections a copier has to a host's NFS server at the most: each lane's stages have some, and so
/// have its drafts.
pub(crate) fn nfs_callers(task: &CopyTask) -> usize {
    16 * usize::from(task.options.lanes) + 16
}

/// Returns the needs of `roles` of `task`. A copy needs leave to work on files even if it only generates them: it uses
/// the host's storage and processor.
pub(crate) fn needs(task: &CopyTask, roles: &[Role]) -> Needs {
    /// Stages of a reading and of a writing end side by side, and those that ask and answer.
    const THREADS: u64 = 10;
    /// A folder is walked with descriptors of its own, and a file server's connections come on top.
    const DESCRIPTORS: u64 = 64;
    let lanes = roles.iter().map(|role| flows(task, role)).fold(0, u64::saturating_add);
    let threads = lanes.saturating_mul(THREADS).saturating_add(roles.len() as u64 + 2);
    let blocks = (2 * BLOCKS * BLOCK) as u64;
    let is_server = |role: &&Role| matches!(role.kind, RoleKind::FileServer);
    let moving = roles.iter().filter(|role| !is_server(role)).map(|role| flows(task, role));
    let moving = moving.fold(0, u64::saturating_add);
    let shares = roles.iter().filter(is_server).map(|role| role.listens.len() as u64).fold(0, u64::saturating_add);
    let callers = nfs_callers(task);
    let reads = |role: &Role| matches!(role.kind, RoleKind::Source | RoleKind::Copier { .. });
    let writes = |role: &Role| match role.kind {
        RoleKind::Destination => true,
        RoleKind::Copier { .. } => role.connects.is_empty(),
        _ => false,
    };
    let links = |role: &Role| (role.connects.len() + role.listens.len()).max(1) as u64;
    let lists = roles.iter().filter(|role| writes(role) || matches!(role.kind, RoleKind::Copier { .. })).map(links);
    let lists = lists.fold(0, u64::saturating_add);
    let mut servers = Vec::new();
    if let CopyFrom::Server(server) = &task.from
        && roles.iter().any(reads)
    {
        servers.push(foreign(server));
    }
    if let CopyInto::Server(server) = &task.into
        && roles.iter().any(writes)
    {
        servers.push(foreign(server));
    }
    let listening = roles.iter().map(|role| role.listens.len() as u64).fold(0, u64::saturating_add);
    let powers = [Power::Files].into_iter().chain((!servers.is_empty()).then_some(Power::Servers));
    Needs {
        powers: powers.collect(),
        servers,
        cold_cache: task.options.cache == CopyCache::Cold,
        memory: moving
            .saturating_mul(blocks)
            .saturating_add(shares.saturating_mul(NfsShare::memory(callers)))
            .saturating_add(threads.saturating_mul(Needs::THREAD))
            .saturating_add(lists.saturating_mul(FOLDER_LIST_MEMORY))
            .saturating_add(FAULTS_MEMORY * roles.len() as u64),
        threads: threads.saturating_add(shares.saturating_mul(callers as u64)),
        descriptors: lanes
            .saturating_mul((FILES * BLOCKS) as u64)
            .saturating_add(DESCRIPTORS * roles.len() as u64)
            .saturating_add(listening.saturating_mul(STRANGERS.places as u64))
            .saturating_add(shares.saturating_mul(callers as u64)),
        ..Needs::default()
    }
}

/// Returns the use of a foreign server. The connect order names an agent's own server; a server that the task names is
/// foreign.
fn foreign(server: &FileServer) -> ForeignServer {
    match server {
        FileServer::Nfs(nfs) => {
            ForeignServer { address: nfs.address, export: nfs.export.clone(), user: Some((nfs.uid, nfs.gid)) }
        }
        FileServer::AgentNfs(address) => ForeignServer { address: address.ip(), export: String::from("/"), user: None },
        FileServer::Smb(smb) => {
            let slash = if smb.folder.is_empty() { "" } else { "/" };
            let export = format!("{}{slash}{}", smb.share, smb.folder);
            ForeignServer { address: smb.address.ip(), export, user: None }
        }
    }
}
