//! Results of pairs of hosts: the newest of each, sums by hour and by site, and their changes.
//!
//! A finished run with one path between two hosts is a result of that pair and its test. A test is the kind of the run with the
//! options of its command ([`test_name`](test_name::test_name)).

mod history;
mod hosts;
mod matrix;
mod remove;
mod result;
mod test_name;
mod write;

pub use history::{PairChange, PairPoint};
pub use hosts::FleetHost;
pub use matrix::{Level, Matrix, MatrixCell, MatrixQuery, Page, Selection};
pub(crate) use remove::{forget_old, remove};
pub(crate) use result::{PairKey, PairResult};
pub(crate) use write::{add, set_changed};
