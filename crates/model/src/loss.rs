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
    /// A filter of the sending host dropped them: tc on the way out.
    pub sender_filter: u64,
    /// The sender's kernel refused them, or its queue (qdisc) or NIC dropped them.
    pub sender_queue: u64,
    /// Left the sender's NIC and reached no counter of the receiving host: lost on a wire or in a device, or dropped where the
    /// kernel does not count.
    pub unaccounted: u64,
    /// Damaged on the path: the receiving host found a wrong checksum or header.
    pub corrupted: u64,
    /// The receiver's NIC ring or its kernel's input queue (softnet) dropped them.
    pub receiver_queue: u64,
    /// A filter of the receiving host dropped them: tc or XDP on the way in, netfilter, or the reverse path filter.
    pub receiver_filter: u64,
    /// Some of their fragments arrived, but the receiving host could not put them together.
    pub reassembly: u64,
    /// No room in the receiving socket's buffer: the program did not read fast enough.
    pub socket_buffer: u64,
}

impl LossPlaces {
    /// All places, in the order of the path, each with its name in words.
    pub fn named(&self) -> [(&'static str, u64); 9] {
        [
            ("not sent", self.not_sent),
            ("sender's filter", self.sender_filter),
            ("sender's queue or NIC", self.sender_queue),
            ("unaccounted", self.unaccounted),
            ("corrupted", self.corrupted),
            ("receiver's NIC or kernel queue", self.receiver_queue),
            ("receiver's filter", self.receiver_filter),
            ("receiver's IP reassembly", self.reassembly),
            ("receiver's socket buffer", self.socket_buffer),
        ]
    }

    /// The sum over all places.
    pub fn sum(&self) -> u64 {
        self.named().iter().map(|(_, count)| count).sum()
    }
}

impl AddAssign for LossPlaces {
    fn add_assign(&mut self, other: Self) {
        self.not_sent += other.not_sent;
        self.sender_filter += other.sender_filter;
        self.sender_queue += other.sender_queue;
        self.unaccounted += other.unaccounted;
        self.corrupted += other.corrupted;
        self.receiver_queue += other.receiver_queue;
        self.receiver_filter += other.receiver_filter;
        self.reassembly += other.reassembly;
        self.socket_buffer += other.socket_buffer;
    }
}

impl AddAssign for Loss {
    fn add_assign(&mut self, other: Self) {
        self.lost += other.lost;
        self.of += other.of;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.places += other.places;
    }
}
