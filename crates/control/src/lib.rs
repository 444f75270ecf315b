//! The client of an agent's API, and the types of the protocol.
//!
//! A runner opens a session on each agent of a trial ([`Client::open`]), follows its stages, and orders the next step
//! when all sessions have reached one. Nothing here knows an engine, or how a trial is put together.
//!
//! The API has two transports: HTTP over TLS to the agent's own port, and the NATS of the agent's fleet
//! ([`Client::over_bus`]). By HTTP, the client pins the agent's certificate by its fingerprint and shows the token; an
//! [`AgentUrl`](linerate_model::AgentUrl) carries both with the address.
#![forbid(unsafe_code)]

mod api_error;
mod bus;
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
mod transport;
mod wire_times;

pub use api_error::{ApiError, ErrorKind};
pub use client::Client;
pub use dial::Route;
pub use error::AgentError;
pub use pin::{client_config, fingerprint};
pub use resolve::Resolve;
pub use session::{ClockReading, Closed, SessionHandle};

/// Version of the API. Both sides send it with each request and answer. They work with a neighbour
/// ([`is_neighbour`]) and refuse all others.
pub const PROTOCOL: u32 = 8;

/// Returns whether this version of linerate works with one of that protocol: the same, the previous or the next one.
///
/// Neighbours ignore the fields of each other that they do not know.
pub const fn is_neighbour(protocol: u32) -> bool {
    protocol.abs_diff(PROTOCOL) <= 1
}

/// Returns the oldest and the newest protocol that this version of linerate works with.
pub const fn neighbours() -> (u32, u32) {
    (PROTOCOL - 1, PROTOCOL + 1)
}

/// Header of a request that may have arrived before. A session that it opened continues.
pub const REPEATED_HEADER: &str = "linerate-repeated";

/// Header that carries [`PROTOCOL`].
pub const PROTOCOL_HEADER: &str = "linerate-protocol";

/// Header with the fence of a fleet's scheduler, a number that grows with each new scheduler. An agent opens no session
/// for an older one.
pub const FENCE_HEADER: &str = "linerate-fence";
