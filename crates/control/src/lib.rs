//! The client of an agent's API, and the types of the protocol.
//!
//! A runner opens a session on each agent of a trial ([`Client::open`]), follows its stages, and orders the next step
//! when all sessions have reached one. Nothing here knows an engine, or how a trial is put together.
//!
//! The client pins the agent's certificate by its fingerprint and shows the token; an
//! [`AgentUrl`](linerate_model::AgentUrl) carries both with the address.
#![forbid(unsafe_code)]

mod api_error;
mod client;
mod dial;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod http;
pub mod pairing;
mod pin;
mod resolve;
mod retries;
mod session;
mod sse;
mod time_limit;
mod wire_times;

pub use api_error::{ApiError, ErrorKind};
pub use client::Client;
pub use dial::Route;
pub use error::AgentError;
pub use pin::{client_config, fingerprint};
pub use resolve::Resolve;
pub use session::{ClockReading, Closed, SessionHandle};

/// Version of the API. Both sides send it with each request and answer, and refuse to work with another.
pub const PROTOCOL: u32 = 8;

/// Header of a request that may have arrived before. A session that it opened continues.
pub const REPEATED_HEADER: &str = "linerate-repeated";

/// Header that carries [`PROTOCOL`].
pub const PROTOCOL_HEADER: &str = "linerate-protocol";
