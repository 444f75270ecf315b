//! Ports for servers that cannot inherit a socket.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Range of claimed ports. It is below the ephemeral ports (`net.ipv4.ip_local_port_range`), so that no socket of
/// another test gets one of them.
const RANGE: std::ops::Range<u16> = 20_000..30_000;

/// A TCP and UDP port on loopback. No other test in this network namespace has it until it is dropped.
pub(super) struct ClaimedPort {
    pub(super) number: u16,
    /// Socket with the port's name, which only one socket of a namespace can have.
    _claim: UnixDatagram,
}

impl ClaimedPort {
    /// Claims a port without a listener.
    ///
    /// # Panics
    /// No port is free.
    pub(super) fn new() -> Self {
        RANGE.into_iter().find_map(Self::claim).expect("a free port")
    }

    fn claim(number: u16) -> Option<Self> {
        let name = SocketAddr::from_abstract_name(format!("linerate-test-port-{number}")).ok()?;
        let claim = UnixDatagram::bind_addr(&name).ok()?;
        let here = (Ipv4Addr::LOCALHOST, number);
        let free = TcpListener::bind(here).is_ok() && UdpSocket::bind(here).is_ok();
        free.then_some(Self { number, _claim: claim })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_claimed_twice() {
        let claimed = [(); 3].map(|()| ClaimedPort::new());
        assert!(claimed[0].number < claimed[1].number && claimed[1].number < claimed[2].number);
        let first = claimed[0].number;
        drop(claimed);
        assert!(ClaimedPort::claim(first).is_some(), "it is free again");
    }
}
