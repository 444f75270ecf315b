//! Ports for servers that cannot be handed a socket.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Where to look: below the ports that the kernel hands out by itself (`net.ipv4.ip_local_port_range`), so that no socket of a
/// test that runs at the same time gets one of these.
const RANGE: std::ops::Range<u16> = 20_000..30_000;

/// A TCP and UDP port on loopback that no other test has while this value lives, in no program in this network namespace.
pub(super) struct ClaimedPort {
    pub(super) number: u16,
    /// Only one socket of a namespace has such a name.
    _claim: UnixDatagram,
}

impl ClaimedPort {
    /// Claims a port that nobody listens on.
    ///
    /// # Panics
    /// There is none.
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
