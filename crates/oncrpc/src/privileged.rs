//! Ports below 1024. Many NFS servers take calls from nowhere else, because on the caller's host only root can have them.

use linerate_sockets::{SocketError, Wanted, failed, socket};
use rand::RngExt as _;
use socket2::Socket;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The ports tried: those below belong to services.
const PORTS: RangeInclusive<u16> = 665..=1_023;
/// So many are tried before any other will do.
const ATTEMPTS: usize = 64;

/// A socket as wanted with such a port, if this process may have one; otherwise with any port, and the server will say if it
/// minds.
///
/// # Errors
/// Fails if no socket can be made at all.
pub fn socket_from_privileged_port(wanted: Wanted<'_>) -> Result<Socket, SocketError> {
    let any = || if wanted.v6 { IpAddr::from(Ipv6Addr::UNSPECIFIED) } else { Ipv4Addr::UNSPECIFIED.into() };
    let address = wanted.bind.map_or_else(any, |bind| bind.ip());
    for _ in 0..ATTEMPTS {
        let bind = Some(SocketAddr::new(address, rand::rng().random_range(PORTS)));
        match socket(Wanted { bind, ..wanted }) {
            Ok(socket) => {
                // There are few: a closed connection must not keep one for a minute (TIME_WAIT). Every reply has come by then.
                socket.set_linger(Some(Duration::ZERO)).map_err(failed("setsockopt(SO_LINGER)"))?;
                return Ok(socket);
            }
            Err(SocketError::Socket { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {}
            Err(SocketError::Socket { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => break,
            Err(error) => return Err(error),
        }
    }
    socket(wanted)
}
