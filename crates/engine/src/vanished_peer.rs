//! Connections whose peers may vanish without a word: a host loses power, or its network.

use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// A peer from which nothing has come for so long has vanished, whether or not it was sent anything. Longer than an outage of 30 s that a
/// trial is to survive.
pub const VANISHED: Duration = Duration::from_secs(60);
/// Probes that go unanswered in that time.
const PROBES: u32 = 3;

/// Has the kernel end a control connection when its peer has vanished: an idle one by keepalive probes, one with data on their way by its
/// user timeout. Datagrams are sent for a peer only as long as its control connection lasts.
///
/// # Errors
/// Fails if the socket is no TCP socket.
pub fn end_if_vanished(socket: &impl AsFd) -> io::Result<()> {
    let socket = SockRef::from(socket);
    let interval = VANISHED / (PROBES + 1);
    let probes = TcpKeepalive::new().with_time(interval).with_interval(interval).with_retries(PROBES);
    socket.set_tcp_keepalive(&probes)?;
    socket.set_tcp_user_timeout(Some(VANISHED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn idle_and_busy_connections_end_when_their_peer_has_vanished() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        end_if_vanished(&listener).expect("set");
        let socket = SockRef::from(&listener);
        assert!(socket.keepalive().expect("read"));
        let probed =
            socket.tcp_keepalive_time().expect("read") + PROBES * socket.tcp_keepalive_interval().expect("read");
        assert_eq!(probed, VANISHED);
        assert_eq!(socket.tcp_user_timeout().expect("read"), Some(VANISHED));
    }
}
