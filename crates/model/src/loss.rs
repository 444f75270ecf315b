//! Datagrams that did not arrive, and where they were lost.

use crate::{Text, text};
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

/// Defines [`LossPlaces`]: a row is a place's field, its name in keys and its name in words.
macro_rules! loss_places {
    ($($(#[$documentation:meta])* $place:ident = $name:literal, $words:literal;)+) => {
        /// Datagrams lost at each place, from the sending program to the receiving one.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        pub struct LossPlaces {
            $($(#[$documentation])* pub $place: u64,)+
        }

        impl LossPlaces {
            /// Returns all places, in the order of the path, each with its name in words.
            pub fn named(&self) -> [(&'static Text, u64); [$($words),+].len()] {
                [$((text!(concat!("loss-", $name), $words), self.$place)),+]
            }

            /// Returns the sum over all places.
            pub fn sum(&self) -> u64 {
                0 $(+ self.$place)+
            }
        }

        impl AddAssign for LossPlaces {
            fn add_assign(&mut self, other: Self) {
                $(self.$place += other.$place;)+
            }
        }
    };
}

loss_places! {
    /// Due at the offered rate, but the sender did not get to them.
    not_sent = "not-sent", "not sent";
    /// A filter of the sending host dropped them: tc on the way out.
    sender_filter = "sender-filter", "sender's filter";
    /// The sender's kernel refused them, or its queue (qdisc) or NIC dropped them.
    sender_queue = "sender-queue", "sender's queue or NIC";
    /// Left the sender's NIC and reached no counter of the receiving host: lost on a wire or in a device, or dropped where the
    /// kernel does not count.
    unaccounted = "unaccounted", "unaccounted";
    /// Damaged on the path: the receiving host found a wrong checksum or header.
    corrupted = "corrupted", "corrupted";
    /// The receiver's NIC ring or its kernel's input queue (softnet) dropped them.
    receiver_queue = "receiver-queue", "receiver's NIC or kernel queue";
    /// A filter of the receiving host dropped them: tc or XDP on the way in, netfilter, or the reverse path filter.
    receiver_filter = "receiver-filter", "receiver's filter";
    /// Some of their fragments arrived, but the receiving host could not put them together.
    reassembly = "reassembly", "receiver's IP reassembly";
    /// No room in the receiving socket's buffer: the program did not read fast enough.
    socket_buffer = "socket-buffer", "receiver's socket buffer";
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
