//! Calls to an ONC RPC server (RFC 5531): what a trial asks of it.

use crate::checked::{OutOfRange, check_when_read, rate, within};
use crate::named;
use crate::{Arrivals, Net, Path, Transport};
use linerate_units::{ByteCount, OpRate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

named! {
    /// What one call of linerate's own RPC program does (docs/linerate.x).
    #[derive(Default)]
    pub enum RpcCall as "call" {
        /// Nothing there, nothing back.
        Null = "null", "null";
        /// A unit of data there: memory-to-memory write.
        #[default]
        Write = "write", "write";
        /// A unit of data back: memory-to-memory read.
        Read = "read", "read";
        /// A unit of data there and the same back.
        Echo = "echo", "echo";
    }
}

impl RpcCall {
    /// Data travel from the caller to the server.
    pub fn carries_there(self) -> bool {
        matches!(self, Self::Write | Self::Echo)
    }

    /// Data travel from the server to the caller.
    pub fn carries_back(self) -> bool {
        matches!(self, Self::Read | Self::Echo)
    }
}

/// RPC calls from the client to the agent at the server end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct RpcTask {
    /// Who talks to whom; several paths run at once.
    pub paths: Vec<Path>,
    /// Transport, flows and sockets.
    pub net: Net,
    /// What each call does.
    pub call: RpcCall,
    /// Bytes of data that a call or its reply carries; headers come on top.
    pub unit_bytes: ByteCount,
    /// Calls under way at a time on each flow.
    pub outstanding: u16,
    /// Calls per second over all flows (open loop: latency counts from the intended time); none is a closed loop.
    pub rate: Option<OpRate>,
    /// When an open loop's calls are due.
    pub arrivals: Arrivals,
}

impl RpcTask {
    /// The largest unit over UDP: a datagram's 65,507 bytes less the headers of a call or reply, rounded down.
    pub const UDP_MAXIMUM: u64 = 60 << 10;
    /// The largest unit over TCP.
    pub const TCP_MAXIMUM: u64 = 1 << 20;

    fn check(&self) -> Result<(), OutOfRange> {
        self.net.check_flows(Net::MOST_FLOWS_WITH_THREADS)?;
        within("bytes of a unit", self.unit_bytes.get(), 0..=Self::TCP_MAXIMUM)?;
        within("calls under way", self.outstanding, 1..=u16::MAX)?;
        self.rate.map_or(Ok(()), |asked| rate("calls per second", asked.get()))
    }

    /// Bytes before the unit in a call that carries one: the call's head with a trial's key (RFC 5531 section 9), and the
    /// unit's length (RFC 4506 section 4.10).
    pub const CALL_HEAD: u64 = 60;
    /// The same in a reply.
    pub const REPLY_HEAD: u64 = 28;
    /// TCP: what marks a record (RFC 5531 section 11).
    pub const RECORD_MARK: u64 = 4;

    /// Bytes of the message that carries the unit: the call's if data go there, else the reply's. XDR fills the unit up to
    /// a multiple of four.
    pub fn message_bytes(&self) -> u64 {
        let head = if self.call.carries_there() { Self::CALL_HEAD } else { Self::REPLY_HEAD };
        let mark = if self.net.transport == Transport::Tcp { Self::RECORD_MARK } else { 0 };
        mark + head + self.unit_bytes.get().next_multiple_of(4)
    }

    /// Calls of one size over IPv4, one at a time, in a closed loop.
    pub fn plain(transport: Transport, call: RpcCall, unit_bytes: ByteCount) -> Self {
        Self {
            paths: Vec::new(),
            net: Net::plain(transport),
            call,
            unit_bytes,
            outstanding: 1,
            rate: None,
            arrivals: Arrivals::Even,
        }
    }
}

check_when_read!(RpcTask);
