//! Bulk data over TCP or UDP.

use crate::checked::{OutOfRange, check_when_read, rate, within};
use crate::{IpVersion, Iperf3End, Net, Path, Transport};
use linerate_units::{BitRate, ByteCount, FrameRate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A bulk stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct StreamTask {
    /// Who talks to whom; several paths run at once.
    pub paths: Vec<Path>,
    /// Transport, flows and sockets.
    pub net: Net,
    /// UDP: payload bytes of each datagram, at least [`StreamTask::UDP_MINIMUM`]. TCP: bytes handed over in one call.
    pub message_bytes: ByteCount,
    /// Data direction.
    pub direction: Direction,
    /// Offered load; none sends without a rate limit.
    pub offered: Option<Offered>,
    /// What each sender sends in the window, in each direction, by all its flows together; UDP rounds it up to whole datagrams. The
    /// window closes when all of it is sent or, at the latest, at its length. None sends until the window closes by time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<ByteCount>,
    /// UDP: let the kernel cut and join datagrams (UDP_SEGMENT, UDP_GRO). Off, each datagram is a packet of its own from
    /// socket to socket.
    pub offload: bool,
    /// How a TCP sender hands over its data.
    pub send_by: SendBy,
    /// What a TCP receiver does with its data.
    pub receive_by: ReceiveBy,
    /// When a TCP receiver wakes up.
    #[serde(default, skip_serializing_if = "ReceiveWake::is_default")]
    pub receive_wake: ReceiveWake,
    /// What runs iperf3 at the other end of the path; none where an agent is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iperf3: Option<Iperf3End>,
}

impl IpVersion {
    /// Returns the payload of the largest datagram that a path of this MTU carries whole: the MTU without the IP header and UDP's 8 bytes
    /// (RFC 768).
    pub fn datagram_within(self, mtu: u32) -> u64 {
        u64::from(mtu.saturating_sub(self.header() + 8)).clamp(StreamTask::UDP_MINIMUM, StreamTask::UDP_MAXIMUM)
    }
}

impl StreamTask {
    /// One flow over IPv4 from client to server without a rate limit, with the I/O methods that serve best.
    pub fn plain(transport: Transport, message_bytes: ByteCount) -> Self {
        Self {
            paths: Vec::new(),
            net: Net::plain(transport),
            message_bytes,
            direction: Direction::Send,
            offered: None,
            volume: None,
            offload: true,
            send_by: SendBy::Auto,
            receive_by: ReceiveBy::Copy,
            receive_wake: ReceiveWake::Batched,
            iperf3: None,
        }
    }

    fn check(&self) -> Result<(), OutOfRange> {
        within("bytes of a message", self.message_bytes.get(), 1..=Self::TCP_MAXIMUM)?;
        if let Some(volume) = self.volume {
            within("bytes to send", volume.get(), 1..=Self::MOST_VOLUME)?;
        }
        match self.offered {
            None => Ok(()),
            Some(Offered::PayloadBps(asked)) => rate("bits per second", asked.get()),
            Some(Offered::MessagesPerS(asked)) => rate("messages per second", asked.get()),
        }
    }

    /// What is sent in the window by a count of bytes; UDP sends whole datagrams. None where the window ends by time.
    pub fn whole_volume(&self) -> Option<ByteCount> {
        let (volume, message) = (self.volume?.get(), self.message_bytes.get().max(1));
        Some(ByteCount::new(match self.net.transport {
            Transport::Tcp => volume,
            Transport::Udp => volume.div_ceil(message) * message,
        }))
    }

    /// Returns whether agents run at both ends of each path.
    pub fn is_between_agents(&self) -> bool {
        self.iperf3.is_none()
    }

    /// The largest volume: an exbibyte, so that sums of many stay within 64 bits.
    pub const MOST_VOLUME: u64 = 1 << 60;
    /// The smallest UDP message: it must hold the trial's tag, a time and a sequence number.
    pub const UDP_MINIMUM: u64 = 16;
    /// The largest UDP message over IPv4: 65,535 less the IP and UDP headers.
    pub const UDP_MAXIMUM: u64 = 65_507;
    /// The largest TCP message: one call's worth.
    pub const TCP_MAXIMUM: u64 = 64 << 20;
}

check_when_read!(StreamTask);

/// Direction of a stream's data, seen from the client: the host that opens the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the server.
    #[default]
    Send,
    /// From the server to the client.
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
    /// `write`, unless a tuning finds another way to be faster.
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

/// When a TCP receiver wakes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReceiveWake {
    /// When the bytes of 0.1 ms have arrived (SO_RCVLOWAT): few wake-ups, for which the sender's core may pay.
    #[default]
    Batched,
    /// When anything has arrived, as programs do: the receiver's core does more of the kernel's work.
    Each,
}

impl ReceiveWake {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
