//! One host's part in any trial behind an HTTP/JSON API. The API's client is the crate `linerate-control`.
//!
//! The agent is attack surface and a traffic cannon, so it does nothing without a token: TLS with a certificate that the client
//! pins by fingerprint, a token on every request, limits on what a session may ask for. An
//! [`AgentUrl`](linerate_model::AgentUrl) carries address, token and fingerprint in one line. The agent's own URL has every power
//! that its options allow; [`Invitations`] have fewer, and a life of their own.
//!
//! The API has two transports: HTTP over TLS at a port of the agent (`serve`), and the NATS of a fleet (`fleet`).
//!
//! The path of a session: `connection_gate`, `serve` and `grant` (who may ask) -> `routes` (what can be asked) -> `sessions` and `admission`
//! (what is allowed) -> `session` (its stages) -> an engine of `engines`, on a thread of its own, while `watching` watches the
//! host. All of it fits a single-threaded tokio runtime: what blocks runs on threads of its own.
#![forbid(unsafe_code)]

mod admission;
mod advertise;
mod allowed_hours;
mod allowed_interfaces;
mod allowed_servers;
mod api_listener;
mod budget;
mod confinement;
mod connection_gate;
mod engines;
mod error_response;
mod fleet;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod grant;
mod identity;
mod invitation;
mod limits;
mod metrics;
mod openapi;
mod options;
mod origin;
mod pairing;
mod ports;
pub mod private_file;
mod route;
mod routes;
mod serve;
mod served;
mod session;
mod session_log;
mod sessions;
mod shared;
mod slots;
mod start_error;
mod targets;
#[cfg(test)]
mod tests;
mod timeouts;
mod token;
mod watching;

pub use allowed_hours::AllowedHours;
pub use allowed_interfaces::AllowedInterfaces;
pub use allowed_servers::{AllowedServer, AllowedServers, AllowedUser, BadAllowance};
pub use budget::Budget;
pub use confinement::Confined;
pub use engines::EngineOptions;
pub use identity::Identity;
pub use invitation::{Allowance, Invitation, InvitationState, Invitations};
pub use ipnet::IpNet;
pub use limits::Limits;
pub use linerate_copy::AllowedFolders;
pub use linerate_nfsd::{NfsService, ServiceTime};
pub use options::{AgentOptions, Confinement};
pub use pairing::PAIRING_TIME;
pub use routes::openapi;
pub use serve::Agent;
pub use session_log::SessionLog;
pub use start_error::StartError;
pub use timeouts::Timeouts;
pub use token::{BadToken, Token};
pub use watching::{Seen, Watching};
