//! Who talks to whom over what: the part that streams, transactions, RPC and NFS have in common.

use crate::checked::{OutOfRange, check_when_read, within};
use crate::{HostName, IpVersion, Transport};
use linerate_units::ByteCount;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// A pair of hosts. The client opens the data connections, so that only the server needs to be reachable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Path {
    /// Opens the data connections; asks, in transactions.
    pub client: HostName,
    /// Accepts them; answers, in transactions.
    pub server: Server,
}

impl Path {
    /// A path between two hosts that run agents.
    pub fn between(client: impl Into<HostName>, server: impl Into<HostName>) -> Self {
        Self { client: client.into(), server: Server::Agent(server.into()) }
    }
}

/// The end of a path that accepts connections.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Server {
    /// A host that runs an agent.
    Agent(HostName),
    /// A server that runs none, by the name it is shown by. How it is reached stands in the task.
    Foreign(HostName),
}

impl Server {
    /// The name it is shown by.
    pub fn name(&self) -> &HostName {
        match self {
            Self::Agent(name) | Self::Foreign(name) => name,
        }
    }

    /// The host, if it runs an agent.
    pub fn agent(&self) -> Option<&HostName> {
        match self {
            Self::Agent(name) => Some(name),
            Self::Foreign(_) => None,
        }
    }
}

/// Transport, flows and sockets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct Net {
    /// TCP or UDP.
    pub transport: Transport,
    /// IPv4 or IPv6.
    pub ip: IpVersion,
    /// Connections (UDP: sockets) of each path and direction. Each has a thread of its own at both ends, but for very many of a stream.
    pub flows: u16,
    /// Socket settings.
    pub socket: SocketOptions,
}

impl Net {
    /// One flow over IPv4 with the system's socket settings.
    pub fn plain(transport: Transport) -> Self {
        Self { transport, ip: IpVersion::V4, flows: 1, socket: SocketOptions::default() }
    }
}

impl Net {
    /// Most flows of one path and direction of a stream.
    pub const MOST_FLOWS: u16 = 4_096;
    /// Most flows of one path of any other task: each is a thread at both ends.
    pub const MOST_FLOWS_WITH_THREADS: u16 = 1_024;

    /// Checks the number of flows.
    ///
    /// # Errors
    /// There are none, or more than a stream may have.
    pub fn check(&self) -> Result<(), OutOfRange> {
        self.check_flows(Self::MOST_FLOWS)
    }

    /// Checks the number of flows, `most` at the most.
    ///
    /// # Errors
    /// There are none, or too many.
    pub fn check_flows(&self, most: u16) -> Result<(), OutOfRange> {
        within("flows", self.flows, 1..=most)
    }
}

/// Socket settings for both ends; none leaves the system's default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", default)]
pub struct SocketOptions {
    /// TCP congestion control, by the kernel's name.
    pub congestion: Option<String>,
    /// Differentiated services code point (RFC 2474), 0 to 63.
    pub dscp: Option<u8>,
    /// SO_SNDBUF as asked for; the kernel doubles it for its own book-keeping.
    pub send_buffer: Option<ByteCount>,
    /// SO_RCVBUF as asked for; the kernel doubles it for its own book-keeping.
    pub receive_buffer: Option<ByteCount>,
    /// Largest TCP segment, bytes of payload.
    pub mss: Option<u16>,
    /// The client's local address.
    pub bind_address: Option<IpAddr>,
    /// The client's interface.
    pub bind_device: Option<String>,
    /// Cores the sending (for transactions: the asking) side's threads are pinned to, in turn; empty leaves the choice to the
    /// scheduler.
    pub sender_cpus: Vec<u32>,
    /// Cores the receiving (for transactions: the answering) side's threads are pinned to, in turn.
    pub receiver_cpus: Vec<u32>,
}

impl SocketOptions {
    /// Largest code point (RFC 2474 section 3: six bits).
    const MOST_DSCP: u8 = 63;
    /// The kernel doubles what is asked for, in a signed 32-bit number.
    const MOST_BUFFER: u64 = i32::MAX as u64 / 2;
    /// Cores that are named at the most.
    const MOST_CPUS: usize = 4_096;

    /// Longest name of an interface, in bytes (IFNAMSIZ).
    const MOST_DEVICE: usize = 15;

    /// Whether `name` can be that of a congestion control: the kernel's have 15 bytes at the most (TCP_CA_NAME_MAX), and are names of modules.
    /// Messages tell how to load one, so nothing else is taken.
    pub fn is_congestion_name(name: &str) -> bool {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        (1..=15).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(is_part)
    }

    /// Checks the names of the interface and of the congestion control, the code point, the buffers and the number of cores.
    ///
    /// # Errors
    /// One of them is out of its range.
    pub fn check(&self) -> Result<(), OutOfRange> {
        if let Some(device) = &self.bind_device {
            // As the kernel checks names (dev_valid_name in net/core/dev.c).
            let is_odd = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '/' | ':');
            let is_name = !matches!(&**device, "" | "." | "..") && device.len() <= Self::MOST_DEVICE;
            if !is_name || device.contains(is_odd) {
                return Err(OutOfRange(format!(
                    "an interface cannot be called {device:?}: a name has 1 to {} bytes, without spaces, `/` and `:`; `ip link` lists the \
                     interfaces",
                    Self::MOST_DEVICE
                )));
            }
        }
        if let Some(name) = self.congestion.as_ref().filter(|name| !Self::is_congestion_name(name)) {
            return Err(OutOfRange(format!(
                "{name:?} is no name of a congestion control: choose one of /proc/sys/net/ipv4/tcp_available_congestion_control"
            )));
        }
        if let Some(dscp) = self.dscp {
            within("as DSCP (RFC 2474)", dscp, 0..=Self::MOST_DSCP)?;
        }
        for (what, buffer) in
            [("bytes of send buffer", self.send_buffer), ("bytes of receive buffer", self.receive_buffer)]
        {
            if let Some(buffer) = buffer {
                within(what, buffer.get(), 1..=Self::MOST_BUFFER)?;
            }
        }
        within("cores", self.sender_cpus.len().max(self.receiver_cpus.len()), 0..=Self::MOST_CPUS)
    }
}

check_when_read!(Net, SocketOptions);
