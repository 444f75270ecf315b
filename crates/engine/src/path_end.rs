//! This host's ends of paths, as the roles of an assignment name them.

use crate::SocketError;
use crate::proof::link_key;
use linerate_model::{Assignment, LinkId, Role, RoleKind, SessionKey};
use std::net::IpAddr;

/// One end of a path at this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathEnd {
    /// The path's index in the task.
    pub path: u16,
    /// Which end it is.
    pub side: Side,
}

/// Which end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Opens the path's connections.
    Client {
        /// The link it connects to; none if the server runs no agent.
        link: Option<LinkId>,
    },
    /// Accepts them.
    Server {
        /// The link it listens on.
        link: LinkId,
        /// The local address it listens at.
        address: IpAddr,
    },
}

impl PathEnd {
    /// Whether this end opens the connections.
    pub fn is_client(self) -> bool {
        matches!(self.side, Side::Client { .. })
    }

    /// Returns the key that both ends of its link prove, in the session of key `session`. Without a link nobody proves a key, so it
    /// is the session's own.
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
/// [`SocketError::InvalidRequest`] names a role that is no end of a path of the task, or has not the link it needs.
pub fn path_ends(assignment: &Assignment) -> Result<Vec<PathEnd>, SocketError> {
    let paths = assignment.task.paths().len();
    let end = |role: &Role| {
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
        Ok(PathEnd { path, side })
    };
    assignment.roles.iter().map(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::{Listen, Path, RpcCall, RpcTask, SessionId, SessionKey, Task, Timing, Transport};
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
        let (client, server) = (RoleKind::Client { path: 0 }, RoleKind::Server { path: 0 });
        let side = |side| Ok(vec![PathEnd { path: 0, side }]);
        assert_eq!(ends(client.clone(), &[7], &[]), side(Side::Client { link: Some(LinkId(7)) }));
        assert_eq!(ends(client.clone(), &[], &[]), side(Side::Client { link: None }));
        assert_eq!(ends(server.clone(), &[], &[7]), side(Side::Server { link: LinkId(7), address: ADDRESS }));
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
