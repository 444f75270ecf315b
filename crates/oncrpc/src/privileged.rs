//! Sockets at ports below 1024. Many NFS servers accept calls from no others, because only root can bind them.

use linerate_engine::{SocketError, SocketSpec, failed, socket};
use rand::RngExt as _;
use socket2::Socket;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The ports tried: those below belong to services.
const PORTS: RangeInclusive<u16> = 665..=1_023;
/// Number of privileged ports to try before any other port is taken.
const ATTEMPTS: usize = 64;

/// Opens a socket at a privileged port if this process may bind one, and otherwise at any port.
///
/// # Errors
/// Fails if no socket can be made at all.
pub fn socket_from_privileged_port(spec: SocketSpec<'_>) -> Result<Socket, SocketError> {
    let any = || if spec.v6 { IpAddr::from(Ipv6Addr::UNSPECIFIED) } else { Ipv4Addr::UNSPECIFIED.into() };
    let address = spec.bind.map_or_else(any, |bind| bind.ip());
    for _ in 0..ATTEMPTS {
        let bind = Some(SocketAddr::new(address, rand::rng().random_range(PORTS)));
        match socket(SocketSpec { bind, ..spec }) {
            Ok(socket) => {
                // There are few: a closed connection must not keep one for a minute (TIME_WAIT). Every reply has come
                // by then.
                socket.set_linger(Some(Duration::ZERO)).map_err(failed("setsockopt(SO_LINGER)"))?;
                return Ok(socket);
            }
            Err(SocketError::Socket { source, .. }) if source.kind() == io::ErrorKind::AddrInUse => {}
            Err(SocketError::Socket { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => break,
            Err(error) => return Err(error),
        }
    }
    socket(spec)
}
