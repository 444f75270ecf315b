//! STAMP, the Simple Two-way Active Measurement Protocol (RFC 8762), with its optional extensions (RFC 8972).

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod packet;
mod rate;
mod reflector;
mod sender;
mod service;
mod timestamp;
mod tlv;

pub use packet::{Key, KeyError, Mode, PacketError, ReflectedPacket, TestPacket};
pub use reflector::{Arrival, Reflector, ReflectorOptions, Refusal, Reply, ReplyTime, local_networks};
pub use sender::{Answer, Losses, Sender, Unmatched};
pub use service::{StampCounts, StampService};
pub use timestamp::{ErrorEstimate, Timestamp, TimestampFormat};
pub use tlv::{AccessReport, ClassOfService, DirectMeasurement, Tlv, TlvFlags, TlvValue};

/// UDP port that the IANA assigned to the STAMP Session-Reflector (RFC 8762, section 4.1).
pub const PORT: u16 = 862;
