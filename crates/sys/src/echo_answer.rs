//! ICMP echo requests that the system sends and matches with their answers.

use crate::error_queue::QueuedError;
use std::net::IpAddr;

/// An ICMP echo request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchoRequest<'a> {
    /// Number that the answer has.
    pub number: u32,
    /// Source address.
    pub from: IpAddr,
    /// Destination, of the same family.
    pub to: IpAddr,
    /// Interface of a link-local destination; zero otherwise.
    pub scope: u32,
    /// TTL or hop limit.
    pub ttl: u8,
    /// Data after the ICMP header.
    pub data: &'a [u8],
}

/// Answer to an ICMP echo request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EchoAnswer {
    /// Number of the request.
    pub number: u32,
    /// What answered.
    pub kind: EchoAnswerKind,
}

/// Kind of an answer to an ICMP echo request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EchoAnswerKind {
    /// An echo reply.
    Reply {
        /// Sender.
        from: IpAddr,
        /// Bytes of its data, written to the buffer.
        length: usize,
        /// TTL or hop limit. `None` if the system did not report it.
        ttl: Option<u8>,
        /// Time of reception, in nanoseconds since 1970.
        arrived_unix_ns: u64,
    },
    /// An ICMP error. It quotes nothing.
    Error(QueuedError),
}
