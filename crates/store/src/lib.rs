//! Stores records: each trial is on disk the moment it ends.
//!
//! One SQLite file, by default `$XDG_DATA_HOME/linerate/results.db`. Several programs may use it at once: the log is
//! written ahead (WAL), writers queue up for a while. Each change is flushed to the disk before the call returns
//! (`synchronous=FULL`): it outlives a power cut, and its few milliseconds fall between trials.
//!
//! A run that is being measured holds a lock beside the file ([`LiveRun`]). The kernel drops it however the program ends, so a killed
//! run is told from a running one at once. It tells others how it goes in a feed beside the file ([`FeedWriter`], [`Feed`]).
#![forbid(unsafe_code)]

mod alive;
mod body;
mod changed;
mod error;
mod feed;
mod listing;
mod live_run;
mod location;
mod neighbours;
mod query;
mod rows;
mod run_row;
mod schema;
mod search_text;
mod store;

pub use error::StoreError;
pub use feed::{Feed, FeedWriter};
pub use live_run::{Ending, LiveRun};
pub use location::default_path;
pub use neighbours::RunOfCommand;
pub use query::{Query, TooManyWords};
pub use run_row::{RunRow, State};
pub use store::Store;
