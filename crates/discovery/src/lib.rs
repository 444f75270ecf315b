//! Agents on the local network, announced and found by multicast DNS (RFC 6762) and DNS-SD (RFC 6763).
//!
//! All messages go to the multicast group, and only messages to the group are read. A stranger can therefore make an
//! agent send nothing to a host of his choice: answers reach the link only, at most one a second. Messages are read one
//! at a time and nothing of them is kept, so there is no cache that a stranger could fill.
//!
//! An announcement contains no secret, and it is not authenticated. The fingerprint in an agent URL identifies the
//! agent.
#![forbid(unsafe_code)]

mod agent;
mod browser;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod group;
mod message;
mod name;
mod responder;

pub use agent::{AnnouncedAgent, FoundAgent};
pub use browser::discover;
pub use responder::{Announcement, announce};
