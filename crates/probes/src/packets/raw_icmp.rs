//! ICMP echo requests of a raw socket (raw(7)), which needs CAP_NET_RAW.
//!
//! A raw socket receives all ICMP messages of the peer. The identifier, and the payload with its key, separate the replies to own
//! requests from others.

use super::contract::Client;
use super::echo::EchoPackets;
use linerate_engine::{SocketError, failed};
use rand::random;
use socket2::{Domain, Protocol, Socket, Type};

/// Opens a raw socket.
///
/// # Errors
/// The process lacks CAP_NET_RAW, or there is no route to the peer.
pub(super) fn open(client: &Client) -> Result<EchoPackets, SocketError> {
    let (domain, protocol) =
        if client.peer.is_ipv6() { (Domain::IPV6, Protocol::ICMPV6) } else { (Domain::IPV4, Protocol::ICMPV4) };
    let socket = Socket::new(domain, Type::RAW, Some(protocol)).map_err(failed(
        "opening a raw socket (it needs CAP_NET_RAW: run as root, or give the program the capability with \
         `setcap cap_net_raw+ep`)",
    ))?;
    client.prepare_icmp(&socket)?;
    EchoPackets::new(socket, client.peer, Some(random()))
}
