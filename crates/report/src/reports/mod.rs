//! Reports other than the document of a record.

pub(crate) mod comparison;
pub(crate) mod explain;
pub mod limits;
pub(crate) mod live;
pub mod overview;
pub(crate) mod run_summary;
pub(crate) mod trend;
