//! One side of any trial behind an HTTP/JSON API, and that API's client.
//!
//! The agent is attack surface and a traffic cannon, so it does nothing for a stranger: TLS with a certificate that the
//! client pins by fingerprint, a token on every request, limits on what a trial may ask for. [`Join`](linerate_model::Join)
//! carries address, token and fingerprint in one line.
//!
//! The path of a trial: [`Client`] -> `routes` (what can be asked) -> `connection_gate` and `serve` (admission) -> `trial` (the half's life)
//! -> `engine` (`linerate-streams`, `linerate-oncrpc` or `linerate-nfs`) and the watch in `linerate-observe`. All of it fits a single-threaded tokio
//! runtime: what blocks runs on threads of its own.
#![forbid(unsafe_code)]

mod advertise;
mod api_error;
mod client;
mod connection_gate;
mod copy;
mod engine;
mod error;
mod frame_half;
mod frames;
mod identity;
mod limits;
mod metrics;
mod openapi;
mod pin;
mod private_file;
mod routes;
mod serve;
mod sse;
#[cfg(test)]
mod tests;
mod timeouts;
mod token;
mod trial;

pub use api_error::{ApiError, ErrorKind};
pub use client::Client;
pub use error::AgentError;
pub use frame_half::HalfStage;
pub use frames::Resolve;
pub use identity::Identity;
pub use ipnet::IpNet;
pub use limits::Limits;
pub use linerate_copy::AllowedFolders;
pub use linerate_nfsd::{NfsService, ServiceTime};
pub use openapi::openapi;
pub use routes::Start;
pub use serve::{Agent, AgentOptions};
pub use timeouts::Timeouts;
pub use token::{BadToken, Token};

/// Version of the API. Both sides send it with each request and refuse to work with another.
pub const PROTOCOL: u32 = 1;

/// The header that carries [`PROTOCOL`].
pub const PROTOCOL_HEADER: &str = "linerate-protocol";
