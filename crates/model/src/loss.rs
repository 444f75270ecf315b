//! What became of the datagrams that did not arrive.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// Datagrams offered and not received, and where they were lost. `lost` is the sum of the places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// Datagrams that did not arrive.
    pub lost: u64,
    /// Datagrams that should have: sent, refused and (at a set rate) due but never sent.
    pub of: u64,
    /// Where they were lost.
    pub places: LossPlaces,
    /// Further copies of datagrams that had arrived.
    pub duplicates: u64,
    /// Datagrams that arrived after one sent later.
    pub reordered: u64,
}

/// Where datagrams were lost, from the sending program to the receiving one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LossPlaces {
    /// Due at the offered rate, but the sender did not get to them.
    pub not_sent: u64,
    /// The sender's kernel refused them, or its queue (qdisc) or NIC dropped them.
    pub sender_queue: u64,
    /// Left the sender's NIC and never reached the receiver's: the wire or a device on it.
    pub wire: u64,
    /// The receiver's NIC ring or its kernel's input queue (softnet) dropped them.
    pub receiver_queue: u64,
    /// No room in the receiving socket's buffer: the program did not read fast enough.
    pub socket_buffer: u64,
}

impl LossPlaces {
    /// All places, in the order of the path, each with its name in words.
    pub fn named(&self) -> [(&'static str, u64); 5] {
        [
            ("not sent", self.not_sent),
            ("sender's queue or NIC", self.sender_queue),
            ("wire or device", self.wire),
            ("receiver's NIC or kernel queue", self.receiver_queue),
            ("receiver's socket buffer", self.socket_buffer),
        ]
    }

    /// The sum over all places.
    pub fn sum(&self) -> u64 {
        self.named().iter().map(|(_, count)| count).sum()
    }
}

impl AddAssign for Loss {
    fn add_assign(&mut self, other: Self) {
        self.lost += other.lost;
        self.of += other.of;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.places.not_sent += other.places.not_sent;
        self.places.sender_queue += other.places.sender_queue;
        self.places.wire += other.places.wire;
        self.places.receiver_queue += other.places.receiver_queue;
        self.places.socket_buffer += other.places.socket_buffer;
    }
}
