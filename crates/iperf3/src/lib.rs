//! The protocol of iperf3: streams to its servers, and a server for its clients.
//!
//! A test has one control connection over TCP, and separate data flows to the same port. Bytes on the control
//! connection move both ends from state to state; twice each end sends a JSON text, with its length before it:
//!
//! ```text
//! client                                             server
//!   |--- cookie (37 bytes) ---------------------------->|
//!   |<-- PARAM_EXCHANGE --------------------------------|   or ACCESS_DENIED: another test is under way
//!   |--- parameters (JSON) ---------------------------->|
//!   |<-- CREATE_STREAMS --------------------------------|
//!   |=== each flow: TCP, cookie; UDP, 4 bytes, answered |
//!   |<-- TEST_START, TEST_RUNNING ----------------------|
//!   |... data, in the warm-up ("omitted") and after ....|
//!   |--- TEST_END ------------------------------------->|
//!   |<-- EXCHANGE_RESULTS ------------------------------|
//!   |--- results (JSON) ------------------------------->|
//!   |<-- results (JSON), DISPLAY_RESULTS ---------------|
//!   |--- IPERF_DONE ----------------------------------->|
//! ```
//!
//! If the server requires a login, the parameters contain one: user name, password and time, encrypted with the
//! server's public key (`login.rs`).
//!
//! The client ends the test, also when the server sends. The data move in the loops of `linerate-streams`. Checked
//! against iperf3 3.12.

mod client;
mod control;
mod cpu;
mod engine;
mod error;
mod flows;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod job;
mod login;
mod message;
mod parameters;
mod peer_end;
mod reading;
mod results;
mod server;
mod state;

pub use engine::Iperf3;
pub use login::{BadKey, public_key};
pub use server::{Iperf3Service, Observer, ServedTest, ServiceLimits, TestWatch};
