//! Decisions: which trial next, when it is done, and what the counts amount to.
//!
//! Nothing here sends traffic, waits or reads a clock. A method is asked for its next step and told each result, so the
//! same code runs in a unit test against a simulated device, in the lab and over real agents.
#![forbid(unsafe_code)]

mod account;
mod beside;
pub mod calibration;
mod clock_offset;
mod compare;
mod context;
mod contract;
pub mod copy;
mod counterproof;
pub mod curve;
pub mod device;
mod expect;
pub mod frames;
mod goals;
mod hops;
mod interval_rates;
pub mod ladder;
mod latency;
mod loaded_latency;
mod measure;
mod merge;
mod metric;
mod offered;
mod outage;
mod proof;
mod read_record;

mod repeat;
mod replay;
mod results;
mod retry;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
pub mod statistics;
mod steady;
mod sweep;
mod task;
mod tcp_summary;
mod terms;
mod tester_limit;
mod transfer;
pub mod tuning;
mod validity;
mod verdict;
mod within_window;

pub use beside::with_load;
pub use calibration::calibrated;
pub use clock_offset::clock_offset;
pub use compare::{Demands, compare, compare_pairs, compare_searches};
pub use contract::{After, Again, Method, Progress, Step};
pub use expect::{BadExpectation, Expectation, Judgement};
pub use goals::of;
pub use merge::merged;
pub use metric::{Metric, NoOneValue};

pub use outage::outages;
pub use read_record::{BadRecord, read_record};
pub use replay::{replay, summary};
pub use results::{cells, measurements};
pub use retry::Retry;
pub use steady::SteadyState;
pub use sweep::Sweep;
pub use task::{Addresses, Assigned, Joining, assign, drains, figure, join, spoilt, survives};
pub use transfer::{Transfer, transfers};
