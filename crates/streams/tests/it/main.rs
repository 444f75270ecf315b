//! Tests of the crate from outside.

mod connections;
mod hosts;
mod loopback;
mod progress;
mod sharing;
mod volume;
