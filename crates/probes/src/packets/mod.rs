//! Packets of one end: probes with a TTL of their own, and the answers and errors that they bring back.
//!
//! [`ProbePacket`] lists the kinds. UDP serves both ends of a path; the others serve clients of hosts without an agent.

mod contract;
mod echo;
mod ping;
mod raw_icmp;
mod tcp_syn;
mod udp;

use linerate_engine::SocketError;
use linerate_model::{ProbePacket, Transport};

pub(crate) use contract::{Arrived, Client, Event, Packets, ProbeId};
#[cfg(feature = "fuzzing")]
pub(crate) use echo::fuzz as fuzz_echo;
pub(crate) use udp::UdpPackets;

/// Most descriptors of one end, in addition to those of its UDP socket.
pub(crate) const MAX_DESCRIPTORS: u64 = tcp_syn::MAX_OPEN as u64;

/// Opens packets of this kind to a host without an agent.
///
/// # Errors
/// There is no route to the host, or the process may not open such a socket.
pub(crate) fn open(client: &Client, packet: ProbePacket) -> Result<Box<dyn Packets>, SocketError> {
    Ok(match packet {
        ProbePacket::Udp => {
            let socket = linerate_engine::socket(client.spec(Transport::Udp))?;
            Box::new(UdpPackets::to(socket.into(), client.peer)?)
        }
        ProbePacket::Ping => Box::new(ping::open(client)?),
        ProbePacket::RawIcmp => Box::new(raw_icmp::open(client)?),
        ProbePacket::TcpSyn => Box::new(tcp_syn::TcpSynPackets::to(client.clone())?),
    })
}
