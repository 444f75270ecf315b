//! The client and the server of one path over loopback, for tests of engines.

use super::{Session, assignment, sessions};
use crate::{Counted, EngineFailure, FailedBy, Stopped};
use linerate_model::{
    Assignment, EndCounts, IpVersion, LinkId, Listen, Path, Role, RoleCounts, RoleKind, Task, Timing,
};
use linerate_units::Nanos;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// Link between client and server.
pub const LINK: LinkId = LinkId(0);
/// Longer than any session of a test takes.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// Result of a session.
pub type Ended = Result<Counted, EngineFailure>;

/// Returns the role of the client.
pub fn client_role() -> Role {
    Role { kind: RoleKind::Client { path: 0 }, listens: Vec::new(), connects: vec![LINK] }
}

/// Returns the role of the server of a path, which listens at `address`.
pub fn server_role(path: u16, address: IpAddr) -> Role {
    let listen = Listen { link: LinkId(path), address, folder: None };
    Role { kind: RoleKind::Server { path }, listens: vec![listen], connects: Vec::new() }
}

/// Returns one host's part of `task` over as many paths as `paths` says, measured for `measure` after 100 ms of
/// warm-up.
///
/// # Panics
/// The task has no paths.
pub fn part(task: &Task, measure: Nanos, roles: Vec<Role>, paths: usize) -> Assignment {
    let mut task = task.clone();
    *task.paths_mut().expect("it has paths") = vec![Path::between("client", "server"); paths];
    assignment(task, Timing::of(Nanos::from_millis(100), measure), roles)
}

/// Returns the assignments of the client and the server.
///
/// # Panics
/// The task has no sockets.
pub fn parts(task: &Task, measure: Nanos) -> [Assignment; 2] {
    let address = match task.net().expect("it has sockets").ip {
        IpVersion::V4 => IpAddr::from(Ipv4Addr::LOCALHOST),
        IpVersion::V6 => IpAddr::from(Ipv6Addr::LOCALHOST),
    };
    [client_role(), server_role(0, address)].map(|role| part(task, measure, vec![role], 1))
}

/// Makes the sessions of a client and of a server.
pub fn pair(parts: [Assignment; 2]) -> [Session; 2] {
    sessions(parts).try_into().ok().expect("two")
}

/// Returns the counts of a host with one role.
///
/// # Panics
/// The session failed, or left something behind.
pub fn counts(ended: Ended) -> EndCounts {
    let mut counted = ended.expect("it ends with counts");
    assert!(counted.remains.is_empty() && counted.roles.len() == 1);
    match counted.roles.remove(0) {
        RoleCounts::Flows(counts) => *counts,
        other => panic!("{other:?}"),
    }
}

/// Returns the error of a session.
///
/// # Panics
/// It did not fail, or was stopped.
pub fn failure(ended: Ended) -> String {
    match ended.expect_err("it fails").error {
        FailedBy::Task(error) => error.to_string(),
        FailedBy::Stop(stopped) => panic!("{stopped}"),
    }
}

/// Returns whether a session was stopped.
pub fn was_stopped(ended: &Ended) -> bool {
    matches!(ended, Err(EngineFailure { error: FailedBy::Stop(Stopped), .. }))
}
