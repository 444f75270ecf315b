//! Requests and responses, timed one by one.

use crate::checked::{OutOfRange, check_when_read, rate, within};
use crate::{Net, Path, StreamTask, Transport};
use linerate_units::{ByteCount, OpRate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requests and responses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self")]
pub struct TransactTask {
    /// Who talks to whom; several paths run at once.
    pub paths: Vec<Path>,
    /// Transport, flows and sockets.
    pub net: Net,
    /// Standing connection, or one for each transaction.
    pub style: TransactStyle,
    /// Bytes of a request, at least 1.
    pub request_bytes: ByteCount,
    /// Bytes of a response, at least 1.
    pub response_bytes: ByteCount,
    /// Requests under way at a time on each flow (closed loop).
    pub outstanding: u16,
    /// Transactions per second over all flows (open loop: latency counts from the intended time); none is a closed loop.
    pub rate: Option<OpRate>,
    /// When an open loop's requests are due.
    pub arrivals: Arrivals,
    /// Spin on the socket instead of sleeping, at both ends.
    pub busy_poll: bool,
}

impl TransactTask {
    /// One byte there and one byte back over IPv4, one request at a time, in a closed loop.
    pub fn plain(transport: Transport) -> Self {
        Self {
            paths: Vec::new(),
            net: Net::plain(transport),
            style: TransactStyle::Persistent,
            request_bytes: ByteCount::new(1),
            response_bytes: ByteCount::new(1),
            outstanding: 1,
            rate: None,
            arrivals: Arrivals::Even,
            busy_poll: false,
        }
    }
}

impl TransactTask {
    fn check(&self) -> Result<(), OutOfRange> {
        self.net.check_flows(Net::MOST_FLOWS_WITH_THREADS)?;
        within("bytes of a request", self.request_bytes.get(), 1..=StreamTask::TCP_MAXIMUM)?;
        within("bytes of a response", self.response_bytes.get(), 1..=StreamTask::TCP_MAXIMUM)?;
        within("requests under way", self.outstanding, 1..=u16::MAX)?;
        self.rate.map_or(Ok(()), |asked| rate("requests per second", asked.get()))
    }
}

check_when_read!(TransactTask);

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
