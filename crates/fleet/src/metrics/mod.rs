//! Results and health of a fleet for Prometheus: scraped at `GET /metrics`, or pushed by remote write.
//!
//! [`Metrics`] keeps the newest values. [`Family`] lists every metric with its type, labels and help text; dashboards
//! and alert rules in `packaging/` use these names and no others.

mod exposition;
mod family;
mod page;
mod pair;
mod push;
mod registry;
mod remote_write;

pub use family::{Family, FamilyKind};
pub use page::router;
pub use pair::{PairFigure, PairResult};
pub use push::{Push, PushTarget};
pub use registry::{Capacity, HostRow, Metrics, TrialOutcome};
