//! Records kept: each trial is on disk the moment it ends.
//!
//! One SQLite file, by default `$XDG_DATA_HOME/linerate/results.db`. Several programs may use it at once: the log is
//! written ahead (WAL), writers queue up for a while. Each change is flushed to the disk before the call returns
//! (`synchronous=FULL`): it outlives a power cut, and its few milliseconds fall between trials.
#![forbid(unsafe_code)]

mod error;
mod listing;
mod location;
mod schema;
mod store;

pub use error::StoreError;
pub use listing::{Listed, Query, Stage, TooManyWords};
pub use location::default_path;
pub use store::Store;
