//! ICMP echo requests of an unprivileged ping socket (icmp(7), `net.ipv4.ping_group_range`).

use super::contract::Client;
use super::echo::EchoPackets;
use linerate_engine::{SocketError, failed};
use socket2::{Domain, Protocol, Socket, Type};

/// Opens a ping socket.
///
/// # Errors
/// The user's groups lie outside `net.ipv4.ping_group_range`, or there is no route to the peer.
pub(super) fn open(client: &Client) -> Result<EchoPackets, SocketError> {
    let (domain, protocol) =
        if client.peer.is_ipv6() { (Domain::IPV6, Protocol::ICMPV6) } else { (Domain::IPV4, Protocol::ICMPV4) };
    let socket = Socket::new(domain, Type::DGRAM, Some(protocol)).map_err(failed(
        "opening a ping socket (net.ipv4.ping_group_range has to contain a group of the user: \
         `sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"`)",
    ))?;
    client.prepare_icmp(&socket)?;
    EchoPackets::new(socket, client.peer, None)
}
