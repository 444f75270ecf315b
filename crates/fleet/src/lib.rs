//! The processes of a fleet: the scheduler under its lease, controllers that run trials, and the ingest of results.
//!
//! All state is in NATS. The scheduler puts orders into a stream; a controller takes an order, runs the trial through the
//! agents and publishes the parts of its record; the ingest stores them. Any process may be killed: its work is
//! taken over by another one.
#![forbid(unsafe_code)]

mod controller;
mod endpoint;
pub mod enrolment;
mod ingest;
mod lease;
pub mod metrics;
pub mod notify;
mod orders;
mod presence;
mod record_parts;
mod scheduler;
mod state;
mod watch_post;

pub use controller::{Measure, OrderedRun, control};
pub use endpoint::{Endpoint, EndpointError};
pub use ingest::ingest;
pub use lease::{LeaseView, ServerClock, Term, hold, watch_lease};
pub use orders::{OrderOutcome, PairEnd, PublishedOrder};
pub use presence::PresentAgents;
pub use record_parts::{PublishedRecord, RecordPart, RecordPublisher, RunEnding, published};
pub use scheduler::{SchedulerOptions, schedule};
pub use state::{OutstandingOrder, Pause, ScheduleStatus, pause, request_run, set_pause, status};
pub use watch_post::WatchPost;
