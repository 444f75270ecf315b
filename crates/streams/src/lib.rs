//! The engine of bulk streams and transactions over TCP and UDP: this host's ends of any number of paths.
//!
//! Servers listen, clients reach them with the session's key, and all start at a given time. Every flow and direction
//! has a blocking thread of its own at each end; on the hot path threads share only one progress counter each. Large
//! numbers of flows of a stream share one thread per core (`spread.rs`).
//!
//! Time runs by each host's own monotonic clock:
//!
//! ```text
//!         start        warm-up        window opens        window closes    stragglers    done
//! TCP     |--------------------------------|--------------------|----cool-down----|
//! UDP     |--------------------------------|--------------------|-cool-down-| quiet |
//! ```
//!
//! The load goes on from the start to the end of the cool-down, so that each end can count over its own window. If the
//! warm-up ends when the load is steady, the agent opens the window during the load. Each datagram carries its phase:
//! loss is counted for the datagrams of the window.

mod accept;
mod arrivals;
mod budget;
mod bulk;
mod bulk_tcp;
mod bulk_udp;
mod connect;
mod datagram;
mod engine;
mod error;
mod flow;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod hello;
mod job;
mod meter;
mod needs;
mod options;
mod progress;
mod running;
mod sequence;
mod spread;
mod transact;
mod window;

pub use bulk::{Bulk, BulkCounts, BulkFlow, BulkOptions, BulkSocket, FlowProgress};
pub use engine::Streams;
