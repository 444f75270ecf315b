//! Raw frames between ports: what a device is tested with, and what was counted.
//!
//! A port is an interface of a host that tests a device. A trial sends streams of frames from port to port; every frame
//! carries its trial, stream, number and time of sending, so that the receiving ports can count and time each one.

use crate::checked::{OutOfRange, check_when_read, rate, within};
use crate::{FrameForm, HostName, PortName, Window};
use linerate_units::{BitRate, FrameRate, FrameSize, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An Ethernet address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The address `steps` further on, as a 48-bit number that wraps.
    pub fn plus(self, steps: u32) -> Self {
        let [a, b, c, d, e, g] = self.0;
        let number = u64::from_be_bytes([0, 0, a, b, c, d, e, g]).wrapping_add(u64::from(steps));
        let [_, _, mac @ ..] = number.to_be_bytes();
        Self(mac)
    }
}

/// Text that is no Ethernet address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an Ethernet address such as 02:00:00:00:00:01")]
pub struct BadMac(pub String);

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for Mac {
    type Err = BadMac;

    fn from_str(text: &str) -> Result<Self, BadMac> {
        let bad = || BadMac(text.to_owned());
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let part = parts.next().filter(|part| part.len() == 2).ok_or_else(bad)?;
            *byte = u8::from_str_radix(part, 16).map_err(|_| bad())?;
        }
        if parts.next().is_some() { Err(bad()) } else { Ok(Self(bytes)) }
    }
}

impl Serialize for Mac {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Mac {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Mac {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Mac".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^([0-9a-f]{2}:){5}[0-9a-f]{2}$"})
    }
}

/// How frames are sent and received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FrameEngine {
    /// XDP where the host can, packet sockets otherwise.
    #[default]
    Auto,
    /// Programs in the kernel's driver path.
    Xdp,
    /// Packet sockets: slower, and all an unprivileged user namespace has.
    PacketSocket,
}

/// Place at which frames count as received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FrameReceiver {
    /// The receiving port. The host's protocols do not see the frames.
    #[default]
    Port,
    /// A UDP socket of the receiving host. Its kernel processes the frames as those of an application.
    Socket,
}

impl FrameReceiver {
    fn is_port(&self) -> bool {
        *self == Self::Port
    }
}

/// A port as it was found when a trial was prepared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortInfo {
    /// The interface.
    pub interface: String,
    /// Its address.
    pub mac: Mac,
    /// Its IPv4 address and prefix length, if it has one.
    pub ipv4: Option<(Ipv4Addr, u8)>,
    /// Its global IPv6 address and prefix length, if it has one.
    pub ipv6: Option<(Ipv6Addr, u8)>,
    /// Largest IP packet, bytes.
    pub mtu: u32,
    /// The interfaces whose traffic the port's frames meet, by name: its own, and those that it stands on, that stand on
    /// it, or that it is joined to by a bridge or bond.
    #[serde(default)]
    pub meets: Vec<String>,
}

/// The headers of a stream's frames. Behind them stands the signature, then filling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct FrameHeaders {
    /// Where the frames say they come from.
    pub source_mac: Mac,
    /// Where they go: the receiving port, or the router in between.
    pub destination_mac: Mac,
    /// VLAN identifiers, outermost first (IEEE 802.1Q; two are QinQ, 802.1ad).
    pub vlans: Vec<u16>,
    /// Priority in every VLAN tag, 0 to 7 (IEEE 802.1Q clause 6.9.3).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: u8,
    /// Differentiated services code point of the IP header, 0 to 63 (RFC 2474).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dscp: u8,
    /// Sender's IP address; the family of both must agree.
    pub source: IpAddr,
    /// Receiver's IP address.
    pub destination: IpAddr,
    /// What the packet carries.
    pub payload: FramePayload,
}

fn is_zero(number: &u8) -> bool {
    *number == 0
}

/// What a test packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum FramePayload {
    /// UDP (RFC 2544 appendix C.2.6.4 uses port 7).
    Udp {
        /// Source port.
        source_port: u16,
        /// Destination port.
        destination_port: u16,
    },
    /// ICMP or ICMPv6 echo requests, whose replies are counted where they arrive.
    Echo,
    /// TCP segments of a connection that nobody opened: data with ACK set, no SYN, always the same numbers.
    Tcp {
        /// Source port.
        source_port: u16,
        /// Destination port.
        destination_port: u16,
    },
}

impl FrameHeaders {
    /// Bytes before the signature: Ethernet 14, VLAN 4 each, IPv4 20 or IPv6 40, UDP or ICMP 8, TCP 20.
    pub fn bytes(&self) -> u32 {
        let transport = match self.payload {
            FramePayload::Udp { .. } | FramePayload::Echo => 8,
            FramePayload::Tcp { .. } => 20,
        };
        14 + 4 * self.vlans.len() as u32 + if self.source.is_ipv4() { 20 } else { 40 } + transport
    }

    /// The smallest frame that has room for the headers and the signature.
    pub fn smallest_frame(&self) -> FrameSize {
        FrameSize::carrying(self.bytes() + SIGNATURE_BYTES - 14, 14)
    }
}

/// Bytes of the signature in every test frame: trial, stream, number, time, and what keeps the checksum steady.
pub const SIGNATURE_BYTES: u32 = 18;

/// One stream of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct FrameStream {
    /// Index of the port that sends.
    pub from: u16,
    /// Index of the port that is to receive.
    pub to: u16,
    /// Indices of further ports that are to receive each frame, as those of a broadcast.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies_to: Vec<u16>,
    /// Size of the frames, FCS counted; of a mix the largest.
    pub size: FrameSize,
    /// Frames per second; none sends without a rate limit.
    pub rate: Option<FrameRate>,
    /// So many frames at the most; none sends for the trial's whole time.
    pub count: Option<u64>,
    /// How long after the trial's beginning its first frame is due.
    #[serde(default)]
    pub after: Nanos,
    /// How long it is sent; none sends until the trial's time is over.
    #[serde(default)]
    pub time: Option<Nanos>,
    /// The frames' headers.
    pub headers: FrameHeaders,
    /// What makes the frames other than plain ones.
    #[serde(default, skip_serializing_if = "FrameForm::is_plain")]
    pub form: FrameForm,
}

impl FrameStream {
    /// Bytes of its first `count` frames, FCS counted.
    pub fn bytes(&self, count: u64) -> u64 {
        self.form.bytes(self.size, count)
    }
}

impl FrameStream {
    /// Iterates over the ports that are to receive each frame.
    pub fn receivers(&self) -> impl Iterator<Item = u16> {
        std::iter::once(self.to).chain(self.copies_to.iter().copied())
    }

    /// How long it is sent in a trial of `trial` length.
    pub fn length(&self, trial: Nanos) -> Nanos {
        self.time.unwrap_or(trial - self.after)
    }
}

/// Streams of raw frames from port to port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct FramesTask {
    /// The host of the ports that name none.
    pub home: HostName,
    /// The ports that take part.
    pub ports: Vec<PortName>,
    /// What is sent.
    pub streams: Vec<FrameStream>,
    /// How long is sent.
    pub time: Nanos,
    /// The trial is over when no frame has arrived for this long; 2 s at least where none has arrived yet (RFC 2544 section 23).
    pub settle: Nanos,
    /// By which means.
    pub engine: FrameEngine,
    /// Place at which the frames count as received.
    #[serde(default, skip_serializing_if = "FrameReceiver::is_port")]
    pub receiver: FrameReceiver,
    /// Rate of the ports' lines, by which PAUSE frames count time. `None` if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<BitRate>,
    /// Hosts that the tester answers for while the trial runs, beside the streams' own ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<SimulatedHosts>,
}

impl FramesTask {
    /// The host that has `port`.
    pub fn host<'a>(&'a self, port: &'a PortName) -> &'a HostName {
        port.host.as_ref().unwrap_or(&self.home)
    }
}

/// Hosts with addresses in a row behind one port: the tester answers ARP, neighbour discovery and echo for them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct SimulatedHosts {
    /// Index of the port.
    pub port: u16,
    /// The first host's IP address.
    pub first: IpAddr,
    /// How many there are.
    pub count: u32,
    /// Their Ethernet addresses.
    pub mac: MacRule,
}

/// Which Ethernet addresses simulated hosts have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum MacRule {
    /// All of them the port's.
    Port,
    /// Each its own, counting from the first host's.
    Counting {
        /// The first host's.
        first: Mac,
    },
}

impl FrameHeaders {
    /// Most VLAN tags.
    const MOST_VLANS: usize = 8;
    /// Largest VLAN identifier (IEEE 802.1Q clause 9.6: twelve bits, of which the last is reserved).
    const LAST_VLAN: u16 = 4_094;

    fn check(&self) -> Result<(), OutOfRange> {
        within("VLAN tags", self.vlans.len(), 0..=Self::MOST_VLANS)?;
        self.vlans.iter().try_for_each(|vlan| within("as VLAN", *vlan, 0..=Self::LAST_VLAN))?;
        within("as priority", self.priority, 0..=7)?;
        within("as DSCP", self.dscp, 0..=63)?;
        if self.source.is_ipv4() != self.destination.is_ipv4() {
            let (source, destination) = (self.source, self.destination);
            return Err(OutOfRange(format!("{source} and {destination} are not of one IP version")));
        }
        Ok(())
    }
}

impl FrameStream {
    /// The largest frame that an interface of Linux carries: its largest MTU, with Ethernet's header and FCS.
    const LARGEST: u32 = 65_536 + 18;

    /// Checks that an interface can carry frames of this size.
    pub(crate) fn check_size(size: FrameSize) -> Result<(), OutOfRange> {
        within("bytes of a frame", size.get(), 0..=Self::LARGEST)
    }

    fn check(&self) -> Result<(), OutOfRange> {
        Self::check_size(self.size)?;
        for time in [Some(self.after), self.time].into_iter().flatten() {
            within("of a stream of frames", time, Nanos::default()..=Window::LONGEST)?;
        }
        self.rate.map_or(Ok(()), |asked| rate("frames per second", asked.get()))
    }
}

impl FramesTask {
    /// Most ports, and most streams: their numbers have 16 bits.
    const MOST: usize = u16::MAX as usize;

    fn check(&self) -> Result<(), OutOfRange> {
        within("streams", self.streams.len(), 0..=Self::MOST)?;
        for time in [self.time, self.settle] {
            within("of a trial with frames", time, Nanos::default()..=Window::LONGEST)?;
        }
        self.line.map_or(Ok(()), |line| rate("bits per second", line.get()))?;
        let named = self.streams.iter().flat_map(|stream| stream.receivers().chain([stream.from]));
        Self::check_ports(self.ports.len(), named.chain(self.hosts.iter().map(|hosts| hosts.port)))
    }

    /// Checks that each port that is `named` by its place is one of so many.
    pub(crate) fn check_ports(ports: usize, named: impl Iterator<Item = u16>) -> Result<(), OutOfRange> {
        within("ports", ports, 0..=Self::MOST)?;
        match named.max().filter(|port| usize::from(*port) >= ports) {
            Some(port) => Err(OutOfRange(format!("port {port} is named, and there are {ports}"))),
            None => Ok(()),
        }
    }
}

impl SimulatedHosts {
    /// Counted on from the first address, they end within its family.
    fn check(&self) -> Result<(), OutOfRange> {
        let steps = self.count.saturating_sub(1);
        let fits = match self.first {
            IpAddr::V4(first) => first.to_bits().checked_add(steps).is_some(),
            IpAddr::V6(first) => first.to_bits().checked_add(steps.into()).is_some(),
        };
        if fits && self.count > 0 {
            return Ok(());
        }
        Err(OutOfRange(format!("there are no {} hosts from {} on: give 1 or more", self.count, self.first)))
    }
}

check_when_read!(FrameHeaders, FrameStream, FramesTask, SimulatedHosts);
