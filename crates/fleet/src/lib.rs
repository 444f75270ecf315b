//! The processes of a fleet: the scheduler under its lease, controllers that run trials, and the ingest of results.
//!
//! All state is in NATS. The scheduler puts orders into a stream; a controller takes an order, runs the trial through the
//! agents and publishes the parts of its record; the ingest stores them. Any process may be killed: its work is
//! taken over by another one.
#![forbid(unsafe_code)]

mod endpoint;
pub mod enrolment;
mod lease;
pub mod metrics;
pub mod notify;
mod record_parts;

pub use endpoint::{Endpoint, EndpointError};
pub use lease::{LeaseView, ServerClock, Term, hold, watch_lease};
pub use record_parts::{PublishedRecord, RecordPart, RecordPublisher, RunEnding, published};
