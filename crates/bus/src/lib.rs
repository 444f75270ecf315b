//! NATS as the transport of a fleet: credentials, subjects, and requests to agents.
//!
//! A fleet is one account of a NATS server. Each agent is a user of it with permissions on its own subjects only
//! ([`Subjects`]); its key pair is made on its host and never leaves it. The owner of the fleet holds the keys that sign
//! users ([`FleetKeys`]).
#![forbid(unsafe_code)]

mod connect;
mod credentials;
mod error;
mod exchange;
mod instances;
mod jwt;
mod keys;
mod names;
mod presence;
mod streams;
mod subjects;

pub use connect::{Bus, Link};
pub use credentials::{Credentials, Role};
pub use error::BusError;
pub use exchange::{Arrival, BadMessage, Call, CallError, Head, Request, RequestQueue, Response, ResponseBody};
pub use instances::{InstanceNotice, Instances, OtherInstance};
pub use jwt::{AccountClaims, Claims, Permissions, UserClaims};
pub use keys::{FleetKeys, NewUser};
pub use names::{AgentName, BadName, FleetName};
pub use presence::Presence;
pub use streams::{Kept, Member};
pub use subjects::Subjects;

/// NATS messages, so that other crates name one version of them.
pub use async_nats;
/// Key pairs of NATS.
pub use nkeys::KeyPair;
