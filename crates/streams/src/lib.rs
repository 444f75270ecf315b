//! The engine of bulk streams and transactions over TCP and UDP: this host's ends of any number of paths.
//!
//! Servers listen, clients reach them with the session's key, and all start at a given time. Every flow and direction has a
//! blocking thread of its own at each end; nothing is shared between them on the hot path but a counter each for progress. Very many
//! flows of a stream share a thread for each core (`spread.rs`).
//!
//! Time runs by each host's own monotonic clock:
//!
//! ```text
//!         start        warm-up        window opens        window closes    stragglers    done
//! TCP     |--------------------------------|--------------------|----cool-down----|
//! UDP     |--------------------------------|--------------------|-cool-down-| quiet |
//! ```
//!
//! The load goes on from the start to the end of the cool-down, so that each end can count over its own window. Where the warm-up
//! ends when the load is steady, it is told during the load when the window opens. Each datagram says which phase it belongs to:
//! loss is told of those of the window.

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

pub use bulk::{Bulk, BulkCounts, BulkFlow, BulkSocket, FlowProgress, Iperf3Test};
pub use engine::Streams;
