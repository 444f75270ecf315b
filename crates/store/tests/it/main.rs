//! Tests of the crate from outside.

mod changed;
#[cfg(target_os = "linux")]
mod disk;
mod feed;
mod listing;
mod live_run;
#[cfg(target_os = "linux")]
mod location;
mod pairs;
mod place;
#[cfg(target_os = "linux")]
mod postgres;
mod sample;
mod store;
