//! Studies read from files: a TOML file that names factors and levels, and a CSV file of results or what is to be run.
//!
//! A study is read whole or not at all: each error names the file, the line, the field and what was expected there.

mod conclusion;
mod document;
mod error;
mod factor;
mod measure;
mod measured;
mod order;
mod run;
mod table;
mod tests_of;
mod translation;
mod without;

pub use document::{Imported, StudyFile};
pub use error::StudyError;
pub use measured::{HostCommand, Kept, Measured, NoValue, PlannedRun};

#[cfg(test)]
mod tests;
