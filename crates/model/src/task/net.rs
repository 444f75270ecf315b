//! Who talks to whom over what: the part that streams, transactions, RPC and NFS have in common.

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
pub struct Net {
    /// TCP or UDP.
    pub transport: Transport,
    /// IPv4 or IPv6.
    pub ip: IpVersion,
    /// Connections (UDP: sockets) of each path and direction; each has a thread of its own at both ends.
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

/// Socket settings for both ends; none leaves the system's default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
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
