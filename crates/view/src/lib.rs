//! The store as web pages: list, filter, open, compare, follow a command over time, watch a run.
//!
//! Pages only read, except that operators whom a trusted proxy has logged in may delete records. They work without their script, which adds what a form cannot do, and they fetch nothing from
//! elsewhere. Everything lies below a random word that the address begins with ([`Key`]): whoever does not know it is told
//! nothing. That is what keeps other users of the machine out, who can reach a loopback port as well as its owner.
#![forbid(unsafe_code)]

mod compare;
mod connections;
mod delete;
mod events;
mod fleet;
mod key;
mod list;
mod page;
mod page_error;
mod query;
mod record;
mod serve;
mod shared;
mod table;
mod trend;
mod trusted_proxy;
mod under_way;
mod watched;

pub use key::Key;
pub use serve::{View, ViewError};
pub use trusted_proxy::{BadHeaderName, TrustedProxy};
