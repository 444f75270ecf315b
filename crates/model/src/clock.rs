//! The clocks of hosts, and how far they are from the runner's.

use linerate_units::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The four times of one exchange between the runner and a host's agent, named as in RFC 5905 section 8. All are nanoseconds on
/// a monotonic clock: the first and the last on the runner's, the others on the host's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockExchange {
    /// The request left the runner.
    pub origin_ns: u64,
    /// The request arrived at the host.
    pub receive_ns: u64,
    /// The answer left the host.
    pub transmit_ns: u64,
    /// The answer arrived at the runner.
    pub destination_ns: u64,
}

/// A host's clock against the runner's, from exchanges over the control connection as in NTP (RFC 5905 section 8): the exchange with the
/// shortest round trip counts, and half of that is the error it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockOffset {
    /// The host's monotonic clock less the runner's, nanoseconds, in the middle of the trial.
    pub offset_ns: i64,
    /// The true offset is within this of it, throughout the trial.
    pub uncertainty: Nanos,
    /// Exchanges before and after the trial.
    pub exchanges: u32,
}
