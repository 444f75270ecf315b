//! Tests of the crate from outside.

mod changed;
mod disk;
mod feed;
mod listing;
mod live_run;
mod sample;
mod store;
