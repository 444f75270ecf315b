//! What a trial does on its path.

use crate::{IpVersion, NfsSpec, RpcSpec, Transport};
use linerate_units::{BitRate, ByteCount, FrameRate, Nanos, OpRate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// What a trial does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Workload {
    /// Bulk data one way or both ways.
    Stream(StreamSpec),
    /// Requests and responses, timed.
    Transact(TransactSpec),
    /// ONC RPC calls.
    Rpc(RpcSpec),
    /// NFS operations.
    Nfs(NfsSpec),
}

impl Workload {
    /// TCP or UDP.
    pub fn transport(&self) -> Transport {
        match self {
            Self::Stream(spec) => spec.transport,
            Self::Transact(spec) => spec.transport,
            Self::Rpc(spec) => spec.transport,
            Self::Nfs(spec) => spec.transport,
        }
    }

    /// IPv4 or IPv6.
    pub fn ip(&self) -> IpVersion {
        match self {
            Self::Stream(spec) => spec.ip,
            Self::Transact(spec) => spec.ip,
            Self::Rpc(spec) => spec.ip,
            Self::Nfs(spec) => spec.ip,
        }
    }

    /// Bytes of one message: of a stream's message, a transaction's request, or the data of an RPC call or NFS transfer.
    pub fn message_bytes(&self) -> ByteCount {
        match self {
            Self::Stream(spec) => spec.message_bytes,
            Self::Transact(spec) => spec.request_bytes,
            Self::Rpc(spec) => spec.unit_bytes,
            Self::Nfs(spec) => spec.transfer_bytes,
        }
    }

    /// Socket settings.
    pub fn socket(&self) -> &SocketOptions {
        match self {
            Self::Stream(spec) => &spec.socket,
            Self::Transact(spec) => &spec.socket,
            Self::Rpc(spec) => &spec.socket,
            Self::Nfs(spec) => &spec.socket,
        }
    }

    /// Connections or sockets of each path and direction.
    pub fn flows(&self) -> u16 {
        match self {
            Self::Stream(spec) => spec.flows,
            Self::Transact(spec) => spec.flows,
            Self::Rpc(spec) => spec.flows,
            Self::Nfs(spec) => spec.flows,
        }
    }

    /// Requests per second that are asked for, each timed from when it is due; none in a closed loop and for streams.
    pub fn requests_per_s(&self) -> Option<OpRate> {
        match self {
            Self::Stream(_) => None,
            Self::Transact(spec) => spec.rate,
            Self::Rpc(spec) => spec.rate,
            Self::Nfs(spec) => spec.rate,
        }
    }

    /// Calls that may be under way at a time on each path; none where nothing is called.
    pub fn outstanding(&self) -> Option<u32> {
        let (flows, each) = match self {
            Self::Stream(_) | Self::Transact(_) => return None,
            Self::Rpc(spec) => (spec.flows, spec.outstanding),
            Self::Nfs(spec) => (spec.flows, spec.outstanding),
        };
        Some(u32::from(flows) * u32::from(each))
    }

    /// When an open loop's requests are due; none for streams.
    pub fn arrivals(&self) -> Option<Arrivals> {
        match self {
            Self::Stream(_) => None,
            Self::Transact(spec) => Some(spec.arrivals),
            Self::Rpc(spec) => Some(spec.arrivals),
            Self::Nfs(spec) => Some(spec.arrivals),
        }
    }

    /// It is made of requests that are answered, and not of bulk data.
    pub fn is_requests(&self) -> bool {
        !matches!(self, Self::Stream(_))
    }

    /// How long connecting may take beyond the moment that it takes all, to make what the load needs on the server; and
    /// removing it afterwards.
    pub fn set_up(&self) -> Nanos {
        match self {
            Self::Nfs(spec) if spec.mix.needs_files() => spec.files.patience(),
            _ => Nanos::default(),
        }
    }

    /// Whether the listening end is a server that runs no agent.
    pub fn has_foreign_server(&self) -> bool {
        matches!(self, Self::Nfs(spec) if spec.server.is_some())
    }
}

/// Which way a stream's data flow, seen from the host that opens the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the opener to the listener.
    #[default]
    Send,
    /// From the listener to the opener.
    Receive,
    /// Both at once, each way with its own flows.
    Both,
}

/// The load asked for, of one path and one direction, over all its flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Offered {
    /// Payload bits per second.
    PayloadBps(BitRate),
    /// Messages (for UDP: datagrams) per second.
    MessagesPerS(FrameRate),
}

/// How a TCP sender hands its data to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SendBy {
    /// `sendfile` for messages of 16 KiB and more, `write` below.
    #[default]
    Auto,
    /// `sendfile` from memory: no copy at the sender.
    Sendfile,
    /// `send` from a buffer: one copy, as most programs do.
    Write,
}

/// What a TCP receiver does with its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiveBy {
    /// `recv` into a buffer, as programs do.
    #[default]
    Copy,
    /// `recv` with `MSG_TRUNC`: the kernel throws the data away uncopied. This changes what is measured.
    Discard,
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
    /// The opener's local address.
    pub bind_address: Option<IpAddr>,
    /// The opener's interface.
    pub bind_device: Option<String>,
    /// Cores the sending (for transactions: the asking) side's threads are pinned to, in turn; empty leaves the choice to the
    /// scheduler.
    pub sender_cpus: Vec<u32>,
    /// Cores the receiving (for transactions: the answering) side's threads are pinned to, in turn.
    pub receiver_cpus: Vec<u32>,
}

/// A bulk stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamSpec {
    /// TCP or UDP.
    pub transport: Transport,
    /// IPv4 or IPv6.
    pub ip: IpVersion,
    /// UDP: payload bytes of each datagram, at least [`StreamSpec::UDP_MINIMUM`]. TCP: bytes handed over in one call.
    pub message_bytes: ByteCount,
    /// Connections (UDP: sockets) of each path and direction; each has a thread of its own at both ends.
    pub flows: u16,
    /// Which way the data flow.
    pub direction: Direction,
    /// The load asked for; none sends as fast as it goes.
    pub offered: Option<Offered>,
    /// UDP: let the kernel cut and join datagrams (UDP_SEGMENT, UDP_GRO). Off, each datagram is a packet of its own from
    /// socket to socket.
    pub offload: bool,
    /// How a TCP sender hands over its data.
    pub send_by: SendBy,
    /// What a TCP receiver does with its data.
    pub receive_by: ReceiveBy,
    /// Socket settings.
    pub socket: SocketOptions,
}

impl StreamSpec {
    /// One flow over IPv4 from opener to listener as fast as it goes, by the means that serve best.
    pub fn plain(transport: Transport, message_bytes: ByteCount) -> Self {
        Self {
            transport,
            ip: IpVersion::V4,
            message_bytes,
            flows: 1,
            direction: Direction::Send,
            offered: None,
            offload: true,
            send_by: SendBy::Auto,
            receive_by: ReceiveBy::Copy,
            socket: SocketOptions::default(),
        }
    }

    /// The smallest UDP message: it must hold the trial's tag, a time and a sequence number.
    pub const UDP_MINIMUM: u64 = 16;
    /// The largest UDP message over IPv4: 65,535 less the IP and UDP headers.
    pub const UDP_MAXIMUM: u64 = 65_507;
    /// The largest TCP message: one call's worth.
    pub const TCP_MAXIMUM: u64 = 64 << 20;
}

/// One request and one response, and what lies between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransactStyle {
    /// All transactions over one standing connection or socket.
    #[default]
    Persistent,
    /// Each transaction connects, asks, is answered and closes (TCP only).
    Connect,
}

/// When an open loop's requests are due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Evenly spaced.
    #[default]
    Even,
    /// Exponentially distributed gaps (a Poisson process).
    Poisson,
}

/// Requests and responses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TransactSpec {
    /// TCP or UDP.
    pub transport: Transport,
    /// IPv4 or IPv6.
    pub ip: IpVersion,
    /// Standing connection, or one for each transaction.
    pub style: TransactStyle,
    /// Bytes of a request, at least 1.
    pub request_bytes: ByteCount,
    /// Bytes of a response, at least 1.
    pub response_bytes: ByteCount,
    /// Connections (UDP: sockets), each with a thread of its own at both ends.
    pub flows: u16,
    /// Requests under way at a time on each flow (closed loop).
    pub outstanding: u16,
    /// Transactions per second over all flows (open loop: latency counts from the intended time); none is a closed loop.
    pub rate: Option<OpRate>,
    /// When an open loop's requests are due.
    pub arrivals: Arrivals,
    /// Spin on the socket instead of sleeping, at both ends.
    pub busy_poll: bool,
    /// Socket settings.
    pub socket: SocketOptions,
}

impl TransactSpec {
    /// One byte there and one byte back over IPv4, one request at a time, in a closed loop.
    pub fn plain(transport: Transport) -> Self {
        Self {
            transport,
            ip: IpVersion::V4,
            style: TransactStyle::Persistent,
            request_bytes: ByteCount::new(1),
            response_bytes: ByteCount::new(1),
            flows: 1,
            outstanding: 1,
            rate: None,
            arrivals: Arrivals::Even,
            busy_poll: false,
            socket: SocketOptions::default(),
        }
    }
}
