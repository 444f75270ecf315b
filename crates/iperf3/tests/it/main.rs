//! Tests of the crate from outside.

mod client;
mod hostile;
mod login;
mod server;
mod sessions;
