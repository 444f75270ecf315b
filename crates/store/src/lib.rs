//! Stores records: each trial is on disk the moment it ends.
//!
//! A store is a SQLite file, by default `$XDG_DATA_HOME/linerate/results.db`, or a PostgreSQL database
//! (`postgres://USER@HOST/DATABASE`). Both have the same tables and run the same statements.
//!
//! Several programs may use a store at once. SQLite writes its log ahead (WAL), and writers queue for a while. Each change is flushed
//! to the disk before the call returns: it outlives a power cut, and its few milliseconds fall between trials.
//!
//! A run that is being measured holds a lock ([`LiveRun`]): a byte of a file next to a SQLite store, an advisory lock in PostgreSQL.
//! It ends with the program, so a killed run is distinguished from a running one at once. A feed next to a SQLite store publishes the
//! events of a run ([`FeedWriter`], [`Feed`]); PostgreSQL has no feeds.
//!
//! Results of pairs of hosts are kept apart, with sums by hour and by site ([`Store::matrix`]).
#![forbid(unsafe_code)]

mod alive;
mod backend;
mod body;
mod changed;
mod delete;
mod error;
mod feed;
mod finish;
mod hosts_in_plan;
mod ingest;
mod insert;
mod listing;
mod live_run;
mod location;
mod neighbours;
mod pairs;
mod postgres;
mod query;
mod retention;
mod rows;
mod run_row;
mod search_text;
mod signs;
mod sql;
mod sqlite;
mod store;
mod tables;

pub use error::StoreError;
pub use feed::{Feed, FeedWriter};
pub use ingest::{IngestPart, PartOutcome};
pub use live_run::{Ending, LiveRun};
pub use location::{StoreLocation, default_path};
pub use neighbours::RunOfCommand;
pub use pairs::{FleetHost, Level, Matrix, MatrixCell, MatrixQuery, Page, PairChange, PairPoint, Selection};
pub use postgres::{BadStoreUrl, PostgresUrl};
pub use query::{Query, TooManyWords};
pub use retention::{Deleted, RetentionPolicy};
pub use run_row::{RunRow, State};
pub use store::Store;
