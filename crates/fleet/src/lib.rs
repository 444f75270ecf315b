//! The processes of a fleet: the scheduler under its lease, controllers that run trials, and the ingest of results.
#![forbid(unsafe_code)]

mod endpoint;
pub mod metrics;

pub use endpoint::{Endpoint, EndpointError};
