//! ICMP echo requests that the operating system sends (IcmpSendEcho2 of Windows).

use super::contract::{Arrived, Client, Event, Packets, ProbeId};
use linerate_engine::SocketError;
use linerate_sys::echo_requests::{EchoAnswer, EchoAnswerKind, EchoRequest, EchoRequests};
use linerate_sys::handle::AsSocket as _;
use linerate_sys::socket::wait_readable;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Length of the ICMP header of an echo request in bytes.
const HEADER: u32 = 8;
/// Length of an IPv4 header without options, and of an IPv6 header, in bytes.
const IPV4: u32 = 20;
const IPV6: u32 = 40;
/// Most bytes of data that the system takes.
const MAX_DATA: u32 = 65_500;

/// Echo requests to one host.
#[derive(Debug)]
pub(super) struct EchoServicePackets {
    requests: EchoRequests,
    peer: SocketAddr,
    local: IpAddr,
}

impl EchoServicePackets {
    /// Returns the packets to the client's host.
    ///
    /// # Errors
    /// There is no route to the peer, or the system cannot send them as the options demand.
    pub(super) fn to(requests: EchoRequests, client: &Client) -> Result<Self, SocketError> {
        let options = &client.options;
        let unsupported = [("DSCP", options.dscp.is_some()), ("interface", options.bind_device.is_some())];
        if let Some((option, _)) = unsupported.into_iter().find(|(_, is_set)| *is_set) {
            return Err(SocketError::InvalidRequest(format!(
                "this host's system sends ICMP echo requests, and does not let programs choose their {option}: leave it out"
            )));
        }
        Ok(Self { requests, peer: client.peer, local: client.local()? })
    }
}

impl Packets for EchoServicePackets {
    fn peer(&self) -> Option<SocketAddr> {
        Some(self.peer)
    }

    fn local(&self) -> IpAddr {
        self.local
    }

    fn headers(&self) -> u32 {
        HEADER + if self.is_v6() { IPV6 } else { IPV4 }
    }

    fn link_mtu(&self) -> Option<u32> {
        let mtu = super::contract::link_mtu(self.peer)?;
        Some(mtu.min(self.headers() + MAX_DATA))
    }

    fn send(&mut self, sequence: u32, payload: &[u8], ttl: u8) -> io::Result<u32> {
        send(&self.requests, self.local, self.peer, sequence, payload, ttl)?;
        Ok(self.headers() + payload.len() as u32)
    }

    fn wait(&self, nanos: u64) -> Result<bool, SocketError> {
        Ok(wait_readable(&[self.requests.as_socket()], nanos)?)
    }

    fn event(&mut self, into: &mut [u8]) -> Result<Option<Event>, SocketError> {
        Ok(self.requests.take(into).map(event))
    }
}

/// Sends the probe `sequence` as an echo request.
///
/// # Errors
/// The packet is larger than the first link's MTU, or cannot be sent.
pub(super) fn send(
    requests: &EchoRequests,
    from: IpAddr,
    to: SocketAddr,
    sequence: u32,
    payload: &[u8],
    ttl: u8,
) -> io::Result<()> {
    let scope = if let SocketAddr::V6(to) = to { to.scope_id() } else { 0 };
    let to = to.ip().to_canonical();
    requests.send(EchoRequest { number: sequence, from, to, scope, ttl, data: payload })
}

/// Converts an answer. The data of a reply lie at the beginning of the buffer.
pub(super) fn event(answer: EchoAnswer) -> Event {
    match answer.kind {
        EchoAnswerKind::Error(error) => Event::Error { error, probe: ProbeId::Sequence(answer.number) },
        EchoAnswerKind::Reply { from, length, ttl, arrived_unix_ns } => {
            let from = SocketAddr::new(from, 0);
            let arrived = Arrived { length, from, ttl, arrived_unix_ns: Some(arrived_unix_ns) };
            Event::Reply { arrived, probe: ProbeId::Payload(0..length) }
        }
    }
}
