//! Packets of one end: probes with a TTL of their own, and the answers and errors that they bring back.
//!
//! [`ProbePacket`] lists the kinds. UDP serves both ends of a path; the others serve clients of hosts without an agent.

mod contract;
mod echo;
mod echo_service;
mod ping;
mod raw_icmp;
mod tcp_syn;
mod udp;

use contract::require_errors;
use linerate_engine::SocketError;
use linerate_model::{ProbePacket, Transport};
use linerate_sys::handle::AsSocket as _;

pub(crate) use contract::{Arrived, Client, Event, Packets, ProbeId, RouterProbes};
#[cfg(feature = "fuzzing")]
pub(crate) use echo::fuzz as fuzz_echo;
pub(crate) use udp::UdpPackets;

/// Most descriptors of one end, in addition to those of its UDP socket.
pub(crate) const MAX_DESCRIPTORS: u64 = tcp_syn::MAX_OPEN as u64;

/// Opens packets of this kind to a host.
///
/// # Errors
/// There is no route to the host, the process may not open such a socket, or the system does not report the answers.
pub(crate) fn open(client: &Client, packet: ProbePacket) -> Result<Box<dyn Packets>, SocketError> {
    Ok(match packet {
        ProbePacket::Udp => {
            let socket = linerate_engine::socket(client.spec(Transport::Udp))?;
            if !client.has_reflector {
                require_errors(socket.as_socket(), client.peer.is_ipv6())?;
            }
            Box::new(UdpPackets::to(socket.into(), client.peer)?)
        }
        ProbePacket::Ping => ping::open(client)?,
        ProbePacket::RawIcmp => Box::new(raw_icmp::open(client)?),
        ProbePacket::TcpSyn => Box::new(tcp_syn::TcpSynPackets::to(client.clone())?),
    })
}
