//! Connections of peers that may vanish without closing them: a host loses power, or its network.

use crate::{KEEPALIVE, KEEPALIVE_RETRIES, PEER_GONE};
use linerate_sys::handle::AsSocket;
use linerate_sys::tcp;
use std::io;

/// Makes the kernel end a control connection when its peer has vanished: by keepalive probes if it is idle, otherwise
/// by its user timeout. Datagrams are sent to a peer only as long as its control connection lasts.
///
/// # Errors
/// Fails if the socket is no TCP socket.
pub fn end_if_vanished(socket: &impl AsSocket) -> io::Result<()> {
    let socket = socket.as_socket();
    tcp::set_keepalive(socket, KEEPALIVE, KEEPALIVE, KEEPALIVE_RETRIES)?;
    tcp::set_user_timeout(socket, Some(PEER_GONE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::SockRef;
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn idle_and_busy_connections_end_when_their_peer_has_vanished() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        end_if_vanished(&listener).expect("set");
        let socket = SockRef::from(&listener);
        assert!(socket.keepalive().expect("read"));
        let retries = socket.tcp_keepalive_retries().expect("read");
        assert_eq!(retries * socket.tcp_keepalive_interval().expect("read"), PEER_GONE);
        assert_eq!(socket.tcp_user_timeout().expect("read"), Some(PEER_GONE));
    }
}
