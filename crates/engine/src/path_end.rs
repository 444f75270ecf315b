//! This host's ends of paths, as the roles of an assignment name them.

use crate::SocketError;
use crate::proof::link_key;
use linerate_model::{Assignment, LinkId, RoleKind, SessionKey};
use std::net::IpAddr;

/// End of a path at this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathEnd {
    /// Index of the path in the task.
    pub path: u16,
    /// Side of the path.
    pub side: Side,
}

/// Side of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Opens the path's connections.
    Client {
        /// Link that it connects to. `None` if the server runs no agent.
        link: Option<LinkId>,
    },
    /// Accepts them.
    Server {
        /// Link that it listens on.
        link: LinkId,
        /// Local address of the listener.
        address: IpAddr,
    },
}

impl PathEnd {
    /// Returns whether this end opens the connections.
    pub fn is_client(self) -> bool {
        matches!(self.side, Side::Client { .. })
    }

    /// Returns the key that both ends of its link prove, in the session of key `session`. Without a link nobody proves
    /// a key, so it is the session's own.
    pub fn key(self, session: &SessionKey) -> SessionKey {
        match self.side {
            Side::Client { link: None } => *session,
            Side::Client { link: Some(link) } | Side::Server { link, .. } => link_key(session, link),
        }
    }
}

/// Returns the end that each role of `assignment` is, in their order.
///
/// # Errors
/// [`SocketError::InvalidRequest`] names a role that is not an end of a path of the task, or lacks its link.
pub fn path_ends(assignment: &Assignment) -> Result<Vec<PathEnd>, SocketError> {
    let paths = assignment.task.paths().len();
    let mut ends = Vec::new();
    for role in &assignment.roles {
        let (path, side) = match (&role.kind, &role.connects[..], &role.listens[..]) {
            (RoleKind::Client { path }, [], []) => (*path, Side::Client { link: None }),
            (RoleKind::Client { path }, [link], []) => (*path, Side::Client { link: Some(*link) }),
            (RoleKind::Server { path }, [], [listen]) => {
                (*path, Side::Server { link: listen.link, address: listen.address })
            }
            (RoleKind::Client { path } | RoleKind::Server { path }, ..) => {
                let needed = "a client connects to one link at the most, and a server listens on one";
                return Err(SocketError::InvalidRequest(format!("path {path}: {needed}")));
            }
            (other, ..) => {
                let kind = assignment.task.kind();
                return Err(SocketError::InvalidRequest(format!(
                    "task {kind} has clients and servers only, not {other:?}"
                )));
            }
        };
        if usize::from(path) >= paths {
            return Err(SocketError::InvalidRequest(format!(
                "path {path}: the task has {paths} paths, counted from 0"
            )));
        }
        ends.push(PathEnd { path, side });
    }
    Ok(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Listen, Path, Role, RpcCall, RpcTask, SessionId, SessionKey, Task, Timing, Transport};
    use linerate_units::ByteCount;
    use std::net::Ipv4Addr;

    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn ends(kind: RoleKind, connects: &[u16], listens: &[u16]) -> Result<Vec<PathEnd>, String> {
        let paths = vec![Path::between("a", "b")];
        let plain = RpcTask::plain(Transport::Tcp, RpcCall::Null, ByteCount::new(0));
        let listen = |link: &u16| Listen { link: LinkId(*link), address: ADDRESS, folder: None };
        let role = Role {
            kind,
            listens: listens.iter().map(listen).collect(),
            connects: connects.iter().copied().map(LinkId).collect(),
        };
        let assignment = Assignment {
            id: SessionId(String::from("t")),
            key: SessionKey([0; 16]),
            task: Task::Rpc(RpcTask { paths, ..plain }),
            timing: Timing::UntilDone,
            roles: vec![role],
            password: None,
            sampling: linerate_model::Sampling::default(),
        };
        path_ends(&assignment).map_err(|error| error.to_string())
    }

    #[test]
    fn roles_are_ends_of_the_tasks_paths() {
        let client = RoleKind::Client { path: 0 };
        let server = RoleKind::Server { path: 0 };
        for (kind, connects, listens, side) in [
            (&client, &[7][..], &[][..], Side::Client { link: Some(LinkId(7)) }),
            (&client, &[], &[], Side::Client { link: None }),
            (&server, &[], &[7], Side::Server { link: LinkId(7), address: ADDRESS }),
        ] {
            assert_eq!(ends(kind.clone(), connects, listens), Ok(vec![PathEnd { path: 0, side }]));
        }
        for (kind, connects, listens, needle) in [
            (client.clone(), &[1, 2][..], &[][..], "one link at the most"),
            (client, &[], &[1], "one link at the most"),
            (server, &[], &[], "a server listens on one"),
            (RoleKind::Server { path: 1 }, &[], &[1], "path 1: the task has 1 paths"),
            (RoleKind::Source, &[], &[1], "clients and servers only, not Source"),
        ] {
            let error = ends(kind, connects, listens).expect_err(needle);
            assert!(error.contains(needle), "{error}");
        }
    }
}
