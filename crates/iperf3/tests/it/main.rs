//! Tests of the crate from outside.

mod client;
mod hostile;
mod server;
mod sessions;
