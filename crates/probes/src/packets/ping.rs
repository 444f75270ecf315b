//! ICMP echo requests without privileges: those of the operating system if it sends any, otherwise those of a ping socket (icmp(7),
//! `net.ipv4.ping_group_range`).

use super::contract::{Client, Packets};
use super::echo::EchoPackets;
use super::echo_service::EchoServicePackets;
use linerate_engine::{SocketError, failed};
use linerate_sys::echo_requests::EchoRequests;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::ErrorKind;

/// Opens echo requests.
///
/// # Errors
/// The system has neither, the user's groups lie outside `net.ipv4.ping_group_range`, or there is no route to the peer.
pub(super) fn open(client: &Client) -> Result<Box<dyn Packets>, SocketError> {
    match EchoRequests::open(client.peer.is_ipv6()) {
        Ok(requests) => Ok(Box::new(EchoServicePackets::to(requests, client)?)),
        Err(error) if error.source.kind() == ErrorKind::Unsupported => Ok(Box::new(open_socket(client)?)),
        Err(error) => Err(error.into()),
    }
}

fn open_socket(client: &Client) -> Result<EchoPackets, SocketError> {
    let (domain, protocol) =
        if client.peer.is_ipv6() { (Domain::IPV6, Protocol::ICMPV6) } else { (Domain::IPV4, Protocol::ICMPV4) };
    let socket = Socket::new(domain, Type::DGRAM, Some(protocol)).map_err(failed(
        "opening a ping socket (net.ipv4.ping_group_range has to contain a group of the user: \
         `sysctl -w net.ipv4.ping_group_range=\"0 2147483647\"`)",
    ))?;
    client.prepare_icmp(&socket)?;
    EchoPackets::new(socket, client.peer, None)
}
