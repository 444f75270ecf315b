//! Probes with small TTLs: the routers of a path, and its MTU.

use crate::checked::{OutOfRange, check_when_read, rate, within};
use crate::named;
use crate::{Direction, Iperf3End, Net, Path, SocketOptions, Transport};
use linerate_units::{BitRate, ByteCount};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Probes of the routers between the hosts of each path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct HopsTask {
    /// Probed paths.
    pub paths: Vec<Path>,
    /// IP version and socket options of the probes. The transport is that of the probed flow.
    pub net: Net,
    /// Directions to probe. The host at the sending end of a direction needs an agent.
    pub direction: Direction,
    /// Packets to send. `None` tries them in the order of [`ProbePacket::ALL`], until a router or the far end answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<ProbePacket>,
    /// Far end of the paths.
    pub far_end: FarEnd,
    /// Highest rate of the probes of one direction, IP packets with their headers.
    pub rate: BitRate,
    /// Largest TTL.
    pub max_hops: u8,
    /// Whether to search for the path MTU as well.
    pub path_mtu: bool,
}

impl HopsTask {
    /// Rate of the probes unless a user sets another: a hundredth of a path of 2 Mbit/s.
    pub const RATE: BitRate = BitRate::per_second(20_000);
    /// Largest TTL unless a user sets another, as in traceroute.
    pub const MAX_HOPS: u8 = 30;

    /// Returns probes of both directions between agents over IPv4.
    pub fn plain() -> Self {
        Self {
            paths: Vec::new(),
            net: Net::plain(Transport::Udp),
            direction: Direction::Both,
            packet: None,
            far_end: FarEnd::Agent,
            rate: Self::RATE,
            max_hops: Self::MAX_HOPS,
            path_mtu: false,
        }
    }

    /// Returns probes of `paths`, with the IP version, DSCP and local address of `net`. An iperf3 end does not probe back.
    pub fn beside(paths: &[Path], net: &Net, iperf3: Option<&Iperf3End>) -> Self {
        let socket = SocketOptions {
            dscp: net.socket.dscp,
            bind_address: net.socket.bind_address,
            bind_device: net.socket.bind_device.clone(),
            ..SocketOptions::default()
        };
        let far_end = match iperf3 {
            Some(Iperf3End::Server(server)) => FarEnd::Host { address: server.address, port: server.port },
            Some(Iperf3End::Client(client)) => FarEnd::Host { address: client.address, port: FarEnd::PORT },
            None => FarEnd::Agent,
        };
        Self {
            paths: paths.to_vec(),
            net: Net { ip: net.ip, socket, ..Net::plain(Transport::Udp) },
            direction: if far_end == FarEnd::Agent { Direction::Both } else { Direction::Send },
            far_end,
            ..Self::plain()
        }
    }

    fn check(&self) -> Result<(), OutOfRange> {
        self.net.check_flows(1)?;
        rate("bits per second", self.rate.get())?;
        within("hops", self.max_hops, 1..=u8::MAX)
    }
}

check_when_read!(HopsTask);

/// Far end of a probed path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum FarEnd {
    /// An agent, which reflects probes with its own timestamps.
    Agent,
    /// A STAMP Session-Reflector (RFC 8762).
    Stamp {
        /// Address of the reflector.
        address: IpAddr,
        /// UDP port of the reflector.
        port: u16,
        /// Whether packets are authenticated, with the password of the assignment as the key.
        authenticated: bool,
    },
    /// A host that only its operating system answers for.
    Host {
        /// Address of the host.
        address: IpAddr,
        /// Port that probes are sent to.
        port: u16,
    },
}

impl FarEnd {
    /// UDP port that is closed on most hosts, as used by traceroute.
    pub const PORT: u16 = 33_434;
    /// UDP port of a STAMP Session-Reflector (RFC 8762 section 4.1).
    pub const STAMP_PORT: u16 = 862;
}

named! {
    /// Packets that probe a path.
    pub enum ProbePacket as "probe-packet" {
        /// UDP datagrams; the error queue of the socket returns the routers' answers.
        Udp = "udp", "UDP";
        /// ICMP echo requests without privileges: of a ping socket, or of the operating system (Windows).
        Ping = "ping", "ICMP echo without privileges";
        /// ICMP echo requests of a raw socket, which needs CAP_NET_RAW.
        RawIcmp = "raw-icmp", "ICMP echo by a raw socket";
        /// TCP SYN segments to an open port.
        TcpSyn = "tcp-syn", "TCP SYN";
    }
}

impl ProbePacket {
    /// Bytes of a probe of this kind, IP header included, over IPv4. A UDP probe has the payload of an authenticated STAMP
    /// test packet, 112 bytes (RFC 8762 section 4.2.2).
    pub fn bytes(self) -> ByteCount {
        ByteCount::new(match self {
            Self::Udp | Self::Ping | Self::RawIcmp => 20 + 8 + 112,
            Self::TcpSyn => 20 + 40,
        })
    }
}
